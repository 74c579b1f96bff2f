//! Command lines with their stages worked out by hand, real ones against what mdtest printed, and
//! the document against the code.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{Seed, WorkerId};
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::plan::spec::{
    CreateNames, FilesTarget, InterfaceSpec, NamesSpec, OneOrMany, OpenNames, SetSpec, TargetSpec,
    Targets, TreeOf, WorkSpec, WorkStage,
};
use plimsoll_workload::plan::{Placing, Size};

use super::flags::FLAGS;
use super::*;
use crate::command_line::{Kind, find};

const OUTPUTS: [&str; 5] = [
    include_str!("../../../../testdata/mdtest-output/ext4_np2_F_shared_25000.txt"),
    include_str!("../../../../testdata/mdtest-output/ext4_np2_tree_z3b3_I20.txt"),
    include_str!("../../../../testdata/mdtest-output/ext4_np2_w3901_10000.txt"),
    include_str!("../../../../testdata/mdtest-output/quiet-tmp-np1.txt"),
    include_str!("../../../../testdata/mdtest-output/shm_np2_all_10000.txt"),
];

fn parse(line: &str) -> Result<MdtestPlan, LineError> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    from_args(&args)
}

fn plan(line: &str) -> MdtestPlan {
    let plan = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let checked = plan.workload.check().unwrap_or_else(|error| panic!("{line}: {error}"));
    let (buckets, found) = ([String::new()], BTreeMap::new());
    let placing = Placing { run: "r1", seed: Seed(1), buckets: &buckets, found: &found };
    let placed = Arc::new(checked).place(&placing).unwrap_or_else(|e| panic!("{line}: {e}"));
    let files = placed.files.expect("mdtest works on files");
    for row in &plan.rows {
        for &stage in &row.stages {
            assert_eq!(ops(&files, stage, row.ops_count), row.ops_count, "{line}: {}", row.label);
        }
    }
    plan
}

/// Counts the operations of a stage; a large one is taken to be right.
fn ops(plan: &FilePlan, stage: usize, expected: u64) -> u64 {
    if expected > 100_000 {
        return expected;
    }
    let of = |worker| {
        let mut stream = plan.stream(stage, WorkerId(worker), 0);
        // Later stages work on what is there.
        let done =
            std::iter::from_fn(move || stream.next_op().inspect(|op| stream.completed(op, true)));
        done.count() as u64
    };
    (0..plan.workers(stage)).map(of).sum()
}

fn refusal(line: &str) -> String {
    parse(line).expect_err(line).to_string()
}

fn notes(plan: &MdtestPlan) -> Vec<String> {
    plan.notes.iter().map(ToString::to_string).collect()
}

fn names(stage: &WorkStage) -> &NamesSpec {
    match &stage.jobs[0].work {
        WorkSpec::Names(names) => names,
        other => panic!("{other:?}"),
    }
}

fn set_name(names: &NamesSpec) -> &str {
    match names {
        NamesSpec::MakeTree(of) => &of.make_tree,
        NamesSpec::Create(of) => &of.create,
        NamesSpec::Stat(of) => &of.stat,
        NamesSpec::Open(of) => &of.open,
        NamesSpec::Rename(of) => &of.rename,
        NamesSpec::Remove(of) => &of.remove,
        NamesSpec::RemoveTree(of) => &of.remove_tree,
    }
}

fn stage(plan: &MdtestPlan, index: usize) -> &WorkStage {
    plan.workload.work_stages().nth(index).expect("there is such a stage")
}

/// The tree that a stage works on.
fn tree(plan: &MdtestPlan, stage: usize) -> &TreeOf {
    let set = plan.workload.sets.get(set_name(names(self::stage(plan, stage))));
    let Some(SetSpec::Tree(set)) = set else { panic!("{set:?}") };
    &set.tree
}

/// Bytes and `fsync` of a stage that makes entries.
fn created(stage: &WorkStage) -> (u64, bool) {
    match names(stage) {
        NamesSpec::Create(CreateNames { bytes: Size(bytes), fsync, .. }) => (*bytes, *fsync),
        other => panic!("{other:?}"),
    }
}

