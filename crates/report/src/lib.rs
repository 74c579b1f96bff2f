//! How the result of a run looks: text and HTML for people, JSON for programs.
//!
//! Returns text and values; knows no terminal, no file and no clock.

pub mod aggregated;
pub mod check;
pub mod compare;
pub mod csv;
pub mod fio;
pub mod format;
pub mod html;
pub mod json;
pub mod mdtest;
pub mod proof;
pub mod s3_benchmark;
pub mod segments;
pub mod text;
pub mod warp;
pub mod warp_cmp;
pub mod weka;

mod detail;
mod facts;
mod report;
mod schedule;
mod serial;
mod stage_words;
mod table;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fixture_files;

pub use facts::{
    AdviceLine, CacheState, CertificateLine, CleanupReport, CleanupState, ErrorSample, JobSchedule,
    LoopModel, OpLogCheck, RunState, TargetReport, Verification, VerificationMode,
};
pub use report::{Report, ReportSchema, RowReport, StageReport};
pub use schedule::ScheduleReport;

/// Returns a piece of advice as a sentence.
pub fn advice_text(advice: &plimsoll_analysis::Advice) -> String {
    words::advice(advice)
}
