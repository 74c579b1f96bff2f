//! The time line of a run to `summary.json` and back.

mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use plimsoll_model::{EndpointId, ErrorClass, OpKind, OpRecord, SeriesKey, StageId};
use plimsoll_stats::{
    Cell, CompactHistogram, INTERVALS_PER_STRETCH, SeriesView, Stretch, Timeline, Times,
};
use serde::ser::{Error as _, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use self::past::{PAST_NAME, PastFile, Place};
use crate::count::{sample_of, series_of};
use crate::schema::{self, StoredHistogram, SummarySchema};
use crate::seal::{Sealing, UNSEALED};
use crate::{RecordError, RunDirectory};

/// Writes the summary of a run. While the run goes on, what is over of its time line waits on the
/// disk.
#[derive(Debug)]
pub struct SummaryWriter {
    directory: RunDirectory,
    /// `None` as long as nothing is over.
    past: Option<PastFile>,
}

impl SummaryWriter {
    /// Returns the writer for a run of whose time line there is nothing yet.
    pub fn new(directory: &RunDirectory) -> Self {
        Self { directory: directory.clone(), past: None }
    }

    /// Keeps stretches of the time line that are over, out of one that is closed. More may come for
    /// the same ones: it is added.
    pub fn keep(&mut self, past: &Timeline<SeriesKey>) -> Result<(), RecordError> {
        let folder = self.directory.folder();
        let failed = |source| RecordError::io("write", &folder.path_of(PAST_NAME), source);
        let file = match self.past.take() {
            Some(file) => file,
            None => PastFile::create(folder).map_err(failed)?,
        };
        self.past.insert(file).add(past).map_err(failed)
    }

    /// Writes what was kept and the rest as the run's summary, in place of one before. All of it is
    /// never in memory at once.
    pub fn write(&self, rest: &mut Timeline<SeriesKey>) -> Result<(), RecordError> {
        rest.close();
        let summary = SummaryOf { past: self.past.as_ref(), rest };
        let write = |file: &mut dyn io::Write| {
            serde_json::to_writer(&mut *file, &summary)?;
            file.write_all(b"\n")
        };
        self.directory.replace(crate::directory::SUMMARY_NAME, write, Sealing::seal)
    }
}

/// Counts the operations of logs for the summary of a run that is made of them.
#[derive(Debug)]
pub struct SummaryCounter {
    summary: SummaryWriter,
    timeline: Timeline<SeriesKey>,
}

impl SummaryCounter {
    /// Returns the counter for a run of which nothing is counted yet.
    pub fn new(directory: &RunDirectory) -> Self {
        Self { summary: SummaryWriter::new(directory), timeline: Timeline::of_seconds() }
    }

    /// Counts an operation.
    pub fn add(&mut self, op: &OpRecord) -> Result<(), RecordError> {
        let (last, mut past) = (self.timeline.stretch(), None);
        self.timeline.record_and(series_of(op), &sample_of(op), |timeline| {
            past = if timeline.stretch() + 1 < last {
                // Another log begins, and a time line is quick only as long as time goes on.
                Some(timeline.take())
            } else {
                timeline.split_before(timeline.over_before())
            };
        });
        past.map_or(Ok(()), |past| self.summary.keep(&past))
    }

    /// Writes the summary, in place of one before.
    pub fn write(mut self) -> Result<(), RecordError> {
        self.summary.write(&mut self.timeline)
    }
}

/// Returns the time line of a summary.
pub(crate) fn to_timeline(summary: schema::Summary) -> Result<Timeline<SeriesKey>, String> {
    if summary.interval_ns == 0 {
        return Err("its intervals have no length".to_owned());
    }
    let mut timeline = Timeline::new(summary.origin_ns, summary.interval_ns);
    for series in summary.lanes {
        let kind = OpKind::from_name(&series.kind)
            .ok_or_else(|| format!("`{}` is not a kind of operation", series.kind))?;
        let stage = StageId(series.stage);
        let key = SeriesKey { stage, kind, endpoint: EndpointId(series.endpoint) };
        for cell in series.cells {
            let (index, cell) = cell_from(cell)?;
            timeline.insert_cell(key, index, &cell);
        }
        for times in series.times {
            let (stretch, times) = times_from(times)?;
            timeline.insert_times(key, stretch, &times);
        }
    }
    Ok(timeline)
}

/// Serialises as [`schema::Summary`].
struct SummaryOf<'a> {
    past: Option<&'a PastFile>,
    rest: &'a Timeline<SeriesKey>,
}

impl SummaryOf<'_> {
    /// Returns the series of which there is something, in order.
    fn series(&self) -> impl Iterator<Item = io::Result<SeriesOf<'_>>> {
        let mut rest: BTreeMap<SeriesKey, SeriesView<'_>> = self.rest.series().collect();
        let past = self.past.into_iter().flat_map(PastFile::keys);
        let keys: BTreeSet<SeriesKey> = past.chain(rest.keys().copied()).collect();
        keys.into_iter().map(move |key| {
            let past = self.past.map(|file| Ok::<_, io::Error>((file, file.places(key)?)));
            Ok(SeriesOf { key, past: past.transpose()?, rest: rest.remove(&key) })
        })
    }
}

impl Serialize for SummaryOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut summary = serializer.serialize_struct("Summary", 5)?;
        summary.serialize_field("schema", &SummarySchema::default())?;
        summary.serialize_field("origin_ns", &self.rest.origin_ns())?;
        summary.serialize_field("interval_ns", &self.rest.interval_ns())?;
        summary.serialize_field("lanes", &AllSeries(self))?;
        summary.serialize_field("checksum", UNSEALED)?;
        summary.end()
    }
}

