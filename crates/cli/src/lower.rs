//! What a command line means: flags to what is asked for, refusals in the words of the flags.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{ConductError, input};
use plimsoll_dialects::warp::{Sizes, WarpBenchmark, WarpWorkload};
use plimsoll_driver::DriverError;
use plimsoll_engine::stop_time_min;
use plimsoll_model::{Bytes, ErrorClass, StageKind};
use plimsoll_workload::plan::spec::{ContentSpec, RangeSpec};
use plimsoll_workload::plan::{Plan, Size, Stage};
use plimsoll_workload::{DataFileSpec, StopRule};

use crate::args::requests::DataArgs;
use crate::args::s3::{CommonArgs, ExistingArgs, LargeSizeArgs, LoadArgs, MixedArgs, S3Command};
use crate::flags;
use crate::store::EmbeddedFull;

/// What a file or a directory begins with on the command line.
const FILE_SCHEME: &str = "file:";

/// Returns what a command asks for.
pub(crate) fn asked(command: &S3Command) -> Result<WarpWorkload> {
    let of = |benchmark, size: &str| of(benchmark, Some(size), command.common());
    let large = |benchmark, args: &LargeSizeArgs| {
        self::of(benchmark, args.obj_size.as_deref(), command.common())
    };
    Ok(match command {
        S3Command::Get(args) => WarpWorkload {
            objects: args.objects,
            versions: Some(args.versions),
            range: match (args.range, args.range_size) {
                (_, Some(size)) => Some(RangeSpec::Fixed(Size(size.0))),
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
    let objects = &common.objects;
    Ok(WarpWorkload {
        // Its memory asks for smaller defaults.
        is_embedded: common.store.host.is_none(),
        prefix: objects.prefix.clone(),
        no_prefix: objects.noprefix,
        size: size.map(sizes).transpose()?,
        random_size: objects.randsize,
        part_size: common.store.requests.part_size.map(|size| size.0),
        ..loaded(benchmark, &common.load, &common.data)?
    })
}

/// Returns a benchmark with that load and that content.
pub(crate) fn loaded(
    benchmark: WarpBenchmark,
    load: &LoadArgs,
    data: &DataArgs,
) -> Result<WarpWorkload> {
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
        content: content(data)?,
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
fn content(data: &DataArgs) -> Result<ContentSpec> {
    let Some(kind) = data.generator.as_deref() else { return Ok(ContentSpec::Random) };
    let Some(directory) = kind.strip_prefix(FILE_SCHEME) else {
        return match kind {
            "random" => Ok(ContentSpec::Random),
            "zero" => Ok(ContentSpec::Zero),
            "text" => Ok(ContentSpec::Text),
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
    Ok(ContentSpec::Files(files))
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
                    ("steady".to_owned(), "lower its window or raise the duration")
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

/// Puts the error of a run into the words of the flags of `plimsoll s3`; `asked` is what it runs.
pub(crate) fn in_our_words(error: anyhow::Error, asked: Option<&WarpWorkload>) -> anyhow::Error {
    match (error.downcast(), asked) {
        (Ok(error @ ConductError::NothingFound { .. }), _) => {
            anyhow!("--list-existing: {error} (--prefix)")
        }
        (Ok(ConductError::Plan(refused)), Some(asked)) => anyhow!(asked.in_flags(&refused)),
        // Of benchmarks only a search of the built-in store is simulated.
        (Ok(ConductError::NotSimulated(_)), Some(asked)) => anyhow!(
            "the built-in store does not do `{}` in virtual time; --real searches it over loopback",
            asked.benchmark.name()
        ),
        (Ok(error), _) => with_advice(error),
        (Err(other), Some(_)) if other.is::<EmbeddedFull>() => {
            anyhow!("{other} (--objects, --obj.size)")
        }
        (Err(other), _) => other,
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

/// Returns an error of a store with what a user can change about it.
pub(crate) fn in_words(error: DriverError) -> anyhow::Error {
    let told = flags::in_flags(&error.message) != error.message;
    anyhow!("{}{}", error.message, if told { "" } else { advice_for(error.class) })
}

/// What a user can change about a failure of that class. Which keys were refused their driver says.
fn advice_for(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Growing => {
            " (what can never be met is answered like this too: check --replication, --disk, \
             --data-center and --rack, and that servers have room for volumes)"
        }
        ErrorClass::Connect | ErrorClass::Reset if flags::has("master") => {
            " (check --master and --security)"
        }
        ErrorClass::Connect | ErrorClass::Reset => {
            " (check --host and --tls; without a port it is 80, or 443 with --tls)"
        }
        ErrorClass::Denied if flags::has("master") => " (check the keys of --security)",
        ErrorClass::NotFound if flags::has("master") => "",
        ErrorClass::Timeout if flags::has("master") => {
            " (a cluster that is only slow may need --op-timeout)"
        }
        ErrorClass::Timeout => " (check --host; a store that is only slow may need --op-timeout)",
        ErrorClass::NotFound => " (check --bucket)",
        ErrorClass::Throttled => " (lower --concurrent, or set --rps-limit or --retries)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use plimsoll_workload::ArrivalLaw;
    use plimsoll_workload::plan::spec::{
        Arrivals, ExistingOf, ExistingSet, JobSpec, ObjectSet, OpSpec, OpenSpec, PacingSpec,
        RateSpec, SetSpec, SizeSpec, WorkSpec, WorkStage,
    };
    use plimsoll_workload::plan::{Time, UntilSpec, WorkloadFile};

    use super::*;
    use crate::args::{Cli, Command};

    fn lowered(line: &str) -> Result<WorkloadFile> {
        let words = ["plimsoll", "s3"].into_iter().chain(line.split_whitespace());
        let Command::S3(command) = Cli::try_parse_from(words)?.command else { unreachable!() };
        Ok(WarpWorkload { is_embedded: false, ..asked(&command)? }.workload(1)?)
    }

    fn measured(file: &WorkloadFile) -> &WorkStage {
        file.work_stages().last().unwrap()
    }

    fn job(file: &WorkloadFile) -> &JobSpec {
        &measured(file).jobs[0]
    }

    fn set(file: &WorkloadFile) -> &SetSpec {
        let mut sets = file.sets.iter();
        let (Some((_, set)), None) = (sets.next(), sets.next()) else { panic!("{file:?}") };
        set
    }

    fn ops(file: &WorkloadFile) -> &[OpSpec] {
        let WorkSpec::Objects(ops) = &job(file).work else { panic!("{file:?}") };
        ops
    }

    #[test]
    fn defaults_are_those_of_warp() {
        let figures = |line| {
            let file = lowered(line).unwrap();
            let SetSpec::Objects(ObjectSet { count, size, .. }) = set(&file) else { panic!() };
            (*count, size.clone(), job(&file).workers, measured(&file).duration)
        };
        let five_minutes = Some(Time(std::time::Duration::from_secs(300)));
        let fixed = |size| Some(SizeSpec::Fixed(Size(size)));
        assert_eq!(figures("get"), (2_500, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("put"), (0, fixed(10 << 20), 20, five_minutes));
        assert_eq!(figures("delete"), (25_000, fixed(1_024), 20, five_minutes));
        assert_eq!(figures("list"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("stat"), (10_000, fixed(1_000), 20, five_minutes));
        assert_eq!(figures("mixed"), (2_500, fixed(10 << 20), 20, five_minutes));
        let delete = lowered("delete").unwrap();
        assert!(matches!(ops(&delete), [OpSpec::Delete(of)] if of.batch == 100));
        let list = lowered("list").unwrap();
        assert!(matches!(ops(&list), [OpSpec::List(of)] if of.page == 100));
        let mixed = lowered("mixed").unwrap();
        let [OpSpec::Get(get), OpSpec::Stat(stat), OpSpec::Put(put), OpSpec::Delete(delete)] =
            ops(&mixed)
        else {
            panic!("{mixed:?}")
        };
        let weights = [get.weight, stat.weight, put.weight, delete.weight];
        assert_eq!(weights, [45, 30, 15, 10]);
    }

    #[test]
    fn the_tutorial_tells_how_many_objects_its_first_run_writes() {
        let words = ["plimsoll", "s3", "get", "--obj.size", "64KiB"];
        let Command::S3(command) = Cli::parse_from(words).command else { unreachable!() };
        let first = WarpWorkload { is_embedded: true, ..asked(&command).unwrap() };
        let SetSpec::Objects(set) = set(&first.workload(1).unwrap()).clone() else { panic!() };
        let text = include_str!("../../../docs/tutorial/first-run.md");
        assert!(text.contains(&format!("The run writes {} objects, ", set.count)));
    }

    #[test]
    fn a_host_that_does_not_answer_is_told_with_the_port_that_was_taken() {
        let refused = DriverError::new(ErrorClass::Connect, "connection refused by h:80");
        let told = in_words(refused).to_string();
        assert!(told.ends_with("without a port it is 80, or 443 with --tls)"), "{told}");
    }

    #[test]
    fn refusals_name_the_flag() {
        for (line, start) in [
            ("get --obj.size 0", "--obj.size"),
            ("get --obj.size 9,5", "--obj.size"),
            ("get --objects 19", "--objects: set `objects` has 19 members, too few for 20 workers"),
            ("get --range-size 0", "--range-size"),
            ("get --duration 0", "--duration"),
            ("get --concurrent 0", "--concurrent"),
            (
                "get --rps-limit=-1/s",
                "error: invalid value '-1/s' for '--rps-limit <RATE>': `-1/s`: a rate must be",
            ),
            (
                "get --rps-limit 9",
                "error: invalid value '9' for '--rps-limit <RATE>': `9` is not a rate such as 1000/s; write `9/s`",
            ),
            ("get --rate 0/s", "--rate: `0/s`: a rate must be above 0"),
            ("get --rate -5/s", "--rate: `-5/s`: a rate must be above 0"),
            ("get --rate 1000", "--rate: `1000` is not a rate such as 1000/s; write `1000/s`"),
            ("get --rate 9/s --arrivals gauss", "--arrivals: `gauss` is not an arrival law"),
            ("get --rate 9/s --max-in-flight 0", "--max-in-flight: 0 is out of range: 1 to 100000"),
            ("get --rate 9/s --rps-limit 9/s", "--rate is a schedule and --rps-limit a cap"),
            ("get --arrivals poisson", "--arrivals does nothing without --rate; add it"),
            ("get --max-in-flight 5", "--max-in-flight does nothing without --rate; add it"),
            ("get --autoterm --autoterm.dur 0", "--autoterm.dur: must be above 0"),
            ("get --autoterm --autoterm.pct 0", "--autoterm.pct: must be above 0"),
            ("get --autoterm.dur 5s", "--autoterm.dur does nothing without --autoterm"),
            ("get --autoterm.pct 5", "--autoterm.pct does nothing without --autoterm"),
            ("get --until ci(foo)<=5%", "--until: `ci(foo)<=5%`: unknown metric `foo`"),
            ("stat --until ci(throughput)<=5%", "--until: `ci(throughput)<=5%`: no content"),
            ("delete --objects 7999", "--objects: set `objects` has 7999 members, too few"),
            ("delete --batch 1001", "--batch"),
            ("list --max-keys 5001", "--max-keys"),
            ("mixed --put-distrib 5", "--delete-distrib"),
            ("mixed --pick sequential", "--pick: zipf and sequential are for operations"),
            ("get --objects 0", "--objects: must be at least 1"),
            (
                "get --versions 3 --list-existing",
                "--list-existing: versions are only known for the run's",
            ),
            ("get --data.compress 0.5", "--data.compress: 0.5 is out of range"),
            ("get --obj.generator zero --data.dedupe 2", "--data.dedupe: needs random content"),
            ("multipart --parts 10001", "--parts: must be 1 to 10000"),
            ("multipart-put --part.size 1MiB", "--part.size: part size 1MiB is below"),
            ("multipart-put --parts 3 --part.concurrent 4", "--part.concurrent: 4 is above"),
            ("zip --files 0", "--files: must be at least 1"),
            ("zip --files 70000", "--files: 70000 is out of range"),
            ("snowball --objs.per 1000 --compress --obj.size 1MiB", "--compress: archives"),
            ("fanout --copies 0", "--copies: 0 is out of range"),
            ("retention --hold 0s", "--hold: must be longer than 0s"),
        ] {
            let error = lowered(line).unwrap_err().to_string();
            assert!(error.starts_with(start), "{line}: {error}");
        }
    }

    #[test]
    fn a_rate_is_a_schedule() {
        let pacing = |line: &str| job(&lowered(line).unwrap()).pacing.clone();
        let open = |rate: &str, law, max_in_flight| {
            let rate = RateSpec::Rate(rate.parse().unwrap());
            PacingSpec::Open(OpenSpec { rate, arrivals: Arrivals(law), max_in_flight })
        };
        assert_eq!(pacing("get"), PacingSpec::Closed);
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(
                pacing(&format!("{command} --rate 1k/s")),
                open("1000/s", ArrivalLaw::Constant, 1_024)
            );
        }
        assert_eq!(
            pacing("get --rate 5/s --arrivals poisson --max-in-flight 7"),
            open("5/s", ArrivalLaw::Poisson, 7)
        );
    }

    #[test]
    fn stop_rules_have_the_defaults_of_warp() {
        let until = |line: &str| measured(&lowered(line).unwrap()).until.clone();
        assert_eq!(until("get"), []);
        let steady = |seconds, percent| {
            let window = std::time::Duration::from_secs(seconds);
            [UntilSpec::Steady { window, percent }]
        };
        for command in ["get", "put", "delete", "list", "stat", "mixed"] {
            assert_eq!(until(&format!("{command} --autoterm")), steady(15, 7.5));
        }
        assert_eq!(until("get --autoterm --autoterm.dur=5s --autoterm.pct=10"), steady(5, 10.0));
        let two = until("get --until ci(p99)<=5% --until ci(rate)<=1%");
        let texts: Vec<String> = two.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["ci(p99)<=5%", "ci(rate)<=1%"]);
    }

    #[test]
    fn a_rule_that_cannot_hold_in_time_is_warned_of() {
        let warnings = |line: &str| late_stop_rules(&lowered(line).unwrap().check().unwrap());
        assert!(warnings("get --autoterm --until ci(p99)<=5%").is_empty());
        let late = warnings("get --autoterm --until ci(p99)<=5% --duration 10s");
        assert!(
            late[0]
                .starts_with("the stop rule steady cannot end this run: it needs more than 53.6 s")
        );
        assert!(late[1].starts_with(
            "the stop rule ci(p99)<=5% cannot end this run: it needs more than 11.0 s"
        ));
    }

    #[test]
    fn existing_objects_are_not_uploaded() {
        let existing = |limit, recursive| {
            let existing = ExistingOf { limit, recursive, ..ExistingOf::below(String::new()) };
            SetSpec::Existing(ExistingSet { on: None, existing, touch: false })
        };
        let some = lowered("stat --list-existing --list-flat --objects 5").unwrap();
        assert_eq!(set(&some), &existing(Some(5), false));
        assert_eq!(some.stages.len(), 1);
        let all = lowered("get --list-existing").unwrap();
        assert_eq!(set(&all), &existing(None, true));
    }
}
