//! The store that a command speaks to: the one named by flags, or the embedded one.

mod asking;
mod way;

use std::path::{Path, PathBuf};
use std::{fmt, iter};

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{
    AskedStore, CallerError, Lent, Reach, Reached, RunTime, Stop, embedded, input,
};
use plimsoll_driver::MissingRoot;
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_s3::{
    Checksum, Credentials, Encryption, PART_SIZE_DEFAULT, PART_SIZE_MIN, RequestOptions, S3Config,
    Signature, fresh,
};
use plimsoll_driver_seaweed::Security;
use plimsoll_driver_swift::Access;
use plimsoll_http::{
    Endpoint, HostSelect, HttpVersion, NamedHosts, PORT_PLAIN, PORT_TLS, Scheme, TlsIdentity,
    Transport, Url, expand_hosts, resolve_all, split_scheme,
};
use plimsoll_model::{Bytes, Lookup};
use plimsoll_oracle::Script;
use plimsoll_report::format;
use plimsoll_workload::plan::{Job, Members, Plan, Secrets, SetIndex, TargetSecrets};

use crate::args::requests::{Pair, RequestArgs, SignatureArg};
use crate::args::s3::{HostSelectArg, LookupArg, StoreArgs, TransportArg};
use crate::args::{ByteSize, TlsArgs};
use crate::environment;

pub(crate) use self::asking::{Asking, credentials, keys_outlast};
pub(crate) use self::way::{Way, identity};

/// What a host file begins with on the command line.
const FILE_SCHEME: &str = "file:";
/// More than any list of hosts has.
const HOST_FILE_BYTES_MAX: u64 = 16 << 20;
/// More than any `security.toml` has.
pub(crate) const SECURITY_BYTES_MAX: u64 = 1 << 20;
/// The variable that names the certificates of a Swift and its Keystone.
pub(crate) const SWIFT_CA: &str = "OS_CACERT";
/// Those that name the certificate to show to them, and its key.
const SWIFT_CERT: &str = "OS_CERT";
const SWIFT_KEY: &str = "OS_KEY";

/// The variables that say where keys of S3 belong.
const S3_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
/// Those that say where the password of a Swift belongs.
const SWIFT_VARIABLES: [&str; 3] = ["OS_AUTH_URL", "OS_STORAGE_URL", "ST_AUTH"];

/// A store that can be reached, and whose credentials were found, if they were looked for.
type Opened = (Reached, Option<Asking>);

/// Why a workload of objects cannot be run by every command.
const NO_STORE: &str = "this command has no store to work on";

/// How stores are reached, as the flags say.
pub(crate) struct Stores<'a> {
    /// Without them there is none.
    pub(crate) args: Option<&'a StoreArgs>,
    pub(crate) transport: TransportArg,
    pub(crate) time: &'a RunTime,
    /// Fixes the choices of scripts.
    pub(crate) seed: u64,
    /// Whose credentials were found, where they were looked for.
    pub(crate) found: Vec<Asking>,
    /// The `security.toml` that stands for whichever a workload names.
    pub(crate) security: Option<&'a Path>,
    /// Who asks targets that are named here, whatever the flags say.
    pub(crate) secrets: &'a TargetSecrets,
    /// Reads credentials of the environment.
    pub(crate) variable: fn(&str) -> Option<String>,
    /// The hosts that may be sent secrets which neither the workload brings nor the command line;
    /// `None`: whichever the workload names.
    pub(crate) lends_to: Option<Hosts>,
    /// Where the files may lie that the workload names.
    pub(crate) files: AllowedDirs,
    /// Gives opening up.
    pub(crate) stop: Stop,
}

impl<'a> Stores<'a> {
    /// Returns how stores are reached that ask for nothing special, with what the environment says.
    pub(crate) fn new(
        args: Option<&'a StoreArgs>,
        secrets: &'a TargetSecrets,
        time: &'a RunTime,
    ) -> Self {
        Self {
            args,
            transport: TransportArg::default(),
            time,
            seed: 0,
            found: Vec::new(),
            security: None,
            secrets,
            variable: environment::variable,
            lends_to: None,
            files: AllowedDirs::ANY,
            stop: Stop::default(),
        }
    }
}

