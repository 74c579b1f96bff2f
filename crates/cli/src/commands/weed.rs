//! `plimsoll weed`: a benchmark of SeaweedFS by its own protocol.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::{ConductError, Consent, RunTime};
use plimsoll_dialects::warp::{WarpBenchmark, WarpWorkload};
use plimsoll_workload::plan::spec::{RangeSpec, SeaweedTarget, TargetSpec, Targets};
use plimsoll_workload::plan::{InvalidField, Size, Time, WorkloadFile};

use crate::args::YES;
use crate::args::load_line::SearchArgs;
use crate::args::weed::{ClusterArgs, ListArgs, WeedCommand};
use crate::conducted::{self, Settings, fresh_seed};
use crate::environment::variable;
use crate::load_line::searched;
use crate::{lower, said};

/// Files that are read, and that are removed, where nothing is said.
const FILES: u64 = 10_000;
const FILES_REMOVED: u64 = 25_000;

/// Runs one `weed` command.
pub(crate) fn run(command: &WeedCommand) -> Result<ExitCode> {
    searching(command, None)
}

/// The same, or looks for its load line.
pub(crate) fn searching(command: &WeedCommand, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.load.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let mut asked = asked(command)?;
    if search.is_some() {
        // The search says when operations start, and has it itself.
        asked.max_in_flight = None;
    }
    let name = format!("weed-{}", name_of(command));
    let target = target(&common.cluster)?;
    check_filer(command, target.is_filer())?;
    let targets = Targets::One(TargetSpec::Seaweedfs(Box::new(target)));
    let file = WorkloadFile { name, targets, ..asked.workload(seed)? };
    let file = common.output.outages.added_to(file)?;
    let file = searched(file, search, common.load.max_in_flight)?;
    file.judge().map_err(|refused| in_flags(&refused, &asked))?;
    if common.explain {
        common.output.ui().result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let given = matches!(command, WeedCommand::Delete(args) if args.yes);
    let consent = Consent::by(YES, given);
    let settings = Settings {
        keeps_data: common.keep_data,
        ..Settings::plain(&common.output, consent).conducting(&common.load.conduct)
    };
    conducted::run(&file, &settings).map_err(|error| in_our_words(error, &asked))
}

fn name_of(command: &WeedCommand) -> &'static str {
    match command {
        WeedCommand::Write(_) => "write",
        WeedCommand::Read(_) => "read",
        WeedCommand::Delete(_) => "delete",
        WeedCommand::Stat(_) => "stat",
        WeedCommand::List(_) => "list",
        WeedCommand::Mixed(_) => "mixed",
    }
}

/// Returns what a command asks for: the same as the command of `plimsoll s3`, on other targets.
fn asked(command: &WeedCommand) -> Result<WarpWorkload> {
    let of = |benchmark| of(benchmark, command);
    Ok(match command {
        WeedCommand::Write(_) => of(WarpBenchmark::Put)?,
        WeedCommand::Read(args)
            if args.listed.list.is_some() && (args.range || args.range_size.is_some()) =>
        {
            bail!(
                "--range and --range-size: the sizes of listed files are unknown, so they are \
                read whole"
            )
        }
        WeedCommand::Read(args) => WarpWorkload {
            range: match (args.range, args.range_size) {
                (_, Some(size)) => Some(RangeSpec::Fixed(Size(size.0))),
                (true, None) => Some(RangeSpec::Random),
                (false, None) => None,
            },
            ..counted(of(WarpBenchmark::Get)?, args.objects, FILES, &args.listed)
        },
        WeedCommand::Delete(args) => WarpWorkload {
            batch: Some(args.batch),
            ..counted(of(WarpBenchmark::Delete)?, args.objects, FILES_REMOVED, &args.listed)
        },
        WeedCommand::Stat(args) => {
            counted(of(WarpBenchmark::Stat)?, args.objects, FILES, &args.listed)
        }
        WeedCommand::List(args) => WarpWorkload {
            objects: Some(args.objects),
            max_keys: Some(args.max_keys),
            ..of(WarpBenchmark::List)?
        },
        WeedCommand::Mixed(args) => {
            let weights =
                [args.get_distrib, args.stat_distrib, args.put_distrib, args.delete_distrib];
            WarpWorkload {
                objects: Some(args.objects),
                weights: Some(weights),
                ..of(WarpBenchmark::Mixed)?
            }
        }
    })
}

fn counted(
    asked: WarpWorkload,
    objects: Option<u64>,
    default: u64,
    listed: &ListArgs,
) -> WarpWorkload {
    let list = listed.list.as_ref().map(|path| path.display().to_string());
    let list_existing = list.is_some() || listed.list_existing;
    WarpWorkload {
        objects: if list_existing { objects } else { objects.or(Some(default)) },
        list_existing,
        list,
        ..asked
    }
}

