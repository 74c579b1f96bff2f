//! What a scripted store does with each operation: when it answers, and what it does wrong.
//!
//! Without IO and without a clock: the store asks in order of time, the seed decides, and the
//! [`Ledger`] keeps what was truly done.

mod plant;
mod queue;
pub(crate) mod spoil;

use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind};
use plimsoll_workload::Random;

use self::plant::Planting;
use self::queue::{Bucket, Collapsing, Servers};
use crate::ledger::Ledger;
use crate::script::{KindPlan, Script};

/// When an operation is done that is never answered.
pub const NEVER: Moment = Moment::from_ns(u64::MAX / 2);

/// The code of the error document in a success ([`Act::ErrorInSuccess`]); it is none that says
/// which class of failure it is.
pub const ERROR_IN_SUCCESS_CODE: &str = "UnexpectedContent";

/// The most bytes that [`Act::WrongLength`] adds to the content.
pub const WRONG_LENGTH_EXTRA: u64 = 64;

const SERVICE_DOMAIN: u64 = 0x7365_7276;
const FATE_DOMAIN: u64 = 0x6661_7465;

/// An operation as the store received it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is asked for.
    pub kind: OpKind,
    /// The key, the prefix of a list, or the first key of several.
    pub key: &'a str,
    /// Content bytes of the right answer (get: of the range asked for) or of the request (put).
    pub content_bytes: u64,
    /// What a right client sees if the store does as it should with what it holds: `Ok`, or that
    /// nothing is there, that a range is beyond the end, that an earlier lost write left old
    /// content.
    pub honest: ErrorClass,
}

/// What the store does with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// When it left the queue.
    pub started: Moment,
    /// When the first byte of the answer goes out.
    pub first_byte: Moment,
    /// When the last byte of the answer has gone out; [`NEVER`] for [`Act::Silence`].
    pub done: Moment,
    /// What is answered.
    pub act: Act,
    /// A random number for choices within the act, such as which bit is wrong.
    pub salt: u64,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// What is right.
    Serve,
    /// An error; nothing is done.
    Status {
        /// The HTTP status.
        status: u16,
        /// The error code of S3.
        code: &'static str,
    },
    /// Nothing is done, and the connection is reset before an answer.
    ResetBefore,
    /// The right head, half of the body, and the connection ends.
    HalfBody,
    /// The content and up to [`WRONG_LENGTH_EXTRA`] bytes more, and the head states so.
    WrongLength,
    /// 200 with an error document of the code [`ERROR_IN_SUCCESS_CODE`]; nothing is done.
    ErrorInSuccess,
    /// Nothing is done, and no answer ever comes.
    Silence,
    /// Nothing is done to a file, as its medium fails.
    Io,
    /// Something that looks right and is not.
    Lie(Lie),
}

/// An answer that looks right and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lie {
    /// The content of another object.
    OtherKey,
    /// The content before the last write.
    OldVersion,
    /// The object's content from another offset.
    Shifted,
    /// Zeros.
    Zeroed,
    /// Right up to a point, from there on an older version or another object.
    Torn,
    /// Right but for one bit.
    Flipped,
    /// A write or delete that is acknowledged and not done.
    LostWrite,
    /// The state before the last write or delete.
    StaleRead,
    /// A listing without one of its entries.
    ListOmission,
    /// A listing with an entry too many.
    ListGhost,
    /// A write that is done, and acknowledged with the checksum of other content.
    WrongTag,
    /// A write that is acknowledged and lacks one of its copies.
    LostCopy,
}

impl Lie {
    /// Every lie.
    pub const ALL: [Self; 12] = [
        Self::OtherKey,
        Self::OldVersion,
        Self::Shifted,
        Self::Zeroed,
        Self::Torn,
        Self::Flipped,
        Self::LostWrite,
        Self::StaleRead,
        Self::ListOmission,
        Self::ListGhost,
        Self::WrongTag,
        Self::LostCopy,
    ];

