//! What `weed benchmark` prints (4.44).

use super::{Node, lines, one_of};
use Node::{Either, Line, Many, Maybe};

/// Returns the model of a run with its stages.
///
/// The program leaves out percentiles that are those of the line before, and all of them where
/// nothing succeeded; `is_whole` has every line, and dashes where there is no time.
pub fn weed_benchmark_text(is_whole: bool) -> Vec<Node> {
    let titles = one_of(&[
        "------------ Writing Benchmark ----------",
        "------------ Randomly Reading Benchmark ----------",
        "------------ Sequentially Reading Benchmark ----------",
    ]);
    let progress = Line("Completed <int> of <int> requests, <f1>% <f1>/s <f1>MB/s");
    let mut stage = vec![Line(""), titles, Maybe(vec![Many(vec![progress])])];
    stage.extend(report(is_whole));
    vec![Line("This is SeaweedFS version <text> <os> <arch>"), Many(stage)]
}

fn report(is_whole: bool) -> Vec<Node> {
    let mut all =
        lines(&["", "Concurrency Level:      <int>", "Time taken for tests:   <f3> seconds"]);
    all.push(match is_whole {
        true => one_of(&["Completed requests:      <int>", "Complete requests:      <int>"]),
        false => Line("Completed requests:      <int>"),
    });
    all.extend(lines(&[
        "Failed requests:        <int>",
        "Total transferred:      <int> bytes",
        "Requests per second:    <f2> [#/sec]",
        "Transfer rate:          <f2> [Kbytes/sec]",
        "",
        "Connection Times (ms)",
        "              min      avg        max      std",
    ]));
    let of = |percent: &str, time: &str| {
        let line = format!("  {percent:>3}%    {time} ms");
        if is_whole { Node::Made(line) } else { Maybe(vec![Node::Made(line)]) }
    };
    let times = |time: &str| PERCENTS.map(|percent| of(percent, time)).to_vec();
    let total = Line("Total:        <2f1>      <3f1>       <3f1>      <3f1>");
    let head = lines(&["", "Percentage of the requests served within a certain time (ms)"]);
    let some = [vec![total], head.clone(), times("<5f1>")].concat();
    let none = match is_whole {
        true => {
            let total = Line("Total:         –        –         –        –");
            [vec![total], head, times("    –")].concat()
        }
        false => {
            let total = Line("Total:        1000000.0      NaN       0.0      NaN");
            [vec![total], head].concat()
        }
    };
    all.push(Either(vec![some, none]));
    all
}

const PERCENTS: [&str; 9] = ["50", "66", "75", "80", "90", "95", "98", "99", "100"];
