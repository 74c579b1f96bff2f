//! What the run did not write is as it was, however the run ends.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::console_submitters::Stranger;
use crate::harness::{Background, Target, oracle, plimsoll, run, run_directory, stderr};
use crate::output::{COMMANDS, NOBODY};

const FOREIGN: u64 = 1_000;

pub(crate) fn clean(target: &Target, directory: &std::path::Path) {
    let mut clean = plimsoll(directory);
    clean.args(["clean", "--yes"]).arg(run_directory(directory));
    if let Some(ca) = &target.tls_ca {
        clean.arg("--tls-ca").arg(ca);
    }
    target.credentials(&mut clean);
    let output = run(clean);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_thousand_foreign_objects_survive_every_command_and_every_end() {
    let target = oracle();
    target.plant(FOREIGN);
    for (line, _) in COMMANDS {
        for prefix in ["", "--prefix data", "--noprefix"] {
            let directory = tempfile::tempdir().unwrap();
            let line = format!("{line} {prefix} --duration 200ms --concurrent 4");
            let output = run(target.command(directory.path(), &line));
            assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        }
        target.assert_only_planted(FOREIGN);
    }
}

/// A workload of objects in buckets of the run's own choice beside those of the target's own.
const BUCKETS: &str = "schema: plimsoll.workload/2\nname: wide\nsets:\n  \
                       a: {count: 12, size: 100B, keys: {buckets: 4, prefix: data}}\n  \
                       b: {count: 8, size: 100B}\nstages:\n\
                       - {prepares: true, jobs: [{workers: 2, work: {fill: [a, b]}}]}\n\
                       - {jobs: [{workers: 2, ops: 50, work: {objects: [{get: a}, {get: b}]}}]}\n";

#[test]
fn what_lies_in_several_buckets_is_removed_from_each_and_counted_once() {
    let target = oracle();
    target.plant(FOREIGN);
    for keep in ["", " --keep-data"] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("w.yaml"), BUCKETS).unwrap();
        let line = format!("run w.yaml{keep} --run-dir record");
        let output = run(target.command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let record = directory.path().join("record");
        let manifest = || -> serde_json::Value {
            let text = std::fs::read(record.join("run.json")).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        if !keep.is_empty() {
            assert_eq!(manifest()["cleanup"]["state"], "kept");
            let mut clean = plimsoll(directory.path());
            clean.args(["clean", "--yes", "record"]);
            target.credentials(&mut clean);
            let output = run(clean);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let said = String::from_utf8(output.stdout).unwrap();
            // Each of both prefixes in the target's own bucket and in the four others.
            assert_eq!(said.lines().count(), 10, "{said}");
        }
        // Not one of the marks that say that the run is still going on.
        assert_eq!(manifest()["cleanup"]["objects_removed_count"], 20, "{keep}");
        target.assert_only_planted(FOREIGN);
    }
}

#[test]
fn ctrl_c_ends_the_measured_stage_reports_and_cleans() {
    let target = oracle();
    target.plant(FOREIGN);
    for (line, _) in COMMANDS.iter().filter(|(line, _)| !line.contains("delete")) {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{line} --duration 60s --concurrent 4 --json");
        let mut running = Background::start(target.command(directory.path(), &line));
        running.await_line("measure: ");
        running.signal(Signal::INT);
        let (code, stdout, stderr) = running.end();
        assert_eq!(code, Some(130), "{line}: {stderr}");
        let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["state"], "interrupted", "{line}");
        target.assert_only_planted(FOREIGN);
    }
}

#[test]
fn ctrl_c_while_preparing_cleans_and_says_that_nothing_was_measured() {
    let target = oracle();
    target.plant(10);
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 get --objects 200000 --obj.size 1KiB";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("preparing");
    running.signal(Signal::INT);
    let (code, stdout, stderr) = running.end();
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{stderr}");
    assert!(stderr.contains("nothing was measured"), "{stderr}");
    target.assert_only_planted(10);
}

