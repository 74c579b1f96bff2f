//! `plimsoll as warp`: warp's benchmarks with its flags and its report, on our engine and with our
//! safety.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_conduct::{Consent, Recording, RunTime, input};
use plimsoll_dialects::warp::{
    self, Sizes, WarpBenchmark, WarpCommand, WarpHost, WarpLine, WarpReading, WarpRun,
    WarpSignature, WarpStore,
};
use plimsoll_http::{Endpoint, expand_hosts};
use plimsoll_results::{Asked, Record};
use plimsoll_workload::plan::spec::{Lookup, OneOrMany, S3Target, TargetSpec, Targets};
use plimsoll_workload::plan::{Secrets, TargetSecrets, WorkloadFile};

use crate::args::Form;
use crate::args::fleet::FleetArgs;
use crate::args::outages::OutageArgs;
use crate::args::requests::{Pair, ProxyArg, RequestArgs, SignatureArg};
use crate::args::s3::{HostSelectArg, LookupArg, StoreArgs};
use crate::args::scrape::SCRAPE;
use crate::args::{
    ByteSize, CredentialArgs, Duration as DurationArg, OutputArgs, PrintArgs, ScrapeArgs,
    TelemetryArgs, TlsArgs, YES,
};
use crate::commands::warp_shown::{self, Benchdata, Segments};
use crate::conducted::{self, Settings, fresh_seed};
use crate::pins::Absent;
use crate::secret::Secret;
use crate::store::{self, Hosts};
use crate::ui::{LiveMode, Ui};
use crate::{environment, lower, shown};

/// Leave to remove what no run wrote, as warp's flags may be written.
const YESES: [&str; 2] = [YES, "-yes"];
/// What warp has no flags for.
const OP_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ERROR_PERCENT: f64 = 1.0;
/// What is said of both kinds of JSON.
const JSON: &str = "--json prints warp's document; plimsoll's: --report-json";
/// How a line is read.
const READING: WarpReading<'static> = WarpReading { variable: &variable, hosts: &hosts };

/// Carries out a command line of warp's; `words` begin with the command.
pub(crate) fn run(words: &[String]) -> Result<ExitCode> {
    let (explains, words) = super::take_explain(words);
    let (fails_on_client_limit, words) = super::take(&words, super::FAIL_ON_CLIENT_LIMIT);
    let (is_ours, words) = super::take(&words, super::REPORT_JSON);
    let runs_file = words.first().is_some_and(|word| word == "run");
    let is_yes = |word: &String| runs_file && YESES.contains(&&**word);
    let consents = words.iter().any(is_yes);
    let words: Vec<String> = words.into_iter().filter(|word| !is_yes(word)).collect();
    let line = warp::from_args(&words, &READING)?;
    let (line, file) = match line.command {
        WarpCommand::Run => of_file(&line, consents).map(|(line, file)| (line, Some(file)))?,
        _ => (line, None),
    };
    let WarpCommand::Benchmark(benchmark) = line.command else {
        if explains {
            Ui::plain().result(&line.explain())?;
            return Ok(ExitCode::SUCCESS);
        }
        bail!("put {} before its flags: plimsoll as warp {} ...", words[0], words[0]);
    };
    carry_out(benchmark, &line, file, &Ours { explains, fails_on_client_limit, is_ours })
}

/// plimsoll's own flags that stand among warp's words.
struct Ours {
    explains: bool,
    fails_on_client_limit: bool,
    /// Whether the result is plimsoll's JSON.
    is_ours: bool,
}

/// Reads a command line of warp's and does nothing else.
#[cfg(test)]
pub(crate) fn judge(words: &[String]) -> Result<()> {
    let (_, words) = super::take_explain(words);
    warp::from_args(&words, &READING)?;
    Ok(())
}

/// Returns the value of a variable that warp knows; ours counts where that of warp's name is not
/// set. A host of ours says nothing of where warp goes.
fn variable(name: &str) -> Option<String> {
    let ours = name.strip_prefix("WARP_").filter(|name| *name != "HOST");
    let ours = || environment::variable(&format!("PLIMSOLL_{}", ours?));
    environment::variable(name).or_else(ours)
}

/// Returns the hosts of a list.
fn hosts(list: &str) -> Result<Vec<WarpHost>, String> {
    let host = |Endpoint { host, port, .. }| WarpHost {
        name: if host.contains(':') { format!("[{host}]") } else { host },
        has_port: port != 0,
    };
    let hosts = expand_hosts(list, 0).map_err(|error| error.to_string())?;
    Ok(hosts.into_iter().map(host).collect())
}

