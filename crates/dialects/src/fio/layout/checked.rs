//! What a stage read back to check a job goes into the row of that job, as fio has it.

use std::borrow::Cow;

use plimsoll_stats::Histogram;

use super::queue::together;
use super::{FioCpu, FioDirection, FioRecord};

/// Rows in their order, and the rows of what was read back.
#[derive(Default)]
pub(super) struct Checked<'a> {
    rows: Vec<FioRecord<'a>>,
    read_back: Vec<FioRecord<'a>>,
}

impl<'a> Checked<'a> {
    /// Takes a row, or one of a stage that reads back what jobs before it have written.
    pub(super) fn add(&mut self, record: FioRecord<'a>, verifies: bool) {
        if !verifies {
            self.settle();
        }
        let rows = if verifies { &mut self.read_back } else { &mut self.rows };
        rows.push(record);
    }

    /// Returns the rows.
    pub(super) fn finish(mut self) -> Vec<FioRecord<'a>> {
        self.settle();
        self.rows
    }

    /// Gives each row what was read back for it: clones get equal shares, in their order.
    fn settle(&mut self) {
        let read_back = std::mem::take(&mut self.read_back);
        for (at, record) in read_back.iter().enumerate() {
            let is_same = |row: &FioRecord<'_>| {
                (&row.name, row.whose, row.group) == (&record.name, record.whose, record.group)
            };
            let count = read_back.iter().filter(|row| is_same(row)).count();
            let number = read_back[..at].iter().filter(|row| is_same(row)).count();
            let of = self.rows.iter().enumerate().filter(|(_, row)| is_same(row));
            let of: Vec<usize> = of.map(|(at, _)| at).collect();
            match of.get(number * of.len() / count.max(1)) {
                Some(&at) => add_to(&mut self.rows[at], record),
                None => self.rows.push(record.clone()),
            }
        }
    }
}

fn add_to(row: &mut FioRecord<'_>, read_back: &FioRecord<'_>) {
    row.cpu = cpu(row, read_back);
    if row.error == 0 {
        row.error = read_back.error;
    }
    row.errors_count += read_back.errors_count;
    row.elapsed_s = row.elapsed_s.max(read_back.elapsed_s);
    row.job_runtime_ms += read_back.job_runtime_ms;
    add(&mut row.read, &read_back.read);
    add(&mut row.write, &read_back.write);
    for (to, from) in [
        (&mut row.depths.level, read_back.depths.level),
        (&mut row.depths.submit, read_back.depths.submit),
        (&mut row.depths.complete, read_back.depths.complete),
    ] {
        *to = to.zip(from).map(|(to, from)| together(to, from));
    }
}

/// Returns what both cost: shares by their times.
fn cpu(a: &FioRecord<'_>, b: &FioRecord<'_>) -> FioCpu {
    let (first, second) = (a.job_runtime_ms as f64, b.job_runtime_ms as f64);
    let mean = |a: f64, b: f64| match first + second {
        0.0 => a,
        sum => (a * first + b * second) / sum,
    };
    let (a, b) = (a.cpu, b.cpu);
    FioCpu {
        user_percent: mean(a.user_percent, b.user_percent),
        system_percent: mean(a.system_percent, b.system_percent),
        context_switches: a.context_switches + b.context_switches,
        major_faults: a.major_faults + b.major_faults,
        minor_faults: a.minor_faults + b.minor_faults,
    }
}

fn add(to: &mut FioDirection<'_>, from: &FioDirection<'_>) {
    if from.ops == 0 && from.short_ops == 0 {
        return;
    }
    to.bytes += from.bytes;
    // A row without operations on a side has the time of the others.
    to.runtime_ms = if to.ops == 0 { from.runtime_ms } else { to.runtime_ms + from.runtime_ms };
    to.ops += from.ops;
    to.short_ops += from.short_ops;
    to.dropped_ops += from.dropped_ops;
    merge(&mut to.slat, &from.slat);
    merge(&mut to.clat, &from.clat);
    merge(&mut to.lat, &from.lat);
    to.bw_kib_per_sec.extend(&from.bw_kib_per_sec);
    to.iops.extend(&from.iops);
}

fn merge(to: &mut Option<Cow<'_, Histogram>>, from: &Option<Cow<'_, Histogram>>) {
    match (to, from) {
        (Some(to), Some(from)) => to.to_mut().merge(from),
        (to @ None, Some(from)) => *to = Some(Cow::Owned(from.clone().into_owned())),
        (_, None) => {}
    }
}