    /// Returns its name in scripts and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherKey => "other_key",
            Self::OldVersion => "old_version",
            Self::Shifted => "shifted",
            Self::Zeroed => "zeroed",
            Self::Torn => "torn",
            Self::Flipped => "flipped",
            Self::LostWrite => "lost_write",
            Self::StaleRead => "stale_read",
            Self::ListOmission => "list_omission",
            Self::ListGhost => "list_ghost",
            Self::WrongTag => "wrong_tag",
            Self::LostCopy => "lost_copy",
        }
    }

    /// Tells whether it is a lie about operations of `kind`.
    pub const fn fits(self, kind: OpKind) -> bool {
        match self {
            Self::LostWrite => matches!(kind, OpKind::Put | OpKind::Delete),
            Self::StaleRead => matches!(kind, OpKind::Get | OpKind::Stat),
            Self::ListOmission | Self::ListGhost => matches!(kind, OpKind::List),
            Self::WrongTag | Self::LostCopy => matches!(kind, OpKind::Put),
            _ => matches!(kind, OpKind::Get | OpKind::Read),
        }
    }
}

/// Tells whether operations of `kind` are on files only.
const fn is_of_files(kind: OpKind) -> bool {
    use OpKind::{Create, Mkdir, Open, Read, Rename, Rmdir, Sync, Unlink, Write};
    matches!(kind, Read | Write | Sync | Create | Open | Unlink | Rename | Mkdir | Rmdir)
}

impl Act {
    /// The store sheds load.
    pub const SLOW_DOWN: Self = Self::Status { status: 503, code: "SlowDown" };

    /// Returns the answer of that status, with the code that S3 gives with it.
    pub const fn status(status: u16) -> Self {
        let code = match status {
            400 => "InvalidRequest",
            401 | 403 => "AccessDenied",
            404 => "NoSuchKey",
            408 => "RequestTimeout",
            409 => "OperationAborted",
            412 => "PreconditionFailed",
            429 => "TooManyRequests",
            501 => "NotImplemented",
            503 => "ServiceUnavailable",
            500..=599 => "InternalError",
            _ => "InvalidArgument",
        };
        Self::Status { status, code }
    }

    /// Returns its name in scripts and ledgers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Serve => "serve",
            _ if *self == Self::SLOW_DOWN => "slow_down",
            Self::Status { .. } => "status",
            Self::ResetBefore => "reset",
            Self::HalfBody => "half_body",
            Self::WrongLength => "wrong_length",
            Self::ErrorInSuccess => "error_in_success",
            Self::Silence => "silence",
            Self::Io => "io",
            Self::Lie(lie) => lie.name(),
        }
    }

    /// Returns what a right client makes of it; of an answer that is right, or a lie, `Ok`.
    pub fn fault_class(self) -> ErrorClass {
        match self {
            _ if self == Self::SLOW_DOWN => ErrorClass::Throttled,
            Self::Status { status, .. } => match status {
                404 => ErrorClass::NotFound,
                401 | 403 => ErrorClass::Denied,
                409 | 412 => ErrorClass::Precondition,
                429 => ErrorClass::Throttled,
                500.. => ErrorClass::Server,
                _ => ErrorClass::Client,
            },
            Self::ResetBefore => ErrorClass::Reset,
            Self::HalfBody | Self::WrongLength => ErrorClass::Truncated,
            Self::ErrorInSuccess => ErrorClass::Protocol,
            Self::Silence => ErrorClass::Timeout,
            Self::Io => ErrorClass::Io,
            Self::Serve | Self::Lie(_) => ErrorClass::Ok,
        }
    }

    /// Tells whether it can happen to operations of `kind`.
    pub(crate) fn fits(self, kind: OpKind) -> bool {
        match self {
            Self::Serve => true,
            Self::Io => is_of_files(kind),
            Self::HalfBody => matches!(kind, OpKind::Get | OpKind::List | OpKind::Read),
            Self::Lie(lie) => lie.fits(kind),
            _ if is_of_files(kind) => false,
            Self::ResetBefore | Self::Silence => true,
            // A delete of what is not there has done what was asked.
            Self::Status { status, .. } => !(status == 404 && kind == OpKind::Delete),
            Self::WrongLength => kind == OpKind::Get,
            Self::ErrorInSuccess => kind != OpKind::Stat,
        }
    }

    /// Tells whether it can happen to this very request, as far as the store's memory has no part
    /// in it.
    fn fits_request(self, request: &Request<'_>) -> bool {
        let content = request.kind != OpKind::Get || request.content_bytes > 0;
        let right = request.honest.is_ok() && content;
        self.fits(request.kind)
            && match self {
                Self::HalfBody | Self::WrongLength => right,
                // What was deleted or never there may be answered as before.
                Self::Lie(Lie::StaleRead) => true,
                Self::Lie(_) => right,
                _ => true,
            }
    }
}

