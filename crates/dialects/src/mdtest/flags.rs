//! Every flag of mdtest and what becomes of it here.

use super::written::{Written, number, number_32, number_from_1};
use crate::command_line::Kind::{Number, Switch, Text};
use crate::command_line::{Flag, Set, noted, on, refused, set, taken};

pub(crate) type Row = Flag<Set<Written>>;

/// What is written to a file, or read of it, at once.
const FILE_BYTES_MAX: u64 = 1 << 30;
const OTHER_MODULE: &str = "files are made and read by POSIX calls only";
const OWN_CONTENT: &str =
    "every file gets content of its own, which neither compresses nor repeats";
const NO_COMMANDS: &str = "no commands are run; run it yourself before or after";
const DURATION: &str =
    "later steps must know how many entries each rank made; say their number with `-n`";

/// All flags: of mdtest, then of the modules of its help.
pub(crate) static FLAGS: &[Row] = &[
    taken("C", Switch, "", |to, _| on(&mut to.create)),
    taken("T", Switch, "", |to, _| on(&mut to.stat)),
    taken("E", Switch, "", |to, _| on(&mut to.read)),
    taken("r", Switch, "", |to, _| on(&mut to.remove)),
    taken("U", Switch, "", |to, _| on(&mut to.rename)),
    taken("D", Switch, "", |to, _| on(&mut to.directories_only)),
    taken("F", Switch, "", |to, _| on(&mut to.files_only)),
    taken("L", Switch, "", |to, _| on(&mut to.leaves_only)),
    taken("P", Switch, "", |to, _| on(&mut to.times_too)),
    taken("R", Switch, "", |to, _| on(&mut to.shuffled)),
    taken("S", Switch, "", |to, _| on(&mut to.shared_names)),
    taken("u", Switch, "", |to, _| on(&mut to.tree_per_rank)),
    taken("v", Switch, "", |to, _| {
        to.verbosity += 1;
        Ok(())
    }),
    taken("y", Switch, "", |to, _| on(&mut to.fsync)),
    taken("Z", Switch, "", |to, _| on(&mut to.times_only)),
    taken("X", Switch, "", |to: &mut Written, _| on(&mut to.verify_read)).or(&["verify-read"]),
    taken("warningAsErrors", Switch, "", |to, _| on(&mut to.end_on_failure)),
    taken("showRankStatistics", Switch, "", |to, _| on(&mut to.rank_statistics)),
    taken("a", Text, "", |_, text| match text.eq_ignore_ascii_case("posix") {
        true => Ok(()),
        false => Err(OTHER_MODULE.to_owned()),
    }),
    taken("b", Text, "1", |to, text| set(&mut to.branching, number_32(text))),
    taken("d", Text, "./out", |to, text| set(&mut to.directories, directories(text))),
    taken("B", Text, "", |_, text| match text {
        "0" => Ok(()),
        _ => Err("a step begins when all ranks have ended the one before".to_owned()),
    }),
    taken("e", Text, "", |to, text| set(&mut to.read_bytes, file_bytes(text))),
    taken("f", Text, "", |to, text| set(&mut to.ranks_first, number_from_1(text).map(Some))),
    taken("i", Text, "1", |to, text| set(&mut to.iterations, number_from_1(text))),
    taken("I", Text, "", |to, text| {
        to.entries_per_directory = count(to, 'I', text)?;
        Ok(())
    }),
    taken("l", Text, "", |to, text| set(&mut to.ranks_last, number_32(text))),
    taken("n", Text, "", |to, text| {
        to.entries = count(to, 'n', text)?;
        Ok(())
    }),
    taken("N", Text, "", |to, text| set(&mut to.shift, number_32(text))),
    taken("p", Text, "", |to, text| set(&mut to.pause_s, number_32(text).map(u64::from))),
    taken("s", Text, "", |to, text| set(&mut to.ranks_step, number_from_1(text).map(Some))),
    taken("V", Text, "", |to, text| set(&mut to.verbosity, number(text))),
    taken("w", Text, "", |to, text| set(&mut to.write_bytes, file_bytes(text))),
    taken("z", Text, "", |to, text| set(&mut to.depth, number_32(text))),
    taken("random-seed", Text, "", |to, text| set(&mut to.seed, number(text).map(Some))),
    noted("t", Switch, "a rank's directory is opened before its first operation is timed"),
    noted("G", Text, OWN_CONTENT),
    noted("dataPacketType", Text, OWN_CONTENT),
    noted("print-all-procs", Switch, "the record of the run holds every rank's operations"),
    noted("saveRankPerformanceDetails", Text, "the record of the run holds every operation"),
    noted("savePerOpDataCSV", Text, "the record of the run holds every operation"),
    refused("c", Switch, "a rank makes and removes its own entries; leave it out"),
    refused("k", Switch, "files are made by opening them; leave it out"),
    refused("g", Switch, "the layout of directories is not steered; set it before"),
    refused("W", Text, DURATION),
    refused("x", Text, "a run does not go on with the entries of another; see `-C`"),
    refused("Y", Switch, "the whole machine is not synced; `-y` syncs each file"),
    refused(
        "verify-write",
        Switch,
        "files are checked when they are read: `-E` with `-e`, or `-X`",
    ),
    refused("run-cmd-before-phase", Text, NO_COMMANDS),
    refused("run-cmd-after-phase", Text, NO_COMMANDS),
    refused(
        "posix.odirect",
        Switch,
        "files pass through the page cache; `-y` puts them on the medium",
    ),
    refused("posix.rangelocks", Switch, "files are not locked; leave it out"),
    refused("dummy.delay-only-rank0", Switch, OTHER_MODULE),
    refused("dummy.delay-create", Text, OTHER_MODULE),
    refused("dummy.delay-close", Text, OTHER_MODULE),
    refused("dummy.delay-sync", Text, OTHER_MODULE),
    refused("dummy.delay-xfer", Text, OTHER_MODULE),
    refused("mpiio.showHints", Switch, OTHER_MODULE),
    refused("mpiio.preallocate", Switch, OTHER_MODULE),
    refused("mpiio.useStridedDatatype", Switch, OTHER_MODULE),
    refused("mpiio.useFileView", Switch, OTHER_MODULE),
    refused("mpiio.hintsFileName", Text, OTHER_MODULE),
    refused("mmap.madv_dont_need", Switch, OTHER_MODULE),
    refused("mmap.madv_pattern", Switch, OTHER_MODULE),
];

