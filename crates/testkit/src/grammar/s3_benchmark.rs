//! What s3-benchmark (Wasabi) prints, and what it writes into its log.

use super::Node;
use Node::{Line, Many};

/// Returns the model of a whole run. A store without versions has one test less (`LISTver`), which
/// the program itself does not know.
pub fn s3_benchmark_text() -> Vec<Node> {
    let mut all = vec![Line("Wasabi benchmark program v2.0")];
    all.extend(logged(""));
    all
}

/// Returns the model of the log of a run, which lacks the first line.
pub fn s3_benchmark_log() -> Vec<Node> {
    logged("<weekday>, <int> <month> <int> <clock> GMT: ")
}

fn logged(date: &str) -> Vec<Node> {
    let line = |line: &str| Node::Made(format!("{date}{line}"));
    let moved = |name: &str| {
        line(&format!(
            "Loop <int>: {name} time <f1> secs, objects = <int>, speed = <s3size>B/sec, <f1> \
             operations/sec. Slowdowns = <int>"
        ))
    };
    let listed = |name: &str| {
        line(&format!(
            "Loop <int>: {name} time <f1> secs, ops = <int>, speed = <f1> rows/sec, <f1> \
             operations/sec. Slowdowns = <int>"
        ))
    };
    let versions =
        Node::Either(vec![vec![listed("LISTver")], vec![line("Loop <int>: LISTver not offered")]]);
    let parameters = "Parameters: url=<word>, bucket=<word>, region=<word>, duration=<int>, \
                      threads=<int>, loops=<int>, size=<word>";
    let deleted = "Loop <int>: DELETE time <f1> secs, <f1> deletes/sec. Slowdowns = <int>";
    vec![
        line(parameters),
        Many(vec![moved("PUT"), moved("GET"), listed("LIST2"), versions, line(deleted)]),
    ]
}
