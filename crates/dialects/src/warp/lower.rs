//! What warp's flags come to in ours.

use super::asked::{Asked, FlagValue};
use super::command::{WarpBenchmark, WarpCommand};
use super::flags::{FLAGS, Of};
use super::run::BUCKET;
use super::{WarpLine, WarpReading, clients};
use crate::command_line::{Deal, Kind, LineError};

/// Where warp goes when nobody says where.
const HOST_DEFAULT: &str = "127.0.0.1:9000";
/// As many objects warp takes of those that are there, where it takes not all of them.
const EXISTING_DEFAULTS: [(WarpBenchmark, u64); 2] =
    [(WarpBenchmark::Get, 2500), (WarpBenchmark::Stat, 10_000)];
/// warp's checksums that we do not have.
const OTHER_CHECKSUMS: [&str; 5] = ["SHA512", "MD5CS", "XXH64", "XXH3", "XXH128"];
const CHECKSUMS: [&str; 7] =
    ["CRC32", "CRC32-FO", "CRC32C", "CRC32C-FO", "CRC64NVME", "SHA1", "SHA256"];
/// What names a proxy for warp, and so for us.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];
const NOT_EMPTY: [&str; 3] = ["host", "bucket", "obj.size"];
/// The flag that has credentials looked for as Amazon's tools do.
const CHAIN: (&str, Option<&str>) = ("--signature", Some("IAM"));

type Flags = Vec<(String, Option<String>)>;

/// Returns what is asked for, in our flags.
pub(super) fn lower(mut asked: Asked, reading: &WarpReading<'_>) -> Result<WarpLine, LineError> {
    let variable = reading.variable;
    let mut ours = Flags::new();
    if let WarpCommand::Benchmark(benchmark) = asked.command {
        take_environment(&mut asked, variable)?;
        refuse(&asked)?;
        clients::check(&asked)?;
        adapt_store(&mut asked, &mut ours)?;
        adapt_requests(&mut asked)?;
        adapt_objects(&mut asked, benchmark, &mut ours)?;
        adapt_conduct(&mut asked, &mut ours, variable)?;
        clients::adapt(&mut asked, benchmark, &mut ours, reading.hosts)?;
    }
    let variables = take_variables(&mut asked)?;
    let is_benchmark = matches!(asked.command, WarpCommand::Benchmark(_));
    let (mut flags, mut analysis) = (Flags::new(), Flags::new());
    for given in std::mem::take(&mut asked.given) {
        if given.is_off() {
            continue;
        }
        let switch = given.flag.kind == Kind::Switch;
        let ours = (format!("--{}", given.flag.name), (!switch).then_some(given.value));
        let what = given.flag.says;
        let is_of_report = matches!(given.flag.to.of, Of::BenchmarksAndFiles);
        // Our own `as warp analyze` and its like say themselves what has no effect.
        match given.flag.deal {
            Deal::Take if is_benchmark && is_of_report => analysis.push(ours),
            Deal::Note if is_benchmark => asked.note(given.written, what),
            Deal::Take if is_benchmark && !what.is_empty() => {
                asked.note(given.written, what);
                flags.push(ours);
            }
            _ => flags.push(ours),
        }
    }
    flags.extend(ours);
    let Asked { command, operands, notes, .. } = asked;
    Ok(WarpLine { command, flags, analysis, operands, variables, notes })
}

/// Takes variables of the environment where no flag says otherwise.
fn take_environment(
    asked: &mut Asked,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), LineError> {
    for flag in FLAGS {
        let Some(name) = flag.to.variable else { continue };
        if asked.given.iter().any(|given| given.flag.name == flag.name) {
            continue;
        }
        if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
            asked.push(FlagValue::new(flag, &value, format!("`{name}`"))?);
        }
    }
    Ok(())
}

/// Refuses what is not followed at all.
fn refuse(asked: &Asked) -> Result<(), LineError> {
    let refused = |given: &&FlagValue| given.flag.deal == Deal::Refuse && !given.is_off();
    match asked.given.iter().find(refused) {
        Some(given) => Err(given.refused(given.flag.says)),
        None => Ok(()),
    }
}

