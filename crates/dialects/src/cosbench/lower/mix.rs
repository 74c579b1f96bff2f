//! Operations by ratio: which set, which of its names, how they are cut among workers.

use plimsoll_workload::plan::spec::{
    Choice, DealBy, DeleteOp, GetOp, ListOp, OpSpec, PickSpec, PutOp, RangeSpec, RangeWithin,
    Share, Shares, StatOp,
};
use plimsoll_workload::plan::{NumberRange, Size};

use super::super::check::Act;
use super::super::error::Refused;
use super::super::model::{Division, Operation, Work};
use super::super::selector::Selector;
use super::{Part, Sets};

/// Returns an operation of a mix.
pub(super) fn op(sets: &Sets, part: &Part, written: &Operation) -> Result<OpSpec, Refused> {
    let (set, weight) = (Sets::name(part.set), written.ratio);
    let name = Some(written.shown());
    let buckets = |selector: &Selector| sets.other_buckets(part.set, selector);
    let keys = |selector: &Selector| sets.other_keys(part.set, selector);
    Ok(match &part.understood.act {
        Act::Read { containers, objects, range } => OpSpec::Get(GetOp {
            get: set,
            weight,
            pick: pick(containers, objects),
            range: range.map(|range| {
                let (length, of) = (Size(range.length), Size(range.of));
                RangeSpec::Within(RangeWithin { length, of })
            }),
            buckets: buckets(containers),
            keys: keys(objects),
            name,
            ..GetOp::default()
        }),
        Act::Write(_) | Act::WriteFiles { .. } => OpSpec::Put(put(sets, part, written)),
        Act::Head { containers, objects } => OpSpec::Stat(StatOp {
            stat: set,
            weight,
            pick: pick(containers, objects),
            buckets: buckets(containers),
            keys: keys(objects),
            name,
            ..StatOp::default()
        }),
        Act::Delete { containers, objects } => OpSpec::Delete(DeleteOp {
            delete: set,
            weight,
            // Without one it would remove all and end.
            pick: pick(containers, objects).or(Some(PickSpec::Member(Choice::Uniform))),
            batch: 1,
            buckets: buckets(containers),
            keys: keys(objects),
            name,
            ..DeleteOp::default()
        }),
        Act::ListAccount => OpSpec::List(ListOp {
            list: set,
            weight,
            page: 1_000,
            account: true,
            name,
            ..ListOp::default()
        }),
        Act::List { containers } => OpSpec::List(ListOp {
            list: set,
            weight,
            page: 1_000,
            pick: Some(PickSpec::InBucket { bucket: choice(containers), key: Choice::Uniform }),
            buckets: buckets(containers),
            name,
            ..ListOp::default()
        }),
        Act::Restore { .. } => {
            let more = "`restore` brings objects back from an archive tier, which is not done \
                        here: leave it out";
            return Err(Refused::new(part.understood.place, more));
        }
        Act::Scan(_) | Act::Pause => {
            let more = format!("`{}` must be alone in its work", written.kind);
            return Err(Refused::new(part.understood.place, more));
        }
    })
}

/// Returns a write: of what is made, or of files.
fn put(sets: &Sets, part: &Part, written: &Operation) -> PutOp {
    let op = PutOp {
        put: Sets::name(part.set),
        weight: written.ratio,
        name: Some(written.shown()),
        ..PutOp::default()
    };
    let buckets = |selector: &Selector| sets.other_buckets(part.set, selector);
    match &part.understood.act {
        Act::Write(write) => PutOp {
            pick: pick(&write.containers, &write.objects),
            size: sets.other_size(part.set, &write.sizes),
            part: write.part.map(Size),
            buckets: buckets(&write.containers),
            keys: sets.other_keys(part.set, &write.objects),
            ..op
        },
        Act::WriteFiles { containers, in_turn, part: part_bytes, .. } => PutOp {
            pick: match (choice(containers), *in_turn) {
                (bucket, true) => Some(PickSpec::InBucket { bucket, key: Choice::Sequential }),
                (Choice::Uniform, false) => None,
                (bucket, false) => Some(PickSpec::InBucket { bucket, key: Choice::Uniform }),
            },
            part: part_bytes.map(Size),
            buckets: buckets(containers),
            ..op
        },
        _ => op,
    }
}

/// Returns how members are picked; `None` where all are alike.
fn pick(containers: &Selector, objects: &Selector) -> Option<PickSpec> {
    let (bucket, key) = (choice(containers), choice(objects));
    (bucket != Choice::Uniform || key != Choice::Uniform)
        .then_some(PickSpec::InBucket { bucket, key })
}

fn choice(selector: &Selector) -> Choice {
    match selector {
        Selector::Constant(_) | Selector::Uniform(_) | Selector::Nothing => Choice::Uniform,
        Selector::Range(span) | Selector::Sequential(span) if span.count() == 1 => Choice::Uniform,
        Selector::Range(_) | Selector::Sequential(_) => Choice::Sequential,
        Selector::Histogram(buckets) => {
            // The numbers of names begin with 1.
            let before = selector.span().map_or(0, |span| span.from - 1);
            let share = buckets.iter().map(|bucket| {
                let (from, to) = (bucket.span.from - before, bucket.span.to - before);
                Share { value: NumberRange { from, to }, weight: bucket.weight }
            });
            Choice::Shares(Shares(share.collect()))
        }
    }
}

/// Returns how a work is cut among its workers.
pub(super) fn deal(work: &Work, parts: &[&Part]) -> Result<DealBy, Refused> {
    let deals: Vec<DealBy> = parts.iter().map(|part| deal_of(part)).collect();
    let first = deals.first().copied().unwrap_or_default();
    let Some(other) = deals.iter().position(|deal| *deal != first) else { return Ok(first) };
    let more = format!(
        "work `{}` cuts its operations among workers in different ways (division, or selectors \
         that are not cut): put them into works of their own",
        work.name
    );
    Err(Refused::new(parts[other].understood.place, more))
}

/// Returns how an operation is cut: only `u` and `r` are.
fn deal_of(part: &Part) -> DealBy {
    let is_cut =
        |selector: &Selector| matches!(selector, Selector::Uniform(_) | Selector::Range(_));
    let (containers, objects) = match &part.understood.act {
        Act::Read { containers, objects, .. }
        | Act::Head { containers, objects }
        | Act::Restore { containers, objects, .. }
        | Act::Delete { containers, objects } => (containers, Some(objects)),
        Act::Write(write) => (&write.containers, Some(&write.objects)),
        Act::WriteFiles { containers, .. } | Act::List { containers } => (containers, None),
        Act::ListAccount | Act::Scan(_) | Act::Pause => return DealBy::default(),
    };
    match part.understood.division {
        Division::Container if is_cut(containers) => DealBy::BucketSlices,
        Division::Object if objects.is_some_and(is_cut) => DealBy::MemberSlices,
        _ => DealBy::default(),
    }
}
