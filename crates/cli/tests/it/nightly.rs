//! What takes too long for each change, or needs more than one server of each kind: only
//! `cargo xtask nightly` runs it.

mod console_pages;
mod cosbench_samples;
mod live;
mod live_filer;
mod live_s3;
mod live_swift;
mod live_weed;
mod live_weed_clusters;