/// Returns the stages as `name/shift`, one iteration behind the other.
fn shifts(plan: &MdtestPlan) -> String {
    let shift = |stage: &WorkStage| stage.jobs[0].deal.shift;
    let stage =
        |stage: &WorkStage| format!("{}/{}", stage.name.as_deref().unwrap_or(""), shift(stage));
    plan.workload.work_stages().map(stage).collect::<Vec<_>>().join(" ")
}

fn stage_names(plan: &MdtestPlan) -> Vec<&str> {
    plan.workload.work_stages().filter_map(|stage| stage.name.as_deref()).collect()
}

#[test]
fn real_command_lines_make_as_many_entries_and_rows_as_mdtest_did() {
    for output in OUTPUTS {
        let line = |start: &str| output.lines().find_map(|line| line.strip_prefix(start));
        let command = line("Command line used: ").expect("it has a command line").replace('\'', "");
        let (command, flags) = command.split_once(' ').expect("it has flags");
        assert!(command.ends_with("/mdtest"));
        let tasks = output.lines().find(|line| line.contains(" tasks, ")).expect("it has tasks");
        let (ranks, entries) = tasks.split_once(" tasks, ").expect("it was found by that");

        let plan = plan(&format!("mpiexec -np {ranks} {command} {flags}"));
        assert_eq!(plan.entries, entries, "{flags}");
        assert_eq!(plan.ranks.to_string(), ranks);
        let table = output.split("SUMMARY rate").nth(1).expect("it has a table of rates");
        let labels: Vec<&str> = table
            .lines()
            .skip(3)
            .take_while(|line| line.starts_with("   "))
            .map(|line| line[3..22].trim_end())
            .collect();
        assert_eq!(plan.rows.iter().map(|row| row.label).collect::<Vec<_>>(), labels);
        for row in &plan.rows {
            assert_eq!(row.stages.len(), plan.iterations as usize);
            for (iteration, &stage) in row.stages.iter().enumerate() {
                let stage = self::stage(&plan, stage);
                assert_eq!(stage.name, Some(row.label.to_lowercase().replace(' ', "-")));
                assert_eq!(stage.iteration as usize, iteration);
                assert!(!stage.prepares);
            }
        }
        let has_times = output.contains("SUMMARY time");
        assert_eq!((plan.table.rates, plan.table.times), (true, has_times));
    }
}

#[test]
fn the_line_of_wekas_guide_is_read_with_eight_ranks() {
    let plan = plan("mpiexec -np 8 mdtest -v -N 2 -i 3 -n 18382 -F -u -d /mnt/weka/mdtest");
    // 8 · 18,382 entries.
    assert_eq!(plan.entries, "147056 files");
    assert_eq!((plan.ranks, plan.iterations, plan.shift), (8, 3, 2));
    assert_eq!(plan.directories, ["/mnt/weka/mdtest"]);
    assert!(plan.table.each_iteration);
    let once = "tree-creation/0 file-creation/0 file-stat/2 file-read/4 file-removal/6 \
                tree-removal/0";
    assert_eq!(shifts(&plan), [once; 3].join(" "));
    let second = stage(&plan, 7);
    assert_eq!((second.name.as_deref(), second.iteration), (Some("file-creation"), 1));
    assert_eq!(second.jobs[0].workers, 8);
    let psync = InterfaceSpec(plimsoll_model::Interface::Psync);
    assert_eq!(second.jobs[0].interface, Some(psync));
    let tree = tree(&plan, 7);
    assert_eq!(tree.name.as_deref(), Some("test-dir.1-0"));
    assert!(tree.per_worker && !tree.of_directories);
    assert_eq!(tree.entries, 18_382);
    assert_eq!(created(second), (0, false));
    // A tree of one directory for each rank.
    let tree = plan.rows.iter().find(|row| row.label == "Tree creation").expect("it is there");
    assert_eq!(tree.ops_count, 8);
    assert_eq!(
        notes(&plan),
        [
            "`-e 0`: file-read opens and closes files and reads nothing",
            "`-N 2`: counts ranks of this one client: entries of another rank may be in its cache \
             as well",
        ]
    );
}

