//! fio's normal text (3.33).

use super::{Node, form, lines, one_of};
use Node::{Either, Line, Many, Maybe};

/// Returns the model of what fio prints of jobs on one machine.
///
/// How many operations a call handed over (`submit`, `complete`) may be unknown to us.
pub fn fio_text() -> Vec<Node> {
    let mut all = vec![
        sections(),
        one_of(&["fio-<word>", "plimsoll-<word>"]),
        one_of(&[
            "Starting 1 process",
            "Starting <ints> processes",
            "Starting 1 thread",
            "Starting <ints> threads",
        ]),
        Maybe(vec![Many(vec![one_of(&[
            "<word>: Laying out IO file (1 file / <int>MiB)",
            "<word>: Laying out IO files (<ints> files / total <int>MiB)",
        ])])]),
        Maybe(vec![
            Many(lines(&[
                "<word>: verify failed at file <word> offset <int>, length <int> (requested block: \
             offset=<int>, length=<int>, flags=<int>)",
                "       Expected CRC: <word>",
                "       Received CRC: <word>",
            ])),
            Maybe(vec![Line("fio: pid=<int>, err=<int>/file:<word>, func=<word>, error=<text>")]),
        ]),
        Line(""),
    ];
    all.extend(rows());
    all.push(Maybe(vec![
        Line(""),
        Line("Disk stats (read/write):"),
        Many(vec![Line(
            "  <word>: ios=<int>/<int>, merge=<int>/<int>, ticks=<int>/<int>, in_queue=<int>, \
             util=<f2>%",
        )]),
    ]));
    all
}

/// Returns the model of what fio prints of jobs on clients, without what it prints while they run.
pub fn fio_clients_text() -> Vec<Node> {
    let host = one_of(&[
        "hostname=<word>, be=<int>, <int>-bit, os=<word>, arch=<word>, fio=fio-<word>, \
         flags=<int>",
        "hostname=<word>, fio=plimsoll-<word>",
    ]);
    let begins = one_of(&[
        "<lt><word>> Starting 1 process",
        "<lt><word>> Starting <ints> processes",
        "<lt><word>> Starting 1 thread",
        "<lt><word>> Starting <ints> threads",
    ]);
    let section = vec![Line(CLIENT_SECTION), Maybe(vec![Line("<lt><word>> ...")])];
    let made = Many(vec![Line("<lt><word>> <word>: Laying out IO file (1 file / <int>MiB)")]);
    let mut client = vec![Line("<lt><word>> ")];
    client.extend(rows());
    vec![
        Many(vec![Either(vec![vec![host], section, vec![begins], vec![made]])]),
        Many(client),
        Maybe(vec![Many(row("All clients", Maybe(vec![])))]),
    ]
}

fn sections() -> Node {
    Many(vec![Line(SECTION), Maybe(vec![Line("...")])])
}

/// Rows, and then the sums of each group.
fn rows() -> Vec<Node> {
    vec![Many(row("<text>", Line(DEPTH))), Many(sums())]
}

fn row(name: &str, depth: Node) -> Vec<Node> {
    let head = |error: &str| {
        vec![Node::Made(format!(
            "{name}: (groupid=<int>, jobs=<int>): err={error}: pid=<int>: <weekday> <month> \
             <2int> <clock> <int>"
        ))]
    };
    let errors = Either(vec![
        head("<2int>"),
        head("<2int> (error=<text>)"),
        head("<2int> (file:<word>, func=<word>, error=<text>)"),
    ]);
    let sides = ["read", "write", "trim"].map(|side| Maybe(direction(side)));
    let mut all = vec![errors, Maybe(vec![Line("  Description  : [<text>]")])];
    all.extend(sides);
    all.extend(shares());
    all.push(Maybe(sync()));
    all.extend(footer(depth));
    all
}

fn direction(side: &str) -> Vec<Node> {
    let zones = if side == "write" { "; 0 zone resets" } else { "" };
    // fio leaves out the unit of the rate of all clients.
    let of = |unit: &str| {
        vec![Node::Made(format!("  {side}: IOPS=<count>, BW={unit}(<size>/<int>msec){zones}"))]
    };
    let mut all = vec![Either(vec![of("<size>/s (<dsize>/s)"), of("<bare> (<count>)")])];
    all.push(Maybe(vec![Maybe(vec![times("slat")]), times("clat"), times(" lat")]));
    for name in ["slat", "clat", "lat"] {
        all.push(Maybe(percentiles(name)));
    }
    all.push(Maybe(windows()));
    all
}

