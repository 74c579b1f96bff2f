//! Who may ask: users with their passwords, and the sessions of browsers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_model::Moment;
use quick_xml::XmlVersion;
use quick_xml::events::Event;
use thiserror::Error;

/// COSBench's user of everybody; where it is there, nobody is asked who they are.
const STOCK_USER: (&str, &str) = ("anonymous", "cosbench");
/// Who asks where nobody is asked.
pub(crate) const ANYBODY: &str = "anonymous";
/// How long a session lasts after it was last used.
pub(crate) const SESSION_LASTS: Duration = Duration::from_secs(12 * 3_600);
/// More sessions are not kept; the oldest goes.
const SESSIONS_MAX: usize = 1_000;
/// What takes longer than this is no password.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// Why a list of users cannot be used.
#[derive(Debug, Error)]
pub enum UsersError {
    /// The XML cannot be read.
    #[error("it is not readable XML")]
    Xml,
    /// A line is no user.
    #[error("line {0} is not `user:hash` with a hash by bcrypt ($2y$, as `htpasswd -B` writes it)")]
    Line(usize),
    /// A user has no name, or no password.
    #[error("a user has an empty name or an empty password")]
    Empty,
    /// There is no user.
    #[error("it names no user")]
    None,
}

/// Users and their passwords.
#[derive(Clone, Default)]
pub struct Users(BTreeMap<String, Password>);

#[derive(Clone)]
enum Password {
    Plain(String),
    Bcrypt(String),
}

impl Users {
    /// Reads COSBench's list of users.
    pub fn from_xml(text: &str) -> Result<Self, UsersError> {
        let mut reader = quick_xml::Reader::from_str(text);
        let mut users = BTreeMap::new();
        loop {
            let event = reader.read_event().map_err(|_| UsersError::Xml)?;
            let element = match &event {
                Event::Eof => break,
                Event::DocType(_) => return Err(UsersError::Xml),
                Event::Start(element) | Event::Empty(element) => element,
                _ => continue,
            };
            if element.local_name().as_ref() != "user".as_bytes() {
                continue;
            }
            let (mut name, mut password) = (None, None);
            for attribute in element.attributes() {
                let attribute = attribute.map_err(|_| UsersError::Xml)?;
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|_| UsersError::Xml)?.into_owned();
                let key: &[u8] = attribute.key.as_ref();
                match key {
                    b"username" | b"name" => name = Some(value),
                    b"password" => password = Some(value),
                    _ => {}
                }
            }
            if let (Some(name), Some(password)) = (name, password) {
                if name.is_empty() || password.is_empty() {
                    return Err(UsersError::Empty);
                }
                users.insert(name, Password::Plain(password));
            }
        }
        if users.is_empty() { Err(UsersError::None) } else { Ok(Self(users)) }
    }

    /// Reads lines of `user:hash`, as `htpasswd -B` writes them.
    pub fn from_lines(text: &str) -> Result<Self, UsersError> {
        let mut users = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || UsersError::Line(index + 1);
            let (name, hash) = line.split_once(':').ok_or_else(wrong)?;
            let is_bcrypt = hash.parse::<bcrypt::HashParts>().is_ok();
            if name.is_empty() || !is_bcrypt {
                return Err(wrong());
            }
            users.insert(name.to_owned(), Password::Bcrypt(hash.to_owned()));
        }
        if users.is_empty() { Err(UsersError::None) } else { Ok(Self(users)) }
    }

    /// Tells whether anybody may ask: there are no users, or COSBench's user of everybody.
    pub fn is_open(&self) -> bool {
        let stock = self.0.get(STOCK_USER.0);
        self.0.is_empty()
            || matches!(stock, Some(Password::Plain(password)) if password == STOCK_USER.1)
    }

    /// Tells whether that is the password of that user. Takes as long where there is no such user.
    fn verify(&self, name: &str, password: &str) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        match self.0.get(name) {
            Some(Password::Plain(known)) => {
                let of = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
                verify_slices_are_equal(of(known).as_ref(), of(password).as_ref()).is_ok()
            }
            Some(Password::Bcrypt(hash)) => bcrypt::verify(password, hash).unwrap_or(false),
            None => {
                let other = self.0.values().find_map(|known| match known {
                    Password::Bcrypt(hash) => Some(hash),
                    Password::Plain(_) => None,
                });
                let _ = other.map(|hash| bcrypt::verify(password, hash));
                false
            }
        }
    }
}

/// A browser that somebody has signed in with.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) user: String,
    /// What a request must say that changes something.
    pub(crate) csrf: String,
    used: Moment,
}

