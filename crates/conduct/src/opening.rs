//! Opens what a workload is carried out on: the targets that it names, or the caller's own store.

use std::time::Duration;

use plimsoll_driver::MissingRoot;
use plimsoll_driver::mock::{Mock, MockDriver};
use plimsoll_driver::null::NullDriver;
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_s3::S3Config;
use plimsoll_driver_seaweed::{
    AssignBy, FILER_PORT, FilerConfig, SeaweedConfig, Security, UploadBy, masters_of, ttl_of,
};
use plimsoll_driver_swift::{Access, AccessError, SwiftConfig};
use plimsoll_http::{AllowedHosts, Endpoint, TlsConfig, TlsOptions, Transport, expand_hosts};
use plimsoll_model::{Ability, Seed, TargetKind};
use plimsoll_oracle::{Oracle, SCRIPT_SCHEMA, Script, ScriptError};
use plimsoll_workload::plan::spec::{
    NullTarget, OracleTarget, QueueSpec, S3Target, SeaweedAssign, SeaweedTarget, SeaweedUpload,
    SwiftTarget, TargetSpec,
};
use plimsoll_workload::plan::{FieldPath, Members, Plan, Target as PlanTarget, TargetIndex, Time};

use crate::{
    CallerError, ConductError, FilesOn, RunTime, Scripted, Stop, Store, Target, in_one_line, input,
    swift,
};

/// What a scripted store does that nobody has described.
const PLAIN_SCRIPT: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
/// The store whose load line is searched where nobody names or describes one. One that answers as
/// fast as it can would only be limited by the machine that it shares with the client; of this one
/// the line is known.
pub const QUEUE: QueueSpec = QueueSpec { servers: 4, time: Time(Duration::from_millis(1)) };

/// What stands in for all stores and files.
#[derive(Clone, Debug, Default)]
pub enum StandIn {
    /// Nothing: they are real.
    #[default]
    Nobody,
    /// Targets on which every operation succeeds at once.
    Null,
    /// Targets in virtual time that this script rules. Without one an oracle does as its own says;
    /// all others serve everything in 1 ms, and in a search are [`QUEUE`].
    Virtual(Option<Box<Script>>),
}

/// A store that is to be reached.
pub enum AskedStore<'a> {
    /// The caller's own.
    Own,
    /// One that the workload names.
    Named(&'a S3Target),
    /// An embedded one that does as a script says.
    Embedded(Option<Box<Script>>),
}

/// A secret of the caller's that the hosts of a target would be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// The password or token of a Swift user.
    SwiftLogin,
    /// Tokens that the keys of a SeaweedFS sign.
    SeaweedTokens,
}

/// A store that can be reached.
pub struct Reached {
    /// How the driver reaches it.
    pub config: S3Config,
    /// The embedded store; it ends when this is dropped.
    pub embedded: Option<Oracle>,
}

/// Says how stores are reached, as the caller was told.
pub trait Reach {
    /// Returns how a store that speaks S3 is reached: the target of that name in the plan.
    fn store(&mut self, target: &str, asked: AskedStore<'_>) -> Result<Reached, CallerError>;

    /// Returns what the `security.toml` at that place says, and the environment beside it; without
    /// a place what the environment says.
    fn security(&mut self, file: Option<&str>) -> Result<Security, CallerError>;

    /// Returns who signs in to the Swift that the target of that name is, as far as the workload
    /// does not say it.
    fn swift(&mut self, target: &str) -> Result<Access, CallerError>;

    /// Refuses to send these hosts a secret of the caller's: the workload names the hosts, and
    /// perhaps nobody else does. Each comes with whether it is spoken to over TLS; `is_unchecked`
    /// tells whether the workload has any certificate accepted.
    fn lend(
        &self,
        _secret: Lent,
        _is_unchecked: bool,
        _hosts: &[(&Endpoint, bool)],
    ) -> Result<(), CallerError> {
        Ok(())
    }

    /// Returns the hosts that connections may go to: to targets, proxies and sign-in servers.
    fn allowed(&self) -> AllowedHosts {
        AllowedHosts::ANY
    }

    /// Returns where the files may lie that the workload names.
    fn files(&self) -> AllowedDirs;

    /// Tells whether the caller lets buckets be created, and whether those that were stay, whatever
    /// the workload says.
    fn on_buckets(&self) -> (bool, bool) {
        (false, false)
    }

    /// Returns what gives opening up: a target may name servers that take long to answer.
    fn stop(&self) -> Stop {
        Stop::default()
    }

    /// Returns what carries connections to stores.
    fn transport(&self) -> Transport;

    /// Tells whether the workload is only judged, so that nobody is asked anything.
    fn only_judges(&self) -> bool;
}

/// Returns what carries connections over TLS or not, if it can.
fn carried(reach: &dyn Reach, tls: bool) -> Result<Transport, ConductError> {
    let carried = reach.transport().direct(tls, !reach.only_judges());
    carried.map_err(|error| ConductError::Caller(error.into()))
}

/// Refuses hosts that may not be connected to, before anything of them is.
fn check<'e>(
    reach: &dyn Reach,
    endpoints: impl IntoIterator<Item = &'e Endpoint>,
) -> Result<(), ConductError> {
    let checked = reach.allowed().check_all(endpoints);
    checked.map_err(|error| ConductError::Caller(error.into()))
}