/// How long an operation takes before the script begins.
const RESTING_SERVICE: Duration = Duration::from_micros(1);

/// The script at work.
#[derive(Clone, Debug)]
pub struct Behaviour {
    script: Script,
    servers: Option<Servers>,
    bucket: Option<Bucket>,
    collapsing: Option<Collapsing>,
    planting: Option<Planting>,
    service_random: Random,
    fate_random: Random,
    /// When the script begins; before that everything is served as it should be.
    begun: Option<Moment>,
    last: Moment,
    decided_count: u64,
    keeps_latencies: bool,
    ledger: Ledger,
}

impl Behaviour {
    /// Returns the behaviour that `seed` makes of the script.
    pub fn new(script: &Script, seed: u64) -> Self {
        Self {
            servers: script.servers.map(|count| Servers::new(count, script.queue_max)),
            bucket: script.rate_cap.map(Bucket::new),
            collapsing: script.collapse.map(Collapsing::new),
            planting: script.plant.as_ref().map(|plant| Planting::new(plant, seed)),
            script: script.clone(),
            service_random: Random::new(seed, SERVICE_DOMAIN, 0),
            fate_random: Random::new(seed, FATE_DOMAIN, 0),
            begun: Some(Moment::EPOCH),
            last: Moment::EPOCH,
            decided_count: 0,
            keeps_latencies: false,
            ledger: Ledger::default(),
        }
    }

    /// Makes the ledger keep the latency of every operation that a right client sees succeed.
    pub fn keeping_latencies(mut self) -> Self {
        self.keeps_latencies = true;
        self
    }

    /// Makes it serve everything as it should, in a microsecond and without entering it in the
    /// ledger, until it is told to begin.
    pub fn resting(mut self) -> Self {
        self.begun = None;
        self
    }

    /// Begins with the script, whose time counts from `now`.
    pub fn begin(&mut self, now: Moment) {
        self.begun = Some(now);
    }

