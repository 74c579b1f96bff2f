//! What job files come to that several clients carry out, each whole.

use plimsoll_workload::plan::spec::PathSet;

use super::*;

fn clients(count: u32) -> Machine<'static> {
    Machine { clients: NonZeroU32::new(count).unwrap(), cores: 4 * count, ..machine() }
}

#[test]
fn clones_are_multiplied_and_each_has_files_of_its_own() {
    let file = real("weka/FIOmaster.txt");
    let (one, eight) = (lower(&file, &machine()).unwrap(), lower(&file, &clients(8)).unwrap());
    assert_sound(&eight);
    assert_eq!(stages(&one), stages(&eight));
    let workers = |lowered: &Lowered| -> Vec<u32> {
        lowered.workload.work_stages().map(|stage| stage.jobs[0].workers).collect()
    };
    assert_eq!(workers(&one), [4, 4, 32, 32, 192, 192, 1, 1]);
    assert_eq!(workers(&eight), [32, 32, 256, 256, 1_536, 1_536, 8, 8]);
    let files = |stage| made(set(&eight, stage));
    assert_eq!(files(2), &weka_files("bw", 128 * GIB, Some(256)));
    assert_eq!(files(4), &weka_files("iops", 4 * GIB, Some(1_536)));
    // Those of the first clones, one for each client.
    assert_eq!(files(6), &weka_files("iops", 4 * GIB, Some(8)));
    assert_eq!(one.notes, eight.notes);
    // A bound of the clones goes for each client.
    let few = Machine { clones_max: Some(2), ..clients(3) };
    assert_eq!(workers(&lower(&file, &few).unwrap())[2..], [6, 6, 6, 6, 3, 3]);
}

#[test]
fn what_lies_there_is_the_same_path_for_each_client() {
    let paths = |text: &str| -> Vec<(u32, Vec<String>)> {
        let lowered = on(text, &clients(2));
        let jobs = &stage(&lowered, 0).jobs;
        jobs.iter()
            .map(|job| match lowered.workload.sets.get(&blocks(job).on).unwrap() {
                SetSpec::Paths(PathSet { paths, .. }) => (job.workers, paths.clone()),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let path = |path: &str| vec![path.to_owned()];
    assert_eq!(paths("[a]\nrw=read\nnumjobs=3\nfilename=/data/old\n"), [(6, path("/data/old"))]);
    let own = "[a]\nrw=read\nnumjobs=2\ndirectory=/data\nallow_file_create=0\n";
    assert_eq!(paths(own), [(2, path("/data/a.0.0")), (2, path("/data/a.1.0"))]);
}

#[test]
fn files_that_all_clones_share_are_shared_by_all_clients_too() {
    let text = "[a]\nrw=write\nsize=64k\nnumjobs=2\nfilename_format=$jobname.$filenum\n";
    assert_eq!(notes(&on(text, &machine())), Vec::<String>::new());
    assert_eq!(
        notes(&on(text, &clients(2))),
        ["[a] `filename_format=$jobname.$filenum`: clones of all clients share its files; in fio \
             they share those of their client"]
    );
    // As in fio, where a path is named.
    let named = "[a]\nrw=write\nsize=64k\nnumjobs=2\nfilename=/d/x\n";
    assert_eq!(notes(&on(named, &clients(2))), Vec::<String>::new());
}

#[test]
fn only_files_that_may_be_there_are_looked_up() {
    for (text, expected) in [
        ("[a]\nrw=write\nsize=1m\nnumjobs=3\n", &[][..]),
        ("[a]\nrw=read\nnumjobs=2\nfilename=/data/old:/data/x\n", &["/data/old", "/data/x"]),
        (
            "[a]\nrw=read\ndirectory=/data\nnumjobs=2\nallow_file_create=0\nsize=4k\n",
            &["/data/a.0.0", "/data/a.1.0"],
        ),
        // What a section before makes, and what is not read or written at all.
        (
            "[global]\nsize=4k\nfilename_format=f.$jobnum\n[m]\nrw=write\nnumjobs=2\ncreate_only=1\n\
             [a]\nwait_for=m\nrw=read\nnumjobs=3\nallow_file_create=0\n",
            &["/here/f.2"],
        ),
        ("[a]\nrw=read\nioengine=null\nfilename=/data/old\nsize=1m\n", &[]),
    ] {
        assert_eq!(paths_asked(&read(text, "job.fio"), "/here", Some(3)), expected, "{text}");
    }
    assert_eq!(paths_asked(&real("weka/FIOmaster.txt"), ".", None), Vec::<String>::new());
}
