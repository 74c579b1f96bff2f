//! From the script as written to the checked one; every refusal names its field.

mod seaweed;

use std::array;

use plimsoll_model::{Bytes, OpKind, UnitError, parse_duration};

use super::spec::{
    BrownoutSpec, CollapseSpec, DistributionSpec, FaultsSpec, FirstByteSpec, KindsSpec, LiesSpec,
    PlantSpec, RateCapSpec, ScriptSpec, ServiceSpec, StallsSpec,
};
use super::{
    Brownout, Collapse, Distribution, FirstByte, KindPlan, Plant, RateCap, SCRIPT_SCHEMA, Script,
    ScriptError, Service, Stall,
};
use crate::behaviour::{Act, Lie};

/// Nanoseconds in a minute.
const MINUTE_NS: f64 = 60e9;
/// What an operation that is turned away waits where the script does not say.
const REFUSAL_NS: u64 = 1_000_000;
/// More servers than that are as good as any number.
const SERVERS_MAX: u32 = 1_000_000;
/// Shares that add up to 1 may exceed it by so much, as decimal fractions are not exact.
const SUM_SLACK: f64 = 1e-9;

type Checked<T> = Result<T, ScriptError>;

fn refuse<T>(field: impl Into<String>, reason: impl Into<String>) -> Checked<T> {
    Err(ScriptError::Field { field: field.into(), reason: reason.into() })
}

pub(super) fn lower(spec: &ScriptSpec) -> Checked<Script> {
    if spec.schema != SCRIPT_SCHEMA {
        return refuse("schema", format!("`{}` is not `{SCRIPT_SCHEMA}`", spec.schema));
    }
    if let Some(servers) = spec.servers.filter(|servers| !(1..=SERVERS_MAX).contains(servers)) {
        let reason =
            format!("{servers} is not from 1 to {SERVERS_MAX}; leave it out for any number");
        return refuse("servers", reason);
    }
    if spec.queue_max.is_some() && spec.servers.is_none() {
        return refuse("queue_max", "nothing ever waits where `servers` is not given");
    }
    if spec.collapse.is_some() && spec.servers.is_none() {
        return refuse("collapse", "nothing ever waits where `servers` is not given");
    }
    if spec.kinds.all.is_some() {
        return refuse("kinds.all", "what holds for all kinds stands in `service`");
    }
    let script = Script {
        plans: lower_plans(spec)?,
        servers: spec.servers,
        queue_max: spec.queue_max,
        rate_cap: spec.rate_cap.as_ref().map(lower_rate_cap).transpose()?,
        refusal_ns: match &spec.refusal_time {
            Some(text) => positive("refusal_time", text)?,
            None => REFUSAL_NS,
        },
        stall: spec.stalls.as_ref().map(lower_stalls).transpose()?,
        brownouts: (0..).zip(&spec.brownouts).map(lower_brownout).collect::<Checked<_>>()?,
        collapse: spec.collapse.as_ref().map(lower_collapse).transpose()?,
        grace_count: spec.grace_count,
        plant: spec.plant.as_ref().map(lower_plant).transpose()?,
        seaweed: spec.seaweed.as_ref().map(seaweed::lower).transpose()?.unwrap_or_default(),
    };
    Ok(script)
}

/// Returns the name of a kind in a script.
fn name_of(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Get => "get",
        OpKind::Put => "put",
        OpKind::Delete => "delete",
        OpKind::List => "list",
        OpKind::Stat => "stat",
        OpKind::Append => "append",
        OpKind::Post => "post",
        OpKind::Retention => "retention",
        OpKind::CreateUpload => "create_upload",
        OpKind::PutPart => "put_part",
        OpKind::CompleteUpload => "complete_upload",
        OpKind::AbortUpload => "abort_upload",
        OpKind::Read => "read",
        OpKind::Write => "write",
        OpKind::Sync => "sync",
        OpKind::Create => "create",
        OpKind::Open => "open",
        OpKind::Unlink => "unlink",
        OpKind::Rename => "rename",
        OpKind::Mkdir => "mkdir",
        OpKind::Rmdir => "rmdir",
    }
}

impl<T> KindsSpec<T> {
    fn of(&self, kind: OpKind) -> Option<&T> {
        match kind {
            OpKind::Get => self.get.as_ref(),
            OpKind::Put => self.put.as_ref(),
            OpKind::Delete => self.delete.as_ref(),
            OpKind::List => self.list.as_ref(),
            OpKind::Stat => self.stat.as_ref(),
            OpKind::Append => self.append.as_ref(),
            OpKind::Post => self.post.as_ref(),
            OpKind::Retention => self.retention.as_ref(),
            OpKind::CreateUpload => self.create_upload.as_ref(),
            OpKind::PutPart => self.put_part.as_ref(),
            OpKind::CompleteUpload => self.complete_upload.as_ref(),
            OpKind::AbortUpload => self.abort_upload.as_ref(),
            OpKind::Read => self.read.as_ref(),
            OpKind::Write => self.write.as_ref(),
            OpKind::Sync => self.sync.as_ref(),
            OpKind::Create => self.create.as_ref(),
            OpKind::Open => self.open.as_ref(),
            OpKind::Unlink => self.unlink.as_ref(),
            OpKind::Rename => self.rename.as_ref(),
            OpKind::Mkdir => self.mkdir.as_ref(),
            OpKind::Rmdir => self.rmdir.as_ref(),
        }
    }
}

