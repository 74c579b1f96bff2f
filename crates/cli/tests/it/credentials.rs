//! Who asks, from end to end: what is wrong with credentials is said in one sentence before
//! anything is sent, and keys that expire are replaced while a run goes on.
//!
//! Of the machine that tests run on neither its variables nor its home nor its network count.

mod stand_ins;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;

use crate::fleet::Fleet;
use crate::harness::{self, Background, counts, plimsoll, run, run_json, stderr};
use stand_ins::{Gate, Issuer};

/// What follows the benchmark.
const SMALL: &str = "--objects 4 --obj.size 1KiB --concurrent 2 --duration 200ms";

/// A home without anything in it but what a test puts there, and a store that nobody may reach.
struct Place {
    folder: tempfile::TempDir,
    store: TcpListener,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home/.aws")).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let store = TcpListener::bind("127.0.0.1:0").unwrap();
        store.set_nonblocking(true).unwrap();
        Self { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self, text: &str) {
        std::fs::write(self.path("home/.aws/config"), text).unwrap();
    }

    /// Returns a pipe that a command can open, and what comes through it after the first line,
    /// which is `up`, until nobody holds it open.
    fn hear(&self) -> (String, JoinHandle<impl Read + use<>>) {
        let path = self.path("fifo").display().to_string();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let opened = path.clone();
        let heard = std::thread::spawn(move || {
            let mut pipe = BufReader::new(std::fs::File::open(opened).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
            pipe
        });
        (path, heard)
    }

    /// Returns the binary with a command line, `HOST` for the store.
    fn command(&self, line: &str) -> Command {
        let mut command = sealed(&self.path("work"), &self.path("home"));
        let host = self.store.local_addr().unwrap().to_string();
        let line = line.replace("HOST", &host);
        command.args(line.split_whitespace());
        if !line.starts_with("as ") {
            command.args(["--create-bucket", "--keep-bucket"]);
        }
        command
    }

    /// Returns the one sentence of a command that cannot be run, and that has sent nothing and left
    /// nothing.
    #[track_caller]
    fn refused(&self, command: Command) -> String {
        let said = one_sentence(&run(command));
        assert!(self.store.accept().is_err(), "the store was asked: {said}");
        let left: Vec<_> = std::fs::read_dir(self.path("work")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        said
    }
}

/// Returns the binary in an environment that finds nobody but who is put into this home.
fn sealed(work: &Path, home: &Path) -> Command {
    let mut command = plimsoll(work);
    command.env_remove("AWS_CONFIG_FILE").env_remove("AWS_SHARED_CREDENTIALS_FILE");
    command.env("HOME", home);
    command
}

#[track_caller]
fn one_sentence(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty(), "stdout is for results");
    said
}

const PROFILES: &str = r#"
[profile over]
credential_process = echo '{KEYS, "Expiration": "2020-01-01T00:00:00Z"}'
[profile itself]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = itself
[profile garbage]
credential_process = echo hush
[profile fails]
credential_process = sh -c 'echo hush >&2; exit 3'
[profile hangs]
credential_process = exec 9> FIFO; echo up >&9; sh -c 'sleep 20; echo survived >&9'; true
[profile login]
sso_session = s
sso_account_id = 123456789012
sso_role_name = r
[sso-session s]
sso_start_url = https://sso.invalid/start
sso_region = us-east-1
"#;

#[test]
fn a_profile_that_cannot_be_used_is_one_sentence_before_anything_is_sent() {
    let place = Place::new();
    let (fifo, heard) = place.hear();
    let keys = r#""Version": 1, "AccessKeyId": "A", "SecretAccessKey": "hush""#;
    let role = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = link";
    let links = (0..40).map(|at| format!("[profile link-{at}]\n{role}-{}\n", at + 1));
    let profiles = PROFILES.replace("FIFO", &fifo).replace("KEYS", keys);
    place.config(&(profiles + &links.collect::<String>()));
    let line = format!("s3 stat --host HOST {SMALL}");
    for (profile, more, says) in [
        ("over", "", "the credentials from profile `over` have expired at 2020-01-01T00:00:00Z"),
        ("itself", "", "the sources of profile `itself` (source_profile) go in a circle"),
        ("garbage", "", "`garbage`: its credential_process gives no keys: what it prints is not"),
        (
            "fails",
            "",
            "its credential_process gives no keys: it ended with exit status: 3; run it by hand",
        ),
        (
            "hangs",
            " --credentials-timeout 1500ms",
            "its credential_process has given no keys within 1.5 s",
        ),
        ("login", "", "sign in with `aws sso login --profile login`"),
        ("absent", "", "there is no profile `absent` (AWS_PROFILE)"),
        ("two\nlines", "", "there is no profile `two lines` (AWS_PROFILE)"),
        ("link-0", "", "profile `link-0` leads from source to source"),
    ] {
        let mut command = place.command(&format!("{line}{more}"));
        command.env("AWS_PROFILE", profile);
        let said = place.refused(command);
        assert!(said.contains(says) && !said.contains("hush"), "{profile}: {said}");
    }
    let mut rest = String::new();
    heard.join().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "what a command that hangs has started ends with it");
}

