//! What cannot be done on files ends with exit code 2 and one sentence, and nothing is made.

use std::process::{Command, Stdio};

use super::{Directories, below, on_small_disk, printed_and_left, skip};
use crate::harness::{measured, stderr};

/// Checks that a line is refused in one line that holds all of `words`, and leaves nothing.
#[track_caller]
fn check(dirs: &Directories, line: &str, words: &[&str]) {
    let before = below(dirs.runs());
    let output = dirs.command(line).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {text}");
    assert!(output.stdout.is_empty(), "{line}: stdout is for results");
    // What the parser of the command line refuses it follows up with a hint.
    let said =
        if text.starts_with("error: ") { text.lines().take(1) } else { text.lines().take(9) };
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), 1, "{line}: {text}");
    for word in words {
        assert!(said[0].contains(word), "{line}: no `{word}` in: {text}");
    }
    assert_eq!(below(dirs.runs()), before, "{line}");
    dirs.assert_clean(line);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_flag_to_change() {
    let dirs = Directories::in_memory();
    dirs.write("empty", "");
    dirs.write("short", &"x".repeat(6_000));
    for (line, words) in [
        ("--dir nowhere", ["nowhere", "does not exist"].as_slice()),
        ("--dir short", &["short", "not a directory"]),
        ("--dir short/below", &["short/below", "not a directory"]),
        ("--dir /proc --direct off", &["/proc"]),
        ("--dir DIR --dir nowhere", &["nowhere", "does not exist"]),
        ("--dir DIR --jobs 0", &["--jobs", "1 to 1000000"]),
        ("--dir DIR --depth 0", &["--depth", "1 to 65536"]),
        ("--dir DIR --files 0", &["--files", "at least 1"]),
        ("--dir DIR --jobs 1 --depth 32769", &["--depth", "32,769", "32,768"]),
        ("--dir DIR --jobs 65 --depth 1024 --threads 2", &["--depth", "33,792", "--threads"]),
        ("--dir DIR --jobs 1 --rate 9/s --max-in-flight 32769", &["--max-in-flight", "32,768"]),
        ("--dir DIR --jobs 10001 --interface psync", &["--jobs", "10,001", "10,000"]),
        ("--dir DIR --threads 4097", &["--threads", "4096"]),
        ("--dir DIR --ops 0", &["--ops", "at least 1"]),
        ("--dir DIR --duration 0s", &["--duration", "longer than 0s"]),
        ("--dir DIR --bytes 0", &["--bytes", "at least 1"]),
        ("--dir DIR --block 0", &["--block"]),
        ("--dir DIR --block 1000 --direct on", &["--block", "1000", "512"]),
        ("--dir DIR --duration 10", &["--duration", "write `10s`"]),
        ("--dir DIR --rate 10", &["--rate", "write `10/s`"]),
        ("--dir DIR --block 8GiB --file-size 16GiB", &["--block", "8GiB", "1GiB"]),
        ("--dir DIR --block 8KiB --file-size 4KiB", &["--file-size", "4KiB", "8KiB"]),
        ("--dir DIR --file-size 100TiB", &["free", "--file-size"]),
        ("--dir DIR --order zipfy", &["--order", "zipf:THETA"]),
        ("--dir DIR --order zipf:1", &["--order", "above 0 and not 1"]),
        ("--dir DIR --order normal:101", &["--order", "to 100%"]),
        ("--dir DIR --order sequential:3", &["--order", "takes no number"]),
        ("--dir DIR --rate banana", &["--rate", "1000/s"]),
        ("--dir DIR --rate 10/s --arrivals never", &["--arrivals", "poisson"]),
        ("--dir DIR --rate 10/s --rps-limit 5/s", &["--rate", "--rps-limit"]),
        ("--dir DIR --max-in-flight 5", &["--max-in-flight", "--rate"]),
        ("--dir DIR --rps-limit 0/s", &["--rps-limit", "above 0"]),
        ("--dir DIR --rps-limit 5", &["--rps-limit", "write `5/s`"]),
        ("--dir DIR --interface aio", &["--interface", "aio"]),
        ("--dir DIR --file", &["--file"]),
        ("--dir DIR --on short", &["--on short", "--op read", "--i-know-this-destroys-data"]),
        ("--dir DIR --op read --on nowhere", &["nowhere", "does not exist"]),
        ("--dir DIR --op read --on DIR", &["neither a file nor a block device"]),
        ("--dir DIR --op read --on empty", &["empty", "holds 0 B"]),
        ("--dir DIR --op read --on short --block 8KiB", &["short", "5.86 KiB", "8.00 KiB"]),
        ("--dir DIR --op read --on short --file-size 64KiB", &["short", "5.86 KiB", "64.0 KiB"]),
        ("--dir DIR --op read --on /dev/null --direct off", &["/dev/null", "block device"]),
        ("--dir DIR --op read --on /dev/zero", &["/dev/zero", "block device"]),
    ] {
        let size = if line.contains("file-size") || line.contains("--on") {
            ""
        } else {
            " --file-size 64KiB"
        };
        let ends =
            if line.contains("--ops") || line.contains("--duration") { "" } else { " --ops 5" };
        check(&dirs, &format!("file iops {line}{size}{ends}"), words);
    }
    for (line, words) in [
        ("metadata --dir DIR --files 0", ["--files", "at least 1"].as_slice()),
        ("metadata --dir DIR --jobs 0", &["--jobs", "1 to 1000000"]),
        ("metadata --dir DIR --iterations 100", &["--iterations", "256"]),
        ("metadata --dir DIR --iterations 4000000000", &["--iterations", "256"]),
        ("metadata --dir DIR --jobs 1000000", &["--jobs", "10,000"]),
        ("metadata --dir DIR --file-size 8GiB", &["--file-size"]),
        ("metadata --dir DIR --file-size 2GiB", &["--file-size"]),
        ("metadata --dir nowhere", &["nowhere", "does not exist"]),
        ("suite --dir DIR --scale 2", &["--scale", "1/1024"]),
        ("suite --dir DIR --scale 1/1048576 --iterations 60", &["--iterations", "256"]),
    ] {
        check(&dirs, &format!("file {line}"), words);
    }
    let device =
        std::fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path()).find(|path| {
            use std::os::unix::fs::FileTypeExt;
            path.metadata().is_ok_and(|facts| facts.file_type().is_block_device())
        });
    let Some(device) = device else { return skip("there is no block device here") };
    let (device, flag) = (device.display().to_string(), "--i-know-this-destroys-data");
    check(&dirs, &format!("file iops --dir DIR --op read --on {device} --ops 5"), &[&device, flag]);
    let line = format!("as fio --name=x --rw=read --size=64k --filename={device}");
    check(&dirs, &line, &[&device, flag]);
}

