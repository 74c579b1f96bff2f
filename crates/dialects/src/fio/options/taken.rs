//! The options that are followed.

use std::time::Duration;

use super::super::job::{
    Amount, BlockShare, Direction, Directions, Distribution, Order, RateProcess, SyncMode,
};
use super::super::resolve::Draft;
use super::super::values::{Bare, Value};
use super::{Known, engines, take};
use crate::command_line::set;

/// How many sizes `bssplit` may have, and `percentile_list` percentiles, as in fio.
const SPLIT_MAX: usize = 64;
const PERCENTILES_MAX: usize = 20;

const MANY: std::ops::RangeInclusive<u32> = 1..=u32::MAX;
const ANY: std::ops::RangeInclusive<u32> = 0..=u32::MAX;

pub(super) const TAKEN: &[Known] = &[
    // Who it is and when it runs.
    take("name", &[], |d, v| set(&mut d.job.name, v.word().map(str::to_owned))),
    take("description", &[], |d, v| set(&mut d.job.description, text(v))),
    take("numjobs", &[], |d, v| set(&mut d.job.flow.numjobs, v.count(MANY))),
    take("stonewall", &["wait_for_previous"], |d, v| set(&mut d.stonewall, v.flag())).switch(),
    take("wait_for", &[], |d, v| set(&mut d.wait_for, text(v))),
    take("new_group", &[], |d, v| set(&mut d.new_group, v.flag())).switch(),
    take("group_reporting", &[], |d, v| set(&mut d.job.flow.group_reporting, v.flag())).switch(),
    take("startdelay", &[], |d, v| {
        let span = v.span(v.word()?, |v, text| v.time(text, Bare::Seconds));
        set(&mut d.job.flow.start_delay, span)
    }),
    take("exitall_on_error", &[], |d, v| set(&mut d.job.flow.exitall_on_error, v.flag())).switch(),
    // Which blocks.
    take("rw", &["readwrite"], direction),
    take("rwmixread", &[], |d, v| {
        let percent = v.count(0..=100)?;
        d.mix(Some(percent), None);
        Ok(())
    }),
    take("rwmixwrite", &[], |d, v| {
        let percent = v.count(0..=100)?;
        d.mix(None, Some(percent));
        Ok(())
    }),
    take("bs", &["blocksize"], |d, v| {
        let sizes = v.directions(block)?;
        merge(&mut d.fixed, sizes)
    }),
    take("bsrange", &["blocksize_range"], |d, v| {
        let ranges = v.directions(|v, text| v.span(text, block))?;
        merge(&mut d.range, ranges)
    }),
    take("bssplit", &[], |d, v| {
        let splits = v.directions(split)?;
        merge(&mut d.split, splits)
    }),
    take("random_distribution", &[], distribution),
    take("norandommap", &[], |d, v| set(&mut d.job.pattern.random_map, v.flag().map(|off| !off)))
        .switch(),
    take("randrepeat", &["allrandrepeat"], |d, v| set(&mut d.repeats, v.switch())),
    take("randseed", &[], |d, v| set(&mut d.seed, v.number(v.word()?).map(Some))),
    // The files.
    take("directory", &[], |d, v| set(&mut d.job.files.directories, v.word().map(paths))),
    take("filename", &[], |d, v| set(&mut d.job.files.names, v.word().map(paths))),
    take("filename_format", &[], |d, v| set(&mut d.job.files.name_format, format(v))),
    take("nrfiles", &["nr_files"], |d, v| set(&mut d.nrfiles, v.count(MANY).map(Some))),
    take("size", &[], |d, v| set(&mut d.job.files.size, amount(v).map(Some))),
    take("filesize", &[], |d, v| {
        let span = v.span(v.word()?, |v, text| v.size(text))?;
        if span.min == 0 {
            return Err("a file has one byte at least".to_owned());
        }
        d.job.files.file_size_bytes = Some(span);
        Ok(())
    }),
    take("io_size", &["io_limit"], |d, v| set(&mut d.job.files.io_size, amount(v).map(Some))),
    take("number_ios", &[], |d, v| {
        let number = v.number(v.word()?)?;
        d.job.files.operations_max = Some(number).filter(|&number| number > 0);
        Ok(())
    }),
    take("create_only", &[], |d, v| set(&mut d.job.files.create_only, v.switch())),
    take("allow_file_create", &[], |d, v| set(&mut d.job.files.allow_file_create, v.switch())),
    take("overwrite", &[], |d, v| set(&mut d.job.files.overwrite, v.switch())),
    take("invalidate", &[], |d, v| set(&mut d.job.files.invalidate, v.switch())),
    // How operations are issued.
    take("ioengine", &[], |d, v| {
        let (engine, differs) = engines::engine(v.word()?)?;
        d.job.queue.engine = engine;
        d.job.queue.engine_written = Some(v.word()?.to_owned());
        v.notes.extend(differs);
        Ok(())
    }),
    take("iodepth", &[], |d, v| set(&mut d.job.queue.iodepth, v.count(MANY))),
    take("direct", &[], |d, v| set(&mut d.job.queue.direct, v.switch())),
    take("buffered", &[], |d, v| set(&mut d.job.queue.direct, v.switch().map(|on| !on))),
    take("sync", &[], |d, v| {
        set(
            &mut d.job.queue.sync,
            match v.word()? {
                "none" | "0" => Ok(SyncMode::Off),
                "sync" | "1" => Ok(SyncMode::Sync),
                "dsync" => Ok(SyncMode::Dsync),
                _ => Err("it must be none, sync or dsync".to_owned()),
            },
        )
    }),
    take("fsync", &[], |d, v| set(&mut d.job.queue.fsync_every, every(v))),
    take("fdatasync", &[], |d, v| set(&mut d.job.queue.fdatasync_every, every(v))),
    take("end_fsync", &[], |d, v| set(&mut d.job.queue.end_fsync, v.switch())),
    // How long and how fast.
    take("runtime", &["timeout"], |d, v| {
        let time = v.time(v.word()?, Bare::Seconds)?;
        d.job.timing.runtime = Some(time).filter(|time| !time.is_zero());
        Ok(())
    }),
    take("time_based", &[], |d, v| set(&mut d.job.timing.time_based, v.flag())).switch(),
    take("loops", &[], |d, v| set(&mut d.job.timing.loops, v.count(MANY))),
    take("ramp_time", &[], |d, v| set(&mut d.job.timing.ramp, v.time(v.word()?, Bare::Seconds))),
    take("rate", &[], |d, v| {
        let rates = v.directions(Value::size)?;
        limit(&mut d.job.rates.bytes_per_sec, rates)
    }),
    take("rate_iops", &[], |d, v| {
        let rates = v.directions(Value::number)?;
        limit(&mut d.job.rates.ops_per_sec, rates)
    }),
    take("rate_process", &[], |d, v| {
        set(
            &mut d.job.rates.process,
            match v.word()? {
                "linear" => Ok(RateProcess::Linear),
                "poisson" => Ok(RateProcess::Poisson),
                _ => Err("it is linear or poisson".to_owned()),
            },
        )
    }),
    take("thinktime", &[], |d, v| set(&mut d.job.thinktime.pause, v.time(v.word()?, Bare::Micros))),
    take("thinktime_spin", &[], |d, v| {
        set(&mut d.job.thinktime.spin, v.time(v.word()?, Bare::Micros))
    }),
    take("thinktime_blocks", &[], |d, v| set(&mut d.job.thinktime.operations, v.count(MANY))),
    // What is checked and reported.
    take("verify", &[], verify),
    take("do_verify", &[], |d, v| set(&mut d.job.verify.after_writing, v.switch())),
    take("verify_fatal", &[], |d, v| set(&mut d.job.verify.fatal, v.switch())),
    take("percentile_list", &[], |d, v| set(&mut d.job.reporting.percentiles, percentiles(v))),
    take("clat_percentiles", &[], |d, v| set(&mut d.job.reporting.clat_percentiles, v.switch())),
    take("lat_percentiles", &[], |d, v| set(&mut d.job.reporting.lat_percentiles, v.switch())),
    take("slat_percentiles", &[], |d, v| set(&mut d.job.reporting.slat_percentiles, v.switch())),
    take("write_bw_log", &[], |d, v| set(&mut d.job.reporting.logs.bw, log(v))),
    take("write_iops_log", &[], |d, v| set(&mut d.job.reporting.logs.iops, log(v))),
    take("write_lat_log", &[], |d, v| set(&mut d.job.reporting.logs.lat, log(v))),
    take("log_avg_msec", &[], |d, v| {
        let time = Duration::from_millis(v.number(v.word()?)?);
        d.job.reporting.logs.average = Some(time).filter(|time| !time.is_zero());
        Ok(())
    }),
    // Counts before all others, wherever it stands; see `resolve`.
    take("kb_base", &[], |_, _| Ok(())),
];