/// Refuses to send the hosts of a target a secret that goes to no host that only it names.
fn lend(
    reach: &dyn Reach,
    target: &str,
    (secret, is_unchecked): (Lent, bool),
    hosts: &[(&Endpoint, bool)],
) -> Result<(), ConductError> {
    let lent = reach.lend(secret, is_unchecked, hosts);
    lent.map_err(|source| ConductError::Of { what: format!("target {target}"), source })
}

/// The targets of a plan, as it is run.
#[derive(Default)]
pub struct Targets {
    /// By target of the plan.
    pub all: Vec<Target>,
    /// The stores that were opened for them; what is embedded ends when these are dropped.
    pub stores: Vec<Reached>,
    /// What is scripted; the script of each begins with what is measured.
    pub scripted: Vec<Scripted>,
}

impl Targets {
    /// Returns what a plan is to be run on; `reach` says how stores are reached.
    pub fn of(
        plan: &Plan,
        reach: &mut dyn Reach,
        stand_in: &StandIn,
        seed: Seed,
        time: &RunTime,
    ) -> Result<Self, ConductError> {
        let mut targets = Self::default();
        let stop = reach.stop();
        match stand_in {
            StandIn::Nobody => {
                for index in 0..plan.targets.len() {
                    if stop.is_step_stopped() {
                        return Err(ConductError::StoppedBefore);
                    }
                    let opened = targets.open(plan, TargetIndex(index), reach, time)?;
                    targets.all.push(opened);
                }
            }
            StandIn::Null => {
                let target = |index| match is_on_files(plan, index) {
                    true => Target::Files(FilesOn::Null),
                    false => null_store().into(),
                };
                targets.all = (0..plan.targets.len()).map(target).collect();
            }
            StandIn::Virtual(script) => {
                targets.simulate(plan, script.as_deref(), &reach.files(), &|of| {
                    Scripted::new(of, seed, time, false)
                })?;
            }
        }
        Ok(targets)
    }

    /// Opens what stands in for the targets in virtual time: one for all, and one for each oracle
    /// with a script of its own.
    fn simulate(
        &mut self,
        plan: &Plan,
        script: Option<&Script>,
        files: &AllowedDirs,
        make: &dyn Fn(&Script) -> Scripted,
    ) -> Result<(), ConductError> {
        let shared = match script {
            Some(script) => make(script),
            // One that serves everything at once has no line.
            None if plan.stages.iter().any(|stage| stage.search.is_some()) => make(&*queue(QUEUE)?),
            None => make(&Script::from_yaml(PLAIN_SCRIPT).expect("what is built in is a script")),
        };
        self.scripted.push(shared.clone());
        for (index, target) in plan.targets.iter().enumerate() {
            let own = match &target.spec {
                Some(TargetSpec::Oracle(spec)) => script_of(spec, files)?,
                _ => None,
            };
            if own.is_some() && script.is_some() {
                let why =
                    "says what it does, and so does the script for all targets; leave one out";
                return Err(target.path.refuse(why).into());
            }
            let on = match own {
                Some(own) => {
                    self.scripted.push(make(&own));
                    &self.scripted[self.scripted.len() - 1]
                }
                None => &shared,
            };
            self.all.push(match is_on_files(plan, index) {
                true => Target::Files(FilesOn::Scripted(on.files.clone())),
                false => Store::without_admin(on.driver.clone(), TargetKind::Oracle).into(),
            });
        }
        Ok(())
    }

