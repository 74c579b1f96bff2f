//! Makes a command of a page short, and points it at what runs beside the test.

/// What stands in for the reader's own places.
#[derive(Clone, Default)]
pub(super) struct Stands {
    /// The host of an S3 store.
    pub(super) host: String,
    /// The keys of that store: the access key and the secret one.
    pub(super) keys: (String, String),
    /// A master of SeaweedFS.
    pub(super) master: String,
    /// The directory of the page, in the place of `/mnt`.
    pub(super) place: String,
    /// The console's address.
    pub(super) console: String,
}

/// Small numbers for flags that say how much is done: what is tested is that a command works, not
/// what it measures.
const SMALL: [(&str, &str); 9] = [
    ("--duration", "1s"),
    ("--budget", "3s"),
    ("--obj.size", "4KiB"),
    ("--objects", "40"),
    ("--concurrent", "8"),
    ("--jobs", "2"),
    ("--scale", "0.00001"),
    ("-np", "2"),
    ("-n", "20"),
];

/// Flags that are added where a command does not have them, as their defaults last too long.
const ADDED: [(&str, &[&str]); 15] = [
    ("loadline weed", &["--objects", "--budget"]),
    ("loadline s3", &["--objects", "--obj.size", "--budget"]),
    ("loadline file", &["--file-size 4MiB", "--budget", "--jobs 1"]),
    ("loadline", &["--budget"]),
    ("s3 get", &["--objects", "--obj.size", "--duration"]),
    ("s3 mixed", &["--objects", "--obj.size", "--duration"]),
    ("s3 put", &["--obj.size", "--duration"]),
    ("check", &["--duration"]),
    ("weed", &["--duration"]),
    ("file suite", &["--duration", "--scale", "--jobs", "--iterations 1"]),
    ("file metadata", &["--files 20"]),
    ("file", &["--duration", "--file-size 4MiB"]),
    ("as warp get", &["--objects", "--obj.size", "--duration"]),
    ("as warp mixed", &["--objects", "--obj.size", "--duration"]),
    ("as weed-benchmark", &["-n 20"]),
];

/// The most operations a second that a page's command is to offer here.
const RATE_MAX: u64 = 100;

/// Splits a line of a shell at its blanks, quotes kept as they are; a comment ends it.
fn raw_words(line: &str) -> Vec<&str> {
    let (mut words, mut from, mut quote) = (Vec::new(), None, None);
    for (at, sign) in line.char_indices() {
        match (quote, sign) {
            (Some(open), _) if sign == open => quote = None,
            (None, '\'' | '"') => quote = Some(sign),
            (None, '#') if from.is_none() => return words,
            (None, ' ') => words.extend(from.take().map(|from| &line[from..at])),
            _ => {}
        }
        if sign != ' ' || quote.is_some() {
            from.get_or_insert(at);
        }
    }
    words.extend(from.map(|from| &line[from..]));
    words
}

/// Returns a rate of at most `RATE_MAX`; of steps, short ones.
fn slow(rate: &str) -> String {
    let mut found = Vec::new();
    for step in rate.trim_matches('\'').split(", ") {
        let (number, rest) = step.split_once("/s").unwrap_or((step, ""));
        let number: u64 = number.parse().unwrap_or(RATE_MAX);
        let lasting = if rest.contains("for") { " for 300ms" } else { "" };
        found.push(format!("{}/s{lasting}", number.min(RATE_MAX)));
    }
    format!("'{}'", found.join(", "))
}

/// Returns an event that comes in the first second: the first one after 100 ms.
fn soon(event: &str, number: usize) -> String {
    let quote = if event.starts_with('\'') { "'" } else { "" };
    let (_, command) = event.split_once(':').unwrap();
    format!("{quote}{}ms:{command}", 100 + 200 * number)
}

/// Returns what a flag says here, where that differs from what the page says.
fn value_here(flag: &str, value: &str, stands: &Stands, events: &mut usize) -> Option<String> {
    if let Some((_, small)) = SMALL.iter().find(|(name, _)| *name == flag) {
        return Some((*small).to_owned());
    }
    match flag {
        "--host" => Some(stands.host.clone()),
        "--master" | "-master" => Some(stands.master.clone()),
        "--rate" => Some(slow(value)),
        "--warp-client" => Some("client-1".to_owned()),
        "--event" => {
            *events += 1;
            Some(soon(value, *events - 1))
        }
        _ => None,
    }
}

