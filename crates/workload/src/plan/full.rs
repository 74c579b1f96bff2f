//! The full form of a workload file, in which everything that holds by default is shown, and the
//! fingerprint of what it means.

use super::Plan;
use super::spec::{BlockOrder, CONTENT_SEED, Choice, LIST_PAGE, NAME_FORMAT, WorkloadFile};
use super::tree::Tree;
use crate::{MAX_IN_FLIGHT_DEFAULT, hash_text};

/// Returns the file with all defaults.
pub(super) fn tree(file: &WorkloadFile) -> Tree {
    let mut tree = file.to_tree();
    default(&mut tree, "verify", Tree::Bool(true));
    if let Some(Tree::Map(sets)) = tree.get_mut("sets") {
        sets.iter_mut().for_each(|(name, set)| fill_set(name, set));
    }
    each(tree.get_mut("stages"), stage);
    ["targets", "sets", "stages"].iter().for_each(|name| move_last(&mut tree, name));
    tree
}

/// Moves the field that has most in it behind the others, as people write it.
fn move_last(tree: &mut Tree, name: &str) {
    let Tree::Map(fields) = tree else { return };
    if let Some(index) = fields.iter().position(|(field, _)| field == name) {
        let field = fields.remove(index);
        fields.push(field);
    }
}

/// Sets a field that is not there.
fn default(tree: &mut Tree, name: &str, value: Tree) {
    let is_there = tree.get(name).is_some();
    if let Tree::Map(fields) = tree
        && !is_there
    {
        fields.push((name.to_owned(), value));
    }
}

fn text(value: &str) -> Tree {
    Tree::Text(value.to_owned())
}

fn all(tree: &mut Tree, defaults: &[(&str, Tree)]) {
    defaults.iter().for_each(|(name, value)| default(tree, name, value.clone()));
}

fn each(list: Option<&mut Tree>, change: impl Fn(&mut Tree)) {
    if let Some(Tree::List(items)) = list {
        items.iter_mut().for_each(change);
    }
}

fn fill_set(name: &str, set: &mut Tree) {
    let has = |field: &str| set.get(field).is_some();
    let no = Tree::Bool(false);
    if has("named") {
        let seed = Tree::Int(CONTENT_SEED.into());
        let plain = [("content", text("random")), ("content_seed", seed)];
        all(set, &plain);
        all(set, &["touch", "shared", "hash_check"].map(|field| (field, no.clone())));
    } else if has("existing") {
        default(set, "touch", no);
        if let Some(existing) = set.get_mut("existing") {
            default(existing, "recursive", Tree::Bool(true));
        }
    } else if has("paths") {
        default(set, "touch", no);
    } else if has("names") || has("trace") {
    } else if has("files") {
        all(set, &[("name", text(NAME_FORMAT)), ("job", text(name))]);
    } else if let Some(tree) = set.get_mut("tree") {
        let defaults = [
            ("name", text(name)),
            ("depth", Tree::Int(0)),
            ("branching", Tree::Int(1)),
            ("leaves_only", no.clone()),
            ("per_worker", no.clone()),
            ("shared_names", no.clone()),
            ("of_directories", no),
        ];
        all(tree, &defaults);
    } else {
        let keys = Tree::Map(Vec::new());
        let content = text("random");
        let one = Tree::Int(1);
        let none = Tree::Int(0);
        all(set, &[("count", none), ("versions", one), ("content", content), ("keys", keys)]);
        if let Some(keys) = set.get_mut("keys") {
            default(keys, "per_worker", Tree::Bool(true));
        }
    }
}

fn stage(tree: &mut Tree) {
    if let Some(repeat) = tree.get_mut("repeat") {
        each(repeat.get_mut("stages"), stage);
        return;
    }
    if let Some(search) = tree.get_mut("search") {
        let defaults = [
            ("precision", text("5%")),
            ("arrivals", text("poisson")),
            ("budget", text("10m")),
            ("max_in_flight", Tree::Int(MAX_IN_FLIGHT_DEFAULT.into())),
        ];
        all(search, &defaults);
        if let Some(inner) = search.get_mut("stage") {
            stage(inner);
        }
        move_last(search, "stage");
        return;
    }
    let no = Tree::Bool(false);
    let fields = ["prepares", "if_offered", "drop_caches", "end_on_failure"];
    let defaults = fields.map(|field| (field, no.clone()));
    all(tree, &defaults);
    each(tree.get_mut("jobs"), job);
    move_last(tree, "jobs");
}

fn job(tree: &mut Tree) {
    let defaults = [
        ("workers", Tree::Int(1)),
        ("depth", Tree::Int(1)),
        ("pacing", text("closed")),
        ("ramp", text("0s")),
        ("ramp_down", text("0s")),
        ("start_delay", text("0s")),
        ("deal", text("by_member")),
    ];
    all(tree, &defaults);
    if let Some(open) = tree.get_mut("pacing").and_then(|pacing| pacing.get_mut("open")) {
        if matches!(open, Tree::Text(_)) {
            *open = Tree::Map(vec![("rate".to_owned(), open.clone())]);
        }
        let in_flight = Tree::Int(MAX_IN_FLIGHT_DEFAULT.into());
        all(open, &[("arrivals", text("constant")), ("max_in_flight", in_flight)]);
    }
    if let Some(caps) = tree.get_mut("pacing").and_then(|pacing| pacing.get_mut("capped_each")) {
        default(caps, "arrivals", text("constant"));
    }
    if let Some(think) = tree.get_mut("think") {
        all(think, &[("spin", text("0s")), ("every", Tree::Int(1))]);
    }
    if let Some(work) = tree.get_mut("work") {
        fill_work(work);
    }
    move_last(tree, "work");
}

