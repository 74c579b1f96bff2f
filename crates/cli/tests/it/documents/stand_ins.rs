//! Files that stand in for the reader's own: logs, traces, job files, workloads, results of warp.

use std::fs;

use super::cut::Stands;
use super::repository;

/// A few reads and writes within a second, as Amazon logs them.
fn access_log() -> String {
    let mut log = String::new();
    for number in 0..20 {
        let (kind, method) = if number % 4 == 0 { ("PUT", "PUT") } else { ("GET", "GET") };
        let key = number % 4;
        log.push_str(&format!(
            "0a1b photos [16/May/2024:12:04:13 +0000] 192.0.2.7 0a1b 5F3A{number} \
             REST.{kind}.OBJECT a/{key} \"{method} /photos/a/{key} HTTP/1.1\" 200 - 1000 1000 12 7 \
             \"-\" \"agent\" -\n"
        ));
    }
    log
}

fn iolog() -> String {
    let mut log = String::from("fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n");
    for number in 0..40 {
        let action = if number % 3 == 0 { "write" } else { "read" };
        log.push_str(&format!("{} /dev/x {action} {} 4096\n", number * 500, number % 10 * 4_096));
    }
    log
}

/// One job of each of fio's kinds that pages name, small.
fn fio(place: &str) -> String {
    format!(
        "[global]\ndirectory={place}/mnt/fs\nsize=256k\nbs=4k\nioengine=psync\n\
         [write]\nrw=write\n[read]\nstonewall\nrw=randread\nruntime=1\ntime_based\n"
    )
}

const WORKLOAD: &str = "\
schema: plimsoll.workload/2
sets: {o: {count: 40, size: 4KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: main
  duration: 1s
  jobs: [{name: readers, workers: 4, work: {objects: [{get: o}]}}]
";

/// A workload of COSBench's that speaks to no store.
const COSBENCH: &str = "\
<workload name=\"demo\"><storage type=\"none\"/><workflow><workstage name=\"main\">\
<work name=\"main\" workers=\"2\" runtime=\"1\">\
<operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/>\
</work></workstage></workflow></workload>
";

/// Returns the files by their names.
pub(super) fn files(stands: &Stands) -> Vec<(&'static str, Vec<u8>)> {
    let fio = fio(&stands.place);
    let warp = fs::read(repository().join("testdata/warp/get-full.csv.zst")).unwrap();
    vec![
        ("access.log", access_log().into_bytes()),
        ("job.iolog", iolog().into_bytes()),
        ("FIOmaster.txt", fio.clone().into_bytes()),
        ("job.fio", fio.into_bytes()),
        ("workload.xml", COSBENCH.as_bytes().to_vec()),
        ("clients.txt", b"client-1\n".to_vec()),
        ("workload.yml", WORKLOAD.as_bytes().to_vec()),
        ("workload.yaml", WORKLOAD.as_bytes().to_vec()),
        ("warp-get.csv.zst", warp.clone()),
        ("warp-before.csv.zst", warp.clone()),
        ("warp-after.csv.zst", warp),
    ]
}
