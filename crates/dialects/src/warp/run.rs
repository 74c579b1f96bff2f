//! A benchmark of warp's as it is run here: its workload, how the store is reached, and what is
//! shown.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use plimsoll_analysis::warp::WarpQuestion;
use plimsoll_model::{Bytes, OpKind, parse_duration};
use plimsoll_workload::plan::Size;
use plimsoll_workload::plan::spec::{Lookup, RangeSpec};

use super::error::WarpArgError;
use super::workload::{Sizes, WEIGHTS, WarpWorkload};
use super::{WarpBenchmark, WarpLine};

/// The bucket where none is named.
pub(super) const BUCKET: &str = "warp-benchmark-bucket";

type Flags = [(String, Option<String>)];

/// A benchmark as it is run. It holds secrets, so its `Debug` form has only what is done.
#[derive(Clone)]
pub struct WarpRun {
    /// What is done.
    pub workload: WarpWorkload,
    /// How the store is reached.
    pub store: WarpStore,
    /// The time of day at which measuring begins.
    pub syncstart: Option<String>,
    /// What of the server is profiled.
    pub serverprof: Option<String>,
    /// Who is told of the run while it runs; the URL may hold a token.
    pub influxdb: Option<String>,
    /// The agents that carry it out, instead of this process.
    pub agents: Option<String>,
    /// The run directory.
    pub run_directory: Option<String>,
    /// Whether what the run wrote stays.
    pub keeps_data: bool,
    /// Whether it may remove what no run wrote.
    pub consents: bool,
    /// Whether the result is one JSON object.
    pub json: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// Whether nothing is coloured.
    pub no_color: bool,
    /// What is shown at the end.
    pub shown: WarpShown,
}

/// How a store is reached, and what its requests are like.
#[derive(Clone)]
pub struct WarpStore {
    /// As `--host` lists them.
    pub hosts: Option<String>,
    /// Who asks.
    pub access_key: Option<String>,
    /// The key that goes with it.
    pub secret_key: Option<String>,
    /// The token that goes with both.
    pub session_token: Option<String>,
    /// What is exchanged for keys.
    pub sts_web_token: Option<String>,
    /// How requests are signed.
    pub signature: WarpSignature,
    /// Whether TLS is spoken,
    pub tls: bool,
    /// with any certificate.
    pub insecure: bool,
    /// The region that requests are signed for.
    pub region: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// How it is named in requests; `None` depends on the host.
    pub lookup: Option<Lookup>,
    /// Whether hosts are taken in turn.
    pub round_robin: bool,
    /// Whether each host stands for all of its addresses.
    pub resolve_host: bool,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Whether each request has a connection of its own.
    pub disable_http_keepalive: bool,
    /// Whether uploads have an MD5.
    pub md5: bool,
    /// The checksum behind uploads.
    pub checksum: Option<String>,
    /// Whether objects are encrypted with a key of the run's own.
    pub encrypt: bool,
    /// Whether they are with a key of the store's.
    pub sse_s3_encrypt: bool,
    /// The storage class of uploads.
    pub storage_class: Option<String>,
    /// The tags of uploads.
    pub tags: Vec<(String, String)>,
    /// The metadata of uploads.
    pub metadata: Vec<(String, String)>,
    /// The size of the parts of larger objects.
    pub part_size: Option<u64>,
    /// Whether each object is uploaded with one request.
    pub disable_multipart: bool,
}

/// How requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpSignature {
    /// Version 4.
    V4,
    /// Version 2.
    V2,
    /// Version 4 with keys that are looked for.
    Iam,
}

/// What the report at the end shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarpShown {
    /// What is asked, but for the host.
    pub question: WarpQuestion,
    /// Only what went to this host.
    pub host: Option<String>,
    /// Where the segments are written to.
    pub out: Option<String>,
    /// Whether it is the report that warp makes of every operation, instead of its default one.
    pub full: bool,
}

