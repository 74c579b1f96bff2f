//! What an agent has counted so far, as it travels.

use std::collections::BTreeMap;

use plimsoll_engine::{LATENCY_CELLS, Live, LiveDetail};
use plimsoll_model::{ErrorClass, OpKind};
use serde::{Deserialize, Serialize};

use super::{Held, SeenDoc};

/// What an agent has counted since the stage under way began: sums, so that one that is lost is
/// made up for by the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveDoc {
    /// By kind of operation.
    kinds: BTreeMap<String, KindDoc>,
    /// What stop rules have seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<NewSeen>,
}

/// What stop rules have seen in a part of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSeen {
    /// Of which stage of the run, 0-based.
    pub stage: u64,
    /// Grows with each that is told of the stage.
    pub number: u64,
    /// What.
    pub content: Held<SeenDoc>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KindDoc {
    /// By class: operations ended.
    ended: BTreeMap<String, u64>,
    bytes: u64,
    objects: u64,
    latency_ns: u64,
    ttfb_ns: u64,
    /// By cell: successes of that latency.
    cells: BTreeMap<usize, u64>,
}

impl LiveDoc {
    /// Returns what the counters show, with what stop rules have seen.
    pub fn of(live: &Live, seen: Option<NewSeen>) -> Self {
        let of_kind =
            |kind: &OpKind| Some((kind.name().to_owned(), KindDoc::of(&live.detail(*kind)?)));
        Self { kinds: OpKind::ALL.iter().filter_map(of_kind).collect(), seen }
    }

    /// Has a slot of the counters show it. What this program has no name for is left out.
    pub fn show(&self, live: &Live, slot: usize) {
        for (name, of) in &self.kinds {
            if let Some(kind) = OpKind::from_name(name) {
                live.show(slot, kind, &of.detail());
            }
        }
    }
}

impl KindDoc {
    fn of(detail: &LiveDetail) -> Self {
        let classes = ErrorClass::ALL.iter().zip(detail.ended);
        let classes = classes.filter(|(_, count)| *count > 0);
        let cells = detail.latency_cells.iter().copied().enumerate();
        Self {
            ended: classes.map(|(class, count)| (class.name().to_owned(), count)).collect(),
            bytes: detail.bytes,
            objects: detail.objects,
            latency_ns: detail.latency_ns,
            ttfb_ns: detail.ttfb_ns,
            cells: cells.filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn detail(&self) -> LiveDetail {
        let mut ended = [0; ErrorClass::ALL.len()];
        for (name, count) in &self.ended {
            if let Some(class) = ErrorClass::from_name(name) {
                ended[class as usize] = *count;
            }
        }
        let mut latency_cells = Box::new([0; LATENCY_CELLS]);
        for (cell, count) in &self.cells {
            if let Some(of) = latency_cells.get_mut(*cell) {
                *of = *count;
            }
        }
        LiveDetail {
            ended,
            bytes: self.bytes,
            objects: self.objects,
            latency_ns: self.latency_ns,
            ttfb_ns: self.ttfb_ns,
            latency_cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_as_they_were_and_what_has_no_name_is_left_out() {
        let text = r#"{"kinds": {
            "GET": {"ended": {"ok": 3, "throttled": 1, "unheard-of": 9}, "bytes": 30,
                    "objects": 3, "latency_ns": 4000, "ttfb_ns": 2000,
                    "cells": {"1": 2, "7": 1, "99999": 5}},
            "unheard-of": {"ended": {}, "bytes": 1, "objects": 1, "latency_ns": 1, "ttfb_ns": 1,
                           "cells": {}}}}"#;
        let doc: LiveDoc = serde_json::from_str(text).unwrap();
        let live = Live::new(2);
        doc.show(&live, 1);
        let detail = live.detail(OpKind::Get).unwrap();
        assert_eq!((detail.ended_count(), detail.failed_count(), detail.bytes), (4, 1, 30));
        assert_eq!((detail.latency_cells[1], detail.latency_cells[7]), (2, 1));
        let back = LiveDoc::of(&live, None);
        assert_eq!(back.kinds.len(), 1);
        assert_eq!(back.kinds["GET"].cells, BTreeMap::from([(1, 2), (7, 1)]));
    }
}
