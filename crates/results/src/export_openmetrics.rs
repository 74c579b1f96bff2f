//! A finished run as OpenMetrics with times: for each second and kind what the live page told, so
//! that a history of runs can be looked at as a run that goes on.

use std::io::{self, BufWriter, Write};

use plimsoll_analysis::OpSource;
use plimsoll_foreign::prometheus::{Exposition, Family, Writer};
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord};
use plimsoll_record::schema::Manifest;

use crate::error::{ExportError, ReadError};
use crate::open::Record;

/// How long an interval is, unless there would be too many of them.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Intervals that a run has at most: beyond them each becomes longer.
const INTERVALS_MAX: u64 = 50_000;
/// Buckets that are told of: powers of two from 1,024 ns to 2^37 ns, 137 s, as the live page has.
const LOG2_MIN: u32 = 10;
const BUCKETS: usize = 28;

const OPERATIONS: Family = Family {
    name: "plimsoll_operations_total",
    kind: "counter",
    help: "Operations ended, by how they ended: ok, or a class of failure.",
};
const BYTES: Family = Family {
    name: "plimsoll_bytes_total",
    kind: "counter",
    help: "Content bytes of successful operations.",
};
const LATENCY: Family = Family {
    name: "plimsoll_latency_seconds",
    kind: "histogram",
    help: "Latency of successful operations, from the intended start to the end.",
};

/// What was counted of one kind in one stage, interval by interval.
struct Series {
    stage: String,
    kind: OpKind,
    /// Where its stage begins and ends, in intervals.
    first: u64,
    intervals: Vec<Counted>,
}

impl Series {
    /// Returns the interval in which an operation ended, and makes those before it.
    fn interval_of(&mut self, end: Moment, interval_ns: u64) -> Result<&mut Counted, ReadError> {
        let at = (end.as_ns() / interval_ns).saturating_sub(self.first);
        // Beyond that, only one number in the record says so.
        if at > 2 * INTERVALS_MAX {
            return Err(ReadError::LateEnd { stage: self.stage.clone(), end_ns: end.as_ns() });
        }
        let at = at as usize;
        if self.intervals.len() <= at {
            // Bound: `INTERVALS_MAX`, twice.
            self.intervals.resize(at + 1, Counted::default());
        }
        Ok(&mut self.intervals[at])
    }
}

/// What ended in an interval.
#[derive(Clone)]
struct Counted {
    ended: [u64; ErrorClass::ALL.len()],
    bytes: u64,
    latency_ns: u64,
    /// By bucket, the last without an end.
    buckets: [u64; BUCKETS + 1],
}

impl Default for Counted {
    fn default() -> Self {
        let (ended, buckets) = ([0; ErrorClass::ALL.len()], [0; BUCKETS + 1]);
        Self { ended, bytes: 0, latency_ns: 0, buckets }
    }
}