#[test]
fn a_block_that_cannot_bypass_the_page_cache_is_refused_with_direct_off() {
    let dirs = Directories::on_disk();
    let line = |block: &str| {
        format!("file iops --dir DIR --op read --file-size 64KiB --jobs 1 --ops 5 --block {block}")
    };
    if measured(&dirs.json(&format!("{} --json", line("4KiB")), 0))["direct"] != true {
        return skip("no O_DIRECT here");
    }
    // As other tools read it, 4KB is 4,000 bytes.
    check(&dirs, &line("4KB"), &["--block: 4000B is not a multiple of", "--direct off"]);
    dirs.printed(&line("4KB --direct off"), 0);
}

#[test]
fn job_files_and_command_lines_of_others_have_the_same_bounds() {
    let dirs = Directories::in_memory();
    dirs.write("deep.fio", "[a]\nrw=read\nsize=64k\nioengine=io_uring\niodepth=32769\n");
    check(&dirs, "as fio deep.fio --directory=DIR", &["`depth`", "32,769"]);
    let many = "as fio --name=a --rw=read --size=4k --directory=DIR --ioengine=psync";
    check(&dirs, &format!("{many} --numjobs=10001"), &["`numjobs=10001`", "10000 clones"]);
    let ranks = "as mdtest -np 10001 -n 1 -d DIR";
    check(&dirs, ranks, &["`jobs`", "10,001"]);
    // What the workload is refused for has the name that was written.
    let deep = "as fio --name=a --rw=read --size=4k --ioengine=io_uring --iodepth=70000";
    check(&dirs, &format!("{deep} --directory=DIR"), &["`iodepth`: 70000 is out of range"]);
    check(&dirs, "as mdtest -np 2000000 -n 1 -d DIR", &["`-np`: 2000000 is out of range"]);
}

