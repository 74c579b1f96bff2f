//! From what is written to the stages of a run: which steps there are, on how many entries, and
//! what does not go together.

use std::time::Duration;

use plimsoll_model::Interface;
use plimsoll_workload::plan::spec::{
    CreateNames, DealSpec, InterfaceSpec, JobSpec, MakeTree, NamesSpec, OpenNames, RemoveNames,
    RemoveTree, RenameNames, SetSpec, StatNames, TreeOf, TreeSet, WorkStage,
};
use plimsoll_workload::plan::{FilesIn, OnFiles, Size, TimeRange};

use super::plan::{MdtestPlan, PlannedRow, TableOptions};
use super::written::Written;
use crate::command_line::LineError;

/// Paths with more levels are too long.
const DEPTH_MAX: u32 = 256;
/// How many stages a run can have.
const STAGES_MAX: usize = 256;
/// How many directories a tree can have.
const DIRECTORIES_MAX: u64 = 1 << 32;

/// What a step works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Tree,
    Directories,
    Files,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Create,
    Stat,
    Read,
    Rename,
    Remove,
}

/// A step of mdtest: the name of its stage, and the label of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    label: &'static str,
    of: Of,
    does: Does,
}

const fn step(of: Of, does: Does, name: &'static str, label: &'static str) -> Step {
    Step { name, label, of, does }
}

/// mdtest's steps in its order.
const STEPS: [Step; 10] = [
    step(Of::Tree, Does::Create, "tree-creation", "Tree creation"),
    step(Of::Directories, Does::Create, "directory-creation", "Directory creation"),
    step(Of::Directories, Does::Stat, "directory-stat", "Directory stat"),
    step(Of::Directories, Does::Rename, "directory-rename", "Directory rename"),
    step(Of::Directories, Does::Remove, "directory-removal", "Directory removal"),
    step(Of::Files, Does::Create, "file-creation", "File creation"),
    step(Of::Files, Does::Stat, "file-stat", "File stat"),
    step(Of::Files, Does::Read, "file-read", "File read"),
    step(Of::Files, Does::Remove, "file-removal", "File removal"),
    step(Of::Tree, Does::Remove, "tree-removal", "Tree removal"),
];

/// The tree of one rank, or of all, and the entries of one rank in it.
struct Shape {
    directories_count: u64,
    entries_per_directory: u64,
    entries_count: u64,
}

/// A step that is done, and whether it is a result.
#[derive(Clone, Copy)]
struct Chosen {
    step: Step,
    prepares: bool,
}

/// Returns the run that the flags come to.
pub(super) fn lower(mut written: Written) -> Result<MdtestPlan, LineError> {
    defaults(&mut written);
    rules(&written)?;
    remarks(&mut written);
    let shape = shape(&mut written)?;
    let chosen = choose(&mut written, &shape)?;
    let stages_count = chosen.len().saturating_mul(written.iterations as usize);
    if stages_count > STAGES_MAX {
        let most = STAGES_MAX / chosen.len();
        return Err(LineError::Form(format!(
            "`-i {}` comes to {stages_count} steps and {STAGES_MAX} are the most; `-i {most}` is",
            written.iterations
        )));
    }
    shift_remarks(&mut written, &chosen);
    Ok(plan(written, &shape, &chosen))
}

/// Sets what mdtest does where nothing else is asked for.
fn defaults(to: &mut Written) {
    if !(to.create || to.stat || to.read || to.remove || to.rename) {
        (to.create, to.stat, to.read, to.remove, to.rename) = (true, true, true, true, true);
    }
    if !to.files_only && !to.directories_only {
        (to.files_only, to.directories_only) = (true, true);
    }
    if to.shared_names && to.files_only {
        to.directories_only = false;
    }
}

/// Checks what mdtest checks, and what it should.
fn rules(of: &Written) -> Result<(), LineError> {
    let directories_count = of.directories.len();
    let both = |both: bool, text: &str| match both {
        true => Err(LineError::form(text)),
        false => Ok(()),
    };
    both(of.shared_names && of.tree_per_rank, "`-S` and `-u` do not go together")?;
    both(
        of.shared_names && !of.files_only,
        "`-S` is for files and `-D` leaves them out; leave out one of them",
    )?;
    both(
        directories_count > 1 && of.shift > 0,
        "`-N` and several directories of `-d` do not go together",
    )?;
    both(
        directories_count > 1 && !of.tree_per_rank,
        "several directories of `-d` need `-u`: ranks that share a tree cannot be in different ones",
    )?;
    if directories_count > of.ranks as usize {
        let ranks = of.ranks;
        let text = format!("`-d` has {directories_count} directories for `-np {ranks}`");
        return Err(LineError::Form(text));
    }
    both(of.depth > 0 && of.branching == 0, "`-z` needs a `-b` of 1 at least")?;
    both(
        of.verify_read && !(of.read && of.files_only),
        "`-X` needs files to be read: `-E`, and no `-D`",
    )?;
    both(of.verify_read && of.read_bytes == 0, "`-X` needs bytes to be read: `-e`")?;
    if of.create && of.read && of.read_bytes > of.write_bytes {
        let Written { read_bytes, write_bytes, .. } = of;
        let text = format!("`-e {read_bytes}` reads more than `-w {write_bytes}` writes");
        return Err(LineError::Form(text));
    }
    let all = of.ranks;
    let one_step = of.ranks_last == 0 || (of.ranks_first == Some(all) && of.ranks_last == all);
    both(
        !one_step,
        "`-f` and `-l` ask for several numbers of ranks in one run; run it once for each `-np`",
    )
}