/// The launchers' flag for the number of ranks, which may also stand behind mdtest's name.
pub(super) const RANKS: &str = "np";
const PLACED: &str = "ranks are threads, which the kernel places";

/// What launchers can be told: the number of ranks, and what makes no difference for threads of
/// one program.
pub(crate) static OF_LAUNCHERS: &[Row] = &[
    taken(RANKS, Number, "", |to: &mut Written, text| set(&mut to.ranks, number_from_1(text)))
        .or(&["n", "c"]),
    noted("allow-run-as-root", Switch, PLACED),
    noted("oversubscribe", Switch, PLACED),
    noted("use-hwthread-cpus", Switch, PLACED),
    noted("map-by", Text, PLACED),
    noted("bind-to", Text, PLACED),
    noted("rank-by", Text, PLACED),
];

/// Reads how many entries; a number with a suffix may not be what it looks like.
fn count(to: &mut Written, flag: char, text: &str) -> Result<u64, String> {
    let number = number(text)?;
    if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        to.note(format!("-{flag} {text}"), format!("is {number}, as in mdtest"));
    }
    Ok(number)
}

fn file_bytes(text: &str) -> Result<u32, String> {
    match number(text)? {
        bytes if bytes <= FILE_BYTES_MAX => Ok(bytes as u32),
        _ => Err(format!("{FILE_BYTES_MAX} bytes are the most")),
    }
}

fn directories(text: &str) -> Result<Vec<String>, String> {
    let directories: Vec<String> = text.split('@').map(str::to_owned).collect();
    if directories.iter().any(String::is_empty) {
        return Err("a directory has no name".to_owned());
    }
    Ok(directories)
}