/// Asks who somebody is, and remembers it.
pub(crate) struct Gate {
    users: Users,
    sessions: Mutex<BTreeMap<String, Session>>,
    /// Passwords that were right, as only this process knows them, so that a program that asks
    /// often does not cost a hash each time.
    known: Mutex<BTreeMap<String, Vec<u8>>>,
    key: hmac::Key,
    /// The token of all browsers where nobody is asked who they are.
    csrf_of_anybody: String,
}

/// Returns a text that nobody guesses.
fn fresh() -> String {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).expect("the system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Gate {
    pub(crate) fn new(users: Users) -> Self {
        let mut bytes = [0; 32];
        rand::fill(&mut bytes).expect("the system has randomness");
        Self {
            users,
            sessions: Mutex::default(),
            known: Mutex::default(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            csrf_of_anybody: fresh(),
        }
    }

    /// Tells whether anybody may ask.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_open()
    }

    pub(crate) fn csrf_of_anybody(&self) -> &str {
        &self.csrf_of_anybody
    }

    /// Returns whether a user signed in with this password before; computes no hash.
    pub(crate) fn knows(&self, name: &str, password: &str) -> bool {
        let tag = hmac::sign(&self.key, password.as_bytes());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).is_some_and(|known| verify_slices_are_equal(known, tag.as_ref()).is_ok())
    }

    /// Tells whether that is the password of that user.
    pub(crate) fn verify(&self, name: &str, password: &str) -> bool {
        let is_right = self.users.verify(name, password);
        if is_right {
            let tag = hmac::sign(&self.key, password.as_bytes());
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(name.to_owned(), tag.as_ref().to_vec());
        }
        is_right
    }

    /// Begins a session; returns what its cookie holds.
    pub(crate) fn sign_in(&self, user: &str, now: Moment) -> (String, Session) {
        let session = Session { user: user.to_owned(), csrf: fresh(), used: now };
        let token = fresh();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(token, _)| token.clone());
            oldest.map(|token| sessions.remove(&token));
        }
        sessions.insert(self.key_of(&token), session.clone());
        (token, session)
    }

    /// Returns the session of a cookie, if it lasts.
    pub(crate) fn session(&self, token: &str, now: Moment) -> Option<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.key_of(token);
        let session = sessions.get_mut(&key)?;
        if now.since(session.used) > SESSION_LASTS {
            sessions.remove(&key);
            return None;
        }
        session.used = now;
        Some(session.clone())
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, token: &str) {
        let key = self.key_of(token);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Sessions are found by what is made of their tokens, so that the time a search takes says
    /// nothing of them.
    fn key_of(&self, token: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, token.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<?xml version='1.0'?><tomcat-users><role rolename='r'/>\
        <user username='ann' password='p&amp;w' roles='r'/></tomcat-users>";

    #[test]
    fn cosbenchs_users_are_read() {
        let users = Users::from_xml(XML).unwrap();
        assert!(!users.is_open());
        assert!(users.verify("ann", "p&w"));
        assert!(!users.verify("ann", "p&amp;w") && !users.verify("bob", "p&w"));
        let stock = "<u><user username=\"anonymous\" password=\"cosbench\"/></u>";
        assert!(Users::from_xml(stock).unwrap().is_open());
        let bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>";
        let empty = "<u><user username='' password=''/></u>";
        for text in ["", "<u/>", "<u><user username='a'", bomb, empty] {
            assert!(Users::from_xml(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_hold_hashes_and_no_passwords() {
        let hash = bcrypt::hash("secret", 4).unwrap();
        let users = Users::from_lines(&format!("# ours\n\nann:{hash}\n")).unwrap();
        let gate = Gate::new(users);
        assert!(!gate.knows("ann", "secret"));
        assert!(gate.verify("ann", "secret") && gate.knows("ann", "secret"));
        assert!(!gate.knows("ann", "Secret") && !gate.knows("bob", "secret"));
        assert!(!gate.verify("ann", "Secret") && !gate.verify("", "secret"));
        assert!(!gate.verify("ann", &"x".repeat(100_000)));
        for text in ["ann:plain", "ann", ":x", "ann:{SHA}abc"] {
            assert!(matches!(Users::from_lines(text), Err(UsersError::Line(1))), "{text}");
        }
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_or_when_somebody_ends_it() {
        let gate = Gate::new(Users::from_xml(XML).unwrap());
        let now = Moment::from_ns(0);
        let (token, session) = gate.sign_in("ann", now);
        assert_eq!(session.user, "ann");
        let later = now.after(SESSION_LASTS);
        assert_eq!(gate.session(&token, later).unwrap().csrf, session.csrf);
        assert!(gate.session("other", later).is_none());
        let much_later = later.after(SESSION_LASTS).after(Duration::from_nanos(1));
        assert!(gate.session(&token, much_later).is_none());
        let (token, _) = gate.sign_in("ann", now);
        gate.sign_out(&token);
        assert!(gate.session(&token, now).is_none());
    }
}
