//! The command line as it is kept with a run: made from what was parsed, so that a secret is known
//! by its type and not by how its flag was written.

use std::any::TypeId;
use std::ffi::OsStr;
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_dialects::{s3_benchmark, warp};
use plimsoll_model::{REDACTED, redacted};

use crate::args::outages::EventArg;
use crate::secret::Secret;

/// The program's own name.
const PROGRAM: &str = "plimsoll";

/// Flags of the type of secrets whose values are addresses, of which only parts are secret.
const ADDRESSES: &[&str] = &["scrape"];

/// A shorter secret would take letters out of other words.
const SECRET_CHARS_MIN: usize = 4;

static LINE: OnceLock<Vec<String>> = OnceLock::new();
/// What flags of the type of secrets were given, on the command line or by the environment.
static SECRETS: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the command line of this process.
pub(crate) fn keep(command: &Command, matches: &ArgMatches) {
    let _ = SECRETS.set(secrets(command, matches));
    let _ = LINE.set(without_secrets(command, matches));
}

/// Returns a text of the user's own, such as a command for the shell, without the secrets that this
/// command was given and without users and passwords of URLs.
pub(crate) fn without_known_secrets(text: &str) -> String {
    hidden(text, SECRETS.get().map_or(&[][..], Vec::as_slice))
}

fn hidden(text: &str, secrets: &[String]) -> String {
    let text = redacted(text, secrets.iter().map(String::as_str));
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, behind)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let ends = |c: char| c.is_whitespace() || "/?#'\"".contains(c);
        let end = behind.find(ends).unwrap_or(behind.len());
        rest = match behind[..end].rsplit_once('@') {
            Some((user, _)) => {
                out.push_str(REDACTED);
                &behind[user.len()..]
            }
            None => behind,
        };
    }
    out + rest
}