struct AllSeries<'a>(&'a SummaryOf<'a>);

impl Serialize for AllSeries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(None)?;
        for series in self.0.series() {
            all.serialize_element(&series.map_err(S::Error::custom)?)?;
        }
        all.end()
    }
}

/// Serialises as [`schema::Series`].
struct SeriesOf<'a> {
    key: SeriesKey,
    /// Where its stretches are in the file.
    past: Option<(&'a PastFile, Vec<Place>)>,
    rest: Option<SeriesView<'a>>,
}

/// What is read of a stretch.
type Read = fn(&PastFile, &Place) -> io::Result<Stretch>;

impl SeriesOf<'_> {
    /// Calls `each` with every stretch in order, what is in the file being read by `read`.
    fn stretches<E: serde::ser::Error>(
        &self,
        read: Read,
        mut each: impl FnMut(usize, &Stretch) -> Result<(), E>,
    ) -> Result<(), E> {
        let past = self.past.iter().flat_map(|(file, places)| {
            places.iter().map(move |place| (place.stretch as usize, file, place))
        });
        let mut past = past.peekable();
        let mut rest = self.rest.into_iter().flat_map(SeriesView::stretches).peekable();
        loop {
            let (first, other) = (past.peek().map(|of| of.0), rest.peek().map(|of| of.0));
            let Some(index) = first.into_iter().chain(other).min() else { return Ok(()) };
            let mut whole = Stretch::default();
            while let Some((_, file, place)) = past.next_if(|(at, ..)| *at == index) {
                whole.merge(&read(file, place).map_err(E::custom)?);
            }
            if let Some((_, stretch)) = rest.next_if(|(at, _)| *at == index) {
                whole.merge(stretch);
            }
            each(index, &whole)?;
        }
    }
}

impl Serialize for SeriesOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut series = serializer.serialize_struct("Series", 5)?;
        series.serialize_field("stage", &self.key.stage.0)?;
        series.serialize_field("kind", self.key.kind.name())?;
        series.serialize_field("endpoint", &self.key.endpoint.0)?;
        series.serialize_field("cells", &Cells(self))?;
        series.serialize_field("times", &Stretches(self))?;
        series.end()
    }
}

struct Cells<'a>(&'a SeriesOf<'a>);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cells = serializer.serialize_seq(None)?;
        self.0.stretches(PastFile::cells, |index, stretch| {
            stretch.cells(index).try_for_each(|(index, cell)| {
                cells.serialize_element(&cell_to(index, &cell).map_err(S::Error::custom)?)
            })
        })?;
        cells.end()
    }
}

struct Stretches<'a>(&'a SeriesOf<'a>);

impl Serialize for Stretches<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut stretches = serializer.serialize_seq(None)?;
        self.0.stretches(PastFile::times, |index, stretch| {
            if stretch.times().is_empty() {
                return Ok(());
            }
            stretches.serialize_element(&times_to(index, stretch.times()))
        })?;
        stretches.end()
    }
}

fn cell_to(index: usize, cell: &Cell) -> Result<schema::Cell, String> {
    let mut ended = BTreeMap::new();
    for (outcome, &count) in cell.ended.iter().enumerate().filter(|(_, count)| **count > 0) {
        let class = u8::try_from(outcome).ok().and_then(ErrorClass::from_number);
        let class = class.ok_or_else(|| format!("outcome {outcome} has no name"))?;
        ended.insert(class.name().to_owned(), count);
    }
    Ok(schema::Cell {
        interval_index: index as u64,
        ended,
        bytes: cell.bytes,
        objects_micro: cell.objects_micro,
    })
}

fn times_to(stretch: usize, times: &Times) -> schema::Times {
    let stored = |histogram: &CompactHistogram| {
        (histogram.count() > 0).then(|| StoredHistogram(histogram.clone()))
    };
    schema::Times {
        interval_index_first: (stretch * INTERVALS_PER_STRETCH) as u64,
        latency_ns: stored(&times.latency),
        ttfb_ns: stored(&times.ttfb),
    }
}

/// The most intervals a series may have: ten years of seconds, so that a damaged index cannot eat
/// the memory.
const INTERVALS_MAX: u64 = 1 << 28;

fn cell_from(file: schema::Cell) -> Result<(usize, Cell), String> {
    let mut cell = Cell { bytes: file.bytes, objects_micro: file.objects_micro, ..Cell::default() };
    for (name, count) in file.ended {
        let class = ErrorClass::from_name(&name)
            .ok_or_else(|| format!("`{name}` is no class of outcomes"))?;
        cell.ended[class as usize] = count;
    }
    Ok((interval(file.interval_index)?, cell))
}

fn times_from(file: schema::Times) -> Result<(usize, Times), String> {
    let first = interval(file.interval_index_first)?;
    if !first.is_multiple_of(INTERVALS_PER_STRETCH) {
        return Err(format!("no stretch of intervals begins at {first}"));
    }
    let histogram =
        |stored: Option<StoredHistogram>| stored.map(|stored| stored.0).unwrap_or_default();
    let times = Times { latency: histogram(file.latency_ns), ttfb: histogram(file.ttfb_ns) };
    Ok((first / INTERVALS_PER_STRETCH, times))
}

fn interval(index: u64) -> Result<usize, String> {
    if index >= INTERVALS_MAX {
        return Err(format!("interval {index} is beyond any run"));
    }
    Ok(index as usize)
}