#[test]
fn after_kill_9_clean_finishes_the_job() {
    let target = oracle();
    target.plant(FOREIGN);
    for stage in ["preparing", "measuring"] {
        let directory = tempfile::tempdir().unwrap();
        let line = "s3 mixed --objects 400 --obj.size 1KiB --duration 60s";
        let mut running = Background::start(target.command(directory.path(), line));
        running.await_line(stage);
        running.signal(Signal::KILL);
        assert_eq!(running.end().0, None);
        let manifest = std::fs::read(run_directory(directory.path()).join("run.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["state"], "running", "a killed run is not presented as whole");
        clean(&target, directory.path());
        target.assert_only_planted(FOREIGN);
    }
}

#[test]
fn a_manifest_that_names_another_prefix_empties_nothing() {
    let target = oracle();
    target.plant(20);
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --duration 200ms --keep-data";
    assert_eq!(run(target.command(directory.path(), line)).status.code(), Some(0));
    let path = run_directory(directory.path()).join("run.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // Else it is refused for that.
    manifest.as_object_mut().unwrap().remove("checksum");
    for prefix in ["", "data/", "plimsoll/"] {
        manifest["target"]["prefix"] = prefix.into();
        std::fs::write(&path, manifest.to_string()).unwrap();
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "--yes"]).arg(run_directory(directory.path()));
        target.credentials(&mut clean);
        let output = run(clean);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(target.listed().len(), 40);
    }
}

/// Makes a record in a directory, of a run that wrote to another target than it did.
pub(crate) fn forged_record(directory: &Path, kind: &str, endpoint: &str, target: &Value) {
    let stores = oracle();
    let line = "s3 put --obj.size 1KiB --duration 50ms --concurrent 2 --keep-data --run-dir record";
    let output = run(stores.command(directory, line));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let path = directory.join("record/run.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest.as_object_mut().unwrap().remove("checksum");
    for (field, value) in [
        ("kind", json!(kind)),
        ("endpoints", json!([endpoint])),
        ("bucket", json!("c")),
        ("region", Value::Null),
        ("lookup", Value::Null),
        ("payload_signing", Value::Null),
    ] {
        manifest["target"][field] = value;
    }
    manifest["workload"]["targets"] = json!({ "s": target });
    std::fs::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn clean_signs_in_nowhere_that_its_user_has_not_named() {
    let stranger = Stranger::start();
    let directory = tempfile::tempdir().unwrap();
    let host = &stranger.host;
    let swift = json!({ "auth": format!("http://{host}/auth/v1.0"), "container": "c" });
    forged_record(directory.path(), "swift", "swift.example:8080", &json!({ "swift": swift }));
    let clean = |args: &[&str]| {
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "record"]).args(args);
        let output = run({
            clean.env("ST_USER", "a:u").env("ST_KEY", "OWNER-KEY");
            clean
        });
        assert_ne!(output.status.code(), Some(0));
        stderr(&output)
    };
    let asked = format!("send {host} the user's password to sign in");
    for args in [&[][..], &["--host", "swift.example:8080"], &["--yes"]] {
        let said = clean(args);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&asked), "{args:?}: {said}");
        assert_eq!(stranger.heard(), "", "{args:?}");
    }
    // Who names that host as well, or allows it, has it asked.
    clean(&["--host", &format!("swift.example:8080,{host}")]);
    assert!(stranger.heard().contains("OWNER-KEY"));
}

#[test]
fn clean_reads_no_file_that_a_record_links_to() {
    let stranger = Stranger::start();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let target = json!({ "seaweedfs": { "master": stranger.host, "collection": "c" } });
    forged_record(directory.path(), "seaweedfs", &stranger.host, &target);
    std::fs::write(path("foreign"), "root:x:0:0\n").unwrap();
    let cleaned = || {
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "--yes", "record"]);
        let output = run(clean);
        assert_ne!(output.status.code(), Some(0));
        stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    std::os::unix::fs::symlink(path("foreign"), path("record/names-0.txt")).unwrap();
    let said = cleaned();
    assert!(said.contains("names-0.txt is damaged: it is a link"), "{said}");
    assert!(!said.contains("root"), "{said}");
    // Nor is a line shown that is no name.
    std::fs::remove_file(path("record/names-0.txt")).unwrap();
    std::fs::copy(path("foreign"), path("record/names-0.txt")).unwrap();
    let said = cleaned();
    assert!(said.contains("line 1 is not a file id such as 3,01637037d6"), "{said}");
    assert!(!said.contains("root"), "{said}");
    assert_eq!(stranger.heard(), "");
}