/// Returns the secrets of a parsed command line and of the environment.
fn secrets(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let is_secret = |arg: &&Arg| arg.get_value_parser().type_id() == TypeId::of::<Secret>();
    let of = |arg: &Arg| {
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = command.get_arguments().filter(is_secret).flat_map(of).collect();
    all.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
    // A secret may be a part of another.
    all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    if let Some((name, below)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        all.extend(secrets(command, below));
    }
    all
}

/// Returns the command line of this process without its secrets.
pub(crate) fn command_line() -> Vec<String> {
    LINE.get().cloned().unwrap_or_else(|| vec![PROGRAM.to_owned()])
}

/// Tells whether a flag of ours was typed, and not taken from the environment.
pub(crate) fn is_typed(flag: &str) -> bool {
    let is_flag = |word: &String| {
        word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    command_line().iter().any(is_flag)
}

/// Returns the words of a parsed command line in their order, without its secrets.
fn without_secrets(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut words = vec![PROGRAM.to_owned()];
    let (mut command, mut matches) = (command, matches);
    let mut path: Vec<&str> = Vec::new();
    loop {
        let mut given: Vec<TypedFlag> =
            command.get_arguments().flat_map(|arg| given(arg, matches, &path)).collect();
        given.sort_by_key(|given| given.index);
        words.extend(given.into_iter().flat_map(|given| given.words));
        let Some((name, below)) = matches.subcommand() else { return words };
        words.push(name.to_owned());
        path.push(name);
        let Some(known) = command.find_subcommand(name) else {
            // Another tool's command line, as a subcommand that is not ours.
            let rest = std::iter::once(name.to_owned()).chain(texts(below, ""));
            let rest = foreign(&path, rest.collect());
            words.extend(rest.into_iter().skip(1));
            return words;
        };
        (command, matches) = (known, below);
    }
}

/// An argument as it was given once.
struct TypedFlag {
    /// Where it stood.
    index: usize,
    words: Vec<String>,
}

fn given(arg: &Arg, matches: &ArgMatches, path: &[&str]) -> Vec<TypedFlag> {
    let id = arg.get_id().as_str();
    if !matches!(matches.value_source(id), Some(ValueSource::CommandLine)) {
        return Vec::new();
    }
    let mut indices = matches.indices_of(id).into_iter().flatten();
    let Some(occurrences) = matches.get_raw_occurrences(id) else { return Vec::new() };
    if arg.is_positional() {
        let texts: Vec<String> = occurrences.flatten().map(text).collect();
        let texts = foreign(path, texts);
        return vec![TypedFlag { index: indices.next().unwrap_or_default(), words: texts }];
    }
    let flag = arg.get_long().map_or_else(
        || arg.get_short().map(|short| format!("-{short}")).unwrap_or_default(),
        |long| format!("--{long}"),
    );
    let is_secret = arg.get_value_parser().type_id() == TypeId::of::<Secret>();
    let is_event = arg.get_value_parser().type_id() == TypeId::of::<EventArg>();
    let mut all = Vec::new();
    for occurrence in occurrences {
        let read = |value: &OsStr| match is_event {
            true => value.to_string_lossy().into_owned(),
            false => text(value),
        };
        let values: Vec<String> = occurrence.map(read).collect();
        let index = indices.by_ref().take(values.len().max(1)).next().unwrap_or_default();
        let values: Vec<String> = match is_event {
            true => values.iter().map(|value| without_known_secrets(value)).collect(),
            false => values,
        };
        let value = values.join(&arg.get_value_delimiter().unwrap_or(' ').to_string());
        let words = match arg.get_action() {
            ArgAction::Set | ArgAction::Append if ADDRESSES.contains(&id) => {
                vec![flag.clone(), address(&value)]
            }
            ArgAction::Set | ArgAction::Append if is_secret => {
                vec![flag.clone(), REDACTED.to_owned()]
            }
            ArgAction::Set | ArgAction::Append if value.starts_with('-') || value.is_empty() => {
                vec![format!("{flag}={value}")]
            }
            ArgAction::Set | ArgAction::Append => vec![flag.clone(), value],
            _ => vec![flag.clone()],
        };
        all.push(TypedFlag { index, words });
    }
    all
}

/// Returns the words of another tool's command line without its secrets, which only that tool's own
/// reading of them tells apart.
fn foreign(path: &[&str], words: Vec<String>) -> Vec<String> {
    match path {
        ["as", "s3-benchmark"] => s3_benchmark::without_secrets(&words),
        ["as", "warp", ..] => warp::without_secrets(&words),
        _ => words,
    }
}

fn texts(matches: &ArgMatches, id: &str) -> Vec<String> {
    matches.get_raw(id).into_iter().flatten().map(text).collect()
}

/// Returns a value of a flag as a refusal of it may show it.
pub(crate) fn refused(value: &str) -> String {
    let shown = text(OsStr::new(value));
    if shown.contains("://") { address(&shown) } else { shown }
}

/// Returns a value, without the user and password of a URL.
fn text(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    let Some((scheme, rest)) = text.split_once("://") else { return text.into_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{REDACTED}@{host}{}", &rest[end..]),
        None => text.into_owned(),
    }
}

/// Returns an address, already without its user, without the values of its query as well; nothing
/// of what does not look like an address.
fn address(shown: &str) -> String {
    let (page, query) = match shown.split_once(['?', '#']) {
        Some((page, query)) => (page, Some(query)),
        None => (shown, None),
    };
    let host = page.split_once("://").map(|(_, rest)| rest.strip_prefix(REDACTED).unwrap_or(rest));
    let is_plain = host.is_some_and(|host| !host.strip_prefix('@').unwrap_or(host).contains('@'));
    match query {
        _ if !is_plain => REDACTED.to_owned(),
        // A password may hold what ends a page.
        Some(query) if query.contains('@') => REDACTED.to_owned(),
        None => page.to_owned(),
        Some(_) => format!("{page}?{REDACTED}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn kept(line: &str) -> String {
        let command = Cli::command();
        let matches = command.clone().try_get_matches_from(line.split(' ')).unwrap();
        without_secrets(&command, &matches).join(" ")
    }

    #[test]
    fn no_form_of_a_secret_flag_gives_its_value_away() {
        assert_eq!(
            kept(
                "plimsoll s3 get --secret-key=S1 --access-key S2 --host h --session-token=--x \
                 --sts-web-token ey.J --influxdb=http://T@h:1/b/o --otlp http://h/?key=K --md5"
            ),
            "plimsoll s3 get --secret-key *REDACTED* --access-key *REDACTED* --host h \
             --session-token *REDACTED* --sts-web-token *REDACTED* --influxdb *REDACTED* \
             --otlp *REDACTED* --md5"
        );
    }

    #[test]
    fn of_the_address_of_a_page_only_what_is_secret_is_hidden() {
        for (given, shown) in [
            ("http://h:9/metrics", "http://h:9/metrics"),
            ("https://T0KEN@h/m", "https://*REDACTED*@h/m"),
            ("http://u:T0KEN@h?k=T0KEN&l", "http://*REDACTED*@h?*REDACTED*"),
            ("http://h/m#T0KEN", "http://h/m?*REDACTED*"),
            ("http://u:T0/KEN@h", "*REDACTED*"),
            ("http://u:T0?KEN@h", "*REDACTED*"),
            ("T0KEN", "*REDACTED*"),
            ("-T0KEN", "*REDACTED*"),
        ] {
            for flag in [format!("--scrape={given}"), format!("--host h --scrape={given}")] {
                let kept = kept(&format!("plimsoll s3 get {flag}"));
                assert!(kept.ends_with(&format!(" --scrape {shown}")), "{given}: {kept}");
            }
        }
    }

    #[test]
    fn a_command_of_the_users_own_keeps_no_secret_that_is_known() {
        let secrets = ["S3CRETKEY".to_owned()];
        for (text, kept) in [
            ("kill -9 7", "kill -9 7"),
            ("X=S3CRETKEY aws", "X=*REDACTED* aws"),
            (
                "curl http://u:p@h/a 'https://v@i'",
                "curl http://*REDACTED*@h/a 'https://*REDACTED*@i'",
            ),
            ("curl http://h/a@b me@c", "curl http://h/a@b me@c"),
        ] {
            assert_eq!(hidden(text, &secrets), kept);
        }
        assert_eq!(
            kept("plimsoll s3 get --secret-key S1 --event 1s:http://u:p@h --event 2s:true"),
            "plimsoll s3 get --secret-key *REDACTED* --event 1s:http://*REDACTED*@h --event 2s:true"
        );
    }

    #[test]
    fn another_tools_secrets_are_those_that_it_reads_itself() {
        assert_eq!(
            kept("plimsoll as s3-benchmark --json -a A1 -s=S1 --s -S2 -u http://h -b b"),
            "plimsoll as s3-benchmark --json -a *REDACTED* -s=*REDACTED* --s *REDACTED* -u http://h -b b"
        );
        assert_eq!(
            kept("plimsoll as warp get -access-key=A1 -secret-key S1 --host h -tls"),
            "plimsoll as warp get -access-key=*REDACTED* -secret-key *REDACTED* --host h -tls"
        );
        assert_eq!(
            kept("plimsoll as warp run f.yml -var SecretKey=S1 --var=Host=h"),
            "plimsoll as warp run f.yml -var SecretKey=*REDACTED* --var=Host=*REDACTED*"
        );
        // A dash that was left out.
        assert_eq!(
            kept("plimsoll as s3-benchmark -a A1 s S1"),
            "plimsoll as s3-benchmark -a *REDACTED* *REDACTED* *REDACTED*"
        );
        // A switch that is not warp's but ours.
        assert_eq!(
            kept("plimsoll as warp get --fail-on-client-limit --concurrent 4"),
            "plimsoll as warp get --fail-on-client-limit --concurrent 4"
        );
        assert_eq!(
            kept("plimsoll as warp get -nonsense=S1"),
            "plimsoll as warp get -nonsense=*REDACTED*"
        );
        assert_eq!(kept("plimsoll as fio a.fio -s S1"), "plimsoll as fio a.fio -s S1");
    }

    #[test]
    fn order_repetition_and_lists_are_as_typed() {
        for line in [
            "plimsoll s3 put --tag a=b --concurrent 3 --tag c=d --quiet",
            "plimsoll analyze one two --json",
            "plimsoll compare a b --gate p99<=+5%",
            "plimsoll file iops --dir /x --dir /y --op read",
        ] {
            assert_eq!(kept(line), line);
        }
        assert_eq!(
            kept("plimsoll check http://u:SECRET@h/b"),
            "plimsoll check http://*REDACTED*@h/b"
        );
    }
}
