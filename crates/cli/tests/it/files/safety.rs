//! What a run on files did not make is as it was, however the run ends.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode};
use rustix::process::Signal;
use serde_json::Value;

use super::{Directories, below, manifest};
use crate::harness::{Background, pause, run_directory, stderr};

/// Puts files of others beside those of runs, with names like theirs.
fn plant(dirs: &Directories) {
    let files = dirs.files();
    for directory in ["plimsoll/other", "plimsoll/file-iops-20200101t000000z-aaaa", "names.0"] {
        std::fs::create_dir_all(files.join(directory)).unwrap();
    }
    for (number, name) in [
        "iops.0.0",
        "throughput.1.0",
        "plimsoll-x",
        "plimsoll/iops.0.0",
        "plimsoll/.plimsoll-run",
        "plimsoll/other/iops.0.0",
        "plimsoll/file-iops-20200101t000000z-aaaa/iops.0.0",
        "names.0/file.mdtest.0.0",
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(files.join(name), format!("{number} is not ours").repeat(100)).unwrap();
    }
    std::fs::write(dirs.runs().join("outside"), "not ours either").unwrap();
    std::os::unix::fs::symlink(dirs.runs().join("outside"), files.join("plimsoll/link")).unwrap();
    std::os::unix::fs::symlink(dirs.runs(), files.join("names.1")).unwrap();
}

/// A run whose fill, or whose reading, takes as long as it is let.
fn slow(dirs: &Directories, fill: &str, read: &str) -> PathBuf {
    let text = format!(
        "schema: plimsoll.workload/2
name: file-iops
seed: 7
targets: {{files: {{directory: DIR}}}}
sets: {{f: {{files: 8, size: 64KiB, workers: 2, name: 'iops.$jobnum.$filenum'}}}}
stages:
- name: fill
  prepares: true
  jobs: [{{pacing: {fill}, work: {{fill: {{sets: f, block: 4KiB}}}}}}]
- name: read
  duration: 10m
  jobs: [{{workers: 2, depth: 2, pacing: {read}, work: {{blocks: {{on: f, read: {{percent: 50%, \
         block: 4KiB}}, write: {{block: 4KiB}}, order: sequential, repeats: true}}}}}}]
"
    );
    dirs.write("slow.yaml", &text)
}

const SLOWLY: &str = "{capped_each: {write: 1/s}}";

/// Begins a run and returns when the stage of that name is under way.
fn begin(dirs: &Directories, stage: &str) -> (Background, PathBuf) {
    let path = match stage {
        "fill" => slow(dirs, SLOWLY, "closed"),
        _ => slow(dirs, "closed", "{capped_each: {read: 100/s, write: 100/s}}"),
    };
    let line = format!("run {} --json --run-dir record", path.display());
    let running = Background::start(dirs.command(&line));
    let run = dirs.runs().join("record");
    loop {
        let stages = std::fs::read(run.join("run.json")).ok();
        let stages = stages.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let stages = stages.map(|manifest| manifest["stages"].as_array().unwrap().clone());
        if stages.unwrap_or_default().iter().any(|each| each["name"] == stage) {
            return (running, run);
        }
        pause();
    }
}