#[test]
fn keys_of_the_environment_sign_for_no_host_that_only_the_record_names() {
    let directory = tempfile::tempdir().unwrap();
    for kind in ["seaweedfs-filer", "seaweedfs"] {
        let stranger = Stranger::start();
        let host = &stranger.host;
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let server = if kind == "seaweedfs" { "master" } else { "filer" };
        forged_record(place.path(), kind, host, &json!({ "seaweedfs": { server: host } }));
        std::fs::write(place.path().join("record/names-0.txt"), "3,01637037d6\n").unwrap();
        let clean = |args: &[&str]| {
            let mut clean = plimsoll(place.path());
            for name in ["WEED_JWT_SIGNING_KEY", "WEED_JWT_FILER_SIGNING_READ_KEY"] {
                clean.env(name, "OWNER");
            }
            clean.args(["clean", "record"]).args(args);
            let output = run(clean);
            assert_ne!(output.status.code(), Some(0));
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let sent = format!("send {host} tokens signed with the user's keys (WEED_JWT_...)");
        for args in [&[][..], &["--yes"]] {
            let said = clean(args);
            assert!(said.contains(&sent) && said.contains("--host"), "{kind} {args:?}: {said}");
            assert_eq!(stranger.heard(), "", "{kind} {args:?}");
        }
        // Who names the host has it asked.
        clean(&["--host", host]);
        let heard = stranger.heard().to_lowercase();
        let has_token = heard.contains("authorization: bearer ");
        assert_eq!(has_token, kind != "seaweedfs", "{kind}: {heard}");
        assert_ne!(heard, "", "{kind}");
    }
}

/// Returns a workload on a target of somebody's choice.
fn of_somebody(target: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: of-somebody-else\ntargets: {target}\n\
         sets: {{s: {{count: 1, size: 1KiB}}}}\n\
         stages: [{{duration: 100ms, jobs: [{{work: {{objects: [{{put: s}}]}}}}]}}]\n"
    )
}

