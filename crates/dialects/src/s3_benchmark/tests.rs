//! Command lines against the program's own help and the document.

use super::*;

fn line(text: &str) -> Result<Benchmark, LineError> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    from_args(&words)
}

fn refused(text: &str) -> String {
    line(text).unwrap_err().to_string()
}

/// The help of the program itself, as it printed it.
const HELP: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/s3-benchmark/s3b-help.txt"));

#[test]
fn the_defaults_are_those_of_the_programs_own_help() {
    let plain = line("-a A -s S").unwrap();
    assert_eq!((plain.access_key.as_str(), plain.secret_key.as_str()), ("A", "S"));
    for default in [
        format!("(default \"{}\")", plain.bucket),
        format!("(default {})", plain.duration_s),
        format!("(default {})", plain.loops),
        format!("(default \"{}\")", plain.region),
        format!("(default {})", plain.threads),
        format!("(default \"{}\")", plain.url),
        format!("(default \"{}\")", plain.size),
    ] {
        assert!(HELP.contains(&default), "{default}");
    }
    assert_eq!(plain.size_bytes, 1_048_576);
    let at = Address { tls: false, host: "s3.wasabisys.com".to_owned(), port: None };
    assert_eq!(plain.address, at);
}

#[test]
fn help_is_that_of_the_program() {
    for text in ["-help", "-h", "--help", "-a A -s S -help"] {
        assert_eq!(line(text).unwrap_err(), LineError::Help, "{text}");
    }
    // Its first line is that of every run, and it calls itself by no name of its own.
    let (_, theirs) = HELP.split_once('\n').unwrap();
    assert_eq!(help(), theirs.replace("Usage of myflag:", "Usage of s3-benchmark:"));
}

#[test]
fn every_flag_of_the_help_is_taken_in_every_form() {
    let flags: Vec<&str> =
        HELP.lines().filter_map(|line| line.strip_prefix("  -")?.split(' ').next()).collect();
    assert_eq!(flags, ["a", "b", "d", "l", "r", "s", "t", "u", "z"]);
    let value = |flag: &str| match flag {
        "u" => "https://[::1]:9000/",
        "z" => "4KiB",
        _ => "7",
    };
    for (dash, between) in [("-", " "), ("-", "="), ("--", " "), ("--", "=")] {
        let words: Vec<String> =
            flags.iter().map(|flag| format!("{dash}{flag}{between}{}", value(flag))).collect();
        let read = line(&words.join(" ")).unwrap();
        let address = Address { tls: true, host: "::1".to_owned(), port: Some(9_000) };
        let expected = Benchmark {
            access_key: "7".to_owned(),
            secret_key: "7".to_owned(),
            address,
            url: "https://[::1]:9000/".to_owned(),
            bucket: "7".to_owned(),
            region: "7".to_owned(),
            duration_s: 7,
            threads: 7,
            loops: 7,
            size_bytes: 4_096,
            size: "4KiB".to_owned(),
        };
        assert_eq!(read, expected);
    }
    // As in Go, the last one wins, and a value may begin with a dash.
    assert_eq!(line("-a A -s -S -t 3 -t=5").unwrap().threads, 5);
    assert_eq!(line("-a A -s -S").unwrap().secret_key, "-S");
}

#[test]
fn what_is_said_of_4m_is_so() {
    assert_eq!(size::parse("4M"), Ok(4_194_304));
    assert!(SIZES.starts_with("4M is 4,194,304 bytes"));
}

#[test]
fn sizes_are_powers_of_1024_with_a_unit() {
    for (text, bytes) in [
        ("1B", 1),
        ("512b", 512),
        ("1K", 1_024),
        ("1KB", 1_024),
        ("1kib", 1_024),
        ("1.5K", 1_536),
        ("0.5KB", 512),
        ("1.0005K", 1_024),
        ("2M", 2_097_152),
        ("1MiB", 1_048_576),
        ("5G", 5_368_709_120),
        ("0.0009765625T", 1_073_741_824),
    ] {
        assert_eq!(line(&format!("-a A -s S -z {text}")).unwrap().size_bytes, bytes, "{text}");
    }
    for text in ["1024", "K", "1X", "1KK", "-1K", "+1K", "1e3K", "1.2.3K", "1iB", "1 K x", "0x1K"] {
        let words = ["-a", "A", "-s", "S", "-z", text].map(str::to_owned);
        let said = from_args(&words).unwrap_err().to_string();
        assert!(said.starts_with(&format!("`-z={text}`: it is a number")), "{said}");
    }
    assert!(refused("-a A -s S -z 0M").contains("at least 1 byte"));
    assert!(refused("-a A -s S -z 0.5B").contains("at least 1 byte"));
    assert!(refused("-a A -s S -z 6G").contains("at most 5G"));
    assert!(refused("-a A -s S -z 99999E").contains("too large"));
}

