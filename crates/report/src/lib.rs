//! How the result of a run looks: text for people, JSON for programs.
//!
//! Returns text and values; knows no terminal, no file and no clock.

pub mod format;
pub mod json;
pub mod text;

mod input;
mod table;
mod words;

#[cfg(test)]
mod fixture;

pub use input::{
    ErrorSample, LoopModel, OpLogCheck, RunReport, RunState, StageWork, Verification,
    VerificationMode,
};

/// Returns a piece of advice as a sentence.
pub fn advice_text(advice: &plimsoll_analysis::Advice) -> String {
    words::advice(advice)
}
