//! The store that a command speaks to: the one named by flags, or the embedded one.
#![expect(clippy::disallowed_methods, reason = "reads the host file that the user names")]

use anyhow::{Context, Result, bail};
use plimsoll_driver_s3::{Credentials, Lookup, S3Config};
use plimsoll_http::{Endpoint, HostSelect, TlsConfig, TlsOptions, expand_hosts, expand_lines};
use plimsoll_model::WallTime;
use plimsoll_oracle::{Oracle, OracleConfig, Script};

use crate::args::s3::{HostSelectArg, LookupArg, StoreArgs};
use crate::args::{CredentialArgs, TlsArgs};
use crate::machine;

/// What a host file begins with on the command line.
const FILE_SCHEME: &str = "file:";
/// The ports of plain HTTP and of TLS, for hosts without one.
pub(crate) const PORT_PLAIN: u16 = 80;
pub(crate) const PORT_TLS: u16 = 443;
/// The embedded store's credentials; it listens on loopback only and lives as long as the run.
pub(crate) const EMBEDDED_KEY: &str = "plimsoll-embedded";

/// A store to be measured.
pub(crate) struct Store {
    /// How the driver reaches it.
    pub(crate) config: S3Config,
    /// The embedded store; it ends when this is dropped.
    pub(crate) embedded: Option<Oracle>,
}

/// Returns the store that the flags name, starting the embedded one when they name none.
pub(crate) fn open(args: &StoreArgs, wall_epoch: WallTime) -> Result<Store> {
    let embedded = args.host.is_none().then(|| start_embedded(None, 0)).transpose()?;
    let (endpoints, credentials, tls) = match (&embedded, &args.host) {
        (Some(oracle), _) => (vec![embedded_endpoint(oracle)], embedded_credentials(), None),
        (None, Some(hosts)) => {
            let endpoints = endpoints(hosts, args.tls)?;
            (endpoints, credentials(&args.credentials)?, tls(args.tls, &args.tls_trust)?)
        }
        (None, None) => unreachable!("without a host the embedded store was started"),
    };
    let config = S3Config {
        endpoints,
        tls,
        credentials,
        region: args.region.clone(),
        bucket: args.bucket.clone(),
        lookup: match args.lookup {
            LookupArg::Auto => Lookup::Auto,
            LookupArg::Path => Lookup::Path,
            LookupArg::Dns => Lookup::Dns,
        },
        host_select: match args.host_select {
            HostSelectArg::Weighed => HostSelect::Weighed,
            HostSelectArg::Roundrobin => HostSelect::RoundRobin,
        },
        sign_payload: args.sha256_payload,
        content_md5: args.md5,
        connect_timeout: args.connect_timeout.0,
        keep_alive: !args.disable_http_keepalive,
        wall_epoch,
        options: Default::default(),
    };
    Ok(Store { config, embedded })
}

/// Returns how many threads the embedded store takes; the workers get the rest.
pub(crate) fn embedded_threads() -> usize {
    (machine::cores() / 2).max(1)
}

/// Returns how much the embedded store holds.
pub(crate) fn embedded_capacity() -> u64 {
    machine::memory_bytes() / 2
}

/// Returns where the embedded store listens.
pub(crate) fn embedded_endpoint(oracle: &Oracle) -> Endpoint {
    let addr = oracle.addr();
    Endpoint::new(addr.ip().to_string(), addr.port())
}

/// Returns whom the embedded store serves.
pub(crate) fn embedded_credentials() -> Credentials {
    let key = EMBEDDED_KEY.to_owned();
    Credentials::Keys { access_key: key.clone(), secret_key: key, session_token: None }
}

/// Starts the embedded store, which does as the script says.
pub(crate) fn start_embedded(script: Option<Script>, seed: u64) -> Result<Oracle> {
    let config = OracleConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        access_key: EMBEDDED_KEY.to_owned(),
        secret_key: EMBEDDED_KEY.to_owned(),
        capacity_bytes: embedded_capacity(),
        threads: embedded_threads(),
        anonymous: false,
        domain: None,
        tls: None,
        script,
        seed,
    };
    Oracle::start(config).context("cannot start the embedded store")
}

fn endpoints(hosts: &str, tls: bool) -> Result<Vec<Endpoint>> {
    let port = if tls { PORT_TLS } else { PORT_PLAIN };
    let Some(path) = hosts.strip_prefix(FILE_SCHEME) else {
        return expand_hosts(hosts, port).context("--host");
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--host: cannot read the host file {path}"))?;
    let endpoints = expand_lines(&text, port).with_context(|| format!("--host: {path}"))?;
    if endpoints.is_empty() {
        bail!("--host: {path} names no host");
    }
    Ok(endpoints)
}

/// Returns who asks.
pub(crate) fn credentials(args: &CredentialArgs) -> Result<Credentials> {
    let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    match (given(&args.access_key), given(&args.secret_key), given(&args.session_token)) {
        (Some(access_key), Some(secret_key), session_token) => {
            Ok(Credentials::Keys { access_key, secret_key, session_token })
        }
        (None, None, None) => Ok(Credentials::Anonymous),
        (Some(_), None, _) => bail!("--access-key is given without --secret-key"),
        (None, ..) => bail!("--secret-key or --session-token is given without --access-key"),
    }
}

/// Returns how connections are encrypted, `None` for not at all.
pub(crate) fn tls(wanted: bool, args: &TlsArgs) -> Result<Option<TlsConfig>> {
    if !wanted {
        if args.insecure || args.tls_ca.is_some() {
            bail!("--insecure and --tls-ca mean something only with --tls");
        }
        return Ok(None);
    }
    let options = TlsOptions { insecure: args.insecure, ca_file: args.tls_ca.clone() };
    TlsConfig::load(&options).map(Some).context("cannot set TLS up")
}
