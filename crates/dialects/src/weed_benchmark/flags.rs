//! The flags of `weed benchmark`, and those of weed itself that stand before that word.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::{Benchmark, Note, ReadFile, SIZE_MORE_MAX, Scope};
use crate::command_line::Kind::{self, Number, Switch, Text};
use crate::command_line::{
    Flag, Given, Grammar, LineError, Set, Word, Words, fill, find, go_number, go_switch, noted,
    read_go, set, taken, text,
};
use crate::spelling::did_you_mean;

/// The word behind which the flags of the benchmark stand.
const COMMAND: &str = "benchmark";
/// What messages call the program.
const PROGRAM: &str = "weed benchmark";
/// The most files of a run.
const FILES: RangeInclusive<u64> = 1..=1 << 36;
/// A number beyond this is a slip of the pen; how many workers there may be says the workload.
const WORKERS: RangeInclusive<u64> = 1..=i32::MAX as u64;
/// The largest file that one upload writes.
const SIZE_BYTES_MAX: u64 = 5 << 30;
const NOTHING_LOGGED: &str = "nothing is logged by weed's means; the record has each operation";

type Values = BTreeMap<&'static str, String>;

/// What is asked for, before it is known whether anything is left to be done.
#[derive(Default)]
pub(crate) struct Draft {
    asked: Benchmark,
    only_reads: bool,
    only_writes: bool,
}

pub(crate) type Row = Flag<Set<Draft>>;

const fn flag(name: &'static str, kind: Kind, default: &'static str, to: Set<Draft>) -> Row {
    taken(name, kind, default, to)
}

/// Every flag of the benchmark: those of today, then those of before.
pub(crate) static FLAGS: [Row; 20] = [
    flag("c", Number, "16", |to, v| set(&mut to.asked.concurrency, go_number(v, WORKERS)))
        .says("workers of each stage"),
    flag("collection", Text, COMMAND, |to, v| text(&mut to.asked.collection, v))
        .says("the collection that is written to"),
    flag("cpuprofile", Text, "", |to, v| {
        let what = "no profile of this program is written; its processor time is in the record";
        to.note("-cpuprofile", !v.is_empty(), what)
    })
    .says("taken, and writes nothing"),
    flag("debug", Switch, "", |to, v| {
        let what = "no line for each file; the record has each (`plimsoll export RUN`)";
        to.note("-debug", go_switch(v)?, what)
    })
    .says("taken, and changes nothing: the record has each file"),
    flag("deletePercent", Number, "0", |to, v| {
        set(&mut to.asked.delete_percent, go_number(v, 0..=100))
    })
    .says("how many percent of the files are removed again"),
    flag("disk", Text, "", |to, v| text(&mut to.asked.disk, v))
        .says("the type of disk: hdd, ssd or a tag"),
    flag("fsync", Switch, "", |to, v| set(&mut to.asked.fsync, go_switch(v)))
        .says("each file is on the disk before its upload is answered"),
    flag("list", Text, "", |to, v| match v {
        "" => Err("it is a path".to_owned()),
        path => set(&mut to.asked.list, Ok(Some(path.into()))),
    })
    .says("the list of file ids (default benchmark_list.txt among temporary files)"),
    flag("master", Text, "localhost:9333", |to, v| set(&mut to.asked.masters, addresses(v)))
        .says("masters, host:port, with commas between them"),
    flag("maxCpu", Number, "0", |to, v| {
        let cpus = go_number(v, 0..=u32::MAX.into())?;
        set(&mut to.asked.cpus_max, Ok(Some(cpus).filter(|cpus| *cpus > 0)))
    })
    .says("threads at most; 0: all"),
    flag("n", Number, "1048576", |to, v| set(&mut to.asked.files, go_number(v, FILES)))
        .says("files in all"),
    flag("options", Text, "", |_, _| Ok(())).says("a file with a line option=value for each flag"),
    flag("readOnly", Switch, "", |to, v| {
        to.only_reads |= go_switch(v)?;
        Ok(())
    })
    .says("only read the files of the list"),
    flag("readSequentially", Switch, "", |to, v| set(&mut to.asked.is_sequential, go_switch(v)))
        .says("read each file of the list once, in order"),
    flag("replication", Text, "000", |to, v| set(&mut to.asked.replication, replication(v)))
        .says("copies in other data centers, on other racks, on other servers"),
    flag("size", Number, "1024", |to, v| {
        set(&mut to.asked.size_bytes, go_number(v, 0..=SIZE_BYTES_MAX - SIZE_MORE_MAX))
    })
    .says("smallest size of a file in bytes; each has up to 63 more"),
    flag("writeOnly", Switch, "", |to, v| {
        to.only_writes |= go_switch(v)?;
        Ok(())
    })
    .says("only write"),
    flag("read", Switch, "true", |to, v| {
        to.only_writes |= !go_switch(v)?;
        Ok(())
    })
    .says("older: -read=false is -writeOnly"),
    flag("server", Text, "", |to, v| set(&mut to.asked.masters, addresses(v)))
        .says("older name of -master"),
    flag("write", Switch, "true", |to, v| {
        to.only_reads |= !go_switch(v)?;
        Ok(())
    })
    .says("older: -write=false is -readOnly"),
];

