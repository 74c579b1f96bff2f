//! Loop devices with file systems on them: what is mounted is never written, whoever asks for it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{Directories, skip};
use crate::harness::stderr;

/// Runs a script as root in mounts of its own with a loop device: `$DISK` has a partition table
/// with one partition, `$PART`, whose file system is mounted on `$PWD/mounted`; `$FREE` is a device
/// that nobody uses. Where the kernel knows no partitions of loop devices, `$PART` is the disk.
/// `None` where a machine allows none of this.
fn with_disks(folder: &Path, script: &str) -> Option<Output> {
    // A table of the old kind: one partition of type 0x83 from sector 2048 on, 8 MiB long.
    let mut disk = vec![0; 12 << 20];
    disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x40, 0, 0]);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    std::fs::write(folder.join("disk.img"), disk).unwrap();
    std::fs::write(folder.join("free.img"), vec![7; 4 << 20]).unwrap();
    // What is detached while it is mounted goes with the last mount.
    let prelude = "set -e; mkdir mounted
        DISK=$(losetup -P -f --show disk.img); PART=${DISK}p1
        FREE=$(losetup -f --show free.img)
        trap 'losetup -d $DISK $FREE' EXIT
        test -b $PART || PART=$DISK
        mkfs.ext4 -q $PART >&2; mount -o ro $PART mounted; echo mounted >&2; set +e";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &format!("{prelude}\n{script}")]);
    command.current_dir(folder).stdin(Stdio::null());
    command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"));
    let Ok(output) = command.output() else {
        skip("no unshare here");
        return None;
    };
    if !stderr(&output).contains("mounted\n") {
        skip(&stderr(&output));
        return None;
    }
    Some(output)
}

/// Every way to have a device written, with `%` in its place.
const WAYS: [&str; 5] = [
    "$PLIMSOLL file iops --dir . --on % --op write --i-know-this-destroys-data --file-size 64KiB \
     --ops 8 --jobs 1",
    "$PLIMSOLL file bandwidth --dir . --on % --op mixed --i-know-this-destroys-data --block 4KiB \
     --file-size 64KiB --ops 8 --jobs 1",
    "$PLIMSOLL as fio --i-know-this-destroys-data --name=x --rw=randwrite --size=64k --filename=%",
    "printf '[x]\\nrw=write\\nsize=64k\\nfilename=%\\n' > job.fio; \
     $PLIMSOLL run job.fio --i-know-this-destroys-data",
    "$PLIMSOLL file iops --dir . --on % --op write --i-know-this-destroys-data --file-size 64KiB \
     --ops 8 --jobs 1 --explain > w.yaml && $PLIMSOLL run w.yaml",
];

#[test]
fn a_mounted_device_is_not_written_whichever_way() {
    let dirs = Directories::on_disk();
    let mut script =
        "test $PART = $DISK && WHOLE=whole; ln -s $PART link; sync; cp disk.img before\n"
            .to_owned();
    for way in WAYS {
        let devices =
            [("part", "$PART"), ("disk", "$DISK"), ("link", "link"), ("file", "disk.img")];
        for (name, device) in devices {
            // In single quotes nothing would be put in for the name.
            let line = way.replace("'[x]", "\"[x]").replace("%\\n'", "%\\n\"").replace('%', device);
            script +=
                &format!("echo \"- {name} $WHOLE\"; ({line}) 2>&1 >/dev/null; echo \"= $?\"\n");
        }
    }
    script += "sync; cmp disk.img before && echo unchanged";
    let Some(output) = with_disks(dirs.runs(), &script) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("= 2\n").count(), WAYS.len() * 4, "{text}");
    assert!(text.ends_with("unchanged\n"), "{text}");
    for case in text.split("- ").skip(1) {
        assert!(case.contains(" is in use and is not written: it "), "{case}");
        assert!(case.contains("is mounted at ") && case.contains("/mounted"), "{case}");
        let (device, said) = case.split_once('\n').unwrap();
        let chain = match device.split_once(' ').unwrap() {
            ("part", _) => "it is mounted at ",
            ("disk", "whole") => "it is mounted at ",
            ("disk", _) => "it holds the partition /dev/loop",
            ("link", _) => "it is /dev/loop",
            _ => "it backs the loop device /dev/loop",
        };
        assert!(said.contains(chain), "{chain}: {case}");
    }
}

#[test]
fn a_mounted_device_is_read_and_a_free_one_is_written() {
    let dirs = Directories::on_disk();
    let reading = WAYS[0].replace("--op write", "--op read");
    let script = format!(
        "({}) || exit 1; ({}) || exit 2; ({}) || exit 3
        sync $FREE; cmp -s $FREE free.img || exit 4
        head -c 65536 free.img | tr -d '\\007' | wc -c",
        reading.replace('%', "$PART"),
        reading.replace('%', "$DISK"),
        WAYS[0].replace('%', "$FREE"),
    );
    let Some(output) = with_disks(dirs.runs(), &script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let left: usize = text.lines().last().unwrap().trim().parse().unwrap();
    // Eight blocks of 4 KiB: of random bytes about one in 256 is a seven.
    assert!(left > 30_000, "the free device was not written: {text}");
}

#[test]
fn a_device_that_is_written_cannot_be_mounted_meanwhile() {
    let dirs = Directories::on_disk();
    // A claim of somebody else is heeded, wherever it comes from, and ours is seen by the kernel.
    let script = "mkfs.ext4 -q $FREE >&2; mkdir other
        $PLIMSOLL file iops --dir . --on $FREE --op write --i-know-this-destroys-data \
        --file-size 64KiB --jobs 1 --rps-limit 1/s --duration 600s \
        --run-dir record >/dev/null 2>&1 &
        RUNNING=$!
        until grep -qs '\"stages\": \\[$' record/run.json; do kill -0 $RUNNING || exit 9; done
        mount $FREE other 2>&1; echo \"= $?\"
        kill -INT $RUNNING; wait $RUNNING
        unshare -m sh -c 'mount $1 other; $2 file iops --dir . --on $1 --op write \
        --i-know-this-destroys-data --file-size 64KiB --ops 8 --jobs 1' sh $FREE $PLIMSOLL 2>&1
        echo \"= $?\"";
    let Some(output) = with_disks(dirs.runs(), script) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let (mount, rest) = text.split_once("\n= ").unwrap();
    assert!(mount.contains("busy") && rest.starts_with("32"), "{text}");
}
