//! Who asks, and keys that are replaced while sessions go on.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plimsoll_model::Secret;

use crate::ConfigError;
use crate::config::check_plain;

/// Who asks. Its `Debug` form holds no secret.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Nobody: requests are not signed.
    Anonymous,
    /// An access key.
    Keys(SharedKeys),
}

impl Credentials {
    /// Returns keys that stay what they are.
    pub fn keys(access_key: &str, secret_key: &str, session_token: Option<&str>) -> Self {
        let secret = |text: &str| Secret::from(text.to_owned());
        Self::Keys(SharedKeys::new(Keys {
            access_key: access_key.to_owned(),
            secret_key: secret(secret_key),
            session_token: session_token.map(secret),
            source: None,
        }))
    }

    /// Returns the keys that requests are signed with from now on.
    pub fn current(&self) -> Option<Arc<Keys>> {
        match self {
            Self::Anonymous => None,
            Self::Keys(keys) => Some(keys.current().1),
        }
    }
}

/// An access key. Its `Debug` form holds no secret.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The public name of the key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// The token that goes with a temporary key.
    pub session_token: Option<Secret>,
    /// Where they are from, as messages say it.
    pub source: Option<String>,
}

impl Keys {
    /// Returns what no message may hold.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret> {
        self.session_token.iter().chain([&self.secret_key]).cloned()
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.access_key.is_empty() {
            return Err(ConfigError::EmptyKey("access key"));
        }
        if self.secret_key.expose().is_empty() {
            return Err(ConfigError::EmptyKey("secret key"));
        }
        check_plain("access key", "`access_key`", &self.access_key)?;
        match &self.session_token {
            Some(token) => check_plain("session token", "`session_token`", token.expose()),
            None => Ok(()),
        }
    }
}

/// Keys that all sessions of a driver sign with, and that may be replaced meanwhile.
///
/// A session looks at a number before it signs; only where that has changed does it take a lock and
/// make ready to sign with the new keys.
#[derive(Clone)]
pub struct SharedKeys(Arc<Shared>);

struct Shared {
    /// How often the keys were replaced.
    generation: AtomicU64,
    keys: Mutex<(u64, Arc<Keys>)>,
    /// Secrets of keys that were replaced, which a store may still repeat.
    past: Mutex<VecDeque<Secret>>,
}

/// How many secrets of replaced keys are known; those of still older ones have long expired.
const PAST_MAX: usize = 32;

impl SharedKeys {
    /// Returns keys to begin with.
    pub fn new(keys: Keys) -> Self {
        let keys = Mutex::new((0, Arc::new(keys)));
        Self(Arc::new(Shared { generation: AtomicU64::new(0), keys, past: Mutex::default() }))
    }

    /// Has every request be signed with these keys that is rendered from now on. Keys that no
    /// request can hold are refused, and the old ones stay.
    pub fn replace(&self, keys: Keys) -> Result<(), ConfigError> {
        keys.check()?;
        let mut held = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut past = self.0.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.extend(held.1.secrets());
        while past.len() > PAST_MAX {
            past.pop_front();
        }
        *held = (held.0 + 1, Arc::new(keys));
        self.0.generation.store(held.0, Ordering::Release);
        Ok(())
    }

    /// Returns how often the keys were replaced.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Returns the keys, and how often they were replaced before.
    pub fn current(&self) -> (u64, Arc<Keys>) {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what no message may hold: secrets of these keys and of those before.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let past = self.0.past.lock().unwrap_or_else(PoisonError::into_inner).clone();
        past.into_iter().chain(self.current().1.secrets()).collect()
    }

    /// Returns a handle by which they can be replaced as long as anybody signs with them.
    pub fn downgrade(&self) -> WeakKeys {
        WeakKeys(Arc::downgrade(&self.0))
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.current().1, f)
    }
}

/// [`SharedKeys`] as long as anybody signs with them.
pub struct WeakKeys(Weak<Shared>);

impl WeakKeys {
    /// Returns the keys; `None` where nobody signs with them any more.
    pub fn upgrade(&self) -> Option<SharedKeys> {
        self.0.upgrade().map(SharedKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(access: &str, token: Option<&str>) -> Keys {
        Keys {
            access_key: access.to_owned(),
            secret_key: Secret::from("hush-secret".to_owned()),
            session_token: token.map(|token| Secret::from(token.to_owned())),
            source: None,
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let text = format!("{:?}", Credentials::keys("AKID", "hush-secret", Some("hush-token")));
        assert!(text.contains("AKID") && !text.contains("hush"), "{text}");
    }

    #[test]
    fn secrets_of_keys_that_were_replaced_stay_known() {
        let shared = SharedKeys::new(keys("A0", Some("t0")));
        for number in 1..50 {
            shared.replace(keys("A", Some(&format!("t{number}")))).unwrap();
        }
        let known = shared.secrets();
        let known: Vec<&str> = known.iter().map(Secret::expose).collect();
        assert!(known.contains(&"t49") && known.contains(&"t48") && known.contains(&"hush-secret"));
        assert_eq!(known.len(), PAST_MAX + 2);
    }

    #[test]
    fn keys_that_cannot_be_sent_do_not_replace_those_that_can() {
        let shared = SharedKeys::new(keys("A1", None));
        let refused = shared.replace(keys("A2", Some("t\r\nx: y"))).unwrap_err().to_string();
        assert!(refused.contains("`session_token`") && !refused.contains("x: y"), "{refused}");
        assert_eq!((shared.generation(), &*shared.current().1.access_key), (0, "A1"));
        shared.replace(keys("A2", Some("t"))).unwrap();
        let (generation, current) = shared.current();
        assert_eq!((generation, shared.generation(), &*current.access_key), (1, 1, "A2"));
        let weak = shared.downgrade();
        assert!(weak.upgrade().is_some());
        drop(shared);
        assert!(weak.upgrade().is_none(), "nobody signs with them any more");
    }
}