/// The flags of weed itself, which stand before the word `benchmark`.
static OF_WEED: [Row; 14] = [
    noted("alsologtostderr", Switch, NOTHING_LOGGED),
    noted(
        "config_dir",
        Text,
        "--security names a security.toml that is not in weed's usual places",
    ),
    noted("log_backtrace_at", Text, NOTHING_LOGGED),
    noted("log_compress", Switch, NOTHING_LOGGED),
    noted("log_json", Switch, NOTHING_LOGGED),
    noted("log_max_files", Number, NOTHING_LOGGED),
    noted("log_max_size_mb", Number, NOTHING_LOGGED),
    noted("log_rotate_hours", Number, NOTHING_LOGGED),
    noted("logdir", Text, NOTHING_LOGGED),
    noted("logtostderr", Switch, NOTHING_LOGGED),
    noted("options", Text, "before the word benchmark it changes nothing of it, there either"),
    noted("stderrthreshold", Text, NOTHING_LOGGED),
    noted("v", Text, NOTHING_LOGGED),
    noted("vmodule", Text, NOTHING_LOGGED),
];

/// What people write for a flag.
const OTHERS: [(&str, &str); 10] = [
    ("concurrency", "-c"),
    ("concurrent", "-c"),
    ("threads", "-c"),
    ("count", "-n"),
    ("files", "-n"),
    ("number", "-n"),
    ("host", "-master"),
    ("masters", "-master"),
    ("idList", "-list"),
    ("sequentialRead", "-readSequentially"),
];

pub(super) fn read(args: &[String], read_file: ReadFile<'_>) -> Result<Benchmark, LineError> {
    let mut notes = Vec::new();
    let (args, is_behind_command) = split(args, &mut notes)?;
    let mut values =
        read_go(args, PROGRAM, (&FLAGS, &OF_WEED), |given| match find(&OF_WEED, given.name) {
            Some(_) if is_behind_command => Err(LineError::Form(format!(
                "{} is a flag of weed itself, which stands before the word benchmark",
                given.written()
            ))),
            Some(flag) => {
                notes.push(of_weed_note(flag));
                Ok(())
            }
            None => Err(unknown(given)),
        })?;
    if let Some(path) = values.get("options").cloned() {
        let refused = |why| LineError::value(format!("`-options={path}`"), why);
        let text = read_file(&path).map_err(refused)?;
        notes.extend(read_options(&text, &mut values).map_err(refused)?);
    }
    // The name of before is another name of the same flag.
    if values.contains_key("master") {
        values.remove("server");
    }
    let mut draft = Draft::default();
    draft.asked.passed_over = notes;
    fill(&FLAGS, &values, &mut draft)?;
    draft.finish()
}

