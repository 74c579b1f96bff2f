//! The time line of a run to `summary.json` and back.

use std::collections::BTreeMap;
use std::io::Write;

use plimsoll_model::{EndpointId, ErrorClass, OpKind, SeriesKey, StageId};
use plimsoll_stats::{Cell, CompactHistogram, INTERVALS_PER_STRETCH, SeriesView, Timeline, Times};
use serde::ser::{Error as _, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::schema::{self, StoredHistogram, SummarySchema};
use crate::seal::UNSEALED;

/// Writes a closed time line as a summary, cell by cell, with room for its checksum.
pub(crate) fn write(
    timeline: &Timeline<SeriesKey>,
    to: &mut dyn Write,
) -> Result<(), serde_json::Error> {
    serde_json::to_writer(to, &SummaryOf(timeline))
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
struct SummaryOf<'a>(&'a Timeline<SeriesKey>);

impl Serialize for SummaryOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut summary = serializer.serialize_struct("Summary", 5)?;
        summary.serialize_field("schema", &SummarySchema::default())?;
        summary.serialize_field("origin_ns", &self.0.origin_ns())?;
        summary.serialize_field("interval_ns", &self.0.interval_ns())?;
        summary.serialize_field("lanes", &AllSeries(self.0))?;
        summary.serialize_field("checksum", UNSEALED)?;
        summary.end()
    }
}

struct AllSeries<'a>(&'a Timeline<SeriesKey>);

impl Serialize for AllSeries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.series().map(|(key, series)| SeriesOf { key, series }))
    }
}

/// Serialises as [`schema::Series`].
struct SeriesOf<'a> {
    key: SeriesKey,
    series: SeriesView<'a>,
}

impl Serialize for SeriesOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut series = serializer.serialize_struct("Series", 5)?;
        series.serialize_field("stage", &self.key.stage.0)?;
        series.serialize_field("kind", self.key.kind.name())?;
        series.serialize_field("endpoint", &self.key.endpoint.0)?;
        series.serialize_field("cells", &Cells(self.series))?;
        series.serialize_field("times", &Stretches(self.series.times()))?;
        series.end()
    }
}

struct Cells<'a>(SeriesView<'a>);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = Cell::default();
        let cells = self.0.cells().enumerate().filter(|(_, cell)| *cell != nothing);
        serializer.collect_seq(cells.map(|(index, cell)| CellOf { index, cell }))
    }
}

struct Stretches<'a>(&'a [Times]);

impl Serialize for Stretches<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = Times::default();
        let stretches = self.0.iter().enumerate().filter(|(_, times)| **times != nothing);
        serializer.collect_seq(stretches.map(|(stretch, times)| times_to(stretch, times)))
    }
}

struct CellOf {
    index: usize,
    cell: Cell,
}

impl Serialize for CellOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = cell_to(self.index, &self.cell).map_err(S::Error::custom)?;
        cell.serialize(serializer)
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