#[test]
fn an_empty_key_beside_a_signature_that_needs_one_is_refused() {
    let place = Place::new();
    place.config("[default]\naws_access_key_id = A\naws_secret_access_key = hush\n");
    for more in ["--signature IAM", "--sts-web-token token"] {
        let mut command = place.command(&format!("s3 stat --host HOST {SMALL} {more}"));
        command.args(["--access-key", ""]);
        let said = place.refused(command);
        let flag = more.strip_suffix(" token").unwrap_or(more);
        assert!(said.contains(flag) && said.contains("--access-key ''"), "{more}: {said}");
    }
}

#[test]
fn a_store_that_refuses_keys_is_told_with_where_they_are_from() {
    let store = harness::oracle();
    let place = Place::new();
    place.config("[profile wrong]\naws_access_key_id = A\naws_secret_access_key = hush\n");
    let ask = |keys: &[&str]| {
        let mut command = place.command(&format!("s3 stat {SMALL} --host {}", store.host));
        command.env("AWS_PROFILE", "wrong").args(keys);
        one_sentence(&run(command))
    };
    let found = ask(&[]);
    assert!(
        found.contains("; check the keys from profile `wrong` and what they may do"),
        "{found}"
    );
    assert!(!found.contains("--access-key") && !found.contains("hush"), "{found}");
    let given = ask(&["--access-key", "A", "--secret-key", "hush"]);
    assert!(given.contains("; check --access-key, --secret-key and what they may do"), "{given}");

    let nobody = ask(&["--access-key", ""]);
    let none = "credentials, and none are given (--access-key and --secret-key)";
    assert!(nobody.contains(none), "{nobody}");

    // The record says where keys were from that were never renewed.
    let mut command =
        place.command(&format!("s3 stat {SMALL} --run-dir kept --host {}", store.host));
    command.env("AWS_ACCESS_KEY_ID", &store.access_key);
    command.env("AWS_SECRET_ACCESS_KEY", &store.secret_key);
    let report = run_json(command, 0);
    let from = "the credentials are from the environment (AWS_ACCESS_KEY_ID) and name no end";
    assert!(report["notes"].to_string().contains(from), "{}", report["notes"]);
    let kept = std::fs::read_to_string(place.path("work/kept/run.json")).unwrap();
    assert!(kept.contains(from) && !kept.contains(&store.secret_key), "{kept}");
}