fn lower_plans(spec: &ScriptSpec) -> Checked<[KindPlan; OpKind::ALL.len()]> {
    let queued = spec.servers.is_some();
    let common = lower_service("service", &spec.service, queued)?;
    let mut plans = array::from_fn(|_| KindPlan { service: common.clone(), mix: Vec::new() });
    for (plan, kind) in plans.iter_mut().zip(OpKind::ALL) {
        if let Some(own) = spec.kinds.of(kind) {
            plan.service = lower_service(&format!("kinds.{}", name_of(kind)), own, queued)?;
        }
        plan.mix = lower_mix(spec, kind)?;
    }
    Ok(plans)
}

/// Returns the faults and lies of one kind.
fn lower_mix(spec: &ScriptSpec, kind: OpKind) -> Checked<Vec<(f64, Act)>> {
    let own = spec.faults.of(kind).map(|own| (own, name_of(kind)));
    let all = spec.faults.all.as_ref().zip(Some("all"));
    let mut shares = lies(&spec.lies)?;
    let mut field = "lies".to_owned();
    if let Some((faults_spec, name)) = own.or(all) {
        field = format!("faults.{name}");
        check_shares(&field, faults_spec)?;
        let faults = faults(faults_spec);
        let misfit = faults.iter().find(|(share, act, _)| *share > 0.0 && !act.fits(kind));
        if let (Some(_), Some((_, act, member))) = (own, misfit) {
            return refuse(format!("{field}.{member}"), why_not(*act, kind));
        }
        shares.extend(faults);
    }
    shares.retain(|(share, act, _)| *share > 0.0 && act.fits(kind));
    match add_up(&shares) {
        Some(mix) => Ok(mix),
        None => {
            let kind = kind.name();
            refuse(field, format!("faults and lies of {kind} add up to more than 1"))
        }
    }
}

/// Returns the shares with their running sum, `None` where it exceeds 1.
fn add_up<A: Copy>(shares: &[(f64, A, String)]) -> Option<Vec<(f64, A)>> {
    let mut sum = 0.0;
    let mut mix = Vec::with_capacity(shares.len());
    for (share, act, _) in shares {
        sum += share;
        mix.push((sum, *act));
    }
    if let (Some(last), true) = (mix.last_mut(), sum > 1.0 - SUM_SLACK) {
        // Of shares that add up to 1 no operation falls beside.
        last.0 = 1.0;
    }
    (sum <= 1.0 + SUM_SLACK).then_some(mix)
}

fn faults(spec: &FaultsSpec) -> Vec<(f64, Act, String)> {
    let plain = [
        (spec.slow_down, Act::SLOW_DOWN, "slow_down"),
        (spec.reset, Act::ResetBefore, "reset"),
        (spec.half_body, Act::HalfBody, "half_body"),
        (spec.wrong_length, Act::WrongLength, "wrong_length"),
        (spec.error_in_success, Act::ErrorInSuccess, "error_in_success"),
        (spec.silence, Act::Silence, "silence"),
        (spec.io, Act::Io, "io"),
    ];
    let plain = plain.into_iter().map(|(share, act, name)| (share, act, name.to_owned()));
    let status = spec
        .status
        .iter()
        .map(|(status, share)| (*share, Act::status(*status), format!("status.{status}")));
    plain.chain(status).collect()
}

fn lies(spec: &LiesSpec) -> Checked<Vec<(f64, Act, String)>> {
    let shares = [
        spec.other_key,
        spec.old_version,
        spec.shifted,
        spec.zeroed,
        spec.torn,
        spec.flipped,
        spec.lost_write,
        spec.stale_read,
        spec.list_omission,
        spec.list_ghost,
        spec.wrong_tag,
        spec.lost_copy,
    ];
    let lies = Lie::ALL.into_iter().zip(shares);
    lies.map(|(lie, share)| {
        Ok((check_share(&format!("lies.{}", lie.name()), share)?, Act::Lie(lie), String::new()))
    })
    .collect()
}

