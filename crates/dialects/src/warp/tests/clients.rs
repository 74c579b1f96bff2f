//! `--warp-client`.

use super::*;

/// Returns the flags of a line on clients that differ from those of the line on one machine.
fn changed(line: &str, clients: &str) -> String {
    let alone = flags(&format!("{line} --host h:1"));
    let all = flags(&format!("{line} --host h:1 --warp-client {clients}"));
    let changed: Vec<String> = all.into_iter().filter(|flag| !alone.contains(flag)).collect();
    let [counts @ .., fleet, equal, stay, agents] = &changed[..] else { panic!("{changed:?}") };
    assert_eq!([fleet, equal, stay], ["--fleet", "--agents-equal", "--parts-stay"]);
    format!("{} {agents}", counts.join(" "))
}

#[test]
fn agents_of_these_names_do_each_what_a_client_does() {
    for (line, clients, expected) in [
        ("get", "h{1...4}", "--concurrent=80 --objects=10000 --agents=h{1...4}"),
        ("get --concurrent 3 --objects 7", "a,b", "--concurrent=6 --objects=14 --agents=a,b"),
        ("put --rps-limit 2.5", "a,b", "--rps-limit=5/s --concurrent=40 --agents=a,b"),
        ("mixed --duration 1m", "a", "--concurrent=20 --objects=2500 --agents=a"),
        // What an operation is, and objects that are there, are the same for all.
        ("delete --batch 10", "a,b", "--concurrent=40 --objects=50000 --agents=a,b"),
        ("delete --list-existing --objects 9", "a,b", "--concurrent=40 --agents=a,b"),
        ("stat --list-existing", "a,b", "--concurrent=40 --agents=a,b"),
        ("retention --versions 2", "a,b", "--concurrent=40 --objects=50000 --agents=a,b"),
        ("multipart", "a,b", "--concurrent=40 --parts=400 --agents=a,b"),
        ("multipart --parts 5", "a,b", "--parts=10 --concurrent=40 --agents=a,b"),
        ("multipart-put --parts 5", "a,b", "--concurrent=40 --agents=a,b"),
        ("zip --files 5", "a,b", "--files=10 --concurrent=40 --agents=a,b"),
        ("snowball --objs.per 5", "a,b", "--concurrent=40 --agents=a,b"),
        // Ports mean nothing here.
        ("put", "h{1...4}:7761,b", "--concurrent=100 --agents=h1,h2,h3,h4,b"),
    ] {
        assert_eq!(changed(line, clients), expected, "{line} --warp-client {clients}");
    }
}

#[test]
fn what_is_said_of_clients() {
    let line = "get --host h:1 --rps-limit 5 --syncstart 14:30 --influxdb http://t@h:1/b/o";
    let line = read(&format!("{line} --warp-client a:7761,b")).unwrap();
    let said: Vec<String> =
        line.notes.iter().map(Note::to_string).filter(|note| !note.contains("running")).collect();
    assert_eq!(
        said,
        [
            "`--warp-client=a:7761,b`: agents of these names carry the run out; `--concurrent`, \
             `--objects`, `--rps-limit` are for each of the 2, as in warp; each keeps its own \
             record, too",
            "`--warp-client=a:7761,b`: ports are left out: agents connect to the fleet, and nobody \
             to them",
            "`--syncstart=14:30`: this machine waits for it, and then all agents begin at one \
             instant",
            "`--influxdb=*REDACTED*`: this machine sends the totals of all agents, not each its \
            own",
        ]
    );
    let explained = line.explain();
    let start = "# plimsoll s3 get --host=h:1 --rps-limit=10/s --syncstart=14:30";
    assert!(explained.starts_with(start), "{explained}");
    let fleet = "--fleet --agents-equal --parts-stay --agents=a,b\n# ";
    assert!(explained.contains(fleet), "{explained}");
}

#[test]
fn lists_of_clients_that_mean_nothing_are_refused() {
    for (line, expected) in [
        ("put --warp-client a", "`--warp-client=a`: name the store with `--host`; 127.0.0.1:9000"),
        ("put --host h:1 --warp-client 4", "`--warp-client=4`: it is a list of names, not a"),
        ("put --host h:1 --warp-client 4:7761", "`--warp-client=4:7761`: it is a list of names"),
        ("put --host h:1 --warp-client a:1,a:2", "`--warp-client=a:1,a:2`: `a` appears twice"),
        ("put --host h:1 --warp-client a,", "`--warp-client=a,`: a host is empty"),
    ] {
        let said = error(line);
        assert!(said.starts_with(expected), "{line}: {said}");
    }
    assert_eq!(flags("put --warp-client="), flags("put"));
    let client = error("client :7761");
    assert!(client.contains("`plimsoll agent --join-file FILE --name NAME`"), "{client}");
}

#[test]
fn clients_of_a_file_are_those_of_a_line() {
    let file =
        "warp:\n  api: v1\n  benchmark: get\n  remote:\n    host: h:1\n  warp-client: [a, b:1]\n";
    let of_file = from_yaml(file, &[], &NOTHING).unwrap();
    let typed = read("get --host h:1 --warp-client a,b:1").unwrap();
    assert_eq!(joined(&of_file.flags), joined(&typed.flags));
    assert_eq!(of_file.notes[0].flag, "line 6: `warp.warp-client`");
}
