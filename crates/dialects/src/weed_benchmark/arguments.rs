//! The flags of `weed benchmark`, as Go programs read them: `-x v`, `-x=v`, each also with two
//! dashes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Benchmark, Note, ReadFile, SIZE_MORE_MAX, Scope, WeedBenchmarkError};
use crate::spelling;

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// As it is written, with its dash.
    pub written: &'static str,
    /// Whether it stands by itself.
    pub is_switch: bool,
    /// What its help says; nothing of weed's own flags.
    says: &'static str,
}

impl Flag {
    fn name(self) -> &'static str {
        &self.written[1..]
    }
}

const fn text(written: &'static str, says: &'static str) -> Flag {
    Flag { written, is_switch: false, says }
}

const fn switch(written: &'static str, says: &'static str) -> Flag {
    Flag { written, is_switch: true, says }
}

fn find(flags: &'static [Flag], name: &str) -> Option<&'static Flag> {
    flags.iter().find(|flag| flag.name() == name)
}

/// Every flag of the benchmark: those of today, then those of before.
pub const FLAGS: [Flag; 20] = [
    text("-c", "workers of each stage (default 16)"),
    text("-collection", "the collection that is written to (default benchmark)"),
    text("-cpuprofile", "taken, and writes nothing"),
    switch("-debug", "taken, and changes nothing: the record has each file"),
    text("-deletePercent", "how many percent of the files are removed again (default 0)"),
    text("-disk", "the type of disk: hdd, ssd or a tag"),
    switch("-fsync", "each file is on the disk before its upload is answered"),
    text("-list", "the list of file ids (default benchmark_list.txt among temporary files)"),
    text("-master", "masters, host:port, with commas between them (default localhost:9333)"),
    text("-maxCpu", "threads at most (default 0: all)"),
    text("-n", "files in all (default 1048576)"),
    text("-options", "a file with a line option=value for each flag"),
    switch("-readOnly", "only read the files of the list"),
    switch("-readSequentially", "read each file of the list once, in order"),
    text(
        "-replication",
        "copies in other data centers, on other racks, on other servers (default 000)",
    ),
    text("-size", "smallest size of a file in bytes; each has up to 63 more (default 1024)"),
    switch("-writeOnly", "only write"),
    switch("-read", "older: -read=false is -writeOnly (default true)"),
    text("-server", "older name of -master"),
    switch("-write", "older: -write=false is -readOnly (default true)"),
];

/// The flags of weed itself, which stand before the word `benchmark`.
const OF_WEED: [Flag; 14] = [
    switch("-alsologtostderr", ""),
    text("-config_dir", ""),
    text("-log_backtrace_at", ""),
    switch("-log_compress", ""),
    switch("-log_json", ""),
    text("-log_max_files", ""),
    text("-log_max_size_mb", ""),
    text("-log_rotate_hours", ""),
    text("-logdir", ""),
    switch("-logtostderr", ""),
    text("-options", ""),
    text("-stderrthreshold", ""),
    text("-v", ""),
    text("-vmodule", ""),
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

/// The word behind which the flags of the benchmark stand.
const COMMAND: &str = "benchmark";
/// The most files of a run.
const FILES_MAX: u64 = 1 << 36;
/// A number beyond this is a slip of the pen; how many workers there may be says the workload.
const WORKERS_MAX: u64 = i32::MAX as u64;
/// The largest file that one upload writes.
const SIZE_BYTES_MAX: u64 = 5 << 30;

/// Values as they are written, before they are read.
#[derive(Default)]
struct Written {
    values: BTreeMap<&'static str, String>,
    passed_over: Vec<Note>,
}

pub(super) fn read(
    args: &[String],
    read_file: ReadFile<'_>,
) -> Result<Benchmark, WeedBenchmarkError> {
    let mut written = Written::default();
    let (flags, is_behind_command) = split(args, &mut written)?;
    read_flags(flags, is_behind_command, &mut written)?;
    if let Some(path) = written.values.get("options").cloned() {
        let text = read_file(&path);
        let refused = |why| WeedBenchmarkError::Options { path: path.clone(), why };
        read_options(&text.map_err(&refused)?, &mut written).map_err(refused)?;
    }
    written.benchmark()
}

/// Returns the words of the benchmark, and whether the word `benchmark` stands before them.
fn split<'a>(
    args: &'a [String],
    written: &mut Written,
) -> Result<(&'a [String], bool), WeedBenchmarkError> {
    let args = match args {
        [first, rest @ ..] if first == "weed" => rest,
        args => args,
    };
    let mut at = 0;
    let mut of_weed = Vec::new();
    while let Some(word) = args.get(at) {
        if word == COMMAND {
            written.passed_over.extend(of_weed);
            return Ok((&args[at + 1..], true));
        }
        let Some((name, given)) = name_of(word) else {
            return match at {
                0 => Err(WeedBenchmarkError::OtherCommand(word.clone())),
                _ => Ok((args, false)),
            };
        };
        let Some(flag) = find(&OF_WEED, name) else { break };
        of_weed.push(of_weed_note(name));
        at += if flag.is_switch || given.is_some() { 1 } else { 2 };
    }
    Ok((args, false))
}

fn of_weed_note(name: &str) -> Note {
    let text = match name {
        "config_dir" => "--security names a security.toml that is not in weed's usual places",
        "options" => "before the word benchmark it changes nothing of it, there either",
        _ => "nothing is logged by weed's means; the record has each operation",
    };
    Note::new(format!("-{name}"), text)
}

/// Returns name and value of a flag; `None` for a word that is none.
fn name_of(word: &str) -> Option<(&str, Option<&str>)> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let (name, given) = match name.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (name, None),
    };
    (!name.is_empty() && !name.starts_with('-')).then_some((name, given))
}