#[test]
fn a_shift_that_comes_round_is_named() {
    // 1, 2 and 3 modulo 2 are 1, 0 and 1.
    let plan_2 = plan("-np 2 -N 1 -F -n 10");
    assert_eq!(
        shifts(&plan_2),
        "tree-creation/0 file-creation/0 file-stat/1 file-read/0 file-removal/1 tree-removal/0"
    );
    let text = "`-N 1`: comes round: file-read of a rank finds its own entries (-np 2)";
    assert!(notes(&plan_2).contains(&text.to_owned()), "{:?}", plan_2.notes);
    let all = "`-N 4`: comes round: directory-stat, directory-rename, directory-removal of a rank \
               finds its own entries (-np 4)";
    assert!(notes(&plan("-np 4 -N 4 -D -n 10")).contains(&all.to_owned()));
    assert!(plan("-np 2 -F -n 10").notes.iter().all(|note| !note.flag.contains("-N")));
}

#[test]
fn entries_are_shared_out_among_directories() {
    // 1 + 3 + 9 + 27 = 40 directories, 27 of them leaves.
    let each = |line: &str| {
        let plan = plan(line);
        let create = plan.rows.iter().find(|row| row.label == "File creation").expect(line);
        (tree(&plan, create.stages[0]).entries, create.ops_count)
    };
    assert_eq!(each("-F -z 3 -b 3 -I 20"), (20, 800));
    assert_eq!(each("-F -z 3 -b 3 -n 100"), (2, 80));
    assert_eq!(each("-F -z 3 -b 3 -L -n 100 -np 2"), (3, 162));
    assert_eq!(each("-F -z 3 -b 3 -L -I 3"), (3, 81));
    // A chain of 6 directories with one leaf.
    assert_eq!(each("-F -z 5 -n 60"), (10, 60));
    assert_eq!(each("-F -z 5 -L -n 60"), (60, 60));
    assert_eq!(each("-F -n 60 -I 60"), (60, 60));
    let rounded = "`-n 100`: 80 entries: 2 in each of 40 directories, as in mdtest".to_owned();
    assert!(notes(&plan("-F -z 3 -b 3 -n 100")).contains(&rounded));
    let trees = plan("-F -z 3 -b 3 -I 20 -np 2");
    assert_eq!(trees.rows.last().map(|row| row.ops_count), Some(40), "one tree for all");
    assert_eq!(stage(&trees, 0).jobs[0].workers, 1);
    let own = plan("-F -z 3 -b 3 -I 20 -np 2 -u");
    assert_eq!(own.rows.last().map(|row| row.ops_count), Some(80), "a tree each");
    assert_eq!(stage(&own, 0).jobs[0].workers, 2);
}

#[test]
fn steps_are_chosen_and_what_they_need_is_made_first() {
    let stat = plan("-T -F -n 10");
    assert_eq!(stage_names(&stat), ["tree-creation", "file-creation", "file-stat"]);
    let prepares: Vec<bool> = stat.workload.work_stages().map(|stage| stage.prepares).collect();
    assert_eq!(prepares, [true, true, false]);
    assert_eq!(stat.rows.len(), 1);
    assert_eq!(stat.rows[0].stages, [2]);
    assert_eq!(stat.notes[0].flag, "`-T`");
    // What changes no load may have an empty value.
    assert_eq!(plan("-n 10 --savePerOpDataCSV=").notes[0].flag, "`--savePerOpDataCSV=`");

    let create = plan("-C -n 10");
    assert_eq!(stage_names(&create), ["tree-creation", "directory-creation", "file-creation"]);
    assert!(create.workload.work_stages().all(|stage| !stage.prepares));
    let all = plan("-n 10");
    assert_eq!(all.workload.stages.len(), 10);
    let one = plan("-n 1");
    assert!(!stage_names(&one).contains(&"directory-rename"));
    // Only files can be read, so no directories are made for that.
    assert_eq!(stage_names(&plan("-E -n 10")), ["tree-creation", "file-creation", "file-read"]);
    // Files of an earlier run would have had the bytes that are read.
    let read = plan("-E -F -n 10 -e 100");
    assert_eq!(created(stage(&read, 1)), (100, false));
}

