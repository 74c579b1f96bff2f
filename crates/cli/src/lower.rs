//! What a command line means: flags to the workload as written, refusals in the words of the flags.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{ConductError, input};
use plimsoll_dialects::warp::{Sizes, WarpBenchmark, WarpWorkload};
use plimsoll_driver::DriverError;
use plimsoll_engine::stop_time_min;
use plimsoll_model::{Bytes, ErrorClass, StageKind};
use plimsoll_workload::plan::{Plan, Stage, WorkloadFile};
use plimsoll_workload::{DataFileSpec, GeneratorSpec, RangeSpec, StopRule};

use crate::args::requests::DataArgs;
use crate::args::s3::{CommonArgs, ExistingArgs, LargeSizeArgs, MixedArgs, S3Command};
use crate::flags;

/// What a file or a directory begins with on the command line.
const FILE_SCHEME: &str = "file:";

/// Returns the workload that a command means. `is_embedded` tells whether it runs on the embedded
/// store, whose memory asks for smaller defaults.
pub(crate) fn workload(command: &S3Command, is_embedded: bool, seed: u64) -> Result<WorkloadFile> {
    Ok(WarpWorkload { is_embedded, ..asked(command)? }.workload(seed)?)
}

/// Returns what a command asks for.
fn asked(command: &S3Command) -> Result<WarpWorkload> {
    let of = |benchmark, size: &str| of(benchmark, Some(size), command.common());
    let large = |benchmark, args: &LargeSizeArgs| {
        self::of(benchmark, args.obj_size.as_deref(), command.common())
    };
    Ok(match command {
        S3Command::Get(args) => WarpWorkload {
            objects: args.objects,
            versions: Some(args.versions),
            range: match (args.range, args.range_size) {
                (_, Some(size)) => Some(RangeSpec::FixedBytes(size.0)),
                (true, None) => Some(RangeSpec::Random),
                (false, None) => None,
            },
            ..existing(large(WarpBenchmark::Get, &args.large)?, &args.existing)
        },
        S3Command::Put(args) => {
            WarpWorkload { post: args.post, ..large(WarpBenchmark::Put, &args.large)? }
        }
        S3Command::Delete(args) => WarpWorkload {
            objects: args.objects,
            batch: Some(args.batch),
            ..existing(of(WarpBenchmark::Delete, &args.obj_size)?, &args.existing)
        },
        S3Command::List(args) => WarpWorkload {
            objects: Some(args.objects),
            max_keys: Some(args.max_keys),
            versions: Some(args.versions),
            ..of(WarpBenchmark::List, &args.obj_size)?
        },
        S3Command::Stat(args) => WarpWorkload {
            objects: args.objects,
            versions: Some(args.versions),
            ..existing(of(WarpBenchmark::Stat, &args.obj_size)?, &args.existing)
        },
        S3Command::Mixed(args) => mixed(large(WarpBenchmark::Mixed, &args.large)?, args),
        S3Command::Versioned(args) => mixed(large(WarpBenchmark::Versioned, &args.large)?, args),
        S3Command::Append(args) => large(WarpBenchmark::Append, &args.large)?,
        special => special_asked(special)?,
    })
}

/// Returns what a command asks for that is more than operations on whole objects.
fn special_asked(command: &S3Command) -> Result<WarpWorkload> {
    let of = |benchmark, size: Option<&str>| of(benchmark, size, command.common());
    Ok(match command {
        S3Command::Retention(args) => WarpWorkload {
            objects: Some(args.objects),
            versions: Some(args.versions),
            hold: Some(args.hold.0),
            ..of(WarpBenchmark::Retention, Some(&args.obj_size))?
        },
        S3Command::Multipart(args) => {
            WarpWorkload { parts: Some(args.parts), ..of(WarpBenchmark::Multipart, None)? }
        }
        S3Command::MultipartPut(args) => WarpWorkload {
            parts: args.parts,
            parts_at_once: args.part_concurrent,
            ..of(WarpBenchmark::MultipartPut, None)?
        },
        S3Command::Zip(args) => WarpWorkload {
            objects: Some(args.files),
            ..of(WarpBenchmark::Zip, Some(&args.obj_size))?
        },
        S3Command::Snowball(args) => WarpWorkload {
            members: Some(args.objs_per),
            compress: args.compress,
            ..of(WarpBenchmark::Snowball, Some(&args.obj_size))?
        },
        S3Command::Fanout(args) => WarpWorkload {
            copies: Some(args.copies),
            ..of(WarpBenchmark::Fanout, Some(&args.obj_size))?
        },
        S3Command::Get(_)
        | S3Command::Put(_)
        | S3Command::Delete(_)
        | S3Command::List(_)
        | S3Command::Stat(_)
        | S3Command::Mixed(_)
        | S3Command::Versioned(_)
        | S3Command::Append(_) => unreachable!("these are operations on whole objects"),
    })
}

