//! What a command line means: flags to the workload as written, refusals in the words of the flags.

use anyhow::{Context, Result, bail};
use plimsoll_engine::stop_time_min;
use plimsoll_workload::{
    ArrivalLaw, ExistingSpec, InvalidWorkload, KeysSpec, MAX_IN_FLIGHT_DEFAULT, MeasureSpec,
    ObjectsSpec, OpWeightSpec, PacingSpec, RangeSpec, SPEC_SCHEMA, SizeDist, SizeSpec, SteadySpec,
    StopRule, Workload, WorkloadSpec,
};

use crate::args::s3::{CommonArgs, ExistingArgs, LoadArgs, S3Command};

const DURATION_DEFAULT: std::time::Duration = std::time::Duration::from_secs(300);
const DURATION_EMBEDDED: std::time::Duration = std::time::Duration::from_secs(10);

/// warp's defaults of `--autoterm.dur` and `--autoterm.pct`.
const STEADY_WINDOW: std::time::Duration = std::time::Duration::from_secs(15);
const STEADY_PERCENT: f64 = 7.5;

/// What a command asks for besides what all commands share.
struct Job<'a> {
    name: &'static str,
    operations: Vec<(&'static str, u32)>,
    objects: u64,
    size: &'a str,
    existing: Option<ExistingSpec>,
    range: Option<RangeSpec>,
    delete_batch: Option<u32>,
    list_page_size: Option<u32>,
}

impl<'a> Job<'a> {
    fn new(name: &'static str, operation: &'static str, objects: u64, size: &'a str) -> Self {
        Self {
            name,
            operations: vec![(operation, 1)],
            objects,
            size,
            existing: None,
            range: None,
            delete_batch: None,
            list_page_size: None,
        }
    }

    fn existing(mut self, args: &ExistingArgs, limit: Option<u64>) -> Self {
        if args.list_existing {
            let limit = limit.filter(|limit| *limit > 0);
            self.existing = Some(ExistingSpec { limit, recursive: !args.list_flat });
            self.objects = 0;
        }
        self
    }
}

/// Returns the workload that a command means. `embedded` tells whether it runs on the embedded
/// store, whose memory asks for smaller defaults.
pub(crate) fn workload(command: &S3Command, embedded: bool, seed: u64) -> Result<WorkloadSpec> {
    let large_objects = if embedded { 500 } else { 2_500 };
    let large_size = if embedded { "1MiB" } else { "10MiB" };
    let job = match command {
        S3Command::Get(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            let mut job = Job::new("s3-get", "GET", args.objects.unwrap_or(large_objects), size);
            job.range = match (args.range, args.range_size) {
                (_, Some(size)) => Some(RangeSpec::FixedBytes(size.0)),
                (true, None) => Some(RangeSpec::Random),
                (false, None) => None,
            };
            job.existing(&args.existing, args.objects)
        }
        S3Command::Put(args) => {
            Job::new("s3-put", "PUT", 0, args.large.obj_size.as_deref().unwrap_or(large_size))
        }
        S3Command::Delete(args) => {
            if args.existing.list_existing && !args.yes {
                bail!(
                    "delete --list-existing removes objects that this run did not write; add --yes"
                );
            }
            let objects = args.objects.unwrap_or(25_000);
            let mut job = Job::new("s3-delete", "DELETE", objects, &args.obj_size);
            job.delete_batch = Some(args.batch);
            job.existing(&args.existing, args.objects)
        }
        S3Command::List(args) => {
            let mut job = Job::new("s3-list", "LIST", args.objects, &args.obj_size);
            job.list_page_size = Some(args.max_keys);
            job
        }
        S3Command::Stat(args) => {
            let objects = args.objects.unwrap_or(10_000);
            Job::new("s3-stat", "STAT", objects, &args.obj_size)
                .existing(&args.existing, args.objects)
        }
        S3Command::Mixed(args) => {
            let size = args.large.obj_size.as_deref().unwrap_or(large_size);
            let mut job = Job::new("s3-mixed", "GET", args.objects.unwrap_or(large_objects), size);
            job.operations = vec![
                ("GET", args.get_distrib),
                ("STAT", args.stat_distrib),
                ("PUT", args.put_distrib),
                ("DELETE", args.delete_distrib),
            ];
            job
        }
    };
    spec(job, command.common(), embedded, seed)
}

fn spec(job: Job<'_>, common: &CommonArgs, embedded: bool, seed: u64) -> Result<WorkloadSpec> {
    let sizes = SizeDist::parse(job.size, common.objects.randsize).context("--obj.size")?;
    let default = if embedded { DURATION_EMBEDDED } else { DURATION_DEFAULT };
    let duration = common.load.duration.map_or(default, |duration| duration.0);
    let spec = WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: job.name.to_owned(),
        seed,
        concurrency: common.load.concurrent,
        keys: KeysSpec {
            prefix: common.objects.prefix.clone(),
            per_worker: !common.objects.noprefix,
        },
        objects: ObjectsSpec {
            count: job.objects,
            size: SizeSpec::from(&sizes),
            existing: job.existing,
        },
        measure: MeasureSpec {
            operations: job
                .operations
                .into_iter()
                .map(|(op, weight)| OpWeightSpec { op: op.to_owned(), weight })
                .collect(),
            range: job.range,
            overwrite: false,
            delete_batch: job.delete_batch,
            list_page_size: job.list_page_size,
            duration_ns: u64::try_from(duration.as_nanos()).context("--duration is too long")?,
            steady: steady(&common.load)?,
            until: common.load.until.clone(),
        },
        pacing: pacing(&common.load)?,
        verify: !common.load.no_verify,
    };
    spec.validate("check", None).map_err(in_flags)?;
    Ok(spec)
}

