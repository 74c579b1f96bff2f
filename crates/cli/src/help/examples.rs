//! Command lines to begin with, by command. A test parses each with the program's own parser.

/// Two or three examples of each command that help shows.
pub(super) const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "plimsoll s3 get",
            "plimsoll s3 mixed --host s3.example.com:9000 --duration 1m",
            "plimsoll loadline s3 get --host s3.example.com:9000 --slo 'p99<=20ms'",
        ],
    ),
    ("s3", &["plimsoll s3 get", "plimsoll s3 put --host s3.example.com:9000 --create-bucket"]),
    (
        "s3 get",
        &[
            "plimsoll s3 get --duration 10s",
            "plimsoll s3 get --host s3.example.com:9000 --obj.size 4KiB --rate 500/s",
        ],
    ),
    (
        "s3 put",
        &[
            "plimsoll s3 put --host s3.example.com:9000 --obj.size 1MiB",
            "plimsoll s3 put --host 'node{1...4}:9000' --concurrent 64 --duration 1m",
        ],
    ),
    (
        "s3 delete",
        &[
            "plimsoll s3 delete --host s3.example.com:9000 --objects 5000",
            "plimsoll s3 delete --objects 5000 --batch 1 --obj.size 1KiB",
        ],
    ),
    (
        "s3 list",
        &[
            "plimsoll s3 list --host s3.example.com:9000 --objects 5000",
            "plimsoll s3 list --objects 5000 --max-keys 1000",
        ],
    ),
    (
        "s3 stat",
        &[
            "plimsoll s3 stat --host s3.example.com:9000 --objects 5000",
            "plimsoll s3 stat --rate 1000/s --arrivals poisson",
        ],
    ),
    (
        "s3 mixed",
        &[
            "plimsoll s3 mixed --host s3.example.com:9000 --duration 1m",
            "plimsoll s3 mixed --get-distrib 70 --put-distrib 20 --delete-distrib 10",
        ],
    ),
    (
        "s3 versioned",
        &[
            "plimsoll s3 versioned --host s3.example.com:9000 --bucket versions",
            "plimsoll s3 versioned --objects 100 --obj.size 64KiB",
        ],
    ),
    (
        "s3 retention",
        &[
            "plimsoll s3 retention --host s3.example.com:9000 --bucket locked",
            "plimsoll s3 retention --objects 25 --versions 4 --hold 1h",
        ],
    ),
    (
        "s3 multipart",
        &[
            "plimsoll s3 multipart --host s3.example.com:9000 --parts 20",
            "plimsoll s3 multipart --parts 5 --part.size 5MiB",
        ],
    ),
    (
        "s3 multipart-put",
        &[
            "plimsoll s3 multipart-put --host s3.example.com:9000 --parts 20",
            "plimsoll s3 multipart-put --parts 5 --part.concurrent 5 --concurrent 4",
        ],
    ),
    (
        "s3 append",
        &[
            "plimsoll s3 append --host s3.example.com:9000 --obj.size 64KiB",
            "plimsoll s3 append --concurrent 4 --duration 30s",
        ],
    ),
    (
        "s3 zip",
        &[
            "plimsoll s3 zip --host minio.example.com:9000 --files 1000",
            "plimsoll s3 zip --files 1000 --obj.size 10KiB",
        ],
    ),
    (
        "s3 snowball",
        &[
            "plimsoll s3 snowball --host minio.example.com:9000 --objs.per 100",
            "plimsoll s3 snowball --obj.size 4KiB --compress",
        ],
    ),
    (
        "s3 fanout",
        &[
            "plimsoll s3 fanout --host minio.example.com:9000 --copies 50",
            "plimsoll s3 fanout --obj.size 64KiB --duration 30s",
        ],
    ),
    (
        "weed",
        &[
            "plimsoll weed write --master master.example.com:9333",
            "plimsoll weed read --filer filer.example.com:8888 --objects 1000",
        ],
    ),
    (
        "weed write",
        &[
            "plimsoll weed write --master master.example.com:9333 --duration 30s",
            "plimsoll weed write --obj.size 64KiB --replication 001",
        ],
    ),
    (
        "weed read",
        &[
            "plimsoll weed read --master master.example.com:9333 --objects 5000",
            "plimsoll weed read --filer filer.example.com:8888 --rate 1000/s",
        ],
    ),
    (
        "weed delete",
        &[
            "plimsoll weed delete --master master.example.com:9333 --objects 5000",
            "plimsoll weed delete --batch 100",
        ],
    ),
    (
        "weed stat",
        &[
            "plimsoll weed stat --master master.example.com:9333 --objects 5000",
            "plimsoll weed stat --concurrent 64 --duration 30s",
        ],
    ),
    (
        "weed list",
        &[
            "plimsoll weed list --filer filer.example.com:8888 --objects 5000",
            "plimsoll weed list --filer localhost:8888 --max-keys 1000",
        ],
    ),
    (
        "weed mixed",
        &[
            "plimsoll weed mixed --master master.example.com:9333 --duration 1m",
            "plimsoll weed mixed --get-distrib 70 --put-distrib 20",
        ],
    ),
    (
        "file",
        &[
            "plimsoll file iops --dir /mnt/data --duration 30s",
            "plimsoll file suite --dir /mnt/data",
        ],
    ),
    (
        "file bandwidth",
        &[
            "plimsoll file bandwidth --dir /mnt/data --op read --duration 30s",
            "plimsoll file bandwidth --dir /mnt/data --block 4MiB --jobs 8",
        ],
    ),
    (
        "file iops",
        &[
            "plimsoll file iops --dir /mnt/data --duration 30s",
            "plimsoll file iops --dir /mnt/data --op mixed --depth 32",
        ],
    ),
    (
        "file latency",
        &[
            "plimsoll file latency --dir /mnt/data --op write --sync dsync",
            "plimsoll file latency --dir /mnt/data --rate 1000/s",
        ],
    ),
    (
        "file metadata",
        &[
            "plimsoll file metadata --dir /mnt/data --jobs 16",
            "plimsoll file metadata --dir /mnt/data --shared-directory --files 1000",
        ],
    ),
    (
        "file suite",
        &[
            "plimsoll file suite --dir /mnt/data",
            "plimsoll file suite --dir /mnt/data --scale 1/1024 --duration 10s",
        ],
    ),
    (
        "loadline",
        &[
            "plimsoll loadline",
            "plimsoll loadline s3 get --host s3.example.com:9000 --slo 'p99<=20ms'",
            "plimsoll loadline run workload.yml --stage main --budget 30m",
        ],
    ),
    (
        "loadline s3",
        &[
            "plimsoll loadline s3 get --host s3.example.com:9000 --slo 'p99<=20ms'",
            "plimsoll loadline s3 mixed --host s3.example.com:9000 --slo 'get.p99<=50ms'",
        ],
    ),
    (
        "loadline weed",
        &[
            "plimsoll loadline weed read --slo 'p99<=10ms'",
            "plimsoll loadline weed write --master master.example.com:9333 --budget 5m",
        ],
    ),
    (
        "loadline file",
        &[
            "plimsoll loadline file iops --dir /mnt/data --op read --slo 'p99<=2ms'",
            "plimsoll loadline file latency --dir /mnt/data --op write --budget 5m",
        ],
    ),
    (
        "loadline run",
        &[
            "plimsoll loadline run workload.yml",
            "plimsoll loadline run workload.yml --stage main --budget 30m",
        ],
    ),
    (
        "run",
        &[
            "plimsoll run workload.yml --check",
            "plimsoll run workload.yml --host s3.example.com:9000",
            "plimsoll run randread.fio --dir /mnt/data",
        ],
    ),
    (
        "replay",
        &[
            "plimsoll replay access.log --host s3.example.com:9000",
            "plimsoll replay my-run --host s3.example.com:9000 --speed 2",
        ],
    ),
    ("fit", &["plimsoll fit access.log", "plimsoll fit access.log -o workload.yml"]),
    (
        "analyze",
        &[
            "plimsoll analyze my-run",
            "plimsoll analyze my-run --analyze.op get --analyze.skip 10s",
            "plimsoll analyze warp-get.csv.zst --analyze.out segments.csv",
        ],
    ),
    (
        "compare",
        &[
            "plimsoll compare run-before run-after",
            "plimsoll compare before/ after/ --gate 'p99<=+5%' --gate 'rate>=-3%'",
            "plimsoll compare before/ after/ --markdown",
        ],
    ),
    (
        "merge",
        &[
            "plimsoll merge client-1 client-2 -o merged",
            "plimsoll merge client-1.csv.zst client-2.csv.zst -o merged",
        ],
    ),
    (
        "export",
        &[
            "plimsoll export my-run -o ops.csv",
            "plimsoll export my-run -o my-run.csv.zst",
            "plimsoll export my-run -o my-run.trace.json --analyze.skip 10s --trace.dur 2s",
        ],
    ),
    (
        "report",
        &[
            "plimsoll report my-run -o report.html",
            "plimsoll report run-before run-after -o changed.html",
            "plimsoll report my-run -o report.html --analyze.skip 10s --overwrite",
        ],
    ),
    (
        "as",
        &[
            "plimsoll as warp get --host=s3.example.com:9000 --duration=1m",
            "plimsoll as fio randread.fio",
        ],
    ),
    (
        "as warp",
        &[
            "plimsoll as warp get --host=s3.example.com:9000 --duration=1m",
            "plimsoll as warp mixed --explain",
            "plimsoll as warp analyze warp-get.csv.zst",
        ],
    ),
    (
        "as warp analyze",
        &[
            "plimsoll as warp analyze warp-get.csv.zst",
            "plimsoll as warp analyze warp-get.csv.zst --analyze.v",
        ],
    ),
    (
        "as warp cmp",
        &[
            "plimsoll as warp cmp before.csv.zst after.csv.zst",
            "plimsoll as warp cmp before.csv.zst after.csv.zst --analyze.op get",
        ],
    ),
    (
        "as warp merge",
        &[
            "plimsoll as warp merge client-1.csv.zst client-2.csv.zst",
            "plimsoll as warp merge client-1.csv.zst client-2.csv.zst --benchdata all",
        ],
    ),
    (
        "as fio",
        &[
            "plimsoll as fio randread.fio",
            "plimsoll as fio --name=t --rw=randread --directory=/mnt/data randread.fio",
        ],
    ),
    (
        "as mdtest",
        &[
            "plimsoll as mdtest -n 1000 -d /mnt/data",
            "plimsoll as mdtest mpirun -np 4 mdtest -n 99",
        ],
    ),
    (
        "as s3-benchmark",
        &[
            "plimsoll as s3-benchmark -u http://s3.example.com:9000 -b bench -z 1M",
            "plimsoll as s3-benchmark --explain -u http://s3.example.com:9000 -b bench",
        ],
    ),
    (
        "as cosbench",
        &[
            "plimsoll as cosbench workload.xml --explain",
            "plimsoll as cosbench workload.xml --archive archive",
        ],
    ),
    (
        "as weed-benchmark",
        &[
            "plimsoll as weed-benchmark -master=master.example.com:9333 -n=10000",
            "plimsoll as weed-benchmark --explain -n=10000 -size=1024",
        ],
    ),
    ("prove", &["plimsoll prove", "plimsoll prove stall errors --explain"]),
    (
        "check",
        &[
            "plimsoll check http://s3.example.com:9000/consistency",
            "plimsoll check weed://master.example.com:9333 --keys 32",
        ],
    ),
    (
        "oracle",
        &[
            "plimsoll oracle",
            "plimsoll oracle --md5-etags",
            "plimsoll oracle --listen 127.0.0.1:0 --capacity 1GiB",
        ],
    ),
    ("fleet", &["plimsoll fleet up", "plimsoll fleet agents"]),
    (
        "fleet up",
        &[
            "plimsoll fleet up --listen 0.0.0.0:4222",
            "plimsoll fleet up --advertise bench.example.com --token-expires 1h",
        ],
    ),
    (
        "fleet agents",
        &["plimsoll fleet agents", "plimsoll fleet agents --fabric nats://nats.example.com:4222"],
    ),
    (
        "fleet collect",
        &["plimsoll fleet collect my-run", "plimsoll fleet collect my-run --parts-stay"],
    ),
    ("fleet token", &["plimsoll fleet token", "plimsoll fleet token --uses 4 --expires 1h"]),
    ("fleet revoke", &["plimsoll fleet revoke agent-3", "plimsoll fleet revoke --token 1"]),
    (
        "agent",
        &[
            "plimsoll agent --join-file token.txt",
            "plimsoll agent --join-file token.txt --name client-1 --workers-max 64",
        ],
    ),
    (
        "console",
        &["plimsoll console", "plimsoll console --directory bench --listen 127.0.0.1:8080"],
    ),
    ("clean", &["plimsoll clean my-run", "plimsoll clean http://s3.example.com:9000/bench --yes"]),
    ("completions", &["plimsoll completions bash", "plimsoll completions fish"]),
    ("man", &["plimsoll man", "plimsoll man --dir man"]),
];
