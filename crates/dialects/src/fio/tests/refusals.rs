//! Job files that are refused, with the words.

use super::*;

fn refusal(text: &str) -> String {
    match strict(text) {
        Ok(file) => format!("taken: {:?}", file.jobs),
        Err(error) => error.to_string(),
    }
}

#[test]
fn how_a_job_file_is_written() {
    for (text, words) in [
        ("", "job.fio: there is no section but global ones, so no job"),
        ("[global]\nbs=4k\n", "job.fio: there is no section but global ones, so no job"),
        ("bs=4k\n[a]\n", "job.fio:1: `bs=4k` stands before the first section"),
        ("[a\nrw=read\n", "job.fio:1: `[a` opens a section and has no `]` at its end"),
        ("[a] # x\n", "job.fio:1: `[a] # x` opens a section and has no `]` at its end"),
        ("[]\nrw=read\n", "job.fio:1: a section has no name"),
        ("[a]\nrw=\n", "job.fio:2: [a] `rw=`: it has no value"),
        ("[a]\nrw\n", "job.fio:2: [a] `rw`: it has no value"),
        (
            "[a]\niodept=4\n",
            "job.fio:2: [a] `iodept` is not an option of fio; did you mean \
        `iodepth`?",
        ),
        ("[a]\nxyzzyxyzzy=4\n", "job.fio:2: [a] `xyzzyxyzzy` is not an option of fio"),
        (
            "[a]\ndirectory=${HOMELESS}\n",
            "job.fio:2: [a] `directory=${HOMELESS}`: the environment has no variable HOMELESS",
        ),
        (
            "[a]\ndirectory=/tmp/${MY_SECRET_KEY}\n",
            "job.fio:2: [a] `directory=/tmp/${MY_SECRET_KEY}`: MY_SECRET_KEY is named like a secret, \
             and records keep job files",
        ),
        ("[a]\ndirectory=${X\n", "job.fio:2: [a] `directory=${X`: `${` has no `}`"),
        ("[a]\nnumjobs=$ncpus/0\n", "job.fio:2: [a] `numjobs=$ncpus/0`: it divides by zero"),
        ("[a]\nnumjobs=$ncpus-8\n", "job.fio:2: [a] `numjobs=0`: 1 is the least"),
        ("[a]\ninclude gone.inc\n", "job.fio:2: [a] cannot read gone.inc: no such file"),
    ] {
        assert_eq!(refusal(text), words, "{text}");
    }
    let long = format!("[{}]\n", "x".repeat(256));
    assert_eq!(refusal(&long), "job.fio:1: the name of a section is longer than 255 bytes");
    // What is wrong in a global section is said there, even before there is a job.
    assert_eq!(
        refusal("[global]\nbs=1MB0\n"),
        "job.fio:2: [global] `bs=1MB0`: fio reads every suffix with `m` in front alike, this as \
        1,048,576 bytes; write `1m`"
    );
}