#[test]
fn a_command_that_hangs_ends_with_the_process_that_waits_for_it() {
    for signal in [Signal::INT, Signal::KILL] {
        let place = Place::new();
        let (fifo, heard) = place.hear();
        place.config(&PROFILES.replace("FIFO", &fifo));
        let mut command = place.command(&format!("s3 stat --host HOST {SMALL}"));
        command.env("AWS_PROFILE", "hangs");
        let waiting = Background::start(command);
        let mut heard = heard.join().unwrap();
        waiting.signal(signal);
        let mut rest = String::new();
        heard.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{signal:?}");
        waiting.end();
    }
}

#[test]
fn files_that_never_end_are_not_waited_for() {
    let place = Place::new();
    place.config(PROFILES);
    let cache = place.path("home/.aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let fifo = cache.join(LOGIN_FILE).display().to_string();
    // Nobody ever opens it to write.
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let line = format!("s3 stat --host HOST {SMALL} --credentials-timeout 300ms");
    let mut login = place.command(&line);
    login.env("AWS_PROFILE", "login");
    let said = place.refused(login);
    assert!(said.contains("profile `login`: nothing came in time"), "{said}");
    for file in [&*fifo, "/dev/zero"] {
        let mut container = place.command(&line);
        container.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/keys");
        container.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file);
        let said = place.refused(container);
        assert!(said.contains("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: cannot read "), "{said}");
    }
}

/// The SHA-1 of the session's name, `printf s | sha1sum`.
const LOGIN_FILE: &str = "a0f1490a20d0211c997b44bc357e1972deab8ae3.json";

