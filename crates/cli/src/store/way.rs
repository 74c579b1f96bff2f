//! The way to one store: what flags say, what a workload says of its target, and who asks.

use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_http::Proxies;
use plimsoll_workload::plan::spec::{Lookup, S3Signature, S3Target};
use plimsoll_workload::plan::{Secrets, Time};

use crate::args::CredentialArgs;
use crate::args::requests::{ProxyArg, SignatureArg};
use crate::args::s3::{LookupArg, StoreArgs};
use crate::environment;

/// How a store is reached: as flags say it, and what only a workload says.
pub(crate) struct Way {
    pub(crate) args: StoreArgs,
    /// The proxy on the way, whatever the environment says.
    proxy: Option<Proxies>,
    /// How long connecting may take, and silence of the store.
    pub(super) timeout: Option<Duration>,
}

impl Way {
    /// Returns the way that flags describe.
    pub(crate) fn of(args: StoreArgs) -> Self {
        Self { args, proxy: None, timeout: None }
    }

    /// Returns the way to a store that a workload names.
    pub(crate) fn named(args: &StoreArgs, spec: &S3Target) -> Result<Self> {
        let mut named = args.clone();
        if !spec.hosts.is_empty() {
            named.host = Some(spec.hosts.0.join(","));
            named.tls = spec.tls;
        }
        if let Some(bucket) = &spec.bucket {
            named.bucket.clone_from(bucket);
        }
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
        named.tls_trust.insecure |= spec.insecure;
        let proxy = spec.proxy.as_deref().map(Proxies::all).transpose().context("`proxy`")?;
        Ok(Self { args: named, proxy, timeout: spec.timeout.map(|Time(timeout)| timeout) })
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

    pub(super) fn proxies(&self) -> Result<Option<Proxies>> {
        match (&self.proxy, self.args.requests.proxy) {
            (Some(proxy), _) => Ok(Some(proxy.clone())),
            (None, ProxyArg::None) => Ok(None),
            (None, ProxyArg::Env) => environment::proxies(),
        }
    }
}
