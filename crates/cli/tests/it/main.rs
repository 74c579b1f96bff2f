//! The binary as its users meet it: what it prints, what it leaves behind, how it ends.
#![expect(clippy::disallowed_methods, reason = "tests read and write files of their own")]

mod bad_input;
mod faults;
mod harness;
mod live;
mod output;
mod safety;