#[test]
fn what_makes_no_sense_is_refused_by_its_flag() {
    for (text, part) in [
        ("", "no access key (-a)"),
        ("-a A", "no secret key (-s)"),
        ("-a= -s S", "no access key (-a)"),
        ("-a A -s S -d 0", "`-d=0`: it is 1 at least"),
        ("-a A -s S -t 0", "`-t=0`"),
        ("-a A -s S -l 0", "`-l=0`"),
        ("-a A -s S -l -1", "`-l=-1`: it is a whole number"),
        ("-a A -s S -d 5s", "`-d=5s`: it is a whole number"),
        ("-a A -s S -d 010", "octal"),
        ("-a A -s S -t 9999999999", "it is 2147483647 at most"),
        ("-a A -s S -l 52", "at most 51 loops"),
        ("-a A -s S -u host:9000", "begins with http:// or https://"),
        ("-a A -s S -u http://", "no host"),
        ("-a A -s S -u http://h/path", "nothing else"),
        ("-a A -s S -u http://u@h", "`-u=http://…@h`: it is a scheme, a host and a port"),
        ("-a A -s S -u http://u:p/w@h?t=x", "`-u=http://…@h`: it is"),
        ("-a A -s S -u http://h:0", "`0` is not a port"),
        ("-a A -s S -u http://h:x", "`x` is not a port"),
        ("-a A -s", "`-s`: it has no value"),
        ("-a A more -s S", "`more` is no flag"),
        ("-a A -- -s S", "`--` is no flag"),
        ("-a A -x 1", "`-x` is no flag of s3-benchmark"),
        ("-a A --bucket=b", "`--bucket` is no flag of s3-benchmark, which has -a -b"),
        ("-a A --bucket=b", "did you mean `-b`?"),
    ] {
        let said = refused(text);
        assert!(said.contains(part), "`{text}`: {said}");
    }
    assert_eq!(line("-a A -s S -l 51").unwrap().loops, LOOPS_MAX);
}

#[test]
fn no_key_is_printed() {
    let text = format!("{:?}", line("-a hush-a -s hush-s").unwrap());
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn corrections_are_sentences_without_a_full_stop() {
    assert!(CORRECTIONS.len() >= 20);
    CORRECTIONS.iter().for_each(Correction::assert_is_sentence);
}

#[test]
fn the_document_has_every_correction() {
    let document = include_str!("../../../../docs/coming-from-s3-benchmark.md");
    for Correction { of, there, here } in CORRECTIONS {
        assert!(document.contains(&format!("\n| {of} | {there} | {here} | ")), "{of}: {there}");
    }
    assert!(document.contains(&format!("loops, 1 to {LOOPS_MAX}")));
}

#[test]
fn each_loop_has_five_stages_on_objects_of_its_own() {
    let asked = line("-a A -s S -u https://[::1]:9000/ -b bk -t 8 -d 10 -z 4K -l 2").unwrap();
    let text = asked.workload(Some(5)).to_yaml();
    let file = plimsoll_workload::plan::WorkloadFile::from_yaml("lowered", &text).unwrap();
    let plan = file.check().unwrap();
    let stages: Vec<String> = plan
        .stages
        .iter()
        .map(|stage| {
            let job = &stage.jobs[0];
            let set = &plan.set(job.work.sets()[0]).name;
            let time = stage.duration.map_or(0, |time| time.as_secs());
            let offered = if stage.if_offered { " if offered" } else { "" };
            format!("{} {set} {} {time}{offered}", stage.name, job.workers)
        })
        .collect();
    let of_loop = |number: u32| {
        let set = format!("loop-{number}");
        ["put", "get", "list2", "listver", "delete"].map(|test| {
            let time = if test == "delete" { 0 } else { 10 };
            let offered = if test == "listver" { " if offered" } else { "" };
            format!("{set}-{test} {set} 8 {time}{offered}")
        })
    };
    assert_eq!(stages, [of_loop(1), of_loop(2)].concat());
    assert_eq!(plan.seed.map(|seed| seed.0), Some(5));
    assert!(text.contains("\'[::1]:9000\'") && text.contains("bucket: bk"), "{text}");
    assert!(text.contains("size: 4KiB") && !text.contains("secret"), "{text}");
    let most = line("-a A -s S -l 51 -u http://h").unwrap().workload(None).check().unwrap();
    assert_eq!(most.stages.len(), 255);
}

#[test]
fn what_an_address_would_make_several_is_refused() {
    for url in ["http://h:9,i:9", "http://h{1...4}:9"] {
        assert!(refused(&format!("-a A -s S -u {url}")).contains("nothing else"), "{url}");
    }
}
