//! by hand
#![allow(clippy::all)]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]
use plimsoll_driver::*;
use plimsoll_driver_file::*;
use plimsoll_model::*;
use std::path::Path;
use std::time::*;
fn cpu() -> (f64, f64) {
    let mut u: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(0, &mut u) };
    let t = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (t(u.ru_utime), t(u.ru_stime))
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (what, path, n, depth, direct) = (
        &a[1],
        Path::new(&a[2]),
        a[3].parse::<u64>().unwrap(),
        a[4].parse::<usize>().unwrap(),
        a[5] == "direct",
    );
    let blocks = std::fs::metadata(path).unwrap().len() / 4096;
    let mut x = 88172645463325252u64;
    let mut rnd = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x % blocks) * 4096
    };
    let begin = cpu();
    let t = Instant::now();
    if what == "bare" {
        use std::os::fd::AsRawFd;
        let f = std::fs::File::open(path).unwrap();
        let fd = f.as_raw_fd();
        let mut b = vec![0u8; 4096];
        for _ in 0..n {
            assert_eq!(unsafe { libc::pread(fd, b.as_mut_ptr().cast(), 4096, rnd() as i64) }, 4096);
        }
    } else {
        let i = Interface::from_name(what).unwrap();
        let mut ring = FilesDriver::new("x").ring(i, depth, 4096).unwrap();
        let file = ring
            .open_file(
                path,
                OpenMode { access: Access::Read, direct, sync: SyncMode::Off, random: true },
            )
            .unwrap();
        if i == Interface::Psync {
            for _ in 0..n {
                assert!(matches!(
                    ring.submit(0, &Request::Read { file, offset: rnd(), len: 4096 }),
                    Some(Ok(4096))
                ));
            }
        } else {
            let mut free: Vec<usize> = (0..depth).collect();
            let (mut sent, mut done) = (0, 0);
            let mut replies = Vec::with_capacity(depth);
            while done < n {
                while sent < n
                    && let Some(slot) = free.pop()
                {
                    assert!(
                        ring.submit(slot, &Request::Read { file, offset: rnd(), len: 4096 })
                            .is_none()
                    );
                    sent += 1;
                }
                ring.reap(None, &mut replies);
                for (slot, reply) in replies.drain(..) {
                    assert_eq!(reply, Ok(4096));
                    free.push(slot);
                    done += 1;
                }
            }
        }
    }
    let e = t.elapsed().as_secs_f64();
    let end = cpu();
    let ns = |x: f64| x * 1e9 / n as f64;
    println!(
        "{what:9} {n} ops {:.0} ops/s  user {:.0} ns  sys {:.0} ns  wall {:.0} ns",
        n as f64 / e,
        ns(end.0 - begin.0),
        ns(end.1 - begin.1),
        ns(e)
    );
}