/// Refuses to send a secret of the user's to hosts that only a file names: those that are not in
/// the list, nor in the variables that go with the secret. Refuses it, too, over a connection that
/// a file makes less safe than the user does: without TLS to a host that is named with it, or with
/// certificates unchecked. Each host comes with whether it is spoken to over TLS; `or` says what
/// else would do.
fn check_lent<'e>(
    named: &Hosts,
    (secret, variables, or): (&str, &[&str], &str),
    is_unchecked: bool,
    hosts: impl Iterator<Item = (&'e Endpoint, bool)>,
) -> Result<()> {
    if is_unchecked {
        bail!(
            "this would send {secret} without checking certificates, which only a file asks for \
             (`insecure`); if that may be, add --insecure{or}"
        );
    }
    let urls = variables.iter().filter_map(|name| environment::variable(name));
    let of_urls = urls.filter_map(|url| {
        let Url { endpoint, tls, .. } = Url::parse(&url).ok()?;
        Some(Hosts { endpoints: vec![endpoint], tls })
    });
    let lists = iter::once(named.clone()).chain(of_urls);
    let named = lists.fold(NamedHosts::default(), |all, list| all.and(list.endpoints, list.tls));
    for (host, over_tls) in hosts {
        if !named.have(host, true) {
            bail!(
                "this would send {secret} to {host}, which only a file names; if that host may \
                 have them, name it: --host {host} or PLIMSOLL_HOST={host}{or}"
            );
        }
        if !named.have(host, over_tls) {
            bail!(
                "this would send {secret} to {host} without TLS, which only a file asks for; if \
                 that may be, name the host with http://{host}{or}"
            );
        }
    }
    Ok(())
}

/// Returns the hosts that the user names beside a file, by `--host` or its variable.
pub(crate) fn named_hosts(args: &StoreArgs) -> Result<Hosts> {
    let hosts = args.host.clone().or_else(|| environment::variable("PLIMSOLL_HOST"));
    let hosts = hosts.filter(|hosts| !hosts.is_empty());
    let named = hosts.map(|hosts| hosts_of(&hosts, args.tls)).transpose()?;
    Ok(named.unwrap_or_default())
}

impl Reach for Stores<'_> {
    /// Starts a store where it is an embedded one.
    fn store(&mut self, target: &str, asked: AskedStore<'_>) -> Result<Reached, CallerError> {
        let args = self.args.context(NO_STORE)?;
        let own = self.secrets.of(target);
        let lent = |way: Way| {
            let way = way.with_keys(own);
            let is_given = own.is_some_and(Secrets::has_keys) || way.has_typed_keys();
            open(&way.lending(self.lends_to.clone().filter(|_| !is_given)), self.time)
        };
        let (reached, found) = match asked {
            AskedStore::Own => lent(Way::of(args.clone()))?,
            AskedStore::Named(spec) => lent(Way::named(args, spec))?,
            AskedStore::Embedded(script) => {
                let script = script.map(|script| *script);
                (open_embedded(args, script, self.seed, self.time)?, None)
            }
        };
        self.found.extend(found);
        Ok(reached)
    }

    fn security(&mut self, file: Option<&str>) -> Result<Security, CallerError> {
        Ok(match (self.security, file) {
            (None, Some(file)) => security_of(Some(Path::new(file)), self.variable, &self.files)?,
            (given, _) => security_of(given, self.variable, &AllowedDirs::ANY)?,
        })
    }

    fn lend(
        &self,
        secret: Lent,
        is_unchecked: bool,
        hosts: &[(&Endpoint, bool)],
    ) -> Result<(), CallerError> {
        let (secret, variables) = match secret {
            Lent::SwiftLogin => ("the user's password or token", &SWIFT_VARIABLES[..]),
            Lent::SeaweedTokens => ("tokens signed with the user's keys", &[][..]),
        };
        let Some(named) = &self.lends_to else { return Ok(()) };
        let is_unchecked = is_unchecked && !self.args.is_some_and(|args| args.tls_trust.insecure);
        Ok(check_lent(named, (secret, variables, ""), is_unchecked, hosts.iter().copied())?)
    }

    fn files(&self) -> AllowedDirs {
        self.files.clone()
    }

    fn swift(&mut self, target: &str) -> Result<Access, CallerError> {
        Ok(swift(self.args, self.secrets.of(target), self.variable))
    }

    fn stop(&self) -> Stop {
        self.stop.clone()
    }

    fn on_buckets(&self) -> (bool, bool) {
        self.args.map_or((false, false), |args| (args.create_bucket, args.keep_bucket))
    }

    fn transport(&self) -> Transport {
        self.transport.into()
    }

    fn only_judges(&self) -> bool {
        false
    }
}

