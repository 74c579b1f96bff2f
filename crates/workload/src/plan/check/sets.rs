//! Checks targets' sets: sizes, counts, names.

use plimsoll_model::{Bytes, ObjectId};

use super::{Checked, Context, at_least_one, in_range};
use crate::data::{COMPRESS_RATIO_MAX, DEDUPE_RATIO_MAX, DataRule};
use crate::plan::checked::{FileNames, Files, Members, Objects, Set, TargetIndex, Tree};
use crate::plan::path::FieldPath;
use crate::plan::spec::{
    AlsoOn, ArchiveKind, ContentSpec, ExistingOf, FileSet, KeysSpec, ListedSet, ObjectSet, PathSet,
    SetSpec, Share, Shares, SizeLaw, SizeSpec, SizeSteps, TargetSpec, TreeOf,
};
use crate::plan::units::{NumberRange, Size, SizeRange};
use crate::sizes::{PARTS_MAX, PUT_BYTES_MAX, SIGMA_MAX, is_sigma};
use crate::{DataFileSpec, SizeBar, SizeDist, SizeStep};

/// The longest list of sizes.
const SIZES_MAX: usize = 1_000_000;
/// The most versions of one object that are made.
const VERSIONS_MAX: u32 = 10_000;
/// The most files a zip archive has without its extension for large ones.
const ZIP_FILES_MAX: u64 = 65_535;
/// The largest such archive, less what its headers may take.
const ZIP_BYTES_MAX: f64 = (u32::MAX - (64 << 20)) as f64;
/// The most buckets of one set.
const BUCKETS_MAX: u32 = 10_000;
/// The most files, paths or names that a set lists.
const LISTED_MAX: usize = 1_000_000;
/// The largest place of a sector in an object's number is below 2^40.
const FILE_BYTES_MAX: u64 = (ObjectId::NUMBER_MAX + 1) * 512;
/// More entries of a worker than this are a slip of the pen.
const ENTRIES_MAX: u64 = 1 << 40;

impl Context<'_> {
    /// Returns a set, checked.
    pub(super) fn set(&self, path: &FieldPath, name: &str, spec: &SetSpec) -> Checked<Set> {
        let target = self.target(&path.field("on"), spec.on())?;
        if self.targets[target.0].names_members() {
            named_by_target(path, spec)?;
        }
        let (members, touch, also_on) = match spec {
            SetSpec::Objects(set) => (objects(path, set)?, false, set.also_on.as_ref()),
            SetSpec::Named(set) => {
                (super::named::named(path, set)?, set.touch, set.also_on.as_ref())
            }
            SetSpec::Existing(set) => {
                existing(&path.field("existing"), &set.existing)?;
                (Members::Existing(set.existing.clone()), set.touch, None)
            }
            SetSpec::Paths(set) => (paths(path, set)?, set.touch, None),
            SetSpec::Listed(set) => (listed(path, self.directories(target), set)?, false, None),
            SetSpec::Files(set) => (files(path, name, self.directories(target), set)?, false, None),
            SetSpec::Trace(set) => (self.traced(path, target, set)?, false, None),
            SetSpec::Tree(set) => {
                let at = path.field("tree");
                (tree(&at, name, self.directories(target), &set.tree)?, false, None)
            }
        };
        let also_on = also_on.map(|also| self.also_on(path, target, also)).transpose()?;
        let name = name.to_owned();
        if self.targets[target.0].is_filer() {
            for_filer(path, spec)?;
        }
        Ok(Set { name, target, also_on, members, touch, path: path.clone() })
    }

    fn also_on(
        &self,
        path: &FieldPath,
        target: TargetIndex,
        also: &AlsoOn,
    ) -> Checked<(TargetIndex, String)> {
        let at = path.field("also_on");
        let other = self.target(&at.field("target"), Some(&also.target))?;
        if other == target {
            return Err(at.field("target").refuse("must be another target than the set's own"));
        }
        if self.targets[other.0].names_members() {
            return Err(at.field("target").refuse("SeaweedFS names files by itself"));
        }
        leads_below(&at.field("path"), &also.path)?;
        Ok((other, also.path.clone()))
    }

    /// Returns the directories of a target of files.
    pub(super) fn directories(&self, target: TargetIndex) -> Vec<String> {
        match &self.targets[target.0].spec {
            Some(TargetSpec::Files(files)) => files.directory.0.clone(),
            _ => Vec::new(),
        }
    }
}

