//! A strict model of what another program prints: which lines there may be, in which order, and
//! what stands in each. What it does not know it refuses.

mod cosbench;
mod fio;
mod form;
mod mdtest;
mod mutations;
mod s3_benchmark;
mod weed_benchmark;

use std::collections::BTreeSet;

pub use cosbench::{
    cosbench_config_refusal, cosbench_histogram, cosbench_history, cosbench_scripts_log,
    cosbench_summary, cosbench_time_line, cosbench_worker_table, cosbench_workloads,
};
pub use fio::{fio_clients_text, fio_text};
pub use mdtest::mdtest_text;
pub use mutations::refuse_mutations;
pub use s3_benchmark::{s3_benchmark_log, s3_benchmark_text};
pub use weed_benchmark::weed_benchmark_text;

/// One part of what is printed.
#[derive(Clone, Debug)]
pub enum Node {
    /// A line. What stands in `<...>` is a form: `<int>` for digits, `<f1>`, `<f2>` and so on for a
    /// number with so many decimals, `<num>` for a number with or without them, `<word>` for what
    /// has no blank, `<gap>` for blanks, and `<text>` for anything but nothing. A number before a
    /// form is how wide it is at least, with blanks before it: `<5f2>`. The forms of one program
    /// only are told in `form`.
    Line(&'static str),
    /// A line whose pattern is made.
    Made(String),
    /// Several lines that begin alike and belong together, such as a list that goes on.
    Lines(&'static str, fn(&[&str]) -> bool),
    /// May be missing.
    Maybe(Vec<Node>),
    /// Is there once or several times.
    Many(Vec<Node>),
    /// Is one of these.
    Either(Vec<Vec<Node>>),
}

/// Says where a text leaves the model, or nothing where it is all of it.
pub fn refusal(model: &[Node], text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut farthest = 0;
    let ends = sequence(model, &lines, BTreeSet::from([0]), &mut farthest);
    if ends.contains(&lines.len()) {
        return None;
    }
    let line = lines.get(farthest).map_or("the end".to_owned(), |line| format!("{line:?}"));
    Some(format!("line {}: {line}", farthest + 1))
}

/// Refuses a text that the model does not know.
#[track_caller]
pub fn accept(model: &[Node], text: &str) {
    if let Some(refusal) = refusal(model, text) {
        panic!("{refusal}\nin\n{text}");
    }
}

fn sequence(
    nodes: &[Node],
    lines: &[&str],
    from: BTreeSet<usize>,
    farthest: &mut usize,
) -> BTreeSet<usize> {
    nodes.iter().fold(from, |from, node| {
        from.into_iter().flat_map(|at| ends(node, lines, at, farthest)).collect()
    })
}

/// Returns where a part that begins at a line may end.
fn ends(node: &Node, lines: &[&str], at: usize, farthest: &mut usize) -> BTreeSet<usize> {
    *farthest = at.max(*farthest);
    match node {
        Node::Line(pattern) => line(pattern, lines, at),
        Node::Made(pattern) => line(pattern, lines, at),
        Node::Lines(start, is_it) => {
            let alike = lines[at.min(lines.len())..].iter();
            let count = alike.take_while(|line| line.starts_with(start)).count();
            (at + 1..=at + count).filter(|&end| is_it(&lines[at..end])).collect()
        }
        Node::Maybe(nodes) => {
            let mut all = sequence(nodes, lines, BTreeSet::from([at]), farthest);
            all.insert(at);
            all
        }
        Node::Many(nodes) => {
            let mut all = BTreeSet::new();
            let mut new = sequence(nodes, lines, BTreeSet::from([at]), farthest);
            while !new.is_subset(&all) {
                all.extend(new.iter().copied());
                new = sequence(nodes, lines, new, farthest);
            }
            all
        }
        Node::Either(each) => each
            .iter()
            .flat_map(|nodes| sequence(nodes, lines, BTreeSet::from([at]), farthest))
            .collect(),
    }
}

/// Tells whether a line is what a pattern says.
pub fn is_like(pattern: &str, line: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else { return pattern == line };
    let Some((name, after)) = rest.split_once('>') else { return pattern == line };
    let Some(line) = line.strip_prefix(before) else { return false };
    // What follows literally tells most places apart.
    let literal = after.split_once('<').map_or(after, |(literal, _)| literal);
    let is_last = literal.len() == after.len();
    let cuts = line.char_indices().map(|(at, _)| at).chain([line.len()]).skip(1);
    cuts.into_iter().any(|cut| {
        let rest = &line[cut..];
        let may_be = if is_last { rest == literal } else { rest.starts_with(literal) };
        may_be && form::is_a(name, &line[..cut]) && is_like(after, rest)
    })
}

fn line(pattern: &str, lines: &[&str], at: usize) -> BTreeSet<usize> {
    let is_it = lines.get(at).is_some_and(|line| is_like(pattern, line));
    is_it.then_some(at + 1).into_iter().collect()
}

fn one_of(lines: &[&'static str]) -> Node {
    Node::Either(lines.iter().map(|line| vec![Node::Line(line)]).collect())
}

fn lines(lines: &[&'static str]) -> Vec<Node> {
    lines.iter().map(|line| Node::Line(line)).collect()
}
