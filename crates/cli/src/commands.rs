//! One file per command.

pub(crate) mod analyze;
pub(crate) mod check;
pub(crate) mod clean;
mod clean_bucket;
pub(crate) mod compare;
pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod fio;
pub(crate) mod mdtest;
pub(crate) mod merge;
pub(crate) mod null;
pub(crate) mod oracle;
pub(crate) mod prove;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod s3;
pub(crate) mod s3_benchmark;
pub(crate) mod warp;
