//! `plimsoll clean`: removes what an earlier run left in its bucket, and nothing else.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_conduct::leftovers::{NamedFiles, Root, id_of, named_files, open_target, own_roots};
use plimsoll_conduct::{RunTime, Store, in_one_line, lease};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_file::work_dir::{Leftovers, find, is_alive, sweep};
use plimsoll_driver_seaweed::{Security, SigningKeys};
use plimsoll_engine::RunClock;
use plimsoll_http::Url;
use plimsoll_model::{Clock, Lookup};
use plimsoll_record::schema::{Cleanup, CleanupState, Manifest, Target};
use plimsoll_record::{Lease, RunDirectory};
use plimsoll_report::format;
use plimsoll_report::table::harmless;
use plimsoll_workload::plan::spec::TargetSpec;
use plimsoll_workload::plan::{Change, Members, TargetSecrets};

use super::clean_bucket;
use crate::args::CleanArgs;
use crate::args::s3::{LookupArg, StoreArgs};
use crate::lower::in_words;
use crate::store::Stores;
use crate::ui::Ui;
use crate::{lower, said, store};

/// What a run directory is known by.
const MANIFEST: &str = "run.json";

/// What is said of a run that left nothing.
const NOTHING: &str = "the run wrote nothing that would have to be removed\n";

