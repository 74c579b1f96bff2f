//! The run's own directories: made where they belong, swept to the last file, and nothing beside
//! them touched.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use plimsoll_driver::{Access, OpenMode, Request, Ring, RingDriver};
use plimsoll_driver_file::FilesDriver;
use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_file::caches::drop_files;
use plimsoll_driver_file::in_use::{Held, hold_for_writing};
use plimsoll_driver_file::work_dir::{
    Found, Leftovers, Swept, WorkDir, WorkDirError, find, is_alive, sweep,
};
use plimsoll_model::{Interface, SyncMode};

use crate::{in_memory, on_disk};

const RUN: &str = "2026-11-21-files-abcd";

/// Returns everything below a folder, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let mut rest = vec![folder.to_owned()];
    let mut names = Vec::new();
    while let Some(each) = rest.pop() {
        for entry in fs::read_dir(each).unwrap() {
            let path = entry.unwrap().path();
            names.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() && !path.is_symlink() {
                rest.push(path);
            }
        }
    }
    names.sort();
    names
}

/// Makes a working directory with three files of 1,000, 2,000 and 0 bytes in two directories.
fn make(folder: &Path) -> WorkDir {
    let work_dir = WorkDir::make(&AllowedDirs::ANY, folder, RUN).unwrap();
    work_dir.make_directories([work_dir.path().join("a/b"), work_dir.path().join("c")]).unwrap();
    for (name, size) in [("a/one", 1_000), ("a/b/two", 2_000), ("none", 0)] {
        work_dir.make_file(&work_dir.path().join(name), size).unwrap();
    }
    work_dir
}

/// Returns what runs left in a folder in which nothing is wrong.
#[track_caller]
fn runs_in(folder: &Path) -> Vec<Found> {
    let Leftovers { runs, left_alone } = find(folder).unwrap();
    assert!(left_alone.is_empty(), "{left_alone:?}");
    runs
}

#[test]
fn a_work_dir_is_made_found_and_swept() {
    for folder in [Some(on_disk()), in_memory()].into_iter().flatten() {
        let folder = folder.path();
        assert_eq!(runs_in(folder), []);
        fs::write(folder.join("foreign"), "x").unwrap();
        let work_dir = make(folder);
        let home = folder.join("plimsoll");
        assert_eq!(work_dir.path(), home.join(RUN));
        let marker = fs::read_to_string(work_dir.path().join(".plimsoll-run")).unwrap();
        assert_eq!(marker, format!("{RUN}\n"));
        let two = fs::metadata(work_dir.path().join("a/b/two")).unwrap();
        assert_eq!(two.len(), 2_000);
        assert!(two.blocks() > 0, "its space is reserved");
        // Once more is as good as once, and shrinks nothing.
        let again = make(folder);
        again.make_file(&again.path().join("a/one"), 10).unwrap();
        let found = runs_in(folder);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].files, found[0].bytes), (3, 3_000));
        assert_eq!(found[0].run_id, RUN);
        let changed = two.mtime() as u64 * 1_000_000_000;
        assert!(found[0].modified.as_unix_ns() >= changed);
        fs::create_dir(home.join("beside")).unwrap();
        let swept = sweep(folder, RUN, &|| false).unwrap();
        assert_eq!(swept, Swept { files: 3, directories: 3, bytes: 3_000 });
        assert_eq!(listing(folder), ["foreign", "plimsoll", "plimsoll/beside"]);
        assert_eq!(runs_in(folder), []);
        fs::remove_dir(home.join("beside")).unwrap();
        assert_eq!(sweep(folder, RUN, &|| false).unwrap(), Swept::default());
        assert_eq!(listing(folder), ["foreign"]);
        assert_eq!(sweep(folder, RUN, &|| false).unwrap(), Swept::default());
    }
}