impl WarpShown {
    /// Returns the flags given that only the report of every operation heeds.
    pub fn idle(&self) -> impl Iterator<Item = &'static str> {
        let WarpShown { question, host, out, full } = self;
        let given = [
            ("--analyze.dur", question.segment.is_some()),
            ("--analyze.skip", !question.skip.is_zero()),
            ("--analyze.host", host.is_some()),
            ("--analyze.out", out.is_some()),
        ];
        let full = *full;
        given.into_iter().filter(move |(_, given)| *given && !full).map(|(flag, _)| flag)
    }
}

impl WarpLine {
    /// Returns how the benchmark of this line is run.
    pub fn run(&self, benchmark: WarpBenchmark) -> Result<WarpRun, WarpArgError> {
        let flags = &self.flags[..];
        let size = |name| read(flags, name, |text| Bytes::parse(text).map(|bytes| bytes.0));
        let part_size = size("part.size")?;
        if part_size.is_some() && is_on(flags, "disable-multipart") {
            let text = "`--disable-multipart` does not go together with `--part.size`";
            return Err(WarpArgError::Form(text.to_owned()));
        }
        Ok(WarpRun {
            workload: WarpWorkload { part_size, ..workload(flags, benchmark)? },
            store: WarpStore { part_size, ..store(flags) },
            syncstart: text(flags, "syncstart"),
            serverprof: text(flags, "serverprof"),
            influxdb: text(flags, "influxdb"),
            agents: text(flags, "agents"),
            run_directory: text(flags, "benchdata"),
            keeps_data: is_on(flags, "noclear") || is_on(flags, "keep-data"),
            consents: is_on(flags, "yes"),
            json: is_on(flags, "json"),
            quiet: is_on(flags, "quiet"),
            no_color: is_on(flags, "no-color"),
            shown: shown(&self.analysis)?,
        })
    }
}