#[track_caller]
fn cleaned(dirs: &Directories, line: &str) -> String {
    let output = dirs.command(line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn foreign_files_survive_every_command() {
    let dirs = Directories::in_memory();
    plant(&dirs);
    let before = below(dirs.files());
    for line in [
        "file iops --dir DIR --jobs 2 --file-size 64KiB --ops 20",
        "file bandwidth --dir DIR --jobs 2 --file-size 64KiB --block 4KiB --ops 20 --op mixed",
        "file metadata --dir DIR --jobs 2 --files 20",
        "as mdtest -np 2 -F -n 20 -d DIR",
        "as fio --name=iops --numjobs=2 --rw=randrw --size=64k --directory=DIR",
    ] {
        let output = dirs.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        assert_eq!(below(dirs.files()), before, "{line}");
    }
    let text = cleaned(&dirs, "clean DIR --yes");
    assert!(text.contains("no run left anything"), "{text}");
    assert_eq!(below(dirs.files()), before);
}

#[test]
fn data_that_is_to_be_kept_is_kept_until_it_is_cleaned() {
    let dirs = Directories::in_memory();
    plant(&dirs);
    let before = below(dirs.files());
    let line = "file iops --dir DIR --jobs 2 --file-size 64KiB --ops 20 --keep-data";
    for by in ["run", "directory"] {
        cleaned(&dirs, line);
        let run = run_directory(dirs.runs());
        let id = manifest(&run)["run_id"].as_str().unwrap().to_owned();
        let work_dir = dirs.files().join("plimsoll").join(&id);
        let names: Vec<PathBuf> = below(&work_dir).into_keys().collect();
        let expected = [".plimsoll-run", "iops.0.0", "iops.1.0"].map(|name| work_dir.join(name));
        assert_eq!(names, expected);
        assert_eq!(std::fs::metadata(&names[1]).unwrap().len(), 65_536);
        if by == "run" {
            let text = cleaned(&dirs, &format!("clean {}", run.display()));
            assert!(text.contains("removed 2 files"), "{text}");
            assert_eq!(manifest(&run)["cleanup"]["state"], "complete");
        } else {
            let text = cleaned(&dirs, "clean DIR");
            assert!(text.contains(&id) && text.contains("--yes"), "{text}");
            assert!(work_dir.exists(), "without --yes nothing is removed");
            cleaned(&dirs, "clean DIR --yes --run file-iops-20200101t000000z-aaaa");
            assert!(work_dir.exists(), "that is another run");
            cleaned(&dirs, &format!("clean DIR --yes --run {id}"));
        }
        assert_eq!(below(dirs.files()), before, "{by}");
        std::fs::remove_dir_all(run).unwrap();
    }
}

#[test]
fn after_kill_9_clean_finishes_the_job() {
    for stage in ["fill", "read"] {
        for by in ["run", "directory"] {
            let dirs = Directories::in_memory();
            plant(&dirs);
            let before = below(dirs.files());
            let (running, run) = begin(&dirs, stage);
            running.signal(Signal::KILL);
            assert_eq!(running.end().0, None);
            assert_eq!(
                manifest(&run)["state"],
                "running",
                "a killed run is not presented as whole"
            );
            assert!(below(dirs.files()).len() > before.len(), "{stage}: it had begun");
            let line = match by {
                "run" => format!("clean {}", run.display()),
                _ => "clean DIR --yes".to_owned(),
            };
            cleaned(&dirs, &line);
            assert_eq!(below(dirs.files()), before, "{stage} {by}");
            // There is nothing left to do, which is no error.
            cleaned(&dirs, &line);
        }
    }
}

#[test]
fn ctrl_c_reports_what_was_measured_and_cleans() {
    for dirs in [Directories::in_memory(), Directories::on_disk()] {
        plant(&dirs);
        let before = below(dirs.files());
        let (running, run) = begin(&dirs, "read");
        running.signal(Signal::INT);
        let (code, stdout, stderr) = running.end();
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["state"], "interrupted", "{stderr}");
        assert_eq!(code, Some(130), "{stderr}");
        assert_eq!(manifest(&run)["state"], "interrupted");
        assert_eq!(below(dirs.files()), before);
    }
}

#[test]
fn ctrl_c_while_filling_cleans_and_says_that_nothing_was_measured() {
    let dirs = Directories::in_memory();
    plant(&dirs);
    let before = below(dirs.files());
    let (running, run) = begin(&dirs, "fill");
    running.signal(Signal::INT);
    let (code, stdout, stderr) = running.end();
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{stderr}");
    assert!(stderr.contains("nothing was measured"), "{stderr}");
    assert_eq!(manifest(&run)["state"], "failed");
    assert_eq!(below(dirs.files()), before);
}

#[test]
fn a_run_is_cleaned_from_wherever_one_is() {
    let (dirs, elsewhere) = (Directories::in_memory(), Directories::in_memory());
    std::fs::create_dir(dirs.runs().join("below")).unwrap();
    cleaned(&dirs, "file metadata --dir below --jobs 1 --files 5 --keep-data");
    cleaned(&dirs, "file iops --dir below --jobs 1 --file-size 64KiB --ops 5 --keep-data");
    for entry in std::fs::read_dir(dirs.runs()).unwrap() {
        let run = entry.unwrap().path();
        if run.join("run.json").exists() {
            cleaned(&elsewhere, &format!("clean {}", run.display()));
        }
    }
    assert!(below(&dirs.runs().join("below")).is_empty());
}

#[test]
fn a_manifest_that_names_other_places_empties_nothing() {
    let dirs = Directories::in_memory();
    plant(&dirs);
    let line = "file iops --dir DIR --jobs 2 --file-size 64KiB --ops 20 --keep-data";
    cleaned(&dirs, line);
    let before = below(dirs.files());
    let run = run_directory(dirs.runs());
    let mut manifest = manifest(&run);
    // Else it is refused for that.
    manifest.as_object_mut().unwrap().remove("checksum");
    let write =
        |manifest: &Value| std::fs::write(run.join("run.json"), manifest.to_string()).unwrap();
    let clean = |codes: &[i32]| {
        let output = dirs.command(&format!("clean {}", run.display())).output().unwrap();
        assert!(codes.contains(&output.status.code().unwrap()), "{output:?}");
        assert_eq!(below(dirs.files()), before);
    };
    let id = manifest["run_id"].clone();
    for other in ["other", "file-iops-20200101t000000z-aaaa", "..", ".", "../plimsoll/other", ""] {
        manifest["run_id"] = other.into();
        write(&manifest);
        clean(&[2]);
    }
    manifest["run_id"] = id.clone();
    let place = |name: &str| dirs.files().join(name).display().to_string();
    let right = manifest["target"]["files"]["directories"].clone();
    for other in ["plimsoll", "plimsoll/other", "names.0", "names.1"] {
        manifest["target"]["files"]["directories"] = vec![place(other)].into();
        write(&manifest);
        clean(&[0, 2]);
    }
    // The marker of another run is left alone as well.
    manifest["target"]["files"]["directories"] = right;
    write(&manifest);
    let work_dir = dirs.files().join("plimsoll").join(id.as_str().unwrap());
    let marker = work_dir.join(".plimsoll-run");
    let text = std::fs::read(&marker).unwrap();
    std::fs::write(&marker, "another\n").unwrap();
    let output = dirs.command(&format!("clean {}", run.display())).output().unwrap();
    assert!(output.status.code() == Some(2) && stderr(&output).contains("marker"), "{output:?}");
    std::fs::write(&marker, text).unwrap();
    assert_eq!(below(dirs.files()), before);
    assert!(Path::new(&work_dir).exists());
}

#[test]
fn a_link_in_the_place_of_the_runs_directories_is_not_followed() {
    let dirs = Directories::in_memory();
    let outside = dirs.runs().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, dirs.files().join("plimsoll")).unwrap();
    let line = "file iops --dir DIR --jobs 1 --file-size 64KiB --ops 5";
    let output = dirs.command(line).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("symbolic link"), "{said}");
    assert!(below(&outside).is_empty());
    let output = dirs.command("clean DIR --yes").output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{output:?}");
}

