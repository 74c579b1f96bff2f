//! How the result of a run looks: text and HTML for people, JSON for programs.
//!
//! Returns text and values; knows no terminal, no file and no clock.

pub mod aggregated;
pub mod check;
pub mod compare;
pub mod fio;
pub mod format;
pub mod html;
pub mod json;
pub mod mdtest;
pub mod phases;
pub mod proof;
pub mod s3_benchmark;
pub mod segments;
pub mod text;
pub mod warp;
pub mod warp_cmp;

mod detail;
mod input;
mod schedule;
mod table;
mod words;

#[cfg(test)]
mod fixture;

pub use input::{
    CertificateLine, ErrorSample, LoopModel, OpLogCheck, RunReport, RunState, StageWork,
    Verification, VerificationMode,
};
pub use schedule::ScheduleReport;

/// Returns a piece of advice as a sentence.
pub fn advice_text(advice: &plimsoll_analysis::Advice) -> String {
    words::advice(advice)
}