/// Finishes the cleaning of the run in a directory.
pub(crate) fn run(args: &CleanArgs) -> Result<ExitCode> {
    let ui = Ui::plain();
    if let Some(url) = args.run.to_str().filter(|text| text.contains("://")) {
        return clean_bucket::run(url, args, &ui);
    }
    if args.run.to_string_lossy().contains('@') && !args.run.exists() {
        bail!("a bucket is named http(s)://HOST[:PORT]/BUCKET, and keys with --access-key");
    }
    if !args.run.join(MANIFEST).exists() && args.run.is_dir() {
        return clean_work_dir(args, &ui);
    }
    if args.id.is_some() || args.older_than.is_some() || !args.prefix.is_empty() {
        bail!("--run, --older-than and --prefix choose among runs; a run directory is one run's");
    }
    let directory = RunDirectory::open(&args.run)?;
    let mut manifest = directory.read_manifest()?;
    let Some(_lease) = Lease::try_take(&args.run)? else {
        bail!("run {} is still going on; nothing is removed until it has ended", manifest.run_id);
    };
    let roots = own_roots(&manifest)?;
    let named = named_files(&manifest, &directory)?;
    let on_files = || manifest.targets().filter_map(|target| target.files.as_ref());
    let of_target =
        |index| roots.iter().filter(|root| root.target == index).collect::<Vec<&Root>>();
    let stores = || {
        let of = manifest.targets().enumerate().map(|(index, target)| (target, of_target(index)));
        of.filter(|(target, roots)| !roots.is_empty() && !target.embedded)
    };
    if manifest.targets().any(|target| target.embedded) {
        ui.note("the embedded store ended with the run's process, so nothing of it is left");
    }
    let of_user = names_of_user(&manifest);
    if stores().next().is_none() && named.is_empty() && on_files().next().is_none() {
        ui.result(of_user.as_deref().unwrap_or(NOTHING))?;
        return Ok(ExitCode::SUCCESS);
    }
    of_user.iter().for_each(|text| ui.note(text.trim_end()));
    check_security(args, &manifest)?;
    // Nothing is removed anywhere before all of it may be.
    let mut reached = Vec::new();
    for (target, roots) in stores() {
        let is_named = names_host(args, target);
        // What is refused as a host may be a secret, and is not shown.
        let store_args = store_args(args, target, is_named)?;
        let sent = secret_sent(args, &manifest, (roots[0].target, target), is_named)?;
        if !is_named || sent.is_some() {
            confirm(args, target, &roots, sent.as_ref(), &ui)?;
        }
        reached.push((open(&manifest, roots[0].target, &store_args, args)?, roots));
    }
    named.iter().try_for_each(|files| confirm_named(args, files, &ui))?;
    let begun = RunClock::start();
    let of_stores = reached
        .iter()
        .map(|((store, hosts), roots)| clean_objects(&manifest, store, hosts, roots, &ui));
    let of_named = named.iter().map(|files| clean_named(args, files, &ui));
    let of_files = on_files().map(|files| clean_files(&files.directories, &manifest, &ui));
    let removed = all_of(of_stores.chain(of_named), &ui);
    let removed_files = all_of(of_files, &ui);
    let (removed, removed_files) = (removed?, removed_files?);
    manifest.cleanup = Cleanup {
        state: CleanupState::Complete,
        objects_removed_count: Some(removed + removed_files),
        files_removed_count: Some(removed_files),
        took_ns: Some(begun.now().as_ns()),
    };
    directory.write_manifest(&manifest)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what is said of objects that a run wrote under names of its user's own, if it may have.
fn names_of_user(manifest: &Manifest) -> Option<String> {
    let plan = manifest.workload.plan()?;
    let mut places: Vec<String> = Vec::new();
    for wanted in plan.consents.iter().filter(|wanted| wanted.change == Change::Writes) {
        let Members::Named(named) = &plan.set(wanted.set).members else { continue };
        let keys = wanted.keys.as_ref().unwrap_or(&named.keys);
        let buckets = named.buckets.as_ref().map(|buckets| format!(" in buckets `{buckets}`"));
        let place = format!("`{keys}`{}", buckets.unwrap_or_default());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (!places.is_empty()).then(|| {
        format!(
            "objects under names that the workload gives are kept, as others may use them: \
            objects {}. Remove them by a workload with a stage for that (`remove`, `buckets`; \
             COSBench's cleanup and dispose)\n",
            harmless(&places.join(", "))
        )
    })
}

/// Returns how much was removed in all, or why not all of it was: what cannot be reached keeps
/// nothing else from being removed.
fn all_of(parts: impl Iterator<Item = Result<u64>>, ui: &Ui) -> Result<u64> {
    let (mut removed, mut failed) = (0, None);
    for part in parts {
        match part {
            Ok(count) => removed += count,
            Err(error) => {
                let before = failed.replace(error);
                before.iter().for_each(|error| ui.warn(&format!("{error:#}")));
            }
        }
    }
    failed.map_or(Ok(removed), Err)
}

/// Opens a target of a run, and returns the hosts that it is asked at. Where nobody is asked, the
/// user's keys go to hosts that the user names.
fn open(
    manifest: &Manifest,
    target: usize,
    args: &StoreArgs,
    CleanArgs { security, store, yes, .. }: &CleanArgs,
) -> Result<(Store, String)> {
    let (time, secrets) = (&RunTime::machine(), &TargetSecrets::default());
    let hosts = args.host.clone().unwrap_or_default();
    let plain = Stores::new(Some(args), secrets, time);
    let lends_to = yes.then(|| store::named_hosts(store)).transpose()?;
    let mut reach = Stores { security: security.as_deref(), lends_to, ..plain };
    let store = open_target(manifest, target, &hosts, &mut reach, time);
    Ok((store.map_err(lower::with_advice)?, hosts))
}

/// Removes what a run left in the buckets, or the directories, of a store.
fn clean_objects(
    manifest: &Manifest,
    store: &Store,
    host: &str,
    roots: &[&Root],
    ui: &Ui,
) -> Result<u64> {
    let time = RunTime::machine();
    let admin_of = store.admin.as_ref().context("this store has no administration")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    let mut removed_count = 0;
    for Root { bucket, prefix, .. } in roots {
        let place = format!("{} `{}`", store.record.root_word(), store.record.root_name(bucket));
        ui.note(&format!("removing what lies below `{prefix}` in {place} on {host}"));
        let mut admin = admin_of(Some(bucket), &time.clock).map_err(lower::with_advice)?;
        let marked = lease::is_marked(&mut *admin, prefix);
        if runtime.block_on(marked).map_err(in_words)? {
            bail!(
                "run {} is still going on, as a mark below `{}` says; nothing is removed until it \
                 has ended. The mark of a run that was killed ends a minute after that",
                manifest.run_id,
                lease::marks_of(prefix)
            );
        }
        let removed = runtime.block_on(lease::sweep_run(&mut *admin, prefix, None));
        let removed =
            removed.with_context(|| format!("cannot remove what lies below `{prefix}`"))?;
        removed_count += removed;
        let of_several = if roots.len() > 1 { format!(" in {place}") } else { String::new() };
        let what = format::plural(removed, manifest.noun());
        let said = format!("removed {what} below `{prefix}`{of_several} on {host}");
        ui.result(&format!("{}\n", harmless(&said)))?;
    }
    Ok(removed_count)
}

/// A secret of the user's that a host would be sent which only the record names.
struct Sent {
    secret: &'static str,
    host: String,
}

impl Sent {
    /// Refuses it where nobody is asked: the host gets no secret, whatever --yes allows.
    fn refuse_unasked(&self, args: &CleanArgs) -> Result<()> {
        let Self { secret, host } = self;
        if args.yes {
            bail!(
                "this would send {host} {secret}, as run.json says; name the host with --host if \
                 it may have it"
            );
        }
        Ok(())
    }

    /// Returns what is said of it after what is asked.
    fn words(sent: Option<&Self>) -> String {
        sent.map(|Self { secret, host }| format!(", and send {host} {secret}")).unwrap_or_default()
    }
}

/// Asks whether requests may go to the hosts that the record names. Somebody else may have written
/// it, and these hosts receive signatures and the session token, with Swift the password, and with
/// SeaweedFS tokens.
fn confirm(
    args: &CleanArgs,
    target: &Target,
    roots: &[&Root],
    sent: Option<&Sent>,
    ui: &Ui,
) -> Result<()> {
    sent.map_or(Ok(()), |sent| sent.refuse_unasked(args))?;
    let hosts = format::known_hosts(&target.endpoints).cloned().collect::<Vec<_>>().join(", ");
    let Root { bucket, prefix, .. } = roots[0];
    let more = match roots.len() {
        1 => String::new(),
        2 => " and 1 more".to_owned(),
        count => format!(" and {} more", count - 1),
    };
    let place = format!("{} `{}`", target.root_word(), target.root_name(bucket));
    let what = format!("remove what lies below `{prefix}` in {place}{more} on {hosts}");
    ask(args, &(what + &Sent::words(sent)), ", or name the host with --host", ui)
}

/// Returns the secret that a target of the record would be sent: the password of a Swift, at the
/// host that its workload signs in at, or tokens of a filer. `is_named` tells whether the user
/// names the hosts of the target.
fn secret_sent(
    args: &CleanArgs,
    manifest: &Manifest,
    (index, recorded): (usize, &Target),
    is_named: bool,
) -> Result<Option<Sent>> {
    let plan = manifest.workload.plan();
    let spec = plan.as_ref().and_then(|plan| plan.targets.get(index)?.spec.as_ref());
    Ok(match spec {
        Some(TargetSpec::Swift(spec)) => spec.auth.as_deref().and_then(|auth| {
            // What is no address is shown as it is, and refused once it is used.
            let host =
                Url::parse(auth).map_or_else(|_| auth.to_owned(), |url| url.endpoint.to_string());
            let is_sent = !(is_named && hosts_named(args).any(|name| name == host));
            is_sent.then_some(Sent { secret: "the user's password to sign in", host })
        }),
        Some(TargetSpec::Seaweedfs(_)) if !is_named => {
            tokens_sent(args, |keys| &keys.filer_keys, recorded_hosts(recorded))?
        }
        _ => None,
    })
}

/// Returns the tokens that a SeaweedFS at `host` would be sent, signed with keys of the
/// environment. Those of a file are used where the user names it for this very record (--security).
fn tokens_sent(
    args: &CleanArgs,
    of: fn(&Security) -> &SigningKeys,
    host: String,
) -> Result<Option<Sent>> {
    if args.security.is_some() {
        return Ok(None);
    }
    let keys = store::security(None, &AllowedDirs::ANY)?;
    let secret = "tokens signed with the user's keys (WEED_JWT_...)";
    Ok((*of(&keys) != SigningKeys::default()).then_some(Sent { secret, host }))
}

/// Returns the hosts that `--host` names.
fn hosts_named(args: &CleanArgs) -> impl Iterator<Item = &str> {
    args.store.host.iter().flat_map(|hosts| hosts.split(',')).map(str::trim)
}

/// Refuses to go on without the keys of a run. The record says where they are and which host they
/// would sign for, so they are opened only where the user names them, whatever --yes allows.
fn check_security(args: &CleanArgs, manifest: &Manifest) -> Result<()> {
    let Some(plan) = manifest.workload.plan().filter(|_| args.security.is_none()) else {
        return Ok(());
    };
    for (target, recorded) in plan.targets.iter().zip(manifest.targets()) {
        let Some(TargetSpec::Seaweedfs(spec)) = &target.spec else { continue };
        let Some(file) = &spec.security else { continue };
        let host = match recorded.has_directories() {
            true => recorded_hosts(recorded),
            false => spec.master.0.join(", "),
        };
        bail!(
            "the run used the keys of `{file}` for {host}, as run.json says; name their file with \
             --security FILE if they may be used there"
        );
    }
    Ok(())
}

/// The same of a SeaweedFS.
fn confirm_named(args: &CleanArgs, files: &NamedFiles, ui: &Ui) -> Result<()> {
    let NamedFiles { count, masters, .. } = files;
    if masters.split(',').all(|master| hosts_named(args).any(|name| name == master.trim())) {
        return Ok(());
    }
    let sent = tokens_sent(args, |keys| &keys.keys, masters.clone())?;
    sent.as_ref().map_or(Ok(()), |sent| sent.refuse_unasked(args))?;
    let list = files.list.display();
    let dropped =
        files.dropped().map(|name| format!(", and the collection `{name}` if it made it,"));
    let dropped = dropped.unwrap_or_default();
    let what = format!("remove the {count} files that {list} lists{dropped} on {masters}");
    ask(args, &(what + &Sent::words(sent.as_ref())), ", or name the masters with --host", ui)
}

/// Removes what a run wrote to a SeaweedFS that gave it names.
fn clean_named(args: &CleanArgs, files: &NamedFiles, ui: &Ui) -> Result<u64> {
    let security = store::security(args.security.as_deref(), &AllowedDirs::ANY)?;
    let removed = files.remove(security, &RunTime::machine());
    let removed = removed.map_err(lower::with_advice)?;
    let what = format::plural(removed, "file");
    ui.result(&format!("removed {what} from SeaweedFS on {}\n", harmless(&files.masters)))?;
    Ok(removed)
}

/// Asks whether something may be done at a host that the record names.
fn ask(args: &CleanArgs, what: &str, or_else: &str, ui: &Ui) -> Result<()> {
    if args.yes {
        ui.note(&format!("--yes: about to {what}"));
        return Ok(());
    }
    match ui.ask(&format!("{what}, which run.json names?"))? {
        Some(true) => Ok(()),
        Some(false) => bail!("nothing was removed"),
        None => {
            bail!("this would {what}, as run.json says; add --yes to allow it{or_else}")
        }
    }
}

/// Removes what a run on files left in the directories that it was given.
fn clean_files(directories: &[String], manifest: &Manifest, ui: &Ui) -> Result<u64> {
    let id = id_of(manifest)?;
    let mut removed = 0;
    for place in directories {
        refuse_living(Path::new(place), id.as_str())?;
        removed += sweep(Path::new(place), id.as_str(), &|| false)?.files;
        ui.result(&format!("nothing of run {id} is left in {}\n", harmless(place)))?;
    }
    ui.result(&format!("removed {}\n", format::plural(removed, "file")))?;
    Ok(removed)
}

/// Lists what runs left in a directory, and removes it when asked to.
fn clean_work_dir(args: &CleanArgs, ui: &Ui) -> Result<ExitCode> {
    if args.older_than.is_some() || !args.prefix.is_empty() {
        bail!("--older-than and --prefix are for buckets; --run ID chooses in a directory");
    }
    let place = args.run.display();
    let Leftovers { runs: mut found, left_alone } = find(&args.run)?;
    found.retain(|left| args.id.as_ref().is_none_or(|id| *id == left.run_id));
    for (run, error) in left_alone {
        match &args.id {
            Some(id) if *id == run => return Err(error.into()),
            Some(_) => {}
            None => ui.warn(&format!("left alone: {}", in_one_line(&error))),
        }
    }
    if found.is_empty() {
        ui.result(&format!("no run left anything in {place}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for left in &found {
        let (files, bytes) = (left.files, format::bytes(left.bytes));
        let run = &left.run_id;
        let state = match left.is_alive {
            true => "still going on; left alone".to_owned(),
            false => format!("since {}", left.modified),
        };
        ui.result(&format!("{run}: {files} files, {bytes}, {state}\n"))?;
    }
    let ended = || found.iter().filter(|left| !left.is_alive);
    if ended().next().is_some() {
        ui.result(match args.yes {
            true => {
                let swept = ended().map(|left| sweep(&args.run, &left.run_id, &|| false));
                all_of(swept.map(|swept| Ok(swept?.files)), ui)?;
                "removed\n"
            }
            false => "nothing was removed; add --yes to remove this\n",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells whether the user names the hosts: on the command line, or in the environment the same as
/// the record. Another host in the environment is where this user's next run goes, not where this
/// one was.
fn names_host(args: &CleanArgs, target: &Target) -> bool {
    let Some(host) = &args.store.host else { return false };
    let host = host.split_once("://").map_or(&**host, |(_, rest)| rest);
    said::is_typed("--host") || host == recorded_hosts(target)
}

/// Returns the hosts of the record as `--host` takes them.
fn recorded_hosts(target: &Target) -> String {
    let host = |url: &String| {
        url.split_once("://").map_or_else(|| url.clone(), |(_, authority)| authority.to_owned())
    };
    format::known_hosts(&target.endpoints).map(host).collect::<Vec<_>>().join(",")
}

/// Refuses to remove the files of a run that is under way.
fn refuse_living(place: &Path, run: &str) -> Result<()> {
    // What is not there cannot live.
    if is_alive(place, run).unwrap_or(false) {
        bail!(
            "run {run} is still going on in {}; nothing is removed until it has ended",
            place.display()
        );
    }
    Ok(())
}

/// Returns how to reach the store of a run: where it is as the flags say, else as the record says;
/// how it is spoken to as the flags say.
fn store_args(args: &CleanArgs, target: &Target, is_named: bool) -> Result<StoreArgs> {
    if is_named {
        return Ok(args.store.clone());
    }
    // What is no host and port would be read as a pattern, or as a file of hosts.
    if target.endpoints.iter().any(|url| url.contains(['@', '{']) || url.starts_with("file:")) {
        bail!("run.json names endpoints that are not hosts; name the host with --host");
    }
    Ok(StoreArgs {
        host: Some(recorded_hosts(target)),
        tls: target.tls.unwrap_or(false),
        region: target.region.clone(),
        lookup: match target.lookup {
            Some(Lookup::Path) => LookupArg::Path,
            Some(Lookup::Dns) => LookupArg::Dns,
            Some(Lookup::Auto) | None => LookupArg::Auto,
        },
        ..args.store.clone()
    })
}