#[test]
fn all_that_is_refused_is_said_at_once_and_once() {
    let text = "[global]\nsteadystate=iops:1%\n[a]\ncgroup=x\niodepth=0\niodept=4\n[b]\nuid=5\n";
    let refusal = refusal(text);
    let lines: Vec<&str> = refusal.lines().collect();
    let starts = [
        "job.fio:2: [global] `steadystate=iops:1%` is not taken: ",
        "job.fio:4: [a] `cgroup=x` is not taken: no control group is made or joined; start \
         plimsoll inside one",
        "job.fio:5: [a] `iodepth=0`: 1 is the least",
        "job.fio:6: [a] `iodept` is not an option of fio; did you mean `iodepth`?",
        "job.fio:8: [b] `uid=5` is not taken: the program keeps its user and groups; ",
    ];
    assert_eq!(lines.len(), starts.len(), "{refusal}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn what_would_take_long_to_judge_is_refused() {
    let unknown: String = (0..5_000).map(|at| format!("x{at}=1\n")).collect();
    assert_eq!(refusal(&format!("[a]\n{unknown}")).lines().count(), 100);
    assert_eq!(refusal(&format!("[global]\n{unknown}[a]\nrw=read")).lines().count(), 100);
    let sections: String = (0..5_000).map(|at| format!("[a{at}]\nrw=read\n")).collect();
    assert_eq!(refusal(&sections), "job.fio:2049: [a1024] there are more than 1024 sections");
    // Each section has those of all before it.
    let globals: String = (0..1_000).map(|_| "[global]\nbs=4k\n").collect();
    assert_eq!(refusal(&globals), "job.fio:893: [global] there are more than 100000 options");
}

#[test]
fn values_that_make_no_sense() {
    for (line, words) in [
        ("rw=trim", "trims are not done; they are for devices, not for files"),
        ("rw=reed", "it is read, write, randread, randwrite, rw or randrw"),
        ("rw=randread:8", "a step behind `:` is not taken"),
        ("iodepth=0", "1 is the least"),
        ("numjobs=0", "1 is the least"),
        ("nrfiles=0", "1 is the least"),
        ("numjobs=5000000000", "it is too large"),
        ("rwmixread=101", "it is a number from 0 to 100"),
        ("direct=yes", "it is 0 or 1"),
        ("direct", "it has no value"),
        ("sync=2", "it must be none, sync or dsync"),
        ("bs=4k-8k", "a range is written `bsrange=LOW-HIGH`"),
        ("bs=4k:8k", "a range is written `bsrange=LOW-HIGH`"),
        ("bs=1k,2k,3k,4k", "it is a list of three at most: read, write, trim"),
        ("bssplit=4k/60:8k/30", "it adds up to 90, not to 100"),
        ("bssplit=4k/60:8k/50", "it adds up to more than 100"),
        ("bssplit=4k/half", "`half` is not a whole percentage"),
        ("random_distribution=zipf", "write its theta, such as `zipf:1.1`"),
        ("random_distribution=zipf:1", "theta is above 0 and not 1"),
        ("random_distribution=zipf:x", "`x` is not a valid theta"),
        ("random_distribution=pareto:1.5", "h lies between 0 and 1"),
        ("random_distribution=normal:0", "the deviation is above 0 and at most 100 percent"),
        ("random_distribution=zipf:1.2:0.5", "a centre is not taken"),
        ("random_distribution=zipf:1.2,random", "one distribution goes for reads and writes"),
        (
            "random_distribution=zoned:60/10:40/90",
            "zones are not taken; zipf, pareto and normal are",
        ),
        ("random_distribution=flat", "it is random, zipf, pareto or normal"),
        ("ioengine=rbd", "it does no operations on files of a mounted file system"),
        ("ioengine=external:/x.so", "it does no operations on files of a mounted file system"),
        (
            "ioengine=dircreate",
            "directories are not made by job files; take `plimsoll as mdtest -D`",
        ),
        ("size=0", "0 bytes leave nothing to do"),
        ("filesize=0", "a file has one byte at least"),
        ("filesize=50%", "a share in percent is unexpected here"),
        (
            "filename_format=$jobname.$clientuid",
            "`$clientuid` is not taken; agents name their files themselves",
        ),
        ("filename_format=$user", "`$user` is not one of `$jobname`, `$jobnum`, `$filenum`"),
        ("percentile_list=99:nan", "`nan` is not a percentile above 0 up to 100"),
        ("percentile_list=101", "`101` is not a percentile above 0 up to 100"),
        ("rate_process=bursty", "it is linear or poisson"),
        ("verify=crc99", "fio has no such check; use one such as crc32c"),
        ("verify=null", "it checks nothing; leave it out"),
        ("kb_base=512", "it is 1024 or 1000"),
    ] {
        assert_eq!(
            refusal(&format!("[a]\nrw=read\n{line}\n")),
            format!("job.fio:3: [a] `{line}`: {words}")
        );
    }
    let many = vec!["1"; 21].join(":");
    assert!(
        refusal(&format!("[a]\npercentile_list={many}")).ends_with("20 percentiles are the most")
    );
}

#[test]
fn options_of_fio_that_are_not_taken() {
    for (line, words) in [
        ("zonemode=zbd", "zoned devices are not measured"),
        ("offset=1m", "a job works on whole files; give it its own file"),
        ("rate_min=1m", "no job ends for being slow; the rate that it reached is reported"),
        ("rate_iops_min=5", "no job ends for being slow; the rate that it reached is reported"),
        ("verify_only", "what an earlier run wrote is not known; write and check in one run"),
        ("exec_prerun=sync", "no commands are run; run it yourself before or after"),
        ("read_iolog=trace", "no record of operations is played back"),
        (
            "steadystate=iops:2%",
            "a job ends by its time or size; native commands can stop when steady",
        ),
        ("exitall", "a job ends by itself, or all on a failure by `exitall_on_error`"),
        ("fsync_on_close=1", "use `end_fsync`"),
    ] {
        assert_eq!(
            refusal(&format!("[a]\nrw=read\n{line}\n")),
            format!("job.fio:3: [a] `{line}` is not taken: {words}")
        );
    }
}

#[test]
fn options_that_cannot_hold_together() {
    for (lines, words) in [
        ("bs=4k", "the job has no `rw`; fio would read, so write `rw=read` if that is meant"),
        ("rw=read\ntime_based", "`time_based` needs a `runtime`"),
        ("rw=read\ntime_based\nruntime=0", "`time_based` needs a `runtime`"),
        ("rw=read\nrate=1m\nrate_iops=5", "`rate` and `rate_iops` cannot both hold; leave one out"),
        ("rw=read\nbs=1m\nfilesize=64k", "a block of 1048576 bytes is larger than a file of 65536"),
        (
            "rw=write\nbs=4k,8k\nsize=16k\nnrfiles=4",
            "a block of 8192 bytes is larger than a file of 4096",
        ),
        ("rw=read\nsize=3\nnrfiles=4", "`size` is less than a byte for each of its files"),
        ("rw=read\nwait_for=b", "it waits for `b`, which is not a job before it"),
        (
            "create_only=1\nallow_file_create=0",
            "`create_only` makes files and `allow_file_create=0` forbids it",
        ),
        (
            "rw=read\ndirectory=/mnt\nfilename=/data/x",
            "`filename` names /data/x from the root and `directory` is given too; leave one out",
        ),
    ] {
        assert_eq!(refusal(&format!("[a]\n{lines}\n")), format!("job.fio:1: [a] {words}"));
    }
    assert_eq!(
        refusal("[a]\nrw=read\n[a]\nrw=read\n[b]\nrw=read\nwait_for=a\n"),
        "job.fio:5: [b] it waits for `a`, a name that 2 jobs have"
    );
}

#[test]
fn files_that_include_wrongly() {
    let refusal = |files: &[(&str, &str)]| {
        let text = "[a]\nrw=read\ninclude x.inc\n";
        parse_with(Units::Strict, text, files).map_err(|error| error.to_string()).map(|_| ())
    };
    assert_eq!(
        refusal(&[
            ("x.inc", "bs=4k\ninclude y.inc\n"),
            ("y.inc", "\ninclude ./x.inc\n"),
            ("./x.inc", "")
        ]),
        Err("y.inc:2: [a] `include` goes round in a circle: job.fio → x.inc → y.inc → x.inc"
            .to_owned())
    );
    assert_eq!(
        refusal(&[("x.inc", "include job.fio\n"), ("job.fio", "")]),
        Err("x.inc:1: [a] `include` goes round in a circle: job.fio → x.inc → job.fio".to_owned())
    );
    assert_eq!(
        refusal(&[("x.inc", "[b]\n")]),
        Err("x.inc:1: [a] `[b]`: an included file must not have sections".to_owned())
    );
    assert_eq!(
        refusal(&[("x.inc", "bs=1MiB\n")]).map_err(|error| error[..29].to_owned()),
        Err("x.inc:1: [a] `bs=1MiB`: fio r".to_owned())
    );
    // A file that names another one each time never comes round.
    let read = |name: &str| Ok(format!("include x{name}\n"));
    let endless = with(Units::Strict, &[], |options| {
        parse("[a]\ninclude x\n", "job.fio", &Options { read: &read, ..options.clone() })
    });
    let error = endless.unwrap_err();
    assert!(matches!(&error.problem, Problem::TooDeep { max: 16, chain } if chain.len() == 17));
    assert!(error.to_string().contains("goes deeper than 16 files: job.fio → x → xx → xxx"));
    // Two of each in each would be tens of thousands.
    let read = |name: &str| {
        let next = format!("include {name}x\n").repeat(2);
        Ok(if name.len() < 15 { next } else { String::new() })
    };
    let wide = with(Units::Strict, &[], |options| {
        parse("[a]\ninclude x\n", "job.fio", &Options { read: &read, ..options.clone() })
    });
    assert!(wide.unwrap_err().to_string().ends_with("more than 1000 files are included"));
}
