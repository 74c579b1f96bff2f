//! Every flag of warp and what becomes of it here.

use super::HIDDEN;
use super::command::WarpBenchmark::{
    Append, Delete, Fanout, Get, List, Mixed, Multipart, MultipartPut, Put, Retention, Snowball,
    Stat, Versioned, Zip,
};
use super::command::{WarpBenchmark, WarpCommand, flags_help};
use super::error::{WarpArgError, did_you_mean};
use super::values::Kind::{
    self, Duration, Fraction, Number, Rate, Size, Sizes, Switch, Text, Texts,
};
use crate::spelling;

/// A flag of warp.
pub(super) struct Flag {
    /// Its name, without dashes; ours has the same.
    pub(super) name: &'static str,
    /// Other names.
    pub(super) short: Option<&'static str>,
    /// The variable of the environment that counts where the flag is not given.
    pub(super) variable: Option<&'static str>,
    /// What its value is.
    pub(super) kind: Kind,
    /// Which commands have it.
    pub(super) of: Of,
    /// What becomes of it in a benchmark.
    pub(super) deal: Deal,
    /// What differs, or why it is refused; empty where nothing does.
    pub(super) what: &'static str,
}

/// Which commands have a flag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// All; it may stand before the command too.
    All,
    /// All benchmarks.
    Benchmarks,
    /// All benchmarks, and `merge`.
    BenchmarksAndMerge,
    /// All benchmarks, `analyze`, `cmp` and `merge`.
    BenchmarksAndFiles,
    /// Only `run`.
    Run,
    /// These benchmarks.
    Only(&'static [WarpBenchmark]),
}

/// What becomes of a flag in a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deal {
    /// It is a flag of `plimsoll s3`; what differs is said.
    Take,
    /// It is a flag of the report.
    Report,
    /// It changes no load, and what differs is said.
    Note,
    /// It is refused.
    Refuse,
}

impl Flag {
    const fn short(mut self, name: &'static str) -> Self {
        self.short = Some(name);
        self
    }

    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    /// Tells whether a command has it.
    pub(super) fn is_of(&self, command: WarpCommand) -> bool {
        match (self.of, command) {
            (Of::All, _) => true,
            (Of::Run, command) => command == WarpCommand::Run,
            (Of::Only(benchmarks), WarpCommand::Benchmark(one)) => benchmarks.contains(&one),
            (Of::Only(_), _) => false,
            (_, WarpCommand::Benchmark(_)) => true,
            (Of::BenchmarksAndMerge, command) => command == WarpCommand::Merge,
            (Of::BenchmarksAndFiles, command) => command != WarpCommand::Run,
            (Of::Benchmarks, _) => false,
        }
    }

