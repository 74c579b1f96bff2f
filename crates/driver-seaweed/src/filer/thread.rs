//! What the sessions of a thread share: where filers are, the queries and the tokens.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use plimsoll_http::{Client, Endpoint, Options};
use plimsoll_model::{Moment, SharedClock, WallTime};

use super::config::FilerConfig;
use super::path;
use crate::{SigningKeys, token};

/// For how long a token is used again; it is valid for longer than that and any operation.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(60);

/// What a token is for.
#[derive(Clone, Copy)]
pub(super) enum TokenFor {
    Read,
    /// Or a removal.
    Write,
}

/// A key and the token that was signed by it last.
struct Signer {
    key: hmac::Key,
    last: RefCell<Option<(Moment, Rc<str>)>>,
}

/// What the sessions of a thread share.
pub(super) struct FilerThread {
    pub(super) config: Arc<FilerConfig>,
    pub(super) clock: SharedClock,
    /// The wall time of the clock's epoch.
    wall_epoch: WallTime,
    options: Rc<Options>,
    endpoints: Rc<[Endpoint]>,
    /// The filers' names in requests.
    pub(super) hosts: Vec<String>,
    /// The path of the directory.
    pub(super) root: String,
    pub(super) put_query: String,
    readers: Option<Signer>,
    writers: Option<Signer>,
    no_token: Rc<str>,
}

impl FilerThread {
    /// Returns what the sessions of a thread share; `stall` is how long a request may go without
    /// moving a byte, where that is not for the caller to say.
    pub(super) fn new(
        config: &Arc<FilerConfig>,
        clock: &SharedClock,
        wall_epoch: WallTime,
        stall: Option<Duration>,
    ) -> Self {
        let options = Options {
            connect_timeout: config.connect_timeout,
            tls: config.tls.clone(),
            stall_timeout: stall,
            transport: config.transport,
            ..Options::default()
        };
        let signer = |key: &Vec<u8>| Signer {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            last: RefCell::default(),
        };
        let SigningKeys { write, read } = &config.keys;
        let (writers, readers) = (write.as_ref().map(signer), read.as_ref().map(signer));
        let tls = config.tls.is_some();
        let mut root = String::new();
        path::push(&mut root, &config.directory);
        Self {
            clock: clock.clone(),
            wall_epoch,
            options: Rc::new(options),
            endpoints: config.filers.clone().into(),
            hosts: config.filers.iter().map(|filer| filer.authority(tls)).collect(),
            root,
            put_query: config.put_query(),
            readers,
            writers,
            no_token: "".into(),
            config: Arc::clone(config),
        }
    }

    /// Returns a client that has no connection yet.
    pub(super) fn client(&self) -> Client {
        Client::new(Rc::clone(&self.endpoints), Rc::clone(&self.options), self.clock.clone())
    }

    /// Returns a token, empty where no key is given.
    pub(super) fn token(&self, of: TokenFor) -> Rc<str> {
        let signer = match of {
            TokenFor::Read => &self.readers,
            TokenFor::Write => &self.writers,
        };
        let Some(signer) = signer else { return Rc::clone(&self.no_token) };
        let now = self.clock.now();
        let mut last = signer.last.borrow_mut();
        let is_young = |signed: &Moment| now.since(*signed) < TOKEN_AGE_MAX;
        if let Some((_, token)) = last.as_ref().filter(|(signed, _)| is_young(signed)) {
            return Rc::clone(token);
        }
        let wall_time = self.wall_epoch.after(now.since(Moment::EPOCH));
        let token: Rc<str> = token::sign(&signer.key, None, wall_time).into();
        *last = Some((now, Rc::clone(&token)));
        token
    }
}
