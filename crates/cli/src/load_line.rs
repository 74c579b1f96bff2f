//! What `plimsoll loadline` makes of a workload: the stage that is a result becomes a search.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plimsoll_conduct::QUEUE;
use plimsoll_dialects::warp::{Sizes, WarpWorkload};
use plimsoll_workload::RateProfile;
use plimsoll_workload::plan::spec::{
    OpenSpec, OracleTarget, PacingSpec, RateSpec, SearchSpec, SearchStage, StageSpec, TargetSpec,
    Targets, WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{InvalidField, Percent, SloSpec, Time, WorkloadFile};

use crate::args::{
    self,
    load_line::{BENCHMARKS, LOADLINE, SearchArgs},
    s3::StoreArgs,
};
use crate::said;

/// What is to be kept where nobody says.
const SLO: [&str; 2] = ["p99<=20ms", "errors<=0.1%"];
/// What stands for a benchmark where none is named. A question about operations a second wants
/// small objects: those of `s3 get` would be 24 GiB to upload.
const BENCHMARK: [&str; 2] = ["s3", "get"];
const OBJECT_SIZE: (&str, &str) = ("--obj.size", "4KiB");
/// What is to be kept on the built-in store where nobody says, and the seed, so that every such
/// search is the same one.
const SLO_BUILT_IN: &str = "p99<=10ms";
pub(crate) const SEED_BUILT_IN: u64 = 1;
/// How long and how well it is searched: of 30 seeds the errors of the line had a deviation of
/// 1.2 % in virtual time, for some 300,000 operations.
const IN_VIRTUAL_TIME: (Duration, f64) = (Duration::from_secs(120), 3.0);
const IN_REAL_TIME: (Duration, f64) = (Duration::from_secs(45), 5.0);
/// How long half of the line is put on the built-in store over loopback.
const LOOPBACK: Duration = Duration::from_secs(5);

/// Returns the words of a command line with the benchmark that `loadline` means without one.
pub(crate) fn with_benchmark(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    let names_one = |word: &OsString| BENCHMARKS.iter().any(|name| word == name);
    let asks_help = |word: &OsString| ["-h", "--help", "help"].iter().any(|help| word == help);
    let is_bare = words.get(1).is_some_and(|word| word == LOADLINE)
        && !words[2..].iter().any(|word| names_one(word) || asks_help(word));
    if !is_bare {
        return words;
    }
    let (flag, size) = OBJECT_SIZE;
    let is_flag = |word: &OsString| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let small = [flag, size].into_iter().filter(|_| !words[2..].iter().any(is_flag));
    let (before, after) = words.split_at(2);
    let added = BENCHMARK.into_iter().chain(small).map(OsString::from);
    before.iter().cloned().chain(added).chain(after.iter().cloned()).collect()
}

/// How a search of the built-in store goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    /// In virtual time, and then half of what was found over loopback.
    Demonstrated,
    /// In virtual time.
    Virtual,
    /// In real time.
    Real,
}

impl BuiltIn {
    /// Returns how a benchmark of objects is searched; `None` where a store is named, and without a
    /// search.
    pub(crate) fn of(store: &StoreArgs, search: Option<&SearchArgs>) -> Option<Self> {
        let search = search?;
        match (search.is_virtual, search.is_real) {
            (true, _) => Some(Self::Virtual),
            _ if store.host.is_some() => None,
            (_, true) => Some(Self::Real),
            (_, false) => Some(Self::Demonstrated),
        }
    }

    /// Returns what is looked for, with what is meant where nobody says.
    pub(crate) fn search(self, asked: &SearchArgs) -> SearchArgs {
        let (budget, precision) = match self {
            Self::Demonstrated | Self::Virtual => IN_VIRTUAL_TIME,
            Self::Real => IN_REAL_TIME,
        };
        let mut search = asked.clone();
        search.budget.get_or_insert(args::Duration(budget));
        search.precision.get_or_insert(args::Percent(precision));
        if search.slo.is_empty() {
            search.slo.push(SLO_BUILT_IN.parse().expect("it is a condition"));
        }
        search
    }

    /// Makes a benchmark small: no time depends on the sizes but that of the processors.
    pub(crate) fn shrink(asked: &mut WarpWorkload) {
        asked.is_embedded = true;
        asked.size.get_or_insert_with(|| Sizes::Written(OBJECT_SIZE.1.to_owned()));
    }

    /// Points a workload at the built-in store.
    pub(crate) fn aim(file: &mut WorkloadFile) {
        let queue = OracleTarget { queue: Some(QUEUE), ..OracleTarget::default() };
        file.targets = Targets::One(TargetSpec::Oracle(queue));
    }
}

/// Returns a workload that puts half of a line on the store whose line was searched.
pub(crate) fn at_half(searched: &WorkloadFile, line: f64) -> Result<WorkloadFile> {
    let rate = RateProfile::constant((line / 2.0).round().max(1.0)).map_err(|why| anyhow!(why))?;
    let mut file = searched.clone();
    for spec in &mut file.stages {
        let StageSpec::Search(SearchStage { name, search }) = spec else { continue };
        let mut stage = search.stage.clone();
        stage.name.clone_from(name);
        stage.duration = Some(Time(LOOPBACK));
        let mut jobs = stage.jobs.iter_mut();
        if let Some(job) = jobs.find(|job| search.job.is_none() || job.name == search.job) {
            job.pacing = PacingSpec::Open(OpenSpec {
                rate: RateSpec::Rate(rate.clone()),
                arrivals: search.arrivals,
                max_in_flight: search.max_in_flight,
            });
        }
        *spec = StageSpec::Jobs(stage);
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
    for (stage, index) in file.stages.iter_mut().zip(1..) {
        if let StageSpec::Jobs(stage) = stage
            && is_result(stage)
        {
            stage.name.get_or_insert_with(|| format!("stage-{index}"));
        }
    }
    let results: Vec<String> =
        file.work_stages().filter(|stage| is_result(stage)).map(named).collect();
    let name = match (&args.of_stage, &results[..]) {
        (Some(name), _) if results.contains(name) => name.clone(),
        (Some(name), _) => {
            bail!("--stage {name}: no measured stage has that name; there is {}", listed(&results))
        }
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
        joined(with_benchmark(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn without_a_benchmark_it_is_a_small_one() {
        assert_eq!(
            words("plimsoll loadline --json"),
            "plimsoll loadline s3 get --obj.size 4KiB --json"
        );
        assert_eq!(
            words("plimsoll loadline --host h --obj.size=1MiB"),
            "plimsoll loadline s3 get --host h --obj.size=1MiB"
        );
        for line in [
            "plimsoll loadline s3 put",
            "plimsoll loadline --slo p99<=1s weed read",
            "plimsoll loadline --help",
            "plimsoll s3 get",
        ] {
            assert_eq!(words(line), line);
        }
    }
}