fn workload(flags: &Flags, benchmark: WarpBenchmark) -> Result<WarpWorkload, WarpArgError> {
    let weight = |name, default| Ok(parse(flags, name)?.unwrap_or(default));
    let [get, stat, put, delete] = WEIGHTS;
    let range_size = read(flags, "range-size", Bytes::parse)?;
    Ok(WarpWorkload {
        benchmark,
        concurrent: parse(flags, "concurrent")?,
        duration: read(flags, "duration", parse_duration)?,
        autoterm: is_on(flags, "autoterm"),
        autoterm_window: read(flags, "autoterm.dur", parse_duration)?,
        autoterm_percent: read(flags, "autoterm.pct", percent)?,
        rps_limit: parse(flags, "rps-limit")?,
        prefix: text(flags, "prefix").unwrap_or_default(),
        no_prefix: is_on(flags, "noprefix"),
        objects: parse(flags, if benchmark == WarpBenchmark::Zip { "files" } else { "objects" })?,
        size: text(flags, "obj.size").map(Sizes::Written),
        random_size: is_on(flags, "obj.randsize"),
        versions: parse(flags, "versions")?,
        range: match range_size {
            Some(Bytes(size)) => Some(RangeSpec::Fixed(Size(size))),
            None => is_on(flags, "range").then_some(RangeSpec::Random),
        },
        list_existing: is_on(flags, "list-existing"),
        list_flat: is_on(flags, "list-flat"),
        post: is_on(flags, "post"),
        batch: parse(flags, "batch")?,
        max_keys: parse(flags, "max-keys")?,
        weights: Some([
            weight("get-distrib", get)?,
            weight("stat-distrib", stat)?,
            weight("put-distrib", put)?,
            weight("delete-distrib", delete)?,
        ]),
        parts: parse(flags, "parts")?,
        parts_at_once: parse(flags, "part.concurrent")?,
        members: parse(flags, "objs.per")?,
        compress: is_on(flags, "compress"),
        copies: parse(flags, "copies")?,
        ..WarpWorkload::default()
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "it is not between 0 and 100 percent".to_owned())
}

fn store(flags: &Flags) -> WarpStore {
    let text = |name| text(flags, name);
    let is_on = |name| is_on(flags, name);
    WarpStore {
        hosts: text("host"),
        access_key: text("access-key"),
        secret_key: text("secret-key"),
        session_token: text("session-token"),
        signature: match text("signature").as_deref() {
            Some("S3V2") => WarpSignature::V2,
            Some("IAM") => WarpSignature::Iam,
            _ => WarpSignature::V4,
        },
        sts_web_token: text("sts-web-token"),
        tls: is_on("tls"),
        insecure: is_on("insecure"),
        region: text("region"),
        bucket: text("bucket").unwrap_or_else(|| BUCKET.to_owned()),
        lookup: match text("lookup").as_deref() {
            Some("path") => Some(Lookup::Path),
            Some("dns") => Some(Lookup::Host),
            _ => None,
        },
        round_robin: text("host-select").as_deref() == Some("roundrobin"),
        resolve_host: is_on("resolve-host"),
        http2: is_on("http2"),
        disable_http_keepalive: is_on("disable-http-keepalive"),
        md5: is_on("md5"),
        checksum: text("checksum"),
        encrypt: is_on("encrypt"),
        sse_s3_encrypt: is_on("sse-s3-encrypt"),
        storage_class: text("storage-class"),
        tags: pairs(flags, "tag"),
        metadata: pairs(flags, "add-metadata"),
        part_size: None,
        disable_multipart: is_on("disable-multipart"),
    }
}

fn shown(flags: &Flags) -> Result<WarpShown, WarpArgError> {
    let known = || OpKind::ALL.map(|kind| kind.name().to_lowercase()).join(", ");
    let kind = |text: &str| {
        let kind = OpKind::from_name(&text.to_uppercase());
        kind.ok_or_else(|| format!("choose one of {}", known()))
    };
    let question = WarpQuestion {
        segment: read(flags, "analyze.dur", parse_duration)?,
        op: read(flags, "analyze.op", kind)?,
        host: None,
        skip: read(flags, "analyze.skip", parse_duration)?.unwrap_or(Duration::ZERO),
        offset: parse(flags, "analyze.offset")?.unwrap_or_default(),
        limit: parse(flags, "analyze.limit")?,
        verbose: is_on(flags, "analyze.v"),
    };
    Ok(WarpShown {
        question,
        host: text(flags, "analyze.host"),
        out: text(flags, "analyze.out"),
        full: is_on(flags, "full"),
    })
}

/// Returns every value of a flag that is called so.
fn values<'a>(flags: &'a Flags, name: &str) -> impl Iterator<Item = Option<&'a str>> {
    let is_called =
        move |flag: &&'a (String, Option<String>)| flag.0.strip_prefix("--") == Some(name);
    flags.iter().filter(is_called).map(|(_, value)| value.as_deref())
}

fn is_on(flags: &Flags, name: &str) -> bool {
    values(flags, name).next().is_some()
}

fn text(flags: &Flags, name: &str) -> Option<String> {
    values(flags, name).last().flatten().map(str::to_owned)
}

fn pairs(flags: &Flags, name: &str) -> Vec<(String, String)> {
    let pair = |text: &str| text.split_once('=').map(|(name, value)| (name.into(), value.into()));
    values(flags, name).flatten().filter_map(pair).collect()
}

fn parse<T: FromStr<Err: Display>>(flags: &Flags, name: &str) -> Result<Option<T>, WarpArgError> {
    read(flags, name, str::parse)
}

fn read<T, E: Display>(
    flags: &Flags,
    name: &str,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, WarpArgError> {
    let Some(text) = values(flags, name).last().flatten() else { return Ok(None) };
    let value = read(text).map_err(|error| WarpArgError::Value {
        written: format!("`--{name}={text}`"),
        why: error.to_string(),
    });
    value.map(Some)
}

impl fmt::Debug for WarpRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarpRun").field("workload", &self.workload).finish_non_exhaustive()
    }
}

impl fmt::Debug for WarpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarpStore").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}
