//! What a driver is told: who signs in where, where the account is, and how objects are written.

use std::error::Error as _;
use std::time::Duration;

use plimsoll_driver::{DriverError, MissingRoot};
use plimsoll_http::{AllowedHosts, Endpoint, TlsConfig, TlsOptions, Transport, Url};
use plimsoll_model::{ErrorClass, Secret};

/// How long making a connection may take where nobody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An address with its path: where one signs in, or where an account is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// Host and port.
    pub endpoint: Endpoint,
    /// From the first `/` on, as written, without one at its end; may be empty.
    pub path: String,
}

impl Address {
    /// Reads `http(s)://HOST[:PORT][/PATH]`; the error says what is wrong without repeating it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let Url { tls, user, endpoint, path, query } = Url::parse(text)?;
        if user.is_some() || query.is_some() || path.contains('#') {
            return Err("the address holds a user, a query or a `#`, where only a path may be");
        }
        Ok(Self { tls, endpoint, path: path.trim_end_matches('/').to_owned() })
    }

    /// Returns the value of the Host header.
    pub(crate) fn authority(&self) -> String {
        self.endpoint.authority(self.tls)
    }
}

/// How somebody signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// Not at all: the storage URL is known, and a token where the store wants one.
    Known {
        /// The token that every request carries; `None`: no request carries one.
        token: Option<Secret>,
    },
    /// By a user and a key in headers (tempauth, swauth, the Swift API of Ceph).
    V1 {
        /// Where, with the whole path, such as `/auth/v1.0`.
        auth: Address,
        /// The user, as `account:user`.
        user: String,
        /// The user's key.
        key: Secret,
    },
    /// By Keystone, version 2.
    V2 {
        /// Where, up to `/v2.0`.
        auth: Address,
        /// Who.
        who: Who,
        /// Whose objects; `None` leaves it to Keystone.
        project: Option<Named>,
        /// Where the store is in Keystone's catalogue.
        service: Service,
    },
    /// By Keystone, version 3.
    V3 {
        /// Where, up to `/v3`.
        auth: Address,
        /// Who.
        who: Who,
        /// Whose objects; `None` leaves it to Keystone.
        project: Option<Named>,
        /// The domain of a user that is given by name.
        user_domain: Named,
        /// The domain of a project that is given by name.
        project_domain: Named,
        /// Where the store is in Keystone's catalogue.
        service: Service,
    },
}

impl SignIn {
    /// Returns where one signs in.
    pub fn address(&self) -> Option<&Address> {
        match self {
            Self::Known { .. } => None,
            Self::V1 { auth, .. } | Self::V2 { auth, .. } | Self::V3 { auth, .. } => Some(auth),
        }
    }

    /// Returns the password or the token that is sent.
    pub const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Known { token } => token.as_ref(),
            Self::V1 { key, .. } => Some(key),
            Self::V2 { who, .. } | Self::V3 { who, .. } => Some(match who {
                Who::User { password, .. } => password,
                Who::Holder(token) => token,
            }),
        }
    }
}

/// Who signs in to Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A user with a password.
    User {
        /// The user.
        user: Named,
        /// The password.
        password: Secret,
    },
    /// The holder of a token of Keystone's.
    Holder(Secret),
}

/// A thing of Keystone's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By its name.
    Name(String),
    /// By its id.
    Id(String),
}

/// Which of the services in a catalogue is the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its name or its type; `None`: the first of type `object-store`.
    pub name: Option<String>,
    /// Its region; `None`: the first one.
    pub region: Option<String>,
    /// For whom the address is: `public` where nobody says otherwise, `internal` or `admin`.
    pub interface: Option<String>,
}

/// How a large object is put together of its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manifest {
    /// By a list of them, which the store checks (SLO).
    #[default]
    Static,
    /// By what their names begin with (DLO).
    Dynamic,
}

