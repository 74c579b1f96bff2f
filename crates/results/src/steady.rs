//! Figures without the warm-up: a first look finds its end, and a second takes what is behind it.

use std::time::Duration;

use plimsoll_report::format;

use crate::analyze::AnalyzedStage;
use crate::asked::Asked;
use crate::error::{AskedFor, ResultsError};
use crate::open::Record;

impl Record {
    /// Returns the figures of each measured stage from the end of its warm-up on. Refuses where it
    /// does not end in the first half, or where there is too little to say.
    pub(crate) fn analyze_steady(&self, asked: &Asked) -> Result<Vec<AnalyzedStage>, ResultsError> {
        let warm_ups = self.warm_ups(asked)?;
        self.analyze(&Asked { steady: false, warm_ups, ..asked.clone() })
    }

    /// Returns by stage of the record how long its warm-up was.
    pub(crate) fn warm_ups(&self, asked: &Asked) -> Result<Vec<Option<Duration>>, ResultsError> {
        // Of all that was done, whatever part of it is asked for.
        let whole = Asked { stage: asked.stage.clone(), ..Asked::default() };
        let mut found = Vec::new();
        for of in self.analyze(&whole)? {
            let stage = &self.stages[of.stage];
            if !self.is_result(stage) {
                continue;
            }
            let refuse = |reason: String| {
                let reason = format!("stage {}: {reason}", stage.title);
                ResultsError::Asked { field: AskedFor::Steady, reason }
            };
            let mut longest = Duration::ZERO;
            for row in &of.analysis.rows {
                let Some(steadiness) = row.steadiness else {
                    return Err(refuse(
                        "a warm-up cannot be found in an open loop, or in fewer than 1,000 \
                        successes"
                            .to_owned(),
                    ));
                };
                let Some(warm_up) = steadiness.warm_up else {
                    let took = format::duration(row.ended.since(row.started));
                    return Err(refuse(format!(
                        "more than half of its {took} would be left out, so it was not steady: \
                        measure for longer"
                    )));
                };
                if !warm_up.is_zero() {
                    // Ramps before it are left out as well.
                    longest = longest.max(steadiness.started_after + warm_up);
                }
            }
            if found.len() <= stage.index {
                // Bound: stages of the record, 256 at most.
                found.resize(stage.index + 1, None);
            }
            found[stage.index] = Some(longest);
        }
        Ok(found)
    }

    /// Returns remarks on what was left out.
    pub(crate) fn steady_notes(&self, asked: &Asked) -> Result<Vec<String>, ResultsError> {
        if !asked.steady {
            return Ok(Vec::new());
        }
        let note = |(index, cut): (usize, Option<Duration>)| {
            let stage = self.stages.iter().find(|stage| stage.index == index)?;
            let cut = format::duration(cut?);
            let took = format::duration(stage.ended.since(stage.started));
            let title = &stage.title;
            Some(format!(
                "the first {cut} of the {took} of stage {title} are left out: its warm-up"
            ))
        };
        Ok(self.warm_ups(asked)?.into_iter().enumerate().filter_map(note).collect())
    }
}