fn times(name: &str) -> Node {
    let of = |unit: &str| {
        vec![Node::Made(format!(
            "    {name} ({unit}): min=<bound>, max=<bound>, avg=<5f2>, stdev=<5f2>"
        ))]
    };
    Either(["nsec", "usec", "msec"].map(of).to_vec())
}

fn percentiles(name: &str) -> Vec<Node> {
    let of = |unit: &str| vec![Node::Made(format!("    {name} percentiles ({unit}):"))];
    vec![
        Either(["nsec", "usec", "msec"].map(of).to_vec()),
        Node::Lines("     |", form::are_fio_percentiles),
    ]
}

fn windows() -> Vec<Node> {
    vec![
        one_of(&[
            "   bw (  KiB/s): min=<5int>, max=<5int>, per=<f2>%, avg=<5f2>, stdev=<5f2>, \
             samples=<int>",
            "   bw (  MiB/s): min=<5int>, max=<5int>, per=<f2>%, avg=<5f2>, stdev=<5f2>, \
             samples=<int>",
        ]),
        Line("   iops        : min=<5int>, max=<5int>, avg=<5f2>, stdev=<5f2>, samples=<int>"),
    ]
}

fn shares() -> [Node; 3] {
    [
        Maybe(vec![Node::Lines("  lat (nsec)", |lines| form::are_fio_shares("nsec", lines))]),
        Maybe(vec![Node::Lines("  lat (usec)", |lines| form::are_fio_shares("usec", lines))]),
        Maybe(vec![Node::Lines("  lat (msec)", |lines| form::are_fio_shares("msec", lines))]),
    ]
}

fn sync() -> Vec<Node> {
    let mut all = vec![Line("  fsync/fdatasync/sync_file_range:"), times("sync")];
    all.push(Maybe(percentiles("sync")));
    all
}

fn footer(depth: Node) -> Vec<Node> {
    vec![
        Line("  cpu          : usr=<f2>%, sys=<f2>%, ctx=<int>, majf=<int>, minf=<int>"),
        Maybe(vec![Line(
            "  IO depths    : 1=<f1>%, 2=<f1>%, 4=<f1>%, 8=<f1>%, 16=<f1>%, 32=<f1>%, >=64=<f1>%",
        )]),
        Maybe(lines(&[
            "     submit    : 0=<f1>%, 4=<f1>%, 8=<f1>%, 16=<f1>%, 32=<f1>%, 64=<f1>%, >=64=<f1>%",
            "     complete  : 0=<f1>%, 4=<f1>%, 8=<f1>%, 16=<f1>%, 32=<f1>%, 64=<f1>%, >=64=<f1>%",
        ])),
        Line(
            "     issued rwts: total=<int>,<int>,<int>,<int> short=<int>,<int>,<int>,0 \
             dropped=<int>,<int>,<int>,0",
        ),
        depth,
        Maybe(vec![Line("     errors    : total=<int>, first_error=<int>/<lt><text>>")]),
    ]
}

fn sums() -> Vec<Node> {
    let of = |name: &str| {
        Maybe(vec![Node::Made(format!(
            "{name:>7}: bw=<size>/s (<dsize>/s), <size>/s-<size>/s (<dsize>/s-<dsize>/s), \
             io=<size> (<dsize>), run=<int>-<int>msec"
        ))])
    };
    let [read, write, trim] = ["READ", "WRITE", "TRIM"].map(of);
    vec![Line(""), Line("Run status group <int> (all jobs):"), read, write, trim]
}

const SECTION: &str = "<text>: (g=<int>): rw=<rw>, bs=(R) <size>-<size>, (W) <size>-<size>, \
                       (T) <size>-<size>, ioengine=<engine>, iodepth=<int>";
const CLIENT_SECTION: &str = "<lt><word>> <text>: (g=<int>): rw=<rw>, bs=(R) <size>-<size>, \
                              (W) <size>-<size>, (T) <size>-<size>, ioengine=<engine>, \
                              iodepth=<int>";
const DEPTH: &str = "     latency   : target=<int>, window=<int>, percentile=<f2>%, depth=<int>";
