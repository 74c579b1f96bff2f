//! Jobs that cannot be run on this machine, with the words.

use super::*;

fn refusal_on(text: &str, machine: &Machine<'_>) -> String {
    match try_on(text, machine) {
        Ok(lowered) => format!("taken: {:?}", lowered.workload),
        Err(words) => words,
    }
}

fn refusal(text: &str) -> String {
    refusal_on(text, &machine())
}

#[test]
fn what_is_there_already() {
    for (lines, words) in [
        (
            "rw=write\nfilename=/data/old",
            "`/data/old` already exists and the job writes to it: the run is refused without \
             `--i-know-this-destroys-data`",
        ),
        (
            "rw=randrw\ndirectory=/data\nfilename=old",
            "`/data/old` already exists and the job writes to it: the run is refused without \
             `--i-know-this-destroys-data`",
        ),
        (
            "rw=write\ndirectory=/data\nnumjobs=2\nallow_file_create=0",
            "`/data/a.0.0` already exists and the job writes to it: the run is refused without \
             `--i-know-this-destroys-data`",
        ),
        (
            "rw=read\nfilename=/dev/nvme0n1",
            "`/dev/nvme0n1` is a device: the run is refused without `--i-know-this-destroys-data`",
        ),
        (
            "rw=read\nfilename=/dev/sdz",
            "`/dev/sdz` is a device: the run is refused without `--i-know-this-destroys-data`",
        ),
        (
            "rw=read\nfilename=/data/old\nverify=crc32c",
            "`/data/old` was there before the run, so `verify` cannot tell what is right in it",
        ),
        (
            "rw=read\nfilename=/data/old\nsize=1m",
            "`/data/old` has 65536 bytes and the job wants 1048576",
        ),
        (
            "rw=read\nfilename=/data/old\nbs=1m",
            "a block of 1048576 bytes is larger than a file of 65536",
        ),
        (
            "rw=read\nfilename=/data/old:/data/new",
            "its files are of several sizes; say by `filesize` how much of each is used",
        ),
        (
            "rw=read\nsize=64k\nfilename=/data/old:/data/gone",
            "its file `/data/old` already exists and `/data/gone` is not",
        ),
        (
            "rw=read\nsize=64k\ndirectory=/data\nnumjobs=3\nallow_file_create=0",
            "`allow_file_create=0`: `/data/a.2.0` is not there and no section before it makes it",
        ),
        (
            "rw=write\nsize=64k\nallow_file_create=0",
            "`allow_file_create=0`: `/here/a.0.0` is not there and no section before it makes it",
        ),
    ] {
        assert_eq!(
            refusal(&format!("[a]\n{lines}\n")),
            format!("job.fio:1: [a] {words}"),
            "{lines}"
        );
    }
    let machine = Machine { destroys: true, ..machine() };
    assert_eq!(
        refusal_on("[a]\nrw=read\nfilename=/dev/sdz\n", &machine),
        "job.fio:1: [a] the size of the device `/dev/sdz` is not known"
    );
}

