//! Stores that ask for a certificate of the client: every command shows ours, and what is wrong
//! with it is said in one sentence.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

use crate::fleet::Fleet;
use crate::harness::{Target, counts, oracle, run, run_directory, run_json, stderr};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns a certificate for `localhost` and its key.
fn issued(by: &Issuer) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.signed_by(&key, by).unwrap(), key)
}

/// A store behind TLS that wants a certificate, and the files of who may speak to it.
struct Guarded {
    store: Target,
    host: String,
    folder: tempfile::TempDir,
}

impl Guarded {
    fn new() -> Self {
        let store = oracle();
        let ours = issuer("ours");
        let (certificate, key) = issued(&ours);
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", &ours.pem());
        for (name, by) in [("me", &ours), ("stranger", &issuer("other"))] {
            let (certificate, key) = issued(by);
            write(&format!("{name}.pem"), &certificate.pem());
            write(&format!("{name}.key"), &key.serialize_pem());
            let both = format!("{}{}", certificate.pem(), key.serialize_pem());
            write(&format!("{name}-both.pem"), &both);
        }
        let mut roots = RootCertStore::empty();
        roots.add(ours.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(vec![CertificateDer::from(certificate.der().to_vec())], key)
            .unwrap();
        let port = open_door(TlsAcceptor::from(Arc::new(config)), store.host.clone());
        Self { store, host: format!("localhost:{port}"), folder }
    }

    /// Returns the binary with a command line against this store and, as words, more of it.
    fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = crate::harness::plimsoll(directory);
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let line = line.replace("HOST", &self.host);
        command.args(line.split_whitespace().map(|word| match word.strip_prefix('@') {
            Some(name) => file(name),
            None => word.to_owned(),
        }));
        command.arg("--tls-ca").arg(file("ca.pem"));
        command.args(["--create-bucket", "--keep-bucket"]);
        self.store.credentials(&mut command);
        command
    }
}

/// Serves the store at `to` over TLS for as long as the test lasts; returns the port.
fn open_door(acceptor: TlsAcceptor, to: String) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    let Ok(mut inside) = acceptor.accept(socket).await else { return };
                    let mut onward = tokio::net::TcpStream::connect(&to).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut onward).await;
                });
            }
        });
    });
    port
}

const SMALL: &str = "--bucket bench --objects 20 --obj.size 1KiB --duration 200ms --concurrent 2";
const MINE: &str = "--client-cert @me.pem --client-key @me.key";

/// Keys with passwords, as far as anybody reads them: of PKCS #8, and of the older kind.
const NEW_LOCKED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcG\n\
                          -----END ENCRYPTED PRIVATE KEY-----\n";
const OLD_LOCKED: &str = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                          DEK-Info: AES-256-CBC,91D4\n\nMIHsMFcG\n-----END EC PRIVATE KEY-----\n";

#[test]
fn every_command_shows_the_certificate_and_keeps_its_key_to_itself() {
    let guarded = Guarded::new();
    let place = tempfile::tempdir().unwrap();
    let line = format!("s3 stat --host HOST --tls {SMALL} {MINE}");
    let report = run_json(guarded.command(place.path(), &line), 0);
    assert_eq!(counts(&report)["ops_failed_count"], 0);
    let record = run_directory(place.path());
    for name in ["run.json", "summary.json"] {
        let bytes = std::fs::read(record.join(name)).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"PRIVATE KEY"));
    }
    let workload = "schema: plimsoll.workload/2\nname: t\n\
                    targets: {s: {s3: {hosts: 'https://HOST', bucket: bench}}}\n\
                    sets: {o: {on: s, count: 5, size: 1B}}\n\
                    stages: [{jobs: [{work: {fill: o}}]}]\n";
    let workload = workload.replace("HOST", &guarded.host);
    std::fs::write(place.path().join("w.yaml"), workload).unwrap();
    let record = record.display();
    for line in [
        format!("run w.yaml --host https://HOST {MINE}"),
        format!("s3 stat --host HOST --tls {SMALL} --client-cert @me-both.pem"),
        format!("check https://HOST/bench {MINE} --duration 300ms --concurrent 2"),
        format!("clean https://HOST/bench {MINE}"),
        format!("clean {record} --yes {MINE}"),
        format!("loadline s3 stat --host HOST --tls {SMALL} {MINE} --rates 20/s..40/s --budget 2s")
            .replace("--duration 200ms ", ""),
    ] {
        let mut command = guarded.command(place.path(), &line);
        command.env("AWS_ENDPOINT_URL", format!("https://{}", guarded.host));
        let output = run(command);
        // Whether a load line is found on a busy machine is not asked here.
        let done = [Some(0), Some(if line.starts_with("loadline") { 1 } else { 0 })];
        assert!(done.contains(&output.status.code()), "{line}: {}", stderr(&output));
    }
    let line = format!("s3 stat --host HOST --tls {SMALL}");
    let mut command = guarded.command(place.path(), &line);
    let file = |name: &str| -> PathBuf { guarded.folder.path().join(name) };
    command.env("PLIMSOLL_CLIENT_CERT", file("me.pem")).env("PLIMSOLL_CLIENT_KEY", file("me.key"));
    assert!(run(command).status.success(), "by variables");
}