#[test]
fn bytes_order_pauses_and_failures_go_to_their_stages() {
    let plan = plan("-n 10 -w 4k -e 100 -y -R --random-seed 7 -p 2 --warningAsErrors -PX");
    let stage = |name: &str| {
        let is_called = |stage: &&WorkStage| stage.name.as_deref() == Some(name);
        plan.workload.work_stages().find(is_called).unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(created(stage("file-creation")), (4096, true));
    assert_eq!(created(stage("directory-creation")), (0, false));
    let NamesSpec::Open(OpenNames { bytes, .. }) = names(stage("file-read")) else { panic!() };
    assert_eq!(*bytes, Size(100));
    let is_shuffled = |stage: &&WorkStage| match names(stage) {
        NamesSpec::Create(of) => of.shuffled,
        NamesSpec::Stat(of) => of.shuffled,
        NamesSpec::Open(of) => of.shuffled,
        NamesSpec::Remove(of) => of.shuffled,
        _ => false,
    };
    let shuffled = plan.workload.work_stages().filter(is_shuffled);
    let shuffled: Vec<&str> = shuffled.filter_map(|stage| stage.name.as_deref()).collect();
    assert_eq!(shuffled, ["directory-stat", "file-stat", "file-read"]);
    let paused: Vec<(&str, u64)> = plan
        .workload
        .work_stages()
        .filter_map(|stage| Some((stage.name.as_deref()?, stage.jobs[0].start_delay.min)))
        .filter_map(|(name, pause)| Some((name, pause.as_secs())).filter(|(_, pause)| *pause > 0))
        .collect();
    assert_eq!(paused, [("directory-creation", 2), ("file-creation", 2)]);
    assert!(plan.workload.work_stages().all(|stage| stage.end_on_failure));
    assert_eq!(plan.workload.seed, Some(7));
    assert!(plan.table.rates && plan.table.times && plan.workload.verify);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

#[test]
fn shared_names_are_removed_by_one() {
    let plan = plan("-S -np 4 -n 10 -N 1");
    assert_eq!(plan.entries, "10 files shared by all");
    let rows: Vec<(&str, u64)> = plan.rows.iter().map(|row| (row.label, row.ops_count)).collect();
    assert_eq!(
        rows,
        [
            ("File creation", 40),
            ("File stat", 40),
            ("File read", 40),
            ("File removal", 10),
            ("Tree creation", 1),
            ("Tree removal", 1),
        ]
    );
    assert!(plan.rows.iter().all(|row| row.shift == 0));
}

#[test]
fn what_is_said_of_4m_is_so() {
    let plan = plan("-n 4M -F -C -d /t");
    assert!(notes(&plan).iter().any(|note| note.contains("is 4194304, as in mdtest")));
    assert!(SIZES.starts_with("4M is 4,194,304 bytes"));
}

#[test]
fn values_are_glued_or_apart_and_switches_share_a_dash() {
    let apart = plan("-F -u -n 1000 -np 2 -d /mnt/a");
    for line in [
        "-Fu -n1000 --np 2 -d/mnt/a",
        "-uF -n=1000 --np=2 -d=/mnt/a",
        "-Fun 1000 -np 2 -d /mnt/a",
        "mdtest -Fun1000 -np 2 -d /mnt/a",
        "/opt/bin/mpirun -n 2 /opt/bin/mdtest -Fun1000 -d /mnt/a",
        "-V 0 -B 0 -a posix -l 2 -f 2 -Fun1000 -np 2 -d /mnt/a",
    ] {
        assert_eq!(plan(line), apart, "{line}");
    }
    let two = plan("-np 2 -u -n 1 -d a@b");
    assert_eq!(two.directories, ["a", "b"]);
    let directory = OneOrMany(vec!["a".to_owned(), "b".to_owned()]);
    let files = TargetSpec::Files(FilesTarget { directory });
    assert_eq!(two.workload.targets, Targets::One(files));
    let placed = plan("mpirun --oversubscribe --map-by core -np 2 mdtest -F -n 1k");
    assert_eq!(
        notes(&placed)[..3],
        [
            "`--oversubscribe`: ranks are threads, which the kernel places",
            "`--map-by core`: ranks are threads, which the kernel places",
            "`-n 1k`: is 1024, as in mdtest",
        ]
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (line, text) in [
        ("", "there is nothing to do: give `-n` or `-I`"),
        ("-S -u -n 1", "`-S` and `-u` do not go together"),
        ("-S -D -n 1", "`-S` is for files and `-D` leaves them out; leave out one of them"),
        ("-np 2 -u -d a@b -N 1 -n 1", "`-N` and several directories of `-d` do not go together"),
        (
            "-np 2 -d a@b -n 1",
            "several directories of `-d` need `-u`: ranks that share a tree cannot be in different \
             ones",
        ),
        ("-u -d a@b -n 1", "`-d` has 2 directories for `-np 1`"),
        ("-z 2 -b 0 -n 9", "`-z` needs a `-b` of 1 at least"),
        ("-F -n 1 -X", "`-X` needs bytes to be read: `-e`"),
        ("-D -n 1 -X -e 1", "`-X` needs files to be read: `-E`, and no `-D`"),
        ("-n 1 -w 10 -e 11", "`-e 11` reads more than `-w 10` writes"),
        ("-u -n 10 -I 5", "with `-u` give `-n` or `-I`, not both"),
        ("-n 10 -I 4", "`-n 10` is no multiple of `-I 4`"),
        (
            "-n 10 -I 5",
            "`-n 10` with `-I 5` asks for 2 trees one after the other in each step; give only one \
             of them, with `-z` and `-b` for more directories",
        ),
        ("-n 39 -z 3 -b 3", "`-n 39` is less than one entry for each of 40 directories"),
        ("-n 1 -z 99 -b 3", "`-z 99` and `-b 3` make too large a tree"),
        ("-D -E -n 9", "no step is left: `-E` is for files, `-U` for two directories or more"),
        (
            "-np 4 -l 4 -n 1",
            "`-f` and `-l` ask for several numbers of ranks in one run; run it once for each `-np`",
        ),
        // 10 steps for each iteration: 25 of them are 250.
        ("-n 9 -i 26", "`-i 26` comes to 260 steps and 256 are the most; `-i 25` is"),
    ] {
        assert_eq!(refusal(line), text, "{line}");
    }
}

#[test]
fn flags_that_are_not_followed_are_named() {
    for (line, text) in [
        ("-n 1 -A", "`-A` is no flag of mdtest; did you mean `-a`?"),
        ("-n 1 -q", "`-q` is no flag of mdtest"),
        (
            "-n 1 --random-sed=3",
            "`--random-sed` is no flag of mdtest; did you mean `--random-seed`?",
        ),
        (
            "-posix.odirect",
            "`-posix.odirect` is no flag of mdtest; did you mean `--posix.odirect`?",
        ),
        ("-n", "`-n`: it has no value"),
        ("-n 10x", "`-n 10x`: it is a number, with `k`, `m`, `g`, `t` or `p` or without"),
        ("-n -1", "`-n -1`: it is a whole number that is not negative"),
        ("-n 99999999999999999p", "`-n 99999999999999999p`: the number is too large"),
        ("-w 2g", "`-w 2g`: 1073741824 bytes are the most"),
        ("-z 4g", "`-z 4g`: 4294967295 is the most"),
        ("-i 0", "`-i 0`: it is 1 at least"),
        ("-F=1", "`-F`: it takes no value"),
        ("-a MPIIO", "`-a MPIIO`: files are made and read by POSIX calls only"),
        ("-B 1", "`-B 1`: a step begins when all ranks have ended the one before"),
        ("-d a@", "`-d a@`: a directory has no name"),
        (
            "-Fn10 -W 60",
            "`-W 60` is not taken: later steps must know how many entries each rank made; say their \
             number with `-n`",
        ),
        ("-n 1 /mnt", "`/mnt` belongs to no flag; the directory is said with `-d`"),
        (
            "mpiexec -f hosts -np 2 mdtest -n 1",
            "`-f` is not taken: all ranks run in this program; of MPI's flags only `-np` has a \
             meaning here",
        ),
        ("mpiexec -np 2 ior", "`ior` is started, not mdtest"),
        ("mpiexec -np 2", "mdtest's name is missing behind the launcher's"),
    ] {
        assert_eq!(refusal(line), text, "{line}");
    }
}

#[test]
fn every_flag_of_mdtests_help_is_known() {
    let list = include_str!("../../../../testdata/mdtest-output/flag-names.txt");
    assert_eq!(list.lines().count(), 63);
    for line in list.lines() {
        let (names, has_value) = match line.strip_suffix(" VALUE") {
            Some(names) => (names, true),
            None => (line, false),
        };
        for name in names.split(' ') {
            let flag = find(FLAGS, name.trim_start_matches('-'));
            let flag = flag.unwrap_or_else(|| panic!("{name} is not known"));
            assert_eq!(flag.kind != Kind::Switch, has_value, "{name}");
        }
    }
}
