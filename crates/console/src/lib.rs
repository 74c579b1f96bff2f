//! Controller and web console: a queue of workloads, their history, and an API for both.
//!
//! Knows no terminal, no flag and no driver: whoever can run workloads hands a [`Runner`] in.

mod api;
mod archive;
mod clock;
mod console;
mod disk;
mod facts;
mod held;
mod live;
mod names;
mod redact;
mod runner;
mod sample;
mod server;
mod state;
mod store;
mod ticks;
mod triggers;
mod users;

pub use archive::ArchiveRoot;
pub use console::{BoundSecrets, CONFIG_FILE, Console, ConsoleError, Settings, Submitted};
pub use facts::{Correction, Facts, JobPlan, StagePlan, Trigger};
pub use runner::{
    Agent, AgentState, Job, Problem, Refusal, Runner, Severity, Sound, Submission, Verdict,
};
pub use server::{Serve, ServeError, Serving};
pub use state::{Number, SourceKind, State};
pub use store::StoreError;
pub use users::{Users, UsersError};
