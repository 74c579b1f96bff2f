//! What mdtest prints (4.1), and ours of it: the same tables, without what is MPI's.

use super::{Node, lines, one_of};
use Node::{Either, Line, Many, Maybe};

/// Returns the model of a run, up to the line that says when it ended.
pub fn mdtest_text() -> Vec<Node> {
    let mut all = lines(&["-- started at <slashes> <clock> --", ""]);
    all.extend([
        one_of(&[
            "mdtest-<word> was launched with <int> total task(s) on <int> node(s)",
            "plimsoll-<word> as mdtest was launched with <int> total task(s) on <int> node(s)",
        ]),
        Line("Command line used: <text>"),
        Maybe(vec![Line(
            "WARNING: Read bytes is 0, thus, a read test will actually just open/close",
        )]),
        Maybe(vec![Line("Nodemap: <int>")]),
        Line("Path                : <text>"),
        Maybe(vec![one_of(&[
            "FS                  : <f1> GiB   Used FS: <share>   Inodes: <f1> Mi   Used Inodes: \
             <share>",
            "FS                  : <f1> TiB   Used FS: <share>   Inodes: <f1> Mi   Used Inodes: \
             <share>",
        ])]),
        Maybe(vec![one_of(&[
            "V-0: Rank   <int> Line  <int> Shifting ranks by <int> for each phase.",
            "Shifting ranks by <int> for each step.",
        ])]),
        one_of(&["<int> tasks, <int> files", "<int> tasks, <int> files/directories"]),
        Maybe(iterations()),
        Maybe(table("SUMMARY rate (in ops/sec): (of <int> iterations)")),
        Maybe(vec![Either(vec![
            table("SUMMARY time (in ms/op): (of <int> iterations)"),
            table("SUMMARY time (in seconds): (of <int> iterations)"),
        ])]),
        Line("-- finished at <slashes> <clock> --"),
    ]);
    all
}

fn iterations() -> Vec<Node> {
    let rows = STEPS.map(|step| {
        Maybe(vec![Node::Made(format!("   {step:<18}: <14known> sec, <14known> ops/sec"))])
    });
    let mut one = vec![Line("iteration <int>")];
    one.extend(rows);
    let mut all = lines(&[
        "",
        "   Operation               Duration              Rate",
        "   ---------               --------              ----",
    ]);
    all.push(Many(one));
    all
}

fn table(title: &'static str) -> Vec<Node> {
    let mut all = vec![Line(""), Line(title)];
    all.extend(lines(&[
        "   Operation                     Max            Min           Mean        Std Dev",
        "   ---------                     ---            ---           ----        -------",
    ]));
    all.extend(STEPS.map(|step| {
        Maybe(vec![Node::Made(format!("   {step:<22} <14known> <14known> <14known> <14known>"))])
    }));
    all
}

const STEPS: [&str; 10] = [
    "Directory creation",
    "Directory stat",
    "Directory rename",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];
