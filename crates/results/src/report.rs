//! Fills the report of a record.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::RowAnalysis;
use plimsoll_foreign::warp::raw::ScanEnd;
use plimsoll_model::{ErrorClass, OpKind, OpRate, RunId, Seed, StageKind, TargetKind, WallTime};
use plimsoll_record::schema::{self, Manifest};
use plimsoll_report::proof::Certificate;
use plimsoll_report::{
    AgentReport, CertificateLine, CleanupReport, CleanupState, ErrorSample, LoopModel, OpLogCheck,
    ProcessUsage, Report, RowReport, StageReport, TargetReport, Verification, VerificationMode,
    format,
};
use plimsoll_workload::plan::{JobPacing, TargetIndex, title_of};
use plimsoll_workload::{Pacing, Share};
use serde::Deserialize;

use crate::agents::{advise_of_a_part, agents, machine_line};
use crate::analyze::AnalyzedStage;
use crate::asked::Asked;
use crate::clients::{ClientStage, RowJobs, Rows};
use crate::described::described;
use crate::error::{ReadError, ResultsError};
use crate::first_errors::first_errors;
use crate::load_line::refuse_slo;
use crate::names::row_name;
use crate::open::{Origin, Record, RecordStage, Source, state};
use crate::queue_theory;
use crate::schedules::schedules;
use crate::verdict::verdict;

/// How many texts of one class of failure are kept of a record made elsewhere.
const ERRORS_KEPT_PER_CLASS: usize = 3;
const HOSTS_LEFT_OUT: &str =
    "the figures of each host are left out: there are too many stages, jobs, kinds and hosts";

impl Record {
    /// Returns the report of what was asked for.
    pub fn report(&self, asked: &Asked) -> Result<Report, ResultsError> {
        let analyzed = self.analyze(asked)?;
        let results = analyzed.iter().map(|of| &self.stages[of.stage]);
        let results = results.filter(|stage| self.is_result(stage)).map(|stage| stage.index);
        let results: Vec<usize> = results.collect();
        let mut report = match &self.origin {
            Origin::Run { manifest, .. } => self.report_of_run(manifest, asked, analyzed)?,
            Origin::Warp { end } => self.report_of_warp(end, analyzed)?,
        };
        refuse_slo(&report, asked)?;
        report.endpoints.clone_from(&self.endpoints);
        report.clients.clone_from(&self.clients);
        report.losses.splice(0..0, self.losses.iter().cloned());
        report.notes.extend(self.steady_notes(asked)?);
        let by_host =
            |row: &RowReport| row.analysis.kinds.is_empty() || !row.analysis.endpoints.is_empty();
        if !report.stages.iter().flat_map(|stage| &stage.rows).all(by_host) {
            report.notes.push(HOSTS_LEFT_OUT.to_owned());
        }
        if let Origin::Run { manifest, clients, .. } = &self.origin {
            crate::crimes::note(&mut report, (manifest, &results), clients.plan());
        }
        Ok(report)
    }

