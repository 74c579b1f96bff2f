//! What `plimsoll loadline` makes of a workload: the stage that is a result becomes a search.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_workload::plan::spec::{
    OracleTarget, PacingSpec, QueueSpec, SearchSpec, SearchStage, StageSpec, TargetSpec, Targets,
    WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{InvalidField, Percent, SloSpec, Time, WorkloadFile};

use crate::args::load_line::{BENCHMARKS, LOADLINE, SearchArgs};
use crate::args::s3::StoreArgs;
use crate::said;

/// What is to be kept where nobody says.
const SLO: [&str; 2] = ["p99<=20ms", "errors<=0.1%"];
/// What stands for a benchmark where none is named, and how it is where no host is either.
const BENCHMARK: [&str; 2] = ["s3", "get"];
const SMALL: [(&str, &str); 4] =
    [("--obj.size", "4KiB"), ("--objects", "1000"), ("--budget", "45s"), ("--slo", "p99<=10ms")];
/// The store where none is named. One that answers as fast as it can would only be limited by the
/// machine that it shares with the client; of this one the line is known.
const QUEUE: QueueSpec = QueueSpec { servers: 4, time: Time(Duration::from_millis(1)) };

/// Returns the words of a command line with the benchmark that `loadline` means without one.
pub(crate) fn with_benchmark(
    words: impl IntoIterator<Item = OsString>,
    has_host: bool,
) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    let names_one = |word: &OsString| BENCHMARKS.iter().any(|name| word == name);
    let asks_help = |word: &OsString| ["-h", "--help", "help"].iter().any(|help| word == help);
    let is_bare = words.get(1).is_some_and(|word| word == LOADLINE)
        && !words[2..].iter().any(|word| names_one(word) || asks_help(word));
    if !is_bare {
        return words;
    }
    let is_given = |flag: &str| {
        let is_flag = |word: &OsString| {
            let rest = word.to_str().and_then(|word| word.strip_prefix(flag));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        words[2..].iter().any(is_flag)
    };
    let is_small = !has_host && !is_given("--host");
    let small = SMALL.iter().filter(|(flag, _)| is_small && !is_given(flag));
    let small = small.flat_map(|(flag, value)| [OsString::from(flag), value.into()]);
    let (before, after) = words.split_at(2);
    let benchmark = BENCHMARK.map(OsString::from);
    before.iter().cloned().chain(benchmark).chain(small).chain(after.iter().cloned()).collect()
}

/// Returns the same for a benchmark of objects; without a store it is a queue.
pub(crate) fn searched_on(
    store: &StoreArgs,
    file: WorkloadFile,
    search: Option<&SearchArgs>,
    max_in_flight: Option<u32>,
) -> Result<WorkloadFile> {
    let mut file = searched(file, search, max_in_flight)?;
    if search.is_some() && store.host.is_none() {
        let queue = OracleTarget { queue: Some(QUEUE), ..OracleTarget::default() };
        file.targets = Targets::One(TargetSpec::Oracle(queue));
    }
    Ok(file)
}

/// Returns a workload whose stage that is a result is a search; without a search it is as it was.
/// `max_in_flight` is how many operations may be under way, where a flag said so.
pub(crate) fn searched(
    mut file: WorkloadFile,
    search: Option<&SearchArgs>,
    max_in_flight: Option<u32>,
) -> Result<WorkloadFile> {
    let Some(args) = search else { return Ok(file) };
    refuse_ends()?;
    if file.stages.iter().any(|stage| matches!(stage, StageSpec::Search(_))) {
        bail!("{} already contains a search: use `plimsoll run`", file.name);
    }
    let reads_back =
        |stage: &WorkStage| stage.jobs.iter().any(|job| matches!(job.work, WorkSpec::ReadBack(_)));
    if file.work_stages().any(reads_back) {
        bail!("--verify-acked: a search writes the same objects in each probe; leave it out");
    }
    let is_result = |stage: &WorkStage| !stage.prepares && !stage.jobs.is_empty();
    let results: Vec<String> =
        file.work_stages().filter(|stage| is_result(stage)).map(named).collect();
    let name = match (&args.of_stage, &results[..]) {
        (Some(name), _) if results.contains(name) => name.clone(),
        (Some(name), _) => bail!("--stage {name}: there are {}", listed(&results)),
        (None, [name]) => name.clone(),
        (None, []) => bail!("no stage of {} is measured, so there is nothing to search", file.name),
        (None, _) => bail!("--stage: name the stage to probe, one of {}", listed(&results)),
    };
    let stages = std::mem::take(&mut file.stages);
    for spec in stages {
        match spec {
            StageSpec::Jobs(stage) if !is_result(&stage) => {
                file.stages.push(StageSpec::Jobs(stage));
            }
            StageSpec::Jobs(stage) if named(&stage) == name => {
                let search = search_of(stage, args, max_in_flight)?;
                file.stages
                    .push(StageSpec::Search(SearchStage { name: Some(name.clone()), search }));
            }
            // Another result: it would take time, and is not what was asked for.
            StageSpec::Jobs(_) => {}
            StageSpec::Repeat(_) | StageSpec::Search(_) => bail!(
                "{}: stages that are repeated cannot be probed by this command; write the search \
                 into the file (docs/loadline.md)",
                file.name
            ),
        }
    }
    match file.judge().err().and_then(|refused| in_flags(&refused)) {
        Some(refused) => Err(refused),
        None => Ok(file),
    }
}

