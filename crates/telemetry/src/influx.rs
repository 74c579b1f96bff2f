//! The counters as InfluxDB's line protocol, under warp's names: running totals in measurement
//! `warp`, and `warp_run_summary` at the end.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_engine::LiveDetail;
use plimsoll_model::{EndpointId, OpKind, SeriesKey, WallTime};
use plimsoll_stats::{OUTCOMES_MAX, Total, Totals as SeriesTotals};

use percent_encoding::percent_decode_str;
use plimsoll_http::Url;

use crate::snapshot::{Board, Snapshot, seconds};

/// Tags that we set ourselves.
const OWN_TAGS: [&str; 4] = ["op", "warp_id", "endpoint", "stage"];

/// Where lines are written to, and what marks them.
pub(super) struct Database {
    pub(super) token: String,
    pub(super) bucket: String,
    pub(super) org: String,
    /// The user's tags, each as `,name=value`.
    tags: String,
}

impl Database {
    /// Reads what an address says besides whom to connect to.
    pub(super) fn of(url: &Url<'_>) -> Result<Self, String> {
        let token = match url.user {
            Some(user) if !user.is_empty() => decoded(user)?.into_owned(),
            _ => return Err("the address has no token: http://TOKEN@HOST/BUCKET/ORG".to_owned()),
        };
        // An encoded line end would end the header that the token stands in.
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token holds a character that is not allowed in a header".to_owned());
        }
        let mut parts = url.path.trim_matches('/').split('/');
        let (Some(bucket), Some(org), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err("the path is not BUCKET/ORG".to_owned());
        };
        let (bucket, org) = (decoded(bucket)?.into_owned(), decoded(org)?.into_owned());
        if bucket.is_empty() || org.is_empty() {
            return Err("the path is not BUCKET/ORG".to_owned());
        }
        let mut tags = String::new();
        let pairs = url.query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            push_user_tag(&mut tags, &decoded(name)?, &decoded(value)?)?;
        }
        Ok(Self { token, bucket, org, tags })
    }
}

/// Returns a part of an address without its `%` signs.
fn decoded(part: &str) -> Result<Cow<'_, str>, &'static str> {
    let decoded = percent_decode_str(part).decode_utf8();
    decoded.map_err(|_| "a part of the address is not UTF-8")
}

fn push_user_tag(tags: &mut String, name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || value.is_empty() {
        return Err(format!("tag `{name}` has no name or no value"));
    }
    if OWN_TAGS.contains(&name) || name.starts_with('_') {
        return Err(format!("tag `{name}` cannot be set: the name is taken"));
    }
    // The line protocol has no way to write either.
    if [name, value].iter().any(|text| text.contains('\n') || text.ends_with('\\')) {
        return Err(format!("tag `{name}` holds a line end or ends with a backslash"));
    }
    push_tag(tags, name, value);
    Ok(())
}

fn push_tag(out: &mut String, name: &str, value: &str) {
    write!(out, ",{}={}", escaped(name), escaped(value)).expect("writing to memory does not fail");
}

/// Returns a tag's name or value as it stands in a line.
fn escaped(text: &str) -> String {
    text.replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ")
}

/// How many operations of each kind and stage had ended when their totals were last written.
#[derive(Clone, Default)]
pub(super) struct Written(BTreeMap<(String, OpKind), u64>);

/// Returns the running totals that have changed since `written`, and what has been written when
/// they are.
///
/// With one endpoint its totals are those of all, and both are written as warp writes them; of
/// several endpoints only the total of all is known while the run lasts.
pub(super) fn totals(
    database: &Database,
    board: &Board,
    snapshot: &Snapshot,
    written: &Written,
) -> (String, Written) {
    let mut lines = String::new();
    let mut now = Written::default();
    for stage in &snapshot.stages {
        for (kind, detail) in &stage.kinds {
            let key = (stage.name.clone(), *kind);
            let changed = written.0.get(&key) != Some(&detail.ended_count());
            now.0.insert(key, detail.ended_count());
            if !changed {
                continue;
            }
            let fields = Totals::of(detail).fields();
            let only = match &*board.endpoints {
                [only] => Some(only.as_str()),
                _ => None,
            };
            for endpoint in [Some(None), only.map(Some)].into_iter().flatten() {
                let tags = tags(database, board, (*kind, &stage.name), endpoint);
                push_line(&mut lines, "warp", &tags, &fields, snapshot.at);
            }
        }
    }
    (lines, now)
}

fn push_line(lines: &mut String, measurement: &str, tags: &str, fields: &str, at: WallTime) {
    writeln!(lines, "{measurement}{tags} {fields} {}", at.as_unix_ns())
        .expect("writing to memory does not fail");
}

