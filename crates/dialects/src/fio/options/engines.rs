//! fio's names for ways of issuing operations, and ours.

use super::super::job::Engine;

/// Returns the engine nearest to fio's `name` and what differs, or why there is none.
pub(super) fn engine(name: &str) -> Result<(Engine, Option<String>), String> {
    let (engine, differs) = match name {
        "io_uring" => (Engine::IoUring, ""),
        "libaio" => (Engine::Libaio, ""),
        "psync" => (Engine::Psync, ""),
        "null" => (Engine::Null, ""),
        "filecreate" => (Engine::FileCreate, ""),
        "filestat" => (Engine::FileStat, ""),
        "filedelete" => (Engine::FileDelete, ""),
        "sync" => (Engine::Psync, "run as psync: one call an operation, without a seek before it"),
        "vsync" => {
            (Engine::Psync, "run as psync: neighbouring blocks are not joined into one call")
        }
        "pvsync" | "pvsync2" => {
            (Engine::Psync, "run as psync: a block is one piece, so the call is the same in effect")
        }
        "splice" => (Engine::Psync, "run as psync: no pipe between file and memory"),
        "posixaio" => (
            Engine::IoUring,
            "run on io_uring: glibc's threads behind posixaio cost more and serve a file one by one",
        ),
        "solarisaio" | "windowsaio" => (Engine::IoUring, "run on io_uring: not of this system"),
        "mmap" | "libpmem" | "dev-dax" => {
            (Engine::Psync, "run as psync: memory is not mapped, each block is copied by a call")
        }
        "dircreate" | "dirstat" | "dirdelete" => {
            return Err(
                "directories are not made by job files; take `plimsoll as mdtest -D`".into()
            );
        }
        _ if is_elsewhere(name) => {
            return Err("it does no operations on files of a mounted file system".to_owned());
        }
        _ => return Ok((Engine::IoUring, Some("not known here; run on io_uring".to_owned()))),
    };
    Ok((engine, Some(differs).filter(|text| !text.is_empty()).map(str::to_owned)))
}

/// Returns whether an engine measures something else than a mounted file system.
fn is_elsewhere(name: &str) -> bool {
    const ELSEWHERE: [&str; 29] = [
        "cpuio",
        "dfs",
        "e4defrag",
        "exec",
        "external",
        "falloc",
        "fsync",
        "ftruncate",
        "gfapi",
        "gfapi_async",
        "guasi",
        "http",
        "ime_aio",
        "ime_psync",
        "ime_psyncv",
        "io_uring_cmd",
        "libblkio",
        "libcufile",
        "libhdfs",
        "librpma",
        "mtd",
        "nbd",
        "net",
        "netsplice",
        "nfs",
        "rados",
        "rbd",
        "rdma",
        "sg",
    ];
    let name = name.split(':').next().unwrap_or_default();
    ELSEWHERE.contains(&name) || name.starts_with("librpma_") || name == "xnvme"
}
