//! Checks a workload file: every name is known, every number in its bounds, and nothing is asked
//! for that cannot be.

mod blocks;
mod jobs;
mod mix;
mod named;
mod pacing;
mod replay;
mod sets;
mod stages;
mod swift;
mod trees;
mod uses;
mod work;

use std::fmt::Display;

use plimsoll_model::Seed;

use super::checked::{Members, NamedObjects, Plan, Set, SetIndex, Target, TargetIndex};
use super::path::{FieldPath, InvalidField};
use super::place::BUCKETS_MAX;
use super::spec::{
    Named, S3Target, SeaweedTarget, TargetSpec, Targets, WORKLOAD_SCHEMA, WorkloadFile,
};

pub(super) use named::file_name;
pub(super) use uses::{UseKind, of as uses_of};

type Checked<T> = Result<T, InvalidField>;

/// A stage's and a job's number are kept in one byte.
pub(super) const STAGES_MAX: usize = 256;
const JOBS_MAX: usize = 256;
/// The hosts of each are looked at.
const TARGETS_MAX: usize = 64;
/// Of all sets together.
const ALL_BUCKETS_MAX: u64 = 10 * BUCKETS_MAX;
/// Sets are compared with each other.
const SETS_MAX: usize = 4_096;

/// The most masters of a SeaweedFS, which are asked one after the other who leads; it runs with
/// three or five.
const MASTERS_MAX: usize = 64;
/// The most file ids that SeaweedFS is asked for at once.
const IDS_MAX: u32 = 10_000;
/// The most volumes that are made before a run.
const GROW_MAX: u32 = 10_000;
/// More are no queue.
const QUEUE_SERVERS_MAX: u32 = 10_000;

/// What the parts of a file are checked against.
struct Context<'a> {
    file: &'a WorkloadFile,
    targets: Vec<Target>,
    sets: Vec<Set>,
}

/// Whether members must be there when they are used, and leave is asked for what is changed.
#[derive(Clone, Copy)]
enum Uses {
    Checked,
    Recorded,
}

impl WorkloadFile {
    /// Returns what the workload means if it is sound.
    pub fn check(&self) -> Result<Plan, InvalidField> {
        self.check_with(Uses::Checked)
    }

    /// Returns what a workload meant that has run: what is asked for before a run is not again.
    pub fn recorded(&self) -> Result<Plan, InvalidField> {
        self.check_with(Uses::Recorded)
    }

    fn check_with(&self, uses: Uses) -> Checked<Plan> {
        let root = FieldPath::root();
        if self.schema != WORKLOAD_SCHEMA {
            let reason = format!("`{}` is not {WORKLOAD_SCHEMA}", self.schema);
            return Err(root.field("schema").refuse(reason));
        }
        is_label(&root.field("name"), &self.name)?;
        let mut cx = Context { file: self, targets: Vec::new(), sets: Vec::new() };
        cx.targets = targets(&root.field("targets"), &self.targets)?;
        let sets_count = self.sets.iter().count();
        if sets_count > SETS_MAX {
            let reason = format!("{sets_count} sets are too many: at most {SETS_MAX}");
            return Err(root.field("sets").refuse(reason));
        }
        for (name, spec) in self.sets.iter() {
            let path = root.field("sets").named(name);
            is_name(&path, name)?;
            let set = cx.set(&path, name, spec)?;
            cx.sets.push(set);
        }
        check_buckets(&root.field("sets"), &cx.sets)?;
        let stages = cx.stages(&root.field("stages"))?;
        let consents = match uses {
            Uses::Checked => {
                stages::check_results(&root.field("stages"), &stages)?;
                trees::check(&cx, &stages)?;
                replay::check_uses(&cx, &stages)?;
                uses::check(&cx, &stages)?
            }
            Uses::Recorded => Vec::new(),
        };
        let Context { targets, sets, .. } = cx;
        Ok(Plan {
            name: self.name.clone(),
            seed: self.seed.map(Seed),
            targets,
            sets,
            stages,
            consents,
            file: self.clone(),
        })
    }
}

/// Refuses more buckets of all sets together than can be named while a workload is judged. A set
/// that has too many by itself is refused when it is laid out.
fn check_buckets(path: &FieldPath, sets: &[Set]) -> Checked<()> {
    let count = |set: &Set| match &set.members {
        Members::Named(NamedObjects { buckets: Some(pattern), .. }) => {
            pattern.count().min(BUCKETS_MAX)
        }
        _ => 0,
    };
    let count: u64 = sets.iter().map(count).sum();
    if count > ALL_BUCKETS_MAX {
        let reason = format!("all together name {count} buckets: at most {ALL_BUCKETS_MAX}");
        return Err(path.refuse(reason));
    }
    Ok(())
}

/// Refuses a name that would not do in reports, paths of fields and records.
fn is_name(path: &FieldPath, name: &str) -> Checked<()> {
    let allowed = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    match !name.is_empty() && name.len() <= 128 && name.chars().all(allowed) {
        true => Ok(()),
        false => Err(path.refuse(format!(
            "`{name}` is not a name of 1 to 128 letters, digits, `-`, `_` and `.`"
        ))),
    }
}