/// Refuses what a filer would take for another path: it tidies those that it is sent.
fn for_filer(path: &FieldPath, spec: &SetSpec) -> Checked<()> {
    let (field, prefix) = match spec {
        SetSpec::Objects(set) => ("keys.prefix", &set.keys.prefix),
        SetSpec::Existing(set) => ("existing.prefix", &set.existing.prefix),
        _ => return Ok(()),
    };
    match prefix.trim_end_matches('/').split('/').any(str::is_empty) && !prefix.is_empty() {
        true => Err(path.field(field).refuse("must have no empty part: it is a path of a filer")),
        false => Ok(()),
    }
}

/// Refuses what cannot be of members that the target names by itself.
fn named_by_target(path: &FieldPath, spec: &SetSpec) -> Checked<()> {
    let (field, why) = match spec {
        SetSpec::Named(_) => ("named", "SeaweedFS names files by itself"),
        SetSpec::Trace(_) => ("trace", "SeaweedFS names files by itself; name a filer"),
        SetSpec::Existing(set) if set.existing.list.is_none() => {
            ("existing", "SeaweedFS finds no files by prefix; name those of a file (`list`)")
        }
        SetSpec::Objects(set) if set.versions > 1 => {
            ("versions", "SeaweedFS keeps no versions of a file")
        }
        SetSpec::Objects(set) if set.part.is_some() => {
            ("part", "SeaweedFS takes files whole by its own protocol")
        }
        SetSpec::Objects(set) if set.archive.is_some() => {
            ("archive", "SeaweedFS reads no archives")
        }
        SetSpec::Objects(set) if set.also_on.is_some() => {
            ("also_on", "what SeaweedFS names by itself is seen nowhere else")
        }
        SetSpec::Objects(set)
            if set.keys != (KeysSpec { buckets: set.keys.buckets, ..KeysSpec::default() }) =>
        {
            ("keys", "SeaweedFS names files by itself; only collections are chosen (`buckets`)")
        }
        _ => return Ok(()),
    };
    Err(path.field(field).refuse(why))
}

fn existing(path: &FieldPath, of: &ExistingOf) -> Checked<()> {
    if let Some(limit) = of.limit {
        at_least_one(&path.field("limit"), limit)?;
    }
    match &of.list {
        Some(list) if list.is_empty() => Err(path.field("list").refuse("must not be empty")),
        Some(_) if !of.prefix.is_empty() || !of.recursive => {
            let reason = "takes the place of a listing, so prefix and recursive mean nothing";
            Err(path.field("list").refuse(reason))
        }
        _ => Ok(()),
    }
}

/// Refuses a path that leads elsewhere, or that would break lines of reports.
fn leads_below(path: &FieldPath, text: &str) -> Checked<()> {
    if text.chars().any(char::is_control) {
        return Err(path.refuse("must have no control characters, such as line breaks"));
    }
    match text.split('/').any(|part| matches!(part, "." | "..")) {
        // Who takes a path apart on the way would look for another bucket.
        true => Err(path.refuse("must have no `.` or `..` component")),
        false => Ok(()),
    }
}

