//! Every flag of warp and what becomes of it here.

use plimsoll_model::REDACTED;
use plimsoll_workload::plan::spec::RangeSpec;

use super::command::WarpBenchmark::{
    Append, Delete, Fanout, Get, List, Mixed, Multipart, MultipartPut, Put, Retention, Snowball,
    Stat, Versioned, Zip,
};
use super::command::{WarpBenchmark, WarpCommand, flags_help};
use super::run::{
    WarpRun, duration, kind, lookup, pair, parsed, part_size, percent, range_size, signature,
    sizes, some, time, weight,
};
use crate::command_line::Kind::{
    self, Duration, Fraction, Number, Rate, Size, Sizes, Switch, Text, Texts,
};
use crate::command_line::{Deal, Flag, LineError, Set, on, set};
use crate::spelling::did_you_mean;

/// A flag of warp's; ours has the same name.
pub(crate) type Row = Flag<OfWarp>;

/// What else is known of a flag.
pub(crate) struct OfWarp {
    /// Which commands have it.
    pub(crate) of: Of,
    /// The variable of the environment that counts where the flag is not given.
    pub(crate) variable: Option<&'static str>,
    /// What the value sets in a run, in our spelling; nothing of a switch.
    pub(super) sets: Set<WarpRun>,
}

/// Which commands have a flag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
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

impl Row {
    const fn variable(mut self, name: &'static str) -> Self {
        self.to.variable = Some(name);
        self
    }

    const fn sets(mut self, sets: Set<WarpRun>) -> Self {
        self.to.sets = sets;
        self
    }

    /// Tells whether a command has it.
    pub(super) fn is_of(&self, command: WarpCommand) -> bool {
        match (self.to.of, command) {
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
            Some((name, _)) if self.name == "var" => format!("{name}={REDACTED}"),
            None if self.name == "var" => REDACTED.to_owned(),
            _ if is_secret(self.name) => REDACTED.to_owned(),
            _ => value.to_owned(),
        }
    }
}

const fn flag(name: &'static str, kind: Kind, of: Of, deal: Deal, what: &'static str) -> Row {
    Flag::new(name, kind, deal, what, OfWarp { of, variable: None, sets: |_, _| Ok(()) })
}

/// A flag of all benchmarks that is ours too, and nothing differs.
const fn same(name: &'static str, kind: Kind) -> Row {
    flag(name, kind, Of::Benchmarks, Deal::Take, "")
}

const fn taken(name: &'static str, kind: Kind, what: &'static str) -> Row {
    flag(name, kind, Of::Benchmarks, Deal::Take, what)
}

const fn noted(name: &'static str, kind: Kind, what: &'static str) -> Row {
    flag(name, kind, Of::Benchmarks, Deal::Note, what)
}

const fn refused(name: &'static str, kind: Kind, what: &'static str) -> Row {
    flag(name, kind, Of::Benchmarks, Deal::Refuse, what)
}

/// A flag of some benchmarks that is ours too, and nothing differs.
const fn only(name: &'static str, kind: Kind, of: &'static [WarpBenchmark]) -> Row {
    flag(name, kind, Of::Only(of), Deal::Take, "")
}

const fn report(name: &'static str, kind: Kind) -> Row {
    let what = "as of `analyze`";
    flag(name, kind, Of::BenchmarksAndFiles, Deal::Take, what)
}

const NO_PROFILE: &str = "plimsoll does not profile itself; `perf record` does";
const NO_RDMA: &str = "no requests are made over RDMA; leave it out to go over TCP";
const NO_SERVER: &str = "`plimsoll report -o FILE.html RUN` writes a page that needs no server";
const NO_BUFFERS: &str = "buffers have sizes of our own";
const OF_AGENTS: &str = "agents of these names carry the run out (`--fleet`, `--agents`), each \
                         with as much as one client of warp's";
const OF_CLIENTS: &str = "warp sets it itself, for its clients";
const OWN_PREFIX: &str = "the run's own prefix, `plimsoll/<run>/`, comes below it";
const WARPS_JSON: &str =
    "warp's document; `--report-json`, which is plimsoll's own flag, prints plimsoll's";
const WARPS_FILE: &str = "the run directory is called so, and beside it is warp's file, \
                          `.json.zst` or with `--full` `.csv.zst`";
const ALWAYS_FULL: &str =
    "every operation is always kept; with it the report and the file are those of `warp --full`";
const OUR_YES: &str =
    "ours: with `--list-existing` it lets the run delete objects that it did not write";