/// Returns what `--rate` and `--rps-limit` ask for.
fn pacing(load: &LoadArgs) -> Result<PacingSpec> {
    let Some(rate) = load.rate.clone() else {
        let given = [
            ("--arrivals", load.arrivals.is_some()),
            ("--max-in-flight", load.max_in_flight.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!("{flag} does nothing without --rate; add it");
        }
        return Ok(match load.rps_limit {
            0.0 => PacingSpec::Closed,
            ops_per_sec => PacingSpec::Capped { ops_per_sec },
        });
    };
    if load.rps_limit != 0.0 {
        bail!("--rate is a schedule and --rps-limit a cap on a closed loop; give one of them");
    }
    Ok(PacingSpec::Open {
        rate,
        arrivals: load.arrivals.clone().unwrap_or_else(|| ArrivalLaw::Constant.to_string()),
        max_in_flight: load.max_in_flight.unwrap_or(MAX_IN_FLIGHT_DEFAULT),
    })
}

/// Returns what `--autoterm` asks for.
fn steady(load: &LoadArgs) -> Result<Option<SteadySpec>> {
    let (window, percent) = (load.autoterm_dur, load.autoterm_pct);
    let given = [("--autoterm.dur", window.is_some()), ("--autoterm.pct", percent.is_some())];
    if !load.autoterm {
        return match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => bail!("{flag} does nothing without --autoterm; add it"),
            None => Ok(None),
        };
    }
    let window = window.map_or(STEADY_WINDOW, |window| window.0);
    Ok(Some(SteadySpec {
        window_ns: u64::try_from(window.as_nanos()).context("--autoterm.dur is too long")?,
        percent: percent.map_or(STEADY_PERCENT, |percent| percent.0),
    }))
}

/// Returns a warning for each stop rule that cannot hold before the time is up.
pub(crate) fn late_stop_rules(workload: &Workload) -> Vec<String> {
    let late = |rule: &&StopRule| stop_time_min(rule) >= workload.duration;
    let warning = |rule: &StopRule| {
        let (flag, advice) = match rule {
            StopRule::Steady { .. } => ("--autoterm", "lower --autoterm.dur or raise --duration"),
            StopRule::Until(_) => ("--until", "raise --duration"),
        };
        let (least, time) = (stop_time_min(rule), workload.duration);
        format!(
            "{flag} cannot end this run: it needs more than {:.1} s of measuring, and there are \
             {:.1} s; {advice}",
            least.as_secs_f64(),
            time.as_secs_f64(),
        )
    };
    workload.stop_rules.iter().filter(late).map(warning).collect()
}

/// Puts a refusal of the spec into the words of the flags.
pub(crate) fn in_flags(refused: InvalidWorkload) -> anyhow::Error {
    let flag = match &*refused.field {
        "concurrency" => "--concurrent",
        "objects.size" => "--obj.size",
        "objects.count" => "--objects",
        "objects.existing" => "--list-existing",
        "measure.operations" => "the --*-distrib flags",
        "measure.operations.delete" => "--delete-distrib",
        "measure.delete_batch" => "--batch",
        "measure.list_page_size" => "--max-keys",
        "measure.range" => "--range-size",
        "measure.duration_ns" => "--duration",
        "measure.steady.window_ns" => "--autoterm.dur",
        "measure.steady.percent" => "--autoterm.pct",
        "measure.until" => "--until",
        "pacing.capped" => "--rps-limit",
        "pacing.open.rate" => "--rate",
        "pacing.open.arrivals" => "--arrivals",
        "pacing.open.max_in_flight" => "--max-in-flight",
        field => field,
    };
    anyhow::anyhow!("{flag}: {}", refused.reason)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn lowered(line: &str) -> Result<WorkloadSpec> {
        let words = ["plimsoll", "s3"].into_iter().chain(line.split_whitespace());
        let Command::S3(command) = Cli::try_parse_from(words)?.command else { unreachable!() };
        workload(&command, false, 1)
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
            ("delete --list-existing", "delete --list-existing removes objects"),
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
        let warnings =
            |line: &str| late_stop_rules(&lowered(line).unwrap().validate("r", None).unwrap());
        assert!(warnings("get --autoterm --until ci(p99)<=5%").is_empty());
        let late = warnings("get --autoterm --until ci(p99)<=5% --duration 10s");
        assert!(late[0].starts_with("--autoterm cannot end this run: it needs more than 53.6 s"));
        assert!(late[1].starts_with("--until cannot end this run: it needs more than 11.0 s"));
    }

    #[test]
    fn existing_objects_are_not_uploaded() {
        let spec = lowered("stat --list-existing --list-flat --objects 5").unwrap();
        assert_eq!(spec.objects.existing, Some(ExistingSpec { limit: Some(5), recursive: false }));
        assert_eq!(spec.objects.count, 0);
        let all = lowered("get --list-existing").unwrap();
        assert_eq!(all.objects.existing, Some(ExistingSpec { limit: None, recursive: true }));
    }
}