fn objects(path: &FieldPath, set: &ObjectSet) -> Checked<Members> {
    if let Some(part) = set.part {
        part_size(&path.field("part"), part)?;
    }
    let sizes = set.size.as_ref().map(|size| {
        let most = set.part.map_or(PUT_BYTES_MAX, |part| part.0.saturating_mul(PARTS_MAX.into()));
        sizes(&path.field("size"), size, most)
    });
    let sizes = sizes.transpose()?;
    if set.count > ObjectId::NUMBER_MAX {
        let (count, most) = (set.count, ObjectId::NUMBER_MAX);
        return Err(path.field("count").refuse(format!("{count} is out of range: 0 to {most}")));
    }
    if set.count > 0 && sizes.is_none() {
        return Err(path.field("size").refuse("is missing; a fill needs to know it"));
    }
    in_range(&path.field("versions"), set.versions.into(), VERSIONS_MAX)?;
    leads_below(&path.field("keys.prefix"), &set.keys.prefix)?;
    if let Some(buckets) = set.keys.buckets {
        in_range(&path.field("keys.buckets"), buckets.into(), BUCKETS_MAX)?;
    }
    let beside = set.part.is_some() || set.versions > 1;
    if set.archive == Some(ArchiveKind::Zip) {
        let at = path.field("archive");
        if beside {
            return Err(at.refuse("an archive has neither parts nor versions"));
        }
        if set.count > ZIP_FILES_MAX {
            let reason = format!("{} is out of range: 1 to {ZIP_FILES_MAX} files", set.count);
            return Err(path.field("count").refuse(reason));
        }
        let mean = sizes.as_ref().map_or(0.0, SizeDist::mean);
        if mean * set.count as f64 > ZIP_BYTES_MAX {
            return Err(path.field("size").refuse("a zip archive holds less than 4 GiB"));
        }
    }
    if set.part.is_some() && set.versions > 1 {
        return Err(path.field("part").refuse("objects in parts have no versions to be filled"));
    }
    let (data, data_files) = content(&path.field("content"), &set.content)?;
    Ok(Members::Objects(Objects {
        count: set.count,
        sizes,
        part_bytes: set.part.map(|part| part.0),
        versions: set.versions,
        archive: set.archive,
        data,
        data_files,
        keys: set.keys.clone(),
        traced: None,
    }))
}

/// Refuses parts that no store takes.
pub(super) fn part_size(path: &FieldPath, part: Size) -> Checked<()> {
    match (1..=PUT_BYTES_MAX).contains(&part.0) {
        true => Ok(()),
        false => {
            let size = Bytes(part.0);
            Err(path.refuse(format!("part size {size} is out of range: 1B to 5GiB")))
        }
    }
}

pub(super) fn content(
    path: &FieldPath,
    content: &ContentSpec,
) -> Checked<(DataRule, Vec<DataFileSpec>)> {
    let per_mille = |field: &str, ratio: Option<f64>, max: f64| {
        let ratio = ratio.unwrap_or(1.0);
        match (1.0..=max).contains(&ratio) {
            true => Ok((ratio * 1_000.0).round() as u32),
            false => {
                let reason = format!("{ratio} is out of range: 1 to {max}");
                Err(path.field("shaped").field(field).refuse(reason))
            }
        }
    };
    Ok(match content {
        ContentSpec::Random => (DataRule::Random, Vec::new()),
        ContentSpec::Zero => (DataRule::Zero, Vec::new()),
        ContentSpec::Text => (DataRule::Text, Vec::new()),
        ContentSpec::Shaped { compress_ratio, dedupe_ratio } => {
            let compress = per_mille("compress_ratio", *compress_ratio, COMPRESS_RATIO_MAX)?;
            let dedupe = per_mille("dedupe_ratio", *dedupe_ratio, DEDUPE_RATIO_MAX)?;
            let rule = match (compress, dedupe) {
                (1_000, 1_000) => DataRule::Random,
                _ => DataRule::Shaped { compress_per_mille: compress, dedupe_per_mille: dedupe },
            };
            (rule, Vec::new())
        }
        ContentSpec::Files(files) => {
            let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.bytes));
            if bytes == 0 {
                return Err(path.field("files").refuse("the files hold nothing to upload"));
            }
            (DataRule::Files { bytes }, files.clone())
        }
    })
}

/// Returns how sizes are drawn; none may be above `most` bytes.
pub(super) fn sizes(path: &FieldPath, size: &SizeSpec, most: u64) -> Checked<SizeDist> {
    match size {
        SizeSpec::Fixed(size) => {
            one_size(path, size.0, most)?;
            Ok(SizeDist::Fixed(size.0))
        }
        SizeSpec::Drawn(law) => drawn(path, law, most),
    }
}