/// Returns what the `security.toml` of a SeaweedFS says, and the environment beside it.
pub(crate) fn security(file: Option<&Path>, files: &AllowedDirs) -> Result<Security> {
    security_of(file, environment::variable, files)
}

fn security_of(
    file: Option<&Path>,
    variable: fn(&str) -> Option<String>,
    files: &AllowedDirs,
) -> Result<Security> {
    let text = match file {
        None => String::new(),
        Some(path) => input::read_text_allowed(files, path, SECURITY_BYTES_MAX)
            .with_context(|| format!("cannot read {}", path.display()))?,
    };
    let read = Security::read(&text, &variable);
    read.with_context(|| file.map_or("the environment".into(), Path::to_string_lossy).into_owned())
}

/// Returns who signs in to a Swift, as the environment says where these secrets do not, and who is
/// trusted as the flags do.
fn swift(
    args: Option<&StoreArgs>,
    secrets: Option<&Secrets>,
    variable: fn(&str) -> Option<String>,
) -> Access {
    let mut access = Access::read(&variable);
    if let Some(Secrets { user, password, token, .. }) = secrets.cloned() {
        (access.user, access.password, access.token) = (user, password, token);
    }
    let trust = args.map(|args| &args.tls_trust);
    let of_flags = trust.and_then(|trust| trust.tls_ca.clone());
    access.tls.insecure = trust.is_some_and(|trust| trust.insecure);
    access.tls.ca_file = of_flags.or_else(|| environment::variable(SWIFT_CA).map(Into::into));
    access.tls.identity = trust.and_then(way::identity).or_else(|| swift_identity(variable));
    access
}

/// Returns the certificate that the environment says to show to a Swift and its Keystone.
pub(crate) fn swift_identity(variable: fn(&str) -> Option<String>) -> Option<TlsIdentity> {
    let file = |name: &str| variable(name).filter(|it| !it.is_empty());
    let client_cert = file(SWIFT_CERT).map(PathBuf::from);
    let client_key = file(SWIFT_KEY).map(PathBuf::from);
    way::identity(&TlsArgs { client_cert, client_key, ..TlsArgs::default() })
}

/// How stores would be reached, as far as that shows without them: no credentials are looked for,
/// no name is resolved and nothing is started.
pub(crate) struct Judged<'a> {
    /// Without them there is none.
    pub(crate) args: Option<&'a StoreArgs>,
    pub(crate) transport: TransportArg,
    pub(crate) time: &'a RunTime,
    /// Whether one of them would be embedded.
    pub(crate) is_embedded: bool,
    /// Who asks targets that are named here, whatever the flags say.
    pub(crate) secrets: &'a TargetSecrets,
    /// Reads credentials of the environment.
    pub(crate) variable: fn(&str) -> Option<String>,
    /// Where the files may lie that the workload names.
    pub(crate) files: AllowedDirs,
}

