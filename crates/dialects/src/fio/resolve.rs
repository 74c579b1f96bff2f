//! Sections to jobs: what global sections say, what a section says, what holds together.

use std::time::Duration;

use super::error::{FioError, Place, Problem};
use super::job::{
    BlockShare, Blocks, DEFAULT_PERCENTILES, Direction, Directions, Distribution, Engine, Files,
    Flow, Job, JobFile, Logs, Order, Pattern, Queue, RateProcess, Rates, Reporting, Span, SyncMode,
    Thinktime, Timing, Verify, note,
};
use super::lines::{Section, WrittenOption};
use super::options;
use super::values::{KbBase, Value};
use super::{Options, Units, each_once};
use crate::command_line::{Deal, LineError, Note};

/// What fio takes as seed where a job names none.
const SEED_DEFAULT: u64 = 0x89;
/// The size of blocks where a job names none.
const BLOCK_DEFAULT: u64 = 4_096;
const NAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// The most sections.
const SECTIONS_MAX: usize = 1_024;
/// The most options of all sections, those of global ones counted for each section after them.
/// The console judges the job file of any of its users, so this takes bounded time.
const SETTINGS_MAX: usize = 100_000;
/// With so many errors, no more are looked for.
const ERRORS_MAX: usize = 100;

/// A job while its options are gone through.
pub(super) struct Draft {
    pub(super) job: Job,
    pub(super) has_rw: bool,
    pub(super) fixed: Directions<Option<u64>>,
    pub(super) range: Directions<Option<Span<u64>>>,
    pub(super) split: Directions<Option<Vec<BlockShare>>>,
    pub(super) repeats: bool,
    pub(super) seed: Option<u64>,
    pub(super) nrfiles: Option<u32>,
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) wait_for: Option<String>,
    mix_read: Option<u32>,
    mix_write: Option<u32>,
}

/// An option with what its section makes of suffixes.
#[derive(Clone)]
struct Setting {
    option: WrittenOption,
    kb_base: KbBase,
}

