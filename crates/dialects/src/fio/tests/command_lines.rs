//! Command lines of fio.

use super::*;

const FILES: [(&str, &str); 5] = [
    ("one.fio", "[global]\niodepth=2\n[x]\nrw=read\n[y]\nrw=write\nstonewall\n"),
    ("two.fio", "[z]\nrw=randread\n"),
    ("-", "[piped]\nrw=read\n"),
    ("hosts.txt", "h1\n ip:10.0.0.2,8766\n\nip6:fe80::1\n"),
    ("none.txt", "\n"),
];

fn arguments(line: &str) -> Result<CommandLine, FioError> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    with(Units::Strict, &FILES, |options| from_args(&args, options))
}

fn refusal(line: &str) -> String {
    arguments(line).map_or_else(|error| error.to_string(), |line| format!("taken: {line:?}"))
}

/// Name, wave, group, depth.
fn seen(line: &str) -> Vec<(String, u32, u32, u32)> {
    let jobs = arguments(line).expect(line).file.jobs;
    let seen = |job: Job| (job.name, job.flow.wave, job.flow.group, job.queue.iodepth);
    jobs.into_iter().map(seen).collect()
}

/// The clients of a line as `NAME,PORT`.
fn clients(line: &str) -> Vec<String> {
    let clients = arguments(line).expect(line).clients;
    clients.iter().map(|client| format!("{},{}", client.name, client.port)).collect()
}

#[test]
fn clients_are_named_by_hosts_or_files_of_them() {
    assert_eq!(clients("one.fio"), Vec::<String>::new());
    assert_eq!(clients("--client=h1 one.fio"), ["h1,8765"]);
    assert_eq!(clients("--client=h1,8766 --client ip:h2 one.fio"), ["h1,8766", "h2,8765"]);
    assert_eq!(clients("--client=hosts.txt one.fio"), ["h1,8765", "10.0.0.2,8766", "fe80::1,8765"]);
    // As WEKA's wekatester writes it; and the jobs are there once.
    let line = "--output-format=json --client=h1 one.fio two.fio --client=h2 one.fio two.fio";
    assert_eq!(clients(line), ["h1,8765", "h2,8765"]);
    let name = |text: &str| text.to_owned();
    let jobs = [(name("x"), 0, 0, 2), (name("y"), 1, 1, 2), (name("z"), 2, 2, 1)];
    assert_eq!(seen(line), jobs);
    for line in
        ["--client=h1 --client=h2 one.fio two.fio", "one.fio --client=h1 two.fio --client=h2"]
    {
        assert_eq!(seen(line), jobs, "{line}");
    }
    assert_eq!(clients("--client=h1 --client=h2 --name=a --rw=read"), ["h1,8765", "h2,8765"]);
}

#[test]
fn what_is_said_of_clients() {
    let line = arguments("--client=hosts.txt two.fio").unwrap();
    assert_eq!(
        notes(&line.file),
        [
            "[command line] `--client=hosts.txt`: agents of these names carry the jobs out, each \
             of them all, as in fio: h1, 10.0.0.2, fe80::1",
            "[command line] `--client=hosts.txt`: agents connect to the fleet, never the other way round: \
             ports only appear in the JSON",
            "[command line] `--client=hosts.txt`: All clients: there one record merges every group \
             of the file, so that its rates add up what ran at different times; here each group \
             of each stage has its own, with percentiles",
        ]
    );
    super::super::clients::ALL_CLIENTS.assert_is_sentence();
    let said = notes(&arguments("--client=h1 --client=h2 two.fio").unwrap().file);
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("[command line] `--client`: agents of these names"), "{said:?}");
}

#[test]
fn clients_that_cannot_be_meant() {
    for (line, why) in [
        (
            "--client=h1 one.fio --client=h2 two.fio",
            "`--client=h2 two.fio` is not taken: clients carry out the same job files here; run \
            what differs with a separate command line",
        ),
        (
            "--client=h1 --name=a --rw=read --client=h2 --name=b --rw=write",
            "`--client=h2` is not taken: jobs between two clients are those of the first alone; \
             name all clients before the jobs",
        ),
        (
            "--client=h1 --client=h1,8766 one.fio",
            "`--client=h1,8766` is not taken: `h1` appears twice, and agents are told apart by \
            name",
        ),
        (
            "--client=4 one.fio",
            "`--client=4` is not taken: it is the name of an agent, not a number of clients",
        ),
        (
            "--client=sock:/tmp/fio one.fio",
            "`--client=sock:/tmp/fio` is not taken: `sock:/tmp/fio` is a socket of fio's; write \
             the name of an agent",
        ),
        (
            "--client=./gone.txt one.fio",
            "`--client=./gone.txt` is not taken: it cannot be read: no such file",
        ),
        ("--client=none.txt one.fio", "`--client=none.txt` is not taken: the file names no host"),
        ("--client=h,http one.fio", "`--client=h,http` is not taken: `http` is not a port"),
        (
            "--client=h{1...4} one.fio",
            "`--client=h{1...4}` is not taken: `h{1...4}` names no agent; write HOST, HOST,PORT or \
             a file of them",
        ),
    ] {
        let said = refusal(line);
        assert!(said.starts_with("command line: ") && said.ends_with(why), "{said}");
    }
}