#[test]
fn what_is_wrong_with_the_certificate_is_said_in_one_sentence() {
    let guarded = Guarded::new();
    for (name, text) in [("new-locked.key", NEW_LOCKED), ("old-locked.key", OLD_LOCKED)] {
        std::fs::write(guarded.folder.path().join(name), text).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let refused = "the server does not accept our certificate, or wants one and was shown none";
    for (flags, says) in [
        ("--tls", refused),
        ("--tls --client-cert @stranger-both.pem", refused),
        (
            "--tls --client-cert @me.pem --client-key @stranger.key",
            "does not belong to the certificate",
        ),
        ("--tls --client-cert @me.pem", "cannot read a private key from"),
        ("--tls --client-cert @none.pem", "cannot read a certificate from"),
        ("--tls --client-cert @me.pem --client-key @none.key", "cannot read a private key from"),
        ("--tls --client-cert @me.pem --client-key @new-locked.key", "openssl pkey -in KEY -out"),
        ("--tls --client-cert @me.pem --client-key @old-locked.key", "openssl pkey -in KEY -out"),
        ("--client-cert @me-both.pem", "--tls"),
    ] {
        let line = format!("s3 stat --host HOST {SMALL} {flags}");
        let output = run(guarded.command(place.path(), &line));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        let errors: Vec<&str> = said.lines().filter(|line| !line.starts_with("warning")).collect();
        assert!(errors.len() == 1 && errors[0].contains(says), "{flags}: {said}");
    }
    let left = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 0, "no record of what could not run");
}

#[test]
fn agents_show_the_certificate_that_they_are_sent_or_their_own() {
    let allowed = ["--allow-hosts", "127.0.0.1,localhost"];
    let Some(mut fleet) = Fleet::start(&["told"], &allowed) else { return };
    let guarded = Guarded::new();
    let file = |name: &str| guarded.folder.path().join(name);
    let mut own = crate::harness::plimsoll(fleet.place.path());
    own.env("PLIMSOLL_CLIENT_CERT", file("me.pem")).env("PLIMSOLL_CLIENT_KEY", file("me.key"));
    guarded.store.credentials(&mut own);
    fleet.join_as(own, "own", &allowed);
    let line = format!("s3 stat --host HOST --tls {SMALL} {MINE} --json");
    for (flags, code) in [
        ("--agents told", Some(0)),
        ("--agents own --agent-credentials", Some(0)),
        // It has none, and is sent none then.
        ("--agents told --agent-credentials", Some(2)),
    ] {
        let line = format!("{line} {flags}");
        let mut command = guarded.command(fleet.place.path(), &line);
        let output = command.arg(&fleet.flag).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), code, "{flags}: {said}");
        if code == Some(0) {
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(counts(&report)["ops_failed_count"], 0, "{flags}");
            assert!(counts(&report)["ops_ok_count"].as_u64() > Some(0), "{flags}");
        } else {
            assert!(said.contains("wants one and was shown none"), "{flags}: {said}");
        }
        let keys = std::fs::read_to_string(file("me.key")).unwrap();
        let key = keys.lines().nth(1).unwrap();
        assert!(!said.contains(key), "{flags}: {said}");
    }
}