fn why_not(act: Act, kind: OpKind) -> String {
    match act {
        Act::Status { .. } if !Act::Io.fits(kind) => {
            format!("{} of what is not there succeeds, so 404 is not a fault", kind.name())
        }
        Act::Io => format!("{} is about objects, which have no medium of their own", kind.name()),
        _ if Act::Io.fits(kind) => format!("{} is done to files, which fail by `io`", kind.name()),
        _ => format!("the answer to {} has no such body", kind.name()),
    }
}

fn check_shares(field: &str, spec: &FaultsSpec) -> Checked<()> {
    for status in spec.status.keys() {
        if !(400..=599).contains(status) {
            let reason = "only statuses from 400 to 599 are failures";
            return refuse(format!("{field}.status.{status}"), reason);
        }
    }
    let mut sum = 0.0;
    for (share, _, name) in faults(spec) {
        sum += check_share(&format!("{field}.{name}"), share)?;
    }
    if sum > 1.0 + SUM_SLACK {
        return refuse(field, format!("the shares add up to {sum}, which is more than 1"));
    }
    Ok(())
}

fn check_share(field: &str, share: f64) -> Checked<f64> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => refuse(field, format!("{share} is not a share from 0 to 1")),
    }
}

fn check_positive(field: &str, number: f64) -> Checked<f64> {
    match number > 0.0 && number.is_finite() {
        true => Ok(number),
        false => refuse(field, format!("{number} is not a finite number above 0")),
    }
}

/// Returns the nanoseconds of a duration.
fn duration(field: &str, text: &str) -> Checked<u64> {
    let ns = match parse_duration(text) {
        Ok(time) => u64::try_from(time.as_nanos()).ok().filter(|ns| *ns <= i64::MAX as u64),
        Err(UnitError::TooLarge(_)) => None,
        Err(error) => return refuse(field, format!("{error}, so it is not a duration")),
    };
    ns.map_or_else(|| refuse(field, format!("`{text}` is too long")), Ok)
}

/// Returns the nanoseconds of a duration that must not be 0.
fn positive(field: &str, text: &str) -> Checked<u64> {
    match duration(field, text)? {
        0 => refuse(field, format!("`{text}` is zero")),
        ns => Ok(ns),
    }
}

/// As [`positive`], as a floating-point number.
fn time(field: &str, member: &str, text: &str) -> Checked<f64> {
    positive(&format!("{field}.{member}"), text).map(|ns| ns as f64)
}

fn lower_service(field: &str, spec: &ServiceSpec, queued: bool) -> Checked<Service> {
    let per_byte_ns = match &spec.per_byte {
        None => 0.0,
        Some(text) => per_byte_ns(&format!("{field}.per_byte"), text)?,
    };
    let drift_per_ns = match &spec.drift {
        None => 0.0,
        Some(drift) => {
            let percent = drift.percent_per_minute;
            if !(percent >= 0.0 && percent.is_finite()) {
                let reason = format!("{percent} is not a finite number of 0 or more");
                return refuse(format!("{field}.drift.percent_per_minute"), reason);
            }
            percent / 100.0 / MINUTE_NS
        }
    };
    let first_byte = match &spec.first_byte {
        None => FirstByte::Share(1.0),
        Some(FirstByteSpec::Share(share)) => {
            FirstByte::Share(check_share(&format!("{field}.first_byte.share"), *share)?)
        }
        Some(FirstByteSpec::Delay(text)) => {
            FirstByte::Delay(duration(&format!("{field}.first_byte.delay"), text)? as f64)
        }
    };
    let time = lower_distribution(&format!("{field}.time"), &spec.time, queued)?;
    Ok(Service { time, per_byte_ns, drift_per_ns, first_byte })
}

fn per_byte_ns(field: &str, text: &str) -> Checked<f64> {
    let Some(rate) = text.trim().strip_suffix("/s") else {
        return positive(field, text).map(|ns| ns as f64);
    };
    match Bytes::parse(rate) {
        Ok(Bytes(0)) => refuse(field, format!("`{text}` is a rate of 0")),
        Ok(Bytes(bytes)) => Ok(1e9 / bytes as f64),
        Err(error) => refuse(field, format!("{error}, so it is not a rate")),
    }
}