fn existing(asked: WarpWorkload, args: &ExistingArgs) -> WarpWorkload {
    let ExistingArgs { list_existing, list_flat } = *args;
    WarpWorkload { list_existing, list_flat, ..asked }
}

fn mixed(asked: WarpWorkload, args: &MixedArgs) -> WarpWorkload {
    let weights = [args.get_distrib, args.stat_distrib, args.put_distrib, args.delete_distrib];
    WarpWorkload { objects: args.objects, weights: Some(weights), ..asked }
}

/// Returns what all commands take, with objects of that size.
fn of(benchmark: WarpBenchmark, size: Option<&str>, common: &CommonArgs) -> Result<WarpWorkload> {
    let (load, objects, data) = (&common.load, &common.objects, &common.data);
    Ok(WarpWorkload {
        benchmark,
        concurrent: Some(load.concurrent),
        duration: load.duration.map(|duration| duration.0),
        autoterm: load.autoterm,
        autoterm_window: load.autoterm_dur.map(|window| window.0),
        autoterm_percent: load.autoterm_pct.map(|percent| percent.0),
        until: load.until.clone(),
        rps_limit: load.rps_limit,
        rate: load.rate.clone(),
        arrivals: load.arrivals.clone(),
        max_in_flight: load.max_in_flight,
        no_verify: load.no_verify,
        prefix: objects.prefix.clone(),
        no_prefix: objects.noprefix,
        size: size.map(sizes).transpose()?,
        random_size: objects.randsize,
        part_size: common.store.requests.part_size.map(|size| size.0),
        generator: generator(data)?,
        compress_ratio: data.data_compress,
        dedupe_ratio: data.data_dedupe,
        pick: data.pick.clone(),
        ..WarpWorkload::default()
    })
}

/// Returns how large objects are, as it is written or as the file says that is named.
pub(crate) fn sizes(text: &str) -> Result<Sizes> {
    let Some(path) = text.strip_prefix(FILE_SCHEME) else {
        return Ok(Sizes::Written(text.to_owned()));
    };
    let text = input::read_given(Path::new(path))
        .with_context(|| format!("--obj.size: cannot read {path}"))?;
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty());
    let size = |word: &str| {
        let bytes = Bytes::parse(word).with_context(|| format!("--obj.size: {path}: {word}"));
        bytes.map(|bytes| bytes.0)
    };
    Ok(Sizes::List(words.map(size).collect::<Result<_>>()?))
}

