//! What runs left behind: found in a bucket by what it is called, or in a record by what it says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use plimsoll_driver::{Admin, Driver as _, DriverError};
use plimsoll_driver_s3::S3Admin;
use plimsoll_driver_seaweed::{Security, read_list};
use plimsoll_model::{ErrorClass, RunId, Seed, TargetKind};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{Manifest, Target};
use plimsoll_workload::plan::spec::{OneOrMany, SeaweedTarget, TargetSpec};
use plimsoll_workload::plan::{FieldPath, Placed, Placing, TargetIndex};

use crate::error::refused;
use crate::opening::{AskedStore, Reach, filer_config, seaweed_config};
use crate::{ConductError, RunTime, Stop, Store, lease, opening};

/// Below it every run has a prefix of its own.
const HOME: &str = "plimsoll/";

/// What one run left in a bucket.
#[derive(Default)]
pub struct Left {
    /// Objects, or versions of them.
    pub versions: u64,
    /// Marks of deletion.
    pub markers: u64,
    /// Uploads that were not completed.
    pub uploads: u64,
    /// Content of the objects.
    pub bytes: u64,
    /// Whether the run is still going on.
    pub is_alive: bool,
    /// One of its objects.
    sample: Option<String>,
}

/// What runs left in a bucket.
pub struct Found {
    /// What all of it lies below.
    pub home: String,
    /// By run; what belongs to none is under a name that is no run's.
    pub runs: BTreeMap<String, Left>,
    /// Keys of marks of runs that are under way, or were.
    marks: Vec<String>,
}

impl Found {
    /// Looks below the prefix that the runs were given.
    pub async fn below(admin: &mut S3Admin, prefix: &str) -> Result<Self, DriverError> {
        let home = home_below(prefix);
        let mut found = Self { home: home.clone(), runs: BTreeMap::new(), marks: Vec::new() };
        // A server without versions has a plain listing.
        match admin.survey_versions(&home, None).await {
            Ok(versions) => {
                for version in versions {
                    let Some(left) = found.of(&version.key) else { continue };
                    left.markers += u64::from(version.is_marker);
                    left.versions += u64::from(!version.is_marker);
                    left.bytes += version.size;
                    if !version.is_marker {
                        left.sample.get_or_insert(version.key);
                    }
                }
            }
            Err(error) if error.status.is_none() => return Err(error),
            Err(_) => {
                for object in admin.survey(&home, None, true).await? {
                    let Some(left) = found.of(&object.key) else { continue };
                    left.versions += 1;
                    left.bytes += object.size;
                    left.sample.get_or_insert(object.key);
                }
            }
        }
        let uploads = match admin.survey_uploads(&home).await {
            // Nor does every server list uploads.
            Err(error) if error.status.is_some() => Vec::new(),
            uploads => uploads?,
        };
        for upload in uploads {
            found.of(&upload.key).into_iter().for_each(|left| left.uploads += 1);
        }
        for mark in std::mem::take(&mut found.marks) {
            let below = mark.strip_prefix(&home).and_then(lease::read);
            let left = below.and_then(|(run, _)| found.runs.get_mut(run));
            let Some(left) = left.filter(|left| !left.is_alive) else { continue };
            left.is_alive = lease::holds(admin, &mark).await?;
        }
        Ok(found)
    }

    /// Keeps what runs left that are meant: this one, and such as began that long ago, as the
    /// store's clock says.
    pub async fn retain(
        &mut self,
        admin: &mut S3Admin,
        id: Option<&str>,
        older_than: Option<Duration>,
    ) -> Result<(), DriverError> {
        self.runs.retain(|run, _| is_run(run) && id.is_none_or(|id| id == run));
        let Some(limit) = older_than else { return Ok(()) };
        let now = admin.now().await?.as_deref().and_then(lease::http_time);
        let silent = "the store does not say what time it is (`Date`), so nothing has an age there";
        let now = now.ok_or_else(|| DriverError::new(ErrorClass::Protocol, silent))?;
        for (run, left) in std::mem::take(&mut self.runs) {
            let dates = match &left.sample {
                Some(key) => admin.dates_of(key).await?,
                None => None,
            };
            let written = dates.and_then(|dates| lease::http_time(&dates.modified));
            // Where only marks of deletion are left, or uploads, its name has to do.
            let began = written.or_else(|| began_at(&run));
            if began.is_some_and(|began| now.saturating_sub(limit) > began) {
                self.runs.insert(run, left);
            }
        }
        Ok(())
    }

    /// Returns what is counted for the run that a key belongs to; keys that belong to none are
    /// counted under a name that is no run's. A mark of a run that is under way is noted and not
    /// counted.
    fn of(&mut self, key: &str) -> Option<&mut Left> {
        let rest = key.strip_prefix(&self.home).unwrap_or_default();
        if let Some((run, _)) = lease::read(rest) {
            self.runs.entry(run.to_owned()).or_default();
            self.marks.push(key.to_owned());
            return None;
        }
        let run = rest.split_once('/').map_or("", |(run, _)| run);
        Some(self.runs.entry(run.to_owned()).or_default())
    }
}

