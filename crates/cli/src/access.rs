//! How agents of a fleet reach the targets of a run: what goes to them, secrets among it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use plimsoll_conduct::{Reach as _, Reached, input};
use plimsoll_driver_s3::Encryption;
use plimsoll_driver_seaweed::{Security, SigningKeys};
use plimsoll_driver_swift::{Access as SwiftAccess, SECRET_VARIABLES};
use plimsoll_http::{Pem, TlsIdentity, TlsOptions};
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{Plan, Secrets};
use serde::{Deserialize, Serialize};

use crate::args::requests::SignatureArg;
use crate::args::s3::{StoreArgs, TransportArg};
use crate::args::{CLIENT_CERT, CLIENT_KEY, TlsArgs};
use crate::environment;
use crate::secret::{Secret, secret_text};
use crate::store::{self, SWIFT_CA, Stores};

/// More than any file of credentials or certificates has.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;

/// How agents reach the targets of a run. It holds secrets, and goes to agents of the run alone.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct AccessDoc {
    /// How stores that speak S3 are reached, but for who asks.
    pub(crate) store: Option<StoreArgs>,
    /// The certificates that are trusted besides those of the system, in PEM.
    pub(crate) ca_pem: Option<String>,
    /// By store that the workload opens, in order.
    pub(crate) stores: Vec<StoreSecrets>,
    /// By place of a `security.toml`, empty where none is named: what it says, and the environment
    /// beside it.
    pub(crate) security: BTreeMap<String, SecurityDoc>,
    /// What the environment says of who signs in to a Swift, by variable.
    #[serde(default)]
    pub(crate) swift: BTreeMap<String, String>,
    /// By target: who signs in to a Swift whatever the environment says.
    #[serde(default)]
    pub(crate) swift_logins: BTreeMap<String, LoginDoc>,
    /// The certificates that a Swift and its Keystone are trusted by, in PEM.
    #[serde(default)]
    pub(crate) swift_ca_pem: Option<String>,
    /// Our own certificate, which is shown to stores that ask for one.
    #[serde(default)]
    pub(crate) identity: Option<IdentityDoc>,
    /// The one that is shown to a Swift and its Keystone.
    #[serde(default)]
    pub(crate) swift_identity: Option<IdentityDoc>,
    /// Whether each agent asks with credentials of its own.
    pub(crate) own_credentials: bool,
    /// What carries connections.
    #[serde(default)]
    pub(crate) transport: TransportArg,
}

/// What nobody but the agents of a run may know of a store.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoreSecrets {
    keys: Option<KeysDoc>,
    /// The run's own key of SSE-C.
    sse_c_key: Option<[u8; 32]>,
    /// The region that goes with the keys, where nothing else says one.
    #[serde(default)]
    region_otherwise: Option<String>,
}

/// Who signs in to a target.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct LoginDoc {
    #[serde(with = "secret_text::optional")]
    user: Option<Secret>,
    #[serde(with = "secret_text::optional")]
    password: Option<Secret>,
    #[serde(with = "secret_text::optional")]
    token: Option<Secret>,
}

/// SeaweedFS security settings, with the certificates inline: an agent must not open files that a
/// coordinator names.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SecurityDoc {
    volume_keys: SigningKeysDoc,
    filer_keys: SigningKeysDoc,
    grpc: Option<TrustDoc>,
    https: Option<TrustDoc>,
    #[serde(default)]
    masters_are_plain: bool,
}

/// The keys that tokens are signed with.
#[derive(Default, Serialize, Deserialize)]
struct SigningKeysDoc {
    write: Option<Vec<u8>>,
    read: Option<Vec<u8>>,
}

/// Whom to trust over TLS, and as whom to appear.
#[derive(Serialize, Deserialize)]
struct TrustDoc {
    insecure: bool,
    ca_pem: Option<String>,
    any_name_of_ca: bool,
    identity: Option<IdentityDoc>,
}

/// A certificate of our own with its key, each in PEM.
#[derive(Serialize, Deserialize)]
pub(crate) struct IdentityDoc {
    certificate: String,
    #[serde(with = "secret_text")]
    key: Secret,
}

#[derive(Serialize, Deserialize)]
struct KeysDoc {
    access_key: String,
    #[serde(with = "secret_text")]
    secret_key: Secret,
    #[serde(with = "secret_text::optional")]
    session_token: Option<Secret>,
}