/// Returns the jobs of the sections of `name`.
pub(super) fn resolve(
    name: &str,
    sections: Vec<Section>,
    options: &Options<'_>,
) -> Result<JobFile, FioError> {
    let mut file = JobFile {
        name: name.to_owned(),
        jobs: Vec::new(),
        notes: Vec::new(),
        global_options: Vec::new(),
    };
    check_amounts(&sections)?;
    let mut globals: Vec<Setting> = Vec::new();
    let mut globals_kb = KbBase::Binary;
    // All that is wrong is said at once.
    let mut errors = Vec::new();
    for section in sections {
        if errors.len() >= ERRORS_MAX {
            break;
        }
        if section.begins_anew {
            globals.clear();
            globals_kb = KbBase::Binary;
        }
        let kb_base = kb_base(&section.options)?.unwrap_or(globals_kb);
        let settings = section.options.iter().cloned().map(|option| Setting { option, kb_base });
        let written = section.options.iter().map(|option| {
            (option.name.clone(), option.value.clone().unwrap_or_else(|| "1".to_owned()))
        });
        if section.is_global {
            globals_kb = kb_base;
            globals.extend(settings);
            file.global_options.extend(written);
            // What is wrong is said even where no job follows.
            errors.extend(draft(&section, &globals, options.units, &mut file.notes).err());
            continue;
        }
        let all: Vec<Setting> = globals.iter().cloned().chain(settings).collect();
        let mut draft = match draft(&section, &all, options.units, &mut file.notes) {
            Ok(draft) => draft,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        draft.job.options = written.collect();
        draft.stonewall |= section.begins_wave;
        let job = draft.finish(&file.jobs, &mut file.notes);
        let place = section.place;
        match job {
            Ok(job) => file.jobs.push(job),
            Err(problem) => errors.push(FioError { place, problem }),
        }
    }
    if let Some(error) = FioError::all(errors) {
        return Err(error);
    }
    if file.jobs.is_empty() {
        let place = Place { file: name.to_owned(), line: None, section: None };
        let text = match options.sections.as_slice() {
            [] => "there is no section but global ones, so no job".to_owned(),
            names => format!("there is no section of the name {}", names.join(" or ")),
        };
        return Err(FioError { place, problem: Problem::Form(text) });
    }
    file.global_options = each_once(file.global_options);
    file.notes = each_once(file.notes);
    Ok(file)
}

/// Refuses more sections and options than are judged in a second.
fn check_amounts(sections: &[Section]) -> Result<(), FioError> {
    let refuse = |section: &Section, text: String| {
        Err(FioError { place: section.place.clone(), problem: Problem::Form(text) })
    };
    if let Some(section) = sections.get(SECTIONS_MAX) {
        return refuse(section, format!("there are more than {SECTIONS_MAX} sections"));
    }
    let (mut globals, mut all) = (0, 0);
    for section in sections {
        globals = if section.begins_anew { 0 } else { globals };
        all += globals + section.options.len();
        if all > SETTINGS_MAX {
            return refuse(section, format!("there are more than {SETTINGS_MAX} options"));
        }
        globals += if section.is_global { section.options.len() } else { 0 };
    }
    Ok(())
}

/// Returns what `kb_base` says, which counts for all options of a section wherever it stands.
fn kb_base(options: &[WrittenOption]) -> Result<Option<KbBase>, FioError> {
    let Some(option) = options.iter().rfind(|option| option.name == "kb_base") else {
        return Ok(None);
    };
    match option.value.as_deref() {
        Some("1024") => Ok(Some(KbBase::Binary)),
        Some("1000") => Ok(Some(KbBase::Decimal)),
        _ => Err(option.refused("it is 1024 or 1000".to_owned())),
    }
}

/// Goes through the settings that hold for a section.
fn draft(
    section: &Section,
    settings: &[Setting],
    units: Units,
    notes: &mut Vec<Note>,
) -> Result<Draft, FioError> {
    let mut draft = Draft::new(section);
    // All that is wrong is said at once.
    let mut errors = Vec::new();
    for Setting { option, kb_base } in settings {
        if errors.len() >= ERRORS_MAX {
            break;
        }
        let Some(known) = options::find(&option.name) else {
            errors.push(unknown(option, &[]));
            continue;
        };
        let text = option.value.as_deref();
        let mut value = Value { text, units, kb_base: *kb_base, notes: Vec::new() };
        let differs = !known.to.same.contains(&text.unwrap_or("1"));
        match known.deal {
            Deal::Take => {
                let taken = (known.to.take)(&mut draft, &mut value);
                errors.extend(taken.map_err(|why| option.refused(why)).err());
            }
            Deal::Note if differs => value.notes.push(known.says.to_owned()),
            Deal::Refuse if differs => errors.push(option.not_taken(known.says)),
            Deal::Note | Deal::Refuse => {}
        }
        let section = option.place.section.as_ref().unwrap_or(&section.name);
        notes.extend(value.notes.into_iter().map(|what| note(section, &option.text(), what)));
    }
    FioError::all(errors).map_or(Ok(draft), Err)
}

/// Returns the error that nobody knows an option; `more` are names that are known besides fio's.
pub(super) fn unknown(option: &WrittenOption, more: &[&'static str]) -> FioError {
    let name = &option.name;
    let hint = options::did_you_mean(name, more);
    option.error(LineError::unknown(format!("`{name}`"), "not an option of fio", &hint))
}

impl Draft {
    fn new(section: &Section) -> Self {
        Self {
            job: defaults(section),
            has_rw: false,
            fixed: Directions::default(),
            range: Directions::default(),
            split: Directions::default(),
            repeats: true,
            seed: None,
            nrfiles: None,
            stonewall: false,
            new_group: false,
            wait_for: None,
            mix_read: None,
            mix_write: None,
        }
    }

    /// Sets the share of reads or that of writes; the last one counts.
    pub(super) fn mix(&mut self, read: Option<u32>, write: Option<u32>) {
        self.mix_read = read.or(self.mix_read);
        self.mix_write = write.or(self.mix_write);
        self.job.pattern.read_percent =
            read.or(write.map(|write| 100 - write)).unwrap_or(self.job.pattern.read_percent);
    }

    /// Fills in what follows from several options, and checks that they hold together.
    fn finish(mut self, before: &[Job], notes: &mut Vec<Note>) -> Result<Job, Problem> {
        self.blocks(notes);
        self.names(notes)?;
        self.queue(notes);
        self.flow(before)?;
        if let (Some(read), Some(write)) = (self.mix_read, self.mix_write)
            && read + write != 100
        {
            let what = format!(
                "`rwmixread={read}` and `rwmixwrite={write}` do not add up to 100; {}% are reads",
                self.job.pattern.read_percent
            );
            self.note(notes, "rwmixwrite", what);
        }
        let Self { mut job, has_rw, repeats, seed, .. } = self;
        job.pattern.seed = seed.or(repeats.then_some(SEED_DEFAULT));
        job.pattern.random_map &= job.pattern.distribution == Distribution::Uniform;
        let logs = &mut job.reporting.logs;
        for prefix in [&mut logs.bw, &mut logs.iops, &mut logs.lat].into_iter().flatten() {
            if prefix.is_empty() {
                prefix.clone_from(&job.name);
            }
        }
        check(&job, has_rw).map_err(Problem::Job)?;
        Ok(job)
    }

    fn note(&self, notes: &mut Vec<Note>, option: &str, what: String) {
        notes.push(note(self.job.place.section.as_deref().unwrap_or_default(), option, what));
    }

    /// Picks among `bssplit`, `bsrange` and `bs`: fio goes by the first of them that is there.
    fn blocks(&mut self, notes: &mut Vec<Note>) {
        let fixed = self.fixed.read.is_some() || self.fixed.write.is_some();
        let range = self.range.read.is_some() || self.range.write.is_some();
        let split = self.split.read.is_some() || self.split.write.is_some();
        if split && (range || fixed) {
            self.note(notes, "bssplit", "it counts, not `bs` or `bsrange`, as in fio".to_owned());
        } else if range && fixed {
            self.note(notes, "bsrange", "it counts, not `bs`, as in fio".to_owned());
        }
        let pick =
            |split: Option<Vec<BlockShare>>, range: Option<Span<u64>>, fixed: Option<u64>| {
                split
                    .map(Blocks::Split)
                    .or(range.map(Blocks::Range))
                    .unwrap_or(Blocks::Fixed(fixed.unwrap_or(BLOCK_DEFAULT)))
            };
        self.job.pattern.blocks = Directions {
            read: pick(self.split.read.take(), self.range.read, self.fixed.read),
            write: pick(self.split.write.take(), self.range.write, self.fixed.write),
        };
    }

    fn names(&mut self, notes: &mut Vec<Note>) -> Result<(), Problem> {
        let files = &mut self.job.files;
        let named = u32::try_from(files.names.len()).unwrap_or(u32::MAX);
        files.count = if named > 0 { named } else { self.nrfiles.unwrap_or(1) };
        if let Some(absolute) = files.names.iter().find(|name| name.starts_with('/'))
            && !files.directories.is_empty()
        {
            return Err(Problem::Job(format!(
                "`filename` names {absolute} from the root and `directory` is given too; leave \
                one out"
            )));
        }
        let files = &self.job.files;
        for device in files.devices() {
            let what = format!(
                "{device} is a device: the run is refused without `--i-know-this-destroys-data`"
            );
            self.note(notes, "filename", what);
        }
        if let Some(asked) = self.nrfiles
            && named > 0
            && asked != named
        {
            let what = format!("`filename` names {named}, and that counts");
            self.note(notes, &format!("nrfiles={asked}"), what);
        }
        Ok(())
    }

    fn queue(&self, notes: &mut Vec<Note>) {
        let queue = &self.job.queue;
        if queue.iodepth > 1 && queue.depth() == 1 {
            let engine = queue.engine_written.as_deref().unwrap_or("psync");
            let what = format!("{engine} waits for each operation, so one is in flight, as in fio");
            self.note(notes, &format!("iodepth={}", queue.iodepth), what);
        }
    }

    /// Puts the job behind those before it.
    fn flow(&mut self, before: &[Job]) -> Result<(), Problem> {
        let flow = &mut self.job.flow;
        if let Some(last) = before.last() {
            flow.wave = last.flow.wave + u32::from(self.stonewall);
            flow.group = last.flow.group + u32::from(self.stonewall || self.new_group);
        }
        let Some(name) = &self.wait_for else { return Ok(()) };
        let named: Vec<usize> =
            (0..before.len()).filter(|&index| before[index].name == *name).collect();
        match named.as_slice() {
            [index] => flow.wait_for = Some(*index),
            [] => {
                let text = format!("it waits for `{name}`, which is not a job before it");
                return Err(Problem::Job(text));
            }
            more => {
                let text = format!("it waits for `{name}`, a name that {} jobs have", more.len());
                return Err(Problem::Job(text));
            }
        }
        Ok(())
    }
}

/// Tells why a job makes no sense.
fn check(job: &Job, has_rw: bool) -> Result<(), String> {
    if !has_rw && !job.files.create_only && !job.queue.engine.is_metadata() {
        return Err(
            "the job has no `rw`; fio would read, so write `rw=read` if that is meant".into()
        );
    }
    if job.timing.time_based && job.timing.runtime.is_none() {
        return Err("`time_based` needs a `runtime`".to_owned());
    }
    let rates = &job.rates;
    let is_set = |rate: &Directions<Option<u64>>| rate.read.is_some() || rate.write.is_some();
    if is_set(&rates.bytes_per_sec) && is_set(&rates.ops_per_sec) {
        return Err("`rate` and `rate_iops` cannot both hold; leave one out".to_owned());
    }
    if job.files.create_only && !job.files.allow_file_create {
        return Err("`create_only` makes files and `allow_file_create=0` forbids it".to_owned());
    }
    let Some(size) = job.files.size_of_file() else { return Ok(()) };
    if size.min == 0 {
        return Err("`size` is less than a byte for each of its files".to_owned());
    }
    if job.files.create_only || job.queue.engine.is_metadata() {
        return Ok(());
    }
    let Directions { read, write } = &job.pattern.blocks;
    let block = match job.pattern.direction {
        Direction::Read => read.size_bytes_max(),
        Direction::Write => write.size_bytes_max(),
        Direction::Mixed => read.size_bytes_max().max(write.size_bytes_max()),
    };
    if block > size.min {
        return Err(format!("a block of {block} bytes is larger than a file of {}", size.min));
    }
    Ok(())
}

/// Returns a job as fio takes it where a section says nothing.
fn defaults(section: &Section) -> Job {
    let nothing = Directions { read: None, write: None };
    Job {
        name: section.name.clone(),
        place: section.place.clone(),
        description: None,
        flow: Flow {
            wave: 0,
            group: 0,
            wait_for: None,
            numjobs: 1,
            group_reporting: false,
            start_delay: Span::default(),
            exitall_on_error: false,
        },
        pattern: Pattern {
            direction: Direction::Read,
            order: Order::Sequential,
            read_percent: 50,
            blocks: Directions {
                read: Blocks::Fixed(BLOCK_DEFAULT),
                write: Blocks::Fixed(BLOCK_DEFAULT),
            },
            distribution: Distribution::Uniform,
            random_map: true,
            seed: Some(SEED_DEFAULT),
        },
        files: default_files(),
        queue: Queue {
            engine: Engine::Psync,
            engine_written: None,
            iodepth: 1,
            direct: false,
            sync: SyncMode::Off,
            fsync_every: None,
            fdatasync_every: None,
            end_fsync: false,
        },
        timing: Timing { runtime: None, time_based: false, loops: 1, ramp: Duration::ZERO },
        rates: Rates {
            bytes_per_sec: nothing.clone(),
            ops_per_sec: nothing,
            process: RateProcess::Linear,
        },
        thinktime: Thinktime { pause: Duration::ZERO, spin: Duration::ZERO, operations: 1 },
        verify: Verify { method: None, after_writing: true, fatal: false },
        reporting: Reporting {
            percentiles: DEFAULT_PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            logs: Logs::default(),
        },
        options: Vec::new(),
    }
}

fn default_files() -> Files {
    Files {
        directories: Vec::new(),
        names: Vec::new(),
        name_format: NAME_FORMAT_DEFAULT.to_owned(),
        count: 1,
        size: None,
        file_size_bytes: None,
        io_size: None,
        operations_max: None,
        create_only: false,
        allow_file_create: true,
        overwrite: false,
        invalidate: true,
    }
}