/// Refuses a label that would break lines of reports.
fn is_label(path: &FieldPath, label: &str) -> Checked<()> {
    match !label.is_empty() && label.len() <= 256 && !label.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(path.refuse("must be 1 to 256 characters without line breaks")),
    }
}

fn at_least_one(path: &FieldPath, value: impl Into<u64>) -> Checked<()> {
    match value.into() {
        0 => Err(path.refuse("must be at least 1")),
        _ => Ok(()),
    }
}

fn in_range(path: &FieldPath, value: u64, max: impl Into<u64> + Display) -> Checked<()> {
    let shown = max.to_string();
    match (1..=max.into()).contains(&value) {
        true => Ok(()),
        false => Err(path.refuse(format!("{value} is out of range: 1 to {shown}"))),
    }
}

fn targets(path: &FieldPath, targets: &Targets) -> Checked<Vec<Target>> {
    let given = || Target { name: String::new(), spec: None, path: path.clone() };
    let several: &Named<TargetSpec> = match targets {
        Targets::Given => return Ok(vec![given()]),
        Targets::One(spec) => {
            let path = path.field(spec.kind());
            target(&path, spec)?;
            let name = spec.kind().to_owned();
            return Ok(vec![Target { name, spec: Some(spec.clone()), path }]);
        }
        Targets::Several(several) => several,
    };
    if several.is_empty() {
        return Ok(vec![given()]);
    }
    if several.len() > TARGETS_MAX {
        let reason = format!("{} targets are too many: at most {TARGETS_MAX}", several.len());
        return Err(path.refuse(reason));
    }
    let mut found = Vec::with_capacity(several.len());
    for (name, spec) in several.iter() {
        let at = path.named(name);
        is_name(&at, name)?;
        if TargetSpec::KINDS.contains(&name) {
            return Err(at.refuse(format!("`{name}` is a kind of target; take another name")));
        }
        let path = at.field(spec.kind());
        target(&path, spec)?;
        found.push(Target { name: name.to_owned(), spec: Some(spec.clone()), path });
    }
    Ok(found)
}

fn target(path: &FieldPath, spec: &TargetSpec) -> Checked<()> {
    for (field, addresses) in spec.addresses() {
        let path = path.field(field);
        for (index, address) in addresses.iter().enumerate() {
            let at = match addresses.len() {
                1 => path.clone(),
                _ => path.index(index),
            };
            if address.trim().is_empty() {
                return Err(at.refuse("must not be empty"));
            }
            if address.contains('@') {
                let reason = "an address must hold no user and no password; keys come from the \
                              environment or a profile";
                return Err(at.refuse(reason));
            }
        }
    }
    match spec {
        TargetSpec::S3(s3) => of_s3(path, s3),
        TargetSpec::Seaweedfs(seaweed) if seaweed.is_filer() => of_filer(path, seaweed),
        TargetSpec::Seaweedfs(seaweed) if seaweed.master.is_empty() => {
            let reason = "needs at least one address, or name filers (`filer`) instead";
            Err(path.field("master").refuse(reason))
        }
        TargetSpec::Seaweedfs(seaweed) => of_masters(path, seaweed),
        TargetSpec::Swift(swift) => swift::check(path, swift),
        TargetSpec::Files(files) if files.directory.0.iter().any(String::is_empty) => {
            Err(path.field("directory").refuse("must not be empty"))
        }
        TargetSpec::Null(null) => {
            jobs::percent(&path.field("error_rate"), null.error_rate).map(drop)
        }
        TargetSpec::Oracle(oracle) => {
            let Some(queue) = &oracle.queue else { return Ok(()) };
            let path = path.field("queue");
            if oracle.script.is_some() {
                return Err(path.refuse("the script says how it serves; leave one of both out"));
            }
            in_range(&path.field("servers"), queue.servers.into(), QUEUE_SERVERS_MAX)?;
            match queue.time.0.is_zero() {
                true => Err(path.field("time").refuse("must be more than nothing")),
                false => Ok(()),
            }
        }
        TargetSpec::Files(_) => Ok(()),
    }
}

/// Refuses what a store that speaks S3 cannot be told.
fn of_s3(path: &FieldPath, s3: &S3Target) -> Checked<()> {
    if s3.timeout.is_some_and(|timeout| timeout.0.is_zero()) {
        return Err(path.field("timeout").refuse("must be more than nothing; leave it out"));
    }
    if s3.storage_class.as_ref().is_some_and(String::is_empty) {
        return Err(path.field("storage_class").refuse("must not be empty"));
    }
    // The command line takes a file of hosts there: one that a workload names would be read on the
    // word of whoever wrote it.
    if s3.hosts.0.iter().any(|host| host.trim_start().starts_with("file:")) {
        return Err(path.field("hosts").refuse("must be addresses, not a file of them"));
    }
    let speaks_tls = s3.tls || s3.hosts.0.iter().any(|host| host.trim().starts_with("https://"));
    match s3.insecure && !s3.hosts.is_empty() && !speaks_tls {
        true => Err(path.field("insecure").refuse("needs `tls`")),
        false => Ok(()),
    }
}

