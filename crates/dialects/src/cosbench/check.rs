//! What COSBench finds out only when a stage starts on a driver, found out when the workload is
//! read: operations, selectors, units, keys, storages.

use super::config::Config;
use super::error::{Notes, Place, Refused};
use super::model::{Division, Operation, Work, WorkKind, Workload};
use super::selector::{Selector, Sizes};
use super::storage;

/// The most containers or objects that one selector may name in a scan.
const SCANNED_MAX: u64 = 1 << 40;

/// The parts of names that stand around numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Affixes {
    pub(super) before: String,
    pub(super) behind: String,
}

/// An operation whose config is understood.
#[derive(Clone, Debug)]
pub(super) struct Understood {
    pub(super) act: Act,
    pub(super) containers: Affixes,
    pub(super) objects: Affixes,
    pub(super) is_hash_checked: bool,
    pub(super) is_chunked: bool,
    pub(super) division: Division,
    pub(super) place: Place,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Read { containers: Selector, objects: Selector, range: Option<Ranged> },
    Write(Write),
    WriteFiles { containers: Selector, files: String, in_turn: bool, part: Option<u64> },
    Head { containers: Selector, objects: Selector },
    Restore { containers: Selector, objects: Selector },
    Delete { containers: Selector, objects: Selector },
    List { containers: Selector },
    ListAccount,
    Scan(Scan),
    Pause,
}

impl Act {
    /// Tells whether it sends or gets content.
    pub(super) fn moves_bytes(&self) -> bool {
        match self {
            Self::Read { .. } | Self::WriteFiles { .. } => true,
            Self::Write(write) => write.sizes.moves_bytes(),
            Self::Scan(_) => true,
            Self::Head { .. }
            | Self::Restore { .. }
            | Self::Delete { .. }
            | Self::List { .. }
            | Self::ListAccount
            | Self::Pause => false,
        }
    }
}

/// A write of objects that are made.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) containers: Selector,
    pub(super) objects: Selector,
    pub(super) sizes: Sizes,
    pub(super) is_zero: bool,
    /// How large parts are, where it is one of several.
    pub(super) part: Option<u64>,
}

/// One random range of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranged {
    pub(super) length: u64,
    pub(super) of: u64,
}

/// A walk through all objects of all containers, each once.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) kind: ScanKind,
    pub(super) containers: Selector,
    /// [`Selector::Nothing`] where it is about containers only.
    pub(super) objects: Selector,
    pub(super) sizes: Option<Sizes>,
    pub(super) is_zero: bool,
    pub(super) part: Option<u64>,
    /// Whether containers are made before, or removed behind.
    pub(super) with_containers: bool,
}

/// What a walk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanKind {
    Init,
    Prepare,
    Cleanup,
    Dispose,
}

/// The smallest part of an upload, which is also what is taken where nothing is said.
const PART_BYTES_MIN: u64 = 5 << 20;

/// Refuses what a driver would refuse.
pub(super) fn check(workload: &Workload, notes: &mut Notes) -> Result<(), Refused> {
    for stage in &workload.stages {
        for work in &stage.works {
            if work.kind == WorkKind::Delay {
                continue;
            }
            storage::check(&work.storage, &work.auth)?;
            for operation in &work.operations {
                understand(work, operation, notes)?;
            }
        }
    }
    Ok(())
}

/// Returns what an operation of a work means.
pub(super) fn understand(
    work: &Work,
    operation: &Operation,
    notes: &mut Notes,
) -> Result<Understood, Refused> {
    let config = &operation.config;
    let reader = Reader { work, operation, config, is_fork: storage::is_fork(&work.storage.kind) };
    let act = reader.act(notes)?;
    let affixes = |before: &str, default: &str, behind: &str| Affixes {
        before: config.get(before).unwrap_or(default).to_owned(),
        behind: config.get(behind).unwrap_or_default().to_owned(),
    };
    let is_chunked = config.switch("chunked")?.unwrap_or(false);
    if is_chunked && work.storage.kind != "swift" {
        let text = match storage::is_s3(&work.storage.kind) {
            true => "`chunked` breaks S3 there (411); here the length is always stated",
            false => "`chunked` says nothing of a storage that takes nothing",
        };
        notes.add(Some(config.place.line), text);
    }
    Ok(Understood {
        act,
        containers: affixes("cprefix", "mycontainers", "csuffix"),
        objects: affixes("oprefix", "myobjects", "osuffix"),
        is_hash_checked: config.switch("hashCheck")?.unwrap_or(false),
        is_chunked,
        division: operation.division,
        place: config.place,
    })
}

/// An operation while its config is read.
struct Reader<'a> {
    work: &'a Work,
    operation: &'a Operation,
    config: &'a Config,
    is_fork: bool,
}