impl AccessDoc {
    /// Returns how agents reach what this process has opened by `reach`: with the same credentials,
    /// so with none of the environment where that lends none.
    pub(crate) fn of(
        plan: &Plan,
        reach: &mut Stores<'_>,
        opened: &[Reached],
        own_credentials: bool,
    ) -> Result<Self> {
        let read = |path: &Path| {
            let text = input::read_text(path, FILE_BYTES_MAX);
            text.with_context(|| format!("cannot read {}", path.display()))
        };
        let (args, variable, secrets) = (reach.args, reach.variable, reach.secrets);
        let ca_file = args.and_then(|args| args.tls_trust.tls_ca.as_deref());
        let store = args.map(|args| -> Result<StoreArgs> {
            let mut args = store::without_host_file(args)?;
            args.tls_trust.tls_ca = None;
            Ok(args)
        });
        let mut security = BTreeMap::new();
        for target in &plan.targets {
            if let Some(TargetSpec::Seaweedfs(spec)) = &target.spec
                && !own_credentials
            {
                let said =
                    reach.security(spec.security.as_deref()).map_err(|error| anyhow!(error))?;
                if said != Security::default() {
                    let place = spec.security.clone().unwrap_or_default();
                    security.insert(place, SecurityDoc::of(&said, &read)?);
                }
            }
        }
        let is_swift = |target: &plimsoll_workload::plan::Target| {
            matches!(target.spec, Some(TargetSpec::Swift(_)))
        };
        let (mut swift, mut swift_ca_pem) = (BTreeMap::new(), None);
        if plan.targets.iter().any(is_swift) {
            swift = swift_variables(variable, own_credentials);
            let of_flags = ca_file.map(Path::to_path_buf);
            let named = of_flags.or_else(|| environment::variable(SWIFT_CA).map(Into::into));
            swift_ca_pem = named.as_deref().map(read).transpose()?;
        }
        let handed_on = |identity: Option<TlsIdentity>| {
            let identity = identity.filter(|_| !own_credentials);
            identity.map(|identity| IdentityDoc::of(&identity, &read)).transpose()
        };
        let identity = args.and_then(|args| store::identity(&args.tls_trust));
        let of_swift = identity.clone().or_else(|| store::swift_identity(variable));
        let of_swift = of_swift.filter(|_| plan.targets.iter().any(is_swift));
        let logins = secrets.iter().filter(|(_, of)| of.has_login() && !own_credentials);
        let secrets = |store: &Reached| StoreSecrets::of(store, own_credentials);
        Ok(Self {
            store: store.transpose()?,
            ca_pem: ca_file.map(read).transpose()?,
            stores: opened.iter().map(secrets).collect(),
            security,
            swift,
            swift_logins: logins.map(|(target, of)| (target.to_owned(), of.into())).collect(),
            swift_ca_pem,
            identity: handed_on(identity)?,
            swift_identity: handed_on(of_swift)?,
            own_credentials,
            transport: TransportArg::default(),
        })
    }

    /// Tells whether it holds what nobody but the agents of the run may read.
    pub(crate) fn has_secrets(&self) -> bool {
        let has_keys = |of: &StoreSecrets| of.keys.is_some() || of.sse_c_key.is_some();
        let of_swift = !self.swift_logins.is_empty()
            || SECRET_VARIABLES.iter().any(|name| self.swift.contains_key(*name));
        let has_identity = self.identity.is_some() || self.swift_identity.is_some();
        self.stores.iter().any(has_keys) || !self.security.is_empty() || of_swift || has_identity
    }

    /// Returns what is known of a SeaweedFS whose `security.toml` is at that place; an agent that
    /// asks with credentials of its own takes what its own environment says. `file_of` keeps
    /// certificates in a file.
    pub(crate) fn security(
        &self,
        place: Option<&str>,
        file_of: &dyn Fn(&str) -> Result<PathBuf>,
    ) -> Result<Security> {
        if self.own_credentials {
            return Ok(Security::read("", &environment::variable)?);
        }
        let said = self.security.get(place.unwrap_or_default());
        Ok(said.map(|said| said.security(file_of)).transpose()?.unwrap_or_default())
    }

