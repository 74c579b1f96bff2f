//! What makes the content of the members of sets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_model::Bytes;
use plimsoll_workload::DataFileSpec;
use plimsoll_workload::data::{DataRule, Generator};
use plimsoll_workload::objects::ObjectSet;
use plimsoll_workload::plan::spec::{FilesOf, SetSpec};
use plimsoll_workload::plan::{Members, Placed, Plan, Set, WorkloadFile};

use rustix::fs::FileType;

use crate::error::refused;
use crate::input::FOREIGN_BYTES_MAX;
use crate::{ConductError, input};

/// By set: what its content is made by.
pub(crate) type Generators = Arc<[Arc<Generator>]>;

/// Where the bytes come from of files that content is made of.
#[derive(Clone, Debug, Default)]
pub enum ContentFrom {
    /// From the files that the workload names, on this machine.
    #[default]
    Files,
    /// They are here already; no file is read.
    Here(ContentFiles),
}

/// What the files hold that content is made of, by their paths as the workload has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentFiles(Arc<BTreeMap<String, Vec<u8>>>);

impl ContentFiles {
    /// Reads those that a plan names.
    pub fn read(plan: &Plan, allowed: &AllowedDirs) -> Result<Self, ConductError> {
        let read = |file: &DataFileSpec| Ok((file.path.clone(), bytes_of(file, allowed)?));
        files_of(plan).into_iter().map(read).collect()
    }

    /// Returns how much those hold that a plan names.
    pub fn size_bytes(plan: &Plan) -> u64 {
        files_of(plan).iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns path and content of each, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, bytes)| (&**path, &**bytes))
    }
}

impl FromIterator<(String, Vec<u8>)> for ContentFiles {
    fn from_iter<I: IntoIterator<Item = (String, Vec<u8>)>>(files: I) -> Self {
        Self(Arc::new(files.into_iter().collect()))
    }
}

/// Returns the files that a plan names, each once.
fn files_of(plan: &Plan) -> Vec<&DataFileSpec> {
    fn of_set(set: &Set) -> &[DataFileSpec] {
        match &set.members {
            Members::Objects(objects) => &objects.data_files,
            Members::Named(named) => &named.data_files,
            _ => &[],
        }
    }
    let mut files: Vec<&DataFileSpec> = plan.sets.iter().flat_map(of_set).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    files
}

/// Returns the workload with the files of each directory that keys are names of, in the order of
/// their names, as far as they may be looked at.
pub fn with_files<'f>(
    file: &'f WorkloadFile,
    allowed: &AllowedDirs,
) -> Result<Cow<'f, WorkloadFile>, ConductError> {
    let mut listed = Cow::Borrowed(file);
    for (name, set) in file.sets.iter() {
        let SetSpec::Named(set) = set else { continue };
        let Some(FilesOf::In(directory)) = &set.named.files else { continue };
        let mut set = set.clone();
        set.named.files = Some(FilesOf::These(files_in(directory, allowed)?));
        listed.to_mut().sets.insert(name, SetSpec::Named(set));
    }
    Ok(listed)
}

/// Returns the files in a directory, in which there is nothing else.
fn files_in(directory: &str, allowed: &AllowedDirs) -> Result<Vec<DataFileSpec>, ConductError> {
    let failed = |source| ConductError::Content { path: directory.into(), source };
    let mut files = Vec::new();
    for name in input::names_in(allowed, Path::new(directory)).map_err(failed)? {
        let path = Path::new(directory).join(name);
        let facts = input::look_at(allowed, &path);
        let facts = facts.map_err(|source| ConductError::Content { path: path.clone(), source })?;
        let (facts, FileType::RegularFile) = facts else {
            return refused(format!("{} is not a file; keys are names of files", path.display()));
        };
        let bytes = facts.st_size.unsigned_abs();
        files.push(DataFileSpec { path: path.display().to_string(), bytes });
    }
    match files.is_empty() {
        true => refused(format!("{directory} holds no file")),
        false => Ok(files),
    }
}

/// Returns the generators of what each set holds, with the files that they are made of.
pub(crate) fn generators(
    placed: &Placed,
    content: &ContentFrom,
    allowed: &AllowedDirs,
) -> Result<Generators, ConductError> {
    let size_bytes = ContentFiles::size_bytes(&placed.plan);
    if matches!(content, ContentFrom::Files)
        && allowed.is_foreign()
        && size_bytes > FOREIGN_BYTES_MAX
    {
        return refused(format!(
            "the files that content is made of hold {}, and at most {} are read here",
            Bytes(size_bytes),
            Bytes(FOREIGN_BYTES_MAX)
        ));
    }
    let mut plain: BTreeMap<u64, Arc<Generator>> = BTreeMap::new();
    let of_set = |set: &Option<Arc<ObjectSet>>| {
        let shared = set.as_ref().and_then(|set| set.shared.as_ref());
        let seed = shared.map_or(placed.seed.0, |shared| shared.seed);
        match set {
            Some(set) if set.data != DataRule::Random => {
                let files = content_files(&set.data_files, content, allowed)?;
                Ok(Arc::new(Generator::with_rule(seed, &set.data, files)))
            }
            _ => {
                let plain = plain.entry(seed).or_insert_with(|| Arc::new(Generator::new(seed)));
                Ok(Arc::clone(plain))
            }
        }
    };
    placed.sets.iter().map(of_set).collect()
}

/// Returns what the files hold that objects are made of.
fn content_files(
    files: &[DataFileSpec],
    from: &ContentFrom,
    allowed: &AllowedDirs,
) -> Result<Vec<u8>, ConductError> {
    let mut bytes = Vec::new();
    for file in files {
        match from {
            ContentFrom::Files => bytes.extend(bytes_of(file, allowed)?),
            ContentFrom::Here(content) => match content.0.get(&file.path) {
                Some(held) => bytes.extend(sized(file, held)?),
                None => return refused(format!("the content of {} is not here", file.path)),
            },
        }
    }
    Ok(bytes)
}

/// Reads a file.
fn bytes_of(file: &DataFileSpec, allowed: &AllowedDirs) -> Result<Vec<u8>, ConductError> {
    let DataFileSpec { path, bytes } = file;
    let held = input::read_bounded(allowed, Path::new(path), bytes.saturating_add(1));
    let held = held.map_err(|source| ConductError::Content { path: path.into(), source })?;
    sized(file, &held)?;
    Ok(held)
}

/// Refuses a content of another size than the workload says.
fn sized<'b>(file: &DataFileSpec, held: &'b [u8]) -> Result<&'b [u8], ConductError> {
    let DataFileSpec { path, bytes } = file;
    match held.len() as u64 == *bytes {
        true => Ok(held),
        false => refused(format!("{path} does not hold the {bytes} bytes that the workload says")),
    }
}
