//! The models of s3-benchmark, weed benchmark and mdtest, made from what they printed.

use super::Node;
use super::Node::{Either, Line, Many, Maybe};

/// Returns the model of what s3-benchmark prints.
pub fn s3_benchmark_report() -> Vec<Node> {
    let moved = |line| Line(line);
    vec![
        Line("Wasabi benchmark program v2.0"),
        Line(
            "Parameters: url=<word>, bucket=<word>, region=<word>, duration=<int>, \
             threads=<int>, loops=<int>, size=<word>",
        ),
        Many(vec![
            moved(
                "Loop <int>: PUT time <f1> secs, objects = <int>, speed = <num><size>B/sec, \
                 <f1> operations/sec. Slowdowns = <int>",
            ),
            moved(
                "Loop <int>: GET time <f1> secs, objects = <int>, speed = <num><size>B/sec, \
                 <f1> operations/sec. Slowdowns = <int>",
            ),
            moved(
                "Loop <int>: LIST2 time <f1> secs, ops = <int>, speed = <f1> rows/sec, \
                 <f1> operations/sec. Slowdowns = <int>",
            ),
            moved(
                "Loop <int>: LISTver time <f1> secs, ops = <int>, speed = <f1> rows/sec, \
                 <f1> operations/sec. Slowdowns = <int>",
            ),
            moved("Loop <int>: DELETE time <f1> secs, <f1> deletes/sec. Slowdowns = <int>"),
        ]),
    ]
}

/// Returns the model of what weed benchmark prints from its first line on.
pub fn weed_benchmark_report() -> Vec<Node> {
    let title = Either(vec![
        vec![Line("------------ Writing Benchmark ----------")],
        vec![Line("------------ Randomly Reading Benchmark ----------")],
    ]);
    let progress = Line("Completed <int> of <int> requests, <f1>% <f1>/s <f1>MB/s");
    let stage = vec![
        title,
        Maybe(vec![Many(vec![progress])]),
        Line(""),
        Line("Concurrency Level:      <int>"),
        Line("Time taken for tests:   <f3> seconds"),
        Line("Completed requests:      <int>"),
        Line("Failed requests:        <int>"),
        Line("Total transferred:      <int> bytes"),
        Line("Requests per second:    <f2> [#/sec]"),
        Line("Transfer rate:          <f2> [Kbytes/sec]"),
        Line(""),
        Line("Connection Times (ms)"),
        Line("              min      avg        max      std"),
        Line("Total:<gap><f1><gap><f1><gap><f1><gap><f1>"),
        Line(""),
        Line("Percentage of the requests served within a certain time (ms)"),
        Many(vec![Line("<gap><int>%<gap><f1> ms")]),
    ];
    let more = [Line("")].into_iter().chain(stage.clone()).collect();
    let first = [Line("This is SeaweedFS version <text>"), Line("")];
    first.into_iter().chain(stage).chain([Maybe(vec![Many(more)])]).collect()
}

/// Returns the model of what mdtest prints, or with `ours` of what stands in its place here: the
/// program's own name, no map of nodes, and no line of mdtest's source.
pub fn mdtest_report(ours: bool) -> Vec<Node> {
    let rows = || Many(vec![Line("   <label><gap><f3> <gap><f3> <gap><f3> <gap><f3>")]);
    let table = |title| {
        vec![
            Line(""),
            Line(title),
            Line(
                "   Operation                     Max            Min           Mean        Std Dev",
            ),
            Line(
                "   ---------                     ---            ---           ----        -------",
            ),
            rows(),
        ]
    };
    let before = [
        Line("-- started at <date> <clock> --"),
        Line(""),
        match ours {
            false => Line("mdtest-<word> was launched with <int> total task(s) on <int> node(s)"),
            true => Line(
                "plimsoll-<word> as mdtest was launched with <int> total task(s) on <int> node(s)",
            ),
        },
        Line("Command line used: <text>"),
        Maybe(vec![Line(
            "WARNING: Read bytes is 0, thus, a read test will actually just open/close",
        )]),
        Maybe(if ours { Vec::new() } else { vec![Line("Nodemap: <int>")] }),
        Line("Path                : <text>"),
        Line(
            "FS                  : <f1> <word>   Used FS: <f1>%   Inodes: <f1> <word>   \
             Used Inodes: <f1>%",
        ),
        Maybe(vec![match ours {
            false => Line("V-0: Rank   0 Line  <int> Shifting ranks by <int> for each phase."),
            true => Line("Shifting ranks by <int> for each step."),
        }]),
        Either(vec![
            vec![Line("<int> tasks, <int> files/directories")],
            vec![Line("<int> tasks, <int> files")],
        ]),
    ];
    before
        .into_iter()
        .chain(table("SUMMARY rate (in ops/sec): (of <int> iterations)"))
        .chain([Maybe(table("SUMMARY time (in ms/op): (of <int> iterations)"))])
        .chain([Line("-- finished at <date> <clock> --"), Maybe(vec![Line("")])])
        .collect()
}