/// Takes over what a list says and leaves what it leaves out.
fn merge<T>(slot: &mut Directions<Option<T>>, new: Directions<Option<T>>) -> Result<(), String> {
    if new.read.is_some() {
        slot.read = new.read;
    }
    if new.write.is_some() {
        slot.write = new.write;
    }
    Ok(())
}

fn text(value: &Value<'_>) -> Result<Option<String>, String> {
    value.word().map(|text| Some(text.to_owned()))
}

/// Returns the prefix of a log; an empty one stands for the job's name.
fn log(value: &Value<'_>) -> Result<Option<String>, String> {
    Ok(Some(value.text.unwrap_or_default().to_owned()))
}

fn every(value: &mut Value<'_>) -> Result<Option<u32>, String> {
    Ok(Some(value.count(ANY)?).filter(|&every| every > 0))
}

/// Takes over limits; 0 lifts one.
fn limit(slot: &mut Directions<Option<u64>>, new: Directions<Option<u64>>) -> Result<(), String> {
    let Directions { read, write } = slot;
    for (slot, new) in [(read, new.read), (write, new.write)] {
        if let Some(new) = new {
            *slot = Some(new).filter(|&rate| rate > 0);
        }
    }
    Ok(())
}

fn amount(value: &mut Value<'_>) -> Result<Amount, String> {
    match value.amount(value.word()?)? {
        Amount::Bytes(0) => Err("0 bytes leave nothing to do".to_owned()),
        amount => Ok(amount),
    }
}

