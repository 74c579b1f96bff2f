//! Where the files of a job lie, how large they are, and what is in them.

use std::collections::HashSet;

use plimsoll_workload::plan::spec::{FileSet, ListedSet, PathSet, SetSpec};
use plimsoll_workload::plan::{FilesIn, SizeRange};

use super::super::each_once;
use super::super::error::FioError;
use super::super::job::{Amount, Direction, Engine, Files, Job, JobFile, Span};
use super::scale::{block_bytes_max, block_bytes_min};
use super::{FILES_MAX, Lowering, clones_each, label, refuse};

/// How many jobs one job may become, where the files of its clones already exist.
const PARTS_MAX: usize = 256;
/// What must be given before anything is done to a device, or written to a file of others.
const FLAG: &str = "--i-know-this-destroys-data";

/// A file that the run makes.
pub(super) struct KnownFile {
    size: SizeRange,
    section: String,
    content: Content,
}

/// What is in a file.
enum Content {
    /// Nothing that was written: there is only room.
    Room,
    /// What a job has written here and there.
    Parts {
        /// The section of the job.
        by: String,
    },
    /// Every byte has been written.
    Whole,
}

/// The files of a job.
#[derive(Clone)]
pub(super) struct Placed {
    /// By clones that have the same description.
    pub(super) parts: Vec<Part>,
    /// All paths, each once.
    pub(super) paths: Vec<String>,
    /// The size of each.
    pub(super) size: SizeRange,
    /// Whether they were there before the run.
    pub(super) existing: bool,
    /// Whether clones of several clients share files that the run makes.
    pub(super) are_of_all_clients: bool,
}

/// Clones whose files are described alike.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) clones: u32,
    pub(super) files: FilesIn,
}

