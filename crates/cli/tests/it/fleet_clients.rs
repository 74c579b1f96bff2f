//! Lines of other tools that name several clients, which agents are.

use std::path::Path;

use serde_json::Value;

use crate::fleet::{Fleet, agents_at, json_of};
use crate::harness::{oracle, plimsoll, stderr};

#[test]
fn warps_clients_are_agents_and_keep_records_of_their_own() {
    let Some(mut fleet) = Fleet::start(&["client-1"], &[]) else { return };
    // As much as the others do, whatever its weight.
    fleet.join("client-2", &["--weight", "7"]);
    let (target, place) = (oracle(), fleet.place.path().to_path_buf());
    let warp = |line: &str| {
        let mut command = target.command(&place, &format!("as warp {line}"));
        command.env("XDG_STATE_HOME", place.join("state")).output().unwrap()
    };
    const CLIENTS: &str = "--warp-client client-{1...2}:7761";
    let line = "get --objects 21 --obj.size 4KiB --concurrent 3 --duration 1s";
    let explained = warp(&format!("{line} {CLIENTS} --explain"));
    let explained = String::from_utf8(explained.stdout).unwrap();
    let fleet_part = "--fleet --agents-equal --parts-stay --agents=client-1,client-2\n";
    assert!(explained.contains(fleet_part), "{explained}");
    let output = warp(&format!("{line} {CLIENTS} --full --benchdata run"));
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("ports are left out"), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Operation: GET"), "{text}");

    let analyzed = |path: &Path| {
        let output = plimsoll(&place).arg("analyze").arg(path).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        json_of(&output)
    };
    let report = analyzed(Path::new("run"));
    let rows = |report: &Value| -> Vec<u64> {
        let stages = report["stages"].as_array().unwrap().iter();
        stages.map(|stage| stage["op_log"]["rows_count"].as_u64().unwrap()).collect()
    };
    let workers = |report: &Value| report["stages"][1]["rows"][0]["workers_active_count"].clone();
    assert_eq!((rows(&report)[0], workers(&report)), (42, Value::from(6)));
    for (index, name) in ["client-1", "client-2"].into_iter().enumerate() {
        let agent = &report["agents"][index];
        assert_eq!((&agent["name"], &agent["weight"]), (&Value::from(name), &Value::from(1)));
        let left = fleet.kept(name);
        let [part] = &left[..] else { panic!("{left:?}") };
        assert!(part.ends_with(&format!(".part-{index}")), "{left:?}");
        let own = analyzed(&fleet.files_of(name).join(part));
        assert_eq!(own["state"], "complete");
        assert_eq!((rows(&own)[0], workers(&own)), (21, Value::from(3)));
        assert_eq!(own["stages"][1]["rows"][0]["workers_count"], 3);
        assert_eq!(agent["rows_count"], rows(&own).iter().sum::<u64>());
    }
    // Nobody waits for them, today nor when the agent is another process.
    fleet.agents.remove(0);
    fleet.join("client-1", &[]);
    let present = agents_at(&place);
    assert_eq!(present.len(), 2, "{present:?}");
    assert!(present.iter().all(|agent| agent["kept"] == Value::Array(Vec::new())), "{present:?}");

    for (line, why) in [
        ("client :7761", "`plimsoll agent --join-file FILE --name NAME`"),
        ("put --warp-client client-1,client-1:7761", "agents are told apart by name"),
    ] {
        let output = warp(line);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.contains(why)), (Some(2), true), "{said}");
    }
}

/// Two sections, one after the other: two clones that share a row, and one.
const SECTIONS: &str = "\
[global]
directory=DIR
size=256k
ioengine=psync

[reads]
rw=read
bs=16k
numjobs=2
group_reporting

[writes]
wait_for=reads
new_group
rw=write
bs=8k
";