/// Returns what `--obj.generator` asks for.
fn generator(data: &DataArgs) -> Result<GeneratorSpec> {
    let Some(kind) = data.generator.as_deref() else { return Ok(GeneratorSpec::Random) };
    let Some(directory) = kind.strip_prefix(FILE_SCHEME) else {
        return match kind {
            "random" => Ok(GeneratorSpec::Random),
            "zero" => Ok(GeneratorSpec::Zero),
            "text" => Ok(GeneratorSpec::Text),
            _ => bail!("--obj.generator {kind}: choose random, zero, text or file:DIR"),
        };
    };
    let named = || format!("--obj.generator: cannot read {directory}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(named)? {
        let entry = entry.with_context(named)?;
        let facts = entry.metadata().with_context(named)?;
        if facts.is_file() && facts.len() > 0 {
            let path = entry.path().display().to_string();
            files.push(DataFileSpec { path, bytes: facts.len() });
        }
    }
    if files.is_empty() {
        bail!("--obj.generator: {directory} holds no file with content");
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(GeneratorSpec::Files(files))
}

/// Returns a warning for each stop rule that cannot hold before the time is up.
pub(crate) fn late_stop_rules(plan: &Plan) -> Vec<String> {
    let is_measured = |stage: &&Stage| stage.kind == StageKind::Measure;
    let is_alone = plan.stages.iter().filter(is_measured).count() == 1;
    let mut warnings = Vec::new();
    for stage in plan.stages.iter().filter(is_measured) {
        let Some(time) = stage.duration_max() else { continue };
        for rule in stage.stop_rules.iter().filter(|rule| stop_time_min(rule) >= time) {
            let (what, advice) = match rule {
                StopRule::Steady { .. } => {
                    ("`steady`".to_owned(), "lower its window or raise the duration")
                }
                StopRule::Until(figures) => {
                    let figures: Vec<String> = figures.iter().map(ToString::to_string).collect();
                    (figures.join(" and "), "raise the duration")
                }
            };
            let of = if is_alone { "this run".to_owned() } else { format!("stage {}", stage.name) };
            warnings.push(format!(
                "the stop rule {what} cannot end {of}: it needs more than {:.1} s of measuring, and there are \
                 {:.1} s; {advice}",
                stop_time_min(rule).as_secs_f64(),
                time.as_secs_f64(),
            ));
        }
    }
    warnings
}

/// Puts the error of a run into the words of the flags of `plimsoll s3`.
pub(crate) fn in_our_words(error: anyhow::Error) -> anyhow::Error {
    match error.downcast() {
        Ok(error) => in_our_flags(error),
        Err(other) => other,
    }
}

/// Adds to the error of a run what a user can change about it.
pub(crate) fn with_advice(error: ConductError) -> anyhow::Error {
    match error {
        ConductError::Target(error) => in_words(error),
        ConductError::Stage { class, .. } => anyhow!("{error}{}", advice_for(class)),
        other => other.into(),
    }
}

fn in_our_flags(error: ConductError) -> anyhow::Error {
    /// Fields that only a look at the store can refuse, and their flags.
    const FLAGS: [(&str, &str); 4] = [
        ("sets.objects.existing", "--list-existing"),
        ("stages[].jobs[].workers", "--concurrent"),
        ("sets.objects.count", "--objects"),
        ("sets.objects.size", "--obj.size"),
    ];
    match error {
        ConductError::NothingFound { .. } => anyhow!("--list-existing: {error} (--prefix)"),
        ConductError::Plan(refused) => {
            let of_field = |(field, _): &&(&str, &str)| refused.path.is_like(field);
            match FLAGS.iter().find(of_field) {
                Some((_, flag)) => anyhow!("{flag}: {}", refused.reason),
                None => ConductError::Plan(refused).into(),
            }
        }
        other => with_advice(other),
    }
}

/// Returns an error of a store with what a user can change about it.
pub(crate) fn in_words(error: DriverError) -> anyhow::Error {
    let told = flags::in_flags(&error.message) != error.message;
    anyhow!("{}{}", error.message, if told { "" } else { advice_for(error.class) })
}

/// What a user can change about a failure of that class.
fn advice_for(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Connect | ErrorClass::Reset => " (check --host and --tls)",
        ErrorClass::Timeout => " (check --host; a store that is only slow may need --op-timeout)",
        ErrorClass::Denied => " (check --access-key, --secret-key and what they may do)",
        ErrorClass::NotFound => " (check --bucket)",
        ErrorClass::Throttled => " (lower --concurrent, or set --rps-limit or --retries)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use plimsoll_workload::{ExistingSpec, PacingSpec, SizeSpec, SteadySpec, WorkloadSpec};

    use super::*;
    use crate::args::{Cli, Command};

    fn lowered(line: &str) -> Result<WorkloadSpec> {
        let words = ["plimsoll", "s3"].into_iter().chain(line.split_whitespace());
        let Command::S3(command) = Cli::try_parse_from(words)?.command else { unreachable!() };
        Ok(asked(&command)?.spec(1)?)
    }

    #[test]
    fn defaults_are_those_of_warp() {
        let figures = |line| {
            let spec = lowered(line).unwrap();
            (spec.objects.count, spec.objects.size, spec.concurrency, spec.measure.duration_ns)
        };
        let five_minutes = 300_000_000_000;
        let fixed = SizeSpec::FixedBytes;
        assert_eq!(figures("get"), (2_500, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("put"), (0, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("delete"), (25_000, fixed(1_024), 20, five_minutes));
        assert_eq!(figures("list"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("stat"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("mixed"), (2_500, fixed(10 << 20), 20, five_minutes));
        assert_eq!(lowered("delete").unwrap().measure.delete_batch, Some(100));
        assert_eq!(lowered("list").unwrap().measure.list_page_size, Some(100));
        let weights: Vec<_> =
            lowered("mixed").unwrap().measure.operations.iter().map(|op| op.weight).collect();
        assert_eq!(weights, [45, 30, 15, 10]);
    }

    #[test]
    fn refusals_name_the_flag() {
        for (line, start) in [
            ("get --obj.size 0", "--obj.size"),
            ("get --obj.size 9,5", "--obj.size"),
            ("get --objects 19", "--objects: 19 objects are too few for 20 workers"),
            ("get --range-size 0", "--range-size"),
            ("get --duration 0", "--duration"),
            ("get --concurrent 0", "--concurrent"),
            ("get --rps-limit=-1", "--rps-limit"),
            ("get --rate 0/s", "--rate: `0/s`: a rate must be above 0"),
            ("get --rate -5/s", "--rate: `-5/s`: a rate must be above 0"),
            ("get --rate 1000", "--rate: `1000` is no rate such as 1000/s"),
            ("get --rate 9/s --arrivals gauss", "--arrivals: `gauss` is no law of arrivals"),
            ("get --rate 9/s --max-in-flight 0", "--max-in-flight: must be 1 to 100000"),
            ("get --rate 9/s --rps-limit 9", "--rate is a schedule and --rps-limit a cap"),
            ("get --arrivals poisson", "--arrivals does nothing without --rate; add it"),
            ("get --max-in-flight 5", "--max-in-flight does nothing without --rate; add it"),
            ("get --autoterm --autoterm.dur 0", "--autoterm.dur: must be above 0"),
            ("get --autoterm --autoterm.pct 0", "--autoterm.pct: must be above 0"),
            ("get --autoterm.dur 5s", "--autoterm.dur does nothing without --autoterm"),
            ("get --autoterm.pct 5", "--autoterm.pct does nothing without --autoterm"),
            ("get --until ci(foo)<=5%", "--until: `ci(foo)<=5%`: there is no metric `foo`"),
            ("stat --until ci(throughput)<=5%", "--until: `ci(throughput)<=5%`: no content"),
            ("delete --objects 7999", "--objects: 7999 objects are too few"),
            ("delete --batch 1001", "--batch"),
            ("list --max-keys 5001", "--max-keys"),
            ("mixed --put-distrib 5", "--delete-distrib"),
        ] {
            let error = lowered(line).unwrap_err().to_string();
            assert!(error.starts_with(start), "{line}: {error}");
        }
    }

    #[test]
    fn a_rate_is_a_schedule() {
        assert_eq!(lowered("get").unwrap().pacing, PacingSpec::Closed);
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(
                lowered(&format!("{command} --rate 1k/s")).unwrap().pacing,
                PacingSpec::Open {
                    rate: "1k/s".to_owned(),
                    arrivals: "constant".to_owned(),
                    max_in_flight: 1_024,
                }
            );
        }
        assert_eq!(
            lowered("get --rate 5/s --arrivals poisson --max-in-flight 7").unwrap().pacing,
            PacingSpec::Open {
                rate: "5/s".to_owned(),
                arrivals: "poisson".to_owned(),
                max_in_flight: 7,
            }
        );
    }

    #[test]
    fn stop_rules_have_the_defaults_of_warp() {
        assert_eq!(lowered("get").unwrap().measure.steady, None);
        let steady = |line: &str| lowered(line).unwrap().measure.steady.unwrap();
        let defaults = SteadySpec { window_ns: 15_000_000_000, percent: 7.5 };
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(steady(&format!("{command} --autoterm")), defaults);
        }
        let asked = SteadySpec { window_ns: 5_000_000_000, percent: 10.0 };
        assert_eq!(steady("get --autoterm --autoterm.dur=5s --autoterm.pct=10"), asked);
        let two = lowered("get --until ci(p99)<=5% --until ci(rate)<=1%").unwrap();
        assert_eq!(two.measure.until, ["ci(p99)<=5%", "ci(rate)<=1%"]);
    }

    #[test]
    fn a_rule_that_cannot_hold_in_time_is_warned_of() {
        let warnings = |line: &str| {
            let file = WorkloadFile::try_from(&lowered(line).unwrap()).unwrap();
            late_stop_rules(&file.check().unwrap())
        };
        assert!(warnings("get --autoterm --until ci(p99)<=5%").is_empty());
        let late = warnings("get --autoterm --until ci(p99)<=5% --duration 10s");
        assert!(late[0].starts_with(
            "the stop rule `steady` (--autoterm) cannot end this run: it needs more than 53.6 s"
        ));
        assert!(late[1].starts_with(
            "the stop rule `until` (--until) cannot end this run: it needs more than 11.0 s"
        ));
    }

    #[test]
    fn existing_objects_are_not_uploaded() {
        let spec = lowered("stat --list-existing --list-flat --objects 5").unwrap();
        assert_eq!(
            spec.objects.existing,
            Some(ExistingSpec { limit: Some(5), recursive: false, destroys: false })
        );
        assert_eq!(spec.objects.count, 0);
        let all = lowered("get --list-existing").unwrap();
        assert_eq!(
            all.objects.existing,
            Some(ExistingSpec { limit: None, recursive: true, destroys: false })
        );
    }
}
