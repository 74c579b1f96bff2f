//! The way to one store: what flags say, what a workload says of its target, and who asks.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_http::{AllowedHosts, Endpoint, Proxies, TlsConfig, TlsIdentity, TlsOptions};
use plimsoll_workload::plan::spec::{Lookup, S3Signature, S3Target};
use plimsoll_workload::plan::{Secrets, Time};

use super::Hosts;
use crate::args::requests::{ProxyArg, SignatureArg};
use crate::args::s3::{LookupArg, StoreArgs};
use crate::args::{CredentialArgs, TlsArgs};
use crate::{environment, said};

/// How a store is reached: as flags say it, and what only a workload says.
pub(crate) struct Way {
    pub(crate) args: StoreArgs,
    /// The proxy on the way, whatever the environment says.
    proxy: Option<String>,
    /// Our own certificate, which is shown to a store that asks for one.
    identity: Option<TlsIdentity>,
    /// How long connecting may take, and silence of the store.
    pub(super) timeout: Option<Duration>,
    /// Which hosts may be connected to.
    pub(super) allowed: AllowedHosts,
    /// Whether somebody else says all this, whose word counts for the store alone.
    is_told: bool,
    /// The hosts that may be sent the user's keys; `None`: all on this way.
    lends_to: Option<Hosts>,
    /// Whether a workload has any certificate accepted, and the flags do not.
    is_unchecked: bool,
}

impl Way {
    /// Returns the way that flags describe.
    pub(crate) fn of(args: StoreArgs) -> Self {
        let identity = identity(&args.tls_trust);
        Self {
            args,
            proxy: None,
            identity,
            timeout: None,
            allowed: AllowedHosts::ANY,
            is_told: false,
            lends_to: None,
            is_unchecked: false,
        }
    }

    /// Returns the way to a store that a workload names.
    pub(crate) fn named(args: &StoreArgs, spec: &S3Target) -> Self {
        let mut named = args.clone();
        if !spec.hosts.is_empty() {
            named.host = Some(spec.hosts.0.join(","));
            named.tls = spec.tls;
        }
        if let Some(bucket) = &spec.bucket {
            named.bucket.clone_from(bucket);
        }
        named.create_bucket |= spec.create_bucket;
        named.keep_bucket |= spec.keep_bucket;
        named.region = spec.region.clone().or(named.region);
        named.lookup = match spec.lookup {
            None => named.lookup,
            Some(Lookup::Path) => LookupArg::Path,
            Some(Lookup::Host) => LookupArg::Dns,
        };
        let requests = &mut named.requests;
        requests.signature = match (spec.signature, requests.signature) {
            (Some(S3Signature::V2), _) => SignatureArg::S3v2,
            (Some(S3Signature::V4), SignatureArg::S3v2) => SignatureArg::S3v4,
            (_, given) => given,
        };
        requests.storage_class = spec.storage_class.clone().or(requests.storage_class.take());
        let is_unchecked = spec.insecure && !named.tls_trust.insecure;
        named.tls_trust.insecure |= spec.insecure;
        let timeout = spec.timeout.map(|Time(timeout)| timeout);
        Self { proxy: spec.proxy.clone(), timeout, is_unchecked, ..Self::of(named) }
    }

    /// Returns the way as a coordinator has told it, which leads to no hosts but these; with the
    /// certificate that is shown on it.
    pub(crate) fn told(self, identity: Option<TlsIdentity>, allowed: AllowedHosts) -> Self {
        Self { identity, allowed, is_told: true, ..self }
    }

    /// Returns the way, on which these hosts alone may be sent the user's keys.
    pub(super) fn lending(self, lends_to: Option<Hosts>) -> Self {
        Self { lends_to, ..self }
    }