#[test]
fn job_files_that_cannot_be_run_are_refused_with_file_and_line() {
    let dirs = Directories::in_memory();
    dirs.write("circle.fio", "[global]\ninclude round.fio\n[a]\nrw=read\nsize=64k\n");
    dirs.write("round.fio", "include circle.fio\n");
    for (line, words) in [
        ("run absent.fio", ["absent.fio", "No such file"].as_slice()),
        ("run circle.fio", &["round.fio:1", "circle.fio → round.fio → circle.fio"]),
        ("as fio circle.fio", &["round.fio:1", "circle"]),
        ("as mdtest -np 0 -F -n 5 -d DIR", &["-np 0"]),
        ("as mdtest -F -n 5 -d nowhere", &["nowhere", "does not exist"]),
        ("as mdtest -Q -n 5 -d DIR", &["-Q", "no flag"]),
        ("as mdtest -F -n 50 -i 60 -d DIR", &["-i 60", "256"]),
        (
            "file metadata --dir DIR --dir DIR/x --shared-directory",
            &["--dir", "--shared-directory"],
        ),
    ] {
        check(&dirs, line, words);
    }
    let many: String =
        (0..200).map(|number| format!("[a{number}]\nstonewall\nrw=read\nsize=4k\n")).collect();
    for (text, words) in [
        ("[a]\nsize=64k\n", ["job.fio:1", "no `rw`", "rw=read"].as_slice()),
        ("[a]\nsize=64k\nbananas=3\n", &["job.fio:3", "`bananas`", "not an option"]),
        ("[a]\nsize=64k\nrw=sideways\n", &["job.fio:3", "randrw"]),
        ("[a]\nsize=64k\nrw=read\nzonemode=zbd\n", &["zonemode=zbd", "not taken"]),
        ("[a]\nsize=64KiB\nrw=read\n", &["64,000", "--fio-units"]),
        ("[global]\nsize=64k\n", &["no section"]),
        ("[a]\nrw=read\nsize=64k\nnumjobs=0\n", &["numjobs=0"]),
        ("[a]\nrw=read\nsize=1k\nbs=4k\n", &["4096", "1024"]),
        ("[a]\nrw=read\nsize=64k\nbs=1000\ndirect=1\n", &["1000", "512"]),
        ("[a]\nrw=read\nsize=64k\nfilename=../x\n", &["../x", "leads out"]),
        (
            "[a]\nrw=write\nsize=4k\nfilename=THERE\n",
            &["already exists", "--i-know-this-destroys-data"],
        ),
        ("[a]\nrw=read\nsize=1m\nfilename=THERE\n", &["4096 bytes", "1048576"]),
        ("[a]\nrw=read\nsize=400t\n", &["free"]),
        (&many, &["256"]),
    ] {
        let there = dirs.write("there", &"x".repeat(4_096));
        dirs.write("job.fio", &text.replace("THERE", &there.display().to_string()));
        check(&dirs, "run job.fio --dir DIR", words);
        assert_eq!(std::fs::read(there).unwrap(), [b'x'; 4_096]);
    }
    let lines =
        "schema: plimsoll.workload/2\nname: x\nseed: 1\nverify: true\nstages: []\nmore: 1\n";
    dirs.write("strange.yaml", lines);
    check(&dirs, "run strange.yaml", &["strange.yaml:", "more"]);
}

