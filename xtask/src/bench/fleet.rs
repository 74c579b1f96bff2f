//! `bench fleet`: what a fleet takes, beside what it may. The measuring is the fleet crate's bench.

use anyhow::Result;

use super::machine;
use crate::{process, tools};

/// Names the `nats-server` for the tests, and for this bench.
const NATS_PROGRAM: &str = "PLIMSOLL_TEST_NATS_PROGRAM";

/// Measures on a `nats-server` on loopback, and prints each figure beside its target. `words` are
/// for the bench, which knows them.
pub(crate) fn fleet(words: &[&str]) -> Result<()> {
    let mut bench = process::cargo(&["bench", "-p", "plimsoll-fleet", "--bench", "fleet", "--"]);
    bench.args(words);
    if std::env::var_os(NATS_PROGRAM).is_none() {
        bench.env(NATS_PROGRAM, tools::install_nats()?);
    }
    println!("{}\n", machine());
    process::check(&mut bench, "the bench")
}