    /// Tells whether the user typed the credentials, each of them, for this very command.
    pub(super) fn has_typed_keys(&self) -> bool {
        let CredentialArgs { access_key, secret_key, session_token } = &self.args.credentials;
        let given = [
            ("--access-key", access_key.is_some()),
            ("--secret-key", secret_key.is_some()),
            ("--session-token", session_token.is_some()),
            ("--sts-web-token", self.args.requests.sts_web_token.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given).peekable();
        given.peek().is_some() && given.all(|(flag, _)| said::is_typed(flag))
    }

    /// Tells whether requests go out before the credentials are known: the search for keys uses the
    /// workload's own proxy, and the store exchanges a web identity token.
    pub(super) fn uses_keys_early(&self) -> bool {
        self.proxy.is_some() || self.args.requests.sts_web_token.is_some()
    }

    /// Refuses to send the user's keys to hosts, and through a proxy, that only a workload names,
    /// and over a connection that it makes less safe.
    pub(super) fn check_lent(
        &self,
        endpoints: &[Endpoint],
        tls: bool,
        proxies: Option<&Proxies>,
    ) -> Result<()> {
        let Some(named) = &self.lends_to else { return Ok(()) };
        let own_proxy = proxies.filter(|_| self.proxy.is_some());
        // A proxy reads what is sent to the store without TLS.
        let proxies = own_proxy.into_iter().flat_map(Proxies::endpoints).map(|proxy| (proxy, tls));
        let hosts = endpoints.iter().map(|host| (host, tls)).chain(proxies);
        let or = " (or type them: --access-key and so on)";
        let lent = ("the user's keys", &super::S3_VARIABLES[..], or);
        super::check_lent(named, lent, self.is_unchecked, hosts)
    }

    /// Returns the way with whoever is known to ask, instead of who is found otherwise.
    pub(crate) fn with_keys(mut self, secrets: Option<&Secrets>) -> Self {
        if let Some(secrets) = secrets.filter(|secrets| secrets.has_keys()) {
            let Secrets { access_key, secret_key, session_token, .. } = secrets.clone();
            self.args.credentials = CredentialArgs { access_key, secret_key, session_token };
            let requests = &mut self.args.requests;
            if requests.signature != SignatureArg::S3v2 {
                requests.signature = SignatureArg::S3v4;
            }
            requests.sts_web_token = None;
        }
        self
    }

    /// Returns whom to trust, and as whom to appear.
    pub(super) fn trust(&self) -> TlsOptions {
        TlsOptions {
            insecure: self.args.tls_trust.insecure,
            ca_file: self.args.tls_trust.tls_ca.clone(),
            identity: self.identity.clone(),
            ..TlsOptions::default()
        }
    }

    /// Returns whom to trust where credentials are asked for of other services than the store:
    /// `--insecure` does not count there, nor do certificates that a coordinator sent.
    pub(super) fn services_trust(&self) -> TlsOptions {
        let trust = self.trust();
        let ca_file = trust.ca_file.filter(|_| !self.is_told);
        TlsOptions { insecure: false, ca_file, ..trust }
    }

    /// Returns whom to trust where the user's secrets go to the store itself, or to a proxy of the
    /// environment: where a coordinator describes the store, as for other services.
    pub(super) fn asking_trust(&self) -> TlsOptions {
        if self.is_told { self.services_trust() } else { self.trust() }
    }

    /// Refuses hosts that may not be connected to, before anything is sent to any of them.
    pub(super) fn check(&self, endpoints: &[Endpoint], proxies: Option<&Proxies>) -> Result<()> {
        let proxies = proxies.into_iter().flat_map(Proxies::endpoints);
        Ok(self.allowed.check_all(endpoints.iter().chain(proxies))?)
    }

    pub(super) fn proxies(&self) -> Result<Option<Proxies>> {
        match (&self.proxy, self.args.requests.proxy) {
            (Some(proxy), _) => Proxies::all(proxy, &self.trust()).map(Some).context("`proxy`"),
            (None, ProxyArg::None) => Ok(None),
            (None, ProxyArg::Env) => environment::proxies(&self.asking_trust()),
        }
    }

    /// Returns how connections to the store are encrypted, `None` for not at all.
    pub(super) fn tls(&self, wanted: bool, proxies: Option<&Proxies>) -> Result<Option<TlsConfig>> {
        if wanted {
            return TlsConfig::load(&self.trust()).map(Some).context("cannot set TLS up");
        }
        let TlsArgs { insecure, tls_ca, .. } = &self.args.tls_trust;
        let is_of_proxy = proxies.is_some_and(Proxies::speak_tls);
        if (*insecure || tls_ca.is_some()) && !is_of_proxy {
            bail!("--insecure and --tls-ca need --tls or https://");
        }
        if self.identity.is_some() {
            bail!("--client-cert needs --tls or https://");
        }
        Ok(None)
    }
}

/// Returns our own certificate, as the flags name it.
pub(crate) fn identity(args: &TlsArgs) -> Option<TlsIdentity> {
    let certificate = args.client_cert.clone()?;
    let key = args.client_key.clone().unwrap_or_else(|| certificate.clone());
    Some(TlsIdentity { certificate: certificate.into(), key: key.into() })
}