fn fill_work(work: &mut Tree) {
    let no = || Tree::Bool(false);
    let pick = || Tree::of(&Choice::Uniform);
    each(work.get_mut("objects"), op);
    let mut inside = |name: &str, defaults: &[(&str, Tree)]| {
        if let Some(inner) = work.get_mut(name).filter(|inner| matches!(inner, Tree::Map(_))) {
            all(inner, defaults);
        }
    };
    inside("retention", &[("pick", pick())]);
    let in_flight = Tree::Int(crate::MAX_IN_FLIGHT_DEFAULT.into());
    let replay = [("speed", Tree::Float(1.0)), ("max_in_flight", in_flight), ("closed", no())];
    inside("replay", &replay);
    let defaults = [
        ("order", Tree::of(&BlockOrder::default())),
        ("direct", no()),
        ("sync", text("off")),
        ("end_fsync", no()),
        ("invalidates", no()),
    ];
    inside("blocks", &defaults);
    for (outer, verb, defaults) in [
        ("parts", "put", &[("at_once", Tree::Int(1))][..]),
        ("parts", "get", &[("pick", pick())][..]),
        ("archive", "get_from_zip", &[("pick", pick())][..]),
        ("archive", "put_tar", &[("compress", no())][..]),
        ("names", "create", &[("bytes", text("0B")), ("fsync", no()), ("shuffled", no())][..]),
        ("names", "stat", &[("shuffled", no())][..]),
        ("names", "open", &[("bytes", text("0B")), ("shuffled", no())][..]),
        ("names", "remove", &[("shuffled", no())][..]),
    ] {
        if let Some(inner) = work.get_mut(outer).filter(|inner| inner.get(verb).is_some()) {
            all(inner, defaults);
        }
    }
    let fill = [("block", text("1MiB")), ("direct", no())];
    for (name, defaults) in [("fill", &fill[..]), ("remove", &[("batch", Tree::Int(1))][..])] {
        let Some(inner) = work.get_mut(name) else { continue };
        if !matches!(inner, Tree::Map(_)) {
            *inner = Tree::Map(vec![("sets".to_owned(), inner.clone())]);
        }
        all(inner, defaults);
    }
}

fn op(tree: &mut Tree) {
    default(tree, "weight", Tree::Int(1));
    let has = |field: &str| tree.get(field).is_some();
    if has("get") || has("stat") {
        all(tree, &[("pick", Tree::of(&Choice::Uniform)), ("version", text("newest"))]);
    } else if has("delete") {
        all(tree, &[("batch", Tree::Int(1)), ("version", text("newest"))]);
    } else if has("list") {
        all(tree, &[("page", Tree::Int(LIST_PAGE.into())), ("versions", Tree::Bool(false))]);
        default(tree, "by_page", Tree::Bool(false));
    } else if has("post") {
        default(tree, "as", text("new"));
    }
}

impl Plan {
    /// Returns a number of what the workload means: the same for two texts that ask for the same
    /// operations on the same sets and targets, however they are written. What the run and its file
    /// are called is left out.
    pub fn fingerprint(&self) -> u64 {
        let mut tree = tree(&self.file);
        if let Tree::Map(fields) = &mut tree {
            fields.retain(|(name, _)| name != "name");
        }
        name_jobs(tree.get_mut("stages"));
        let mut text = String::new();
        spell(&tree, &mut text);
        hash_text(&text)
    }
}

/// Writes out the names that are left out: those of stages and of their only jobs.
fn name_jobs(stages: Option<&mut Tree>) {
    let Some(Tree::List(stages)) = stages else { return };
    for (index, stage) in stages.iter_mut().enumerate() {
        if let Some(repeat) = stage.get_mut("repeat") {
            name_jobs(repeat.get_mut("stages"));
            continue;
        }
        let prepares = stage.get("prepares") == Some(&Tree::Bool(true));
        let name = if prepares { "prepare".to_owned() } else { format!("stage-{}", index + 1) };
        default(stage, "name", Tree::Text(name));
        let name = stage.get("name").cloned().unwrap_or(Tree::Null);
        each(stage.get_mut("jobs"), |job| default(job, "name", name.clone()));
    }
}

/// Writes a tree in one way only: fields in the order of their names.
fn spell(tree: &Tree, out: &mut String) {
    use std::fmt::Write as _;
    match tree {
        Tree::Map(fields) => {
            let mut fields: Vec<&(String, Tree)> = fields.iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            out.push('{');
            for (name, value) in fields {
                let _ = write!(out, "{name:?}:");
                spell(value, out);
            }
            out.push('}');
        }
        Tree::List(items) => {
            out.push('[');
            items.iter().for_each(|item| spell(item, out));
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other:?},");
        }
    }
}