fn drawn(path: &FieldPath, law: &SizeLaw, most: u64) -> Checked<SizeDist> {
    let range = |name: &str, SizeRange { min, max }: SizeRange| {
        let at = path.field(name);
        one_size(&at, min, most)?;
        one_size(&at, max, most)?;
        match min <= max {
            true => Ok((min, max)),
            false => Err(at.refuse("the smallest is above the largest")),
        }
    };
    match law {
        SizeLaw::LogUniform(sizes) => {
            range("log_uniform", *sizes).map(|(min, max)| SizeDist::LogUniform { min, max })
        }
        // A bar without weight below one that has all of it: evenly from min to max.
        SizeLaw::Uniform(sizes) => range("uniform", *sizes).map(|(min, max)| {
            SizeDist::Histogram(vec![
                SizeBar { up_to: min - 1, weight: 0 },
                SizeBar { up_to: max, weight: 1 },
            ])
        }),
        SizeLaw::Lognormal { median, sigma } => {
            let at = path.field("lognormal");
            one_size(&at.field("median"), median.0, most)?;
            match is_sigma(*sigma) {
                true => Ok(SizeDist::LogNormal { median: median.0, sigma: *sigma }),
                false => {
                    let reason = format!("{sigma} is out of range: above 0 to {SIGMA_MAX}");
                    Err(at.field("sigma").refuse(reason))
                }
            }
        }
        SizeLaw::Shares(shares) => {
            let sizes = weighted(&path.field("shares"), shares, (1, most))?;
            let bars = sizes.iter().flat_map(|share| {
                let (size, weight) = (share.value.0, share.weight);
                [SizeBar { up_to: size - 1, weight: 0 }, SizeBar { up_to: size, weight }]
            });
            Ok(SizeDist::Histogram(bars.collect()))
        }
        SizeLaw::Histogram(shares) => {
            let at = path.field("histogram");
            let sizes = weighted(&at, shares, (0, most))?;
            if sizes.iter().all(|share| share.weight == 0) {
                return Err(at.refuse("no bar has a weight"));
            }
            let bar = |share: &Share<Size>| SizeBar { up_to: share.value.0, weight: share.weight };
            Ok(SizeDist::Histogram(sizes.iter().map(bar).collect()))
        }
        SizeLaw::List(list) => {
            let at = path.field("list");
            if !(1..=SIZES_MAX).contains(&list.len()) {
                let count = list.len();
                return Err(at.refuse(format!("{count} sizes are out of range: 1 to {SIZES_MAX}")));
            }
            for (index, size) in list.iter().enumerate() {
                one_size(&at.index(index), size.0, most)?;
            }
            Ok(SizeDist::List(list.iter().map(|size| size.0).collect::<Vec<u64>>().into()))
        }
        SizeLaw::Steps(steps) => stepped(&path.field("steps"), steps, most),
    }
}

/// Returns sizes that are multiples of a unit.
fn stepped(path: &FieldPath, steps: &SizeSteps, most: u64) -> Checked<SizeDist> {
    let at = path.field("numbers");
    super::work::number_shares(&at, &steps.numbers)?;
    let unit = steps.unit.0;
    one_size(&path.field("unit"), unit, most)?;
    let step = |(index, share): (usize, &Share<NumberRange>)| {
        let NumberRange { from, to } = share.value;
        one_size(&at.index(index), unit.saturating_mul(to), most)?;
        Ok(SizeStep { from, to, weight: share.weight })
    };
    let steps = steps.numbers.0.iter().enumerate().map(step).collect::<Checked<_>>()?;
    Ok(SizeDist::Steps { unit, steps })
}

fn one_size(path: &FieldPath, size: u64, most: u64) -> Checked<()> {
    match (1..=most).contains(&size) {
        true => Ok(()),
        false => {
            let (size, most) = (Bytes(size), Bytes(most));
            Err(path.refuse(format!("size {size} is out of range: 1B to {most}")))
        }
    }
}

/// Returns shares in the order of their sizes, each size once.
/// Returns sizes with weights of at least `least`, in order.
fn weighted(
    path: &FieldPath,
    shares: &Shares<Size>,
    (least, most): (u64, u64),
) -> Checked<Vec<Share<Size>>> {
    if !(1..=SIZES_MAX).contains(&shares.0.len()) {
        let count = shares.0.len();
        return Err(path.refuse(format!("{count} shares are out of range: 1 to {SIZES_MAX}")));
    }
    let mut sum: u64 = 0;
    for (index, share) in shares.0.iter().enumerate() {
        let at = path.index(index);
        one_size(&at, share.value.0, most)?;
        if least > 0 {
            at_least_one(&at, share.weight)?;
        }
        sum =
            sum.checked_add(share.weight).ok_or_else(|| at.refuse("the weights are too large"))?;
    }
    let mut sizes = shares.0.clone();
    sizes.sort_by_key(|share| share.value);
    match sizes.windows(2).any(|pair| pair[0].value == pair[1].value) {
        true => Err(path.refuse("a size appears twice")),
        false => Ok(sizes),
    }
}

