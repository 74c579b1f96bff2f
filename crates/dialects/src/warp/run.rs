//! A benchmark of warp's as it is run here: its workload, how the store is reached, and what is
//! shown.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use plimsoll_analysis::warp::WarpQuestion;
use plimsoll_model::{Bytes, OpKind, parse_duration};
use plimsoll_workload::plan::Size;
use plimsoll_workload::plan::spec::{Lookup, RangeSpec};

use super::flags::FLAGS;
use super::workload::{Sizes, WEIGHTS, WarpWorkload};
use super::{WarpBenchmark, WarpLine};
use crate::command_line::{LineError, find, set};

/// The bucket where none is named.
pub(super) const BUCKET: &str = "warp-benchmark-bucket";
/// Our flag that names who carries a run out.
pub(super) const AGENTS: &str = "--agents";

/// A benchmark as it is run. It holds secrets, so its `Debug` form has only what is done.
#[derive(Clone, Default)]
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
#[derive(Clone, Default)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarpSignature {
    /// Version 4.
    #[default]
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
    pub fn run(&self, benchmark: WarpBenchmark) -> Result<WarpRun, LineError> {
        let mut run = WarpRun::default();
        run.workload.benchmark = benchmark;
        run.workload.weights = Some(WEIGHTS);
        for (name, value) in self.flags.iter().chain(&self.analysis) {
            let text = value.as_deref().unwrap_or_default();
            if name == AGENTS {
                run.agents = Some(text.to_owned());
            }
            // What is not in the table is ours alone, and goes without saying here.
            let Some(flag) = find(FLAGS, name.trim_start_matches('-')) else { continue };
            (flag.to.sets)(&mut run, text)
                .map_err(|why| LineError::value(format!("`{name}={text}`"), why))?;
        }
        if run.store.part_size.is_some() && run.store.disable_multipart {
            let text = "`--disable-multipart` does not go together with `--part.size`";
            return Err(LineError::form(text));
        }
        Ok(run)
    }
}

pub(super) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(super) fn some<T: FromStr<Err: Display>>(
    slot: &mut Option<T>,
    text: &str,
) -> Result<(), String> {
    set(slot, parsed(text).map(Some))
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

pub(super) fn time(slot: &mut Option<Duration>, text: &str) -> Result<(), String> {
    set(slot, duration(text).map(Some))
}

pub(super) fn pair(all: &mut Vec<(String, String)>, text: &str) -> Result<(), String> {
    all.extend(text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(())
}

pub(super) fn percent(text: &str) -> Result<Option<f64>, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(Some).ok_or_else(|| "it is not between 0 and 100 percent".to_owned())
}

pub(super) fn weight(run: &mut WarpRun, index: usize, text: &str) -> Result<(), String> {
    set(&mut run.workload.weights.get_or_insert(WEIGHTS)[index], parsed(text))
}

fn bytes(text: &str) -> Result<u64, String> {
    Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| error.to_string())
}

pub(super) fn part_size(run: &mut WarpRun, text: &str) -> Result<(), String> {
    run.store.part_size = Some(bytes(text)?);
    set(&mut run.workload.part_size, Ok(run.store.part_size))
}

pub(super) fn sizes(run: &mut WarpRun, text: &str) -> Result<(), String> {
    set(&mut run.workload.size, Ok(Some(Sizes::Written(text.to_owned()))))
}

pub(super) fn range_size(run: &mut WarpRun, text: &str) -> Result<(), String> {
    set(&mut run.workload.range, bytes(text).map(|bytes| Some(RangeSpec::Fixed(Size(bytes)))))
}

pub(super) fn signature(run: &mut WarpRun, text: &str) -> Result<(), String> {
    run.store.signature = match text {
        "S3V2" => WarpSignature::V2,
        "IAM" => WarpSignature::Iam,
        _ => WarpSignature::V4,
    };
    Ok(())
}

pub(super) fn lookup(run: &mut WarpRun, text: &str) -> Result<(), String> {
    run.store.lookup = match text {
        "path" => Some(Lookup::Path),
        "dns" => Some(Lookup::Host),
        _ => None,
    };
    Ok(())
}

pub(super) fn kind(text: &str) -> Result<Option<OpKind>, String> {
    let known = || OpKind::ALL.map(|kind| kind.name().to_lowercase()).join(", ");
    let kind = OpKind::from_name(&text.to_uppercase());
    kind.map(Some).ok_or_else(|| format!("choose one of {}", known()))
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