impl Lowering<'_> {
    /// Returns the files of a job, or why they cannot be used.
    pub(super) fn place(&self, job: &Job) -> Result<Placed, FioError> {
        let clones = self.clones(job);
        let files = self.whole_paths(&job.files);
        // What was there before is there under the same names for each client.
        let own = paths_of(job, &files, self.machine.clones_each(job));
        let sizes_there = self.sizes_there(job, &own)?;
        let existing = sizes_there.is_some();
        let paths = if existing { own } else { paths_of(job, &files, clones) };
        let size = self.size(job, &paths, sizes_there.as_deref())?;
        if !existing && files.directories.is_empty() {
            let text = "`filename` names files in several directories; give each its own job";
            return Err(refuse(job, text.to_owned()));
        }
        let leads_out = |name: &&String| name.split('/').any(|part| part == "..");
        let outside = files.names.iter().chain([&files.name_format]).find(leads_out);
        if let Some(name) = outside.filter(|_| !existing) {
            return Err(refuse(job, format!("`{name}` leads out of the directory of the run")));
        }
        let has_others = !existing && files.names.is_empty() && self.machine.clients.get() > 1;
        let are_of_all_clients = has_others && !is_own(&files);
        let parts = match existing {
            false => vec![Part { clones, files: made(job, clones, files, size) }],
            true => self.existing_parts(job, &files, size),
        };
        if parts.len() > PARTS_MAX {
            let text = format!(
                "its files already exist and each clone has its own: {PARTS_MAX} clones are the \
                 most"
            );
            return Err(refuse(job, text));
        }
        Ok(Placed { parts, paths, size, existing, are_of_all_clients })
    }

    /// Returns the files with directories from the root on; with none where names from the root lie
    /// in several.
    pub(super) fn whole_paths(&self, files: &Files) -> Files {
        whole_paths(files, self.machine.default_directory)
    }

    /// Returns the sizes of a job's files if they already exist and it takes them as they are.
    /// Files that it does not name are looked for only where it may not make them.
    fn sizes_there(&self, job: &Job, paths: &[String]) -> Result<Option<Vec<u64>>, FioError> {
        if self.null {
            return Ok(None);
        }
        let is_device = |path: &&String| {
            (self.machine.is_device)(path)
                || (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"))
        };
        let device = paths.iter().find(is_device);
        if let Some(device) = device.filter(|_| !self.machine.destroys) {
            let text = format!("`{device}` is a device: the run is refused without `{FLAG}`");
            return Err(refuse(job, text));
        }
        let may_make = job.files.allow_file_create;
        let unknown = paths.iter().find(|path| !self.known.contains_key(*path));
        let is_none_known = paths.iter().all(|path| !self.known.contains_key(path));
        let sizes: Vec<Option<u64>> =
            match is_none_known && !(job.files.names.is_empty() && may_make) {
                true => paths.iter().map(|path| (self.machine.file_size)(path)).collect(),
                false => Vec::new(),
            };
        let all: Option<Vec<u64>> = sizes.iter().copied().collect();
        if let Some(sizes) = all.filter(|sizes| !sizes.is_empty()) {
            return self.check_existing(job, paths).map(|()| Some(sizes));
        }
        if let Some(device) = device {
            return Err(refuse(job, format!("the size of the device `{device}` is not known")));
        }
        let missing = sizes.iter().position(Option::is_none).map(|index| &paths[index]);
        if let Some(path) = missing.or(unknown).filter(|_| !may_make) {
            let text = format!(
                "`allow_file_create=0`: `{path}` is not there and no section before it makes it"
            );
            return Err(refuse(job, text));
        }
        match (missing, sizes.iter().position(Option::is_some)) {
            (Some(missing), Some(there)) => {
                let there = &paths[there];
                let text = format!("its file `{there}` already exists and `{missing}` is not");
                Err(refuse(job, text))
            }
            _ => Ok(None),
        }
    }

    /// Returns files that are there by their whole paths, for each clone where they differ.
    fn existing_parts(&self, job: &Job, files: &Files, size: SizeRange) -> Vec<Part> {
        let each = self.machine.clones_each(job);
        let mut of_clones: Vec<Vec<String>> =
            (0..each).map(|clone| files.paths(&job.name, clone)).collect();
        let mut clones = 1;
        if of_clones.windows(2).all(|pair| pair[0] == pair[1]) {
            clones = u32::try_from(of_clones.len()).unwrap_or(u32::MAX);
            of_clones.truncate(1);
        }
        let clones = clones.saturating_mul(self.machine.clients.get());
        let part = |paths| {
            let set = PathSet { on: None, paths, size, touch: self.machine.destroys };
            let (label, directories) = (label(&job.name), Vec::new());
            Part { clones, files: FilesIn { label, directories, set: SetSpec::Paths(set) } }
        };
        of_clones.into_iter().map(part).collect()
    }

    fn check_existing(&self, job: &Job, paths: &[String]) -> Result<(), FioError> {
        let path = &paths[0];
        if job.writes() && !self.machine.destroys {
            let text = format!(
                "`{path}` already exists and the job writes to it: the run is refused without \
                 `{FLAG}`"
            );
            return Err(refuse(job, text));
        }
        if job.verify.method.is_some() && !job.files.create_only {
            let text = format!(
                "`{path}` was there before the run, so `verify` cannot tell what is right in it"
            );
            return Err(refuse(job, text));
        }
        Ok(())
    }

    /// Returns the size of each file of a job.
    fn size(
        &self,
        job: &Job,
        paths: &[String],
        sizes_there: Option<&[u64]>,
    ) -> Result<SizeRange, FioError> {
        let refuse = |text: String| Err(refuse(job, text));
        let scaled = |bytes: u64| self.scale.size(bytes);
        let files = &job.files;
        let common = match sizes_there {
            Some([first, others @ ..]) if others.iter().any(|size| size != first) => None,
            sizes => sizes.and_then(|sizes| sizes.first().copied()),
        };
        let size = match (files.file_size_bytes, files.size, common) {
            (Some(span), ..) => {
                let drawn = match span.min == span.max {
                    true => SizeRange::of(span.min),
                    false => drawn_sizes(span, block_bytes_min(job)),
                };
                SizeRange { min: scaled(drawn.min), max: scaled(drawn.max) }
            }
            (None, Some(Amount::Bytes(all)), _) => {
                SizeRange::of(scaled(all / u64::from(files.count.max(1))))
            }
            (None, Some(Amount::Percent(percent)), Some(size)) => {
                let part = u128::from(size) * u128::from(percent) / 100;
                SizeRange::of(scaled(u64::try_from(part).unwrap_or(u64::MAX)))
            }
            (None, None, Some(size)) => SizeRange::of(scaled(size)),
            (None, _, None) if sizes_there.is_some() => {
                let text =
                    "its files are of several sizes; say by `filesize` how much of each is used";
                return refuse(text.to_owned());
            }
            (None, Some(Amount::Percent(percent)), None) => {
                return refuse(format!(
                    "`size={percent}%` is a share of files that already exist, and `{}` is not",
                    paths[0]
                ));
            }
            (None, None, None) => match self.known_size(paths) {
                Some(size) => size,
                None => {
                    return refuse(format!("it has no `size` and `{}` is not there", paths[0]));
                }
            },
        };
        self.check_size(job, paths, sizes_there, size)?;
        Ok(size)
    }

    /// Returns the size that earlier sections gave to all these files.
    fn known_size(&self, paths: &[String]) -> Option<SizeRange> {
        let first = self.known.get(paths.first()?)?.size;
        let is_same = |path| self.known.get(path).is_some_and(|known| known.size == first);
        paths.iter().all(is_same).then_some(first)
    }

    fn check_size(
        &self,
        job: &Job,
        paths: &[String],
        sizes_there: Option<&[u64]>,
        size: SizeRange,
    ) -> Result<(), FioError> {
        let there = sizes_there.unwrap_or_default();
        if let Some(small) = there.iter().position(|&there| there < size.max) {
            let (path, there) = (&paths[small], there[small]);
            let text = format!("`{path}` has {there} bytes and the job wants {}", size.max);
            return Err(refuse(job, text));
        }
        for path in paths {
            let Some(known) = self.known.get(path) else { continue };
            // A job may use the first part of a file.
            if known.size != size && size.max > known.size.min {
                let text = format!(
                    "`{path}` has {} here and {} in [{}], which comes first; make it as large \
                    there",
                    in_bytes(size),
                    in_bytes(known.size),
                    known.section
                );
                return Err(refuse(job, text));
            }
        }
        let block = block_bytes_max(job);
        if block > size.min && !job.files.create_only {
            let text = format!("a block of {block} bytes is larger than a file of {}", size.min);
            return Err(refuse(job, text));
        }
        if size.min == 0 {
            return Err(refuse(job, format!("`{}` is empty", paths[0])));
        }
        Ok(())
    }

    /// Returns whether any of these files must be filled for a job; says so where what another job
    /// has written goes by that.
    pub(super) fn needs_filling(&mut self, index: usize, files: &Placed) -> bool {
        if self.null || files.existing {
            return false;
        }
        let job = self.job(index);
        let content = |path| self.known.get(path).map(|known| &known.content);
        let mut lacking = files
            .paths
            .iter()
            .map(content)
            .filter(|c| !matches!(c, Some(Content::Whole)))
            .peekable();
        if lacking.peek().is_none() {
            return false;
        }
        let by = lacking.find_map(|content| match content {
            Some(Content::Parts { by }) => Some(by.clone()),
            _ => None,
        });
        if let Some(by) = by {
            let what = format!(
                "[{by}] may have left gaps in its files, so they are filled anew before it; fio \
                 would read the gaps"
            );
            self.note(job, "rw", &what);
        }
        if job.files.create_only
            && job.pattern.direction == Direction::Write
            && !job.files.overwrite
        {
            self.note(
                job,
                "create_only",
                "its files are filled; fio would only make room for them",
            );
        }
        true
    }

    /// Takes the files of a job into account before its stage begins.
    pub(super) fn remember(&mut self, job: &Job, files: &Placed) {
        if files.existing {
            return;
        }
        let fills = (job.files.create_only || job.fills_files()) && !self.null;
        let section = job.place.section.as_ref().unwrap_or(&job.name);
        for path in &files.paths {
            let known = self.known.entry(path.clone()).or_insert_with(|| KnownFile {
                size: files.size,
                section: section.clone(),
                content: Content::Room,
            });
            if fills {
                known.content = Content::Whole;
            }
        }
    }

    /// Takes into account what a job has written.
    pub(super) fn written(&mut self, index: usize, files: &Placed) {
        let job = self.job(index);
        if !job.writes() || job.queue.engine == Engine::Null {
            return;
        }
        let is_whole = self.covers_files(job, files);
        let section = job.place.section.as_ref().unwrap_or(&job.name);
        for path in &files.paths {
            let Some(known) = self.known.get_mut(path) else { continue };
            match known.content {
                Content::Whole => {}
                _ if is_whole && known.size == files.size => known.content = Content::Whole,
                _ => known.content = Content::Parts { by: section.clone() },
            }
        }
    }
}