    /// Decides about an operation that arrives at `now`, and enters it in the ledger.
    ///
    /// To be called in order of time; a moment before the last one counts as the last one. `tell`
    /// is asked whether the store can tell a lie (with the salt of the verdict): it returns what a
    /// right client must then see, or `None` if the lie cannot be told or would be the truth.
    pub fn decide(
        &mut self,
        now: Moment,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> Verdict {
        let Some(begun) = self.begun else {
            let done = now.after(RESTING_SERVICE);
            return Verdict { started: now, first_byte: done, done, act: Act::Serve, salt: 0 };
        };
        let since = Moment::from_ns(now.as_ns().saturating_sub(begun.as_ns()));
        let verdict = self.decide_since(since, request, tell);
        let at = |since: Moment| since.after(begun.since(Moment::EPOCH)).min(NEVER);
        Verdict {
            started: at(verdict.started),
            first_byte: at(verdict.first_byte),
            done: at(verdict.done),
            ..verdict
        }
    }

    /// The same with the time since the script began.
    fn decide_since(
        &mut self,
        now: Moment,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> Verdict {
        let now = now.max(self.last);
        self.last = now;
        let spared = self.decided_count < self.script.grace_count;
        self.decided_count += 1;
        if !spared && self.turns_away(now) {
            let done = Moment::from_ns(self.finish(now.as_ns(), self.script.refusal_ns));
            let verdict =
                Verdict { started: now, first_byte: done, done, act: Act::SLOW_DOWN, salt: 0 };
            self.enter(now, request, &verdict, ErrorClass::Throttled);
            return verdict;
        }
        let (act, class, salt) = match spared {
            true => (Act::Serve, request.honest, 0),
            false => self.choose(request, tell),
        };
        let (started, first_byte, done) = self.serve(now.as_ns(), request);
        let done = if act == Act::Silence { NEVER } else { Moment::from_ns(done) };
        let (started, first_byte) = (Moment::from_ns(started), Moment::from_ns(first_byte));
        let verdict = Verdict { started, first_byte, done, act, salt };
        self.enter(now, request, &verdict, class);
        verdict
    }

    /// Returns what was truly done so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Tells whether some lie may be told, so that the store has to remember what was before.
    pub fn tells_lies(&self) -> bool {
        self.script.tells_lies()
    }

    fn turns_away(&mut self, now: Moment) -> bool {
        let full = self.servers.as_mut().is_some_and(|servers| servers.is_full(now.as_ns()));
        full || self.bucket.as_mut().is_some_and(|bucket| !bucket.lets_in(now.as_ns()))
    }

    /// Returns what is answered, what a right client must see, and the salt.
    fn choose(
        &mut self,
        request: &Request<'_>,
        tell: &mut dyn FnMut(Lie, u64) -> Option<ErrorClass>,
    ) -> (Act, ErrorClass, u64) {
        let mut class_of = |act: Act, salt: u64| match act {
            _ if !act.fits_request(request) => None,
            Act::Lie(lie) => tell(lie, salt),
            _ => Some(act.fault_class()),
        };
        if let Some(planting) = &mut self.planting
            && let Some((act, class, salt)) = planting.offer(request, &mut class_of)
        {
            return (act, class, salt);
        }
        let KindPlan { mix, .. } = self.script.plan(request.kind);
        if !mix.is_empty() {
            let unit = self.fate_random.unit();
            if let Some((_, act)) = mix.iter().find(|(up_to, _)| unit < *up_to) {
                let salt = self.fate_random.next_u64();
                if let Some(class) = class_of(*act, salt) {
                    return (*act, class, salt);
                }
            }
        }
        (Act::Serve, request.honest, 0)
    }

    /// Returns when the service of an operation begins, when its first byte goes out and when its
    /// last.
    fn serve(&mut self, now: u64, request: &Request<'_>) -> (u64, u64, u64) {
        let free = self.servers.as_mut().map_or(now, |servers| servers.take(now));
        let started = self.finish(free, 0);
        let brownouts = self.script.brownouts.iter().filter(|brownout| brownout.covers(started));
        let brownout: f64 = brownouts.map(|brownout| brownout.factor).product();
        let collapsed = self.collapsing.as_mut().map_or(1.0, |of| of.factor(now, started));
        let unit = self.service_random.unit();
        let service = &self.script.plan(request.kind).service;
        let (first, whole) =
            service.work(unit, request.content_bytes, started, brownout * collapsed);
        let (first_byte, done) = (self.finish(started, first), self.finish(started, whole));
        if let Some(servers) = &mut self.servers {
            servers.give_back(started, done);
        }
        (started, first_byte, done)
    }

    /// Returns when `work` ns of work are done that begin at `from`.
    fn finish(&self, from: u64, work: u64) -> u64 {
        let done = match self.script.stall {
            None => from.saturating_add(work),
            Some(stall) => stall.finish(from, work),
        };
        done.min(NEVER.as_ns())
    }

    fn enter(&mut self, now: Moment, request: &Request<'_>, verdict: &Verdict, class: ErrorClass) {
        if (request.kind, verdict.act) == (OpKind::Put, Act::Lie(Lie::LostWrite)) {
            self.ledger.lose(request.key);
        }
        if class.is_ok() && self.keeps_latencies {
            self.ledger.ended.push(verdict.done);
        }
        let entry = self.ledger.of_mut(request.kind);
        entry.count(class, verdict.act);
        if class.is_ok() {
            entry.content_bytes += request.content_bytes;
            if self.keeps_latencies {
                entry.latencies_ns.push(verdict.done.as_ns() - now.as_ns());
            }
        }
    }
}

#[cfg(test)]
mod tests;