#[test]
fn files_without_a_size_or_with_two() {
    for (text, words) in [
        ("[a]\nrw=read\n", "job.fio:1: [a] it has no `size` and `/here/a.0.0` is not there"),
        (
            "[a]\nrw=read\nsize=50%\n",
            "job.fio:1: [a] `size=50%` is a share of files that already exist, and \
             `/here/a.0.0` is not",
        ),
        (
            "[a]\nrw=write\nfilename=f\nsize=64k\n[b]\nrw=read\nstonewall\nfilename=f\nsize=96k\n",
            "job.fio:5: [b] `/here/f` has 98304 bytes here and 65536 bytes in [a], which comes \
            first; make it as large there",
        ),
        (
            "[a]\nrw=write\nfilename=f\nfilesize=4k-12k\n[b]\nrw=read\nfilename=f\nfilesize=8k\n",
            "job.fio:5: [b] `/here/f` has 8192 bytes here and 4096 to 8192 bytes in [a], which \
            comes first; make it as large there",
        ),
        (
            "[a]\nrw=write\nsize=64k\nfilename=../x\n",
            "job.fio:1: [a] `../x` leads out of the directory of the run",
        ),
        (
            "[a]\nrw=randrw\nsize=64k\nbs=4k,1000\ndirect=1\n",
            "job.fio:1: [a] `direct=1` needs blocks of whole sectors, and 1000 bytes are not a \
            multiple of 512",
        ),
        (
            "[a]\nrw=read\nfilesize=8k-16k\nio_size=50%\n",
            "job.fio:1: [a] `50%` of files whose sizes are drawn is not an amount",
        ),
        (
            "[a]\nrw=read\nfilesize=8k-16k\nloops=2\n",
            "job.fio:1: [a] `loops` over files whose sizes are drawn; say an `io_size`",
        ),
        (
            "[a]\nrw=write\nsize=64k\nfilename=/x/f:/y/g\n",
            "job.fio:1: [a] `filename` names files in several directories; give each its own job",
        ),
        (
            "[a]\nrw=write\nsize=1t\nnrfiles=10000\nnumjobs=1001\n",
            "job.fio:1: [a] `nrfiles`: all jobs together have at most 1000000 files",
        ),
    ] {
        assert_eq!(refusal(text), words);
    }
}

#[test]
fn engines_that_cannot_do_it() {
    for (text, words) in [
        (
            "[a]\nrw=read\nsize=64k\n[b]\nrw=read\nsize=64k\nioengine=null\n",
            "job.fio:1: [a] `ioengine=null` measures the instrument: all jobs of a run take it or \
            none",
        ),
        (
            "[a]\nioengine=null\ncreate_only=1\nsize=64k\n",
            "job.fio:1: [a] no job of the file has anything to do",
        ),
    ] {
        assert_eq!(refusal(text), words);
    }
    for (lines, words) in [
        (
            "create_only=1",
            "`create_only` fills files, and this engine works on their names; leave it out",
        ),
        ("filename=f", "`filename` names each file; with this engine say how many by `nrfiles`"),
        (
            "time_based\nruntime=5",
            "`time_based` begins anew, and each file is made, looked at or removed once; leave it \
            out",
        ),
        (
            "loops=2",
            "`loops` begins anew, and each file is made, looked at or removed once; leave it out",
        ),
        ("rate_iops=5", "rates are those of reads and writes, and this engine does neither"),
    ] {
        assert_eq!(
            refusal(&format!("[a]\nioengine=filestat\n{lines}\n")),
            format!("job.fio:1: [a] `ioengine=filestat`: {words}")
        );
    }
    let format = "[global]\nfilename_format=f.$jobnum.$filenum\n";
    for (text, words) in [
        (
            "[a]\nioengine=filecreate\n[b]\nioengine=filestat\n",
            "job.fio:5: [b] a job beside it works on the same files; let one wait for the other",
        ),
        (
            "[a]\nioengine=filecreate\n[b]\nioengine=filestat\nstonewall\nnumjobs=2\n",
            "job.fio:5: [b] [a] has made its files already: 1 for each of 1 clones",
        ),
        (
            "[a]\nioengine=filecreate\n[b]\nioengine=filecreate\nstonewall\n",
            "job.fio:5: [b] [a] has made its files already: 1 for each of 1 clones",
        ),
        (
            "[a]\nioengine=filedelete\nallow_file_create=0\n",
            "job.fio:3: [a] `allow_file_create=0`: no section before it makes its files",
        ),
    ] {
        assert_eq!(refusal(&format!("{format}{text}")), words);
    }
}

#[test]
fn amounts_that_no_machine_has_use_for() {
    for (lines, words) in [
        (
            "rw=read\nsize=4k\ndirectory=/data\nnumjobs=10000000",
            "`numjobs=10000000`: a job has at most 10000 clones, and all jobs together have at \
             most 100000",
        ),
        (
            "rw=read\nsize=1g\ndirectory=/data\nnumjobs=10\nnrfiles=100001",
            "`nrfiles`: all jobs together have at most 1000000 files",
        ),
    ] {
        let refused = refusal(&format!("[a]\n{lines}\n"));
        assert!(refused.contains(words), "{lines}: {refused}");
    }
}