impl Reach for Judged<'_> {
    fn store(&mut self, target: &str, asked: AskedStore<'_>) -> Result<Reached, CallerError> {
        let args = self.args.context(NO_STORE)?;
        let way = match asked {
            AskedStore::Own => Way::of(args.clone()),
            AskedStore::Named(spec) => Way::named(args, spec),
            AskedStore::Embedded(_) => Way::of(StoreArgs { host: None, ..args.clone() }),
        };
        let way = way.with_keys(self.secrets.of(target));
        let args = &way.args;
        let embedded = || Hosts { endpoints: vec![Endpoint::new("127.0.0.1", 0)], tls: false };
        let hosts = args.host.as_ref().map(|hosts| hosts_of(hosts, args.tls)).transpose()?;
        self.is_embedded |= hosts.is_none();
        let Hosts { endpoints, tls: speaks_tls } = hosts.unwrap_or_else(embedded);
        let plain = S3Config::new(endpoints, &args.bucket, self.time.wall_epoch);
        let tls = way.tls(speaks_tls, way.proxies()?.as_ref())?;
        let config = config(&way, S3Config { tls, ..plain })?;
        Ok(Reached { config, embedded: None })
    }

    fn security(&mut self, file: Option<&str>) -> Result<Security, CallerError> {
        Ok(security_of(file.map(Path::new), self.variable, &self.files)?)
    }

    fn files(&self) -> AllowedDirs {
        self.files.clone()
    }

    fn swift(&mut self, _target: &str) -> Result<Access, CallerError> {
        Ok(Access::default())
    }

    fn transport(&self) -> Transport {
        self.transport.into()
    }

    fn only_judges(&self) -> bool {
        true
    }
}

/// Returns the store that the flags name, starting the embedded one when they name none, and whose
/// credentials were found, if they were looked for.
pub(crate) fn open(way: &Way, time: &RunTime) -> Result<Opened> {
    let args = &way.args;
    let Some(hosts) = &args.host else {
        return Ok((open_embedded(args, None, 0, time)?, None));
    };
    let requests = &args.requests;
    let proxies = way.proxies()?;
    let Hosts { mut endpoints, tls: speaks_tls } = hosts_of(hosts, args.tls)?;
    way.check(&endpoints, proxies.as_ref())?;
    let mut lent = way.check_lent(&endpoints, speaks_tls, proxies.as_ref());
    if way.uses_keys_early() {
        lent = Ok(lent?);
    }
    if requests.resolve_host && proxies.is_some() {
        bail!("--resolve-host: a proxy resolves names itself; leave one of them out");
    }
    if requests.resolve_host {
        endpoints = resolve_all(&endpoints).context("--resolve-host")?;
    }
    let tls = way.tls(speaks_tls, proxies.as_ref())?;
    let plain = S3Config::new(endpoints, &args.bucket, time.wall_epoch);
    let config = config(way, S3Config { tls, ..plain })?;
    let (config, asking) = asking::by_whom(config, way, proxies, time)?;
    if matches!(config.credentials, Credentials::Keys(_)) {
        lent?;
    }
    Ok((Reached { config, embedded: None }, asking))
}

/// Starts the embedded store, which does as the script says, and returns how to reach it.
fn open_embedded(
    args: &StoreArgs,
    script: Option<Script>,
    seed: u64,
    time: &RunTime,
) -> Result<Reached> {
    let oracle = embedded::start(script, seed).context("cannot start the embedded store")?;
    let way = Way::of(args.clone());
    let config = config(&way, embedded::config(&oracle, &args.bucket, time.wall_epoch))?;
    Ok(Reached { config, embedded: Some(oracle) })
}