/// Says where the store is and who asks.
fn adapt_store(asked: &mut Asked, ours: &mut Flags) -> Result<(), LineError> {
    let empty = |given: &&FlagValue| NOT_EMPTY.contains(&given.flag.name) && given.value.is_empty();
    if let Some(given) = asked.given.iter().find(empty) {
        return Err(given.wrong("it has no value"));
    }
    if asked.get("host").is_none() {
        ours.push(("--host".to_owned(), Some(HOST_DEFAULT.to_owned())));
        asked.note("`--host`", format!("not given, so it is {HOST_DEFAULT}, as in warp"));
    }
    if asked.get("bucket").is_none() {
        ours.push(("--bucket".to_owned(), Some(BUCKET.to_owned())));
    }
    // Warp creates its bucket and leaves it.
    ours.extend(["--create-bucket", "--keep-bucket"].map(|flag| (flag.to_owned(), None)));
    if let Some(given) = asked.get("lookup") {
        let lookup = match &*given.value {
            "host" | "dns" => "dns",
            "path" => "path",
            "auto" => "auto",
            _ => return Err(given.wrong("it is auto, host or path")),
        };
        asked.change("lookup", lookup);
    }
    if let Some(given) = asked.get("host-select")
        && !["weighed", "roundrobin"].contains(&&*given.value)
    {
        return Err(given.wrong("it is weighed or roundrobin"));
    }
    adapt_signature(asked, ours)
}

fn adapt_signature(asked: &mut Asked, ours: &mut Flags) -> Result<(), LineError> {
    let Some(given) = asked.get("signature") else { return Ok(()) };
    let name = given.value.to_ascii_uppercase();
    match &*name {
        "S3V2" | "S3V4" => asked.change("signature", name),
        "IAM" => {
            let why = "`--signature IAM` takes no keys, as in warp";
            for keys in ["access-key", "secret-key", "session-token"] {
                asked.drop(keys, why);
            }
            let what = "keys are looked for where Amazon's tools look; MinIO's variables are not \
                        among these places";
            asked.drop("signature", what);
            ours.push((CHAIN.0.to_owned(), CHAIN.1.map(str::to_owned)));
        }
        "STS_WEB_TOKEN" if asked.get("sts-web-token").is_none() => {
            return Err(given.wrong("the token is missing; add `--sts-web-token`"));
        }
        "STS_WEB_TOKEN" => asked.change("signature", "S3V4"),
        _ => return Err(given.wrong("it is S3V4, S3V2, IAM or STS_WEB_TOKEN")),
    }
    Ok(())
}

/// Says what goes with every request.
fn adapt_requests(asked: &mut Asked) -> Result<(), LineError> {
    if asked.get("sse-s3-encrypt").is_some() {
        asked.drop("encrypt", "`--sse-s3-encrypt` wins, as in warp");
    }
    if let Some(given) = asked.get("encrypt")
        && asked.get("tls").is_none()
    {
        return Err(given.wrong("the key would go over the wire in the clear; add `--tls`"));
    }
    for given in &asked.given {
        if given.flag.kind != Kind::Texts {
            continue;
        }
        let Some((name, value)) = given.value.split_once('=').filter(|pair| !pair.0.is_empty())
        else {
            return Err(given.wrong("it is written NAME=VALUE"));
        };
        if value.starts_with("rand:") {
            let why = format!("values are not drawn; write one out, such as `{name}=abc`");
            return Err(given.refused(why));
        }
    }
    let Some(given) = asked.get("checksum").cloned() else { return Ok(()) };
    let name = match &*given.value.to_ascii_uppercase() {
        "CRC64N" => "CRC64NVME".to_owned(),
        name => name.to_owned(),
    };
    let known = CHECKSUMS.join(", ");
    if name == "MD5" {
        asked.given.retain(|given| !["checksum", "md5"].contains(&given.flag.name));
        let md5 = FLAGS.iter().find(|flag| flag.name == "md5").expect("the table has it");
        asked.push(FlagValue::new(md5, "true", given.written)?);
    } else if OTHER_CHECKSUMS.contains(&&*name) {
        return Err(given.refused(format!("S3 itself has no such checksum; take one of {known}")));
    } else if !CHECKSUMS.contains(&&*name) {
        return Err(given.wrong(format!("it is one of {known}, or MD5")));
    } else if asked.get("md5").is_some() {
        return Err(given.wrong("it does not go together with `--md5`"));
    } else {
        asked.change("checksum", name);
    }
    Ok(())
}