fn home_below(prefix: &str) -> String {
    let prefix = prefix.trim_matches('/');
    if prefix.is_empty() { HOME.to_owned() } else { format!("{prefix}/{HOME}") }
}

/// Tells whether a name is one that a run has.
pub fn is_run(name: &str) -> bool {
    began_at(name).is_some()
}

/// Returns when a run began, as its id says: `<what>-<UTC time>-<4 characters>`.
fn began_at(run: &str) -> Option<DateTime> {
    RunId::parse(run).ok()?;
    let mut parts = run.rsplit('-');
    let (suffix, time) = (parts.next()?, parts.next()?);
    if suffix.len() != 4 {
        return None;
    }
    DateTime::strptime("%Y%m%dt%H%M%Sz", time).ok()
}

/// Where objects of a run lie.
pub struct Root {
    /// The place of its target in the record.
    pub target: usize,
    /// The bucket.
    pub bucket: String,
    /// What their keys begin with.
    pub prefix: String,
}

/// Returns the id of a run, as its record says.
pub fn id_of(manifest: &Manifest) -> Result<RunId, ConductError> {
    let refused = |error: plimsoll_model::RunIdError| ConductError::Of {
        what: "the manifest's run_id".to_owned(),
        source: error.into(),
    };
    RunId::parse(&manifest.run_id).map_err(refused)
}

/// Returns where the objects of the run lie, checked: a manifest that somebody edited must not
/// empty a bucket.
pub fn own_roots(manifest: &Manifest) -> Result<Vec<Root>, ConductError> {
    let id = id_of(manifest)?;
    let own = format!("plimsoll/{id}/");
    let checked = |prefix: String| {
        let is_own = *prefix == own || prefix.ends_with(&format!("/{own}"));
        if !is_own || !is_run(id.as_str()) {
            return refused(format!(
                "run.json names the prefix `{prefix}`, which does not belong to run {id}"
            ));
        }
        Ok(prefix)
    };
    let placed = placed(manifest, &id);
    let mut roots = Vec::new();
    for (target, recorded) in manifest.targets().enumerate() {
        let has_keys = recorded.files.is_none() && !recorded.has_collections();
        let Some(prefix) = recorded.prefix.as_ref().filter(|_| has_keys) else { continue };
        let Some(bucket) = recorded.bucket.clone() else {
            return refused("run.json names no bucket");
        };
        let index = TargetIndex(target);
        let (mut prefixes, buckets) = match &placed {
            Some(placed) => (placed.bases(index), placed.own_buckets(index)),
            None => (Vec::new(), vec![None]),
        };
        if !prefixes.contains(prefix) {
            prefixes.push(prefix.clone());
        }
        for prefix in prefixes {
            let prefix = checked(prefix)?;
            roots.extend(buckets.iter().map(|named| Root {
                target,
                bucket: named.clone().unwrap_or_else(|| bucket.clone()),
                prefix: prefix.clone(),
            }));
        }
    }
    Ok(roots)
}

/// Opens a target of a record whose objects have keys, to clean it. `reach` knows how the store is
/// reached where it speaks S3; a filer is one of `hosts`.
pub fn open_target(
    manifest: &Manifest,
    target: usize,
    hosts: &str,
    reach: &mut dyn Reach,
    time: &RunTime,
) -> Result<Store, ConductError> {
    let recorded = manifest.targets().nth(target);
    if recorded.is_some_and(|of| of.kind == Some(TargetKind::Swift)) {
        return open_swift(manifest, target, hosts, reach, time);
    }
    if !recorded.is_some_and(Target::has_directories) {
        let reached = reach.store("", AskedStore::Own).map_err(ConductError::Caller)?;
        return Store::s3(reached.config, true);
    }
    let plan = manifest.workload.plan();
    let spec = plan.as_ref().and_then(|plan| plan.targets.get(target)?.spec.as_ref());
    let Some(TargetSpec::Seaweedfs(spec)) = spec else {
        return refused("run.json does not say which SeaweedFS the run wrote to");
    };
    // Nothing is opened that only the record names.
    let security = reach.security(None).map_err(ConductError::Caller)?;
    let spec = SeaweedTarget { filer: OneOrMany(vec![hosts.to_owned()]), ..(**spec).clone() };
    let path = FieldPath::root().field("targets").field("seaweedfs");
    Ok(Store::filer(filer_config(&path, &spec, security)?, time))
}