    /// Has files be those of the agents that carry the run out.
    pub fn by_agents(&mut self) {
        let on_files = self.all.iter_mut().filter(|target| target.files().is_some());
        on_files.for_each(|target| *target = Target::Files(FilesOn::Agents));
    }

    fn open(
        &mut self,
        plan: &Plan,
        index: TargetIndex,
        reach: &mut dyn Reach,
        time: &RunTime,
    ) -> Result<Target, ConductError> {
        let target = plan.target(index);
        refuse_unknown(target)?;
        let asked = match &target.spec {
            _ if is_on_files(plan, index.0) => return Ok(Target::Files(FilesOn::Machine)),
            Some(TargetSpec::Null(spec)) => return Ok(null_target(spec).into()),
            Some(TargetSpec::Seaweedfs(spec)) => {
                let checks = plan.checks_what_was_there(index);
                return open_seaweed(target, spec, checks, reach, time).map(Into::into);
            }
            Some(TargetSpec::Swift(spec)) => {
                let takes_parts = plan.needs(index).iter().any(|(need, _)| *need == Ability::Parts);
                let of = (&*target.name, &target.path);
                return open_swift(of, spec, takes_parts, reach, time).map(Into::into);
            }
            Some(TargetSpec::S3(spec)) => AskedStore::Named(spec),
            Some(TargetSpec::Oracle(spec)) => {
                AskedStore::Embedded(script_of(spec, &reach.files())?)
            }
            _ => AskedStore::Own,
        };
        let named = matches!(asked, AskedStore::Named(_)).then_some(&target.name);
        let is_oracle = matches!(target.spec, Some(TargetSpec::Oracle(_)));
        let (transport, is_here) = (reach.transport(), !reach.only_judges());
        let opened = reach.store(&target.name, asked).and_then(|mut reached| {
            reached.config.carry_by(transport, is_here)?;
            let is_shared = reached.embedded.is_none();
            let mut store = Store::s3(reached.config.clone(), is_shared)?;
            if is_oracle {
                store.record.kind = Some(TargetKind::Oracle);
            }
            Ok((store, reached))
        });
        let (store, reached) = opened.map_err(|source| match named {
            Some(name) => ConductError::Of { what: format!("target {name}"), source },
            None => ConductError::Caller(source),
        })?;
        self.stores.push(reached);
        Ok(store.into())
    }
}

/// Opens a SeaweedFS, by its masters or by its filers; `checks` tells whether what was there before
/// the run is to be checked.
fn open_seaweed(
    target: &PlanTarget,
    spec: &SeaweedTarget,
    checks: bool,
    reach: &mut dyn Reach,
    time: &RunTime,
) -> Result<Store, ConductError> {
    let security = reach
        .security(spec.security.as_deref())
        .map_err(|error| target.path.field("security").refuse(in_one_line(&*error)))?;
    let only_judges = reach.only_judges();
    let has_keys = !only_judges && security != Security::default();
    let lend_tokens = |reach: &dyn Reach, hosts: &[Endpoint], tls: bool| match has_keys {
        true => {
            let hosts: Vec<_> = hosts.iter().map(|host| (host, tls)).collect();
            lend(reach, &target.name, (Lent::SeaweedTokens, false), &hosts)
        }
        false => Ok(()),
    };
    if spec.is_filer() {
        let config = filer_config(&target.path, spec, security)?;
        check(reach, &config.filers)?;
        lend_tokens(reach, &config.filers, config.tls.is_some())?;
        let transport = carried(reach, config.tls.is_some())?;
        let config = FilerConfig { transport, ..config };
        return Ok(match only_judges {
            true => Store::judged(TargetKind::SeaweedfsFiler, config.directory),
            false => {
                let creates_directory = spec.create_bucket || reach.on_buckets().0;
                let config = FilerConfig { sums_reads: checks, creates_directory, ..config };
                Store::filer(config, time)
            }
        });
    }
    let config = seaweed_config(&target.path, spec, security)?;
    let masters: Vec<_> = config.masters.iter().map(|master| master.http.clone()).collect();
    check(reach, &masters)?;
    lend_tokens(reach, &masters, config.tls.is_some())?;
    let transport = carried(reach, config.tls.is_some())?;
    let creates_collection = spec.create_bucket || reach.on_buckets().0;
    let allowed = reach.allowed();
    let config = SeaweedConfig { transport, allowed, creates_collection, ..config };
    match only_judges {
        true => Ok(Store::judged(TargetKind::Seaweedfs, config.collection)),
        false => Store::seaweed(config, time, &reach.stop()),
    }
}