    fn report_of_run(
        &self,
        manifest: &Manifest,
        asked: &Asked,
        analyzed: Vec<AnalyzedStage>,
    ) -> Result<Report, ResultsError> {
        let Origin::Run { directory, .. } = &self.origin else {
            unreachable!("a manifest is of a run of ours")
        };
        // Of the run, also where only a later stage is asked for.
        let mut begun = manifest.stages.iter().filter(|stage| stage.ended_ns.is_some());
        let first_ns = begun.find_map(|stage| stage.started_ns).unwrap_or_default();
        let verification = verification(manifest, self, &analyzed);
        let what = what(manifest, self, asked, &analyzed);
        let stage = |of: AnalyzedStage| {
            let index = self.stages[of.stage].index as u8;
            (index, self.stage(manifest, asked, of, first_ns))
        };
        let mut stages: Vec<(u8, StageReport)> = analyzed.into_iter().map(stage).collect();
        let agents = agents(manifest);
        advise_of_a_part(&agents, stages.iter_mut().map(|(_, stage)| stage));
        self.add_steps(manifest, asked, &mut stages)?;
        let load_lines = self.load_lines(manifest, asked, &stages)?;
        let of_lines = load_lines.iter().filter_map(|line| line.verdict.clone());
        let of_lines = of_lines.max_by_key(|verdict| verdict.is_client);
        let stages: Vec<StageReport> = stages.into_iter().map(|(_, stage)| stage).collect();
        let (scraped, scrape_loss) = self.scraped(manifest, &stages, first_ns);
        let epoch = WallTime::from_unix_ns(manifest.started_unix_ns);
        let damaged =
            |_| ResultsError::Nothing(format!("run.json: `{}` is not a run id", manifest.run_id));
        let report = Report::of(&what, epoch, stages);
        Ok(Report {
            verdict: of_lines.or(report.verdict.clone()),
            tool_version: manifest.tool.version.clone(),
            run_id: Some(RunId::parse(&manifest.run_id).map_err(damaged)?),
            command: typed_again(&manifest.command_line),
            state: state(manifest, &agents, directory)?,
            run_directory: Some(directory.path().display().to_string()),
            started: epoch.after(Duration::from_nanos(first_ns)),
            targets: self.targets(manifest),
            machine: machine_line(&manifest.machine),
            // Advice on a single run is computed again; advice from merging is only stored.
            advice: match manifest.merged.is_empty() {
                true => agents.iter().flat_map(AgentReport::missing).collect(),
                false => manifest.advice.clone(),
            },
            agents,
            seed: manifest.merged.is_empty().then_some(Seed(manifest.seed)),
            virtual_time: manifest.virtual_time,
            load_lines,
            verification,
            read_back: self.read_back(manifest)?,
            recorder_wait: (!manifest.virtual_time)
                .then(|| Duration::from_nanos(manifest.recorder.map_or(0, |of| of.wait_ns))),
            cleanup: cleanup(&manifest.cleanup),
            scraped,
            losses: scrape_loss.into_iter().collect(),
            certificate: manifest.certificate.as_ref().map(|certificate| {
                let read = Certificate::deserialize(certificate);
                read.as_ref().map(CertificateLine::from).unwrap_or_default()
            }),
            notes: notes(manifest),
            ..report
        })
    }

    fn targets(&self, manifest: &Manifest) -> Vec<TargetReport> {
        let Origin::Run { clients, .. } = &self.origin else { return Vec::new() };
        let report = |(at, of): (usize, &schema::Target)| {
            let own = target(of, manifest.virtual_time);
            let plan = clients.plan().filter(|_| !of.has_directories());
            let in_use =
                plan.map(|plan| plan.buckets_in_use(TargetIndex(at), own.bucket.as_deref()));
            TargetReport { bucket: in_use.unwrap_or_else(|| own.bucket.clone()), ..own }
        };
        manifest.targets().enumerate().map(report).collect()
    }