fn file_size(path: &FieldPath, size: SizeRange) -> Checked<SizeRange> {
    let SizeRange { min, max } = size;
    if min > max {
        return Err(path.refuse("the smallest is above the largest"));
    }
    if min == 0 || max > FILE_BYTES_MAX {
        let (size, most) = (Bytes(if min == 0 { 0 } else { max }), Bytes(FILE_BYTES_MAX));
        return Err(path.refuse(format!("file size {size} is out of range: 1B to {most}")));
    }
    Ok(size)
}

fn paths(path: &FieldPath, set: &PathSet) -> Checked<Members> {
    let at = path.field("paths");
    if !(1..=LISTED_MAX).contains(&set.paths.len()) {
        let count = set.paths.len();
        return Err(at.refuse(format!("{count} paths are out of range: 1 to {LISTED_MAX}")));
    }
    if let Some(index) = set.paths.iter().position(String::is_empty) {
        return Err(at.index(index).refuse("must not be empty"));
    }
    let (names, size) =
        (FileNames::Paths(set.paths.clone()), file_size(&path.field("size"), set.size)?);
    Ok(Members::Files(Files { directories: Vec::new(), names, size }))
}

fn below(path: &FieldPath, name: &str) -> Checked<String> {
    crate::files::below(name).map_err(|reason| path.refuse(reason))
}

fn listed(path: &FieldPath, directories: Vec<String>, set: &ListedSet) -> Checked<Members> {
    let at = path.field("names");
    if !(1..=LISTED_MAX).contains(&set.names.len()) {
        let count = set.names.len();
        return Err(at.refuse(format!("{count} names are out of range: 1 to {LISTED_MAX}")));
    }
    for (index, name) in set.names.iter().enumerate() {
        below(&at.index(index), name)?;
    }
    let size = file_size(&path.field("size"), set.size)?;
    Ok(Members::Files(Files { directories, names: FileNames::Listed(set.names.clone()), size }))
}

fn files(
    path: &FieldPath,
    name: &str,
    directories: Vec<String>,
    set: &FileSet,
) -> Checked<Members> {
    at_least_one(&path.field("files"), set.files)?;
    let workers = set.workers.unwrap_or(1);
    at_least_one(&path.field("workers"), workers)?;
    let count = u64::from(workers) * u64::from(set.files);
    if count > u64::from(ObjectId::OWNER_MAX) {
        let most = ObjectId::OWNER_MAX;
        let reason = format!("{count} files in all are out of range: 1 to {most}");
        return Err(path.field("files").refuse(reason));
    }
    below(&path.field("name"), &set.name)?;
    let size = file_size(&path.field("size"), set.size)?;
    let job = set.job.clone().unwrap_or_else(|| name.to_owned());
    let names = FileNames::Made { format: set.name.clone(), job, workers, count: set.files };
    Ok(Members::Files(Files { directories, names, size }))
}

fn tree(path: &FieldPath, name: &str, directories: Vec<String>, tree: &TreeOf) -> Checked<Members> {
    let name = tree.name.clone().unwrap_or_else(|| name.to_owned());
    let short = below(&path.field("name"), &name)?;
    if short != name {
        return Err(path.field("name").refuse(format!("`{name}` has a shorter form, `{short}`")));
    }
    if directories.len() > 1 && !tree.per_worker {
        let reason = "must be true: of a target with several directories, each worker has a tree \
                      in one of them";
        return Err(path.field("per_worker").refuse(reason));
    }
    at_least_one(&path.field("branching"), tree.branching)?;
    at_least_one(&path.field("entries"), tree.entries)?;
    if tree.shared_names && tree.of_directories {
        return Err(path.field("shared_names").refuse("only files can be shared"));
    }
    if tree.directories_count().is_none() {
        let TreeOf { depth, branching, .. } = tree;
        let reason = format!("{depth} levels of {branching} directories each are too many");
        return Err(path.field("depth").refuse(reason));
    }
    if tree.entries_count().is_none_or(|count| count > ENTRIES_MAX) {
        let reason = format!("more than {ENTRIES_MAX} entries for each worker are too many");
        return Err(path.field("entries").refuse(reason));
    }
    let shape = TreeOf { name: None, ..tree.clone() };
    Ok(Members::Tree(Tree { directories, name, shape }))
}