/// Reads the flags of a command line; the last of two wins.
fn read_flags(
    args: &[String],
    is_behind_command: bool,
    written: &mut Written,
) -> Result<(), WeedBenchmarkError> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some((name, given)) = name_of(word) else {
            return Err(WeedBenchmarkError::Form(format!(
                "`{word}` is no flag; weed benchmark would pass over it and all that follows, so \
                 leave it out"
            )));
        };
        let of_weed = find(&OF_WEED, name);
        let known = find(&FLAGS, name);
        let Some(flag) = known.or(of_weed) else {
            return Err(match name {
                "h" | "help" => WeedBenchmarkError::Help,
                _ => unknown(word, name),
            });
        };
        if known.is_none() && is_behind_command {
            return Err(WeedBenchmarkError::BehindCommand(word.clone()));
        }
        let value = match given {
            Some(given) => given.to_owned(),
            None if flag.is_switch => "true".to_owned(),
            None => words.next().cloned().ok_or_else(|| {
                WeedBenchmarkError::Form(format!("`{word}` has no value behind it"))
            })?,
        };
        match known {
            Some(flag) => {
                written.values.insert(flag.name(), value);
            }
            None => written.passed_over.push(of_weed_note(name)),
        }
    }
    Ok(())
}

/// Returns help in the layout of Go's flags.
pub(super) fn help() -> String {
    let flag = |flag: &Flag| format!("  {}\n    \t{}\n", flag.written, flag.says);
    let flags: String = FLAGS.iter().map(flag).collect();
    format!("Usage: weed benchmark -master=localhost:9333 -c=16 -n=1048576\n{flags}")
}

fn unknown(word: &str, name: &str) -> WeedBenchmarkError {
    let own = FLAGS.iter().map(|flag| (flag.name(), flag.written));
    let known = || own.clone().chain(OTHERS);
    let same = known().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let alike = || {
        let nearest = spelling::nearest(name, known().map(|(known, _)| known))?;
        known().find(|(known, _)| *known == nearest)
    };
    let nearest = same.or_else(alike).map(|(_, flag)| flag);
    let flag = word.split_once('=').map_or(word, |(flag, _)| flag).to_owned();
    WeedBenchmarkError::Unknown { flag, nearest }
}

/// Reads a file of options: `option=value` or `option value` on each line, a dash before it or not.
/// What the command line says goes before it, and of two lines the first.
fn read_options(text: &str, written: &mut Written) -> Result<(), String> {
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
            None if flag.is_switch => "true",
            None => return Err(format!("`{name}` has no value behind it")),
        };
        written.values.entry(flag.name()).or_insert_with(|| value.to_owned());
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().collect();
        let text =
            format!("no flags of weed benchmark, passed over as there: {}", names.join(", "));
        written.passed_over.push(Note::new("-options", text));
    }
    Ok(())
}