#[test]
fn a_run_is_seen_to_live_while_it_holds_its_directory_and_no_longer() {
    let folder = on_disk();
    let work_dir = make(folder.path());
    assert!(is_alive(folder.path(), RUN).unwrap());
    assert!(runs_in(folder.path())[0].is_alive);
    drop(work_dir);
    assert!(!is_alive(folder.path(), RUN).unwrap());
    assert!(!runs_in(folder.path())[0].is_alive);
    assert!(!is_alive(folder.path(), "another-run").unwrap());
}

#[test]
fn a_sweep_that_is_stopped_says_so_and_can_be_taken_up_again() {
    let folder = on_disk();
    let work_dir = make(folder.path());
    for number in 0..10 {
        work_dir.make_file(&work_dir.path().join(format!("{number}")), 10).unwrap();
    }
    let before = runs_in(folder.path())[0].files;
    assert!(before >= 10);
    let stopped = sweep(folder.path(), RUN, &|| true);
    assert!(matches!(stopped, Err(WorkDirError::Stopped(_))), "{stopped:?}");
    assert_eq!(runs_in(folder.path())[0].files, before);
    assert_eq!(sweep(folder.path(), RUN, &|| false).unwrap().files, before);
}

#[test]
fn links_are_removed_and_not_followed() {
    let (folder, outside) = (on_disk(), on_disk());
    fs::write(outside.path().join("precious"), "x").unwrap();
    let work_dir = make(folder.path());
    symlink(outside.path(), work_dir.path().join("a/way-out")).unwrap();
    symlink(outside.path().join("precious"), work_dir.path().join("file-out")).unwrap();
    for through in ["a/way-out/new", "file-out"] {
        let error = work_dir.make_file(&work_dir.path().join(through), 10).unwrap_err();
        assert!(matches!(error, WorkDirError::Link(_)), "{error}");
    }
    let error = work_dir.make_directories([work_dir.path().join("a/way-out/new")]).unwrap_err();
    let link = work_dir.path().join("a/way-out");
    let text =
        format!("{} is a symbolic link, and no run makes any; it is not followed", link.display());
    assert_eq!(error.to_string(), text);
    let swept = sweep(folder.path(), RUN, &|| false).unwrap();
    assert_eq!((swept.files, swept.directories), (5, 3));
    assert_eq!(listing(folder.path()), [""; 0]);
    assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "x");
}

