//! Clusters that talk TLS, told by their own `security.toml`.
#![expect(clippy::disallowed_methods, reason = "certificates are files")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{ByteRange, Driver as _, Operation, Session as _};
use plimsoll_driver_seaweed::{AssignBy, SeaweedConfig, SeaweedDriver, Security};
use plimsoll_engine::RunClock;
use plimsoll_http::{TlsConfig, TlsOptions};
use plimsoll_model::{Clock as _, ErrorClass, SharedClock};
use plimsoll_testkit::weed::{OwnWeed, WeedSetup};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::support::{Client, Numbered};

/// How long servers may take until they are there.
const READY_MAX: Duration = Duration::from_secs(90);

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(folder: &Path, name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), issuer.pem()).unwrap();
    issuer
}

/// Issues a certificate of that common name for these hosts, `{name}.crt` and `{name}.key`.
fn issue(folder: &Path, issuer: &Issuer, name: &str, hosts: &[&str]) {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    std::fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// Makes certificates of gRPC, which hold no host, and of HTTPS; returns `security.toml`, of
/// servers and of clients.
fn security(folder: &Path) -> String {
    let grpc = authority(folder, "grpc-ca");
    let web = authority(folder, "web-ca");
    for name in ["master01", "volume01", "client01"] {
        issue(folder, &grpc, name, &[]);
    }
    issue(folder, &web, "web", &["127.0.0.1"]);
    let folder = folder.display();
    let pair = |name: &str| format!("cert = '{folder}/{name}.crt'\nkey = '{folder}/{name}.key'\n");
    format!(
        "[grpc]\nca = '{folder}/grpc-ca.pem'\n[grpc.master]\n{}[grpc.volume]\n{}[grpc.client]\n{}\
         [https.client]\nenabled = true\nca = '{folder}/web-ca.pem'\n{web}[https.volume]\n{web}",
        pair("master01"),
        pair("volume01"),
        pair("client01"),
        web = pair("web")
    )
}

/// Tries everything that goes over HTTP or gRPC, to masters or volume servers.
fn check(master: &str, change: impl Fn(&mut SeaweedConfig)) {
    for assign_by in [AssignBy::Call, AssignBy::Http] {
        let change = |config: &mut SeaweedConfig| {
            config.assign_by = assign_by;
            config.replication = "001".to_owned();
            change(config);
        };
        let mut cluster = Client::of(master, "secured", change);
        let names: Vec<String> = (0..3).map(|file| cluster.put(file, 100_000).into()).collect();
        for (file, name) in names.iter().enumerate() {
            let expected = Numbered { file: file as u64, size: 100_000 };
            let (done, content) = cluster.get(name, None);
            assert_eq!(done.result, Ok(()), "{assign_by:?}");
            assert!(content == expected.bytes(0, 100_000));
            let range = ByteRange { offset: 10, len: 20 };
            assert_eq!(cluster.get(name, Some(range)).1, expected.bytes(10, 20));
            assert_eq!(cluster.stat(name).object_size, Some(100_000));
        }
        assert_eq!(cluster.delete(&names[0]).result, Ok(()));
        let done = cluster.run(Operation::Delete { keys: &names });
        assert_eq!((done.result, done.objects_count), (Ok(()), 3));
        let gone = cluster.get(&names[2], None).0.result.unwrap_err();
        assert_eq!(gone.class, ErrorClass::NotFound);
    }
}

/// Sets what the text of a `security.toml` tells a client.
fn told_by(text: &str) -> impl Fn(&mut SeaweedConfig) {
    let told = Security::read(text, &|_| None).unwrap();
    move |config| {
        config.tls = told.https.as_ref().map(|tls| TlsConfig::load(tls).unwrap());
        config.grpc_tls = told.grpc.as_ref().map(|tls| TlsConfig::load(tls).unwrap());
        config.keys = told.keys.clone();
        config.masters_are_plain = told.masters_are_plain;
    }
}

#[test]
fn a_cluster_that_talks_tls_is_asked_as_its_security_toml_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = security(folder.path());
    let security = text.clone();
    let setup = WeedSetup { volume_servers: 2, volumes_max: 60, security, ..Default::default() };
    let Some(weed) = OwnWeed::start(&setup) else { return };
    check(&weed.master(), told_by(&text));

    let open = |change: &dyn Fn(&mut SeaweedConfig)| {
        let clock = RunClock::start();
        let wall_epoch = clock.wall_epoch();
        let clock: SharedClock = Arc::new(clock);
        let mut config = SeaweedConfig::new(vec![weed.master().parse().unwrap()], "secured");
        told_by(&text)(&mut config);
        change(&mut config);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let opened = runtime.block_on(SeaweedDriver::open(config, &clock, wall_epoch));
        let mut session = opened.unwrap().open_sessions(&clock, 1).pop().unwrap();
        let content = &mut Numbered { file: 1, size: 10 };
        let put = Operation::Put { key: "", content };
        runtime.block_on(session.execute(None, put)).result.unwrap_err()
    };
    let with_grpc = |change: fn(&mut TlsOptions)| {
        let mut tls = Security::read(&text, &|_| None).unwrap().grpc.unwrap();
        change(&mut tls);
        Some(TlsConfig::load(&tls).unwrap())
    };
    for (grpc_tls, words) in [
        // Which of the two depends on whether the server's words or its end come first.
        (with_grpc(|tls| tls.identity = None), ["does it want a certificate", "was shown none"]),
        (with_grpc(|tls| tls.any_name_of_ca = false), ["certificate is for another name"; 2]),
        (None, ["does that port speak gRPC, and without TLS?"; 2]),
    ] {
        let error = open(&|config| config.grpc_tls = grpc_tls.clone());
        assert!(matches!(error.class, ErrorClass::Reset | ErrorClass::Connect), "{error:?}");
        assert!(words.iter().any(|words| error.message.contains(words)), "{error:?}");
    }
}

#[test]
fn masters_that_talk_https_too_are_asked_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = security(folder.path());
    let of_volume = text.find("[https.volume]").unwrap();
    let text = text.clone() + &text[of_volume..].replace("volume]", "master]");
    let security = text.clone();
    let setup = WeedSetup { volume_servers: 2, volumes_max: 60, security, https_master: true };
    let Some(weed) = OwnWeed::start(&setup) else { return };
    // Whether they are up is seen by opening.
    let (clock, change) = (RunClock::start(), told_by(&text));
    let started = clock.now();
    let wall_epoch = clock.wall_epoch();
    let clock: SharedClock = Arc::new(clock);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    loop {
        let mut config = SeaweedConfig::new(vec![weed.master().parse().unwrap()], "secured");
        change(&mut config);
        match runtime.block_on(SeaweedDriver::open(config, &clock, wall_epoch)) {
            Ok(driver) if driver.endpoints().len() == 4 => break,
            opened => {
                let waited = clock.now().since(started);
                assert!(waited < READY_MAX, "{:?}\n{}", opened.err(), weed.log());
            }
        }
    }
    check(&weed.master(), change);
}