fn lower_distribution(field: &str, spec: &DistributionSpec, queued: bool) -> Checked<Distribution> {
    Ok(match spec {
        DistributionSpec::Constant(text) => Distribution::Constant(time(field, "constant", text)?),
        DistributionSpec::Uniform { from, to } => {
            let field = format!("{field}.uniform");
            let low = duration(&format!("{field}.from"), from)? as f64;
            let high = time(&field, "to", to)?;
            if low >= high {
                return refuse(field, format!("`{from}` is not below `{to}`"));
            }
            Distribution::Uniform { from: low, to: high }
        }
        DistributionSpec::Exponential { mean } => {
            Distribution::Exponential { mean: time(field, "exponential.mean", mean)? }
        }
        DistributionSpec::Lognormal { median, mean, sigma } => {
            let field = format!("{field}.lognormal");
            let sigma = check_positive(&format!("{field}.sigma"), *sigma)?;
            let mu = match (median, mean) {
                (Some(median), None) => time(&field, "median", median)?.ln(),
                // The mean is exp(mu + sigma² / 2).
                (None, Some(mean)) => time(&field, "mean", mean)?.ln() - sigma * sigma / 2.0,
                _ => return refuse(field, "give either `median` or `mean`"),
            };
            Distribution::Lognormal { mu, sigma }
        }
        DistributionSpec::Pareto { scale, shape } => {
            let field = format!("{field}.pareto");
            let scale = time(&field, "scale", scale)?;
            let shape_field = format!("{field}.shape");
            let shape = check_positive(&shape_field, *shape)?;
            if queued && shape <= 1.0 {
                let reason = format!(
                    "with {shape} the mean is infinite, and a queue before `servers` never ends; \
                     take more than 1"
                );
                return refuse(shape_field, reason);
            }
            Distribution::Pareto { scale, shape }
        }
        DistributionSpec::Bimodal { first, second, share } => {
            let field = format!("{field}.bimodal");
            Distribution::Bimodal {
                first: Box::new(lower_distribution(&format!("{field}.first"), first, queued)?),
                second: Box::new(lower_distribution(&format!("{field}.second"), second, queued)?),
                share: check_share(&format!("{field}.share"), *share)?,
            }
        }
    })
}

fn lower_rate_cap(spec: &RateCapSpec) -> Checked<RateCap> {
    let ops_per_sec = check_positive("rate_cap.ops_per_sec", spec.ops_per_sec)?;
    let burst = spec.burst.unwrap_or(1);
    if burst == 0 {
        return refuse("rate_cap.burst", "with 0 no operation would ever be let in");
    }
    Ok(RateCap { ops_per_ns: ops_per_sec / 1e9, burst: f64::from(burst) })
}

fn lower_stalls(spec: &StallsSpec) -> Checked<Stall> {
    let every = positive("stalls.every", &spec.every)?;
    let lasting = positive("stalls.lasting", &spec.lasting)?;
    if lasting >= every {
        let reason = format!("`{}` is not below `every`, `{}`", spec.lasting, spec.every);
        return refuse("stalls.lasting", reason);
    }
    let offset = match &spec.offset {
        Some(text) => duration("stalls.offset", text)?,
        None => every,
    };
    Ok(Stall { every, lasting, offset })
}

fn lower_brownout((index, spec): (usize, &BrownoutSpec)) -> Checked<Brownout> {
    let field = |member: &str| format!("brownouts[{index}].{member}");
    let lasting = positive(&field("lasting"), &spec.lasting)?;
    let every = match &spec.every {
        Some(text) => Some(positive(&field("every"), text)?),
        None => None,
    };
    if every.is_some_and(|every| lasting >= every) {
        return refuse(field("lasting"), format!("`{}` is not below `every`", spec.lasting));
    }
    Ok(Brownout {
        from: duration(&field("from"), &spec.from)?,
        lasting,
        every,
        factor: check_positive(&field("factor"), spec.factor)?,
    })
}

fn lower_collapse(spec: &CollapseSpec) -> Checked<Collapse> {
    let above = positive("collapse.above", &spec.above)?;
    let calm = positive("collapse.calm", &spec.calm)?;
    if calm > above {
        return refuse("collapse.calm", format!("`{}` is longer than `above`", spec.calm));
    }
    let factor = check_positive("collapse.factor", spec.factor)?;
    Ok(Collapse { above, factor, calm, lasting: positive("collapse.lasting", &spec.lasting)? })
}

fn lower_plant(spec: &PlantSpec) -> Checked<Plant> {
    if spec.count == 0 {
        return refuse("plant.count", "0 plants nothing; leave `plant` out");
    }
    if spec.count > spec.of {
        let reason = format!("{} do not fit into {} operations", spec.count, spec.of);
        return refuse("plant.count", reason);
    }
    if spec.kinds.is_empty() {
        return refuse("plant.kinds", "at least one is needed");
    }
    let mut acts = Vec::new();
    for name in &spec.kinds {
        let lie = Lie::ALL.into_iter().find(|lie| lie.name() == name).map(Act::Lie);
        let fault = [Act::HalfBody, Act::WrongLength].into_iter().find(|act| act.name() == name);
        match lie.or(fault) {
            Some(act) if acts.contains(&act) => {
                return refuse("plant.kinds", format!("`{name}` appears twice"));
            }
            Some(act) => acts.push(act),
            None => {
                let reason = format!("`{name}` is not a lie, `half_body` or `wrong_length`");
                return refuse("plant.kinds", reason);
            }
        }
    }
    Ok(Plant { count: spec.count, of: spec.of, acts })
}
