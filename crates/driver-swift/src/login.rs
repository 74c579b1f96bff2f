//! The login that all sessions of a run share: made once, renewed once when its token has expired.

use std::rc::Rc;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use plimsoll_driver::DriverError;
use plimsoll_http::{Body, Client, Options, Request};
use plimsoll_model::{ErrorClass, Moment, Secret, SharedClock};
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::config::{SignIn, SwiftConfig};
use crate::error;
use crate::sign_in::{self, Answered, Asked, Found};

/// More than any catalogue of Keystone's has.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// How long a sign-in may go without moving a byte where nobody says otherwise.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// For how long a sign-in that failed speaks for those that would try the same.
const FAILURE_HOLDS: Duration = Duration::from_secs(1);

/// What requests carry, and which of all tokens that were got it is.
#[derive(Debug)]
pub(crate) struct Ticket {
    number: u64,
    /// `None`: requests carry no token.
    pub(crate) token: Option<Secret>,
    /// Tokens before it, which a server may still repeat.
    past: Vec<Secret>,
}

/// How many tokens before the current one are known.
const PAST_MAX: usize = 16;

impl Ticket {
    /// Returns what no message may hold.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.token.iter().chain(&self.past).cloned().collect()
    }
}

/// A sign-in that failed.
struct Failure {
    /// Which ticket it was to replace.
    number: u64,
    at: Moment,
    error: DriverError,
}

/// The login of a run.
pub(crate) struct Login {
    current: RwLock<Arc<Ticket>>,
    /// Held by whoever signs in; what others of the same need came to.
    gate: Mutex<Option<Failure>>,
}

impl Login {
    pub(crate) fn new(token: Option<Secret>) -> Self {
        let ticket = Arc::new(Ticket { number: 0, token, past: Vec::new() });
        Self { current: RwLock::new(ticket), gate: Mutex::default() }
    }

    /// Returns what requests carry now.
    pub(crate) fn current(&self) -> Arc<Ticket> {
        Arc::clone(&self.current.read().expect("nobody panics while holding it"))
    }

    /// Returns what requests carry from now on, since a server did not accept that ticket: what
    /// somebody else has got meanwhile, else what a sign-in gives.
    pub(crate) async fn renew(
        &self,
        refused: &Ticket,
        config: &SwiftConfig,
        clock: &SharedClock,
    ) -> Result<Arc<Ticket>, DriverError> {
        let mut failure = self.gate.lock().await;
        let current = self.current();
        if current.number != refused.number {
            return Ok(current);
        }
        let holds =
            |of: &&Failure| of.number == current.number && clock.now().since(of.at) < FAILURE_HOLDS;
        if let Some(failure) = failure.as_ref().filter(holds) {
            return Err(failure.error.clone());
        }
        match sign_in(config, clock, &current.secrets()).await {
            Ok(found) => {
                let number = current.number + 1;
                let mut past = current.secrets();
                past.truncate(PAST_MAX);
                let ticket = Arc::new(Ticket { number, token: Some(found.token), past });
                let mut place = self.current.write().expect("nobody panics while holding it");
                *place = Arc::clone(&ticket);
                Ok(ticket)
            }
            Err(error) => {
                let (number, at) = (current.number, clock.now());
                *failure = Some(Failure { number, at, error: error.clone() });
                Err(error)
            }
        }
    }
}

/// Signs in; no message shows the tokens that were got before.
pub(crate) async fn sign_in(
    config: &SwiftConfig,
    clock: &SharedClock,
    past: &[Secret],
) -> Result<Found, DriverError> {
    let Some(Asked { address, head, body }) = sign_in::ask(&config.sign_in)? else {
        let why = match config.sign_in {
            SignIn::Known { token: Some(_) } => {
                "the token that was given is not accepted, and no user is given to sign in as"
            }
            _ => "the store wants a token, and no user is given to sign in as",
        };
        return Err(DriverError::with_status(ErrorClass::Denied, 401, why));
    };
    let options = Options {
        connect_timeout: config.connect_timeout,
        tls: config.tls_for(&address)?,
        stall_timeout: Some(config.stall_timeout.unwrap_or(STALL_TIMEOUT)),
        keep_alive: false,
        allowed: config.allowed.clone(),
        ..Options::default()
    };
    let endpoints = Rc::from([address.endpoint]);
    let mut client = Client::new(endpoints, Rc::new(options), clock.clone());
    let mut answer = Answer::default();
    let sink = answer.expect(ANSWER_BYTES_MAX, sign_in::HEADERS);
    let body = if body.is_empty() { Body::Empty } else { Body::Bytes(&body) };
    let request = Request { head: &head, method_is_head: false, body };
    let outcome = client.exchange(0, request, sink).await;
    outcome.map_err(|failed| {
        let mut error = error::of_exchange(&failed);
        error.message.insert_str(0, "signing in: ");
        error
    })?;
    if answer.overflowed {
        let why = "the answer to the sign-in is longer than any";
        return Err(error::of_success(answer.status, why));
    }
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let answered = Answered { status: answer.status, header: &header, body: &answer.body, past };
    sign_in::read(&config.sign_in, &answered, config.storage.is_none())
}