#[test]
fn a_login_that_has_run_out_is_one_sentence() {
    let place = Place::new();
    place.config(PROFILES);
    let cache = place.path("home/.aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let token = r#"{"accessToken": "hush", "expiresAt": "2020-01-01T00:00:00Z",
                    "region": "us-east-1", "startUrl": "https://sso.invalid/start"}"#;
    std::fs::write(cache.join(LOGIN_FILE), token).unwrap();
    let mut command = place.command(&format!("s3 stat --host HOST {SMALL}"));
    command.env("AWS_PROFILE", "login");
    let said = place.refused(command);
    assert!(said.contains("`aws sso login --profile login`") && said.contains("expired"), "{said}");
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn where_nobody_is_found_all_places_are_named() {
    let place = Place::new();
    let line = format!("s3 stat --host HOST {SMALL} --signature IAM");
    let places = [
        "--access-key",
        "AWS_ACCESS_KEY_ID",
        "MINIO_ROOT_USER",
        "~/.aws",
        "AWS_CONFIG_FILE",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "the instance's role",
    ];
    for home in ["home", "nowhere", "home/.aws/config/is-a-file"] {
        place.config("");
        let mut command = place.command(&line);
        command.env("HOME", place.path(home));
        let said = place.refused(command);
        assert!(said.contains("no credentials found: looked at "), "{home}: {said}");
        assert!(places.iter().all(|place| said.contains(place)), "{home}: {said}");
    }
    let mut without_home = place.command(&line);
    without_home.env_remove("HOME");
    let said = place.refused(without_home);
    assert!(said.contains("no credentials found: looked at "), "{said}");
}

#[test]
fn a_home_that_nothing_can_be_written_to_is_enough() {
    use std::os::unix::fs::PermissionsExt as _;
    let store = harness::oracle();
    let place = Place::new();
    let profile = format!(
        "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
        store.access_key, store.secret_key
    );
    place.config(&profile);
    for folder in ["home/.aws", "home"] {
        let read_only = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(place.path(folder), read_only).unwrap();
    }
    let line = format!("s3 stat --host {} {SMALL}", store.host);
    let report = run_json(place.command(&line), 0);
    assert_eq!(counts(&report)["ops_failed_count"], 0, "{report:#}");
    assert!(counts(&report)["ops_ok_count"].as_u64() > Some(0), "{report:#}");
    // Root may write there all the same.
    let names = |folder: &str| -> Vec<_> {
        let entries = std::fs::read_dir(place.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!((names("home"), names("home/.aws")), (vec![".aws".into()], vec!["config".into()]));
    for folder in ["home", "home/.aws"] {
        let writable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(folder), writable).unwrap();
    }
}

#[test]
fn an_instance_service_that_never_answers_is_waited_for_briefly() {
    let place = Place::new();
    // Connections come about, as of a container too far from the service, and nothing follows.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let line = format!("s3 stat --host HOST {SMALL} --credentials-timeout 1h");
    let mut command = place.command(&line);
    command.env("AWS_EC2_METADATA_DISABLED", "false");
    command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{address}"));
    let said = place.refused(command);
    assert!(said.contains("the instance's role: "), "{said}");
    assert!(said.contains(&format!("{address} does not answer")), "{said}");
    silent.set_nonblocking(true).unwrap();
    let asked = std::iter::from_fn(|| silent.accept().ok()).count();
    assert_eq!(asked, 1, "once is enough");
}

#[test]
fn keys_that_expire_are_replaced_while_a_run_goes_on() {
    let store = harness::anonymous();
    let issuer = Issuer::start();
    let gate = Gate::before(&store, &issuer);
    let place = Place::new();
    let ask = |line: &str| {
        let mut command = place.command(line);
        command.arg("--host").arg(gate.host());
        command
    };
    let line = "s3 mixed --objects 20 --obj.size 1KiB --concurrent 2 --duration 9s --run-dir kept";
    let mut command = ask(line);
    command.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", issuer.url());
    let report = run_json(command, 0);
    let total = counts(&report);
    assert_eq!(total["ops_failed_count"], 0, "{total:#}");
    assert!(total["ops_ok_count"].as_u64() > Some(0), "{total:#}");
    let asked = gate.asked();
    let keys: Vec<&str> = asked.iter().map(|(key, _)| key.as_str()).collect();
    assert!(keys.len() >= 3, "keys are renewed at 4 and 8 s: {asked:?}");
    assert_eq!(gate.refused(), 0, "{asked:?}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("the credentials from the container were renewed "), "{notes}");
    let kept = std::fs::read_to_string(place.path("work/kept/run.json")).unwrap();
    assert!(kept.contains("\"the credentials from the container were renewed "), "{kept}");

    // The same keys from a place that has no others.
    let first = keys[0].to_owned();
    let mut command = ask(&format!("s3 stat {SMALL}"));
    command.env("AWS_ACCESS_KEY_ID", &first).env("AWS_SECRET_ACCESS_KEY", stand_ins::SECRET);
    command.env("AWS_SESSION_TOKEN", stand_ins::token_of(&first));
    let said = one_sentence(&run(command));
    let from = "as the credentials from the environment (AWS_ACCESS_KEY_ID) have expired";
    assert!(said.contains(from), "{said}");
    assert!(gate.refused() > 0, "a key that is over is refused");
}

#[test]
fn every_command_asks_with_keys_that_are_found() {
    let store = harness::anonymous();
    let issuer = Issuer::start();
    let gate = Gate::before(&store, &issuer);
    let place = Place::new();
    let write = |name: &str, text: &str| std::fs::write(place.path("work").join(name), text);
    let workload = "schema: plimsoll.workload/2\nname: t\n\
                    targets: {s: {s3: {hosts: 'http://GATE', bucket: bench}}}\n\
                    sets: {o: {on: s, count: 5, size: 1B}}\n\
                    stages: [{jobs: [{work: {fill: o}}]}]\n";
    write("w.yaml", &workload.replace("GATE", gate.host())).unwrap();
    write("t.csv", "time_ms,op,key,size\n0,put,a,100\n10,get,b,100\n20,head,b,\n").unwrap();
    let cosbench = "<workload name=\"t\"><storage type=\"s3\" \
                    config=\"endpoint=http://GATE;path_style_access=true\"/><workflow>\
                    <workstage name=\"init\"><work type=\"init\" workers=\"1\" \
                    config=\"cprefix=bench-;containers=r(1,1)\"/></workstage>\
                    <workstage name=\"dispose\"><work type=\"dispose\" workers=\"1\" \
                    config=\"cprefix=bench-;containers=r(1,1)\"/></workstage></workflow>\
                    </workload>";
    write("c.xml", &cosbench.replace("GATE", gate.host())).unwrap();
    for line in [
        "s3 stat --host GATE SMALL --run-dir kept --noclear",
        "clean kept --yes",
        "run w.yaml --host GATE",
        "replay t.csv --host GATE --bucket bench",
        "check http://GATE/bench --duration 300ms --concurrent 2",
        "loadline s3 stat --host GATE --objects 4 --concurrent 2 --rates 20/s..40/s --budget 2s",
        "as warp stat -host GATE -bucket bench --objects 4 --concurrent 2 --duration 200ms",
        "as cosbench c.xml",
        "clean http://GATE/bench",
    ] {
        let line = line.replace("GATE", gate.host()).replace("SMALL", SMALL);
        let mut command = place.command(&line);
        command.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", issuer.url());
        if line.starts_with("as cosbench") || line.starts_with("clean kept") {
            command.env("AWS_ENDPOINT_URL_S3", format!("http://{}", gate.host()));
        }
        let before = gate.requests();
        let output = run(command);
        // Whether a busy machine keeps a schedule or finds a load line is not asked here.
        let is_timed = line.starts_with("loadline") || line.starts_with("replay");
        let done = [Some(0), Some(if is_timed { 1 } else { 0 })];
        assert!(done.contains(&output.status.code()), "{line}: {}", stderr(&output));
        assert!(gate.requests() > before, "{line} has asked nothing");
    }
    assert_eq!(gate.refused(), 0);
}

#[test]
fn agents_renew_keys_of_their_own() {
    let Some(mut fleet) = Fleet::start(&[], &[]) else { return };
    let store = harness::anonymous();
    let issuer = Issuer::start();
    let (gate, of_agent) = (Gate::before(&store, &issuer), issuer.beside("AGENT"));
    let mut agent = plimsoll(fleet.place.path());
    agent.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", of_agent.url());
    fleet.join_as(agent, "a", &["--allow-hosts", "127.0.0.1"]);
    let line = "s3 mixed --objects 20 --obj.size 1KiB --concurrent 2 --duration 9s --create-bucket";
    let mut command = plimsoll(fleet.place.path());
    command.args(line.split_whitespace()).args(["--host", gate.host(), "--agent-credentials"]);
    command.arg(&fleet.flag).env("AWS_CONTAINER_CREDENTIALS_FULL_URI", issuer.url());
    let report = run_json(command, 0);
    let total = counts(&report);
    assert_eq!(total["ops_failed_count"], 0, "{total:#}");
    assert!(total["ops_ok_count"].as_u64() > Some(0), "{total:#}");
    let asked = gate.asked();
    let renewed = asked.iter().filter(|(key, _)| key.starts_with("AGENT")).count();
    assert!(renewed >= 3, "{asked:?}");
    assert_eq!(gate.refused(), 0, "{asked:?}");
}

#[test]
fn agents_take_tokens_of_their_own_to_the_token_service() {
    let Some(mut fleet) = Fleet::start(&[], &[]) else { return };
    let store = harness::anonymous();
    let issuer = Issuer::start();
    let (gate, of_agent) = (Gate::before(&store, &issuer), issuer.beside("AGENT"));
    let with_token = |command: &mut Command, issuer: &Issuer| {
        command.env("PLIMSOLL_STS_WEB_TOKEN", "ey.J").env("AWS_ENDPOINT_URL_STS", issuer.url());
    };
    let mut agent = plimsoll(fleet.place.path());
    with_token(&mut agent, &of_agent);
    fleet.join_as(agent, "a", &["--allow-hosts", "127.0.0.1"]);
    let line =
        format!("s3 stat {SMALL} --create-bucket --signature STS_WEB_TOKEN --agent-credentials");
    let mut command = plimsoll(fleet.place.path());
    command.args(line.split_whitespace()).args(["--host", gate.host(), "--bucket", "bench"]);
    with_token(command.arg(&fleet.flag), &issuer);
    let report = run_json(command, 0);
    assert_eq!(counts(&report)["ops_failed_count"], 0, "{report:#}");
    let asked = gate.asked();
    assert!(asked.iter().any(|(key, _)| key.starts_with("AGENT")), "{asked:?}");
    assert_eq!(gate.refused(), 0, "{asked:?}");
}

#[test]
fn an_agents_own_token_goes_to_no_host_that_its_owner_has_not_named() {
    let Some(mut fleet) = Fleet::start(&[], &[]) else { return };
    for (name, flags) in [("limited", &["--allow-hosts", "127.0.0.2"][..]), ("free", &[])] {
        let mut agent = plimsoll(fleet.place.path());
        agent.env("PLIMSOLL_STS_WEB_TOKEN", "ey.J");
        fleet.join_as(agent, name, flags);
    }
    let store = harness::anonymous();
    let (host, said_to_store) = overheard(&store);
    let limited =
        format!("agent limited cannot take part: its owner does not allow load on {host}");
    let free = "agent free cannot take part: it uses its own credentials";
    for (name, why) in [("limited", &*limited), ("free", free)] {
        let mut command = plimsoll(fleet.place.path());
        command.args(format!("s3 get {SMALL} --agent-credentials --agents {name}").split(' '));
        command.args(["--host", &host, "--bucket", "bench", "--create-bucket"]).arg(&fleet.flag);
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.contains("--allow-hosts"), "{said}");
    }
    // The coordinator has asked for its bucket, and nobody has taken a token there.
    let heard = said_to_store.lock().unwrap();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("/bench") && !heard.contains("ey.J"), "{heard}");
}

/// Returns an address that leads to a store, and what is said to it there.
fn overheard(store: &harness::Target) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (to, heard) = (store.host.clone(), Arc::<Mutex<Vec<u8>>>::default());
    let noted = Arc::clone(&heard);
    std::thread::spawn(move || {
        for asks in listener.incoming() {
            let (mut asks, noted) = (asks.unwrap(), Arc::clone(&noted));
            let mut store = TcpStream::connect(&to).unwrap();
            let (mut back, mut answers) = (asks.try_clone().unwrap(), store.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = asks.read(&mut bytes) {
                    noted.lock().unwrap().extend_from_slice(&bytes[..count]);
                    if store.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (host, heard)
}

#[test]
fn minio_hands_out_keys_for_a_role_of_a_profile() {
    let Some(server) = live(LiveKind::Minio) else { return };
    let target = harness::live(&server, &format!("credentials-{}", std::process::id()));
    let place = Place::new();
    place.config(&format!(
        "[profile base]\naws_access_key_id = {}\naws_secret_access_key = {}\n[profile role]\n\
         role_arn = arn:minio:iam:::role/any\nsource_profile = base\nservices = minio\n\
         [services minio]\nsts =\n  endpoint_url = {}\n",
        server.access_key, server.secret_key, server.url
    ));
    let by_variable = ("AWS_ENDPOINT_URL_STS", server.url.as_str());
    for (name, value) in [by_variable, ("AWS_REGION", "us-east-1")] {
        let mut command = place.command(&format!("s3 stat {SMALL}"));
        command.args(["--host", server.host(), "--bucket", &target.bucket]);
        command.env("AWS_PROFILE", "role").env(name, value);
        let output = command.arg("--json").output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{name}: {said}");
        assert!(said.contains("credentials from profile `role`"), "{name}: {said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{report:#}");
        assert!(counts(&report)["ops_ok_count"].as_u64() > Some(0), "{report:#}");
    }
}