/// Makes the directory of a run that has ended with something left, and returns the run's id.
fn leftover(dirs: &Directories) -> String {
    cleaned(dirs, "file iops --dir DIR --jobs 1 --file-size 64KiB --ops 5 --keep-data");
    let run = run_directory(dirs.runs());
    let id = manifest(&run)["run_id"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(run).unwrap();
    id
}

#[test]
fn what_others_make_beside_runs_keeps_no_run_from_being_cleaned() {
    let dirs = Directories::in_memory();
    let home = dirs.files().join("plimsoll");
    let marker = |name: &str| {
        std::fs::create_dir_all(home.join(name)).unwrap();
        home.join(name).join(".plimsoll-run")
    };
    std::os::unix::fs::symlink("/dev/null", marker("a-link")).unwrap();
    std::os::unix::fs::symlink(marker("a-loop"), marker("a-loop")).unwrap();
    std::fs::create_dir(marker("a-directory")).unwrap();
    std::fs::write(marker("a-blob"), [0xff; 10_000]).unwrap();
    std::fs::write(home.join("a-file"), "a-file\n").unwrap();
    std::os::unix::fs::symlink(&home, home.join("a-way")).unwrap();
    let before = below(dirs.files());
    let id = leftover(&dirs);
    let mut listed = Vec::new();
    for line in ["clean DIR", "clean DIR --yes", "clean DIR --yes"] {
        let output = dirs.command(line).output().unwrap();
        let (said, stdout) = (stderr(&output), String::from_utf8(output.stdout).unwrap());
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        for name in ["a-link", "a-loop", "a-directory"] {
            let path = home.join(name).join(".plimsoll-run").display().to_string();
            let remarks = said.lines().filter(|line| line.contains(&path)).count();
            assert_eq!(remarks, 1, "{line}: {said}");
        }
        assert_eq!(said.lines().count(), 3, "{line}: {said}");
        listed.push(stdout.contains(&id));
    }
    assert_eq!(listed, [true, true, false]);
    assert_eq!(below(dirs.files()), before);
    // `--run` with its id is refused.
    let output = dirs.command("clean DIR --yes --run a-link").output().unwrap();
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("symbolic link"), "{said}");
}