    /// Returns a value as it may be shown.
    pub(super) fn without_secret(&self, value: &str) -> String {
        match value.split_once('=') {
            // What a file of `run` is filled in with may be its keys.
            Some((name, _)) if self.name == "var" => format!("{name}={HIDDEN}"),
            None if self.name == "var" => HIDDEN.to_owned(),
            _ if is_secret(self.name) => HIDDEN.to_owned(),
            _ => value.to_owned(),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.short == Some(name)
    }
}

const fn flag(name: &'static str, kind: Kind, of: Of, deal: Deal, what: &'static str) -> Flag {
    Flag { name, short: None, variable: None, kind, of, deal, what }
}

/// A flag of all benchmarks that is ours too, and nothing differs.
const fn same(name: &'static str, kind: Kind) -> Flag {
    flag(name, kind, Of::Benchmarks, Deal::Take, "")
}

const fn taken(name: &'static str, kind: Kind, what: &'static str) -> Flag {
    flag(name, kind, Of::Benchmarks, Deal::Take, what)
}

const fn noted(name: &'static str, kind: Kind, what: &'static str) -> Flag {
    flag(name, kind, Of::Benchmarks, Deal::Note, what)
}

const fn refused(name: &'static str, kind: Kind, what: &'static str) -> Flag {
    flag(name, kind, Of::Benchmarks, Deal::Refuse, what)
}

/// A flag of some benchmarks that is ours too, and nothing differs.
const fn only(name: &'static str, kind: Kind, of: &'static [WarpBenchmark]) -> Flag {
    flag(name, kind, Of::Only(of), Deal::Take, "")
}

const fn report(name: &'static str, kind: Kind) -> Flag {
    let what = "as of `analyze`";
    flag(name, kind, Of::BenchmarksAndFiles, Deal::Report, what)
}

const NO_PROFILE: &str = "plimsoll does not profile itself; `perf record` does";
const NO_RDMA: &str = "no requests are made over RDMA; leave it out to go over TCP";
const NO_SERVER: &str = "`plimsoll report -o FILE.html RUN` writes a page that needs no server";
const NO_BUFFERS: &str = "buffers have sizes of our own";
const OF_AGENTS: &str = "agents of these names carry the run out (`--fleet`, `--agents`), each \
                         with as much as one client of warp's";
const OF_CLIENTS: &str = "warp sets it itself, for its clients";
const OWN_PREFIX: &str = "the run's own prefix, `plimsoll/<run>/`, comes below it";
const NEVER_EMPTIED: &str =
    "nothing that was there is ever removed; what the run itself wrote stays, too";

/// Those whose value is shown to nobody.
const SECRETS: [&str; 5] =
    ["access-key", "secret-key", "session-token", "sts-web-token", "influxdb"];

/// All flags, in the order of the document's table.
pub(super) static FLAGS: &[Flag] = &[
    // Of all commands.
    flag("quiet", Switch, Of::All, Deal::Take, "").short("q"),
    flag("no-color", Switch, Of::All, Deal::Take, ""),
    flag(
        "json",
        Switch,
        Of::All,
        Deal::Take,
        "warp's document; `--report-json`, which is plimsoll's own flag, prints plimsoll's",
    ),
    flag("debug", Switch, Of::All, Deal::Note, "requests are not traced"),
    flag("insecure", Switch, Of::All, Deal::Take, ""),
    flag("autocompletion", Switch, Of::All, Deal::Note, "there is nothing to install"),
    flag("help", Switch, Of::All, Deal::Refuse, flags_help()).short("h"),
    flag("version", Switch, Of::All, Deal::Refuse, "`plimsoll --version` tells ours").short("v"),
    flag("pprofdir", Text, Of::All, Deal::Note, NO_PROFILE),
    flag("cpu", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("mem", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("block", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("mutex", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("threads", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("trace", Switch, Of::All, Deal::Note, NO_PROFILE),
    // Connections and requests.
    same("host", Text).variable("WARP_HOST"),
    same("access-key", Text).variable("WARP_ACCESS_KEY"),
    same("secret-key", Text).variable("WARP_SECRET_KEY"),
    same("session-token", Text).variable("WARP_SESSION_TOKEN"),
    same("tls", Switch).variable("WARP_TLS"),
    refused("ktls", Switch, "TLS is not handed to the kernel; leave it out").variable("WARP_KTLS"),
    refused("rdma", Text, NO_RDMA).variable("WARP_RDMA"),
    refused("rdma.window", Text, NO_RDMA).variable("WARP_RDMA_WINDOW"),
    same("region", Text).variable("WARP_REGION"),
    same("sts-web-token", Text).variable("WARP_STS_WEB_TOKEN"),
    same("signature", Text),
    same("encrypt", Switch),
    same("sse-s3-encrypt", Switch),
    taken("bucket", Text, "it is made if it is not there, and never emptied"),
    same("host-select", Text),
    same("resolve-host", Switch),
    same("concurrent", Number),
    noted("sndbuf", Number, NO_BUFFERS),
    noted("rcvbuf", Number, NO_BUFFERS),
    taken("noprefix", Switch, "workers have no prefixes, the run keeps its own"),
    taken("prefix", Text, OWN_PREFIX),
    same("disable-multipart", Switch),
    same("disable-sha256-payload", Switch),
    same("md5", Switch),
    same("checksum", Text),
    same("storage-class", Text),
    same("disable-http-keepalive", Switch),
    same("http2", Switch),
    refused("stress", Switch, "with it warp saves and prints nothing; every run is recorded here"),
    taken("influxdb", Text, "running totals go out once a second, not after each operation")
        .variable("WARP_INFLUXDB_CONNECT"),
    same("rps-limit", Rate),
    refused("stdout", Switch, "`plimsoll export` writes the operations of a run"),
    same("lookup", Text),
    // What is written.
    same("obj.generator", Text),
    taken("obj.randsize", Switch, "sizes are log-uniform, without the hole that warp's have"),
    flag("obj.size", Sizes, Of::Only(SIZED), Deal::Take, ""),
    same("add-metadata", Texts),
    same("tag", Texts),
    // Conduct.
    flag(
        "benchdata",
        Text,
        Of::BenchmarksAndMerge,
        Deal::Take,
        "the run directory is called so, and beside it is warp's file, `.json.zst` or with `--full` \
         `.csv.zst`",
    ),
    taken("serverprof", Text, "kept in the run directory as `server-profiles.zip`"),
    same("duration", Duration),
    taken("autoterm", Switch, "follows the rule that warp documents; see `docs/measuring.md`"),
    same("autoterm.dur", Duration),
    same("autoterm.pct", Fraction),
    taken("noclear", Switch, NEVER_EMPTIED),
    taken("keep-data", Switch, NEVER_EMPTIED),
    same("syncstart", Text),
    taken("warp-client", Text, OF_AGENTS),
    // The report.
    flag("web", Switch, Of::BenchmarksAndFiles, Deal::Refuse, NO_SERVER),
    report("analyze.dur", Duration),
    report("analyze.out", Text),
    report("analyze.op", Text),
    report("analyze.host", Text),
    report("analyze.skip", Duration),
    report("analyze.limit", Number),
    report("analyze.offset", Number),
    report("analyze.v", Switch),
    flag("serve", Text, Of::BenchmarksAndFiles, Deal::Refuse, NO_SERVER),
    flag(
        "full",
        Switch,
        Of::BenchmarksAndFiles,
        Deal::Report,
        "every operation is always kept; with it the report and the file are those of `warp --full`",
    ),
    // Of some benchmarks.
    only("objects", Number, &[Mixed, Get, Delete, List, Stat, Versioned, Retention]),
    only("part.size", Size, &[Get, Put, Multipart, MultipartPut, Zip]),
    only("range", Switch, &[Get]),
    only("range-size", Size, &[Get]),
    only("versions", Number, &[Get, List, Stat, Retention]),
    only("list-existing", Switch, &[Get, Delete, Stat]),
    only("list-flat", Switch, &[Get, Delete, Stat]),
    only("post", Switch, &[Put]),
    only("batch", Number, &[Delete]),
    flag(
        "yes",
        Switch,
        Of::Only(&[Delete]),
        Deal::Take,
        "ours: with `--list-existing` it lets the run delete objects that it did not write",
    ),
    flag(
        "metadata",
        Switch,
        Of::Only(&[List]),
        Deal::Refuse,
        "MinIO's listing with metadata is not spoken; `--versions` and plain listings are",
    ),
    only("max-keys", Number, &[List]),
    only("get-distrib", Fraction, &[Mixed, Versioned]),
    only("stat-distrib", Fraction, &[Mixed, Versioned]),
    only("put-distrib", Fraction, &[Mixed, Versioned]),
    only("delete-distrib", Fraction, &[Mixed, Versioned]),
    only("parts", Number, &[Multipart, MultipartPut]),
    only("part.concurrent", Number, &[MultipartPut]),
    flag(
        "obj.name",
        Text,
        Of::Only(&[Multipart]),
        Deal::Note,
        "the object has a name of the run's own",
    ),
    flag("_upload-id", Text, Of::Only(&[Multipart]), Deal::Refuse, OF_CLIENTS),
    flag("_part-start", Number, Of::Only(&[Multipart]), Deal::Refuse, OF_CLIENTS),
    only("files", Number, &[Zip]),
    only("objs.per", Number, &[Snowball]),
    only("compress", Switch, &[Snowball]),
    only("copies", Number, &[Fanout]),
    // Of `run`.
    flag("var", Texts, Of::Run, Deal::Take, ""),
];

/// Those whose objects have a size; the others have parts.
const SIZED: &[WarpBenchmark] =
    &[Mixed, Get, Put, Delete, List, Stat, Versioned, Retention, Zip, Snowball, Fanout, Append];

/// Tells whether the value of a flag, with or without its dashes, is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name.trim_start_matches('-'))
}

/// Returns a flag that may stand before the command.
pub(super) fn global(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| matches!(flag.of, Of::All) && flag.is_called(name))
}

/// Tells whether any command has a flag of that name.
pub(super) fn is_known(name: &str) -> bool {
    FLAGS.iter().any(|flag| flag.is_called(name))
}

/// Returns a flag of a command.
pub(super) fn of(
    command: WarpCommand,
    name: &str,
    written: &str,
) -> Result<&'static Flag, WarpArgError> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.is_called(name) && flag.is_of(command)) {
        return Ok(flag);
    }
    let own = FLAGS.iter().filter(|flag| flag.is_of(command)).map(|flag| flag.name);
    let elsewhere = FLAGS.iter().find(|flag| flag.is_called(name));
    let hint = match elsewhere.map(|flag| flag.of) {
        Some(Of::Only(benchmarks)) => {
            let names: Vec<String> =
                benchmarks.iter().map(|benchmark| format!("`{}`", benchmark.name())).collect();
            format!(", but of {}", names.join(", "))
        }
        Some(Of::Run) => ", but of `run`".to_owned(),
        Some(_) => ", but of benchmarks".to_owned(),
        None => {
            did_you_mean(spelling::nearest(name, own).map(|name| format!("--{name}")).as_deref())
        }
    };
    Err(WarpArgError::UnknownFlag { written: written.to_owned(), command: command.name(), hint })
}
