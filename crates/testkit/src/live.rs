//! Finds the live servers that `cargo xtask test` starts.

use std::path::PathBuf;

pub(crate) const NO_LIVE: &str = "PLIMSOLL_NO_LIVE";
const ACCESS_KEY: &str = "PLIMSOLL_TEST_ACCESS_KEY";
const SECRET_KEY: &str = "PLIMSOLL_TEST_SECRET_KEY";
const MINIO_CA: &str = "PLIMSOLL_TEST_MINIO_CA";
pub(crate) const WEED_PROGRAM: &str = "PLIMSOLL_TEST_WEED_PROGRAM";
const NATS_PROGRAM: &str = "PLIMSOLL_TEST_NATS_PROGRAM";
const PROMETHEUS_FOLDER: &str = "PLIMSOLL_TEST_PROMETHEUS";
const PYTHON_SITE: &str = "PLIMSOLL_TEST_PYTHON_SITE";
const WRITE_KEY: &str = "PLIMSOLL_TEST_WEED_WRITE_KEY";
const READ_KEY: &str = "PLIMSOLL_TEST_WEED_READ_KEY";

/// A kind of server to test against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveKind {
    /// MinIO without TLS.
    Minio,
    /// MinIO with TLS and a certificate that only [`LiveServer::ca`] vouches for.
    MinioTls,
    /// versitygw over a directory.
    Versitygw,
    /// SeaweedFS: a master with one volume server, spoken to by its own protocol.
    SeaweedFs,
    /// The same process's gateway of S3.
    SeaweedS3,
    /// The same process's filer.
    SeaweedFiler,
    /// SeaweedFS: a master with three volume servers in one rack.
    SeaweedCluster,
    /// SeaweedFS: a master with one volume server, which want tokens; those that the master signs
    /// for writes are valid for 2 s.
    SeaweedJwt,
    /// OpenStack Swift with tempauth, two policies (`plain` and `gold`) and large objects of both
    /// kinds. Its user is the access key.
    Swift,
    /// The same behind a proxy whose tokens are valid for 2 s; what one proxy knows of containers
    /// the other one does not.
    SwiftShort,
}

/// The user of Swift, as tempauth has it.
const SWIFT_USER: &str = "test:tester";

impl LiveKind {
    /// All kinds that speak S3, for tests that run on each.
    pub const ALL: [Self; 4] = [Self::Minio, Self::MinioTls, Self::Versitygw, Self::SeaweedS3];

    fn variable(self) -> &'static str {
        match self {
            Self::Minio => "PLIMSOLL_TEST_MINIO",
            Self::MinioTls => "PLIMSOLL_TEST_MINIO_TLS",
            Self::Versitygw => "PLIMSOLL_TEST_VERSITYGW",
            Self::SeaweedFs => "PLIMSOLL_TEST_WEED",
            Self::SeaweedS3 => "PLIMSOLL_TEST_WEED_S3",
            Self::SeaweedFiler => "PLIMSOLL_TEST_WEED_FILER",
            Self::SeaweedCluster => "PLIMSOLL_TEST_WEED_CLUSTER",
            Self::SeaweedJwt => "PLIMSOLL_TEST_WEED_JWT",
            Self::Swift => "PLIMSOLL_TEST_SWIFT",
            Self::SwiftShort => "PLIMSOLL_TEST_SWIFT_SHORT",
        }
    }
}

/// A running server. It is shared by all tests: each makes a bucket, or a collection, of its own
/// name.
#[derive(Clone, PartialEq, Eq)]
pub struct LiveServer {
    /// What it is.
    pub kind: LiveKind,
    /// Its address, `http://127.0.0.1:PORT` or `https://127.0.0.1:PORT`.
    pub url: String,
    /// Its root user's access key; empty where there are no users.
    pub access_key: String,
    /// Its root user's secret key; empty where there are no users.
    pub secret_key: String,
    /// The PEM file of the certificate to trust; only with TLS.
    pub ca: Option<PathBuf>,
    /// What its tokens are signed with; only with tokens.
    pub token_keys: Option<TokenKeys>,
}

/// What the tokens of a server are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKeys {
    /// Those for writes and deletes.
    pub write: String,
    /// Those for reads.
    pub read: String,
}

impl LiveServer {
    /// Returns the address without its scheme, `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |(_, host)| host)
    }
}

/// Returns the live server of a kind, `None` only when the live tier was switched off by name.
///
/// # Panics
/// When the live tier was neither set up nor switched off: a test that silently did not run is no
/// test.
pub fn live(kind: LiveKind) -> Option<LiveServer> {
    #[expect(clippy::disallowed_methods, reason = "the live tier is handed over by environment")]
    let found = discover(kind, |name| std::env::var(name).ok());
    found.unwrap_or_else(|sentence| panic!("{sentence}"))
}

