//! A run's latencies as HdrHistogram's interval log.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use plimsoll_analysis::OpSource;
use plimsoll_foreign::hdr_log::{Encoder, Writer};
use plimsoll_model::{OpKind, OpRecord, StageId};

use crate::error::ExportError;
use crate::export::Export;

/// What is written ahead of the histograms.
const UNITS: &str = "values are nanoseconds, Interval_Max milliseconds; successes only, each in \
                     the second of the run in which it ended; tags are STAGE/KIND, of the latency \
                     (intended start to end), and STAGE/KIND/ttfb";

/// The tags of a stage and kind.
struct Tags {
    latency: u32,
    ttfb: Option<u32>,
}

impl Export<'_> {
    /// Writes a histogram of latencies, and one of times to first byte, for each second, stage and
    /// kind, successes only, as HdrHistogram's own tools read them.
    pub fn write_hdr_log(&self, to: Box<dyn Write + '_>) -> Result<(), ExportError> {
        let manifest = self.manifest();
        let mut to = BufWriter::new(to);
        let mut encoder = Encoder::default();
        let run = format!("run {} of plimsoll, begun {}", manifest.run_id, manifest.started_at);
        let started = manifest.started_unix_ns;
        let comments = [run.as_str(), UNITS];
        let mut log = Writer::begin(&mut to, &mut encoder, started, &comments)?;
        let mut tags: BTreeMap<(StageId, OpKind), Tags> = BTreeMap::new();
        let mut written = Ok(());
        let mut add = |op: &OpRecord| {
            let tags = tags.entry((op.stage, op.kind)).or_insert_with(|| {
                let latency = log.tag(&self.tag(op));
                Tags { latency, ttfb: None }
            });
            let ns = |time: std::time::Duration| time.as_nanos() as u64;
            log.record(tags.latency, op.end.as_ns(), ns(op.latency()))?;
            let Some(ttfb) = op.ttfb() else { return Ok(()) };
            let tag = *tags.ttfb.get_or_insert_with(|| log.tag(&(self.tag(op) + "/ttfb")));
            log.record(tag, op.end.as_ns(), ns(ttfb))
        };
        self.record().source.scan(&mut |op| {
            if written.is_ok() && op.outcome.is_ok() {
                written = add(op);
            }
        })?;
        written?;
        log.finish()?;
        Ok(to.flush()?)
    }

    /// Returns what tells the stage and the kind of an operation.
    fn tag(&self, op: &OpRecord) -> String {
        format!("{}/{}", self.record().stage_title(op.stage), op.kind.name())
    }
}