/// Returns the words of the benchmark, and whether the word `benchmark` stands before them.
fn split<'a>(args: &'a [String], notes: &mut Vec<Note>) -> Result<(&'a [String], bool), LineError> {
    let args = match args {
        [first, rest @ ..] if first == "weed" => rest,
        args => args,
    };
    let kind_of = |name: &str| find(&OF_WEED, name).map(|flag| flag.kind);
    let mut words = Words::new(Grammar::Go, args, &kind_of);
    let mut of_weed = Vec::new();
    while let Some(word) = words.next() {
        match word {
            Word::Other(COMMAND) => {
                notes.extend(of_weed);
                return Ok((words.rest(), true));
            }
            Word::Other(word) if words.rest().len() + 1 == args.len() && !word.starts_with('-') => {
                return Err(LineError::form(format!("`weed {word}` is not taken; `{PROGRAM}` is")));
            }
            Word::Flag(Given { name, .. }) if kind_of(name).is_some() => {
                of_weed.extend(find(&OF_WEED, name).map(of_weed_note));
            }
            _ => break,
        }
    }
    Ok((args, false))
}

fn of_weed_note(flag: &Row) -> Note {
    Note::new(format!("-{}", flag.name), flag.says)
}

fn unknown(given: &Given<'_>) -> LineError {
    let own = FLAGS.iter().map(|flag| (flag.name, format!("-{}", flag.name)));
    let others = OTHERS.iter().map(|(other, flag)| (*other, (*flag).to_owned()));
    let hint = did_you_mean(given.name, own.chain(others));
    LineError::unknown(given.quoted(), &format!("no flag of {PROGRAM}"), &hint)
}

/// Reads a file of options: `option=value` or `option value` on each line, a dash before it or not.
/// What the command line says goes before it, and of two lines the first. Returns what is said of
/// lines that are passed over.
fn read_options(text: &str, values: &mut Values) -> Result<Option<Note>, String> {
    let mut unknown = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix('-').unwrap_or(line);
        let (name, given) = match line.split_once(['=', ' ']) {
            Some((name, given)) => (name, Some(given)),
            None => (line, None),
        };
        let Some(flag) = find(&FLAGS, name) else {
            unknown.insert(name.chars().take(40).collect::<String>());
            continue;
        };
        let value = match given {
            Some(given) => given,
            None if flag.kind == Switch => "true",
            None => return Err(format!("`{name}` has no value behind it")),
        };
        values.entry(flag.name).or_insert_with(|| value.to_owned());
    }
    let names: Vec<String> = unknown.into_iter().collect();
    let text = format!("no flags of {PROGRAM}, passed over as there: {}", names.join(", "));
    Ok((!names.is_empty()).then(|| Note::new("-options", text)))
}

impl Draft {
    fn note(&mut self, flag: &str, is_on: bool, what: &str) -> Result<(), String> {
        self.asked.passed_over.extend(is_on.then(|| Note::new(flag, what)));
        Ok(())
    }

    fn finish(self) -> Result<Benchmark, LineError> {
        let scope = match (self.only_writes, self.only_reads) {
            (true, true) => {
                return Err(LineError::form("-readOnly and -writeOnly are mutually exclusive"));
            }
            (true, false) => Scope::Write,
            (false, true) => Scope::Read,
            (false, false) => Scope::Both,
        };
        Ok(Benchmark { scope, ..self.asked })
    }
}

fn replication(text: &str) -> Result<String, String> {
    let is_three = text.len() == 3 && text.bytes().all(|digit| digit.is_ascii_digit());
    match is_three || text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("it is three digits: copies in other data centers, on other racks and on \
                      other servers, such as 001"
            .to_owned()),
    }
}

/// Reads a list of masters.
fn addresses(text: &str) -> Result<Vec<String>, String> {
    let address = |address: &str| {
        if address.starts_with("dnssrv+") {
            return Err(
                "names of DNS services (dnssrv+) are not looked up; name the masters, such \
                        as m1:9333,m2:9333"
                    .to_owned(),
            );
        }
        let port = address.rsplit_once(':').map(|(host, port)| (!host.is_empty(), port));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_port = |port: &str| port.splitn(2, '.').all(is_number);
        match port {
            Some((true, port)) if is_port(port) => Ok(address.to_owned()),
            _ => Err("each is a host with its port, such as localhost:9333, or with that of gRPC \
                      behind it, localhost:9333.19333"
                .to_owned()),
        }
    };
    text.split(',').map(|each| address(each.trim())).collect()
}
