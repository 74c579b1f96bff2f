//! fio's command line: options of jobs, job files, and what fio is told besides.

use std::slice::Iter;

use super::clients::{Client, Clients, Named};
use super::error::{FioError, Place, Problem};
use super::job::{JobFile, Note};
use super::lines::{Reader, Section, WrittenOption};
use super::options;
use super::{Options, resolve};

/// What stands for the file's name of jobs that are written on the command line.
pub(super) const COMMAND_LINE: &str = "command line";

/// What fio can be told besides jobs, and whether a value belongs to it.
const TOOL_FLAGS: [(&str, bool); 34] = [
    ("output", true),
    ("output-format", true),
    ("minimal", false),
    ("terse-version", true),
    ("append-terse", false),
    ("parse-only", false),
    ("readonly", false),
    ("section", true),
    ("eta", true),
    ("eta-newline", true),
    ("eta-interval", true),
    ("status-interval", true),
    ("warnings-fatal", false),
    ("max-jobs", true),
    ("alloc-size", true),
    ("bandwidth-log", false),
    ("showcmd", false),
    ("debug", true),
    ("version", false),
    ("help", false),
    ("cmdhelp", true),
    ("enghelp", true),
    ("crctest", true),
    ("cpuclock-test", false),
    ("server", false),
    ("daemonize", true),
    ("client", true),
    ("remote-config", true),
    ("idle-prof", true),
    ("inflate-log", true),
    ("trigger-file", true),
    ("trigger-timeout", true),
    ("trigger", true),
    ("aux-path", true),
];

/// What is said of fio's lines of semicolons.
const NO_TERSE: &str = "terse lines are not written; use `--output-format=json`";

/// A command line of fio.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine {
    /// Its jobs and those of its job files.
    pub file: JobFile,
    /// What is printed.
    pub output: Output,
    /// Who carries the jobs out, each of them all; empty where this machine does.
    pub clients: Vec<Client>,
}

/// What a command line wants printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The file to print to; `None`: the standard output.
    pub path: Option<String>,
    /// How; nothing stands for `normal`.
    pub formats: Vec<OutputFormat>,
    /// Whether nothing is run.
    pub parse_only: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people.
    Normal,
    /// One JSON document.
    Json,
    /// The same with all bins.
    JsonPlus,
}

/// What has been read of a command line.
struct Arguments<'a> {
    options: Options<'a>,
    sections: Vec<Section>,
    files: Vec<String>,
    clients: Clients,
    output: Output,
    is_readonly: bool,
    notes: Vec<Note>,
}

/// Returns the jobs of a command line; `args` begin behind fio's name. Job files are read through
/// `options`; each begins with the global options of the command line and waits for the one before.
pub fn from_args(args: &[String], options: &Options<'_>) -> Result<CommandLine, FioError> {
    let mut line = Arguments {
        options: options.clone(),
        sections: Vec::new(),
        files: Vec::new(),
        clients: Clients::default(),
        output: Output::default(),
        is_readonly: false,
        notes: Vec::new(),
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.strip_prefix("--") {
            Some(text) => line.long(text, &mut rest)?,
            None if arg.len() > 1 && arg.starts_with('-') => {
                return Err(form(format!("`{arg}` is not an option; fio's have two dashes")));
            }
            None if line.clients.take_file(arg) => {}
            None => line.files.push(arg.to_owned()),
        }
    }
    line.finish()
}