/// What a driver is told.
#[derive(Clone, Debug)]
pub struct SwiftConfig {
    /// Who signs in, and where.
    pub sign_in: SignIn,
    /// Where the account is; `None`: where the sign-in says.
    pub storage: Option<Address>,
    /// The container of all keys.
    pub container: String,
    /// What happens where that does not exist.
    pub missing_container: MissingRoot,
    /// The policy of containers that are made; empty leaves it to the store.
    pub policy: String,
    /// Whether content is sent without saying how long it is (`Transfer-Encoding: chunked`).
    pub chunked: bool,
    /// Objects that are larger are written in segments of so many bytes; `None`: all in one.
    pub segment_bytes: Option<u64>,
    /// How large objects are put together.
    pub manifest: Manifest,
    /// Whether objects may be made of segments, so that removing one removes these as well.
    pub has_segments: bool,
    /// Whether what was stored is compared with what was sent, by the MD5 that the store states. It
    /// costs more than sending it.
    pub checks_md5: bool,
    /// Who is trusted over TLS.
    pub tls: TlsOptions,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// What carries connections to the account.
    pub transport: Transport,
    /// Which hosts may be connected to; the sign-in says where the account is.
    pub allowed: AllowedHosts,
    /// How long a request may go without moving a byte; `None` leaves it to the caller.
    pub stall_timeout: Option<Duration>,
}

impl SwiftConfig {
    /// Returns the plain configuration of who signs in and a container.
    pub fn new(sign_in: SignIn, container: &str) -> Self {
        Self {
            sign_in,
            storage: None,
            container: container.to_owned(),
            missing_container: MissingRoot::Refuse,
            policy: String::new(),
            chunked: false,
            segment_bytes: None,
            manifest: Manifest::Static,
            has_segments: false,
            checks_md5: false,
            tls: TlsOptions::default(),
            connect_timeout: CONNECT_TIMEOUT,
            transport: Transport::Sockets,
            allowed: AllowedHosts::ANY,
            stall_timeout: None,
        }
    }

    /// Returns how that address is spoken to over TLS, `None` where it is not.
    pub(crate) fn tls_for(&self, address: &Address) -> Result<Option<TlsConfig>, DriverError> {
        let loaded = address.tls.then(|| TlsConfig::load(&self.tls)).transpose();
        loaded.map_err(|error| {
            let mut why = error.to_string();
            if let Some(source) = error.source() {
                why += &format!(": {source}");
            }
            DriverError::new(ErrorClass::Connect, why)
        })
    }
}

/// The longest name of a container that Swift takes.
const CONTAINER_BYTES_MAX: usize = 256;

/// Refuses what is no name of a container.
pub(crate) fn check_container(name: &str) -> Result<(), DriverError> {
    let why = match name {
        "" => "no container is named (`container`)".to_owned(),
        _ if name.contains('/') => format!("the name of a container, `{name}`, must not hold `/`"),
        _ if name.len() > CONTAINER_BYTES_MAX => {
            format!("the name of a container has at most {CONTAINER_BYTES_MAX} bytes")
        }
        _ => return Ok(()),
    };
    Err(DriverError::new(ErrorClass::Client, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_no_secret_and_end_without_a_slash() {
        let address = Address::parse("https://h:8080/v1/AUTH_a/").unwrap();
        assert!(address.tls && address.path == "/v1/AUTH_a");
        assert_eq!(address.authority(), "h:8080");
        for wrong in ["h:1", "http://u:p@h/v1", "http://h/v1?t=1", "http://h/a#b"] {
            let why = Address::parse(wrong).unwrap_err();
            assert!(!why.contains("u:p") && !why.contains("t=1"), "{why}");
        }
    }

    #[test]
    fn nothing_shows_what_is_hidden() {
        let key = Secret::from("hush".to_owned());
        let who = Who::User { user: Named::Name("u".to_owned()), password: key.clone() };
        assert!(!format!("{key:?} {who:?}").contains("hush"));
    }

    #[test]
    fn containers_have_names_that_swift_takes() {
        for wrong in ["", "a/b", &"x".repeat(257)] {
            assert_eq!(check_container(wrong).unwrap_err().class, ErrorClass::Client, "{wrong}");
        }
        assert_eq!(check_container("a b"), Ok(()));
    }
}