/// Returns a line of a page as it runs here: pointed at `stands`, and short.
pub(super) fn cut(line: &str, stands: &Stands) -> String {
    let (mut words, mut events) = (Vec::<String>::new(), 0);
    for word in raw_words(line) {
        let before = words.last().cloned().unwrap_or_default();
        let here = match word.split_once('=') {
            Some(("PLIMSOLL_HOST", _)) => Some(format!("PLIMSOLL_HOST={}", stands.host)),
            // The harness gives those of the store that stands in.
            Some(("PLIMSOLL_ACCESS_KEY" | "PLIMSOLL_SECRET_KEY", _)) => Some(String::new()),
            Some((flag, value)) if flag.starts_with('-') => {
                value_here(flag, value, stands, &mut events).map(|value| format!("{flag}={value}"))
            }
            _ => value_here(&before, word, stands, &mut events),
        };
        words.push(here.unwrap_or_else(|| word.to_owned()));
    }
    let line = with_added(words)
        .join(" ")
        .replace("-a KEY -s SECRET", &format!("-a {} -s {}", stands.keys.0, stands.keys.1))
        .replace("-d 10 -z 1M -l 2", "-d 1 -z 64K -l 1");
    pointed(&line, stands)
}

/// Returns a text of a page with the reader's own places replaced by those that stand in.
pub(super) fn pointed(text: &str, stands: &Stands) -> String {
    text.replace("/mnt/", &format!("{}/mnt/", stands.place))
        .replace("s3.example.com:9000", &stands.host)
        .replace("http://127.0.0.1:9000", &format!("http://{}", stands.host))
        .replace("127.0.0.1:19088", &stands.console)
}

fn with_added(mut words: Vec<String>) -> Vec<String> {
    if words.first().is_none_or(|word| word != "plimsoll") {
        return words;
    }
    let rest = words[1..].join(" ");
    let is_of = |prefix: &str| rest == prefix || rest.starts_with(&format!("{prefix} "));
    let Some((prefix, flags)) = ADDED.iter().find(|(prefix, _)| is_of(prefix)) else {
        return words;
    };
    let mut at = 1 + prefix.split(' ').count();
    // Behind the whole name of the benchmark.
    while words.get(at).is_some_and(|word| word.chars().all(|sign| sign.is_ascii_lowercase())) {
        at += 1;
    }
    for flag in *flags {
        let (name, value) = flag.split_once(' ').unwrap_or((flag, ""));
        if words.iter().any(|word| word == name || word.starts_with(&format!("{name}="))) {
            continue;
        }
        let small = SMALL.iter().find(|(of, _)| *of == name).map_or(value, |(_, small)| small);
        words.insert(at, format!("{name} {}", if value.is_empty() { small } else { value }));
    }
    words
}

#[test]
fn a_command_is_cut_and_pointed_at_the_test() {
    let stands = Stands {
        host: "127.0.0.1:7".to_owned(),
        master: "127.0.0.1:8".to_owned(),
        keys: ("k".to_owned(), "s".to_owned()),
        place: "/tmp/p".to_owned(),
        console: "127.0.0.1:9".to_owned(),
    };
    let check = |line: &str, expected: &str| assert_eq!(cut(line, &stands), expected);
    check(
        "plimsoll s3 get --host 's3-{1...4}:9000'  --duration 5m --slo 'a b'   # for long",
        "plimsoll s3 get --obj.size 4KiB --objects 40 --host 127.0.0.1:7 --duration 1s --slo 'a b'",
    );
    check(
        "plimsoll as warp get --host=x:1 --obj.size=1MiB --objects=9 --duration=1m",
        "plimsoll as warp get --host=127.0.0.1:7 --obj.size=4KiB --objects=40 --duration=1s",
    );
    check(
        "plimsoll run w.yml --rate '500/s for 1m, 20/s for 1m' --event 1m:'ssh a b' --event '3m:c d'",
        "plimsoll run w.yml --rate '100/s for 300ms, 20/s for 300ms' --event 100ms:'ssh a b' \
         --event '300ms:c d'",
    );
    check(
        "plimsoll loadline file iops --dir /mnt/fs",
        "plimsoll loadline file iops --jobs 1 --budget 3s --file-size 4MiB --dir /tmp/p/mnt/fs",
    );
    check("export PLIMSOLL_HOST='a b' X=1", "export PLIMSOLL_HOST=127.0.0.1:7 X=1");
    check("curl http://127.0.0.1:19088/x | cat", "curl http://127.0.0.1:9/x | cat");
}