/// Returns what all commands take.
fn of(benchmark: WarpBenchmark, command: &WeedCommand) -> Result<WarpWorkload> {
    let common = command.common();
    let asked = lower::loaded(benchmark, &common.load, &common.data)?;
    Ok(WarpWorkload {
        size: Some(lower::sizes(&common.obj_size)?),
        random_size: common.randsize,
        prefix: common.prefix.clone(),
        ..asked
    })
}

/// Tells whether it goes to filers. What is typed counts more than what the environment says.
fn goes_to_filer(args: &ClusterArgs) -> Result<bool> {
    let is_typed = [said::is_typed("--filer"), said::is_typed("--master")];
    match is_typed {
        [true, true] => bail!("--filer and --master: SeaweedFS is reached by one of them"),
        [true, false] => Ok(true),
        [false, true] => Ok(false),
        [false, false] if args.filer.is_some() && variable("PLIMSOLL_MASTER").is_some() => bail!(
            "PLIMSOLL_FILER and PLIMSOLL_MASTER are both set; say which is meant: --filer or \
             --master"
        ),
        [false, false] => Ok(args.filer.is_some()),
    }
}

/// Refuses of masters what only filers know.
fn check_filer(command: &WeedCommand, is_filer: bool) -> Result<()> {
    let listed = match command {
        WeedCommand::Read(args) => Some(&args.listed),
        WeedCommand::Delete(args) => Some(&args.listed),
        WeedCommand::Stat(args) => Some(&args.listed),
        WeedCommand::Write(_) | WeedCommand::List(_) | WeedCommand::Mixed(_) => None,
    };
    if is_filer {
        return Ok(());
    }
    if listed.is_some_and(|listed| listed.list_existing) {
        bail!("--list-existing: only a filer lists files (--filer); name ids by --list");
    }
    if !command.common().prefix.is_empty() {
        bail!("--prefix: only with a filer files have paths (--filer)");
    }
    match command {
        WeedCommand::List(_) => bail!("only a filer lists files; name it (--filer)"),
        _ => Ok(()),
    }
}

fn target(args: &ClusterArgs) -> Result<SeaweedTarget> {
    let words = |text: &str| text.split(',').map(|word| word.trim().to_owned()).collect();
    let is_filer = goes_to_filer(args)?;
    let plain = match args.filer.as_ref().filter(|_| is_filer) {
        Some(filers) => SeaweedTarget::of_filers(words(filers)),
        None => SeaweedTarget::of(words(&args.master)),
    };
    let names_collection = !is_filer || said::is_typed("--collection");
    let collection = Some(args.collection.clone());
    Ok(SeaweedTarget {
        directory: args.directory.clone(),
        collection: collection.filter(|name| !name.is_empty() && names_collection),
        replication: args.replication.clone(),
        disk: args.disk.clone(),
        ttl: args.ttl.map(|ttl| Time(ttl.0)),
        fsync: args.fsync,
        data_center: args.data_center.clone(),
        rack: args.rack.clone(),
        assign: args.assign.into(),
        ids_per_assign: args.ids_per_assign,
        upload: args.upload.into(),
        grow: args.grow,
        create_bucket: args.create_bucket,
        drop_collection: args.drop_collection,
        security: args.security.as_ref().map(|path| path.display().to_string()),
        ..plain
    })
}

/// Puts the error of a run into the words of the flags.
fn in_our_words(error: anyhow::Error, asked: &WarpWorkload) -> anyhow::Error {
    match error.downcast() {
        Ok(ConductError::Plan(refused)) => in_flags(&refused, asked),
        Ok(error @ ConductError::NothingFound { .. }) => lower::in_our_words(error.into(), None),
        Ok(error) => lower::with_advice(error),
        Err(other) => other,
    }
}

/// Returns a refusal of the workload in the words of the flags.
fn in_flags(refused: &InvalidField, asked: &WarpWorkload) -> anyhow::Error {
    let path = refused.path.to_string();
    match path.strip_prefix("targets.seaweedfs.") {
        Some(field) => {
            let field = field.split('[').next().unwrap_or(field);
            anyhow!("--{}: {}", field.replace('_', "-"), refused.reason)
        }
        None if path.ends_with(".existing.list") => anyhow!("--list: {}", refused.reason),
        None if path.ends_with(".range") => anyhow!("--range: {}", refused.reason),
        None => anyhow!(asked.in_flags(refused)),
    }
}