/// Returns what a file of `warp run` asks for beside the environment, and what it says alone.
///
/// Leave to remove what no run wrote is never taken from the file: it is given on the command line.
fn of_file(line: &WarpLine, consents: bool) -> Result<(WarpLine, OfFile)> {
    let [path] = &line.operands[..] else { bail!("run takes one file") };
    let text = input::read_given(Path::new(path)).with_context(|| format!("cannot read {path}"))?;
    let mut asked =
        warp::from_yaml(&text, &line.variables, &READING).with_context(|| path.clone())?;
    asked.flags.retain(|(name, _)| name != YES);
    asked.flags.extend(consents.then(|| (YES.to_owned(), None)));
    asked.notes.extend(line.notes.iter().cloned());
    asked.flags.extend(line.flags.iter().cloned());
    let alone = WarpReading { variable: &|_| None, ..READING };
    // What only the environment completes is not whole by itself.
    let alone = warp::from_yaml(&text, &line.variables, &alone).ok();
    let alone = alone.and_then(|line| match line.command {
        WarpCommand::Benchmark(benchmark) => line.run(benchmark).ok(),
        _ => None,
    });
    let own = alone.map(|run| run.store).unwrap_or_default();
    let is_unchecked = line.flags.iter().any(|(name, _)| name == "--insecure");
    Ok((asked, OfFile { own, is_unchecked }))
}

/// A file of `warp run`.
struct OfFile {
    /// The store as the file alone describes it.
    own: WarpStore,
    /// Whether `--insecure` was typed beside it.
    is_unchecked: bool,
}

/// How a store is reached.
struct Reaching {
    args: StoreArgs,
    secrets: TargetSecrets,
    lends_to: Option<Hosts>,
}

impl OfFile {
    /// Has a workload name the store as one of our own does, so that the same rule holds: what is
    /// the user's goes to no host that only a file names, and not less safely than the user says.
    fn reach(&self, all: &WarpStore, workload: &mut WorkloadFile) -> Result<Reaching> {
        let get = warp::from_args(&[WarpBenchmark::Get.name().to_owned()], &READING)?;
        let StoreArgs { tls, mut tls_trust, .. } = store(&get.run(WarpBenchmark::Get)?.store);
        tls_trust.insecure |= self.is_unchecked;
        // That nobody names a host names none, whichever warp would take.
        let host = environment::variable("WARP_HOST");
        let is_of_user = host.is_some() && host == all.hosts;
        let spec = S3Target { tls: all.tls, insecure: all.insecure, ..S3Target::default() };
        let (hosts, tls) = match is_of_user {
            true => (None, tls || all.tls),
            false => (all.hosts.clone(), tls),
        };
        let hosts = OneOrMany(hosts.into_iter().collect());
        workload.targets = Targets::One(TargetSpec::S3(S3Target { hosts, ..spec }));
        let mut args = StoreArgs { host, tls, tls_trust, ..store(all) };
        let lends_to = Some(store::named_hosts(&args)?);
        let mut secrets = TargetSecrets::default();
        // Keys that stand whole in the file are its own. A token may be read from a file.
        let WarpStore { access_key, secret_key, session_token, sts_web_token, .. } = &self.own;
        if access_key.is_some() && secret_key.is_some() && sts_web_token.is_none() {
            args.credentials = CredentialArgs::default();
            let [access_key, secret_key, session_token] =
                [access_key, secret_key, session_token].map(secret);
            let own = Secrets { access_key, secret_key, session_token, ..Secrets::default() };
            secrets = [("s3".to_owned(), own)].into_iter().collect();
        }
        Ok(Reaching { args, secrets, lends_to })
    }
}