impl Counted {
    fn count(&mut self, op: &OpRecord) {
        self.ended[op.outcome as usize] += 1;
        if op.outcome.is_ok() {
            let latency_ns = op.latency().as_nanos() as u64;
            self.bytes += op.bytes;
            self.latency_ns += latency_ns;
            let log2 = latency_ns.saturating_sub(1).max(1).ilog2();
            self.buckets[((log2 + 1).saturating_sub(LOG2_MIN) as usize).min(BUCKETS)] += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        let add = |sum: &mut [u64], more: &[u64]| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        add(&mut self.ended, &other.ended);
        add(&mut self.buckets, &other.buckets);
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
    }
}

/// Writes the run, and returns the highest number of a worker.
pub(crate) fn write(
    record: &Record,
    manifest: &Manifest,
    to: Box<dyn Write + '_>,
) -> Result<u32, ExportError> {
    let (series, interval_ns, worker_max) = counted(record)?;
    let mut out = Out {
        writer: Writer::new(Exposition::OpenMetrics),
        to: BufWriter::new(to),
        run: &manifest.run_id,
        epoch_ns: manifest.started_unix_ns,
        interval_ns,
    };
    out.writer.family(&OPERATIONS);
    for of in &series {
        for class in ErrorClass::ALL {
            let ever = of.intervals.iter().any(|of| of.ended[class as usize] > 0);
            if ever || class.is_ok() {
                out.series(of, &[("outcome", class.name())], |writer, labels, at, sum| {
                    let count = sum.ended[class as usize] as f64;
                    writer.sample(OPERATIONS.name, labels, count, Some(at));
                })?;
            }
        }
    }
    out.writer.family(&BYTES);
    for of in &series {
        out.series(of, &[], |writer, labels, at, sum| {
            writer.sample(BYTES.name, labels, sum.bytes as f64, Some(at));
        })?;
    }
    out.writer.family(&LATENCY);
    for of in &series {
        out.series(of, &[], |writer, labels, at, sum| {
            let ends = (0..BUCKETS as u32).map(|of| Some((1_u64 << (LOG2_MIN + of)) as f64 / 1e9));
            let buckets = ends.chain([None]).zip(sum.buckets);
            let seconds = sum.latency_ns as f64 / 1e9;
            writer.histogram(LATENCY.name, labels, buckets, seconds, Some(at));
        })?;
    }
    out.finish()?;
    Ok(worker_max)
}

/// Returns what each kind of each stage did, the length of an interval, and the highest worker.
fn counted(record: &Record) -> Result<(Vec<Series>, u64, u32), ReadError> {
    let end_ns = record.stages.iter().map(|stage| stage.ended.as_ns()).max().unwrap_or_default();
    let interval_ns = end_ns.div_ceil(INTERVALS_MAX).max(INTERVAL_NS);
    let stages = &record.stages;
    let (mut all, mut worker_max, mut late) = (Vec::<(usize, Series)>::new(), 0, None);
    record.source.scan(&mut |op| {
        worker_max = worker_max.max(op.worker.0);
        let index = usize::from(op.stage.0);
        let position = all.iter().position(|(of, series)| *of == index && series.kind == op.kind);
        let position = position.unwrap_or_else(|| {
            let stage = stages.iter().find(|stage| stage.index == index);
            let begun = stage.map_or(op.start.as_ns(), |stage| stage.started.as_ns());
            let stage = stage.map_or(String::new(), |stage| stage.title.clone());
            let first = begun / interval_ns;
            all.push((index, Series { stage, kind: op.kind, first, intervals: Vec::new() }));
            all.len() - 1
        });
        match all[position].1.interval_of(op.end, interval_ns) {
            Ok(interval) => interval.count(op),
            Err(error) => late = Some(error),
        }
    })?;
    late.map_or(Ok(()), Err)?;
    all.sort_by_key(|(index, series)| (*index, series.kind as usize));
    Ok((all.into_iter().map(|(_, series)| series).collect(), interval_ns, worker_max))
}

/// Where it goes.
struct Out<'a, 'w> {
    writer: Writer,
    to: BufWriter<Box<dyn Write + 'w>>,
    run: &'a str,
    /// The wall time of the run's epoch.
    epoch_ns: u64,
    interval_ns: u64,
}

impl Out<'_, '_> {
    /// Writes a series: the sums at the end of each interval, from zero on.
    fn series(
        &mut self,
        series: &Series,
        more: &[(&str, &str)],
        mut write: impl FnMut(&mut Writer, &[(&str, &str)], u64, &Counted),
    ) -> io::Result<()> {
        let own = [("run", self.run), ("stage", &*series.stage), ("kind", series.kind.name())];
        let labels = [&own[..], more].concat();
        let at = |interval: u64| self.epoch_ns + interval * self.interval_ns;
        let mut sum = Counted::default();
        write(&mut self.writer, &labels, at(series.first), &sum);
        for (index, of) in (1..).zip(&series.intervals) {
            sum.add(of);
            write(&mut self.writer, &labels, at(series.first + index), &sum);
            self.to.write_all(self.writer.take().as_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.to.write_all(self.writer.finish().as_bytes())?;
        self.to.flush()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a record is copied by hand")]
mod tests {
    use plimsoll_record::RunDirectory;

    use super::*;
    use crate::tests::testdata;
    use crate::{Export, ExportFormat};

    #[test]
    fn an_operation_that_ends_in_some_hundred_years_is_refused_with_its_number() {
        let stage = "measure".to_owned();
        let mut series = Series { stage, kind: OpKind::Get, first: 5, intervals: Vec::new() };
        let mut ends = |end_ns| {
            let ended = series.interval_of(Moment::from_ns(end_ns), INTERVAL_NS);
            ended.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(ends(7 * INTERVAL_NS), Ok(()));
        let expected = "an operation of stage `measure` ends at 4611686018427387904 ns of the run, \
                        long after all others; the record is damaged";
        assert_eq!(ends(1 << 62), Err(expected.to_owned()));
        assert_eq!(series.intervals.len(), 3);
    }

    #[test]
    fn stages_of_one_name_have_series_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        std::fs::create_dir_all(run.join("ops")).unwrap();
        let committed = RunDirectory::open(&testdata("s3-get")).unwrap();
        for file in committed.files().unwrap() {
            std::fs::copy(testdata("s3-get").join(&file.name), run.join(&file.name)).unwrap();
        }
        let mut manifest = committed.read_manifest().unwrap();
        manifest.stages.iter_mut().for_each(|stage| stage.name = "main".to_owned());
        RunDirectory::open(&run).unwrap().write_manifest(&manifest).unwrap();
        let record = Record::open(&run).unwrap();
        let export = Export::of(&record).unwrap();
        let written = |format| {
            let mut out = Vec::new();
            export.write(format, Box::new(&mut out)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let metrics = written(ExportFormat::OpenMetrics);
        for kind in ["stage=\"main\",kind=\"PUT\"", "stage=\"main #2\",kind=\"GET\""] {
            assert!(metrics.contains(kind), "{kind}: {metrics}");
        }
        let rows = written(ExportFormat::Csv);
        let of_row = |row: &str| row.split(',').take(2).collect::<Vec<_>>().join(" ");
        let mut stages: Vec<String> = rows.lines().map(of_row).collect();
        stages.dedup();
        assert_eq!(stages, ["stage stage_index", "main 0", "main 1"]);
    }
}