/// Notes flags that have no effect beside the others.
fn remarks(to: &mut Written) {
    if to.ranks_last == 0 && to.ranks_first.is_some() {
        to.note("-f", "has no effect without `-l`, as in mdtest");
    }
    if to.ranks_last == 0 && to.ranks_step.is_some() {
        to.note("-s", "has no effect without `-l`, as in mdtest");
    }
    if to.fsync && to.write_bytes == 0 {
        to.note("-y", "nothing is written, so nothing is synced, as in mdtest; give `-w`");
    }
    if !to.files_only {
        let without = "has no effect on directories";
        if to.write_bytes > 0 {
            to.note(format!("-w {}", to.write_bytes), without);
        }
        if to.read_bytes > 0 {
            to.note(format!("-e {}", to.read_bytes), without);
        }
    }
    if to.files_only && to.read && to.read_bytes == 0 {
        to.note("-e 0", "file-read opens and closes files and reads nothing");
    }
    if to.read_bytes > to.write_bytes && to.files_only && to.read {
        // Only where nothing is created: then mdtest expects files of an earlier run.
        let text = format!("the files that are read are made with {} bytes", to.read_bytes);
        to.note(format!("-e {}", to.read_bytes), text);
    }
}

/// Works out the tree and how many entries a rank has in it.
fn shape(to: &mut Written) -> Result<Shape, LineError> {
    let Some((directories_count, holders_count)) = directories(to) else {
        let Written { depth, branching, .. } = to;
        let text = format!("`-z {depth}` and `-b {branching}` make too large a tree");
        return Err(LineError::Form(text));
    };
    let entries_per_directory = entries_per_directory(to, holders_count)?;
    let entries_count = entries_per_directory
        .checked_mul(holders_count)
        .filter(|count| count.checked_mul(to.ranks.into()).is_some())
        .ok_or_else(|| LineError::form("there are too many entries"))?;
    Ok(Shape { directories_count, entries_per_directory, entries_count })
}

/// Returns how many directories a tree has, the top one included, and how many hold entries.
fn directories(of: &Written) -> Option<(u64, u64)> {
    if of.depth > DEPTH_MAX {
        return None;
    }
    let (mut level, mut count): (u64, u64) = (1, 1);
    for _ in 0..of.depth {
        level = level.checked_mul(of.branching.max(1).into())?;
        count = count.checked_add(level).filter(|count| *count <= DIRECTORIES_MAX)?;
    }
    Some((count, if of.leaves_only { level } else { count }))
}

/// Returns how many entries a rank has in each directory that holds any.
fn entries_per_directory(to: &mut Written, holders_count: u64) -> Result<u64, LineError> {
    let form = |text: String| Err(LineError::Form(text));
    match (to.entries, to.entries_per_directory) {
        (0, 0) => form("there is nothing to do: give `-n` or `-I`".to_owned()),
        (0, each) => Ok(each),
        (all, 0) if all < holders_count => form(format!(
            "`-n {all}` is less than one entry for each of {holders_count} directories"
        )),
        (all, 0) => {
            let each = all / holders_count;
            if each * holders_count != all {
                let count = each * holders_count;
                let text = format!(
                    "{count} entries: {each} in each of {holders_count} directories, as in mdtest"
                );
                to.note(format!("-n {all}"), text);
            }
            Ok(each)
        }
        (_, _) if to.tree_per_rank => form("with `-u` give `-n` or `-I`, not both".to_owned()),
        (all, each) if all == each => Ok(each),
        (all, each) if all % each != 0 => form(format!("`-n {all}` is no multiple of `-I {each}`")),
        (all, each) => {
            let trees = all / each;
            form(format!(
                "`-n {all}` with `-I {each}` asks for {trees} trees one after the other in each \
                 step; give only one of them, with `-z` and `-b` for more directories"
            ))
        }
    }
}