/// Returns how a store is reached, with all that the flags say.
fn config(way: &Way, plain: S3Config) -> Result<S3Config> {
    let (args, timeout) = (&way.args, way.timeout);
    let requests = &args.requests;
    Ok(S3Config {
        // Nobody else uses the embedded store, so its buckets are created without a flag.
        missing_bucket: match plain.missing_bucket {
            MissingRoot::Refuse => MissingRoot::asked(args.create_bucket, args.keep_bucket),
            of_embedded => of_embedded,
        },
        region: args.region.clone(),
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
        connect_timeout: timeout.unwrap_or(args.connect_timeout.0),
        stall_timeout: timeout,
        keep_alive: !args.disable_http_keepalive,
        http_version: if requests.http2 { HttpVersion::Two } else { HttpVersion::One },
        proxies: way.proxies()?,
        options: request_options(requests)?,
        ..plain
    })
}

/// Returns what the flags change about requests.
fn request_options(args: &RequestArgs) -> Result<RequestOptions> {
    if let Some(ByteSize(size)) = args.part_size.filter(|size| size.0 < PART_SIZE_MIN) {
        bail!("--part.size: a part of {} is below the {} of S3", Bytes(size), Bytes(PART_SIZE_MIN));
    }
    let encryption = match (args.encrypt, args.sse_s3_encrypt, &args.sse_kms_key) {
        (true, ..) => fresh::own_key().context("/dev/urandom")?,
        (_, true, _) => Encryption::SseS3,
        (_, _, Some(key)) => {
            Encryption::SseKms { key_id: Some(key.clone()).filter(|key| !key.is_empty()) }
        }
        _ => Encryption::None,
    };
    let known = || Checksum::ALL.map(Checksum::name).join(", ");
    let checksum = args.checksum.as_deref().map(|name| {
        let found = Checksum::from_name(name);
        found.ok_or_else(|| anyhow!("--checksum {name}: choose one of {}", known()))
    });
    let defaults = RequestOptions::default();
    Ok(RequestOptions {
        encryption,
        checksum: checksum.transpose()?,
        storage_class: args.storage_class.clone(),
        tags: pairs("--tag", &args.tag)?,
        metadata: pairs("--add-metadata", &args.add_metadata)?,
        if_none_match: args.if_none_match,
        part_size: Some(args.part_size.map_or(PART_SIZE_DEFAULT, |size| size.0)),
        part_concurrency: args.part_parallel.unwrap_or(defaults.part_concurrency),
        disable_multipart: args.disable_multipart,
        signature: match args.signature {
            SignatureArg::S3v2 => Signature::V2,
            SignatureArg::S3v4 | SignatureArg::Iam | SignatureArg::StsWebToken => Signature::V4,
        },
    })
}

impl RequestArgs {
    /// Returns how many parts of an upload of a job are in flight at most.
    pub(crate) fn parts_in_flight(&self, plan: &Plan, job: &Job) -> u64 {
        let part_size = self.part_size.map_or(PART_SIZE_DEFAULT, |size| size.0);
        let is_larger = |set: SetIndex| {
            let sizes = match &plan.set(set).members {
                Members::Objects(objects) => objects.sizes.as_ref(),
                Members::Named(named) => named.sizes.as_ref(),
                _ => None,
            };
            sizes.is_none_or(|sizes| sizes.max() > part_size)
        };
        let in_parts = !self.disable_multipart
            && job.work.sends_content()
            && job.work.sets().into_iter().any(is_larger);
        let parts = self.part_parallel.unwrap_or(RequestOptions::default().part_concurrency);
        if in_parts { parts.into() } else { 1 }
    }
}

/// Returns names and values, `rand:N` as N random letters.
fn pairs(flag: &str, pairs: &[Pair]) -> Result<Vec<(String, String)>> {
    for (at, Pair(name, _)) in pairs.iter().enumerate() {
        if pairs[..at].iter().any(|Pair(other, _)| other == name) {
            bail!("{flag} {name}: given twice");
        }
    }
    let value = |Pair(name, value): &Pair| {
        let Some(count) = value.strip_prefix("rand:") else {
            return Ok((name.clone(), value.clone()));
        };
        let count: usize = count.parse().with_context(|| format!("{flag} {name}={value}"))?;
        Ok((name.clone(), fresh::letters(count).context("/dev/urandom")?))
    };
    pairs.iter().map(value).collect()
}

