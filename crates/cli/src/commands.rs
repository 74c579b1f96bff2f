//! One file per command.

pub(crate) mod clean;
pub(crate) mod null;
pub(crate) mod oracle;
pub(crate) mod s3;
