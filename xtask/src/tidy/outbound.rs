//! Every outbound connection is in the table that says who names its host.

use super::source::{before_tests, is_in_src, is_test};
use super::{Tree, mask};

/// Where the tables are: of agents and commands, and of the console.
const TABLES: [(&str, &str); 2] = [
    ("docs/fleet-security.md", "## Every outbound connection"),
    ("docs/console.md", "## What it connects to"),
];

/// What opens a connection, makes what will open one, or asks for an address.
const CALLS: [&str; 10] = [
    "Client::new(",
    "ConnectOptions::new(",
    "TcpStream::connect(",
    "TcpSocket::new_v4(",
    "TcpSocket::new_v6(",
    "UdpSocket::bind(",
    "UnixStream::connect(",
    "lookup_host(",
    "to_socket_addrs(",
    "opcode::Connect",
];

/// A file that connects, and the rows of both tables that tell of it, by how they begin.
struct Connects {
    path: &'static str,
    rows: [&'static [&'static str]; 2],
}

const STORES: &str = "stores: S3, Swift";

const CONNECTS: [Connects; 17] = [
    connects("driver-s3/src/connection.rs", &["S3 endpoints", "store of a record"], &[STORES]),
    connects("driver-s3/src/server_profile.rs", &["MinIO's administration"], &[]),
    connects("driver-swift/src/lib.rs", &["Swift: account", "store of a record"], &[STORES]),
    connects("driver-swift/src/login.rs", &["Swift: sign-in"], &[STORES]),
    connects("driver-seaweed/src/calls.rs", &["SeaweedFS: masters"], &[STORES]),
    connects(
        "driver-seaweed/src/thread.rs",
        &["SeaweedFS: volume servers", "store of a record"],
        &[STORES],
    ),
    connects("driver-seaweed/src/filer/thread.rs", &["SeaweedFS: filers"], &[STORES]),
    connects("http/src/dial.rs", &["proxies", "name servers"], &["a proxy", "name servers"]),
    connects("http/src/endpoint.rs", &["name servers"], &["name servers"]),
    connects(
        "credentials/src/amazon/http_client.rs",
        &[
            "token service (STS)",
            "token service for roles",
            "single sign-on",
            "container and instance credentials",
        ],
        &["token service"],
    ),
    connects("fleet/src/nats.rs", &["NATS of a fleet"], &["NATS of the fleet"]),
    // It looks whether the server that it started listens.
    connects("fleet/src/broker.rs", &["NATS of a fleet"], &[]),
    connects("telemetry/src/scrape/fetch.rs", &["pages that are scraped"], &[]),
    connects("telemetry/src/push.rs", &["OTLP, InfluxDB"], &[]),
    // These listen: their sockets are bound, and their tests connect.
    connects("oracle/src/server.rs", &[], &[]),
    connects("seaweed-stand-in/src/listen.rs", &[], &[]),
    // The console's own files are the last row of its table.
    connects("console/src/disk.rs", &[], &["SQLite, records, archive"]),
];

const fn connects(
    path: &'static str,
    rows: &'static [&'static str],
    console: &'static [&'static str],
) -> Connects {
    Connects { path, rows: [rows, console] }
}

/// Holds the files that connect to the rows of the tables, and the rows to the files.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| is_in_src(&file.path) && !is_test(&file.path)) {
        let Some(path) = file.path.strip_prefix("crates/") else { continue };
        let split = mask::split(&file.text);
        let source = before_tests(file, &split);
        let opened = CALLS.iter().find(|call| source.contains(**call));
        // Tools of the tests connect to servers of the tests.
        if let Some(call) = opened.filter(|_| !path.starts_with("testkit/"))
            && CONNECTS.iter().all(|of| of.path != path)
        {
            findings.push(format!(
                "{}: `{call}` connects, and xtask/src/tidy/outbound.rs names no row of {} for it",
                file.path, TABLES[0].0
            ));
        }
    }
    for (at, (page, heading)) in TABLES.into_iter().enumerate() {
        let Some(text) = tree.get(page) else { continue };
        let rows = rows(text, heading);
        let told = || CONNECTS.iter().flat_map(|of| of.rows[at].iter().map(|row| (of.path, *row)));
        for (path, row) in told().filter(|(_, row)| !rows.iter().any(|of| of.starts_with(row))) {
            findings.push(format!("{page}: no row begins with `{row}`, what {path} connects to"));
        }
        for row in rows.iter().filter(|of| !told().any(|(_, row)| of.starts_with(row))) {
            findings.push(format!("{page}: nothing connects to `{row}` any more"));
        }
    }
    findings
}

/// Returns the first cells of the table below a heading.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, section) = text.split_once(heading).unwrap_or_default();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_connects_is_in_the_tables_and_nothing_else() {
        let code = "//! X.\nfn f() { Client::new(endpoints) }\n";
        let (page, heading) = TABLES[0];
        let told = CONNECTS.iter().flat_map(|of| of.rows[0]);
        let told = told.filter(|row| **row != "proxies").map(|row| format!("| {row} to | x |\n"));
        let told: String = told.collect();
        let table = format!("{heading}\n\n| to | x |\n|---|---|\n{told}| gone | x |\n\nText.\n");
        let tree = Tree::of(&[
            ("crates/http/src/dial.rs", code),
            ("crates/b/src/lib.rs", code),
            ("crates/c/src/tests.rs", code),
            (page, &table),
        ]);
        let expected = [
            format!(
                "crates/b/src/lib.rs: `Client::new(` connects, and xtask/src/tidy/outbound.rs \
                 names no row of {page} for it"
            ),
            format!("{page}: no row begins with `proxies`, what http/src/dial.rs connects to"),
            format!("{page}: nothing connects to `gone` any more"),
        ];
        assert_eq!(check(&tree), expected);
    }
}
