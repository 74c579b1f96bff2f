//! fio's command line: options of jobs, job files, and what fio is told besides.

use super::clients::{Client, Clients, Named};
use super::error::{FioError, Place, Problem};
use super::job::JobFile;
use super::lines::{Reader, Section, WrittenOption};
use super::{Options, options, resolve};
use crate::command_line::Kind::{self, Switch, Text};
use crate::command_line::{
    Flag, Given, Grammar, Note, Set, Word, Words, find, noted, on, refused, set, taken,
};

/// What stands for the file's name of jobs that are written on the command line.
pub(super) const COMMAND_LINE: &str = "command line";

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

/// What fio's own flags say, those of jobs apart.
#[derive(Default)]
pub(crate) struct Told {
    output: Output,
    is_readonly: bool,
    sections: Vec<String>,
}

pub(crate) type Row = Flag<Set<Told>>;

const PROGRESS: &str = "progress is shown our way";
const MEMORY: &str = "memory is taken as it is needed";
const NOTHING_MORE: &str = "nothing more is printed";
const SERVERS: &str = "agents take the place of fio's servers: run `plimsoll fleet up` on one \
                       machine, and on each other `plimsoll agent --join-file FILE --name HOST` \
                       with the token that it prints";
/// What is said of fio's lines of semicolons.
const NO_TERSE: &str = "terse lines are not written; use `--output-format=json`";
const NO_COMMANDS: &str = "no commands are run";
const ASK_FIO: &str = "ask fio for it";
/// The flag whose clients are gathered apart.
const CLIENT: &str = "client";

/// What fio can be told besides jobs.
pub(crate) static OF_TOOL: &[Row] = &[
    taken("output", Text, "", |to, text| set(&mut to.output.path, Ok(Some(text.into())))),
    taken("output-format", Text, "", |to, text| set(&mut to.output.formats, formats(text))),
    taken("parse-only", Switch, "", |to, _| on(&mut to.output.parse_only)),
    taken("readonly", Switch, "", |to, _| on(&mut to.is_readonly)),
    taken("section", Text, "", |to, text| {
        to.sections.push(text.to_owned());
        Ok(())
    }),
    taken(CLIENT, Text, "", |_, _| Ok(())),
    noted("eta", Text, PROGRESS),
    noted("eta-newline", Text, PROGRESS),
    noted("eta-interval", Text, PROGRESS),
    noted("status-interval", Text, PROGRESS),
    noted("max-jobs", Text, MEMORY),
    noted("alloc-size", Text, MEMORY),
    noted("warnings-fatal", Switch, "what does not mean the same is a note, what cannot an error"),
    noted("idle-prof", Text, NOTHING_MORE),
    noted("debug", Text, NOTHING_MORE),
    refused("server", Switch, SERVERS),
    refused("daemonize", Text, SERVERS),
    refused("remote-config", Text, "job files are read here; name one behind `--client`"),
    refused("minimal", Switch, NO_TERSE),
    refused("terse-version", Text, NO_TERSE),
    refused("append-terse", Switch, NO_TERSE),
    refused("trigger", Text, NO_COMMANDS),
    refused("trigger-file", Text, NO_COMMANDS),
    refused("trigger-timeout", Text, NO_COMMANDS),
    refused("bandwidth-log", Switch, "write `write_bw_log=NAME` to the job"),
    refused("showcmd", Switch, "jobs are not written back as a command line"),
    refused("version", Switch, ASK_FIO),
    refused("help", Switch, ASK_FIO),
    refused("cmdhelp", Text, ASK_FIO),
    refused("enghelp", Text, ASK_FIO),
    refused("crctest", Text, ASK_FIO),
    refused("cpuclock-test", Switch, ASK_FIO),
    refused("inflate-log", Text, ASK_FIO),
    refused("aux-path", Text, ASK_FIO),
];

/// What has been read of a command line.
struct Arguments<'a> {
    options: Options<'a>,
    sections: Vec<Section>,
    files: Vec<String>,
    clients: Clients,
    told: Told,
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
        told: Told::default(),
        notes: Vec::new(),
    };
    for word in Words::new(Grammar::Long, args, &kind_of) {
        match word {
            Word::Flag(given) => line.flag(&given)?,
            Word::Other(word) if word.len() > 1 && word.starts_with('-') => {
                return Err(form(format!("`{word}` is not an option; fio's have two dashes")));
            }
            Word::Other(word) if line.clients.take_file(word) => {}
            Word::Other(word) => line.files.push(word.to_owned()),
        }
    }
    line.finish()
}

fn kind_of(name: &str) -> Option<Kind> {
    let of_job = || options::find(name).map(|known| known.kind);
    find(OF_TOOL, name).map(|flag| flag.kind).or_else(of_job)
}

impl Arguments<'_> {
    fn flag(&mut self, given: &Given<'_>) -> Result<(), FioError> {
        let place = Place {
            file: COMMAND_LINE.to_owned(),
            line: None,
            section: self.sections.last().map(|section| section.name.clone()),
        };
        let (name, value) = (given.name.to_owned(), given.value.map(str::to_owned));
        let mut option = WrittenOption { name, value, place };
        match (kind_of(given.name), given.value) {
            (None, _) => {
                let names: Vec<&str> = OF_TOOL.iter().map(|flag| flag.name).collect();
                return Err(resolve::unknown(&option, &names));
            }
            (Some(Text), None) => return Err(option.error(given.without_value())),
            _ => {}
        }
        if let Some(flag) = find(OF_TOOL, given.name) {
            return self.tool(flag, given, &option);
        }
        if given.name == "name" {
            let name = given.value.unwrap_or_default();
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
    fn tool(
        &mut self,
        flag: &Row,
        given: &Given<'_>,
        option: &WrittenOption,
    ) -> Result<(), FioError> {
        if flag.name == CLIENT {
            return self.clients.add(option, self.sections.len(), self.options.read);
        }
        let note = flag.apply(&mut self.told, given).map_err(|error| option.error(error))?;
        let of_line = |note: Note| Note::new(format!("[{COMMAND_LINE}] {}", note.flag), note.what);
        self.notes.extend(note.map(of_line));
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
        self.options.sections.extend(self.told.sections);
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
        if let Some(job) = file.jobs.iter().find(|job| self.told.is_readonly && job.writes()) {
            let problem = Problem::Job("the job writes and `--readonly` is given".to_owned());
            return Err(FioError { place: job.place.clone(), problem });
        }
        Ok(CommandLine { file, output: self.told.output, clients })
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