/// Checks what is said of a SeaweedFS that is reached by its masters.
fn of_masters(path: &FieldPath, seaweed: &SeaweedTarget) -> Checked<()> {
    let masters = seaweed.master.0.iter().flat_map(|text| text.split(','));
    if masters.take(MASTERS_MAX + 1).count() > MASTERS_MAX {
        let reason = format!("must be at most {MASTERS_MAX} addresses");
        return Err(path.field("master").refuse(reason));
    }
    if seaweed.directory.is_some() {
        let reason = "only a filer has directories; name one (`filer`) instead of masters";
        return Err(path.field("directory").refuse(reason));
    }
    in_range(&path.field("ids_per_assign"), seaweed.ids_per_assign.into(), IDS_MAX)?;
    if let Some(grow) = seaweed.grow {
        in_range(&path.field("grow"), grow.into(), GROW_MAX)?;
    }
    let replication = seaweed.replication.as_deref().unwrap_or("000");
    if replication.len() != 3 || !replication.bytes().all(|digit| digit.is_ascii_digit()) {
        let reason = "must be three digits such as 001: copies in other data centers, on \
                      other racks, on other servers of the rack";
        return Err(path.field("replication").refuse(reason));
    }
    let collection = seaweed.collection.as_deref().unwrap_or_default();
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if collection.starts_with('.') || !collection.chars().all(is_plain) {
        // It becomes a part of names of the servers' files.
        let reason = "must be letters, digits, `-`, `_` and `.`, and not begin with `.`";
        return Err(path.field("collection").refuse(reason));
    }
    let is_unnamed = seaweed.collection.as_ref().is_none_or(String::is_empty);
    if seaweed.drop_collection && is_unnamed {
        let reason = "only a collection with a name is dropped; name one (`collection`)";
        return Err(path.field("drop_collection").refuse(reason));
    }
    Ok(())
}

/// Refuses what a SeaweedFS cannot be told that is reached by its filers.
fn of_filer(path: &FieldPath, seaweed: &SeaweedTarget) -> Checked<()> {
    if !seaweed.master.is_empty() {
        let reason = "SeaweedFS is reached by its masters or by its filers (`filer`), not by both";
        return Err(path.field("master").refuse(reason));
    }
    let plain = SeaweedTarget::of(Vec::new());
    for (field, is_said) in [
        ("assign", seaweed.assign != plain.assign),
        ("ids_per_assign", seaweed.ids_per_assign != plain.ids_per_assign),
        ("upload", seaweed.upload != plain.upload),
        ("grow", seaweed.grow.is_some()),
        ("drop_collection", seaweed.drop_collection),
    ] {
        if is_said {
            return Err(path.field(field).refuse("is for masters (`master`), not for filers"));
        }
    }
    let directory = seaweed.directory.as_deref().unwrap_or_default().trim_matches('/');
    match directory.is_empty() || directory.split('/').all(|part| !matches!(part, "" | "." | ".."))
    {
        true => Ok(()),
        false => {
            let reason = "must be a path without empty, `.` or `..` components";
            Err(path.field("directory").refuse(reason))
        }
    }
}

impl Context<'_> {
    /// Returns the target of that name, the only one where none is named.
    fn target(&self, path: &FieldPath, name: Option<&str>) -> Checked<TargetIndex> {
        let known = || {
            let names: Vec<&str> = self.targets.iter().map(|target| &*target.name).collect();
            names.join(", ")
        };
        match name {
            None if self.targets.len() == 1 => Ok(TargetIndex(0)),
            None => Err(path.refuse(format!("must say which target: {}", known()))),
            Some(name) => match self.targets.iter().position(|target| target.name == name) {
                Some(index) => Ok(TargetIndex(index)),
                None if self.targets[0].name.is_empty() => {
                    Err(path.refuse(format!("unknown target `{name}`; the file has no targets")))
                }
                None => {
                    Err(path
                        .refuse(format!("unknown target `{name}`; the targets are {}", known())))
                }
            },
        }
    }

    /// Returns the set of that name.
    fn set_named(&self, path: &FieldPath, name: &str) -> Checked<SetIndex> {
        match self.sets.iter().position(|set| set.name == name) {
            Some(index) => Ok(SetIndex(index)),
            None if self.sets.is_empty() => {
                Err(path.refuse(format!("unknown set `{name}`; the file has no sets")))
            }
            None => {
                let names: Vec<&str> = self.sets.iter().map(|set| &*set.name).collect();
                let names = names.join(", ");
                Err(path.refuse(format!("unknown set `{name}`; the sets are {names}")))
            }
        }
    }

    fn members(&self, set: SetIndex) -> &Members {
        &self.sets[set.0].members
    }

    /// Returns the members of a set that anybody may write at any time.
    fn shared(&self, set: SetIndex) -> Option<&NamedObjects> {
        match self.members(set) {
            Members::Named(named) => named.shared.map(|_| named),
            _ => None,
        }
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod listing_tests;
#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