/// Refuses flags that say how long a probe lasts or when the search ends.
fn refuse_ends() -> Result<()> {
    let ends = ["--duration", "--autoterm", "--until", "--ops", "--bytes"];
    match ends.into_iter().find(|flag| said::is_typed(flag)) {
        Some(flag) => bail!(
            "{flag}: the search says how long its probes last, and ends by --budget and \
             --precision; leave it out"
        ),
        None => Ok(()),
    }
}

/// Returns a refusal of what a search is made of in the words of its flags; of anything else none,
/// as the benchmark has its own words for that.
fn in_flags(refused: &InvalidField) -> Option<anyhow::Error> {
    const FLAGS: [(&str, &str); 5] = [
        (".search.budget", "--budget"),
        (".search.max_in_flight", "--max-in-flight"),
        (".search.precision", "--precision"),
        (".search.rate", "--rates"),
        (".search.slo", "--slo"),
    ];
    let path = refused.path.to_string();
    let (_, flag) = FLAGS.iter().find(|(field, _)| path.ends_with(field))?;
    Some(anyhow!("{flag}: {}", refused.reason))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn named(stage: &WorkStage) -> String {
    stage.name.clone().unwrap_or_default()
}

/// Returns the search that a stage becomes.
fn search_of(
    mut stage: WorkStage,
    args: &SearchArgs,
    max_in_flight: Option<u32>,
) -> Result<SearchSpec> {
    let names: Vec<String> =
        stage.jobs.iter().map(|job| job.name.clone().unwrap_or_default()).collect();
    let at = match (&args.of_job, &names[..]) {
        (Some(name), _) => names.iter().position(|known| known == name),
        (None, [_]) => Some(0),
        (None, _) => {
            bail!("--job: name the job whose rate is searched, one of {}", listed(&names))
        }
    };
    let Some(at) = at else {
        let known: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
        let name = args.of_job.as_deref().unwrap_or_default();
        bail!("--job {name}: of the jobs of that stage the names are: {}", listed(&known));
    };
    if let Some(flag) = ["--rate", "--rps-limit"].into_iter().find(|flag| said::is_typed(flag)) {
        bail!("{flag}: the search chooses the rate; leave it out");
    }
    let job = &mut stage.jobs[at];
    // What a file says of how fast, how long and how much the search says instead.
    job.pacing = PacingSpec::Closed;
    (job.duration, job.ops, job.bytes) = (None, None, None);
    (stage.duration, stage.ops) = (None, None);
    stage.until.clear();
    let default = || SLO.iter().map(|slo| slo.parse::<SloSpec>().expect("it is a condition"));
    let slo = if args.slo.is_empty() { default().collect() } else { args.slo.clone() };
    let usual = SearchSpec::of(slo, stage);
    Ok(SearchSpec {
        rate: args.rates,
        precision: args.precision.map_or(usual.precision, |percent| Percent(percent.0)),
        budget: args.budget.map_or(usual.budget, |budget| Time(budget.0)),
        max_in_flight: max_in_flight.unwrap_or(usual.max_in_flight),
        job: args.of_job.clone(),
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: Vec<OsString>) -> String {
        words.join(" ".as_ref()).into_string().unwrap()
    }

    fn words(line: &str) -> String {
        joined(with_benchmark(line.split(' ').map(OsString::from), false))
    }

    #[test]
    fn without_a_benchmark_it_is_a_small_one() {
        assert_eq!(
            words("plimsoll loadline --json"),
            "plimsoll loadline s3 get --obj.size 4KiB --objects 1000 --budget 45s --slo p99<=10ms \
             --json"
        );
        assert_eq!(
            words("plimsoll loadline --host h --budget=1m"),
            "plimsoll loadline s3 get --host h --budget=1m"
        );
        for line in [
            "plimsoll loadline s3 put",
            "plimsoll loadline --slo p99<=1s weed read",
            "plimsoll loadline --help",
            "plimsoll s3 get",
        ] {
            assert_eq!(words(line), line);
        }
        let with_host = with_benchmark(["plimsoll".into(), "loadline".into()], true);
        assert_eq!(joined(with_host), "plimsoll loadline s3 get");
    }
}
