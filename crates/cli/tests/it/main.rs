//! The binary as its users meet it: what it prints, what it leaves behind, how it ends.
#![expect(clippy::disallowed_methods, reason = "tests read and write files of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod analysis;
mod as_warp;
mod autoterm;
mod bad_input;
mod buckets;
mod check;
mod consent;
mod console;
mod console_fleet;
mod console_pages;
mod console_runs;
mod cosbench;
mod cosbench_samples;
mod faults;
mod files;
mod fleet;
mod fleet_clients;
mod fleet_faults;
mod fleet_files;
mod fleet_partitions;
mod fleet_phases;
mod fleet_secrets;
mod foreign;
mod harness;
mod judged;
mod live;
mod live_filer;
mod live_s3;
mod live_swift;
mod live_weed;
mod live_weed_clusters;
mod oracle_script;
mod output;
mod proof;
mod records;
mod replay;
mod s3_benchmark;
mod safety;
mod safety_s3;
mod secrets;
mod signals;
mod telemetry;
mod weed_benchmark;
mod workloads;