fn block(value: &mut Value<'_>, text: &str) -> Result<u64, String> {
    let is_sum = text.starts_with('(');
    if text.contains(':') || (!is_sum && text.trim_start_matches(['+', '-']).contains('-')) {
        return Err("a range is written `bsrange=LOW-HIGH`".to_owned());
    }
    match value.size(text)? {
        0 => Err("a block has one byte at least".to_owned()),
        size => Ok(size),
    }
}

fn direction(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    let word = value.word()?;
    if word.contains(':') {
        return Err("a step behind `:` is not taken".to_owned());
    }
    let (direction, order) = match word {
        "read" => (Direction::Read, Order::Sequential),
        "write" => (Direction::Write, Order::Sequential),
        "rw" | "readwrite" => (Direction::Mixed, Order::Sequential),
        "randread" => (Direction::Read, Order::Random),
        "randwrite" => (Direction::Write, Order::Random),
        "randrw" => (Direction::Mixed, Order::Random),
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
            return Err("trims are not done; they are for devices, not for files".to_owned());
        }
        _ => return Err("it is read, write, randread, randwrite, rw or randrw".to_owned()),
    };
    draft.has_rw = true;
    draft.job.pattern.direction = direction;
    draft.job.pattern.order = order;
    Ok(())
}

/// Reads `SIZE/PERCENT:SIZE/PERCENT`; sizes without a percentage share what is left.
fn split(value: &mut Value<'_>, text: &str) -> Result<Vec<BlockShare>, String> {
    let mut shares = Vec::new();
    let mut blanks = Vec::new();
    let mut left = 100_u32;
    for item in text.split(':') {
        let (size, percent) = item.split_once('/').unwrap_or((item, ""));
        let size_bytes = block(value, size.trim())?;
        let percent = match percent.trim() {
            "" => {
                blanks.push(shares.len());
                0
            }
            text => text.parse().map_err(|_| format!("`{text}` is not a whole percentage"))?,
        };
        left = left.checked_sub(percent).ok_or_else(|| "it adds up to more than 100".to_owned())?;
        shares.push(BlockShare { size_bytes, percent });
    }
    if shares.len() > SPLIT_MAX {
        return Err(format!("{SPLIT_MAX} sizes are the most"));
    }
    let Some(&last) = blanks.last() else {
        return match left {
            0 => Ok(shares),
            _ => Err(format!("it adds up to {}, not to 100", 100 - left)),
        };
    };
    let each = left / blanks.len() as u32;
    for &index in &blanks {
        shares[index].percent = each;
    }
    shares[last].percent += left % blanks.len() as u32;
    Ok(shares)
}

