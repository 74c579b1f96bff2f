//! What is said of a search that found no load line.

use std::time::Duration;

use plimsoll_analysis::load_line::{CurvePoint, LoadLineAnalysis, LoadLineAsked, ProbeStage};
use plimsoll_model::{JobId, Moment, ProbeRole, StageId};

use super::why_none;

fn point(rate: Option<f64>, is_cut: bool) -> CurvePoint {
    CurvePoint {
        probe: ProbeStage {
            stage: StageId(0),
            rate,
            role: rate.map(|_| ProbeRole::Ramp),
            job: JobId(0),
            started: Moment::EPOCH,
            ended: Moment::EPOCH,
            lasts: Duration::from_secs(1),
            skipped_count: 0,
            is_cut,
            disturbed: Vec::new(),
        },
        due_count: 0,
        failed_count: 0,
        achieved_per_sec: None,
        power_min: None,
        latency_ns_mean: None,
        latency_ns: [None; 3],
        is_overloaded: false,
        is_too_high: None,
        is_missed: false,
        clean_share: 1.0,
        is_disturbed: false,
    }
}

#[test]
fn why_there_is_no_line_is_said_in_words() {
    let asked = LoadLineAsked {
        slos: [].into(),
        precision: 0.05,
        budget: Duration::from_secs(9),
        rate_min: 0.0,
        rate_max: 100.0,
    };
    let (gauge, probe, cut) =
        (point(None, false), point(Some(10.0), false), point(Some(10.0), true));
    let cases = [
        (vec![gauge.clone()], None, None, "before the first probe"),
        (
            vec![gauge.clone(), probe.clone()],
            Some(100.0),
            None,
            "100 ops/s, the highest rate allowed",
        ),
        (vec![probe.clone()], Some(10.0), None, "no rate was too high"),
        (vec![probe.clone()], None, Some(10.0), "not even 10.0 ops/s was carried"),
        (vec![probe.clone()], Some(10.0), Some(20.0), "a longer --budget"),
        // A longer search would not have gone on either.
        (vec![probe.clone(), cut.clone()], Some(10.0), None, "a probe that was cut"),
        (vec![cut, probe], Some(10.0), None, "no rate was too high"),
    ];
    for (points, carried_max, missed_min, expected) in cases {
        let found = LoadLineAnalysis {
            line: None,
            carried_max,
            missed_min,
            capacity: None,
            knee: None,
            metastable: None,
            points,
        };
        let told = why_none(&found, &asked);
        assert!(told.contains(expected), "{told}");
    }
}
