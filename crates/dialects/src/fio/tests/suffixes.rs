//! Numbers with suffixes: what is read, what is refused, and what fio makes of it.

use super::*;

fn block(units: Units, kb_base: u32, text: &str) -> Result<u64, String> {
    let lines = format!("[a]\nrw=read\nbs={text}\nkb_base={kb_base}\n");
    let file = parse_with(units, &lines, &[]).map_err(|error| error.to_string())?;
    Ok(file.jobs[0].pattern.blocks.read.size_bytes_max())
}

fn runtime(units: Units, text: &str) -> Result<Duration, String> {
    let lines = format!("[a]\nrw=read\nruntime={text}\n");
    let file = parse_with(units, &lines, &[]).map_err(|error| error.to_string())?;
    Ok(file.jobs[0].timing.runtime.unwrap_or_default())
}

/// What was measured of fio 3.33: `1MiB` makes blocks of 977 KiB, `4kib` of 4000 bytes.
#[test]
fn fio_s_reading_of_sizes() {
    for (text, bytes) in [
        ("1MiB", 1_000_000),
        ("4kib", 4_000),
        ("1Mi", 1_048_576),
        ("1mb", 1_048_576),
        ("1M", 1_048_576),
        ("1m", 1_048_576),
        ("1meg", 1_048_576),
        ("1.5k", 1),
        ("0x10", 16),
        ("+4k", 4_096),
        ("512B", 512),
        ("512", 512),
    ] {
        assert_eq!(block(Units::Fio, 1024, text), Ok(bytes), "{text}");
    }
    for (text, bytes) in
        [("1MiB", 1_048_576), ("1Mi", 1_000_000), ("1M", 1_000_000), ("4kb", 4_000)]
    {
        assert_eq!(block(Units::Fio, 1000, text), Ok(bytes), "{text}");
    }
}

#[test]
fn strictly_a_size_is_what_it_looks_like_or_refused() {
    for (kb_base, text, bytes) in [
        (1024, "4096", 4_096),
        (1024, "4k", 4_096),
        (1024, "4K", 4_096),
        (1024, "4ki", 4_096),
        (1024, "1Mi", 1_048_576),
        (1024, "1mb", 1_048_576),
        (1024, "0x1000", 4_096),
        (1024, "(4k * 2)", 8_192),
        (1024, "(1m - 4k) ", 1_044_480),
        (1000, "4k", 4_000),
        (1000, "4kb", 4_000),
        (1000, "4KiB", 4_096),
    ] {
        assert_eq!(block(Units::Strict, kb_base, text), Ok(bytes), "{kb_base} {text}");
    }
    for (kb_base, text, why) in [
        (
            1024,
            "1MiB",
            "fio reads this as 1,000,000 bytes, not 1,048,576; write `1Mi` or the number of \
            bytes, or give `--fio-units` to have what fio reads",
        ),
        (
            1000,
            "1Mi",
            "fio reads this as 1,000,000 bytes, not 1,048,576; write `1MiB` or the number of \
            bytes, or give `--fio-units` to have what fio reads",
        ),
        (
            1024,
            "1meg",
            "fio reads every suffix with `m` in front alike, this as 1,048,576 bytes; write `1m`",
        ),
        (1024, "1.5k", "fio stops at the point and reads 1; write 1536"),
        (1024, "0.3k", "fio stops at the point and reads 0; write a whole number"),
        (1024, "4x", "`x` is no unit of size; those are k, m, g, t, p and Ki, Mi, Gi, Ti, Pi"),
        (1024, "k", "`k` does not start with a number"),
        (1024, "-4k", "it is less than nothing"),
        (1024, "99999999p", "it is too large"),
        (1024, "99999999999999999999", "it is too large"),
        (1024, "50%", "a share in percent is unexpected here"),
        (1024, "0", "a block has one byte at least"),
        (1024, "(4k", "a bracket is not closed"),
        (1024, "(4k - 8k)", "-4096 is not a number of bytes"),
        (
            1024,
            "(1MiB)",
            "fio reads this as 1,000,000 bytes, not 1,048,576; write `1Mi` or the number of \
            bytes, or give `--fio-units` to have what fio reads",
        ),
    ] {
        let whole = format!("job.fio:3: [a] `bs={text}`: {why}");
        assert_eq!(block(Units::Strict, kb_base, text), Err(whole));
    }
}

