//! What whoever submits a workload to a console cannot have: files of its machine, credentials of
//! its owner, and what no run made.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::console::Served;
use crate::fleet::Fleet;
use crate::harness::{Target, oracle, plimsoll};

/// A server that is not the owner's, and keeps what it was sent.
pub(crate) struct Stranger {
    pub(crate) host: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Stranger {
    /// Starts one that is no store: it refuses everything.
    pub(crate) fn start() -> Self {
        Self::answering(|_| {
            "HTTP/1.1 403 No\r\nContent-Length: 25\r\nConnection: close\r\n\r\n\
                 {\"error\":\"INNER-MACHINE\"}"
        })
    }

    /// Starts one that takes everything as a filer does in which there is nothing.
    pub(crate) fn filer() -> Self {
        Self::answering(|request| match request.starts_with(b"GET ") {
            true => "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            false => "HTTP/1.1 201 Yes\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        })
    }

    fn answering(answer: fn(&[u8]) -> &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let heard = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&heard);
        thread::spawn(move || {
            for mut stream in listener.incoming().map(Result::unwrap) {
                let request = request(&mut stream);
                let answer = answer(&request);
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(request);
                // Whoever has gone by then has heard enough.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { host, heard }
    }

    pub(crate) fn heard(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&heard).into_owned()
    }
}

/// Reads a request with its content, as far as it comes.
fn request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut piece) = (Vec::new(), [0; 4 << 10]);
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("\r\ncontent-length: ").map_or("0", |(_, rest)| rest);
            let length = length.lines().next().and_then(|length| length.parse().ok());
            if content.len() >= length.unwrap_or(0) {
                return request;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return request,
            Ok(count) => request.extend(&piece[..count]),
        }
    }
}

/// A workload on these targets.
fn on(targets: &str, sets: &str, work: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: w\ntargets: {targets}\nsets: {sets}\nstages:\n- \
         {{name: main, duration: 100ms, jobs: [{{work: {work}}}]}}\n"
    )
}

#[test]
fn no_field_of_a_workload_reads_a_file_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "root:x:SECRET\n").unwrap();
    let (path, stranger) = (secret.display(), Stranger::start());
    let served = Served::start(directory.path(), "");
    let s3 = format!("{{s3: {{hosts: '{}', bucket: b}}}}", stranger.host);
    let get = "{objects: [{get: o}]}";
    let workloads = [
        on(&s3, &format!("{{o: {{existing: {{list: '{path}'}}}}}}"), "{objects: [{stat: o}]}"),
        on(&s3, &format!("{{o: {{trace: {{file: '{path}'}}}}}}"), "{replay: {of: o}}"),
        on(&s3, &format!("{{o: {{named: {{files: '{path}'}}, shared: true}}}}"), get),
        on(
            &s3,
            &format!("{{o: {{named: {{files: [{{path: '{path}', bytes: 14}}]}}, shared: true}}}}"),
            get,
        ),
        on(
            &s3,
            &format!(
                "{{o: {{count: 1, size: 9B, content: {{files: [{{path: '{path}', bytes: 14}}]}}}}}}"
            ),
            "{objects: [{put: o}]}",
        ),
        on("{files: {directory: /}}", &format!("{{o: {{paths: ['{path}'], size: 9B}}}}"), get),
        on(&format!("{{files: {{directory: '{path}'}}}}"), "{o: {files: 1, size: 9B}}", get),
        on(&format!("{{oracle: {{script: '{path}'}}}}"), "{o: {count: 1, size: 1B}}", get),
        on(
            &format!("{{seaweedfs: {{filer: '{}', security: '{path}'}}}}", stranger.host),
            "{o: {count: 1, size: 1B}}",
            get,
        ),
    ];
    for text in &workloads {
        let said = served.submit(text);
        assert!(said.contains("--allow-dir") && said.contains("(line "), "{text}: {said}");
        assert!(!said.contains("SECRET"), "{text}: {said}");
    }
    // Hosts are addresses, whichever language names them.
    let hosts = on(&format!("{{s3: {{hosts: 'file:{path}'}}}}"), "{o: {count: 1, size: 1B}}", get);
    let xml = cosbench(&format!("file:{path}"), "c", "read");
    for text in [hosts, xml, format!("[a]\nrw=read\nread_iolog={path}\n")] {
        let said = served.submit(&text);
        assert!(!said.starts_with("Accepted") && !said.contains("SECRET"), "{text}: {said}");
    }
    assert_eq!(served.json("/runs")["total_count"], 0);
    assert_eq!(stranger.heard(), "", "nothing was asked anywhere");
    // Nor is it told whether there is such a file.
    let sized = |path: &str| served.submit(&format!("[a]\nrw=read\nfilename={path}\n"));
    let there = sized(&secret.display().to_string()).replace("secret", "other");
    assert_eq!(there, sized(&directory.path().join("other").display().to_string()));
}