/// Opens a Swift; `name` and `path` are those of its target, `takes_parts` tells whether objects
/// are made of parts there.
pub(crate) fn open_swift(
    (name, path): (&str, &FieldPath),
    spec: &SwiftTarget,
    takes_parts: bool,
    reach: &mut dyn Reach,
    time: &RunTime,
) -> Result<Store, ConductError> {
    let said = swift::said(spec);
    let refused = |error: AccessError| path.field(error.field).refuse(error.why);
    said.check().map_err(refused)?;
    if reach.only_judges() {
        return Ok(Store::judged(TargetKind::Swift, spec.container().to_owned()));
    }
    let access = reach.swift(name).map_err(ConductError::Caller)?;
    let (sign_in, storage) = access.sign_in(&said).map_err(refused)?;
    let addresses = sign_in.address().into_iter().chain(&storage);
    check(reach, addresses.map(|address| &address.endpoint))?;
    // A workload that brings its own password or token may say where it goes.
    let brought = [&access.password, &access.token];
    if sign_in.secret().is_some_and(|secret| !brought.contains(&&Some(secret.clone()))) {
        let auth = sign_in.address().filter(|_| spec.auth.is_some());
        let account = storage.as_ref().filter(|_| spec.storage_url.is_some());
        let named: Vec<_> =
            auth.into_iter().chain(account).map(|of| (&of.endpoint, of.tls)).collect();
        lend(reach, name, (Lent::SwiftLogin, spec.insecure), &named)?;
    }
    // Whether the account is spoken to over TLS is known when the sign-in has said where it is.
    let transport = carried(reach, storage.as_ref().is_some_and(|storage| storage.tls))?;
    let plain = swift::config(spec, access, sign_in);
    let mut config = SwiftConfig { storage, transport, allowed: reach.allowed(), ..plain };
    config.has_segments |= takes_parts;
    let (create, keep) = reach.on_buckets();
    config.missing_container =
        MissingRoot::asked(create || spec.create_bucket, keep || spec.keep_bucket);
    Store::swift(config, time, &reach.stop())
}

/// Returns what an embedded store is to do; `None`: answer as fast as it can.
fn script_of(
    spec: &OracleTarget,
    files: &AllowedDirs,
) -> Result<Option<Box<Script>>, ConductError> {
    let script = spec.script.as_deref().map(|path| read_script(path, files));
    script.or_else(|| spec.queue.map(queue)).transpose()
}

/// Returns what a store does that is such a queue.
fn queue(QueueSpec { servers, time }: QueueSpec) -> Result<Box<Script>, ConductError> {
    let text = format!(
        "schema: {SCRIPT_SCHEMA}\nservice: {{time: {{exponential: {{mean: {time}}}}}}}\n\
         servers: {servers}"
    );
    let of = |source: ScriptError| ConductError::Of { what: "queue".into(), source: source.into() };
    Script::from_yaml(&text).map(Box::new).map_err(of)
}

fn read_script(path: &str, files: &AllowedDirs) -> Result<Box<Script>, ConductError> {
    let failed = |what, source| ConductError::Of { what, source };
    let text = input::read_named(files, path.as_ref())
        .map_err(|error| failed(format!("cannot read {path}"), error.into()))?;
    let script = Script::from_yaml(&text);
    script.map(Box::new).map_err(|error| failed(path.to_owned(), error.into()))
}

/// Returns how filers are reached as a workload describes them; `path` is that of the target.
pub(crate) fn filer_config(
    path: &FieldPath,
    spec: &SeaweedTarget,
    security: Security,
) -> Result<FilerConfig, ConductError> {
    let refuse = |field: &str, why: String| path.field(field).refuse(why);
    let filers = expand_hosts(&spec.filer.0.join(","), FILER_PORT);
    let filers = filers.map_err(|error| refuse("filer", error.to_string()))?;
    let directory = spec.directory.as_deref().unwrap_or(SeaweedTarget::DIRECTORY);
    let plain = FilerConfig::new(filers, directory);
    let plain = plain.map_err(|error| refuse("directory", error.to_string()))?;
    Ok(FilerConfig {
        collection: given(&spec.collection),
        replication: given(&spec.replication),
        ttl: ttl(path, spec)?,
        disk: given(&spec.disk),
        data_center: given(&spec.data_center),
        rack: given(&spec.rack),
        fsync: spec.fsync,
        keys: security.filer_keys,
        tls: tls(path, security.https)?,
        ..plain
    })
}