#[test]
fn pipes_and_sockets_are_refused_and_not_waited_for() {
    let dirs = Directories::in_memory();
    let pipe = dirs.runs().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("no mkfifo here");
    }
    let socket = dirs.runs().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&pipe, &socket] {
        let text = format!("[a]\nrw=read\nsize=64k\nfilename={}\n", path.display());
        dirs.write("there.fio", &text.replace("size", "allow_file_create=0\nsize"));
        let text = format!("[a]\nrw=read\nsize=64k\ndirectory={}\n", path.display());
        dirs.write("in.fio", &text);
        let path = path.display();
        for (line, word) in [
            (format!("file iops --dir {path}"), "not a directory"),
            (format!("file metadata --dir {path} --jobs 1"), "not a directory"),
            (format!("file iops --dir DIR --on {path} --op read"), "neither a file nor a block"),
            (
                format!("file iops --dir DIR --on {path} --op write --i-know-this-destroys-data"),
                "neither a file nor a block",
            ),
            (format!("as mdtest -n 1 -d {path}"), "not a directory"),
            ("run there.fio".to_owned(), "is not there"),
            ("run in.fio".to_owned(), "not a directory"),
        ] {
            // Should it wait, somebody ends it.
            let mut command = Command::new("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_plimsoll")]).current_dir(dirs.runs());
            let files = dirs.files().display().to_string();
            command.args(line.split(' ').map(|word| word.replace("DIR", &files)));
            let output = command.stdin(Stdio::null()).output().unwrap();
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{line}: {text}");
            assert!(text.contains(word), "{line}: {text}");
            dirs.assert_clean(&line);
        }
    }
}

#[test]
fn too_few_descriptors_are_told_with_the_number_that_is_needed() {
    let dirs = Directories::in_memory();
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    let files = dirs.files().display();
    let line = format!("file iops --dir {files} --file-size 64KiB --files 100 --jobs 2 --ops 5");
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n 40 && exec {binary} {line}")]);
    let output = limited.current_dir(dirs.runs()).stdin(Stdio::null()).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("ulimit -n") && text.contains("may have 40"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    dirs.assert_clean("too few descriptors");
}

#[test]
fn a_directory_of_others_is_refused_to_those_who_may_not_write_there() {
    let dirs = Directories::on_disk();
    let (binary, files) = (env!("CARGO_BIN_EXE_plimsoll"), dirs.files());
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(files, 0o555);
    mode(dirs.runs(), 0o777);
    let words = ["file", "iops", "--file-size", "64KiB", "--ops", "5", "--dir"];
    let is_root = rustix::process::geteuid().is_root();
    let mut command = if is_root { Command::new("setpriv") } else { Command::new(binary) };
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", binary]);
    }
    command.args(words).arg(files).current_dir(dirs.runs()).stdin(Stdio::null());
    let output = command.output();
    mode(files, 0o755);
    let Ok(output) = output else { return skip("no setpriv") };
    let text = stderr(&output);
    if text.starts_with("setpriv") {
        return skip(&text);
    }
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(&files.display().to_string()), "{text}");
    assert!(text.contains("permission denied"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    dirs.assert_clean("no permission");
    assert!(below(dirs.runs()).is_empty());
}

#[test]
fn full_and_read_only_file_systems_are_refused_in_a_sentence() {
    let dirs = Directories::on_disk();
    let run = "$PLIMSOLL file iops --dir $DIR --ops 5 --jobs 1 --file-size";
    for (script, word) in [
        (format!("{run} 16MiB"), "the files need 16.0 MiB"),
        (format!("head -c 16M /dev/zero > $DIR/foreign 2>/dev/null; {run} 64KiB"), "0 B free"),
        (format!("mount -o remount,ro $DIR; {run} 64KiB"), "read-only"),
    ] {
        let Some(output) = on_small_disk(dirs.runs(), "8m", &script) else { return };
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{script}: {text}");
        assert!(text.contains(word) && text.lines().count() == 1, "{script}: {text}");
        let (printed, left) = printed_and_left(&output);
        let foreign = if script.contains("foreign") { "./foreign\n" } else { "" };
        assert_eq!((&*printed, &*left), ("", foreign), "{script}");
        std::fs::remove_dir(dirs.runs().join("small")).unwrap();
        assert!(below(dirs.runs()).is_empty(), "{script}: no record of what never ran");
    }
}
