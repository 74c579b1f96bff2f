//! warp's default report, as a benchmark prints it and as `warp analyze` does.

use super::{Node, one_of};

/// Returns the model of warp's default report, as a benchmark prints it (`details`: with
/// `--analyze.v`), without the empty lines around it.
pub fn warp_report(details: bool) -> Vec<Node> {
    use Node::{Either, Line, Many, Maybe};
    let rule = || ["", "──────────────────────────────────", ""].map(Line);
    let block = Either(vec![warp_figures(details), warp_skipped()]);
    let more = rule().into_iter().chain([block.clone()]).collect();
    let total = [Line("")].into_iter().chain(rule()).chain([block.clone()]).collect();
    vec![block, Maybe(vec![Many(more)]), Either(vec![total, vec![Line("")]])]
}

fn warp_skipped() -> Vec<Node> {
    use Node::{Line, Many, Maybe};
    let first = Maybe(vec![Line("- First Errors:"), Many(vec![Line(" * <text>")])]);
    vec![
        Line(
            "Skipping <word> too few samples. Longer benchmark run required for reliable results.",
        ),
        Line(""),
        Maybe(vec![Line("Errors: <int>"), first, Line("")]),
    ]
}

fn warp_figures(details: bool) -> Vec<Node> {
    use Node::{Either, Line, Many, Maybe};
    let first = Maybe(vec![Line(" - First Errors:"), Many(vec![Line("   * <text>")])]);
    let requests = || vec![Line(WARP_REQUESTS), Maybe(vec![Line(WARP_TTFB)])];
    let class = vec![Line(""), Line(WARP_CLASS), Line(WARP_SPEEDS), Maybe(vec![Line(WARP_TTFB)])];
    let client = |lines: Vec<Node>| {
        let more = Maybe(requests().into_iter().chain([Line("")]).collect());
        Many(lines.into_iter().chain([more]).collect())
    };
    let at = usize::from(details);
    let mut all = match details {
        false => vec![Line("Report: <word>. Concurrency: <int>. Ran: <time>")],
        true => vec![
            Line("Report: <word> (<int> reqs). Ran Duration: <time>, starting <clock> <word>"),
            one_of(&WARP_OBJECTS),
        ],
    };
    all.extend([
        one_of(&WARP_AVERAGE[at]),
        Maybe(vec![Line(" * Errors: <int>"), first]),
        Maybe(vec![Either(vec![requests(), vec![Many(class)]])]),
        Line(""),
        Maybe(vec![Line("Throughput by host:"), Many(vec![one_of(&WARP_HOST[at])]), Line("")]),
        Maybe(vec![
            Line("Throughput by client:"),
            client(vec![one_of(&WARP_CLIENT[at])]),
            Line(""),
        ]),
        Line("Throughput, split into <int> x 1s:"),
    ]);
    all.extend(WARP_SEGMENTS[at].iter().map(|lines| one_of(lines)));
    all
}

const WARP_REQUESTS: &str = " * Reqs: Avg: <f1>ms, 50%: <f1>ms, 90%: <f1>ms, 99%: <f1>ms, \
                             Fastest: <f1>ms, Slowest: <f1>ms, StdDev: <f1>ms";
const WARP_TTFB: &str = " * TTFB: Avg: <time>, Best: <time>, 25th: <time>, Median: <time>, 75th: \
                         <time>, 90th: <time>, 99th: <time>, Worst: <time> StdDev: <time>";
const WARP_CLASS: &str = "Request size <int><word> -> <int><word> . Requests: <int>";
const WARP_SPEEDS: &str = " * Reqs: Avg: <speed>, 50%: <speed>, 90%: <speed>, 99%: <speed>, \
                           Fastest: <speed>, Slowest: <speed> ";
const WARP_OBJECTS: [&str; 4] = [
    " * Objects per request: <int>. Size: <int> bytes. Concurrency: <int>.",
    " * Objects per request: <int>. Concurrency: <int>.",
    " * Objects per request: <int>. Size: <int> bytes. Concurrency: <int>. <text>: <int>.",
    " * Objects per request: <int>. Concurrency: <int>. <text>: <int>.",
];
/// Without details, and with them; so in what follows.
const WARP_AVERAGE: [[&str; 4]; 2] = [
    [
        " * Average: <f2> MiB/s, <f2> obj/s",
        " * Average: <f2> obj/s",
        " * Average: <f2> MiB/s, <f2> obj/s, <int> errors",
        " * Average: <f2> obj/s, <int> errors",
    ],
    [
        " * Average: <f2> MiB/s, <f2> obj/s (<int>s)",
        " * Average: <f2> obj/s (<int>s)",
        " * Average: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s)",
        " * Average: <f2> obj/s, <int> errors (<int>s)",
    ],
];
const WARP_HOST: [[&str; 4]; 2] = [
    [
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s",
        " * <word>: Avg: <f2> obj/s",
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s, <int> errors - Errors: <int>",
        " * <word>: Avg: <f2> obj/s, <int> errors - Errors: <int>",
    ],
    [
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s (<int>s)",
        " * <word>: Avg: <f2> obj/s (<int>s)",
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s) - Errors: <int>",
        " * <word>: Avg: <f2> obj/s, <int> errors (<int>s) - Errors: <int>",
    ],
];
const WARP_CLIENT: [[&str; 4]; 2] = [
    [
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s",
        "Client <int> throughput: <f2> obj/s",
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s, <int> errors",
        "Client <int> throughput: <f2> obj/s, <int> errors",
    ],
    [
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s (<int>s)",
        "Client <int> throughput: <f2> obj/s (<int>s)",
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s)",
        "Client <int> throughput: <f2> obj/s, <int> errors (<int>s)",
    ],
];
const WARP_SEGMENTS: [[[&str; 2]; 3]; 2] = [
    [
        [" * Fastest: <speed>, <f2> obj/s", " * Fastest: <f2> obj/s"],
        [" * 50% Median: <speed>, <f2> obj/s", " * 50% Median: <f2> obj/s"],
        [" * Slowest: <speed>, <f2> obj/s", " * Slowest: <f2> obj/s"],
    ],
    [
        [
            " * Fastest: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * Fastest: <f2> obj/s (1s, starting <clock> <word>)",
        ],
        [
            " * 50% Median: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * 50% Median: <f2> obj/s (1s, starting <clock> <word>)",
        ],
        [
            " * Slowest: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * Slowest: <f2> obj/s (1s, starting <clock> <word>)",
        ],
    ],
];