fn given(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

fn ttl(path: &FieldPath, spec: &SeaweedTarget) -> Result<String, ConductError> {
    let Some(time) = spec.ttl else { return Ok(String::new()) };
    ttl_of(time.0).ok_or_else(|| {
        let why = "must be a number of whole minutes or hours up to 255, or of days, as \
                   SeaweedFS writes it";
        path.field("ttl").refuse(why).into()
    })
}

fn tls(path: &FieldPath, options: Option<TlsOptions>) -> Result<Option<TlsConfig>, ConductError> {
    let loaded = options.map(|options| TlsConfig::load(&options)).transpose();
    loaded.map_err(|error| path.field("security").refuse(error.to_string()).into())
}

/// Returns how SeaweedFS is reached as a workload describes it; `path` is that of the target.
pub(crate) fn seaweed_config(
    path: &FieldPath,
    spec: &SeaweedTarget,
    security: Security,
) -> Result<SeaweedConfig, ConductError> {
    let mut masters = Vec::new();
    for (index, text) in spec.master.0.iter().enumerate() {
        let path = path.field("master");
        let path = if spec.master.0.len() == 1 { path } else { path.index(index) };
        masters.extend(masters_of(text).map_err(|error| path.refuse(error.to_string()))?);
    }
    let Security { keys, grpc, https, masters_are_plain, .. } = security;
    Ok(SeaweedConfig {
        replication: given(&spec.replication),
        data_center: given(&spec.data_center),
        rack: given(&spec.rack),
        assign_by: match spec.assign {
            SeaweedAssign::Call => AssignBy::Call,
            SeaweedAssign::Stream => AssignBy::Stream,
            SeaweedAssign::Http => AssignBy::Http,
        },
        assign_count: spec.ids_per_assign,
        upload_by: match spec.upload {
            SeaweedUpload::Form => UploadBy::Form,
            SeaweedUpload::Put => UploadBy::Put,
        },
        grow: spec.grow,
        drop_collection: spec.drop_collection,
        disk: given(&spec.disk),
        fsync: spec.fsync,
        ttl: ttl(path, spec)?,
        keys,
        tls: tls(path, https)?,
        masters_are_plain,
        grpc_tls: tls(path, grpc)?,
        ..SeaweedConfig::new(masters, given(&spec.collection))
    })
}

/// Returns the store of nothing that behaves as the workload says.
fn null_target(spec: &NullTarget) -> Store {
    if *spec == NullTarget::default() {
        return null_store();
    }
    let mock = Mock {
        delay: spec.delay.0,
        error_rate: spec.error_rate.map_or(0.0, |rate| rate.0 / 100.0),
        read_bytes: spec.read_size.map_or(0, |size| size.0),
    };
    Store::without_admin(MockDriver::new(mock), TargetKind::Null)
}

fn null_store() -> Store {
    Store::without_admin(NullDriver, TargetKind::Null)
}

/// Refuses what the language knows and this program cannot run yet.
fn refuse_unknown(target: &PlanTarget) -> Result<(), ConductError> {
    let refused = match &target.spec {
        Some(TargetSpec::S3(S3Target { profile: Some(_), .. })) => {
            let why = "profiles cannot be used yet; give the keys beside the workload";
            target.path.field("profile").refuse(why)
        }
        _ => return Ok(()),
    };
    Err(refused.into())
}

/// Tells whether a target is files. One that the workload does not describe is, where all sets on
/// it are files, so that it needs no store.
fn is_on_files(plan: &Plan, index: usize) -> bool {
    if let Some(spec) = &plan.targets[index].spec {
        return matches!(spec, TargetSpec::Files(_));
    }
    let sets = || plan.sets.iter().filter(|set| set.target == TargetIndex(index));
    sets().next().is_some()
        && sets().all(|set| matches!(set.members, Members::Files(_) | Members::Tree(_)))
}