fn discover(
    kind: LiveKind,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<LiveServer>, String> {
    let Some(url) = variable(kind.variable()) else {
        if variable(NO_LIVE).is_some() {
            return Ok(None);
        }
        return Err(format!(
            "{} is not set: run `cargo xtask test`, or set {NO_LIVE}=1 to leave the live tests out",
            kind.variable()
        ));
    };
    let needed = |name: &str| {
        let message =
            format!("{} is set but {name} is not: run `cargo xtask test`", kind.variable());
        variable(name).ok_or(message)
    };
    let ca = match kind {
        LiveKind::MinioTls => Some(PathBuf::from(needed(MINIO_CA)?)),
        _ => None,
    };
    let (access_key, secret_key) = match kind {
        LiveKind::Minio | LiveKind::MinioTls | LiveKind::Versitygw | LiveKind::SeaweedS3 => {
            (needed(ACCESS_KEY)?, needed(SECRET_KEY)?)
        }
        LiveKind::Swift | LiveKind::SwiftShort => (SWIFT_USER.to_owned(), needed(SECRET_KEY)?),
        _ => Default::default(),
    };
    let token_keys = match kind {
        LiveKind::SeaweedJwt => {
            Some(TokenKeys { write: needed(WRITE_KEY)?, read: needed(READ_KEY)? })
        }
        _ => None,
    };
    Ok(Some(LiveServer { kind, url, access_key, secret_key, ca, token_keys }))
}

/// Returns where the program lies that a variable names, for tests that start servers of their own;
/// `None` where the live tier was switched off by name.
pub(crate) fn needed_program(
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    match (variable(name), variable(NO_LIVE)) {
        (Some(program), _) => Ok(Some(program)),
        (None, Some(_)) => Ok(None),
        (None, None) => Err(format!("{name} is not set: run `cargo xtask test`")),
    }
}

/// Returns where `nats-server` lies; `None` only where the live tier was switched off by name.
///
/// # Panics
/// When nobody has said where it is.
pub fn nats_server() -> Option<PathBuf> {
    named_place(NATS_PROGRAM)
}

/// Returns the folder with `prometheus` and `promtool`; `None` only where the live tier was
/// switched off by name.
///
/// # Panics
/// When nobody has said where it is.
pub fn prometheus_folder() -> Option<PathBuf> {
    named_place(PROMETHEUS_FOLDER)
}

/// Returns the folder of packages for `PYTHONPATH`, with their programs in its `bin`; `None` only
/// where the live tier was switched off by name. `xtask/src/servers/python.txt` lists them.
///
/// # Panics
/// When nobody has said where it is.
pub fn python_site() -> Option<PathBuf> {
    named_place(PYTHON_SITE)
}

#[expect(clippy::disallowed_methods, reason = "the live tier is handed over by environment")]
fn named_place(variable: &str) -> Option<PathBuf> {
    match needed_program(variable, |name| std::env::var(name).ok()) {
        Ok(place) => place.map(Into::into),
        Err(sentence) => panic!("{sentence}; or set {NO_LIVE}=1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(kind: LiveKind, variables: &[(&str, &str)]) -> Result<Option<LiveServer>, String> {
        discover(kind, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_server_of_the_live_tier_listens() {
        use LiveKind::{SeaweedCluster, SeaweedFiler, SeaweedFs, SeaweedJwt, Swift, SwiftShort};
        let others = [SeaweedFs, SeaweedFiler, SeaweedCluster, SeaweedJwt, Swift, SwiftShort];
        let kinds = LiveKind::ALL.into_iter().chain(others);
        for server in kinds.filter_map(live) {
            assert!(std::net::TcpStream::connect(server.host()).is_ok(), "{}", server.url);
            assert_eq!(server.url.starts_with("https://"), server.ca.is_some());
        }
    }

    #[test]
    fn a_server_that_was_started_is_found_even_where_others_are_left_out() {
        let variables = [
            ("PLIMSOLL_NO_LIVE", "1"),
            ("PLIMSOLL_TEST_MINIO_TLS", "https://127.0.0.1:9"),
            ("PLIMSOLL_TEST_MINIO_CA", "/ca.pem"),
            ("PLIMSOLL_TEST_ACCESS_KEY", "a"),
            ("PLIMSOLL_TEST_SECRET_KEY", "s"),
        ];
        let found = look(LiveKind::MinioTls, &variables).unwrap().unwrap();
        assert_eq!(found.host(), "127.0.0.1:9");
        assert_eq!((found.access_key.as_str(), found.secret_key.as_str()), ("a", "s"));
        assert_eq!(found.ca, Some(PathBuf::from("/ca.pem")));
        assert!(look(LiveKind::Versitygw, &variables).unwrap().is_none());
    }

    #[test]
    fn nothing_set_up_is_refused_and_the_way_out_is_named() {
        let sentence = look(LiveKind::Minio, &[]).err().unwrap();
        assert!(sentence.contains("PLIMSOLL_TEST_MINIO is not set"), "{sentence}");
        assert!(sentence.contains("cargo xtask test"), "{sentence}");
        assert!(look(LiveKind::Minio, &[("PLIMSOLL_NO_LIVE", "1")]).unwrap().is_none());
    }

    #[test]
    fn the_program_of_a_tests_own_servers_is_needed_unless_they_are_left_out() {
        let look = |set: &'static str| {
            needed_program(WEED_PROGRAM, move |name| (name == set).then(|| "x".into()))
        };
        assert_eq!(look("PLIMSOLL_TEST_WEED_PROGRAM"), Ok(Some("x".to_owned())));
        assert_eq!(look("PLIMSOLL_NO_LIVE"), Ok(None));
        assert!(look("").unwrap_err().contains("PLIMSOLL_TEST_WEED_PROGRAM is not set"));
    }

    #[test]
    fn a_server_without_its_keys_is_refused() {
        let sentence =
            look(LiveKind::Minio, &[("PLIMSOLL_TEST_MINIO", "http://h:1")]).err().unwrap();
        assert!(sentence.contains("PLIMSOLL_TEST_ACCESS_KEY is not"), "{sentence}");
        let with_tokens = [("PLIMSOLL_TEST_WEED_JWT", "http://h:1")];
        let sentence = look(LiveKind::SeaweedJwt, &with_tokens).err().unwrap();
        assert!(sentence.contains("PLIMSOLL_TEST_WEED_WRITE_KEY is not"), "{sentence}");
    }
}