    fn stage(
        &self,
        manifest: &Manifest,
        asked: &Asked,
        of: AnalyzedStage,
        first_ns: u64,
    ) -> StageReport {
        let Origin::Run { clients, .. } = &self.origin else {
            unreachable!("a manifest is of a run of ours")
        };
        let stage = &self.stages[of.stage];
        let entry = &manifest.stages[stage.index];
        let of_clients = clients.at(stage.index);
        let facts = entry.files.clone().unwrap_or_default();
        // What is known of the whole stage says nothing of a part of its operations.
        let whole = !asked.is_part() && asked.job.is_none();
        let on_files = entry.files.is_some();
        let clients_apart = is_measured(stage) && are_apart(manifest, stage.index);
        let rows = of.rows.iter().zip(of.analysis.rows).map(|(row, mut analysis)| {
            // The record says that clients took turns, and what that means for the figures.
            analysis.advice.retain(|advice| !(clients_apart && advice.is_of_length()));
            self.row(manifest, (entry, &of_clients), row, analysis)
        });
        let is_real = !manifest.virtual_time;
        // The kernel's threads that work for the program are counted by the process only.
        let used = facts.usage.map(|used| used.user_ns + used.system_ns);
        let cpu = if on_files { used } else { entry.cpu_ns };
        let cpu = cpu.filter(|_| whole && is_real).map(Duration::from_nanos);
        let mut report = StageReport {
            iteration: entry.iteration,
            number_of_title: stage.number_of_title,
            is_result: entry.kind != StageKind::Prepare && !entry.is_on_buckets(),
            probe_of: entry.probe.as_ref().map(|probe| probe.search_index),
            is_read_back: entry.is_read_back(),
            clients_apart,
            started_after: Duration::from_nanos(stage.started.as_ns().saturating_sub(first_ns)),
            took: stage.ended.since(stage.started),
            threads: Some(entry.threads_count),
            ended_by: entry.ended_by,
            ended_because: entry.ended_because.clone(),
            cpu,
            cpu_share: cpu
                .and_then(|cpu| cpu_share(manifest, cpu, stage.ended.since(stage.started))),
            usage: facts.usage.filter(|_| whole).map(usage),
            stream_hash: entry.stream_hash.clone(),
            wrong: match whole {
                true => entry.wrong.iter().map(|of| (of.kind, of.count)).collect(),
                false => BTreeMap::new(),
            },
            unchecked_count: match whole {
                true => entry.jobs.iter().map(|job| job.unchecked_count).sum(),
                false => 0,
            },
            errors: first_errors(manifest, entry),
            look_gap_max: facts.look_gap_max_ns.map(Duration::from_nanos),
            uncertain_count: facts.uncertain_count,
            events: crate::events::events(manifest, entry),
            ..StageReport::of(&entry.name, rows.collect())
        };
        let rows = report.ended_count();
        // What was seen of clients is of the whole stage: it says little where most is left out.
        let is_most = asked.skip.saturating_mul(2) <= report.took;
        if whole && is_most && report.is_result && asked.rows == Rows::Jobs {
            report.verdict = verdict(manifest, entry, &of_clients, &report.rows);
        }
        let counted = entry.ops_count.filter(|_| whole);
        report.op_log = counted.map(|counted| OpLogCheck { rows, counted });
        report
    }