impl Written {
    fn benchmark(mut self) -> Result<Benchmark, WeedBenchmarkError> {
        let scope = self.scope()?;
        self.note_what_changes_nothing()?;
        // The name of before is another name of the same flag.
        let masters = self.values.remove("server");
        let (flag, masters) = match self.values.remove("master") {
            Some(masters) => ("master", masters),
            None if masters.is_some() => ("server", masters.unwrap_or_default()),
            None => ("master", "localhost:9333".to_owned()),
        };
        let cpus_max = self.number("maxCpu", 0, (0, u32::MAX.into()))? as u32;
        Ok(Benchmark {
            masters: addresses(&masters).map_err(|why| value(flag, &masters, why))?,
            concurrency: self.number("c", 16, (1, WORKERS_MAX))? as u32,
            files: self.number("n", 1_048_576, (1, FILES_MAX))?,
            size_bytes: self.number("size", 1_024, (0, SIZE_BYTES_MAX - SIZE_MORE_MAX))?,
            list: self.list()?,
            scope,
            is_sequential: self.switch("readSequentially", false)?,
            delete_percent: self.number("deletePercent", 0, (0, 100))? as u32,
            collection: self.values.remove("collection").unwrap_or_else(|| COMMAND.to_owned()),
            replication: self.replication()?,
            disk: self.values.remove("disk").unwrap_or_default(),
            fsync: self.switch("fsync", false)?,
            cpus_max: (cpus_max > 0).then_some(cpus_max),
            passed_over: self.passed_over,
        })
    }

    fn scope(&self) -> Result<Scope, WeedBenchmarkError> {
        let only_reads = self.switch("readOnly", false)? || !self.switch("write", true)?;
        let only_writes = self.switch("writeOnly", false)? || !self.switch("read", true)?;
        match (only_writes, only_reads) {
            (true, true) => Err(WeedBenchmarkError::NothingLeft),
            (true, false) => Ok(Scope::Write),
            (false, true) => Ok(Scope::Read),
            (false, false) => Ok(Scope::Both),
        }
    }

    fn note_what_changes_nothing(&mut self) -> Result<(), WeedBenchmarkError> {
        if self.switch("debug", false)? {
            let text = "no line for each file; the record has each (`plimsoll export RUN`)";
            self.passed_over.push(Note::new("-debug", text));
        }
        if self.values.get("cpuprofile").is_some_and(|path| !path.is_empty()) {
            let text = "no profile of this program is written; its processor time is in the record";
            self.passed_over.push(Note::new("-cpuprofile", text));
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Option<String>, WeedBenchmarkError> {
        match self.values.remove("list") {
            Some(path) if path.is_empty() => Err(value("list", "", "it is a path".to_owned())),
            path => Ok(path),
        }
    }

    fn replication(&mut self) -> Result<String, WeedBenchmarkError> {
        let text = self.values.remove("replication").unwrap_or_else(|| "000".to_owned());
        let is_three = text.len() == 3 && text.bytes().all(|digit| digit.is_ascii_digit());
        match is_three || text.is_empty() {
            true => Ok(text),
            false => {
                let why = "it is three digits: copies in other data centers, on other racks and on \
                           other servers, such as 001";
                Err(value("replication", &text, why.to_owned()))
            }
        }
    }

    /// Reads a switch as Go does.
    fn switch(&self, flag: &'static str, default: bool) -> Result<bool, WeedBenchmarkError> {
        match self.values.get(flag).map(String::as_str) {
            None => Ok(default),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some(text) => Err(value(flag, text, "it is true or false".to_owned())),
        }
    }

    fn number(
        &self,
        flag: &'static str,
        default: u64,
        (min, max): (u64, u64),
    ) -> Result<u64, WeedBenchmarkError> {
        let Some(text) = self.values.get(flag) else { return Ok(default) };
        number(text, min, max).map_err(|why| value(flag, text, why))
    }
}

fn value(flag: &'static str, value: &str, why: String) -> WeedBenchmarkError {
    WeedBenchmarkError::Value { flag, value: value.chars().take(80).collect(), why }
}

/// Reads a number. Go reads `010` as 8 and `0x10` as 16, which hardly anybody means.
fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is a whole number in decimal digits".to_owned());
    }
    if text.len() > 1 && text.starts_with('0') {
        let why = "weed reads a number that begins with 0 as octal; write it without";
        return Err(why.to_owned());
    }
    match text.parse::<u64>() {
        Ok(number) if number < min => Err(format!("it is {min} at least")),
        Ok(number) if number <= max => Ok(number),
        _ => Err(format!("it is {max} at most")),
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