/// Says which objects there are.
fn adapt_objects(
    asked: &mut Asked,
    benchmark: WarpBenchmark,
    ours: &mut Flags,
) -> Result<(), LineError> {
    adapt_sizes(asked);
    if let Some(given) = asked.get("obj.generator")
        && given.value != "random"
    {
        return Err(given.wrong("warp has only `random`; `plimsoll s3` has others"));
    }
    if asked.get("list-existing").is_some() {
        let objects = asked.get("objects").map(|given| &*given.value);
        let default = EXISTING_DEFAULTS.iter().find(|(of, _)| *of == benchmark);
        match (objects, default) {
            // Without the flag all are taken here.
            (Some("0"), _) => asked.given.retain(|given| given.flag.name != "objects"),
            (None, Some((_, most))) => {
                ours.push(("--objects".to_owned(), Some(most.to_string())));
                let what = format!("takes at most {most} objects, as in warp; 0 takes all");
                asked.note("`--list-existing`", what);
            }
            _ => {}
        }
    } else {
        asked.drop("list-flat", "does nothing without `--list-existing`");
    }
    let weight = |given: &&FlagValue| given.flag.name.ends_with("-distrib");
    if let Some(given) = asked.given.iter().filter(weight).find(|given| given.value.contains('.')) {
        return Err(given.wrong("weights are whole numbers here; multiply all four by ten"));
    }
    Ok(())
}

/// Without `--obj.randsize` warp takes the larger one of two sizes, and we one between them.
fn adapt_sizes(asked: &mut Asked) {
    let Some(given) = asked.get("obj.size").cloned() else { return };
    if given.value.contains(':') || asked.get("obj.randsize").is_some() {
        return;
    }
    if let Some((_, max)) = given.value.split_once(',') {
        asked.change("obj.size", max.trim());
        let what = "without `--obj.randsize` all objects have the second size, as in warp";
        asked.note(given.written, what);
    }
}

/// Says how the run goes.
fn adapt_conduct(
    asked: &mut Asked,
    ours: &mut Flags,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), LineError> {
    let WarpCommand::Benchmark(benchmark) = asked.command else { return Ok(()) };
    if asked.get("autoterm").is_none() {
        let why = "does nothing without `--autoterm`";
        asked.drop("autoterm.dur", why);
        asked.drop("autoterm.pct", why);
    }
    let is_unsigned = asked.get("disable-sha256-payload").is_some();
    if benchmark.uploads() && asked.get("tls").is_none() && !is_unsigned {
        let what = "what is uploaded goes unsigned, as if this flag were given; warp signs it \
                    where there is no TLS";
        asked.note("`--disable-sha256-payload`", what);
    }
    let is_set = |name: &&&str| variable(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = PROXY_VARIABLES.iter().find(is_set) {
        asked.note(format!("`{name}`"), "the proxy that it names is gone through, as in warp");
    }
    ours.push(("--proxy".to_owned(), Some("env".to_owned())));
    Ok(())
}

/// Takes out what `run` is to fill in.
fn take_variables(asked: &mut Asked) -> Result<Vec<(String, String)>, LineError> {
    let is_variable = |given: &FlagValue| given.flag.name == "var";
    let (variables, others): (Vec<FlagValue>, _) = asked.given.drain(..).partition(is_variable);
    asked.given = others;
    let pair = |given: FlagValue| match given.value.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(given.wrong("it is written Name=Value")),
    };
    variables.into_iter().map(pair).collect()
}
