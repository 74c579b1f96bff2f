//! What is likely to be meant otherwise than it is written.

use super::super::check::{Act, Affixes, Scan, Understood};
use super::super::error::Notes;
use super::super::model::{WorkKind, Workload};
use super::super::selector::{Selector, Span};
use super::Part;

/// Of more operations than this names are not held against each other.
const PARTS_MAX: usize = 2_000;

/// Notes each.
pub(super) fn note(workload: &Workload, parts: &[Part], notes: &mut Notes) {
    for stage in &workload.stages {
        if stage.is_delay() && stage.name != "delay" {
            let text = format!(
                "stage `{}` waits; COSBench ends a workload at delay work in a stage that is not \
                 called delay",
                stage.name
            );
            notes.add(Some(stage.place.line), text);
        }
        for work in stage.works.iter().filter(|work| work.kind == WorkKind::Normal) {
            let line = Some(work.place.line);
            if work.total_ops > 0 && work.total_ops < work.workers {
                let text = format!(
                    "totalOps={} is less than {} workers: so many operations are done, where \
                     COSBench goes on without end",
                    work.total_ops, work.workers
                );
                notes.add(line, text);
            } else if work.total_ops % work.workers.max(1) != 0 {
                let text = format!(
                    "totalOps={} are done in all, where COSBench does {}",
                    work.total_ops,
                    work.total_ops / work.workers * work.workers
                );
                notes.add(line, text);
            }
            if work.runtime_s == 0 && work.rampup_s + work.rampdown_s > 0 {
                notes.add(line, "rampup and rampdown are ignored without runtime, as there");
            }
            if work.runtime_s > 0 && work.rampup_s > 0 && work.total_ops > 0 {
                notes.add(line, "operations of the rampup count for totalOps too");
            }
            if work.bytes_per_sec_max.is_some() && work.iops_max.is_some() {
                notes.add(line, "maxBW is ignored beside maxIOPS");
            } else if work.bytes_per_sec_max.is_some() && work.operations.len() > 1 {
                notes.add(line, "maxBW caps reads and writes each by itself");
            }
        }
    }
    for part in parts {
        sizes(part, notes);
        // Each is held against all others.
        if parts.len() > PARTS_MAX {
            continue;
        }
        uncovered(part, parts, notes);
        overlapping(part, parts, notes);
    }
}

fn line(part: &Part) -> Option<u32> {
    Some(part.understood.place.line)
}

/// Notes sizes that are not drawn as they are written.
fn sizes(part: &Part, notes: &mut Notes) {
    let sizes = match &part.understood.act {
        Act::Write(write) => Some(&write.sizes),
        Act::Scan(Scan { sizes, .. }) => sizes.as_ref(),
        _ => None,
    };
    if let Some(Selector::Range(_) | Selector::Sequential(_)) = sizes.map(|of| &of.selector) {
        notes.add(line(part), "sizes by r or s are drawn, each as often as the next");
    }
}

/// The names that an operation is about.
struct Names<'a> {
    target: usize,
    containers: &'a Affixes,
    objects: &'a Affixes,
    buckets: Span,
    keys: Span,
}

impl<'a> Names<'a> {
    fn of(part: &'a Part, containers: &Selector, objects: &Selector) -> Option<Self> {
        let Understood { containers: before, objects: of, .. } = &part.understood;
        Some(Self {
            target: part.target,
            containers: before,
            objects: of,
            buckets: containers.span()?,
            keys: objects.span()?,
        })
    }

    fn read(part: &'a Part) -> Option<Self> {
        match &part.understood.act {
            Act::Read { containers, objects, .. } => Self::of(part, containers, objects),
            _ => None,
        }
    }

    fn written(part: &'a Part) -> Option<Self> {
        match &part.understood.act {
            Act::Write(write) => Self::of(part, &write.containers, &write.objects),
            Act::Scan(scan) if scan.writes() => Self::of(part, &scan.containers, &scan.objects),
            _ => None,
        }
    }

    fn are_alike(&self, other: &Self) -> bool {
        (self.target, self.containers, self.objects)
            == (other.target, other.containers, other.objects)
    }

    fn meet(&self, other: &Self) -> bool {
        self.are_alike(other) && self.buckets.meets(other.buckets) && self.keys.meets(other.keys)
    }

    fn cover(&self, other: &Self) -> bool {
        self.are_alike(other) && self.buckets.covers(other.buckets) && self.keys.covers(other.keys)
    }
}

/// Notes a read of what nothing has written.
fn uncovered(part: &Part, parts: &[Part], notes: &mut Notes) {
    let Some(read) = Names::read(part) else { return };
    let before = parts.iter().filter(|other| other.stage <= part.stage);
    let written: Vec<Names<'_>> = before.filter_map(Names::written).collect();
    // Objects of a workload that writes none were there before.
    if written.is_empty() || written.iter().any(|written| written.cover(&read)) {
        return;
    }
    let text = match written.iter().any(|written| written.meet(&read)) {
        true => "it reads objects of which no earlier stage writes some",
        false => "it reads objects that no earlier stage writes: have they been there before?",
    };
    notes.add(line(part), text);
}

/// Notes a read of what is deleted at the same time.
fn overlapping(part: &Part, parts: &[Part], notes: &mut Notes) {
    let Act::Delete { containers, objects } = &part.understood.act else { return };
    let Some(deleted) = Names::of(part, containers, objects) else { return };
    let beside = parts.iter().filter(|other| other.stage == part.stage);
    if beside.filter_map(Names::read).any(|read| read.meet(&deleted)) {
        let text = "it deletes objects that are read in the same stage, so reads may find none";
        notes.add(line(part), text);
    }
}