/// What `--host` names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    endpoints: Vec<Endpoint>,
    tls: bool,
}

impl Hosts {
    /// Tells whether none is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}

/// Reads `--host`; `https://` before its hosts means TLS as the flag does.
fn hosts_of(hosts: &str, tls: bool) -> Result<Hosts> {
    let (name, list) = match hosts.strip_prefix(FILE_SCHEME) {
        None => ("--host".to_owned(), hosts.to_owned()),
        Some(path) => {
            let text = input::read_text(Path::new(path), HOST_FILE_BYTES_MAX)
                .with_context(|| format!("--host: cannot read the host file {path}"))?;
            let lines: Vec<&str> =
                text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            if lines.is_empty() {
                bail!("--host: {path} names no host");
            }
            (format!("--host: {path}"), lines.join(","))
        }
    };
    let (scheme, list) = split_scheme(&list).with_context(|| name.clone())?;
    if scheme == Some(Scheme::Http) && tls {
        bail!(
            "{name} begins with http://, which is plain HTTP, and --tls (or PLIMSOLL_TLS) is given; \
             leave one of them out"
        );
    }
    let tls = tls || scheme == Some(Scheme::Https);
    let port = if tls { PORT_TLS } else { PORT_PLAIN };
    let endpoints = expand_hosts(&list, port).context(name)?;
    Ok(Hosts { endpoints, tls })
}

/// Returns the same flags with hosts that lie in a file named as such, for who has no such file.
pub(crate) fn without_host_file(args: &StoreArgs) -> Result<StoreArgs> {
    let mut args = args.clone();
    if let Some(hosts) = args.host.as_deref().filter(|hosts| is_host_file(hosts)) {
        let Hosts { endpoints, tls } = hosts_of(hosts, args.tls)?;
        let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        (args.host, args.tls) = (Some(endpoints.join(",")), tls);
    }
    Ok(args)
}

/// Tells whether hosts are those in a file.
pub(crate) fn is_host_file(hosts: &str) -> bool {
    hosts.starts_with(FILE_SCHEME)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are read")]
mod tests {
    use std::time::Duration;

    use plimsoll_workload::plan::spec::{OneOrMany, S3Signature, S3Target};
    use plimsoll_workload::plan::{Secrets, Time};

    use crate::secret::Secret;

    use super::*;

    /// Returns the flags that a command line gives.
    fn flags(words: &[&str]) -> StoreArgs {
        use clap::Parser as _;

        let words = ["plimsoll", "run", "w.yaml"].iter().chain(words);
        match crate::args::Cli::try_parse_from(words).unwrap().command {
            crate::args::Command::Run(args) => args.store.clone(),
            _ => unreachable!("it was asked for"),
        }
    }

    #[test]
    fn each_store_is_reached_its_own_way() {
        let flags =
            flags(&["--access-key", "AK", "--secret-key", "SK-hush", "--signature", "S3V2"]);
        let secret = |text: &str| Secret::from(text.to_owned());
        let own = Secrets::keys(secret("AK2"), secret("SK2-hush"));
        let secrets: TargetSecrets = [("b".to_owned(), own)].into_iter().collect();
        let time = RunTime::simulated();
        let mut stores = Stores {
            seed: 1,
            variable: environment::no_variable,
            ..Stores::new(Some(&flags), &secrets, &time)
        };
        let mut reach = |target: &str, spec: S3Target| {
            let reached = stores.store(target, AskedStore::Named(&spec));
            let config = reached.unwrap_or_else(|error| panic!("{error}")).config;
            assert!(!format!("{config:?}").contains("hush"), "{config:?}");
            config
        };
        let hosts = |host: &str| OneOrMany(vec![host.to_owned()]);
        let a = reach("a", S3Target { hosts: hosts("h:1"), ..S3Target::default() });
        let keys = a.credentials.current().unwrap();
        assert_eq!((&*keys.access_key, keys.secret_key.expose()), ("AK", "SK-hush"));
        assert_eq!((a.options.signature, a.stall_timeout), (Signature::V2, None));
        assert!(a.proxies.is_none() && a.tls.is_none());
        let b = reach(
            "b",
            S3Target {
                hosts: hosts("https://i"),
                signature: Some(S3Signature::V4),
                timeout: Some(Time(Duration::from_secs(7))),
                proxy: Some("p:3128".to_owned()),
                storage_class: Some("COLD".to_owned()),
                insecure: true,
                ..S3Target::default()
            },
        );
        let keys = b.credentials.current().unwrap();
        assert_eq!((&*keys.access_key, keys.secret_key.expose()), ("AK2", "SK2-hush"));
        assert_eq!(b.options.signature, Signature::V4);
        let seven = Duration::from_secs(7);
        assert_eq!((b.connect_timeout, b.stall_timeout), (seven, Some(seven)));
        assert!(b.proxies.is_some() && b.tls.is_some());
        assert_eq!(b.options.storage_class.as_deref(), Some("COLD"));
        // What one says is not said of the next.
        let c = reach("c", S3Target { hosts: hosts("j:1"), ..S3Target::default() });
        assert!(c.proxies.is_none() && c.tls.is_none() && c.stall_timeout.is_none());
    }

    #[test]
    fn a_scheme_before_a_host_means_tls_or_none() {
        let read = |hosts: &str, tls| {
            let hosts = hosts_of(hosts, tls).map_err(|error| format!("{error:#}"))?;
            let names: Vec<String> = hosts.endpoints.iter().map(ToString::to_string).collect();
            Ok::<_, String>((names.join(" "), hosts.tls))
        };
        let of = |hosts: &str, tls| Ok((hosts.to_owned(), tls));
        assert_eq!(read("h", false), of("h:80", false));
        assert_eq!(read("https://h", false), of("h:443", true));
        assert_eq!(read("https://h:9000/,i", true), of("h:9000 i:443", true));
        assert_eq!(read("http://h:9000", false), of("h:9000", false));
        let refusal = read("http://h", true).unwrap_err();
        assert!(refusal.contains("--tls (or PLIMSOLL_TLS) is given"), "{refusal}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\nhttps://a\n b{1...2}:7 \n").unwrap();
        let path = format!("file:{}", file.path().display());
        assert_eq!(read(&path, false), of("a:443 b1:7 b2:7", true));
        std::fs::write(file.path(), "\n").unwrap();
        assert!(read(&path, false).unwrap_err().ends_with("names no host"));
        assert!(read("file:/dev/zero", false).unwrap_err().ends_with("is not a regular file"));
        for hosts in ["http://AK:SECRET@h:9", "h,user:SECRET@h", "https://h?x=SECRET"] {
            let refusal = read(hosts, false).unwrap_err();
            assert!(refusal.starts_with("--host: ") && !refusal.contains("SECRET"), "{refusal}");
        }
    }
}

/// What is filled does not fit in the embedded store.
#[derive(Debug)]
pub(crate) struct EmbeddedFull(String);

impl fmt::Display for EmbeddedFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EmbeddedFull {}

/// The embedded store keeps everything in memory, so what is filled must fit.
pub(crate) fn check_embedded_memory(plan: &Plan) -> Result<()> {
    let owed = plan.owed();
    let capacity = embedded::capacity_bytes();
    if owed.bytes_filled > capacity as f64 {
        let mean = owed.bytes_filled / owed.members_filled.max(1) as f64;
        return Err(EmbeddedFull(format!(
            "{} objects of {} on average need {}, and the embedded store holds {}; fill fewer or \
             smaller ones, or name a store (`host`)",
            owed.members_filled,
            Bytes(mean as u64),
            format::bytes(owed.bytes_filled as u64),
            format::bytes(capacity)
        ))
        .into());
    }
    Ok(())
}
