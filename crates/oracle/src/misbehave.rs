//! The script at work on the S3 server: who asks it, and what it says to one request.
//!
//! Without a script nothing of this is reached.

mod lies;
mod timer;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use hyper::http::Extensions;
use plimsoll_model::ErrorClass;
use s3s::{S3Result, s3_error};

pub(crate) use self::lies::{Found, Wanted, class_of_page, told_page};
pub use self::timer::{OracleClock, Timer};
pub use self::wire::{BoxError, Serving, Socket, converse};
use crate::behaviour::{Act, Behaviour, Lie, Request, Verdict};
use crate::ledger::Ledger;

/// One script for all connections of a server. Its time begins when this is made.
pub struct Misbehaviour {
    behaviour: Mutex<Behaviour>,
    /// Its time.
    pub clock: OracleClock,
}

/// A request of which the script makes nothing but an answer.
pub struct Nothing;

/// What the script says to one request: travels with it as an extension, and is filled in by the
/// backend, which knows what the request is about.
#[derive(Clone)]
pub struct Ruling {
    misbehaviour: Arc<Misbehaviour>,
    verdict: Arc<OnceLock<Verdict>>,
}

impl Misbehaviour {
    /// Returns a script that begins now.
    pub fn new(behaviour: Behaviour) -> Self {
        Self { behaviour: Mutex::new(behaviour), clock: OracleClock::start() }
    }

    /// Returns what it has done so far.
    pub fn ledger(&self) -> Ledger {
        self.behaviour().ledger().clone()
    }

    /// Keeps the latency of every operation from now on.
    pub fn keep_latencies(&self) {
        let mut behaviour = self.behaviour();
        *behaviour = behaviour.clone().keeping_latencies();
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().expect("nobody panics while asking the script")
    }
}

impl Misbehaviour {
    /// Returns what becomes of a request that arrives now.
    pub fn decide(
        &self,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> Verdict {
        let mut behaviour = self.behaviour();
        // Read under the lock, so that time does not go back from one request to the next.
        let now = self.clock.now();
        behaviour.decide(now, request, tell)
    }
}

impl Ruling {
    fn new(misbehaviour: &Arc<Misbehaviour>) -> Self {
        Self { misbehaviour: Arc::clone(misbehaviour), verdict: Arc::default() }
    }

    /// Returns the ruling that a request carries where there is a script.
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Asks the script what becomes of a request: `Err` when it comes to nothing here, else the lie
    /// that is to be told. The answer to an `Err` is made on the wire.
    pub fn say(
        &self,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> Result<Option<(Lie, u64)>, Nothing> {
        let verdict = self.verdict.get_or_init(|| self.misbehaviour.decide(request, tell));
        match verdict.act {
            Act::Lie(lie) => Ok(Some((lie, verdict.salt))),
            Act::Serve | Act::HalfBody | Act::WrongLength => Ok(None),
            Act::Status { .. }
            | Act::ResetBefore
            | Act::ErrorInSuccess
            | Act::Silence
            | Act::Io => Err(Nothing),
        }
    }

    /// The same in the words of S3.
    fn ask(
        &self,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> S3Result<Option<(Lie, u64)>> {
        self.say(request, tell).map_err(|Nothing| {
            s3_error!(InternalError, "the script has this request come to nothing")
        })
    }
}