    fn row(
        &self,
        manifest: &Manifest,
        (entry, of_clients): (&schema::Stage, &[ClientStage<'_>]),
        row: &RowJobs,
        analysis: RowAnalysis,
    ) -> RowReport {
        let job = &entry.jobs[row.jobs[0]];
        let on_files = job.is_on_files;
        let of = described(of_clients, row);
        let paced = |job: &usize| {
            (entry.jobs[*job].name.clone(), loop_model(of_clients, *job, &entry.jobs[*job]))
        };
        let paced: Vec<_> = row.jobs.iter().map(paced).collect();
        let took = analysis.ended.since(analysis.started);
        let is_one = manifest.merged.is_empty() && manifest.agents.is_empty();
        let named = |client: &u16| self.clients.get(usize::from(*client)).cloned();
        let served_by = match (is_one, row.agent) {
            (true, _) => manifest.machine.hostname.iter().cloned().collect(),
            // Also of one that did nothing.
            (false, Some(agent)) => named(&agent).into_iter().collect(),
            (false, None) => analysis.clients.iter().filter_map(named).collect(),
        };
        let schedules = schedules(entry, of_clients, row, took);
        let theory = match of_clients {
            [ClientStage { planned: Some((plan, stage)), .. }] => {
                queue_theory::latency(plan, stage, &schedules)
            }
            _ => None,
        };
        RowReport {
            jobs: row.jobs.clone(),
            worker: row.worker,
            work: job.work,
            read_percent: job.read_percent,
            is_on_files: on_files,
            block: of.block,
            depth: of.depth,
            direct: of.direct,
            interface: job.interface,
            caches: entry.files.as_ref().filter(|_| on_files).and_then(|files| files.caches),
            files_count: of.files_count,
            file_size: of.file_size,
            duration: of.duration,
            error_rate_max: of.error_rate_max,
            served_by,
            names_kept_count: names_kept(manifest, of_clients).filter(|_| on_files),
            loop_model: paced[0].1,
            paced,
            schedules,
            theory,
            ..RowReport::of(&row_name(entry, row), analysis)
        }
    }

    fn report_of_warp(
        &self,
        end: &ScanEnd,
        analyzed: Vec<AnalyzedStage>,
    ) -> Result<Report, ResultsError> {
        let command = end.command_line.clone().unwrap_or_default();
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut stages = Vec::new();
        for of in analyzed {
            let stage = &self.stages[of.stage];
            let mut rows = Vec::new();
            for analysis in of.analysis.rows {
                let loop_model = warp_loop_model(&words, stage);
                rows.push(RowReport { loop_model, ..RowReport::of(&stage.name, analysis) });
            }
            let mut report = StageReport::of(&stage.name, rows);
            if report.failed_count() > 0 {
                report.errors = self.warp_errors(stage)?;
            }
            stages.push(report);
        }
        let of_stage = match &stages[..] {
            [one] => one.name.clone(),
            _ => format!("{} stages", stages.len()),
        };
        let what = match words[..] {
            ["warp", benchmark, ..] if !benchmark.starts_with('-') => {
                format!("warp {benchmark}, {of_stage}")
            }
            // Written by `plimsoll`, or by nobody who said so.
            _ => format!("warp {of_stage}"),
        };
        let target = self.endpoints.iter().filter(|name| !name.is_empty());
        let target: Vec<&str> = target.map(String::as_str).collect();
        let address = if target.is_empty() { "unknown".to_owned() } else { target.join(", ") };
        // Its moments are those of Unix.
        let epoch = WallTime::from_unix_ns(0);
        let first = self.stages.first().map_or(0, |stage| stage.started.as_ns());
        Ok(Report {
            command: command.clone(),
            started: WallTime::from_unix_ns(first),
            utc_offset_seconds: end.utc_offset_seconds,
            foreign: Some("warp raw file".to_owned()),
            targets: vec![TargetReport { address, ..TargetReport::default() }],
            ..Report::of(&what, epoch, stages)
        })
    }

    /// Reads the first texts of each kind and class of failure.
    fn warp_errors(&self, stage: &RecordStage) -> Result<Vec<ErrorSample>, ReadError> {
        let mut kept: BTreeMap<(OpKind, ErrorClass), Vec<ErrorSample>> = BTreeMap::new();
        let Source::Warp(file) = &self.source else { return Ok(Vec::new()) };
        file.scan_errors(&mut |op, error| {
            if op.outcome.is_ok() || !stage.stages.contains(op.stage) {
                return;
            }
            let of_class = kept.entry((op.kind, op.outcome)).or_default();
            if of_class.len() < ERRORS_KEPT_PER_CLASS {
                of_class.push(ErrorSample {
                    class: op.outcome,
                    kind: op.kind,
                    endpoint: Some(op.endpoint),
                    status: None,
                    message: error.to_owned(),
                });
            }
        })?;
        Ok(kept.into_values().flatten().collect())
    }
}

/// Returns a command line as it can be typed into a shell.
pub fn typed_again(words: &[String]) -> String {
    // Only a NUL cannot be quoted, and no command line has one.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

fn is_measured(stage: &RecordStage) -> bool {
    stage.kind == StageKind::Measure
}

/// Tells whether a client of a merged run had ended a stage when another began it.
fn are_apart(manifest: &Manifest, stage: usize) -> bool {
    let stages = manifest.merged.iter().flat_map(|run| &run.stages);
    let own = || stages.clone().filter(|of| usize::from(of.index) == stage);
    let (began, ended) = (own().filter_map(|of| of.started_ns), own().filter_map(|of| of.ended_ns));
    began.max().zip(ended.min()).is_some_and(|(began, ended)| ended <= began)
}

/// Returns what ran, as the command names it.
fn what(manifest: &Manifest, record: &Record, asked: &Asked, analyzed: &[AnalyzedStage]) -> String {
    let name = title_of(manifest.workload.name().unwrap_or("run"));
    let what = match manifest.merged.len() {
        0 => name,
        parts => format!("{name} of {parts} clients"),
    };
    let results: Vec<_> =
        analyzed.iter().filter(|of| is_measured(&record.stages[of.stage])).collect();
    let shown = if results.is_empty() { analyzed.iter().collect() } else { results };
    let [only] = shown[..] else { return what };
    let stage = &record.stages[only.stage];
    let entry = &manifest.stages[stage.index];
    let is_one_of_several = record.stages.iter().filter(|stage| is_measured(stage)).count() > 1;
    let mut named = what;
    let (row, is_on_objects) = match &only.rows[..] {
        [row] => (Some(row), !entry.jobs[row.jobs[0]].is_on_files),
        _ => (None, entry.files.is_none() && asked.stage.is_some()),
    };
    // On files each stage has its heading.
    if is_on_objects && (!is_measured(stage) || is_one_of_several) {
        named += &format!(", stage {}", stage.title);
    }
    let row = row.filter(|row| is_on_objects && entry.jobs.len() > row.jobs.len());
    row.map_or(named.clone(), |row| format!("{named}, job {}", row_name(entry, row)))
}

fn target(target: &schema::Target, virtual_time: bool) -> TargetReport {
    let (before, after) = match (target.kind, virtual_time) {
        (Some(TargetKind::Oracle), true) => ("", ", in virtual time"),
        (Some(TargetKind::Oracle), false) => ("oracle at ", ""),
        _ if target.embedded => ("embedded store at ", ""),
        _ => ("", ""),
    };
    let files = target.files.clone();
    let hosts: Vec<&str> = format::known_hosts(&target.endpoints).map(String::as_str).collect();
    let root = |word: &str| {
        let bucket = target.bucket.as_ref().filter(|_| target.root_word() == word);
        bucket.map(|bucket| target.root_name(bucket))
    };
    TargetReport {
        address: format!("{before}{}{after}", hosts.join(", ")),
        bucket: root("bucket"),
        collection: root("collection"),
        directory: root("directory"),
        is_files: files.is_some(),
        file_system: files.as_ref().and_then(|files| files.file_system.clone()),
        device: files.as_ref().and_then(|files| files.device.clone()),
        free_bytes: files.and_then(|files| files.free_bytes),
    }
}

/// Returns how many workers of a stage of a fleet worked on names that their agent had in the stage
/// before.
fn names_kept(manifest: &Manifest, of_clients: &[ClientStage<'_>]) -> Option<u32> {
    let weights: Vec<u32> = manifest.agents.iter().map(|agent| agent.weight).collect();
    let shares = Share::by_weight(&weights)?;
    let (plan, stage) = of_clients.first()?.planned?;
    let index = plan.stages.iter().position(|of| std::ptr::eq(of, stage))?;
    plan.names_kept_count(index, &shares)
}

/// Returns the remarks of the run, why caches were not dropped, and what failed uploads left.
fn notes(manifest: &Manifest) -> Vec<String> {
    let mut notes = manifest.notes.clone();
    let why = |stage: &schema::Stage| stage.files.as_ref()?.caches_reason.clone();
    let whys = manifest.stages.iter().filter_map(why);
    let mut found: Vec<String> =
        whys.map(|why| format!("caches were not dropped: {why}")).collect();
    let count = |of: fn(&schema::Stage) -> u64| manifest.stages.iter().map(of).sum::<u64>();
    let given_up = count(|stage| stage.uploads_given_up_count);
    let left = count(|stage| stage.uploads_left_count);
    if given_up + left > 0 {
        let names_files = manifest.targets().any(schema::Target::has_collections);
        let what = match names_files {
            true => "objects of failed uploads that got no answer, removed",
            false => "multipart uploads of failed operations, aborted",
        };
        found.push(format!(
            "{what} after them in the time of none: {given_up}; left to the cleaning because that \
             failed: {left}"
        ));
    }
    for note in found {
        // Several stages may say the same.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn cleanup(cleanup: &schema::Cleanup) -> Option<CleanupReport> {
    let state = match cleanup.state {
        schema::CleanupState::Complete => CleanupState::Complete,
        schema::CleanupState::Kept => CleanupState::Kept,
        schema::CleanupState::Failed => CleanupState::Failed,
        schema::CleanupState::NotNeeded | schema::CleanupState::Pending => return None,
    };
    let took = cleanup.took_ns.map(Duration::from_nanos);
    let (removed, removed_files) = (cleanup.objects_removed_count, cleanup.files_removed_count);
    Some(CleanupReport { state, removed, removed_files, took })
}

/// Returns how reads were checked; `None` when nothing was read.
fn verification(
    manifest: &Manifest,
    record: &Record,
    analyzed: &[AnalyzedStage],
) -> Option<Verification> {
    let is_read = |kind: OpKind| matches!(kind, OpKind::Get | OpKind::Read | OpKind::Open);
    let (mut bytes, mut unverified, mut is_off, mut reads) = (0, 0, false, false);
    let (mut by_checksum, mut is_by_checksum) = (0, true);
    for of in analyzed {
        let entry = &manifest.stages[record.stages[of.stage].index];
        let mut of_stage = 0;
        let mut length_only = 0;
        for (row, analysis) in of.rows.iter().zip(&of.analysis.rows) {
            let how = row.jobs.iter().find_map(|job| entry.jobs[*job].verification);
            let Some(how) = how else { continue };
            let kinds = analysis.kinds.iter().filter(|kind| is_read(kind.kind));
            reads |= kinds.clone().next().is_some() || entry.files.is_none();
            let read: u64 = kinds.map(|kind| kind.figures.stage.bytes).sum();
            is_by_checksum &= how == schema::Verification::Checksum;
            is_off |= how == schema::Verification::Off;
            let unchecked = row.jobs.iter().filter_map(|job| {
                let job = &entry.jobs[*job];
                job.unverified_bytes.filter(|_| job.unchecked_count > 0)
            });
            let unchecked = match how {
                schema::Verification::LengthOnly => read,
                _ => unchecked.sum::<u64>().min(read),
            };
            length_only += unchecked;
            by_checksum += match how {
                schema::Verification::Checksum => read - unchecked,
                _ => 0,
            };
            of_stage += read;
        }
        let counted = entry.files.as_ref().and_then(|files| files.unverified_bytes);
        bytes += of_stage;
        // Of a ramp it has what no figure has.
        unverified += counted.unwrap_or(length_only).min(of_stage);
    }
    if !is_by_checksum {
        // Not every byte was compared with what the run knows of it.
        unverified += by_checksum;
    }
    let checked = bytes - unverified;
    let (mode, bytes, unverified_bytes) = match (is_off, unverified) {
        _ if is_by_checksum && reads && (checked > 0 || bytes == 0) => {
            (VerificationMode::Checksum, checked, unverified)
        }
        (true, _) => (VerificationMode::Off, bytes, 0),
        (false, 0) => (VerificationMode::EveryByte, bytes, 0),
        (false, _) if checked == 0 => (VerificationMode::LengthOnly, bytes, 0),
        (false, _) => (VerificationMode::Partial, checked, unverified),
    };
    (bytes > 0 || reads).then_some(Verification { mode, bytes, unverified_bytes })
}

fn usage(used: schema::ProcessUsage) -> ProcessUsage {
    ProcessUsage {
        user: Duration::from_nanos(used.user_ns),
        system: Duration::from_nanos(used.system_ns),
        context_switches: used.context_switches_count,
        faults_major: used.faults_major_count,
        faults_minor: used.faults_minor_count,
    }
}

fn loop_model(clients: &[ClientStage<'_>], index: usize, job: &schema::StageJob) -> LoopModel {
    let planned = |of: &ClientStage<'_>| match &of.planned?.1.jobs.get(index)?.pacing {
        JobPacing::Shared(Pacing::Capped { ops_per_sec }) => Some(*ops_per_sec),
        _ => None,
    };
    match job.loop_model {
        schema::LoopModel::Open => LoopModel::Open,
        schema::LoopModel::Closed => LoopModel::Closed,
        schema::LoopModel::Capped => {
            // Clients have a cap each.
            let rates: Option<f64> = clients.iter().map(planned).sum();
            LoopModel::Capped { rate: rates.filter(|rate| *rate > 0.0).map(OpRate) }
        }
    }
}

/// Returns a CPU time over that of all processors of the machine; `None` where there are several
/// machines.
fn cpu_share(manifest: &Manifest, cpu: Duration, took: Duration) -> Option<f64> {
    let is_alone = manifest.agents.is_empty() && manifest.merged.is_empty();
    let cores = manifest.machine.cores_count.filter(|_| is_alone)?;
    let all = took.as_secs_f64() * f64::from(cores);
    (all > 0.0).then(|| cpu.as_secs_f64() / all)
}

/// Returns the loop model; warp's is closed, and capped only in what it measures.
fn warp_loop_model(words: &[&str], stage: &RecordStage) -> LoopModel {
    let limit = words.iter().find_map(|word| word.strip_prefix("--rps-limit="));
    match limit.and_then(|limit| limit.parse::<f64>().ok()) {
        Some(rate) if rate > 0.0 && stage.kind == StageKind::Measure => {
            LoopModel::Capped { rate: Some(OpRate(rate)) }
        }
        _ => LoopModel::Closed,
    }
}
