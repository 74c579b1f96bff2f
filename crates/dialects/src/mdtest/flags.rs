//! Every flag of mdtest and what becomes of it here.

use super::written::{Written, number, number_32, number_from_1};

/// A flag of mdtest.
pub(super) struct Flag {
    pub(super) short: Option<char>,
    pub(super) long: Option<&'static str>,
    pub(super) deal: Deal,
}

/// What becomes of a flag.
pub(super) enum Deal {
    /// It is followed and has no value.
    Switch(fn(&mut Written)),
    /// It is followed and has a value, which is taken or refused with a reason.
    Value(fn(&mut Written, &str) -> Result<(), String>),
    /// It changes no load, and what differs is said.
    Note { has_value: bool, what: &'static str },
    /// It is refused.
    Refuse { has_value: bool, why: &'static str },
}

impl Flag {
    /// Returns the flag as it is written: `-n`, `--random-seed`.
    pub(super) fn name(&self) -> String {
        match (self.long, self.short) {
            (_, Some(short)) => format!("-{short}"),
            (Some(long), None) => format!("--{long}"),
            (None, None) => unreachable!("every flag has a name"),
        }
    }

    /// Tells whether a value belongs to it.
    pub(super) fn has_value(&self) -> bool {
        match self.deal {
            Deal::Switch(_) => false,
            Deal::Value(_) => true,
            Deal::Note { has_value, .. } | Deal::Refuse { has_value, .. } => has_value,
        }
    }
}

const fn switch(short: char, set: fn(&mut Written)) -> Flag {
    Flag { short: Some(short), long: None, deal: Deal::Switch(set) }
}

const fn value(short: char, set: fn(&mut Written, &str) -> Result<(), String>) -> Flag {
    Flag { short: Some(short), long: None, deal: Deal::Value(set) }
}

const fn long(name: &'static str, deal: Deal) -> Flag {
    Flag { short: None, long: Some(name), deal }
}

const fn note(what: &'static str) -> Deal {
    Deal::Note { has_value: false, what }
}

const fn note_value(what: &'static str) -> Deal {
    Deal::Note { has_value: true, what }
}

const fn refuse(why: &'static str) -> Deal {
    Deal::Refuse { has_value: false, why }
}

const fn refuse_value(why: &'static str) -> Deal {
    Deal::Refuse { has_value: true, why }
}

const fn with_short(short: char, deal: Deal) -> Flag {
    Flag { short: Some(short), long: None, deal }
}

/// What is written to a file, or read of it, at once.
const FILE_BYTES_MAX: u64 = 1 << 30;
const OTHER_MODULE: &str = "files are made and read by POSIX calls only";
const OWN_CONTENT: &str =
    "every file gets content of its own, which neither compresses nor repeats";
const NO_COMMANDS: &str = "no commands are run; run it yourself before or after";
const DURATION: &str =
    "later steps must know how many entries each rank made; say their number with `-n`";

/// All flags: of mdtest, then of the modules of its help.
pub(super) static FLAGS: &[Flag] = &[
    switch('C', |to| to.create = true),
    switch('T', |to| to.stat = true),
    switch('E', |to| to.read = true),
    switch('r', |to| to.remove = true),
    switch('U', |to| to.rename = true),
    switch('D', |to| to.directories_only = true),
    switch('F', |to| to.files_only = true),
    switch('L', |to| to.leaves_only = true),
    switch('P', |to| to.times_too = true),
    switch('R', |to| to.shuffled = true),
    switch('S', |to| to.shared_names = true),
    switch('u', |to| to.tree_per_rank = true),
    switch('v', |to| to.verbosity += 1),
    switch('y', |to| to.fsync = true),
    switch('Z', |to| to.times_only = true),
    Flag {
        short: Some('X'),
        long: Some("verify-read"),
        deal: Deal::Switch(|to| to.verify_read = true),
    },
    long("warningAsErrors", Deal::Switch(|to| to.end_on_failure = true)),
    long("showRankStatistics", Deal::Switch(|to| to.rank_statistics = true)),
    value('a', |_, text| match text.eq_ignore_ascii_case("posix") {
        true => Ok(()),
        false => Err(OTHER_MODULE.to_owned()),
    }),
    value('b', |to, text| number_32(text).map(|number| to.branching = number)),
    value('d', |to, text| directories(text).map(|directories| to.directories = directories)),
    value('B', |_, text| match text {
        "0" => Ok(()),
        _ => Err("a step begins when all ranks have ended the one before".to_owned()),
    }),
    value('e', |to, text| file_bytes(text).map(|number| to.read_bytes = number)),
    value('f', |to, text| number_from_1(text).map(|number| to.ranks_first = Some(number))),
    value('i', |to, text| number_from_1(text).map(|number| to.iterations = number)),
    value('I', |to, text| count(to, 'I', text).map(|number| to.entries_per_directory = number)),
    value('l', |to, text| number_32(text).map(|number| to.ranks_last = number)),
    value('n', |to, text| count(to, 'n', text).map(|number| to.entries = number)),
    value('N', |to, text| number_32(text).map(|number| to.shift = number)),
    value('p', |to, text| number_32(text).map(|number| to.pause_s = number.into())),
    value('s', |to, text| number_from_1(text).map(|number| to.ranks_step = Some(number))),
    value('V', |to, text| number(text).map(|number| to.verbosity = number)),
    value('w', |to, text| file_bytes(text).map(|number| to.write_bytes = number)),
    value('z', |to, text| number_32(text).map(|number| to.depth = number)),
    long("random-seed", Deal::Value(|to, text| number(text).map(|seed| to.seed = Some(seed)))),
    with_short('t', note("a rank's directory is opened before its first operation is timed")),
    with_short('G', note_value(OWN_CONTENT)),
    long("dataPacketType", note_value(OWN_CONTENT)),
    long("print-all-procs", note("the record of the run holds every rank's operations")),
    long("saveRankPerformanceDetails", note_value("the record of the run holds every operation")),
    long("savePerOpDataCSV", note_value("the record of the run holds every operation")),
    with_short('c', refuse("a rank makes and removes its own entries; leave it out")),
    with_short('k', refuse("files are made by opening them; leave it out")),
    with_short('g', refuse("the layout of directories is not steered; set it before")),
    with_short('W', refuse_value(DURATION)),
    with_short('x', refuse_value("a run does not go on with the entries of another; see `-C`")),
    with_short('Y', refuse("the whole machine is not synced; `-y` syncs each file")),
    long("verify-write", refuse("files are checked when they are read: `-E` with `-e`, or `-X`")),
    long("run-cmd-before-phase", refuse_value(NO_COMMANDS)),
    long("run-cmd-after-phase", refuse_value(NO_COMMANDS)),
    long(
        "posix.odirect",
        refuse("files pass through the page cache; `-y` puts them on the medium"),
    ),
    long("posix.rangelocks", refuse("files are not locked; leave it out")),
    long("dummy.delay-only-rank0", refuse(OTHER_MODULE)),
    long("dummy.delay-create", refuse_value(OTHER_MODULE)),
    long("dummy.delay-close", refuse_value(OTHER_MODULE)),
    long("dummy.delay-sync", refuse_value(OTHER_MODULE)),
    long("dummy.delay-xfer", refuse_value(OTHER_MODULE)),
    long("mpiio.showHints", refuse(OTHER_MODULE)),
    long("mpiio.preallocate", refuse(OTHER_MODULE)),
    long("mpiio.useStridedDatatype", refuse(OTHER_MODULE)),
    long("mpiio.useFileView", refuse(OTHER_MODULE)),
    long("mpiio.hintsFileName", refuse_value(OTHER_MODULE)),
    long("mmap.madv_dont_need", refuse(OTHER_MODULE)),
    long("mmap.madv_pattern", refuse(OTHER_MODULE)),
];

/// Returns the flag of this letter.
pub(super) fn short(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(letter))
}

/// Returns the flag of this name.
pub(super) fn by_name(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.long == Some(name))
}

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