/// Returns the steps of an iteration. Entries that are looked at or removed are made first; where
/// that is not asked for it is no result.
fn choose(to: &mut Written, shape: &Shape) -> Result<Vec<Chosen>, LineError> {
    let is_measured = |step: &Step| {
        let on = match step.of {
            Of::Tree => true,
            Of::Directories => to.directories_only,
            Of::Files => to.files_only,
        };
        on && match step.does {
            Does::Create => to.create,
            Does::Stat => to.stat,
            Does::Read => to.read,
            Does::Rename => to.rename && shape.entries_count > 1,
            Does::Remove => to.remove,
        }
    };
    let measures = |of: Of| STEPS.iter().any(|step| step.of == of && is_measured(step));
    if !measures(Of::Directories) && !measures(Of::Files) {
        let text = "no step is left: `-E` is for files, `-U` for two directories or more";
        return Err(LineError::form(text));
    }
    let is_needed =
        |step: &Step| step.does == Does::Create && (step.of == Of::Tree || measures(step.of));
    let chosen: Vec<Chosen> = STEPS
        .into_iter()
        .filter(|step| is_measured(step) || is_needed(step))
        .map(|step| Chosen { step, prepares: !is_measured(&step) })
        .collect();
    if to.rename && to.directories_only && shape.entries_count == 1 {
        to.note("-U", "one directory cannot be given the name of another; there is no such step");
    }
    if !to.create {
        let flags = [(to.stat, 'T'), (to.read, 'E'), (to.rename, 'U'), (to.remove, 'r')];
        let flags = flags.iter().filter(|(on, _)| *on).map(|(_, letter)| letter);
        let text = "without `-C` there is nothing of an earlier run; entries are made first, which \
                    is no result, and may still be cached";
        let flag = format!("-{}", flags.collect::<String>());
        to.note(flag, text);
    }
    if !to.remove {
        to.note("-C", "without `-r` entries stay until the run is cleaned up, not longer");
    }
    Ok(chosen)
}

/// Returns by how many ranks a step is moved on: after creation once for each step that mdtest
/// counts. It renames where it looks.
fn shift(of: &Written, step: &Step) -> u32 {
    let times = match step.does {
        _ if step.of == Of::Tree || of.shared_names => 0,
        Does::Create => 0,
        Does::Stat | Does::Rename => 1,
        Does::Read => 2,
        Does::Remove => 3,
    };
    u32::try_from(u64::from(of.shift) * times % u64::from(of.ranks))
        .expect("the remainder is less than the ranks")
}

/// Says where `-N` does not do what it is for.
fn shift_remarks(to: &mut Written, chosen: &[Chosen]) {
    if to.shift == 0 {
        return;
    }
    let flag = format!("-N {}", to.shift);
    if to.shared_names {
        to.note(flag, "has no effect with `-S`: all ranks use the same names");
        return;
    }
    let unmoved: Vec<&str> = chosen
        .iter()
        .filter(|chosen| chosen.step.of != Of::Tree && chosen.step.does != Does::Create)
        .filter(|chosen| shift(to, &chosen.step) == 0)
        .map(|chosen| chosen.step.name)
        .collect();
    if !unmoved.is_empty() {
        let (steps, ranks) = (unmoved.join(", "), to.ranks);
        let text = format!("comes round: {steps} of a rank finds its own entries (-np {ranks})");
        to.note(&flag, text);
    }
    to.note(
        flag,
        "counts ranks of this one client: entries of another rank may be in its cache as well",
    );
}

fn plan(written: Written, shape: &Shape, chosen: &[Chosen]) -> MdtestPlan {
    let mut stages = OnFiles::default();
    let mut stages_count = 0;
    let mut rows: Vec<PlannedRow> = Vec::new();
    for iteration in 0..written.iterations {
        for (index, each) in chosen.iter().enumerate() {
            let step = &each.step;
            let is_first = |before: &Chosen| before.step.of != step.of || before.prepares;
            let pauses =
                step.of != Of::Tree && !each.prepares && chosen[..index].iter().all(is_first);
            if !each.prepares {
                match rows.iter_mut().find(|row| row.label == step.label) {
                    Some(row) => row.stages.push(stages_count),
                    None => rows.push(row(&written, shape, step, stages_count)),
                }
            }
            let stage = stage(&written, shape, each, (iteration, pauses), &mut stages);
            stages.stage(stage);
            stages_count += 1;
        }
    }
    // mdtest's table has the tree last.
    rows.sort_by_key(|row| row.label.starts_with("Tree"));
    let rank_statistics = written.rank_statistics;
    let table = TableOptions {
        rates: written.times_too || !written.times_only,
        times: written.times_too || written.times_only,
        each_iteration: written.verbosity > 0,
        rank_statistics,
    };
    MdtestPlan {
        workload: stages.workload("mdtest", written.seed),
        ranks: written.ranks,
        iterations: written.iterations,
        entries: entries(&written, shape),
        directories: written.directories,
        shift: written.shift,
        rows,
        table,
        notes: written.notes,
    }
}