/// Returns the paths of which it has to be known what lies there before the jobs can be lowered:
/// of files that jobs name, or may not make and no section before them makes. `clones_max` bounds
/// the clones of a job, and paths that begin nowhere lie in `default_directory`.
pub fn paths_asked(
    file: &JobFile,
    default_directory: &str,
    clones_max: Option<u32>,
) -> Vec<String> {
    let mut made: HashSet<String> = HashSet::new();
    let mut asked = Vec::new();
    let on_files = |job: &&Job| job.queue.engine != Engine::Null && !job.queue.engine.is_metadata();
    for job in file.jobs.iter().filter(on_files) {
        let files = whole_paths(&job.files, default_directory);
        let clones = clones_each(job, clones_max);
        if u64::from(clones) * u64::from(files.count) > FILES_MAX {
            // Lowering refuses it.
            continue;
        }
        let paths = paths_of(job, &files, clones);
        match files.names.is_empty() && files.allow_file_create {
            true => made.extend(paths),
            false => asked.extend(paths.into_iter().filter(|path| !made.contains(path))),
        }
    }
    each_once(asked)
}

/// Returns the files with directories from the root on; with none where names from the root lie in
/// several.
fn whole_paths(files: &Files, here: &str) -> Files {
    let whole = |path: &str| match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{}/{path}", here.trim_end_matches('/')),
    };
    let mut files = files.clone();
    if files.names.iter().any(|name| name.starts_with('/')) {
        let names: Vec<String> = files.names.iter().map(|name| whole(name)).collect();
        let folders: HashSet<&str> =
            names.iter().filter_map(|name| Some(name.rsplit_once('/')?.0)).collect();
        if let [folder] = folders.into_iter().collect::<Vec<_>>().as_slice() {
            files.names = names.iter().map(|name| name[folder.len() + 1..].to_owned()).collect();
            files.directories = vec![if folder.is_empty() { "/" } else { folder }.to_owned()];
        } else {
            files.names = names;
        }
        return files;
    }
    files.directories = match files.directories.as_slice() {
        [] => vec![here.to_owned()],
        directories => directories.iter().map(|directory| whole(directory)).collect(),
    };
    files
}

