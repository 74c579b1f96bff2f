//! Targets in virtual time that a script rules.

use std::sync::Arc;

use plimsoll_model::{Moment, Seed};
use plimsoll_oracle::{Behaviour, Script, ScriptedDriver, ScriptedFiles};

use crate::RunTime;

/// A store and files in virtual time.
#[derive(Clone)]
pub struct Scripted {
    /// The store.
    pub driver: ScriptedDriver,
    /// The files.
    pub files: ScriptedFiles,
}

impl Scripted {
    /// Returns what behaves as the script says, once it has begun.
    pub fn new(script: &Script, seed: Seed, time: &RunTime, keeps_latencies: bool) -> Self {
        let behaviour = || {
            let behaviour = Behaviour::new(script, seed.0).resting();
            if keeps_latencies { behaviour.keeping_latencies() } else { behaviour }
        };
        let files = ScriptedFiles::new(behaviour(), Arc::clone(&time.clock), true);
        Self { driver: ScriptedDriver::new(behaviour()), files }
    }

    /// Begins with the script.
    pub fn begin(&self, now: Moment) {
        self.driver.begin(now);
        self.files.begin(now);
    }
}