/// Opening a pipe waits for somebody at its other end, and a content is held in memory.
#[test]
fn a_console_neither_waits_for_a_pipe_nor_reads_a_giant_that_a_workload_names() {
    let directory = tempfile::tempdir().unwrap();
    let allowed = directory.path().join("allowed");
    std::fs::create_dir(&allowed).unwrap();
    let pipe = allowed.join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::fs::symlink(directory.path(), allowed.join("away")).unwrap();
    let served = Served::start(directory.path(), &format!("--allow-dir {}", allowed.display()));
    let (path, put) = (pipe.display(), "{objects: [{put: o}]}");
    for text in [
        on("{null: {}}", &format!("{{o: {{trace: {{file: '{path}'}}}}}}"), "{replay: {of: o}}"),
        on(&format!("{{oracle: {{script: '{path}'}}}}"), "{o: {count: 1, size: 1B}}", put),
        on(
            "{null: {}}",
            &format!(
                "{{o: {{count: 1, size: 9B, content: {{files: [{{path: '{path}', bytes: 9}}]}}}}}}"
            ),
            put,
        ),
    ] {
        let said = served.submit(&text);
        assert!(said.contains("it is not a regular file"), "{text}: {said}");
    }
    let giant = allowed.join("giant");
    File::create(&giant).unwrap().set_len(8 << 40).unwrap();
    let files = format!("{{files: [{{path: '{}', bytes: {}}}]}}", giant.display(), 8_u64 << 40);
    let set = format!("{{o: {{count: 1, size: 9B, content: {files}}}}}");
    let said = served.submit(&on("{null: {}}", &set, put));
    assert!(said.contains("hold 8TiB, and at most 64MiB are read here"), "{said}");
    let away = allowed.join("away/x").display().to_string();
    let said = served.submit(&on(
        "{null: {}}",
        &format!("{{o: {{trace: {{file: '{away}'}}}}}}"),
        "{replay: {of: o}}",
    ));
    assert!(said.contains("the console does not allow work on"), "{said}");
}

/// A workload of COSBench's on one container.
fn cosbench(endpoint: &str, prefix: &str, kind: &str) -> String {
    format!(
        "<workload name=\"w\"><storage type=\"s3\" config=\"accesskey=AK;secretkey=SK;\
         endpoint={endpoint};path_style_access=true\"/><workflow><workstage name=\"main\"><work \
         name=\"m\" workers=\"1\" totalOps=\"2\"><operation type=\"{kind}\" ratio=\"100\" \
         config=\"cprefix={prefix};containers=c(1);objects=c(1);sizes=c(1)KB\"/></work>\
         </workstage></workflow></workload>"
    )
}

/// Credentials of the owner, as the environment has them.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("ST_USER", "prod:OWNER-USER"),
    ("ST_KEY", "OWNER-KEY"),
    ("OS_USERNAME", "OWNER-NAME"),
    ("OS_PASSWORD", "OWNER-PASSWORD"),
    ("OS_PROJECT_NAME", "OWNER-PROJECT"),
    ("WEED_JWT_FILER_SIGNING_KEY", "OWNER-SIGNING-KEY"),
    ("WEED_JWT_FILER_SIGNING_READ_KEY", "OWNER-READING-KEY"),
    ("PLIMSOLL_ACCESS_KEY", "OWNER-ACCESS"),
    ("PLIMSOLL_SECRET_KEY", "OWNER-SECRET"),
];

/// Starts a console whose owner has credentials in its environment.
fn owned(directory: &Path, settings: &str, flags: &str) -> Served {
    let console = directory.join("plimsoll-console");
    std::fs::create_dir_all(&console).unwrap();
    std::fs::write(console.join("console.toml"), settings).unwrap();
    let mut command = plimsoll(directory);
    command.envs(ENVIRONMENT).env("PLIMSOLL_SESSION_TOKEN", "OWNER-TOKEN");
    Served::of(command, flags)
}

/// Submits workloads that name a host, and returns what that host heard.
fn heard_of_owner(directory: &Path, stranger: &Stranger, settings: &str, flags: &str) -> String {
    let served = owned(directory, settings, flags);
    let host = &stranger.host;
    let (set, put) = ("{o: {count: 1, size: 1B}}", "{objects: [{put: o}]}");
    for (number, targets) in [
        format!("{{swift: {{auth: 'http://{host}/auth/v1.0', container: c}}}}"),
        format!("{{swift: {{auth: 'http://{host}/v3', container: c}}}}"),
        format!("{{seaweedfs: {{filer: '{host}', create_bucket: true}}}}"),
        format!("{{seaweedfs: {{master: '{host}'}}}}"),
        format!("{{s3: {{hosts: '{host}', bucket: b}}}}"),
        format!("{{s3: {{bucket: b, hosts: '127.0.0.1:1', proxy: 'http://{host}'}}}}"),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("w{}", number + 1);
        assert_eq!(served.submit(&on(targets, set, put)), format!("Accepted with ID: {id}\n"));
        let run = served.wait(&id, &["failed", "terminated", "finished"]);
        assert!(!run.to_string().contains("INNER-MACHINE"), "{run}");
        let report = served.ask("GET", &format!("/api/v1/runs/{id}/report.json"), "text/plain", "");
        assert!(!report.contains("INNER-MACHINE"), "{report}");
    }
    stranger.heard()
}