fn distribution(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    let word = value.word()?;
    if word.contains(',') {
        return Err("one distribution goes for reads and writes".to_owned());
    }
    let mut parts = word.split(':').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let mut parameter = |name: &str, usual: &str| {
        let text = parts.next().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| format!("write its {name}, such as `{kind}:{usual}`"))?;
        let number = text.trim_end_matches('%').parse::<f64>();
        let number = number.ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("`{text}` is not a valid {name}"))
    };
    let chosen = match kind {
        "random" => Distribution::Uniform,
        "zipf" => match parameter("theta", "1.1")? {
            theta if theta <= 0.0 || theta == 1.0 => {
                return Err("theta is above 0 and not 1".to_owned());
            }
            theta => Distribution::Zipf { theta },
        },
        "pareto" => match parameter("h", "0.2")? {
            h if h <= 0.0 || h >= 1.0 => return Err("h lies between 0 and 1".to_owned()),
            h => Distribution::Pareto { h },
        },
        "normal" | "gauss" => match parameter("deviation", "20")? {
            percent if percent <= 0.0 || percent > 100.0 => {
                return Err("the deviation is above 0 and at most 100 percent".to_owned());
            }
            deviation_percent => Distribution::Normal { deviation_percent },
        },
        "zoned" | "zoned_abs" => {
            return Err("zones are not taken; zipf, pareto and normal are".to_owned());
        }
        _ => return Err("it is random, zipf, pareto or normal".to_owned()),
    };
    if parts.next().is_some() {
        return Err("a centre is not taken".to_owned());
    }
    draft.job.pattern.distribution = chosen;
    Ok(())
}

/// Splits a list at `:`, which `\:` stands for inside a name.
fn paths(text: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let path = paths.last_mut().expect("it starts with one");
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => path.push(':'),
            ':' => paths.push(String::new()),
            _ => path.push(letter),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

fn format(value: &Value<'_>) -> Result<String, String> {
    let word = value.word()?;
    for tail in word.split('$').skip(1) {
        if tail.starts_with("clientuid") {
            return Err("`$clientuid` is not taken; agents name their files themselves".to_owned());
        }
        if !["jobname", "jobnum", "filenum"].iter().any(|name| tail.starts_with(name)) {
            return Err(format!("`${tail}` is not one of `$jobname`, `$jobnum`, `$filenum`"));
        }
    }
    Ok(word.to_owned())
}

fn verify(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    const METHODS: [&str; 18] = [
        "md5",
        "crc64",
        "crc32",
        "crc32c-intel",
        "crc32c",
        "crc16",
        "crc7",
        "sha1",
        "sha256",
        "sha512",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "pattern",
        "pattern_hdr",
    ];
    let word = value.word()?;
    let method = match word {
        "0" | "none" => None,
        "null" => return Err("it checks nothing; leave it out".to_owned()),
        _ if METHODS.contains(&word) => {
            value.notes.push(
                "every byte is compared with what was written; no sum is stored with the blocks"
                    .to_owned(),
            );
            Some(word.to_owned())
        }
        _ => return Err("fio has no such check; use one such as crc32c".to_owned()),
    };
    draft.job.verify.method = method;
    Ok(())
}

fn percentiles(value: &Value<'_>) -> Result<Vec<f64>, String> {
    let mut list = Vec::new();
    for text in value.word()?.split(':') {
        let number = text.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 100.0);
        list.push(number.ok_or_else(|| format!("`{text}` is not a percentile above 0 up to 100"))?);
    }
    if list.len() > PERCENTILES_MAX {
        return Err(format!("{PERCENTILES_MAX} percentiles are the most"));
    }
    Ok(list)
}
