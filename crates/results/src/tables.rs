//! What the tables of other tools are made of.

use std::time::Duration;

use plimsoll_report::Report;

use crate::asked::Asked;
use crate::clients::Rows;
use crate::error::ResultsError;
use crate::open::Record;

impl Record {
    /// Returns every figure of whole jobs and of each worker, in segments of this length, as the
    /// tables of other tools have them; none where nothing was recorded.
    pub fn report_of_tables(
        &self,
        segment: Duration,
    ) -> Result<(Option<Report>, Option<Report>), ResultsError> {
        let report = |rows| {
            let segment = Some(segment);
            let details = Asked { rows, segment, details: true, ..Asked::default() };
            self.report(&Asked { distributions: true, ..details })
        };
        match report(Rows::Jobs) {
            // It was ended before an operation was counted, such as in a delay.
            Err(ResultsError::Nothing(_)) => Ok((None, None)),
            by_job => Ok((Some(by_job?), report(Rows::Workers).ok())),
        }
    }
}