#[test]
fn fios_clients_are_agents_that_each_run_the_whole_job_file() {
    let Some(mut fleet) = Fleet::start(&["client-1"], &[]) else { return };
    // As much as the others do, whatever its weight.
    fleet.join("client-2", &["--weight", "7"]);
    let (place, files) = (fleet.place.path().to_path_buf(), tempfile::tempdir().unwrap());
    let directory = files.path().display().to_string();
    std::fs::write(place.join("two.fio"), SECTIONS.replace("DIR", &directory)).unwrap();
    std::fs::write(place.join("clients.txt"), "client-1\nip:client-2,8766\n").unwrap();
    let fio = |line: &str| {
        let mut command = plimsoll(&place);
        command.args(["as", "fio"]).args(line.split(' '));
        command.env("XDG_STATE_HOME", place.join("state")).output().unwrap()
    };
    let printed = |line: &str| {
        let output = fio(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let left = std::fs::read_dir(files.path()).unwrap().count();
        assert_eq!(left, 0, "{line}");
        (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
    };
    let line = "--client=clients.txt two.fio --output-format=json";
    let (explained, _) = printed(&format!("{line} --explain"));
    let fleet_part = "# plimsoll run FILE --fleet --agents-equal --agents=client-1,client-2\n";
    assert!(explained.starts_with(fleet_part), "{explained}");
    assert!(explained.contains("workers: 4"), "{explained}");

    let (json, said) = printed(&format!("--run-dir run {line}"));
    assert!(said.contains("ports only appear in the JSON"), "{said}");
    assert!(said.contains("All clients: there one record merges every group"), "{said}");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(report["jobs"].is_null());
    let told = |job: &Value| {
        let whole = |value: &Value| value.as_u64().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (
            text(&job["jobname"]),
            whole(&job["groupid"]),
            text(&job["hostname"]),
            (whole(&job["port"]), whole(&job["error"])),
            [&job["read"], &job["write"]].map(|side| whole(&side["io_bytes"])),
        )
    };
    let row = |name: &str, group, host: &str, port, bytes| {
        (name.to_owned(), group, host.to_owned(), (port, 0), bytes)
    };
    const FILE: u64 = 256 << 10;
    let stats: Vec<_> = report["client_stats"].as_array().unwrap().iter().map(told).collect();
    assert_eq!(
        stats,
        [
            row("reads", 0, "client-1", 8765, [2 * FILE, 0]),
            row("writes", 1, "client-1", 8765, [0, FILE]),
            row("reads", 0, "client-2", 8766, [2 * FILE, 0]),
            row("writes", 1, "client-2", 8766, [0, FILE]),
            row("All clients", 0, "client-1,client-2", 0, [4 * FILE, 0]),
            row("All clients", 1, "client-1,client-2", 0, [0, 2 * FILE]),
        ]
    );
    let all = &report["client_stats"][4];
    assert_eq!((&all["desc"], &all["read"]["total_ios"]), (&"reads".into(), &64.into()));
    assert!(all["read"]["clat_ns"]["percentile"]["99.000000"].as_u64().unwrap() > 0, "{all}");
    // Each agent made what it was to make, and the record says who did what.
    let output = plimsoll(&place).args(["analyze", "run", "--json"]).output().unwrap();
    let analyzed = json_of(&output);
    assert_eq!(analyzed["clients"], serde_json::json!(["client-1", "client-2"]));
    let weights = analyzed["agents"].as_array().unwrap().iter().map(|agent| &agent["weight"]);
    assert_eq!(weights.collect::<Vec<_>>(), [1, 1]);

    // As WEKA's wekatester writes it, with files that are there on the agents' machines.
    std::fs::write(files.path().join("old"), vec![7; 64 << 10]).unwrap();
    let old = format!("[old]\nrw=read\nbs=4k\nfilename={directory}/old\n");
    std::fs::write(place.join("old.fio"), old).unwrap();
    let output = fio("--client=client-1 old.fio --client=client-2 old.fio");
    let (text, said) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
    assert_eq!((output.status.code(), said.contains("its owner")), (Some(2), true), "{said}{text}");

    for (line, why) in [
        (
            "--client=client-1 --client=client-9 two.fio --agents-wait 100ms",
            "is not an option of fio",
        ),
        ("--client=client-1 --client=client-1 two.fio", "agents are told apart by name"),
        ("--client=client-1 --name=n --ioengine=null --rw=read --size=1m", "leave --client out"),
        ("--server", "`plimsoll agent --join-file FILE --name HOST`"),
        ("--server --daemonize=pid", "`plimsoll fleet up`"),
    ] {
        let output = fio(line);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.contains(why)), (Some(2), true), "{said}");
    }
    let output = fio("--agents-wait 100ms --client=client-9 two.fio");
    let why = "--client: agents client-9 have not joined after 100 ms; on each";
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
}

#[test]
fn fios_clients_take_what_lies_on_their_machines() {
    let files = tempfile::tempdir().unwrap();
    let directory = files.path().display().to_string();
    let Some(fleet) = Fleet::start(&["a", "b"], &["--allow-dirs", &directory]) else { return };
    let old = files.path().join("old");
    std::fs::write(&old, vec![7; 64 << 10]).unwrap();
    let line = format!(
        "as fio {} --client=a --client=b --name=old --rw=read --bs=4k --numjobs=2 \
         --group_reporting --filename={}",
        fleet.flag,
        old.display()
    );
    let run = |flags: &str| {
        let words = format!("{line} {flags}");
        plimsoll(fleet.place.path()).args(words.trim().split(' ')).output().unwrap()
    };
    let output = run("");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("(groupid=0, ")).collect();
    let [a, b, all] = &rows[..] else { panic!("{text}") };
    for (row, start) in [
        (a, "old: (groupid=0, jobs=2): err= 0"),
        (b, "old: (groupid=0, jobs=2): err= 0"),
        (all, "All clients: (groupid=0, jobs=4): err= 0"),
    ] {
        assert!(row.starts_with(start), "{text}");
    }
    let count = |amount: &str| text.matches(amount).count();
    assert_eq!((count("(128KiB/"), count("(256KiB/")), (2, 1), "{text}");
    assert!(text.contains("<a> \nold: ") && text.contains("<b> \nold: "), "{text}");
    // The agents' machines say how large it is, and that it is there.
    let explained = run("--explain");
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(explained.contains("size: 64KiB") && explained.contains("workers: 4"), "{explained}");
    std::fs::remove_file(&old).unwrap();
    let gone = run("");
    assert_eq!(gone.status.code(), Some(2));
    assert!(stderr(&gone).contains("is not there"), "{}", stderr(&gone));
}