/// Measured of fio 3.33: `2sec` and `2min` are 2 µs, `1.5s` is 1 s, `2000ms` and `2S` are 2 s.
#[test]
fn fio_s_reading_of_times() {
    for (text, micros) in [
        ("2000ms", 2_000_000),
        ("2S", 2_000_000),
        ("2sec", 2),
        ("2min", 2),
        ("1.5s", 1_000_000),
        ("2", 2_000_000),
        ("2m", 120_000_000),
        ("2usec", 2),
        ("1d", 86_400_000_000),
    ] {
        assert_eq!(runtime(Units::Fio, text), Ok(Duration::from_micros(micros)), "{text}");
    }
}

#[test]
fn strictly_a_time_is_what_it_looks_like_or_refused() {
    for (text, micros) in [
        ("300", 300_000_000),
        ("500ms", 500_000),
        ("7us", 7),
        ("2h", 7_200_000_000),
        ("0", 0),
        ("(2 * 30)", 60_000_000),
        ("(2 * 30s)", 60_000_000),
    ] {
        let expected = Duration::from_micros(micros);
        assert_eq!(runtime(Units::Strict, text), Ok(expected), "{text}");
    }
    for (text, why) in [
        ("2sec", "fio reads this as 2us; write `2s`"),
        ("2min", "fio reads this as 2us; write `2m`"),
        ("2 hours", "fio reads this as 2us; write `2h`"),
        ("5ns", "fio reads this as 5us; write one of us, ms, s, m, h, d"),
        ("2msx", "fio reads this as 2ms; write one of us, ms, s, m, h, d"),
        ("1.5s", "fio stops at the point and reads 1 s; write 1500ms"),
        ("1.5", "fio stops at the point and reads 1 s; write 1500ms"),
        ("0.0005ms", "fio stops at the point and reads 0 s; write a whole number"),
        ("soon", "`soon` does not start with a number"),
    ] {
        let whole = format!("job.fio:3: [a] `runtime={text}`: {why}");
        assert_eq!(runtime(Units::Strict, text), Err(whole));
    }
}

#[test]
fn counts_of_things_have_no_suffix() {
    let rate = |units| parse_with(units, "[a]\nrw=read\nrate_iops=10k\n", &[]);
    assert_eq!(
        rate(Units::Strict).map_err(|error| error.to_string()),
        Err(
            "job.fio:3: [a] `rate_iops=10k`: fio reads this as 10,240; write that without a suffix"
                .to_owned()
        )
    );
    assert_eq!(rate(Units::Fio).unwrap().jobs[0].rates.ops_per_sec.read, Some(10_240));
}

#[test]
fn shares_are_from_1_to_100() {
    assert_eq!(job("size=100%").files.size, Some(Amount::Percent(100)));
    for text in ["0%", "101%"] {
        let error = strict(&format!("[a]\nrw=read\nsize={text}")).unwrap_err().to_string();
        assert!(error.ends_with("a share is from 1% to 100%"), "{error}");
    }
}

#[test]
fn kb_base_counts_before_all_others_and_for_its_section() {
    let file = strict("[a]\nrw=read\nbs=4k\nkb_base=1000\n[b]\nrw=read\nbs=4k\n").unwrap();
    let sizes: Vec<u64> =
        file.jobs.iter().map(|job| job.pattern.blocks.read.size_bytes_max()).collect();
    assert_eq!(sizes, [4_000, 4_096]);
    let file = strict("[global]\nkb_base=1000\n[a]\nrw=read\nbs=4k\n").unwrap();
    assert_eq!(file.jobs[0].pattern.blocks.read.size_bytes_max(), 4_000);
}

#[test]
fn what_is_said_of_4m_is_so() {
    for units in [Units::Strict, Units::Fio] {
        assert_eq!(block(units, 1024, "4M"), Ok(4_194_304));
    }
    assert_eq!(block(Units::Fio, 1000, "4M"), Ok(4_000_000));
    assert_eq!(SIZES, "4M is 4,194,304 bytes, as in fio; with kb_base=1000 it is 4,000,000");
}
