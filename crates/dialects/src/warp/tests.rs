//! What warp's command lines and files come to.

mod arguments;
mod clients;
mod every_flag;
mod run;
mod yaml;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn no_text_makes_it_fail_otherwise_than_with_an_error(
        words in prop::collection::vec(
            "(-{0,3}(objects|tls|obj.size|tag|host|é)?(=\\PC{0,6})?)|\\PC{0,6}",
            0..6,
        ),
        rest in "( {1,3}(params|obj|size|host|tls)?:? ?\\PC{0,8}\n){0,5}",
    ) {
        let get: Vec<String> = ["get".to_owned()].into_iter().chain(words).collect();
        let _ = from_args(&get, &NOTHING);
        let text = format!("warp:\n  api: v1\n  benchmark: get\n{rest}");
        let _ = from_yaml(&text, &[], &NOTHING);
        let _ = from_yaml(&text, &[("A".to_owned(), rest)], &NOTHING);
    }
}

/// Where no variable is set.
const NOTHING: WarpReading<'static> = WarpReading { variable: &|_| None, hosts: &hosts };

/// Returns the hosts of a list, in which only the range `{1...4}` is known.
fn hosts(list: &str) -> Result<Vec<WarpHost>, String> {
    let mut all = Vec::new();
    for host in list.split(',') {
        let (name, has_port) = match host.split_once(':') {
            Some((name, _)) => (name, true),
            None => (host, false),
        };
        match name.split_once("{1...4}") {
            None if name.is_empty() => return Err("a host is empty".to_owned()),
            Some((before, behind)) => {
                let names = (1..=4).map(|number| format!("{before}{number}{behind}"));
                all.extend(names.map(|name| WarpHost { name, has_port }));
            }
            None => all.push(WarpHost { name: name.to_owned(), has_port }),
        }
    }
    Ok(all)
}

/// Reads a command line whose words are parted by blanks, in an environment.
fn read_in(line: &str, environment: &[(&str, &str)]) -> Result<WarpLine, LineError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let find = |name: &str| environment.iter().find(|(known, _)| *known == name);
    let variable = |name: &str| find(name).map(|(_, value)| (*value).to_owned());
    from_args(&words, &WarpReading { variable: &variable, hosts: &hosts })
}

fn read(line: &str) -> Result<WarpLine, LineError> {
    read_in(line, &[])
}

/// What every benchmark gets of its bucket where the line says nothing.
const OF_BUCKET: [&str; 3] = ["--bucket=warp-benchmark-bucket", "--create-bucket", "--keep-bucket"];

/// Returns flags with their values, but for those of the bucket that every benchmark gets.
fn joined(flags: &[(String, Option<String>)]) -> Vec<String> {
    let join = |(name, value): &(String, Option<String>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let flags = flags.iter().map(join);
    flags.filter(|flag| !OF_BUCKET.contains(&&**flag)).collect()
}

/// Returns the flags of a line, those that every line gets apart.
fn flags_in(line: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let line = read_in(line, environment).unwrap_or_else(|error| panic!("{line}: {error}"));
    let mut flags = joined(&line.flags);
    flags.retain(|flag| flag != "--proxy=env" && flag != "--host=127.0.0.1:9000");
    flags
}

fn flags(line: &str) -> Vec<String> {
    flags_in(line, &[])
}

fn error(line: &str) -> String {
    match read(line) {
        Ok(read) => panic!("{line} is taken: {read:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the notes of a line, as they are shown.
fn notes(line: &WarpLine) -> Vec<String> {
    line.notes.iter().map(Note::to_string).collect()
}