/// Returns the paths of the files of the first clones of a job, each once.
fn paths_of(job: &Job, files: &Files, clones: u32) -> Vec<String> {
    // Clones share what has a name, but for the directory.
    let lists = match files.names.is_empty() {
        true => clones,
        false => clones.min(u32::try_from(files.directories.len()).unwrap_or(u32::MAX).max(1)),
    };
    each_once((0..lists).flat_map(|clone| files.paths(&job.name, clone)).collect())
}

/// Tells whether each clone has files of its own.
fn is_own(files: &Files) -> bool {
    files.name_format.contains("$jobnum") || files.directories.len() > 1
}

/// Returns files that the run makes. Names that do not tell jobs or clones apart are the same for
/// all of them.
fn made(job: &Job, clones: u32, files: Files, size: SizeRange) -> FilesIn {
    let is_own = is_own(&files);
    let Files { directories, names, name_format: name, count, .. } = files;
    let set = match names.is_empty() {
        false => SetSpec::Listed(ListedSet { on: None, names, size }),
        true => SetSpec::Files(FileSet {
            on: None,
            files: count,
            size,
            workers: (is_own && clones > 1).then_some(clones),
            job: name.contains("$jobname").then(|| job.name.clone()),
            name,
        }),
    };
    FilesIn { label: label(&job.name), directories, set }
}

/// Returns the sizes that fio draws out of a range (`get_rand_file_size`): evenly from its least to
/// below its most, rounded down to the smallest block. So `filesize=4k-8k` is 4 KiB by blocks of
/// 4 KiB.
fn drawn_sizes(span: Span<u64>, block: u64) -> SizeRange {
    let whole = |size: u64| size - size % block.max(1);
    let min = if whole(span.min) == 0 { span.min } else { whole(span.min) };
    SizeRange { min, max: whole(span.max.saturating_sub(1)).max(min) }
}

fn in_bytes(size: SizeRange) -> String {
    match size.min == size.max {
        true => format!("{} bytes", size.min),
        false => format!("{} to {} bytes", size.min, size.max),
    }
}