#[test]
fn a_run_that_cannot_be_removed_keeps_no_other_from_being_cleaned() {
    let dirs = Directories::in_memory();
    let id = leftover(&dirs);
    // A pipe as marker names the run once, and nothing when the run is to be removed.
    let stuck = dirs.files().join("plimsoll/a-run");
    let marker = stuck.join(".plimsoll-run");
    std::fs::create_dir(&stuck).unwrap();
    let user = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &marker, FileType::Fifo, user, 0).unwrap();
    let mut pipe = File::options().read(true).write(true).open(&marker).unwrap();
    pipe.write_all(b"a-run\n").unwrap();
    let output = dirs.command("clean DIR --yes").output().unwrap();
    let (said, text) = (stderr(&output), String::from_utf8(output.stdout).unwrap());
    assert!(text.contains("a-run: ") && text.contains(&id), "{text}");
    assert!(!dirs.files().join("plimsoll").join(&id).exists(), "{said}");
    let names_it = said.contains(&marker.display().to_string());
    assert!(output.status.code() == Some(2) && names_it && stuck.exists(), "{said}");
}

#[test]
fn names_that_others_chose_are_no_commands_to_the_terminal() {
    let dirs = Directories::in_memory();
    let title = "a\x1b]0;PWNED\x07\x1b[2Jb";
    for name in [title, "A run", "z\u{202e}gpj"] {
        let place = dirs.files().join("plimsoll").join(name);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(".plimsoll-run"), name).unwrap();
    }
    let text = cleaned(&dirs, "clean DIR --yes");
    assert!(text.contains("no run left anything"), "{text:?}");
    assert_eq!(below(dirs.files()).len(), 7);
    // A record may come from others, too.
    cleaned(&dirs, "file iops --dir DIR --jobs 1 --file-size 64KiB --ops 5 --keep-data");
    let run = run_directory(dirs.runs());
    let mut manifest = manifest(&run);
    manifest.as_object_mut().unwrap().remove("checksum");
    let place = dirs.files().join(title);
    std::fs::create_dir(&place).unwrap();
    manifest["target"]["files"]["directories"] = vec![place.display().to_string()].into();
    std::fs::write(run.join("run.json"), manifest.to_string()).unwrap();
    let text = cleaned(&dirs, &format!("clean {}", run.display()));
    assert!(text.contains("is left in"), "{text:?}");
    assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
}
