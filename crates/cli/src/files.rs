//! A run on files from its workload to its exit code.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use plimsoll_conduct::{ConductError, Consent, FilesRun, Recording, RunTime, machine};
use plimsoll_model::{Interface, RunId};
use plimsoll_record::RunDirectory;
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilesSpec;
use plimsoll_workload::mix64;

use crate::args::OutputArgs;
use crate::args::file::FileConductArgs;
use crate::terminal::Terminal;
use crate::ui::Ui;
use crate::{manifest, shown, signals};

/// How a run on files is conducted.
pub(crate) struct FileSettings<'a> {
    pub(crate) conduct: &'a FileConductArgs,
    pub(crate) output: &'a OutputArgs,
    /// Whether what the run wrote stays.
    pub(crate) keeps_data: bool,
    /// Whether it may change what no run wrote.
    pub(crate) consent: Consent,
    /// Whether nothing is asked of files: what remains is the cost of the instrument.
    pub(crate) null: bool,
    /// Remarks to be kept with the run.
    pub(crate) notes: Vec<String>,
}

/// Prints what is to be printed of a run that has ended, and tells whether all is as it should be.
pub(crate) type Show<'a> = &'a dyn Fn(&mut Recording, &Ui) -> Result<bool>;

/// Runs a workload on files, records it and has it shown.
pub(crate) fn run(
    spec: &FilesSpec,
    settings: &FileSettings<'_>,
    show: Show<'_>,
) -> Result<ExitCode> {
    let time = RunTime::machine();
    let ui = Ui::new(&settings.output.print);
    let certificate = manifest::certificate(settings.output.certificate.as_deref())?;
    let entropy = mix64(spec.seed ^ time.wall_epoch.as_unix_ns());
    let id = RunId::new(&spec.name, time.wall_epoch, entropy);
    let conduct = settings.conduct;
    let how = plimsoll_conduct::FileSettings {
        interface: conduct.interface.map(Interface::from),
        threads: conduct.threads.unwrap_or_else(machine::cores).max(1),
        drop_machine_caches: conduct.drop_machine_caches,
        keeps_data: settings.keeps_data,
        consent: settings.consent,
        null: settings.null,
    };
    let (mut run, permit) = FilesRun::new(spec, id.as_str(), how, &ui).map_err(plain)?;
    let stop = signals::listen()?;
    let workload = serde_json::to_value(run.spec()).unwrap_or_default();
    let mut manifest = manifest::of_workload(&id, (workload, spec.seed), run.target(), &time);
    manifest.certificate = certificate;
    manifest.notes = [settings.notes.clone(), run.notes.clone()].concat();
    let telemetry = settings.output.telemetry.start(&manifest, &spec.name, &time, None, ui)?;
    let path = manifest::directory_for(settings.output.run_dir.as_deref(), &id);
    let directory = RunDirectory::create(&path, &manifest)?;
    if let Err(error) = run.make_directories() {
        // Nothing was measured, so the record holds nothing that anybody could want.
        directory.discard()?;
        return Err(error.into());
    }
    ui.note(&format!(
        "{} in {}, seed {}",
        spec.name,
        manifest.target.endpoints.join(", "),
        spec.seed
    ));
    let terminal = Terminal::observer(ui, &stop, telemetry);
    let mut recording = Recording::new(directory, manifest, time, permit, terminal, stop);
    let done = recording.run(&mut run, &Arc::new(Generator::new(spec.seed)));
    let done = done.map_err(anyhow::Error::from);
    let good = recording.finish(done, |recording, _| show(recording, &ui), &mut run)?;
    Ok(shown::exit_code(good))
}

/// Returns the refusal of a workload as such, so that its field can be told.
fn plain(error: ConductError) -> anyhow::Error {
    match error {
        ConductError::Workload(refused) => refused.into(),
        other => other.into(),
    }
}