#[test]
fn a_link_in_place_of_a_work_dir_is_refused() {
    let (folder, outside) = (on_disk(), on_disk());
    make(outside.path());
    let before = listing(outside.path());
    symlink(outside.path().join("plimsoll"), folder.path().join("plimsoll")).unwrap();
    assert!(matches!(
        WorkDir::make(&AllowedDirs::ANY, folder.path(), RUN),
        Err(WorkDirError::Link(_))
    ));
    assert!(matches!(sweep(folder.path(), RUN, &|| false), Err(WorkDirError::Link(_))));
    assert!(matches!(find(folder.path()), Err(WorkDirError::Link(_))));
    assert_eq!(listing(outside.path()), before);
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let folder = on_disk();
    let work_dir = make(folder.path());
    let marker = work_dir.path().join(".plimsoll-run");
    let refused = |folder: &Path| {
        let before = listing(folder);
        for error in [
            WorkDir::make(&AllowedDirs::ANY, folder, RUN).unwrap_err(),
            sweep(folder, RUN, &|| false).unwrap_err(),
        ] {
            let path = folder.join("plimsoll").join(RUN);
            let text =
                format!("{} has no marker of the run {RUN}, so it is left alone", path.display());
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(runs_in(folder), []);
        assert_eq!(listing(folder), before);
    };
    fs::write(&marker, "another-run\n").unwrap();
    refused(folder.path());
    fs::remove_file(&marker).unwrap();
    refused(folder.path());
}

#[test]
fn a_sweep_that_was_cut_short_is_taken_up_again() {
    let folder = on_disk();
    let work_dir = make(folder.path());
    fs::remove_dir_all(work_dir.path().join("a")).unwrap();
    let swept = sweep(folder.path(), RUN, &|| false).unwrap();
    assert_eq!(swept, Swept { files: 1, directories: 1, bytes: 0 });
    // Killed when only the empty directory was left, or when it had just been made.
    fs::create_dir_all(folder.path().join("plimsoll").join(RUN)).unwrap();
    assert_eq!(sweep(folder.path(), RUN, &|| false).unwrap(), Swept::default());
    assert_eq!(listing(folder.path()), [""; 0]);
}

#[test]
fn many_files_are_swept() {
    let folder = in_memory().unwrap_or_else(on_disk);
    let work_dir = WorkDir::make(&AllowedDirs::ANY, folder.path(), RUN).unwrap();
    let directories: Vec<_> =
        (0..30).map(|n| work_dir.path().join(format!("t{}/d{n}", n % 3))).collect();
    work_dir.make_directories(&directories).unwrap();
    for directory in &directories {
        for n in 0..50 {
            fs::write(directory.join(format!("f{n}")), [1; 7]).unwrap();
        }
    }
    for n in 0..1_000 {
        fs::write(work_dir.path().join(format!("g{n}")), "").unwrap();
    }
    let found = runs_in(folder.path());
    assert_eq!((found[0].files, found[0].bytes), (2_500, 10_500));
    let swept = sweep(folder.path(), RUN, &|| false).unwrap();
    assert_eq!(swept, Swept { files: 2_500, directories: 33, bytes: 10_500 });
    assert_eq!(listing(folder.path()), [""; 0]);
}

#[test]
fn what_cannot_be_a_work_dir_is_said_in_one_sentence() {
    let folder = on_disk();
    let (away, file) = (folder.path().join("away"), folder.path().join("file"));
    fs::write(&file, "x").unwrap();
    let text = |error: WorkDirError| error.to_string();
    assert_eq!(
        text(WorkDir::make(&AllowedDirs::ANY, &away, RUN).unwrap_err()),
        format!("the directory {} does not exist", away.display())
    );
    assert_eq!(
        text(WorkDir::make(&AllowedDirs::ANY, &file, RUN).unwrap_err()),
        format!("{} is not a directory", file.display())
    );
    for run_id in ["", ".", "..", "a/b", ".hidden", "a\x1b[2Jb", "A"] {
        assert!(
            matches!(
                WorkDir::make(&AllowedDirs::ANY, folder.path(), run_id),
                Err(WorkDirError::RunId(_))
            ),
            "{run_id}"
        );
        assert!(
            matches!(sweep(folder.path(), run_id, &|| false), Err(WorkDirError::RunId(_))),
            "{run_id}"
        );
    }
    // Not even root makes directories there.
    let error = WorkDir::make(&AllowedDirs::ANY, Path::new("/sys"), RUN).unwrap_err();
    assert!(matches!(error, WorkDirError::NotWritable(_) | WorkDirError::ReadOnly(_)), "{error}");
    assert_eq!(listing(folder.path()), ["file"]);
}

#[test]
fn a_run_writes_nowhere_else() {
    let folder = on_disk();
    let work_dir = make(folder.path());
    let elsewhere = [
        folder.path().join("x"),
        work_dir.path().join("../x"),
        work_dir.path().join("a/../../../x"),
    ];
    for path in &elsewhere {
        assert!(
            matches!(work_dir.make_file(path, 1), Err(WorkDirError::Outside { .. })),
            "{path:?}"
        );
        assert!(matches!(work_dir.make_directories([path]), Err(WorkDirError::Outside { .. })));
    }
    assert!(matches!(work_dir.make_file(work_dir.path(), 1), Err(WorkDirError::Outside { .. })));
    assert!(matches!(
        work_dir.make_file(&work_dir.path().join("d/x"), 1),
        Err(WorkDirError::Missing(_))
    ));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_larger_than_the_memory_is_refused() {
    let Some(folder) = in_memory() else { return };
    let work_dir = WorkDir::make(&AllowedDirs::ANY, folder.path(), RUN).unwrap();
    let error = work_dir.make_file(&work_dir.path().join("huge"), 1 << 50).unwrap_err();
    let path = work_dir.path().join("huge");
    let text =
        format!("no space is left for {}, which takes {} bytes", path.display(), 1_u64 << 50);
    assert_eq!(error.to_string(), text);
}

#[test]
fn what_takes_the_place_of_a_run_is_not_opened() {
    let folder = on_disk();
    let folder = folder.path();
    let (victim, moved) = (folder.join("victim"), folder.join("moved"));
    fs::write(&victim, "of others").unwrap();
    let work_dir = Arc::new(make(folder));
    let (path, one) = (work_dir.path().to_owned(), work_dir.path().join("a/one"));
    let mode = |access| OpenMode { access, direct: false, sync: SyncMode::Off, random: true };
    let write = |file: &Path| {
        let driver = FilesDriver::new("here").within(vec![Arc::clone(&work_dir)]);
        let mut ring = driver.ring(Interface::Psync, 1, 4096).unwrap();
        let file = ring.open_file(file, mode(Access::Write))?;
        ring.buffer(0)[..4].copy_from_slice(b"ours");
        ring.submit(0, &Request::Write { file, offset: 0, len: 4 }).unwrap()
    };
    // Somebody moves the run's directory away, and lays links where its files were.
    fs::rename(&path, &moved).unwrap();
    fs::create_dir_all(path.join("a")).unwrap();
    symlink(&victim, &one).unwrap();
    assert!(write(&one).is_ok());
    assert_eq!(fs::read(&victim).unwrap(), b"of others");
    assert_eq!(&fs::read(moved.join("a/one")).unwrap()[..4], b"ours");
    let driver = FilesDriver::new("here").within(vec![Arc::clone(&work_dir)]);
    let mut ring = driver.ring(Interface::Psync, 1, 4096).unwrap();
    let file = ring.open_file(&one, mode(Access::Read)).unwrap();
    assert_eq!(ring.submit(0, &Request::Read { file, offset: 0, len: 4 }), Some(Ok(4)));
    assert_eq!(&ring.buffer(0)[..4], b"ours");
    assert!(ring.open_directory(&path.join("a")).is_ok());
    // And in the run's own directory, links in the place of a file and of a directory.
    fs::remove_file(moved.join("a/one")).unwrap();
    symlink(&victim, moved.join("a/one")).unwrap();
    symlink(folder, moved.join("d")).unwrap();
    for file in [&one, &path.join("d/victim"), &path.join("../../victim")] {
        assert!(write(file).is_err(), "{}", file.display());
    }
    assert_eq!(fs::read(&victim).unwrap(), b"of others");
    // What lies elsewhere is the user's, who may use links.
    symlink(&victim, folder.join("own")).unwrap();
    assert!(write(&folder.join("own")).is_ok());
    assert_eq!(fs::read(&victim).unwrap(), b"oursthers");
}

#[test]
fn what_takes_the_place_of_a_named_file_is_not_written() {
    let folder = on_disk();
    let [file, other, moved] = ["file", "other", "moved"].map(|name| folder.path().join(name));
    let open = |held: &Arc<HashMap<PathBuf, Held>>, path: &Path, access| {
        let driver = FilesDriver::new("here").holding(Arc::clone(held));
        let mut ring = driver.ring(Interface::Psync, 1, 4096).unwrap();
        let mode = OpenMode { access, direct: false, sync: SyncMode::Off, random: true };
        ring.open_file(path, mode).map(drop).map_err(|error| error.message)
    };
    fs::write(&file, "named").unwrap();
    fs::write(&other, "of others").unwrap();
    let found = fs::File::open(&file).unwrap();
    let held = hold_for_writing(&AllowedDirs::ANY, &file, &found).unwrap();
    let held = Arc::new(HashMap::from([(file.clone(), held)]));
    assert_eq!(open(&held, &file, Access::Write), Ok(()));
    assert!(hold_for_writing(&AllowedDirs::ANY, &other, &found).is_err(), "it is another one");
    fs::rename(&file, &moved).unwrap();
    let missing = open(&held, &file, Access::Write).unwrap_err();
    assert!(missing.contains("No such file") && !file.exists(), "{missing}");
    symlink(&other, &file).unwrap();
    for access in [Access::Read, Access::Write] {
        let refused = open(&held, &file, access).unwrap_err();
        assert!(refused.ends_with("/file is not what it was when the run began"), "{refused}");
    }
}

/// Another user replaces files and directories in an allowed directory by links at any moment. What
/// a run opens, creates and sweeps still lies in the directory.
#[test]
fn a_run_in_an_allowed_directory_reaches_nothing_outside_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
    for directory in [&inside, &outside] {
        fs::create_dir_all(directory.join("data")).unwrap();
        fs::write(directory.join("file"), "1").unwrap();
    }
    let allowed = AllowedDirs::only(std::slice::from_ref(&inside)).unwrap();
    let data = inside.join("data");
    let work_dir = Arc::new(WorkDir::make(&allowed, &data, RUN).unwrap());
    fs::rename(&data, inside.join("was")).unwrap();
    for name in ["data", "file"] {
        let _ = fs::remove_file(inside.join(name));
        symlink(outside.join(name), inside.join(name)).unwrap();
    }
    let driver = FilesDriver::new("here").allowing(allowed.clone());
    let mut ring = driver.ring(Interface::Psync, 1, 4096).unwrap();
    let mode =
        OpenMode { access: Access::Write, direct: false, sync: SyncMode::Off, random: false };
    let link = "a symbolic link is in the way and is not followed";
    for opened in [
        ring.open_file(&inside.join("file"), mode).map(drop),
        ring.open_directory(&inside.join("data")).map(drop),
        ring.open_file(&outside.join("file"), mode).map(drop),
    ] {
        let error = opened.unwrap_err().message;
        assert!(error.ends_with(link), "{error}");
    }
    let refused = WorkDir::make(&allowed, &data, RUN).unwrap_err();
    assert!(matches!(refused, WorkDirError::Link(_)), "{refused}");
    assert!(matches!(WorkDir::check(&allowed, &data), Err(WorkDirError::Link(_))));
    assert!(allowed.probe(&data).is_err() && allowed.size_bytes(&inside.join("file")).is_none());
    let dropped = drop_files(&allowed, [inside.join("file")]).missed.unwrap();
    assert!(dropped.ends_with(link), "{dropped}");
    // The run's own directory is the one that was made, wherever it is now.
    let path = work_dir.path().join("mine");
    work_dir.make_file(&path, 1).unwrap();
    assert!(inside.join("was/plimsoll").join(RUN).join("mine").exists());
    assert_eq!(work_dir.sweep(&|| false).unwrap().files, 1);
    assert_eq!(fs::read_dir(inside.join("was")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(outside.join("data")).unwrap().count(), 0);
}

/// Who may open a marker can hold it locked, and nothing would ever be cleaned.
#[test]
fn only_the_user_of_a_run_can_open_its_marker() {
    let Some(folder) = in_memory() else { return };
    // Another user gets as far as to the marker.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let work_dir = make(folder.path());
    let marker = work_dir.path().join(".plimsoll-run");
    assert_eq!(fs::metadata(&marker).unwrap().mode() & 0o777, 0o600);
    // Where this is no process of root it stays who it is.
    fs::set_permissions(&marker, fs::Permissions::from_mode(0o000)).unwrap();
    let as_nobody = || {
        // SAFETY: of all threads it changes this one alone, which opens files and ends.
        unsafe { libc::setfsuid(65_534) };
        let refused = sweep(folder.path(), RUN, &|| false).unwrap_err();
        assert!(matches!(refused, WorkDirError::NotWritable(_)), "{refused}");
        find(folder.path()).unwrap()
    };
    let found = thread::scope(|scope| scope.spawn(as_nobody).join().unwrap());
    assert_eq!(found.runs, []);
    let [(run_id, error)] = &found.left_alone[..] else { panic!("{found:?}") };
    assert_eq!(run_id, RUN);
    assert_eq!(error.to_string(), format!("permission denied in {}", marker.display()));
    assert!(marker.exists());
}