const NEVER_EMPTIED: &str =
    "nothing that was there is ever removed; what the run itself wrote stays, too";

/// Those whose value is shown to nobody.
const SECRETS: [&str; 5] =
    ["access-key", "secret-key", "session-token", "sts-web-token", "influxdb"];

/// All flags, in the order of the document's table.
pub(crate) static FLAGS: &[Row] = &[
    // Of all commands.
    flag("quiet", Switch, Of::All, Deal::Take, "").sets(|r, _| on(&mut r.quiet)).or(&["q"]),
    flag("no-color", Switch, Of::All, Deal::Take, "").sets(|r, _| on(&mut r.no_color)),
    flag("json", Switch, Of::All, Deal::Take, WARPS_JSON).sets(|r, _| on(&mut r.json)),
    flag("debug", Switch, Of::All, Deal::Note, "requests are not traced"),
    flag("insecure", Switch, Of::All, Deal::Take, "").sets(|r, _| on(&mut r.store.insecure)),
    flag("autocompletion", Switch, Of::All, Deal::Note, "there is nothing to install"),
    flag("help", Switch, Of::All, Deal::Refuse, flags_help()).or(&["h"]),
    flag("version", Switch, Of::All, Deal::Refuse, "`plimsoll --version` tells ours").or(&["v"]),
    flag("pprofdir", Text, Of::All, Deal::Note, NO_PROFILE),
    flag("cpu", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("mem", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("block", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("mutex", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("threads", Switch, Of::All, Deal::Note, NO_PROFILE),
    flag("trace", Switch, Of::All, Deal::Note, NO_PROFILE),
    // Connections and requests.
    same("host", Text).sets(|r, v| some(&mut r.store.hosts, v)).variable("WARP_HOST"),
    same("access-key", Text)
        .sets(|r, v| some(&mut r.store.access_key, v))
        .variable("WARP_ACCESS_KEY"),
    same("secret-key", Text)
        .sets(|r, v| some(&mut r.store.secret_key, v))
        .variable("WARP_SECRET_KEY"),
    same("session-token", Text)
        .sets(|r, v| some(&mut r.store.session_token, v))
        .variable("WARP_SESSION_TOKEN"),
    same("tls", Switch).sets(|r, _| on(&mut r.store.tls)).variable("WARP_TLS"),
    refused("ktls", Switch, "TLS is not handed to the kernel; leave it out").variable("WARP_KTLS"),
    refused("rdma", Text, NO_RDMA).variable("WARP_RDMA"),
    refused("rdma.window", Text, NO_RDMA).variable("WARP_RDMA_WINDOW"),
    same("region", Text).sets(|r, v| some(&mut r.store.region, v)).variable("WARP_REGION"),
    same("sts-web-token", Text)
        .sets(|r, v| some(&mut r.store.sts_web_token, v))
        .variable("WARP_STS_WEB_TOKEN"),
    same("signature", Text).sets(signature),
    same("encrypt", Switch).sets(|r, _| on(&mut r.store.encrypt)),
    same("sse-s3-encrypt", Switch).sets(|r, _| on(&mut r.store.sse_s3_encrypt)),
    taken("bucket", Text, "it is made if it is not there, and never emptied")
        .sets(|r, v| set(&mut r.store.bucket, parsed(v))),
    same("host-select", Text).sets(|r, v| set(&mut r.store.round_robin, Ok(v == "roundrobin"))),
    same("resolve-host", Switch).sets(|r, _| on(&mut r.store.resolve_host)),
    same("concurrent", Number).sets(|r, v| some(&mut r.workload.concurrent, v)),
    noted("sndbuf", Number, NO_BUFFERS),
    noted("rcvbuf", Number, NO_BUFFERS),
    taken("noprefix", Switch, "workers have no prefixes, the run keeps its own")
        .sets(|r, _| on(&mut r.workload.no_prefix)),
    taken("prefix", Text, OWN_PREFIX).sets(|r, v| set(&mut r.workload.prefix, parsed(v))),
    same("disable-multipart", Switch).sets(|r, _| on(&mut r.store.disable_multipart)),
    same("disable-sha256-payload", Switch),
    same("md5", Switch).sets(|r, _| on(&mut r.store.md5)),
    same("checksum", Text).sets(|r, v| some(&mut r.store.checksum, v)),
    same("storage-class", Text).sets(|r, v| some(&mut r.store.storage_class, v)),
    same("disable-http-keepalive", Switch).sets(|r, _| on(&mut r.store.disable_http_keepalive)),
    same("http2", Switch).sets(|r, _| on(&mut r.store.http2)),
    refused("stress", Switch, "with it warp saves and prints nothing; every run is recorded here"),
    taken("influxdb", Text, "running totals go out once a second, not after each operation")
        .sets(|r, v| some(&mut r.influxdb, v))
        .variable("WARP_INFLUXDB_CONNECT"),
    same("rps-limit", Rate).sets(|r, v| some(&mut r.workload.rps_limit, v)),
    refused("stdout", Switch, "`plimsoll export` writes the operations of a run"),
    same("lookup", Text).sets(lookup),
    // What is written.
    same("obj.generator", Text),
    taken("obj.randsize", Switch, "sizes are log-uniform, without the hole that warp's have")
        .sets(|r, _| on(&mut r.workload.random_size)),
    flag("obj.size", Sizes, Of::Only(SIZED), Deal::Take, "").sets(sizes),
    same("add-metadata", Texts).sets(|r, v| pair(&mut r.store.metadata, v)),
    same("tag", Texts).sets(|r, v| pair(&mut r.store.tags, v)),
    // Conduct.
    flag("benchdata", Text, Of::BenchmarksAndMerge, Deal::Take, WARPS_FILE)
        .sets(|r, v| some(&mut r.run_directory, v)),
    taken("serverprof", Text, "kept in the run directory as `server-profiles.zip`")
        .sets(|r, v| some(&mut r.serverprof, v)),
    same("duration", Duration).sets(|r, v| time(&mut r.workload.duration, v)),
    taken("autoterm", Switch, "follows the rule that warp documents; see `docs/measuring.md`")
        .sets(|r, _| on(&mut r.workload.autoterm)),
    same("autoterm.dur", Duration).sets(|r, v| time(&mut r.workload.autoterm_window, v)),
    same("autoterm.pct", Fraction).sets(|r, v| set(&mut r.workload.autoterm_percent, percent(v))),
    taken("noclear", Switch, NEVER_EMPTIED).sets(|r, _| on(&mut r.keeps_data)),
    taken("keep-data", Switch, NEVER_EMPTIED).sets(|r, _| on(&mut r.keeps_data)),
    same("syncstart", Text).sets(|r, v| some(&mut r.syncstart, v)),
    taken("warp-client", Text, OF_AGENTS),
    // The report.
    flag("web", Switch, Of::BenchmarksAndFiles, Deal::Refuse, NO_SERVER),
    report("analyze.dur", Duration).sets(|r, v| time(&mut r.shown.question.segment, v)),
    report("analyze.out", Text).sets(|r, v| some(&mut r.shown.out, v)),
    report("analyze.op", Text).sets(|r, v| set(&mut r.shown.question.op, kind(v))),
    report("analyze.host", Text).sets(|r, v| some(&mut r.shown.host, v)),
    report("analyze.skip", Duration).sets(|r, v| set(&mut r.shown.question.skip, duration(v))),
    report("analyze.limit", Number).sets(|r, v| some(&mut r.shown.question.limit, v)),
    report("analyze.offset", Number).sets(|r, v| set(&mut r.shown.question.offset, parsed(v))),
    report("analyze.v", Switch).sets(|r, _| on(&mut r.shown.question.verbose)),
    flag("serve", Text, Of::BenchmarksAndFiles, Deal::Refuse, NO_SERVER),
    flag("full", Switch, Of::BenchmarksAndFiles, Deal::Take, ALWAYS_FULL)
        .sets(|r, _| on(&mut r.shown.full)),
    // Of some benchmarks.
    only("objects", Number, &[Mixed, Get, Delete, List, Stat, Versioned, Retention])
        .sets(|r, v| some(&mut r.workload.objects, v)),
    only("part.size", Size, &[Get, Put, Multipart, MultipartPut, Zip]).sets(part_size),
    only("range", Switch, &[Get]).sets(|r, _| {
        r.workload.range.get_or_insert(RangeSpec::Random);
        Ok(())
    }),
    only("range-size", Size, &[Get]).sets(range_size),
    only("versions", Number, &[Get, List, Stat, Retention])
        .sets(|r, v| some(&mut r.workload.versions, v)),
    only("list-existing", Switch, &[Get, Delete, Stat])
        .sets(|r, _| on(&mut r.workload.list_existing)),
    only("list-flat", Switch, &[Get, Delete, Stat]).sets(|r, _| on(&mut r.workload.list_flat)),
    only("post", Switch, &[Put]).sets(|r, _| on(&mut r.workload.post)),
    only("batch", Number, &[Delete]).sets(|r, v| some(&mut r.workload.batch, v)),
    flag("yes", Switch, Of::Only(&[Delete]), Deal::Take, OUR_YES).sets(|r, _| on(&mut r.consents)),
    flag(
        "metadata",
        Switch,
        Of::Only(&[List]),
        Deal::Refuse,
        "MinIO's listing with metadata is not spoken; `--versions` and plain listings are",
    ),
    only("max-keys", Number, &[List]).sets(|r, v| some(&mut r.workload.max_keys, v)),
    only("get-distrib", Fraction, &[Mixed, Versioned]).sets(|r, v| weight(r, 0, v)),
    only("stat-distrib", Fraction, &[Mixed, Versioned]).sets(|r, v| weight(r, 1, v)),
    only("put-distrib", Fraction, &[Mixed, Versioned]).sets(|r, v| weight(r, 2, v)),
    only("delete-distrib", Fraction, &[Mixed, Versioned]).sets(|r, v| weight(r, 3, v)),
    only("parts", Number, &[Multipart, MultipartPut]).sets(|r, v| some(&mut r.workload.parts, v)),
    only("part.concurrent", Number, &[MultipartPut])
        .sets(|r, v| some(&mut r.workload.parts_at_once, v)),
    flag(
        "obj.name",
        Text,
        Of::Only(&[Multipart]),
        Deal::Note,
        "the object has a name of the run's own",
    ),
    flag("_upload-id", Text, Of::Only(&[Multipart]), Deal::Refuse, OF_CLIENTS),
    flag("_part-start", Number, Of::Only(&[Multipart]), Deal::Refuse, OF_CLIENTS),
    only("files", Number, &[Zip]).sets(|r, v| some(&mut r.workload.objects, v)),
    only("objs.per", Number, &[Snowball]).sets(|r, v| some(&mut r.workload.members, v)),
    only("compress", Switch, &[Snowball]).sets(|r, _| on(&mut r.workload.compress)),
    only("copies", Number, &[Fanout]).sets(|r, v| some(&mut r.workload.copies, v)),
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
pub(super) fn global(name: &str) -> Option<&'static Row> {
    FLAGS.iter().find(|flag| matches!(flag.to.of, Of::All) && flag.is_called(name))
}

/// Tells whether any command has a flag of that name.
pub(super) fn is_known(name: &str) -> bool {
    FLAGS.iter().any(|flag| flag.is_called(name))
}

/// Returns the flags that do nothing for files: the name of each, whether it is a switch, and why.
pub fn idle_flags() -> impl Iterator<Item = (&'static str, bool, &'static str)> {
    let idle = FLAGS.iter().filter(|flag| match (flag.to.of, flag.deal) {
        (Of::All, Deal::Note) | (Of::BenchmarksAndFiles, Deal::Refuse) => true,
        _ => flag.name == "insecure",
    });
    let why = |says: &'static str| if says.is_empty() { "no request is made" } else { says };
    idle.map(move |flag| (flag.name, flag.kind == Switch, why(flag.says)))
}

/// Returns a flag of a command.
pub(super) fn of_command(command: WarpCommand, name: &str) -> Option<&'static Row> {
    FLAGS.iter().find(|flag| flag.is_called(name) && flag.is_of(command))
}

/// Returns a flag of a command, or the refusal of what was written.
pub(super) fn of(
    command: WarpCommand,
    name: &str,
    written: &str,
) -> Result<&'static Row, LineError> {
    if let Some(flag) = of_command(command, name) {
        return Ok(flag);
    }
    let hint = match FLAGS.iter().find(|flag| flag.is_called(name)).map(|flag| flag.to.of) {
        Some(Of::Only(benchmarks)) => {
            let names: Vec<String> =
                benchmarks.iter().map(|benchmark| format!("`{}`", benchmark.name())).collect();
            format!(", but of {}", names.join(", "))
        }
        Some(Of::Run) => ", but of `run`".to_owned(),
        Some(_) => ", but of benchmarks".to_owned(),
        None => {
            let own = FLAGS.iter().filter(|flag| flag.is_of(command)).map(|flag| flag.name);
            did_you_mean(name, own.map(|name| (name, format!("--{name}"))))
        }
    };
    let no = format!("no flag of `warp {}`", command.name());
    Err(LineError::unknown(written, &no, &hint))
}