#[test]
fn credentials_of_the_owner_go_to_no_host_that_a_submitter_names() {
    // Nor where it named the host for TLS alone.
    for (settings, flags) in [
        ("", ""),
        ("credential_hosts = ['https://HOST']\n", ""),
        ("", "--host https://HOST"),
        ("", "--host HOST --tls"),
    ] {
        let (directory, stranger) = (tempfile::tempdir().unwrap(), Stranger::start());
        let [settings, flags] = [settings, flags].map(|of| of.replace("HOST", &stranger.host));
        let heard = heard_of_owner(directory.path(), &stranger, &settings, &flags);
        assert!(!heard.contains("OWNER") && !heard.contains("Bearer"), "{flags}: {heard}");
        assert!(heard.contains(" /plimsoll-bench"), "the filer was asked as nobody: {heard}");
    }
}

#[test]
fn credentials_of_the_owner_go_to_hosts_that_the_owner_named() {
    let (directory, stranger) = (tempfile::tempdir().unwrap(), Stranger::start());
    let named = format!("credential_hosts = ['{}']\n", stranger.host);
    let heard = heard_of_owner(directory.path(), &stranger, &named, "");
    for secret in ["OWNER-KEY", "OWNER-PASSWORD", "Bearer ", "Credential=OWNER-ACCESS/"] {
        assert!(heard.contains(secret), "{secret}: {heard}");
    }
    // The store behind the proxy is not named, so the proxy hears of nobody.
    let mut proxied = heard.split("\r\n\r\n").filter(|head| head.contains("http://127.0.0.1:1/"));
    assert!(proxied.all(|head| !head.contains("OWNER")), "{heard}");
}

/// Each of these servers takes half a minute to be given up.
#[test]
fn a_run_whose_servers_do_not_answer_can_be_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap();
    let served = owned(directory.path(), &format!("credential_hosts = ['{host}']\n"), "");
    let (set, put) = ("{o: {count: 1, size: 1B}}", "{objects: [{put: o}]}");
    for (number, targets) in [
        format!("{{seaweedfs: {{master: '{host}.1'}}}}"),
        format!("{{swift: {{auth: 'http://{host}/auth/v1.0', container: c}}}}"),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("w{}", number + 1);
        assert_eq!(served.submit(&on(targets, set, put)), format!("Accepted with ID: {id}\n"));
        let asked = silent.accept().unwrap();
        served.ask("POST", &format!("/controller/cli/cancel.action?id={id}"), "text/plain", "");
        served.wait(&id, &["cancelled"]);
        drop(asked);
    }
}

/// Agents are given what the console lends, also of what it does not use itself.
#[test]
fn a_console_on_a_fleet_lends_agents_what_it_would_lend_itself() {
    let Some(fleet) = Fleet::start(&["a"], &[]) else { return };
    for is_named in [false, true] {
        let (directory, stranger) = (tempfile::tempdir().unwrap(), Stranger::filer());
        let settings = match is_named {
            true => format!("credential_hosts = ['{}']\n", stranger.host),
            false => String::new(),
        };
        let heard = heard_of_owner(directory.path(), &stranger, &settings, &fleet.flag);
        let (_, put) = heard.split_once("PUT /plimsoll-bench/").expect("the agent was there");
        let (head, _) = put.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.contains("Bearer "), is_named, "{head}");
        assert!(is_named || !heard.contains("OWNER") && !heard.contains("Bearer"), "{heard}");
    }
}

#[test]
fn a_workload_that_needs_touch_is_refused_when_it_is_submitted() {
    let target = Target { bucket: "pool1".to_owned(), ..oracle() };
    target.plant(3);
    let directory = tempfile::tempdir().unwrap();
    let Target { host, access_key, secret_key, .. } = &target;
    let workload = |prefix: &str| {
        let text = cosbench(&format!("http://{host}"), prefix, "write");
        text.replace("accesskey=AK", &format!("accesskey={access_key}"))
            .replace("secretkey=SK", &format!("secretkey={secret_key}"))
    };
    let served = Served::start(directory.path(), "");
    let said = served.submit(&workload("pool"));
    assert!(said.contains("bucket pool1") && said.contains("`touch` in console.toml"), "{said}");
    assert_eq!(served.json("/runs")["total_count"], 0);
    // What is not there may be made by a run that comes first.
    assert_eq!(served.submit(&workload("none")), "Accepted with ID: w2\n");
    drop(served);
    let served = Served::start(directory.path(), "--touch pool*");
    assert_eq!(served.submit(&workload("pool")), "Accepted with ID: w3\n");
    served.wait("w3", &["finished"]);
}