fn tags(
    database: &Database,
    board: &Board,
    (kind, stage): (OpKind, &str),
    endpoint: Option<&str>,
) -> String {
    let mut tags = String::new();
    if let Some(endpoint) = endpoint {
        push_tag(&mut tags, "endpoint", endpoint);
    }
    push_tag(&mut tags, "op", kind.name());
    push_tag(&mut tags, "stage", stage);
    push_tag(&mut tags, "warp_id", &board.run_id);
    tags + &database.tags
}

/// What warp counts of operations.
#[derive(Clone, Copy, Default)]
struct Totals {
    requests: u64,
    objects: u64,
    bytes: u64,
    errors: u64,
    latency_secs: f64,
    ttfb_secs: f64,
}

impl Totals {
    fn of(detail: &LiveDetail) -> Self {
        Self {
            requests: detail.ended_count(),
            objects: detail.objects,
            bytes: detail.bytes,
            errors: detail.failed_count(),
            latency_secs: seconds(detail.latency_ns),
            ttfb_secs: seconds(detail.ttfb_ns),
        }
    }

    fn fields(&self) -> String {
        let Self { requests, objects, bytes, errors, latency_secs, ttfb_secs } = self;
        format!(
            "requests={requests}i,objects={objects}i,bytes_total={bytes}i,errors={errors}i,\
             request_total_secs={latency_secs},request_ttfb_total_secs={ttfb_secs}"
        )
    }
}

/// The spread of one time over operations.
#[derive(Clone, Copy, Default)]
struct Spread {
    count: u64,
    sum_ns: u128,
    min_max_ns: Option<(u64, u64)>,
}

impl Spread {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        let both = self.min_max_ns.into_iter().chain(other.min_max_ns);
        self.min_max_ns = both.reduce(|(min, max), (low, high)| (min.min(low), max.max(high)));
    }

    /// Returns average, shortest and longest as fields; nothing where there is none.
    fn fields(&self, name: &str) -> String {
        let Some((min, max)) = self.min_max_ns else { return String::new() };
        let average = self.sum_ns as f64 / self.count.max(1) as f64 / 1e9;
        let (min, max) = (seconds(min), seconds(max));
        format!(",{name}_avg_secs={average},{name}_min_secs={min},{name}_max_secs={max}")
    }
}

/// All of a stage: what was counted, and how long it took.
#[derive(Clone, Copy, Default)]
struct Whole {
    totals: Totals,
    objects_micro: u64,
    latency: Spread,
    ttfb: Spread,
}

impl Whole {
    fn add_lane(&mut self, Total { cell, times }: &Total) {
        self.totals.requests += cell.ended.iter().sum::<u64>();
        self.totals.errors += cell.ended[1..OUTCOMES_MAX].iter().sum::<u64>();
        self.totals.bytes += cell.bytes;
        self.objects_micro += cell.objects_micro;
        for (spread, histogram) in
            [(&mut self.latency, &times.latency), (&mut self.ttfb, &times.ttfb)]
        {
            spread.add(&Spread {
                count: histogram.count(),
                sum_ns: histogram.sum(),
                min_max_ns: histogram.min_max(),
            });
        }
    }

    fn fields(&self) -> String {
        let totals = Totals {
            objects: self.objects_micro / 1_000_000,
            latency_secs: self.latency.sum_ns as f64 / 1e9,
            ttfb_secs: self.ttfb.sum_ns as f64 / 1e9,
            ..self.totals
        };
        let (latency, ttfb) = (self.latency.fields("request"), self.ttfb.fields("request_ttfb"));
        format!("{}{latency}{ttfb}", totals.fields())
    }
}

/// Returns the summary of a stage: for each kind one line in all and one for each endpoint.
pub(super) fn summary(
    database: &Database,
    board: &Board,
    stage: &str,
    all: &SeriesTotals<SeriesKey>,
) -> String {
    let mut wholes: BTreeMap<(OpKind, Option<EndpointId>), Whole> = BTreeMap::new();
    for (SeriesKey { kind, endpoint, .. }, total) in all.iter() {
        for endpoint in [None, Some(endpoint)] {
            wholes.entry((kind, endpoint)).or_default().add_lane(total);
        }
    }
    let at = board.now();
    let mut lines = String::new();
    for ((kind, endpoint), whole) in wholes {
        let name = endpoint.map(|id| board.endpoints.get(usize::from(id.0)));
        // Without a name an endpoint's line would look like the total.
        let endpoint = match name {
            Some(None) => continue,
            other => other.flatten().map(String::as_str),
        };
        let tags = tags(database, board, (kind, stage), endpoint);
        push_line(&mut lines, "warp_run_summary", &tags, &whole.fields(), at);
    }
    lines
}