/// `mixed.showcmd.txt` is what fio printed for `mixed.fio` when asked for its command line.
#[test]
fn a_command_line_is_the_job_file_that_fio_made_it_of() {
    let line = testdata("fio/mixed.showcmd.txt");
    let args: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
    let command = with(Units::Strict, &[], |options| from_args(&args, options)).unwrap();
    let file = real("fio/mixed.fio");
    assert_eq!(command.file.notes, file.notes);
    assert_eq!(command.file.global_options, file.global_options);
    assert_eq!(command.file.jobs.len(), 2);
    for (given, written) in command.file.jobs.iter().zip(&file.jobs) {
        assert_eq!(given.options, written.options);
        assert_eq!(*given, Job { place: given.place.clone(), ..written.clone() });
    }
    assert_eq!(command.output, Output::default());
}

#[test]
fn options_take_the_next_argument_and_flags_do_not() {
    let line =
        "--name j --rw randread --direct 1 --group_reporting --bs=8k --time_based --runtime 5";
    let command = arguments(line).unwrap();
    let job = &command.file.jobs[0];
    assert_eq!(job.name, "j");
    assert!(job.queue.direct && job.flow.group_reporting && job.timing.time_based);
    assert_eq!(job.pattern.blocks.read, Blocks::Fixed(8_192));
    assert_eq!(command.file.name, "command line");
}

#[test]
fn what_stands_before_the_first_name_goes_for_all() {
    let name = |text: &str| text.to_owned();
    assert_eq!(
        seen(
            "--iodepth=4 --rw=read --name=a --name=b --iodepth=8 --name=global --iodepth=16 \
            --name=c"
        ),
        [(name("a"), 0, 0, 4), (name("b"), 0, 0, 8), (name("c"), 0, 0, 16)]
    );
}

#[test]
fn job_files_wait_for_the_one_before() {
    let name = |text: &str| text.to_owned();
    assert_eq!(
        seen("one.fio two.fio"),
        [(name("x"), 0, 0, 2), (name("y"), 1, 1, 2), (name("z"), 2, 2, 1)]
    );
    // The command line's global options go for each file, those of a file only for itself.
    assert_eq!(
        seen("--iodepth=4 one.fio two.fio"),
        [(name("x"), 0, 0, 2), (name("y"), 1, 1, 2), (name("z"), 2, 2, 4)]
    );
    assert_eq!(seen("-"), [(name("piped"), 0, 0, 1)]);
    assert_eq!(seen("--section=z one.fio two.fio"), [(name("z"), 0, 0, 1)]);
    assert_eq!(seen("--section=y --section=x one.fio").len(), 2);
    assert_eq!(arguments("one.fio").unwrap().file.name, "one.fio");
}

#[test]
fn what_is_printed() {
    let output = arguments("--output=o.json --output-format=normal,json+ --parse-only one.fio")
        .unwrap()
        .output;
    let formats = vec![OutputFormat::Normal, OutputFormat::JsonPlus];
    assert_eq!(output, Output { path: Some("o.json".to_owned()), formats, parse_only: true });
    let line = arguments("--eta=never --output-format=json one.fio").unwrap();
    assert_eq!(line.output.formats, [OutputFormat::Json]);
    assert_eq!(
        notes(&line.file),
        [
            "[command line] `--eta=never`: progress is shown our way",
            "[x] `iodepth=2`: psync waits for each operation, so one is in flight, as in fio",
            "[y] `iodepth=2`: psync waits for each operation, so one is in flight, as in fio"
        ]
    );
}

#[test]
fn refusals() {
    for (line, words) in [
        ("", "command line: there is no job: give a job file, or `--name=NAME --rw=KIND`"),
        ("--rw=read", "command line: there is no job: give a job file, or `--name=NAME --rw=KIND`"),
        (
            "--name=a --bs=4k",
            "command line: [a] the job has no `rw`; fio would read, so write `rw=read` if that is \
            meant",
        ),
        ("--name=a --rw", "command line: [a] `--rw`: it has no value"),
        ("--name=", "command line: `name=`: a job has no name"),
        (
            "--name=a --rwx=read",
            "command line: [a] `rwx` is not an option of fio; did you mean \
        `rw`?",
        ),
        (
            "--outputformat=json one.fio",
            "command line: `outputformat` is not an option of fio; did you mean `output-format`?",
        ),
        (
            "--output-format=xml one.fio",
            "command line: `--output-format=xml`: it is normal, json or json+",
        ),
        (
            "--output-format=json,terse one.fio",
            "command line: `--output-format=json,terse`: terse lines are not written; use \
             `--output-format=json`",
        ),
        (
            "--output-format=json+terse one.fio",
            "command line: `--output-format=json+terse`: terse lines are not written; use \
             `--output-format=json`",
        ),
        (
            "--output-format=minimal one.fio",
            "command line: `--output-format=minimal`: terse lines are not written; use \
             `--output-format=json`",
        ),
        (
            "--minimal one.fio",
            "command line: `--minimal` is not taken: terse lines are not written; use \
             `--output-format=json`",
        ),
        (
            "--append-terse one.fio",
            "command line: `--append-terse` is not taken: terse lines are not written; use \
             `--output-format=json`",
        ),
        ("-x one.fio", "command line: `-x` is not an option; fio's have two dashes"),
        ("gone.fio", "command line: cannot read gone.fio: no such file"),
        (
            "--server",
            "command line: `--server` is not taken: agents take the place of fio's servers: run \
             `plimsoll fleet up` on one machine, and on each other `plimsoll agent --join-file \
             FILE --name HOST` with the token that it prints",
        ),
        (
            "--client=h --remote-config=x.fio",
            "command line: `--remote-config=x.fio` is not taken: job files are read here; name one \
             behind `--client`",
        ),
        ("--section=nobody one.fio", "one.fio: there is no section of the name nobody"),
        ("--readonly one.fio", "one.fio:5: [y] the job writes and `--readonly` is given"),
    ] {
        assert_eq!(refusal(line), words, "{line}");
    }
}