impl Reader<'_> {
    fn act(&self, notes: &mut Notes) -> Result<Act, Refused> {
        let mut scan = |kind| self.scan(kind, notes).map(Act::Scan);
        match self.operation.kind.as_str() {
            "read" => self.read(),
            "write" => self.write(None, notes).map(Act::Write),
            "delete" => {
                let (containers, objects) = self.both()?;
                Ok(Act::Delete { containers, objects })
            }
            "list" => self.list(notes),
            "filewrite" => self.files(None),
            "init" => scan(ScanKind::Init),
            "prepare" => scan(ScanKind::Prepare),
            "cleanup" => scan(ScanKind::Cleanup),
            "dispose" => scan(ScanKind::Dispose),
            "delay" if self.work.kind == WorkKind::Delay => Ok(Act::Pause),
            kind => self.of_fork(kind, notes),
        }
    }

    /// Returns an operation that only the fork has.
    fn of_fork(&self, kind: &str, notes: &mut Notes) -> Result<Act, Refused> {
        const OF_FORK: [&str; 6] =
            ["mprepare", "mwrite", "mfilewrite", "localwrite", "head", "restore"];
        let known = OF_FORK.contains(&kind);
        if !known || !self.is_fork {
            let more = match known {
                true => format!(
                    "`{kind}` is an operation of the fork, for storage of type sio, siov1 or gdas: \
                     write type=\"sio\" for `{}`",
                    self.work.storage.kind
                ),
                false => format!(
                    "operations are read, write, filewrite, delete, list, init, prepare, cleanup, \
                     dispose, and of the fork {}",
                    OF_FORK.join(", ")
                ),
            };
            let words = format!("unrecognized operation: {kind}");
            return Err(Refused::worded(self.config.place, words, more));
        }
        match kind {
            "mprepare" => {
                let mut scan = self.scan(ScanKind::Prepare, notes)?;
                scan.part = Some(self.part_bytes()?);
                Ok(Act::Scan(scan))
            }
            "mwrite" => self.write(Some(self.part_bytes()?), notes).map(Act::Write),
            "mfilewrite" => self.files(Some(self.part_bytes()?)),
            "head" => {
                let (containers, objects) = self.both()?;
                Ok(Act::Head { containers, objects })
            }
            "restore" => {
                let (containers, objects) = self.both()?;
                self.work.storage.config.number("restore_days")?;
                Ok(Act::Restore { containers, objects })
            }
            _ => {
                let more = "localwrite writes files on the machine of a driver and no storage: use \
                            `plimsoll file bandwidth --op write`, or a target of files";
                Err(Refused::new(self.config.place, more))
            }
        }
    }

    fn selector(&self, key: &str) -> Result<Selector, Refused> {
        Selector::parse(self.config.need(key)?, key, self.config.place)
    }

    fn both(&self) -> Result<(Selector, Selector), Refused> {
        let (containers, objects) = (self.selector("containers")?, self.selector("objects")?);
        self.divided("containers", &containers, Division::Container)?;
        self.divided("objects", &objects, Division::Object)?;
        Ok((containers, objects))
    }

    /// Refuses what a division cannot cut.
    fn divided(&self, key: &str, selector: &Selector, by: Division) -> Result<(), Refused> {
        let division = self.operation.division;
        let (workers, name) = (u64::from(self.work.workers), &self.work.name);
        match selector {
            Selector::Histogram(_) if division != Division::None => {
                let more = format!("`{key}` by histogram cannot be divided by {}", division.name());
                Err(Refused::new(self.config.place, more))
            }
            Selector::Uniform(span) | Selector::Range(span)
                if division == by && span.count() < workers =>
            {
                let more = format!(
                    "`{key}` has {} numbers for {workers} workers of work `{name}`, of which some \
                     have none with division=\"{}\"",
                    span.count(),
                    by.name()
                );
                Err(Refused::new(self.config.place, more))
            }
            _ => Ok(()),
        }
    }

    /// Returns sizes of which none is 0, as an empty object is none of ours.
    fn sizes(&self, notes: &mut Notes) -> Result<Sizes, Refused> {
        let sizes = Sizes::parse(self.config.need("sizes")?, self.config.place)?;
        if sizes.is_binary && !self.is_fork {
            let text = "KiB, MiB and GiB are powers of 1024 here; COSBench takes such numbers for \
                        bytes";
            notes.add(Some(self.config.place.line), text);
        }
        Ok(sizes)
    }

    fn is_zero(&self) -> bool {
        self.config.get("content") == Some("zero")
    }

    fn write(&self, part: Option<u64>, notes: &mut Notes) -> Result<Write, Refused> {
        let (containers, objects) = self.both()?;
        let sizes = self.sizes(notes)?;
        Ok(Write { containers, objects, sizes, is_zero: self.is_zero(), part })
    }

    fn read(&self) -> Result<Act, Refused> {
        let (containers, objects) = self.both()?;
        let storage = &self.work.storage.config;
        let ranged = |config: &Config| -> Result<Option<Ranged>, Refused> {
            if config.switch("is_range_request")? != Some(true) {
                return Ok(None);
            }
            let number = |key: &str| {
                config.need(key)?;
                config.number(key).map(Option::unwrap_or_default)
            };
            let (of, length) = (number("file_length")?, number("chunk_length")?);
            match (1..=of).contains(&length) {
                true => Ok(Some(Ranged { length, of })),
                false => {
                    let more = format!("chunk_length={length} is out of range: 1 to {of}");
                    Err(Refused::new(config.place, more))
                }
            }
        };
        let range = match ranged(self.config)? {
            Some(range) => Some(range),
            None => ranged(storage)?,
        };
        Ok(Act::Read { containers, objects, range })
    }

    fn list(&self, notes: &mut Notes) -> Result<Act, Refused> {
        let line = Some(self.config.place.line);
        let is_there = |key| self.config.get(key).is_some();
        match (is_there("containers"), is_there("objects")) {
            (true, true) => {
                let (containers, objects) = self.both()?;
                let text = "`list` of containers and objects asks for an object's properties, as \
                            with Swift there";
                notes.add(line, text);
                Ok(Act::Head { containers, objects })
            }
            (false, false) if storage::is_s3(&self.work.storage.kind) => {
                let more = "`list` without containers lists an account, which is done with storage \
                            of type swift: name containers";
                Err(Refused::new(self.config.place, more))
            }
            (false, false) => Ok(Act::ListAccount),
            (false, true) => Err(self.config.need("containers").expect_err("it is not there")),
            (true, false) => {
                if storage::is_s3(&self.work.storage.kind) {
                    let text = "`list` does nothing with S3 there and counts as a success; here \
                                containers are listed";
                    notes.add(line, text);
                }
                let containers = self.selector("containers")?;
                self.divided("containers", &containers, Division::Container)?;
                Ok(Act::List { containers })
            }
        }
    }

    fn files(&self, part: Option<u64>) -> Result<Act, Refused> {
        let containers = self.selector("containers")?;
        self.divided("containers", &containers, Division::Container)?;
        let files = self.config.need("files")?.to_owned();
        let written = self.config.need("fileselection")?;
        let in_turn = match written.chars().next() {
            Some('u' | 'c' | 'h') => false,
            Some('r' | 's') => true,
            _ => {
                let words = format!("unrecognized distribution: {written}");
                let more = "`fileselection`: write s, r or u";
                return Err(Refused::worded(self.config.place, words, more));
            }
        };
        if matches!(written.chars().next(), Some('c' | 'h')) {
            let more =
                format!("`fileselection={written}`: write s, r or u: only the letter counts");
            return Err(Refused::new(self.config.place, more));
        }
        Ok(Act::WriteFiles { containers, files, in_turn, part })
    }

    fn part_bytes(&self) -> Result<u64, Refused> {
        let (config, storage) = (self.config, &self.work.storage.config);
        let part = match config.number("part_size")? {
            Some(part) => Some(part),
            None => storage.number("part_size")?,
        };
        Ok(part.unwrap_or(PART_BYTES_MIN).max(PART_BYTES_MIN))
    }

    fn scan(&self, kind: ScanKind, notes: &mut Notes) -> Result<Scan, Refused> {
        let (config, place) = (self.config, self.config.place);
        if self.operation.ratio != 100 {
            let more = format!(
                "`{}` goes through all of its objects once, so it must be alone in its work: put \
                it into a separate work",
                self.operation.kind
            );
            return Err(Refused::new(place, more));
        }
        let containers = Selector::parse_scan(config.need("containers")?, "containers", place)?;
        let objects = match (kind, config.get("objects")) {
            (ScanKind::Init | ScanKind::Dispose, None) => Selector::Nothing,
            _ => Selector::parse_scan(config.need("objects")?, "objects", place)?,
        };
        let counts = [&containers, &objects].map(|of| of.span().map_or(1, |span| span.count()));
        if counts[0].saturating_mul(counts[1]) > SCANNED_MAX {
            return Err(Refused::new(place, "there are too many objects to go through"));
        }
        let writes =
            matches!(kind, ScanKind::Init | ScanKind::Prepare) && objects != Selector::Nothing;
        // A scan of a normal work has the containers with it unless it says otherwise.
        let is_special = self.work.kind != WorkKind::Normal;
        let with_containers = match kind {
            ScanKind::Init | ScanKind::Dispose => true,
            ScanKind::Prepare => config.switch("createContainer")?.unwrap_or(!is_special),
            ScanKind::Cleanup => config.switch("deleteContainer")?.unwrap_or(!is_special),
        };
        Ok(Scan {
            kind,
            containers,
            objects,
            sizes: if writes { Some(self.sizes(notes)?) } else { None },
            is_zero: self.is_zero(),
            part: None,
            with_containers,
        })
    }
}