/// Returns how many entries an iteration makes, as mdtest says it.
fn entries(of: &Written, shape: &Shape) -> String {
    let count = shape.entries_count * u64::from(of.ranks);
    match (of.files_only, of.directories_only) {
        _ if of.shared_names => format!("{} files shared by all", shape.entries_count),
        (true, true) => format!("{count} files/directories"),
        (true, false) => format!("{count} files"),
        (false, _) => format!("{count} directories"),
    }
}

/// Returns how many clones do a step: one makes a tree that all share, and one removes the names
/// that all share, as in mdtest.
fn clones(of: &Written, step: &Step) -> u32 {
    let by_one = match step.of {
        Of::Tree => !of.tree_per_rank,
        Of::Directories | Of::Files => of.shared_names && step.does == Does::Remove,
    };
    if by_one { 1 } else { of.ranks }
}

fn row(of: &Written, shape: &Shape, step: &Step, stage: usize) -> PlannedRow {
    let each = match step.of {
        Of::Tree => shape.directories_count,
        Of::Directories | Of::Files => shape.entries_count,
    };
    PlannedRow {
        label: step.label,
        stages: vec![stage],
        ops_count: each * u64::from(clones(of, step)),
        shift: shift(of, step),
        looks_back: step.of != Of::Tree && step.does != Does::Create,
    }
}

fn stage(
    of: &Written,
    shape: &Shape,
    chosen: &Chosen,
    (iteration, pauses): (u32, bool),
    on_files: &mut OnFiles,
) -> WorkStage {
    let step = &chosen.step;
    let names = names(of, shape, step, iteration);
    let work = on_files.names(&names, |set| act(of, chosen, set));
    let pause = Duration::from_secs(if pauses { of.pause_s } else { 0 });
    let job = JobSpec {
        interface: Some(InterfaceSpec(Interface::Psync)),
        start_delay: TimeRange { min: pause, max: pause },
        deal: DealSpec { shift: shift(of, step), ..DealSpec::default() },
        ..JobSpec::of(clones(of, step), work)
    };
    WorkStage {
        iteration,
        prepares: chosen.prepares,
        end_on_failure: of.end_on_failure,
        ..WorkStage::of(step.name, vec![job])
    }
}

/// Returns what a step does to the names of a set.
fn act(of: &Written, chosen: &Chosen, set: String) -> NamesSpec {
    let shuffled = of.shuffled || of.seed.is_some_and(|seed| seed > 0);
    match (chosen.step.of, chosen.step.does) {
        (Of::Tree, Does::Create) => NamesSpec::MakeTree(MakeTree { make_tree: set }),
        (Of::Tree, _) => NamesSpec::RemoveTree(RemoveTree { remove_tree: set }),
        (_, Does::Create) => NamesSpec::Create(create(of, chosen, set)),
        (_, Does::Stat) => NamesSpec::Stat(StatNames { stat: set, shuffled }),
        (_, Does::Read) => {
            let bytes = Size(of.read_bytes.into());
            NamesSpec::Open(OpenNames { open: set, bytes, shuffled })
        }
        (_, Does::Rename) => NamesSpec::Rename(RenameNames { rename: set }),
        (_, Does::Remove) => NamesSpec::Remove(RemoveNames { remove: set, shuffled: false }),
    }
}

/// Returns the names that a step is about.
fn names(of: &Written, shape: &Shape, step: &Step, iteration: u32) -> FilesIn {
    let of_directories = step.of == Of::Directories;
    let tree = TreeOf {
        name: Some(format!("test-dir.{iteration}-0")),
        depth: of.depth,
        branching: of.branching.max(1),
        entries: shape.entries_per_directory,
        leaves_only: of.leaves_only,
        per_worker: of.tree_per_rank,
        shared_names: of.shared_names,
        of_directories,
    };
    FilesIn {
        label: if of_directories { "directories" } else { "files" }.to_owned(),
        directories: of.directories.clone(),
        set: SetSpec::Tree(TreeSet { on: None, tree }),
    }
}

/// Returns how entries are made; directories hold no bytes. Files that are only there to be read
/// are as long as that needs.
fn create(of: &Written, chosen: &Chosen, set: String) -> CreateNames {
    let bytes = match (chosen.step.of, chosen.prepares) {
        (Of::Files, true) => of.write_bytes.max(of.read_bytes),
        (Of::Files, false) => of.write_bytes,
        _ => 0,
    };
    let fsync = of.fsync && bytes > 0;
    CreateNames { create: set, bytes: Size(bytes.into()), fsync, shuffled: false }
}