fn carry_out(
    benchmark: WarpBenchmark,
    line: &WarpLine,
    of_file: Option<OfFile>,
    &Ours { explains, fails_on_client_limit, is_ours }: &Ours,
) -> Result<ExitCode> {
    let mut run = line.run(benchmark)?;
    if let Some(Sizes::Written(text)) = &run.workload.size {
        run.workload.size = Some(lower::sizes(text)?);
    }
    let mut file = run.workload.workload(fresh_seed(RunTime::machine().wall_epoch))?;
    let mut output = output(&run, fails_on_client_limit)?;
    output.print.json |= is_ours;
    let ui = output.ui();
    if explains {
        let (line, sizes, workload) = (line.explain(), warp::SIZES, file.to_yaml());
        ui.result(&format!("{line}# {sizes}\n# {JSON}\n{workload}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let benchdata = Benchdata::of(&run)?;
    let segments = Segments::of(&run, of_file.is_none())?;
    let reaching = match &of_file {
        Some(of_file) => of_file.reach(&run.store, &mut file)?,
        None => {
            Reaching { args: store(&run.store), secrets: TargetSecrets::default(), lends_to: None }
        }
    };
    if run.json && !is_ours {
        ui.note(JSON);
    }
    for flag in run.shown.idle() {
        ui.warn(&format!("{flag} has no effect without --full, as in warp"));
    }
    line.notes.iter().for_each(|note| ui.note(&note.to_string()));
    let serverprof = parsed("serverprof", &run.serverprof)?;
    let show = |recording: &mut Recording, ui: &Ui| {
        let record = Record::of_run(&recording.directory)?;
        // Whoever reads stdout may be gone, or its disk full; what was measured is there all the
        // same.
        ui.note(&format!("run kept in {}", recording.directory.path().display()));
        if let Some(benchdata) = &benchdata {
            benchdata.write(&record, ui)?;
        }
        if is_ours {
            let report = shown::report_of_run(recording, &Asked::default())?;
            shown::print(&report, Form::Json, ui)?;
        } else {
            warp_shown::print_run(&record, &run, &segments, ui)?;
        }
        Ok(())
    };
    let settings = Settings {
        store: Some(&reaching.args),
        secrets: reaching.secrets,
        lends_to: reaching.lends_to,
        op_timeout: OP_TIMEOUT,
        max_error_rate: MAX_ERROR_PERCENT,
        syncstart: parsed("syncstart", &run.syncstart)?,
        serverprof: serverprof.as_ref(),
        keeps_data: run.keeps_data,
        show: Some(&show),
        keeps_going: true,
        ..Settings::plain(&output, Consent::by(YES, run.consents))
    };
    let done = conducted::run(&file, &settings).map_err(in_warps_words);
    done.map_err(|error| lower::in_our_words(error, Some(&run.workload)))
}

/// Names the flag of warp's by which agents are named.
fn in_warps_words(error: anyhow::Error) -> anyhow::Error {
    Absent::named_by(error, "--warp-client")
}

fn output(run: &WarpRun, fail_on_client_limit: bool) -> Result<OutputArgs> {
    let (metrics, otlp) = ("PLIMSOLL_METRICS", "PLIMSOLL_OTLP");
    let metrics = environment::variable(metrics).map(|at| at.parse().context(metrics));
    Ok(OutputArgs {
        live: LiveMode::Auto,
        verbose: false,
        fleet: fleet(run.agents.as_deref()),
        print: PrintArgs { json: run.json, quiet: run.quiet, no_color: run.no_color },
        run_dir: run.run_directory.as_ref().map(PathBuf::from),
        full_span: false,
        steady: false,
        certificate: None,
        fail_on_client_limit,
        outages: OutageArgs::default(),
        telemetry: TelemetryArgs {
            metrics: metrics.transpose()?,
            otlp: secret(&environment::variable(otlp)),
            influxdb: secret(&run.influxdb),
            scrape: ScrapeArgs {
                scrape: secret(&environment::variable(SCRAPE)).into_iter().collect(),
                ..ScrapeArgs::default()
            },
        },
    })
}

/// Returns the agents that carry a run out as warp's clients would.
fn fleet(agents: Option<&str>) -> FleetArgs {
    let Some(agents) = agents else { return FleetArgs::default() };
    FleetArgs {
        fleet: Some(None),
        agents: Some(agents.to_owned()),
        agents_equal: true,
        parts_stay: true,
        ..FleetArgs::default()
    }
}

/// Returns a value of warp's line as our own flag takes it.
fn parsed<T: FromStr<Err: Display>>(name: &str, given: &Option<String>) -> Result<Option<T>> {
    let parse =
        |text: &String| text.parse::<T>().map_err(|error| anyhow!("`--{name}={text}`: {error}"));
    given.as_ref().map(parse).transpose()
}

fn secret(text: &Option<String>) -> Option<Secret> {
    text.as_ref().and_then(|text| text.parse().ok())
}

/// Returns how the store is reached that a line names.
fn store(of: &WarpStore) -> StoreArgs {
    StoreArgs {
        host: of.hosts.clone(),
        credentials: CredentialArgs {
            access_key: secret(&of.access_key),
            secret_key: secret(&of.secret_key),
            session_token: secret(&of.session_token),
        },
        tls: of.tls,
        tls_trust: TlsArgs { insecure: of.insecure, ..TlsArgs::default() },
        region: of.region.clone(),
        bucket: of.bucket.clone(),
        // It creates the bucket and leaves it.
        create_bucket: true,
        keep_bucket: true,
        host_select: match of.round_robin {
            true => HostSelectArg::Roundrobin,
            false => HostSelectArg::Weighed,
        },
        lookup: match of.lookup {
            None => LookupArg::Auto,
            Some(Lookup::Path) => LookupArg::Path,
            Some(Lookup::Host) => LookupArg::Dns,
        },
        disable_sha256_payload: false,
        sha256_payload: false,
        md5: of.md5,
        disable_http_keepalive: of.disable_http_keepalive,
        connect_timeout: DurationArg(CONNECT_TIMEOUT),
        requests: requests(of),
    }
}

fn requests(of: &WarpStore) -> RequestArgs {
    let pairs = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| Pair(name.clone(), value.clone())).collect()
    };
    RequestArgs {
        encrypt: of.encrypt,
        sse_s3_encrypt: of.sse_s3_encrypt,
        checksum: of.checksum.clone(),
        storage_class: of.storage_class.clone(),
        tag: pairs(&of.tags),
        add_metadata: pairs(&of.metadata),
        part_size: of.part_size.map(ByteSize),
        disable_multipart: of.disable_multipart,
        signature: match of.signature {
            WarpSignature::V4 => SignatureArg::S3v4,
            WarpSignature::V2 => SignatureArg::S3v2,
            WarpSignature::Iam => SignatureArg::Iam,
        },
        sts_web_token: secret(&of.sts_web_token),
        resolve_host: of.resolve_host,
        http2: of.http2,
        proxy: ProxyArg::Env,
        ..RequestArgs::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    /// Lines of warp's, of every benchmark and every sort of flag.
    const LINES: [&str; 21] = [
        "mixed --objects 500 --obj.size 1KiB,4KiB --obj.randsize --get-distrib 40 --put-distrib 20",
        "get --autoterm --autoterm.dur 5s --autoterm.pct 5 --range --versions 3",
        "get --list-existing --list-flat --objects 7 --range-size 4KiB --prefix p --noprefix",
        "stat --list-existing --host-select roundrobin --lookup path --resolve-host",
        "put --post --checksum crc32c --storage-class COLD --tag a=b --tag c=d --add-metadata e=f",
        "put --tls --encrypt --insecure --part.size 8MiB --obj.size 1KiB:10,1MiB:20",
        "put --disable-multipart --sse-s3-encrypt --http2 --lookup host --signature s3v2",
        "delete --objects 9000 --batch 10 --rps-limit 12.5 --disable-http-keepalive",
        "delete --list-existing --yes --objects 0",
        "list --versions 2 --max-keys 1000 --region eu --md5",
        "stat --objects 5000 --signature IAM",
        "stat --signature STS_WEB_TOKEN --sts-web-token file:t",
        "versioned --delete-distrib 5 --bucket b --access-key A --secret-key S --session-token T",
        "retention --objects 30 --versions 2 --concurrent 3",
        "multipart --parts 7 --part.size 5MiB",
        "multipart-put --parts 7 --part.concurrent 3",
        "append --duration 1m30s",
        "zip --files 30",
        "snowball --objs.per 5 --compress",
        "fanout --copies 5",
        "get --concurrent 3 --host h:1 --warp-client client-{1...10}:7761",
    ];

    #[test]
    fn clients_that_are_not_there_are_named() {
        let names = vec!["client-3".to_owned(), "client-5".to_owned()];
        let said = in_warps_words(Absent { names, waited: Duration::from_secs(60) }.into());
        let start =
            "--warp-client: agents client-3, client-5 have not joined after 60.0 s; on each";
        assert!(said.to_string().starts_with(start), "{said}");
    }

    #[test]
    fn a_line_runs_as_what_it_is_explained_to_be_typed_as_here() {
        let reading = WarpReading { variable: &|_| None, ..READING };
        for line in LINES {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let read = warp::from_args(&words, &reading).unwrap();
            let WarpCommand::Benchmark(benchmark) = read.command else { unreachable!() };
            let run = read.run(benchmark).unwrap();
            let typed = read.flags.iter().map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            });
            let start = ["plimsoll", "s3", benchmark.name()].map(str::to_owned);
            let Command::S3(ours) = Cli::parse_from(start.into_iter().chain(typed)).command else {
                unreachable!("it begins so")
            };
            let common = ours.common();
            let mut asked = lower::asked(&ours).unwrap();
            asked.is_embedded = false;
            let file = asked.workload(7).unwrap();
            assert_eq!(run.workload.workload(7).unwrap().to_yaml(), file.to_yaml(), "{line}");
            assert_eq!(
                format!("{:#?}", store(&run.store)),
                format!("{:#?}", common.store),
                "{line}"
            );
            assert_eq!(
                format!("{:?}", fleet(run.agents.as_deref())),
                format!("{:?}", common.output.fleet),
                "{line}"
            );
            assert_eq!(
                (run.keeps_data, OP_TIMEOUT, MAX_ERROR_PERCENT),
                (
                    common.objects.noclear || common.objects.keep_data,
                    common.load.conduct.op_timeout.0,
                    common.load.conduct.max_error_rate.0
                ),
                "{line}"
            );
        }
    }
}