#[test]
fn secrets_of_the_environment_go_to_no_host_that_only_a_workload_names() {
    let keys = &[("AWS_ACCESS_KEY_ID", "OWNER"), ("AWS_SECRET_ACCESS_KEY", "OWNER-hush")][..];
    let of_flags = &[("PLIMSOLL_ACCESS_KEY", "OWNER"), ("PLIMSOLL_SECRET_KEY", "OWNER-hush")][..];
    let token = &[("PLIMSOLL_STS_WEB_TOKEN", "OWNER-hush")][..];
    let swift = &[("ST_USER", "OWNER"), ("ST_KEY", "OWNER-hush")][..];
    let swift_token = &[("OS_AUTH_TOKEN", "OWNER-hush")][..];
    let weed = &[("WEED_JWT_FILER_SIGNING_READ_KEY", "OWNER-hush")][..];
    let signed = "authorization: aws4-hmac-sha256 credential=owner";
    // What a workload names, what the environment holds, and what shows that it was sent.
    for (target, variables, sent) in [
        ("{s3: {hosts: HOST}}", keys, signed),
        ("{s3: {hosts: HOST}}", of_flags, signed),
        ("{s3: {hosts: HOST}}", token, "owner-hush"),
        ("{s3: {hosts: 'own:1', proxy: 'http://HOST'}}", keys, signed),
        ("{s3: {proxy: 'http://HOST'}}", of_flags, signed),
        ("{swift: {auth: 'http://HOST/auth/v1.0'}}", swift, "x-auth-key: owner-hush"),
        ("{swift: {auth: 'http://HOST/v3'}}", swift_token, "owner-hush"),
        ("{swift: {storage_url: 'http://HOST/v1/a'}}", swift_token, "owner-hush"),
        ("{seaweedfs: {filer: HOST}}", weed, "authorization: bearer"),
    ] {
        let stranger = Stranger::start();
        let host = &stranger.host;
        let directory = tempfile::tempdir().unwrap();
        let workload = of_somebody(&target.replace("HOST", host));
        std::fs::write(directory.path().join("w.yaml"), workload).unwrap();
        let run_with = |args: &[&str], more: &[(&str, &str)]| {
            let mut command = plimsoll(directory.path());
            command.args(["run", "w.yaml"]).args(args);
            command.envs(more.iter().copied());
            let output = run(command);
            assert_ne!(output.status.code(), Some(0));
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let of_own = if target.contains("proxy") { "own:1," } else { "" };
        let own: &[&str] = if of_own.is_empty() { &[] } else { &["--host", "own:1"] };
        let is_refused = |args: &[&str], more: &[(&str, &str)]| {
            let said = run_with(args, more);
            let named = format!("to {host}, which only a file names");
            assert!(said.contains(&named) && said.contains("--host"), "{target}: {said}");
            assert_eq!(stranger.heard(), "", "{target}");
        };
        is_refused(own, variables);
        if !target.contains("swift") {
            // Where the password of another service belongs, no key of this one does.
            let elsewhere = format!("http://{host}/v3");
            is_refused(own, &[variables, &[("OS_AUTH_URL", &elsewhere)]].concat());
        }
        if target.contains("s3") {
            // Nor does a typed key lend what was not typed.
            let typed = ["--access-key", "typed", "--secret-key", "typed-hush"];
            let token = [("PLIMSOLL_SESSION_TOKEN", "OWNER-hush")];
            is_refused(&[own, &typed].concat(), &token);
        }
        // Who names the host has it sent them.
        let said = run_with(&["--host", &format!("{of_own}{host}")], variables);
        let heard = stranger.heard().to_lowercase();
        assert!(heard.contains(sent), "{target}: {heard}\n{said}");
    }
}

#[test]
fn a_file_makes_no_connection_less_safe_that_carries_a_secret_of_the_user() {
    let keys = [("AWS_ACCESS_KEY_ID", "OWNER"), ("AWS_SECRET_ACCESS_KEY", "OWNER-hush")];
    let swift = [("ST_USER", "OWNER"), ("ST_KEY", "OWNER-hush")];
    let (unchecked, plain) = ("without checking certificates", "without TLS");
    // What a workload names, what the environment holds, which host its user names, and why it is
    // refused.
    for (target, variables, named, refused) in [
        ("{s3: {insecure: true}}", keys, "https://HOST", unchecked),
        ("{s3: {hosts: 'https://HOST', insecure: true}}", keys, "HOST", unchecked),
        ("{swift: {auth: 'https://HOST/v1', insecure: true}}", swift, "HOST", unchecked),
        ("{s3: {hosts: 'http://HOST'}}", keys, "https://HOST", plain),
        ("{swift: {auth: 'http://HOST/v1'}}", swift, "https://HOST", plain),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let run_at = |host: &str, named: &str, more: &[&str]| {
            let workload = of_somebody(&target.replace("HOST", host));
            std::fs::write(directory.path().join("w.yaml"), workload).unwrap();
            let mut command = plimsoll(directory.path());
            command.args(["run", "w.yaml", "--host", named]).args(more).envs(variables);
            let output = run(command);
            assert_ne!(output.status.code(), Some(0));
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let stranger = Stranger::start();
        let host = &stranger.host;
        let said = run_at(host, &named.replace("HOST", host), &[]);
        assert!(said.contains(refused), "{target}: {said}");
        assert_eq!(stranger.heard(), "", "{target}");
        if refused == plain {
            let said = run_at(host, host, &[]);
            assert!(stranger.heard().contains("OWNER"), "{target}: {said}");
            continue;
        }
        // Nobody listens there, so that nobody is waited for.
        let said = run_at(NOBODY, &named.replace("HOST", NOBODY), &["--insecure"]);
        assert!(said.contains("refused") && !said.contains("would send"), "{target}: {said}");
    }
}

#[test]
fn what_is_in_a_file_of_the_user_goes_to_a_store_only_with_leave() {
    let workload = |host: &str, set: &str, op: &str| {
        format!(
            "schema: plimsoll.workload/2\nname: t\ntargets: {{s3: {{hosts: '{host}'}}}}\n\
             sets: {{s: {set}}}\n\
             stages: [{{duration: 100ms, jobs: [{{work: {{objects: [{{{op}: s}}]}}}}]}}]\n"
        )
    };
    let cosbench = |host: &str, files: &str| {
        format!(
            "<workload name='w'><storage type='s3' config='accesskey=k;secretkey=s;\
             endpoint=http://{host}'/><workflow><workstage name='m'><work name='m' workers='1' \
             totalOps='1'><operation type='filewrite' ratio='100' \
             config='containers=c(1);files={files};fileselection=s'/></work></workstage>\
             </workflow></workload>"
        )
    };
    for set in [
        "{existing: {list: FILE}}",
        "{count: 1, size: 10B, content: {files: [{path: FILE, bytes: 10}]}}",
        "{named: {bucket: c, files: DIR}, shared: true, touch: true}",
        "cosbench",
    ] {
        let stranger = Stranger::start();
        let host = &stranger.host;
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for name in ["own", "theirs"] {
            std::fs::create_dir(place(name)).unwrap();
            std::fs::write(place(name).join("f.txt"), "OWNER-hush").unwrap();
        }
        // A link in the directory that is allowed leads out of it.
        std::os::unix::fs::symlink(place("own"), place("theirs/link")).unwrap();
        let is_whole = set.contains("DIR") || set == "cosbench";
        let run_with = |from: &str, args: &[&str]| {
            let file = if is_whole { from.to_owned() } else { format!("{from}/f.txt") };
            let op = if set.contains("list") { "get" } else { "put" };
            let text = match set {
                "cosbench" => cosbench(host, &file),
                set => workload(host, &set.replace("FILE", &file).replace("DIR", &file), op),
            };
            std::fs::write(place("theirs/w"), text).unwrap();
            let mut command = plimsoll(directory.path());
            match set {
                "cosbench" => command.args(["as", "cosbench", "theirs/w"]),
                _ => command.args(["run", "theirs/w", "--access-key", ""]),
            };
            command.args(args).env("AWS_ENDPOINT_URL", format!("http://{host}"));
            let output = run(command);
            assert_ne!(output.status.code(), Some(0));
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // Whether the host is named or not, and wherever the workload lies.
        for (from, args) in [
            ("own", &[][..]),
            ("theirs", &[]),
            ("theirs/../own", &["--allow-dir", "theirs"]),
            ("theirs/link", &["--allow-dir", "theirs"]),
            ("own", &["--allow-dir", "theirs", "--allow-dir", "theirs/f.txt"]),
        ] {
            let said = run_with(from, args);
            assert!(said.contains("this would send what is in"), "{set}: {from}: {said}");
            let has_line = said.contains("theirs/w:");
            assert!(has_line || set == "cosbench", "{set}: {from}: {said}");
            assert_eq!(stranger.heard(), "", "{set}: {from}");
        }
        let said = run_with("own", &["--allow-dir", "nowhere"]);
        assert!(said.contains("cannot open the directory nowhere"), "{set}: {said}");
        assert!(said.contains("it has to exist (--allow-dir)"), "{set}: {said}");
        let said = run_with("own", &["--allow-dir", "theirs", "--allow-dir", "own"]);
        assert!(!said.contains("this would send what is in"), "{set}: {said}");
        assert_ne!(stranger.heard(), "", "{set}: {said}");
    }
}

#[test]
fn clean_that_asks_nobody_has_no_key_go_where_only_the_record_says() {
    let stranger = Stranger::start();
    let directory = tempfile::tempdir().unwrap();
    forged_record(directory.path(), "s3", &stranger.host, &json!({ "s3": {} }));
    let clean = |variables: &[(&str, &str)]| {
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "--yes", "record"]).envs(variables.iter().copied());
        let output = run(clean);
        assert_ne!(output.status.code(), Some(0));
        stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let keys = [("AWS_ACCESS_KEY_ID", "OWNER"), ("AWS_SECRET_ACCESS_KEY", "OWNER-hush")];
    let said = clean(&keys);
    assert!(said.contains(&format!("to {}, which only a file names", stranger.host)), "{said}");
    assert_eq!(stranger.heard(), "");
    let url = format!("http://{}", stranger.host);
    let said = clean(&[keys[0], keys[1], ("AWS_ENDPOINT_URL", &url)]);
    assert!(stranger.heard().contains("Credential=OWNER"), "{said}");
}

#[test]
fn clean_signs_with_no_key_that_only_the_record_names() {
    let directory = tempfile::tempdir().unwrap();
    let key = "[jwt.filer_signing.read]\nkey = \"OWNER\"\n[jwt.signing]\nkey = \"OWNER\"\n";
    std::fs::write(directory.path().join("keys.toml"), key).unwrap();
    for kind in ["seaweedfs-filer", "seaweedfs"] {
        let stranger = Stranger::start();
        let host = &stranger.host;
        let place = tempfile::tempdir_in(directory.path()).unwrap();
        let server = if kind == "seaweedfs" { "master" } else { "filer" };
        let target = json!({ "seaweedfs": { server: host, "security": "../keys.toml" } });
        forged_record(place.path(), kind, host, &target);
        std::fs::write(place.path().join("record/names-0.txt"), "3,01637037d6\n").unwrap();
        let clean = |args: &[&str]| {
            let mut clean = plimsoll(place.path());
            clean.args(["clean", "--yes", "record"]).args(args);
            let output = run(clean);
            assert_ne!(output.status.code(), Some(0));
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let refused = format!("keys of `../keys.toml` for {host}");
        for args in [&[][..], &["--host", host]] {
            let said = clean(args);
            assert!(said.contains(&refused) && said.contains("--security FILE"), "{kind}: {said}");
            assert_eq!(stranger.heard(), "", "{kind}");
        }
        // Who names the file has it used. A master is asked without a token.
        clean(&["--security", "../keys.toml"]);
        let heard = stranger.heard().to_lowercase();
        assert_eq!(
            heard.contains("authorization: bearer "),
            kind != "seaweedfs",
            "{kind}: {heard}"
        );
        assert_ne!(heard, "", "{kind}");
    }
}