    /// Returns who signs in to a Swift; an agent that asks with credentials of its own takes what
    /// its own environment says first.
    pub(crate) fn swift_access(&self, target: &str, ca_file: Option<PathBuf>) -> SwiftAccess {
        let mut access = SwiftAccess::read(&|name| {
            let own = || environment::variable(name).filter(|_| self.own_credentials);
            own().or_else(|| self.swift.get(name).cloned())
        });
        if let Some(login) = self.swift_logins.get(target) {
            access.user.clone_from(&login.user);
            access.password.clone_from(&login.password);
            access.token.clone_from(&login.token);
        }
        // Its own password goes to nobody whom only the coordinator trusts.
        access.tls.ca_file = match self.own_credentials {
            true => environment::variable(SWIFT_CA).map(PathBuf::from),
            false => ca_file,
        };
        access.tls.identity = match (&self.swift_identity, self.own_credentials) {
            (None, true) => own_identity().or_else(|| store::swift_identity(environment::variable)),
            (told, _) => told.as_ref().map(TlsIdentity::from),
        };
        let is_insecure = self.store.as_ref().is_some_and(|args| args.tls_trust.insecure);
        access.tls.insecure = is_insecure && !self.own_credentials;
        access
    }

    /// Returns the flags by which an agent reaches the store of that number.
    pub(crate) fn store_args(&self, number: usize, ca_file: Option<PathBuf>) -> Result<StoreArgs> {
        let mut args = self.store.clone().context("the coordinator names no store")?;
        args.tls_trust.tls_ca = ca_file;
        if self.own_credentials {
            // As flags take them; what else speaks for a store is asked where these are not set.
            let own = |name: &str| environment::variable(name)?.parse::<Secret>().ok();
            args.credentials.access_key = own("PLIMSOLL_ACCESS_KEY");
            args.credentials.secret_key = own("PLIMSOLL_SECRET_KEY");
            args.credentials.session_token = own("PLIMSOLL_SESSION_TOKEN");
            args.requests.sts_web_token = own("PLIMSOLL_STS_WEB_TOKEN");
        } else {
            let keys = self.stores.get(number).and_then(|of| of.keys.as_ref());
            // An empty key means that nobody is asked, as of the environment.
            let access_key = keys.map(|keys| keys.access_key.clone()).unwrap_or_default();
            args.credentials.access_key = Some(Secret::from(access_key));
            args.credentials.secret_key = keys.map(|keys| keys.secret_key.clone());
            args.credentials.session_token = keys.and_then(|keys| keys.session_token.clone());
            if args.requests.signature != SignatureArg::S3v2 {
                args.requests.signature = SignatureArg::S3v4;
            }
        }
        Ok(args)
    }

    /// Returns the certificate that an agent shows to stores.
    pub(crate) fn identity(&self) -> Option<TlsIdentity> {
        match (&self.identity, self.own_credentials) {
            (None, true) => own_identity(),
            (told, _) => told.as_ref().map(TlsIdentity::from),
        }
    }

    /// Has a store be asked with the run's own key, where it has one, and in the region that goes
    /// with the keys.
    pub(crate) fn complete(&self, number: usize, reached: &mut Reached) {
        let Some(store) = self.stores.get(number) else { return };
        if let Some(key) = store.sse_c_key {
            reached.config.options.encryption = Encryption::SseC { key };
        }
        if let Some(region) = &store.region_otherwise {
            reached.config.region_otherwise = Some(region.clone());
        }
    }
}

/// Returns the certificate that the environment of this very machine names.
fn own_identity() -> Option<TlsIdentity> {
    let file = |name: &str| environment::variable(name).map(PathBuf::from);
    let (client_cert, client_key) = (file(CLIENT_CERT), file(CLIENT_KEY));
    store::identity(&TlsArgs { client_cert, client_key, ..TlsArgs::default() })
}

impl SecurityDoc {
    fn of(said: &Security, read: &dyn Fn(&Path) -> Result<String>) -> Result<Self> {
        let keys = |keys: &SigningKeys| {
            let SigningKeys { write, read } = keys.clone();
            SigningKeysDoc { write, read }
        };
        let trust = |trust: &Option<TlsOptions>| {
            trust.as_ref().map(|trust| TrustDoc::of(trust, read)).transpose()
        };
        Ok(Self {
            volume_keys: keys(&said.keys),
            filer_keys: keys(&said.filer_keys),
            grpc: trust(&said.grpc)?,
            https: trust(&said.https)?,
            masters_are_plain: said.masters_are_plain,
        })
    }

