//! How the result of a run looks: text and HTML for people, JSON for programs.
//!
//! Returns text and values; knows no terminal, no file and no clock.

pub mod check;
pub mod compare;
pub mod csv;
pub mod format;
pub mod html;
pub mod json;
pub mod proof;
pub mod segments;
pub mod table;
pub mod text;
pub mod verdict;
pub mod weka;

mod agents;
mod crimes;
mod detail;
mod events;
mod facts;
mod ledger;
mod load_line;
mod read_back;
mod report;
mod schedule;
mod scraped;
mod serial;
mod stage_words;
mod steps;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fixture_files;

pub use agents::{AgentReport, LossReport, lost};
pub use crimes::crime_line;
pub use events::EventReport;
pub use facts::{
    AdviceLine, CertificateLine, CleanupReport, CleanupState, ErrorSample, JobSchedule, LoopModel,
    OpLogCheck, ProcessUsage, RunState, RunVerdict, TargetReport, Verification, VerificationMode,
};
pub use load_line::{KneeFigure, LineFigure, LoadLineReport, MetastableFigure, ProbeFigure};
pub use read_back::{ReadBackObject, ReadBackReport};
pub use report::{Report, ReportSchema, RowReport, StageReport};
pub use schedule::{QueueTheory, ScheduleReport};
pub use scraped::{ScrapedMetric, ScrapedPageReport, ScrapedReport, ScrapedValues};
pub use stage_words::{name as stage_name, numbered_title, numbers_of_titles, stage_title};
pub use words::{joined, state_warning};

/// Returns a piece of advice as a sentence.
pub fn advice_text(advice: &plimsoll_analysis::Advice) -> String {
    words::advice(advice)
}
