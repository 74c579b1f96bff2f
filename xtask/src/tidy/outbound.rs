//! Every outbound connection is in the table that says who names its host.

use std::collections::BTreeSet;

use super::source::{before_tests, is_in_src, is_test};
use super::{Tree, mask};

/// Where the table is; its last column names the crate that connects.
const TABLE: &str = "docs/fleet-security.md";
const HEADING: &str = "## Every outbound connection";

/// What opens a connection, or makes what will open one.
const CALLS: [&str; 5] = [
    "Client::new(",
    "ConnectOptions::new(",
    "TcpStream::connect(",
    "UdpSocket::bind(",
    "lookup_host(",
];

/// Holds the crates that connect to those of the table.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut connect = BTreeSet::new();
    for file in tree.rust().filter(|file| is_in_src(&file.path) && !is_test(&file.path)) {
        let Some((name, _)) =
            file.path.strip_prefix("crates/").and_then(|path| path.split_once('/'))
        else {
            continue;
        };
        let split = mask::split(&file.text);
        let lines = before_tests(file, &split).lines().count();
        let is_opened = |line: &str| CALLS.iter().any(|call| line.contains(call));
        // Tools of the tests connect to servers of the tests.
        if name != "testkit" && split.code.lines().take(lines).any(is_opened) {
            connect.insert(name);
        }
    }
    let named = named(tree.get(TABLE).unwrap_or_default());
    let missing = connect.difference(&named).map(|name| {
        format!("{TABLE}: no outbound connection is in the table that crate {name} makes")
    });
    let gone = named.difference(&connect);
    let gone = gone.map(|name| format!("{TABLE}: crate {name} of the table connects to nothing"));
    missing.chain(gone).collect()
}

/// Returns the crates that the table names.
fn named(text: &str) -> BTreeSet<&str> {
    let (_, section) = text.split_once(HEADING).unwrap_or_default();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit('|').next())
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_connects_is_in_the_table_and_no_other() {
        let code = "//! X.\nfn f() { Client::new(endpoints) }\n";
        let table = format!("{HEADING}\n\n| to | in |\n|---|---|\n| a | `a`, `gone` |\n\nText.\n");
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", code),
            ("crates/b/src/lib.rs", code),
            ("crates/c/src/tests.rs", code),
            (TABLE, &table),
        ]);
        let expected = [
            format!("{TABLE}: no outbound connection is in the table that crate b makes"),
            format!("{TABLE}: crate gone of the table connects to nothing"),
        ];
        assert_eq!(check(&tree), expected);
    }
}