/// Opens a Swift of a record, to clean it: where the run's workload says, if that is at one of
/// `hosts`.
fn open_swift(
    manifest: &Manifest,
    target: usize,
    hosts: &str,
    reach: &mut dyn Reach,
    time: &RunTime,
) -> Result<Store, ConductError> {
    let plan = manifest.workload.plan();
    let of = plan.as_ref().and_then(|plan| plan.targets.get(target));
    let Some((of, TargetSpec::Swift(spec))) = of.and_then(|of| Some((of, of.spec.as_ref()?)))
    else {
        return refused("run.json does not say which Swift the run wrote to");
    };
    let store = opening::open_swift((&of.name, &of.path), spec, true, reach, time)?;
    let found = store.driver.endpoints();
    match found.iter().all(|host| hosts.split(',').any(|of| of.trim() == host)) {
        true => Ok(store),
        false => refused(format!(
            "the account is on {} now, and the run wrote to {hosts}; name the host with --host",
            found.join(", ")
        )),
    }
}

/// What a run wrote to a target that gave it names.
pub struct NamedFiles {
    /// The place of the target in the record.
    pub target: usize,
    /// The file with the names.
    pub list: PathBuf,
    /// How many they are, those included that nothing was written under.
    pub count: u64,
    /// The masters, as the workload names them.
    pub masters: String,
    /// The collections that it wrote to; `None` is the target's own.
    collections: Vec<Option<String>>,
    spec: Box<SeaweedTarget>,
    run: RunDirectory,
}

/// Returns what the run wrote to targets that gave it names, as far as it is noted.
pub fn named_files(
    manifest: &Manifest,
    run: &RunDirectory,
) -> Result<Vec<NamedFiles>, ConductError> {
    let mut found = Vec::new();
    let plan = manifest.workload.plan();
    let placed = placed(manifest, &id_of(manifest)?);
    for (target, _) in manifest.targets().enumerate().filter(|(_, of)| of.has_collections()) {
        let spec = plan.as_ref().and_then(|plan| plan.targets.get(target)?.spec.as_ref());
        let Some(TargetSpec::Seaweedfs(spec)) = spec else {
            return refused("run.json does not say which SeaweedFS the run wrote to");
        };
        let list = run.names_path(target);
        // It is made before anything is written, so where it is not, nobody knows what is left.
        let ids = read_list(&run.read_names(target)?).map_err(|error| ConductError::Of {
            what: format!("cannot read {}", list.display()),
            source: error.into(),
        })?;
        let count = ids.len() as u64;
        let (spec, masters) = (spec.clone(), spec.master.0.join(", "));
        let collections = placed.as_ref().map(|placed| placed.own_buckets(TargetIndex(target)));
        let collections = collections.unwrap_or_else(|| vec![None]);
        let run = run.clone();
        found.push(NamedFiles { target, list, count, masters, collections, spec, run });
    }
    Ok(found)
}

impl NamedFiles {
    /// Returns the collection that goes with the files if the run made it.
    pub fn dropped(&self) -> Option<&str> {
        self.spec.collection.as_deref().filter(|_| self.spec.drop_collection)
    }

    /// Removes them and returns how many of them were there.
    pub fn remove(&self, security: Security, time: &RunTime) -> Result<u64, ConductError> {
        let path = FieldPath::root().field("targets").field("seaweedfs");
        let config = seaweed_config(&path, &self.spec, security)?;
        let store = Store::seaweed(config, time, &Stop::default())?;
        // Nothing is added to the list; it is what the sweep goes by.
        store.driver.keep_names(&self.list, self.run.open_names(self.target)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConductError::event_loop)?;
        let admin_of = store.admin.as_ref().expect("what is written to is administered");
        let mut removed = 0;
        for collection in &self.collections {
            let mut admin = admin_of(collection.as_deref(), &time.clock)?;
            removed += runtime.block_on(admin.sweep("")).map_err(ConductError::Target)?;
        }
        Ok(removed)
    }
}

/// Returns the workload of a run as it was laid out, as far as the record says.
fn placed(manifest: &Manifest, id: &RunId) -> Option<Placed> {
    let bucket = |target: &Target| target.bucket.clone().unwrap_or_default();
    let buckets: Vec<String> = manifest.targets().map(bucket).collect();
    let placing = Placing {
        run: id.as_str(),
        seed: Seed(manifest.seed),
        buckets: &buckets,
        found: &BTreeMap::new(),
    };
    Arc::new(manifest.workload.plan()?).place(&placing).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_run_says_when_it_began() {
        let began = began_at("s3-get-20261121t090000z-aaaa").unwrap();
        assert_eq!(Some(began), lease::http_time("Sat, 21 Nov 2026 09:00:00 GMT"));
        for foreign in ["", "backup", "s3-get", "2026-backup-aaaa", "x-20261121t090000z-toolong"] {
            assert!(!is_run(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_home_lies_below_the_prefix() {
        assert_eq!(home_below(""), "plimsoll/");
        assert_eq!(home_below("/a/b/"), "a/b/plimsoll/");
    }
}