impl Arguments<'_> {
    fn long(&mut self, text: &str, rest: &mut Iter<'_, String>) -> Result<(), FioError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let place = Place {
            file: COMMAND_LINE.to_owned(),
            line: None,
            section: self.sections.last().map(|section| section.name.clone()),
        };
        let mut option =
            WrittenOption { name: name.to_owned(), value: value.map(str::to_owned), place };
        let tool = TOOL_FLAGS.iter().find(|(flag, _)| *flag == name);
        let known = options::find(name);
        let takes_next = match (tool, known) {
            (Some((_, takes_value)), _) => *takes_value,
            (None, Some(known)) => !known.is_flag(),
            (None, None) => {
                return Err(resolve::unknown(&option, &TOOL_FLAGS.map(|(flag, _)| flag)));
            }
        };
        if takes_next && value.is_none() {
            option.value = rest.next().cloned();
            if option.value.is_none() {
                return Err(option.refused("it has no value".to_owned()));
            }
        }
        if tool.is_some() {
            return self.tool(&option);
        }
        if name == "name" {
            let name = option.value.as_deref().unwrap_or_default();
            let place = Place { section: Some(name.to_owned()), ..option.place.clone() };
            if name.is_empty() {
                return Err(option.refused("a job has no name".to_owned()));
            }
            self.sections.push(Section::new(name, place));
            return Ok(());
        }
        if self.sections.is_empty() {
            // What stands before the first name goes for all jobs.
            let place = Place { section: Some("global".to_owned()), ..option.place.clone() };
            self.sections.push(Section::new("global", place));
        }
        let section = self.sections.last_mut().expect("one was put there");
        option.place.section = Some(section.name.clone());
        section.options.push(option);
        Ok(())
    }

    /// Follows what fio is told besides jobs.
    fn tool(&mut self, option: &WrittenOption) -> Result<(), FioError> {
        let value = option.value.as_deref().unwrap_or_default();
        let mut note = |what: &str| {
            let option = format!("--{}", option.text());
            let section = COMMAND_LINE.to_owned();
            self.notes.push(Note { section, option, what: what.to_owned() });
        };
        match option.name.as_str() {
            "output" => self.output.path = Some(value.to_owned()),
            "output-format" => {
                self.output.formats = formats(value).map_err(|why| option.refused(why))?;
            }
            "parse-only" => self.output.parse_only = true,
            "readonly" => self.is_readonly = true,
            "client" => self.clients.add(option, self.sections.len(), self.options.read)?,
            "section" => self.options.sections.push(value.to_owned()),
            "eta" | "eta-newline" | "eta-interval" | "status-interval" => {
                note("progress is shown our way");
            }
            "max-jobs" | "alloc-size" => note("memory is taken as it is needed"),
            "warnings-fatal" => note("what does not mean the same is a note, what cannot an error"),
            "idle-prof" | "debug" => note("nothing more is printed"),
            name => {
                let why = match name {
                    "server" | "daemonize" => {
                        "agents take the place of fio's servers: run `plimsoll fleet up` on one \
                         machine, and on each other `plimsoll agent --join-file FILE --name HOST` \
                         with the token that it prints"
                    }
                    "remote-config" => "job files are read here; name one behind `--client`",
                    "minimal" | "terse-version" | "append-terse" => NO_TERSE,
                    "trigger-file" | "trigger-timeout" | "trigger" => "no commands are run",
                    "bandwidth-log" => "write `write_bw_log=NAME` to the job",
                    "showcmd" => "jobs are not written back as a command line",
                    _ => "ask fio for it",
                };
                let written = format!("--{}", option.text());
                let problem = Problem::NotTaken { written, why: why.to_owned() };
                return Err(FioError { place: option.place.clone(), problem });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<CommandLine, FioError> {
        let Named { clients, files, notes } = self.clients.finish()?;
        self.files.extend(files);
        self.notes.extend(notes);
        let globals: Vec<Section> =
            self.sections.iter().filter(|section| section.is_global).cloned().collect();
        let has_jobs = self.sections.len() > globals.len();
        if self.files.is_empty() && !has_jobs {
            return Err(form(
                "there is no job: give a job file, or `--name=NAME --rw=KIND`".into(),
            ));
        }
        let wanted = self.options.sections.clone();
        self.sections.retain(|section| {
            section.is_global || wanted.is_empty() || wanted.contains(&section.name)
        });
        let mut reader = Reader::new(&self.options);
        reader.sections = self.sections;
        for (index, name) in self.files.iter().enumerate() {
            let text = (self.options.read)(name).map_err(|reason| {
                let place = Place { file: COMMAND_LINE.to_owned(), line: None, section: None };
                let problem = Problem::Unreadable { file: name.clone(), reason };
                FioError { place, problem }
            })?;
            let first = reader.sections.len();
            reader.sections.extend(globals.iter().cloned());
            reader.file(&text, name)?;
            let sections = &mut reader.sections[first..];
            if let Some(section) = sections.first_mut() {
                section.begins_anew = true;
            }
            if let Some(section) = sections.iter_mut().find(|section| !section.is_global) {
                section.begins_wave = index > 0;
            }
        }
        let name = match self.files.as_slice() {
            [file] if !has_jobs => file,
            _ => COMMAND_LINE,
        };
        let mut file = resolve::resolve(name, reader.sections, &self.options)?;
        file.notes.splice(0..0, self.notes);
        if let Some(job) = file.jobs.iter().find(|job| self.is_readonly && job.writes()) {
            let problem = Problem::Job("the job writes and `--readonly` is given".to_owned());
            return Err(FioError { place: job.place.clone(), problem });
        }
        Ok(CommandLine { file, output: self.output, clients })
    }
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, String> {
    let format = |name: &str| match name.trim() {
        "normal" => Ok(OutputFormat::Normal),
        "json" => Ok(OutputFormat::Json),
        "json+" => Ok(OutputFormat::JsonPlus),
        name if name.contains("terse") || name == "minimal" => Err(NO_TERSE.to_owned()),
        _ => Err("it is normal, json or json+".to_owned()),
    };
    text.split(',').map(format).collect()
}

fn form(text: String) -> FioError {
    let place = Place { file: COMMAND_LINE.to_owned(), line: None, section: None };
    FioError { place, problem: Problem::Form(text) }
}