    fn security(&self, file_of: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Security> {
        let keys = |keys: &SigningKeysDoc| {
            let SigningKeysDoc { write, read } = keys;
            SigningKeys { write: write.clone(), read: read.clone() }
        };
        let trust = |trust: &Option<TrustDoc>| {
            trust.as_ref().map(|trust| trust.options(file_of)).transpose()
        };
        Ok(Security {
            keys: keys(&self.volume_keys),
            filer_keys: keys(&self.filer_keys),
            grpc: trust(&self.grpc)?,
            https: trust(&self.https)?,
            masters_are_plain: self.masters_are_plain,
        })
    }
}

impl TrustDoc {
    fn of(trust: &TlsOptions, read: &dyn Fn(&Path) -> Result<String>) -> Result<Self> {
        let TlsOptions { insecure, ca_file, any_name_of_ca, identity } = trust;
        let identity = identity.as_ref().map(|identity| IdentityDoc::of(identity, read));
        Ok(Self {
            insecure: *insecure,
            ca_pem: ca_file.as_deref().map(read).transpose()?,
            any_name_of_ca: *any_name_of_ca,
            identity: identity.transpose()?,
        })
    }

    fn options(&self, file_of: &dyn Fn(&str) -> Result<PathBuf>) -> Result<TlsOptions> {
        Ok(TlsOptions {
            insecure: self.insecure,
            ca_file: self.ca_pem.as_deref().map(file_of).transpose()?,
            any_name_of_ca: self.any_name_of_ca,
            identity: self.identity.as_ref().map(TlsIdentity::from),
        })
    }
}

impl IdentityDoc {
    fn of(identity: &TlsIdentity, read: &dyn Fn(&Path) -> Result<String>) -> Result<Self> {
        let text = |pem: &Pem| match pem {
            Pem::File(path) => read(path),
            Pem::Text(text) => Ok(text.expose().to_owned()),
        };
        let key = Secret::from(text(&identity.key)?);
        Ok(Self { certificate: text(&identity.certificate)?, key })
    }
}

impl From<&IdentityDoc> for TlsIdentity {
    fn from(doc: &IdentityDoc) -> Self {
        let certificate = Pem::Text(Secret::from(doc.certificate.clone()));
        Self { certificate, key: Pem::Text(doc.key.clone()) }
    }
}

impl From<&Secrets> for LoginDoc {
    fn from(secrets: &Secrets) -> Self {
        let Secrets { user, password, token, .. } = secrets.clone();
        Self { user, password, token }
    }
}

/// Returns what the environment says of who signs in to a Swift, without what is secret where each
/// agent has its own.
fn swift_variables(
    variable: fn(&str) -> Option<String>,
    own_credentials: bool,
) -> BTreeMap<String, String> {
    let access = SwiftAccess::read(&variable);
    let is_sent =
        |name: &str| name != SWIFT_CA && !(own_credentials && SECRET_VARIABLES.contains(&name));
    let sent = access.variables().filter(|(name, _)| is_sent(name));
    sent.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl StoreSecrets {
    fn of(store: &Reached, own_credentials: bool) -> Self {
        let keys = store.config.credentials.current().filter(|_| !own_credentials);
        let keys = keys.map(|keys| KeysDoc {
            access_key: keys.access_key.clone(),
            secret_key: keys.secret_key.clone(),
            session_token: keys.session_token.clone(),
        });
        let sse_c_key = match store.config.options.encryption {
            Encryption::SseC { key } => Some(key),
            _ => None,
        };
        let region_otherwise = store.config.region_otherwise.clone().filter(|_| !own_credentials);
        Self { keys, sse_c_key, region_otherwise }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plimsoll_conduct::RunTime;
    use plimsoll_driver_s3::{Credentials, S3Config};
    use plimsoll_http::Endpoint;
    use plimsoll_workload::plan::{TargetSecrets, WorkloadFile};

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn what_opens_a_store_is_a_secret() {
        let keys = || KeysDoc {
            access_key: "a".to_owned(),
            secret_key: Secret::from("s".to_owned()),
            session_token: None,
        };
        let store = |keys, sse_c_key| StoreSecrets { keys, sse_c_key, region_otherwise: None };
        let of = |stores| AccessDoc { stores, ..AccessDoc::default() };
        assert!(!of(Vec::new()).has_secrets());
        assert!(!of(vec![store(None, None)]).has_secrets());
        assert!(of(vec![store(None, None), store(Some(keys()), None)]).has_secrets());
        assert!(of(vec![store(None, Some([0; 32]))]).has_secrets());
        let security = [(String::new(), SecurityDoc::default())].into_iter().collect();
        assert!(AccessDoc { security, ..AccessDoc::default() }.has_secrets());
        let login =
            LoginDoc { password: Some(Secret::from("p".to_owned())), ..LoginDoc::default() };
        let swift_logins = [("s".to_owned(), login)].into_iter().collect();
        let of_swift = AccessDoc { swift_logins, ..AccessDoc::default() };
        assert!(of_swift.has_secrets());
        let access = |target| of_swift.swift_access(target, None);
        assert_eq!(access("s").password, Some(Secret::from("p".to_owned())));
        assert_eq!(access("other").password, None, "a login is one target's");
    }

    fn flags() -> StoreArgs {
        let words = ["plimsoll", "run", "w.yaml", "--host", "h:1"];
        match Cli::try_parse_from(words).unwrap().command {
            Command::Run(args) => args.store.clone(),
            _ => unreachable!("it was asked for"),
        }
    }

    /// Returns what agents need to reach the stores of these flags, with nothing of the
    /// environment.
    fn told(plan: &Plan, flags: &StoreArgs, opened: &[Reached], own: bool) -> AccessDoc {
        let (time, secrets) = (RunTime::simulated(), TargetSecrets::default());
        let mut reach = Stores {
            seed: 1,
            variable: environment::no_variable,
            ..Stores::new(Some(flags), &secrets, &time)
        };
        AccessDoc::of(plan, &mut reach, opened, own).unwrap()
    }

    #[test]
    fn agents_are_told_the_keys_of_each_store() {
        let flags = flags();
        let reached = |access: &str, secret: &str| Reached {
            config: S3Config {
                credentials: Credentials::keys(access, secret, None),
                ..S3Config::new(vec![Endpoint::new("h", 1)], "b", RunTime::simulated().wall_epoch)
            },
            embedded: None,
        };
        let opened = [reached("A1", "S1"), reached("A2", "S2")];
        let file = WorkloadFile::from_yaml(
            "t",
            "schema: plimsoll.workload/2\nname: t\ntargets: {a: {s3: {}}, b: {s3: {}}}\nsets: {o: \
             {on: a, count: 1, size: 1B}}\nstages: [{jobs: [{work: {fill: o}}]}]\n",
        );
        let plan = file.unwrap().check().unwrap();
        let of = |own| told(&plan, &flags, &opened, own);
        let doc = of(false);
        assert!(doc.has_secrets());
        let keys = |number: usize| {
            let args = doc.store_args(number, None).unwrap();
            let keys = store::credentials(&args.credentials).unwrap().current().unwrap();
            format!("{} {}", keys.access_key, keys.secret_key.expose())
        };
        assert_eq!((keys(0), keys(1)), ("A1 S1".to_owned(), "A2 S2".to_owned()));
        // Who asks with its own is told none.
        let doc = of(true);
        let sent = serde_json::to_string(&doc).unwrap();
        assert!(!doc.has_secrets() && !sent.contains("S1") && !sent.contains("A2"), "{sent}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "certificates are files")]
    fn agents_are_handed_the_certificate_unless_they_have_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("c.pem"), "CERT").unwrap();
        std::fs::write(file("k.pem"), "KEY-hush").unwrap();
        let mut flags = flags();
        flags.tls_trust.client_cert = Some(file("c.pem"));
        flags.tls_trust.client_key = Some(file("k.pem"));
        let file = WorkloadFile::from_yaml(
            "t",
            "schema: plimsoll.workload/2\nname: t\ntargets: {a: {s3: {}}}\nsets: {o: {on: a, \
             count: 1, size: 1B}}\nstages: [{jobs: [{work: {fill: o}}]}]\n",
        );
        let plan = file.unwrap().check().unwrap();
        let sent = |own| {
            let doc = told(&plan, &flags, &[], own);
            (doc.has_secrets(), serde_json::to_value(&doc).unwrap())
        };
        let (is_secret, doc) = sent(false);
        let told: AccessDoc = serde_json::from_value(doc).unwrap();
        let text = |text: &str| Pem::Text(Secret::from(text.to_owned()));
        let expected = TlsIdentity { certificate: text("CERT"), key: text("KEY-hush") };
        assert!(is_secret && told.identity() == Some(expected));
        assert!(!format!("{:?}", told.identity()).contains("hush"));
        let (is_secret, doc) = sent(true);
        assert!(!is_secret && !doc.to_string().contains("hush"), "{doc}");
    }
}
