//! The chain against services on loopback. `aws-config` reads the environment of its process, so
//! it is another process of this test that looks, with an environment of its own.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_model::Clock;

use super::*;

/// What tells the other process what to look for.
const CHILD: &str = "PLIMSOLL_TEST_CREDENTIALS_CHILD";
const WEB_TOKEN: &str = "PLIMSOLL_TEST_WEB_TOKEN";
const STORE: &str = "PLIMSOLL_TEST_STORE";
const PROXY: &str = "PLIMSOLL_TEST_PROXY";
const MARK: &str = "found: ";

/// What the command line calls what it hands over.
const NAMES: Names = Names {
    keys: "the flags",
    access_key: "--access-key",
    secret_key: "--secret-key",
    session_token: "--session-token",
    web_token: "--sts-web-token",
};
/// The wall time at the epoch of the tests, 2026-11-21T09:00:00Z.
const EPOCH: WallTime = WallTime::from_unix_ns(1_795_251_600_000_000_000);

/// A clock that the test moves.
#[derive(Default)]
struct Moved(AtomicU64);

impl Clock for Moved {
    fn now(&self) -> Moment {
        Moment::EPOCH.after(Duration::from_secs(self.0.load(Ordering::SeqCst)))
    }
}

#[expect(clippy::disallowed_methods, reason = "is the process that has this environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn run(line: &str, time_max: Duration) -> io::Result<Option<Ran>> {
    let clock = plimsoll_engine::RunClock::start();
    let ended = plimsoll_conduct::child::run_to_end(line, 1 << 16, &clock, time_max)?;
    let text = |kept: Vec<u8>| String::from_utf8(kept).unwrap();
    Ok(ended.map(|of| Ran { status: of.status, output: Secret::from(text(of.output.kept)) }))
}

fn chain(clock: Arc<Moved>, variable: fn(&str) -> Option<String>) -> Chain {
    let store = variable(STORE).unwrap_or_else(|| "store.invalid".to_owned());
    Chain {
        given: StaticKeys { access_key: None, secret_key: None, session_token: None, names: NAMES },
        web_token: variable(WEB_TOKEN).map(Secret::from),
        store: plimsoll_http::expand_hosts(&store, 80).unwrap().remove(0),
        store_tls: false,
        trust: TlsOptions::default(),
        services_trust: TlsOptions::default(),
        known: KnownSecrets::default(),
        proxies: variable(PROXY).map(|url| Proxies::all(&url, &TlsOptions::default()).unwrap()),
        clock,
        wall_epoch: EPOCH,
        patience: Duration::from_secs(5),
        variable,
        read: plimsoll_conduct::input::read_text,
        run,
    }
}

/// Looks for credentials in an environment of these variables alone; returns access key, secret,
/// token, source and region, or the refusal.
fn look(variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::nothing_is_found_where_nothing_is", "--nocapture"]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path()).env(CHILD, "yes");
    command.env("AWS_EC2_METADATA_DISABLED", "true").envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once(MARK));
    line.unwrap_or_else(|| panic!("{output:?}")).1.to_owned()
}

/// Is also the other process.
#[test]
fn nothing_is_found_where_nothing_is() {
    if variable(CHILD).is_none() {
        let said = look(&[]);
        assert!(
            said.starts_with("no credentials found: looked at --access-key, AWS_ACC"),
            "{said}"
        );
        for place in ["~/.aws", "web identity", "container", "instance's role"] {
            assert!(said.contains(place), "{said}");
        }
        return;
    }
    let mut chain = chain(Arc::default(), variable);
    if variable("AWS_PROFILE").is_some_and(|name| name == "hangs") {
        chain.patience = Duration::from_millis(300);
    }
    let told = match chain.resolve() {
        Ok(Found { keys, source, region }) => {
            let token = keys.session_token.as_ref().map_or("-", Secret::expose);
            let (access, secret) = (&keys.access_key, keys.secret_key.expose());
            assert!(format!("{keys:?}").contains("secret_key: Secret,"), "{keys:?}");
            format!("{access} {secret} {token} {source} {}", region.unwrap_or_default())
        }
        Err(error) => {
            let debug = format!("{error:?}");
            assert!(!debug.contains("hush"), "{debug}");
            error::in_one_line(&error)
        }
    };
    println!("\n{MARK}{told}");
}

/// A service on loopback that goes on as long as the process: it answers each request by what is
/// known for its method and path.
struct Service {
    authority: String,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answers = BTreeMap<&'static str, (u16, String)>;

fn serve(answers: impl Fn() -> Answers + Send + 'static) -> Service {
    serve_with("x-aws-ec2-metadata-token-ttl-seconds: 60\r\n", answers)
}

fn serve_with(head: &'static str, answers: impl Fn() -> Answers + Send + 'static) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            let line = request.lines().next().unwrap_or_default().to_owned();
            let (status, body) = answers()
                .into_iter()
                .find(|(begin, _)| line.starts_with(begin))
                .map_or((404, String::new()), |(_, answer)| answer);
            noted.lock().unwrap().push(request);
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    Service { authority, asked }
}

fn read_request(stream: &mut TcpStream) -> String {
    let (mut request, mut byte) = (Vec::new(), [0]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read(&mut byte).unwrap() == 0 {
            return text;
        }
        request.push(byte[0]);
    }
}

fn serving(answers: &[(&'static str, u16, &str)]) -> Service {
    let answers: Answers =
        answers.iter().map(|(line, status, body)| (*line, (*status, (*body).to_owned()))).collect();
    serve(move || answers.clone())
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

#[test]
fn the_first_source_that_has_keys_wins() {
    let profiles = file("[default]\naws_access_key_id=PA\naws_secret_access_key=ps\nregion=r-1\n");
    let all = [
        ("AWS_ACCESS_KEY_ID", "EA"),
        ("AWS_SECRET_ACCESS_KEY", "es"),
        ("AWS_SESSION_TOKEN", "et"),
        ("MINIO_ROOT_USER", "MA"),
        ("MINIO_ROOT_PASSWORD", "ms"),
        ("AWS_SHARED_CREDENTIALS_FILE", path(&profiles)),
    ];
    assert_eq!(look(&all), "EA es et the environment (AWS_ACCESS_KEY_ID) ");
    assert_eq!(look(&all[3..]), "MA ms - the environment (MINIO_ROOT_USER) ");
    assert_eq!(look(&all[5..]), "PA ps - profile `default` r-1");
    let half = look(&[("AWS_SECRET_ACCESS_KEY", "hush")]);
    assert_eq!(half, "AWS_SECRET_ACCESS_KEY is set without AWS_ACCESS_KEY_ID");
    let given = StaticKeys {
        access_key: None,
        secret_key: Some(Secret::from("hush".to_owned())),
        session_token: None,
        names: NAMES,
    };
    let refusal = given.keys().unwrap_err().to_string();
    assert_eq!(refusal, "--secret-key or --session-token is given without --access-key");
}

const CONFIG: &str = r#"
[profile process]
credential_process = echo '{"Version": 1, "AccessKeyId": "CA", "SecretAccessKey": "cs"}'
[profile garbage]
credential_process = echo hush
[profile fails]
credential_process = sh -c 'echo no luck >&2; exit 3'
[profile hangs]
credential_process = exec 9> FIFO; echo up >&9; sh -c 'sleep 20; echo survived >&9'; true
[profile no-json]
credential_process = echo '["hush"]'
[profile no-secret]
credential_process = echo '{"Version": 1, "AccessKeyId": "hush"}'
[profile other-version]
credential_process = echo '{"Version": 2, "AccessKeyId": "CA", "SecretAccessKey": "hush"}'
[profile no-time]
credential_process = echo '{HUSHED, "Expiration": "soon"}'
[profile over]
credential_process = echo '{HUSHED, "Expiration": "2026-11-21T08:59:59Z"}'
[profile role-over]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = over
[profile itself]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = itself
[profile a]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = b
[profile b]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = a
[profile orphan]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = nobody
[profile bare]
region = x
[profile sso]
sso_start_url = https://sso.invalid/start
sso_region = us-east-1
sso_account_id = 123456789012
sso_role_name = r
[profile role]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = process
region = eu-west-1
[profile role-of-role]
role_arn = arn:aws:iam::123456789012:role/q
source_profile = role
region = eu-west-1
[profile own-source]
role_arn = arn:aws:iam::123456789012:role/r
source_profile = own-source
region = eu-west-1
credential_process = echo '{"Version": 1, "AccessKeyId": "CA", "SecretAccessKey": "cs"}'
"#;

#[test]
fn a_profile_that_cannot_be_used_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let (fifo, heard) = hear(place.path());
    let hushed = r#""Version": 1, "AccessKeyId": "CA", "SecretAccessKey": "hush""#;
    let config = CONFIG.replace("FIFO", &fifo).replace("HUSHED", hushed);
    let config = file(&config);
    let of = |name: &str| look(&[("AWS_CONFIG_FILE", path(&config)), ("AWS_PROFILE", name)]);
    assert_eq!(of("process"), "CA cs - profile `process` ");
    for (name, reason) in [
        ("absent", "there is no profile `absent` (AWS_PROFILE)"),
        ("bare", "profile `bare` holds no keys"),
        (
            "itself",
            "the sources of profile `itself` (source_profile) go in a circle: itself, itself",
        ),
        ("a", "the sources of profile `a` (source_profile) go in a circle: a, b, a"),
        ("orphan", "profile `orphan` names `nobody` as its source, and there is no such profile"),
        (
            "garbage",
            "profile `garbage`: its credential_process gives no keys: what it prints is not",
        ),
        (
            "no-json",
            "profile `no-json`: its credential_process gives no keys: what it prints is not",
        ),
        (
            "no-secret",
            "profile `no-secret`: its credential_process gives no keys: what it prints holds no \
             `SecretAccessKey`",
        ),
        (
            "other-version",
            "profile `other-version`: its credential_process gives no keys: what it prints has \
             another `Version` than 1",
        ),
        (
            "no-time",
            "profile `no-time`: its credential_process gives no keys: what it prints as \
             `Expiration` is no time",
        ),
        ("over", "the credentials from profile `over` have expired at 2026-11-21T08:59:59Z"),
        ("role-over", "the credentials from profile `role-over` have expired at 2026-11-21T08:5"),
        (
            "fails",
            "profile `fails`: its credential_process gives no keys: it ended with exit status: 3; \
             run it by hand to see why",
        ),
        ("hangs", "profile `hangs`: its credential_process has given no keys within 0.3 s"),
        ("sso", "profile `sso`: its SSO login gives no keys ("),
    ] {
        let said = of(name);
        assert!(said.starts_with(reason), "{name}: {said}");
        assert!(!said.contains("hush"), "{said}");
    }
    assert!(of("sso").contains("`aws sso login --profile sso`"));
    assert_eq!(heard.join().unwrap(), "up\n", "what a command that hangs has started ends with it");
    let missing = look(&[("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")]);
    assert!(missing.starts_with("cannot read the profile file /nonexistent"), "{missing}");
}

/// Returns a pipe that a command can open, and what comes through it until nobody holds it open.
fn hear(folder: &Path) -> (String, std::thread::JoinHandle<String>) {
    let path = folder.join("fifo").display().to_string();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let opened = path.clone();
    let read = move || {
        let output = Command::new("cat").arg(opened).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    (path, std::thread::spawn(read))
}

const JSON: &str = r#"{"Code":"Success","AccessKeyId":"JA","SecretAccessKey":"js","Token":"jt",
    "Expiration":"2026-11-21T15:00:00Z","Type":"AWS-HMAC"}"#;

#[test]
fn an_instance_is_asked_for_a_token_then_its_role_then_the_keys() {
    let roles = "GET /latest/meta-data/iam/security-credentials/ HTTP";
    let keys = "GET /latest/meta-data/iam/security-credentials/my-role HTTP";
    let token = ("PUT /latest/api/token", 200, "TOKEN==");
    let ask = |answers: &[(&'static str, u16, &str)]| {
        let service = serving(answers);
        let url = format!("http://{}", service.authority);
        let enabled = ("AWS_EC2_METADATA_DISABLED", "false");
        (look(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &url), enabled]), service)
    };
    let (found, service) = ask(&[token, (roles, 200, "my-role"), (keys, 200, JSON)]);
    assert_eq!(found, "JA js jt the instance's role ");
    let asked = service.asked.lock().unwrap().clone();
    assert!(asked[1].to_lowercase().contains("\r\nx-aws-ec2-metadata-token: token==\r\n"));
    let (refused, _) = ask(&[token, (roles, 200, "my-role"), (keys, 403, "hush")]);
    assert!(refused.starts_with("the instance's role: ") && refused.contains("403"), "{refused}");
    assert!(!refused.contains("hush"), "an answer may hold keys: {refused}");
    // Where no variable names it, something else may answer there.
    let service = serving(&[("PUT /latest/api/token", 403, "hush")]);
    let url = format!("[default]\nec2_metadata_service_endpoint = http://{}\n", service.authority);
    let config = file(&url);
    let none = look(&[("AWS_CONFIG_FILE", path(&config)), ("AWS_EC2_METADATA_DISABLED", "false")]);
    assert!(none.starts_with("no credentials found: looked at --access-key, "), "{none}");
    assert!(none.contains("the instance's role (failed to load"), "{none}");
    assert_eq!(service.asked.lock().unwrap().len(), 1, "it was asked: {none}");
}

#[test]
fn a_container_is_asked_with_its_token_and_only_near_or_over_tls() {
    let service = serving(&[("GET /v1/keys?id=7 ", 200, JSON)]);
    let url = format!("http://{}/v1/keys?id=7", service.authority);
    let token = file("Bearer abc");
    let found = look(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "not-this"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path(&token)),
        ("AWS_REGION", "eu-north-1"),
    ]);
    assert_eq!(found, "JA js jt the container eu-north-1");
    let asked = service.asked.lock().unwrap().concat().to_lowercase();
    assert!(asked.contains("\r\nauthorization: bearer abc\r\n"), "{asked}");
    let far = look(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/keys")]);
    assert!(far.starts_with("the container's credentials: "), "{far}");
}

#[test]
fn no_part_of_an_answer_shows_what_a_service_was_sent() {
    // A proxy that is the service: each gets what the other was sent.
    let again = |status: u16, body: &'static str| {
        let head = "x-amzn-requestid: hush-token\r\nx-amzn-errortype: hush-token\r\n";
        let service = serve_with(head, move || BTreeMap::from([("", (status, body.to_owned()))]));
        service.authority
    };
    let near = |status, body| {
        let url = format!("http://{}/keys", again(status, body));
        look(&[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-token"),
        ])
    };
    let document =
        r#"{"AccessKeyId":"A","SecretAccessKey":"s","Token":"t","Expiration":"hush-token"}"#;
    for (status, body) in [(200, document), (200, "hush-token"), (403, "hush-token")] {
        let said = near(status, body);
        assert!(said.starts_with("the container's credentials: "), "{said}");
        assert!(!said.contains("hush"), "{said}");
    }
    let error = "<ErrorResponse><Error><Code>hush-user:hush-word</Code>\
                 <Message>aHVzaC11c2VyOmh1c2gtd29yZA== hush-word</Message></Error></ErrorResponse>";
    let proxy = format!("http://hush-user:hush-word@{}", again(400, error));
    let said = look(&[(WEB_TOKEN, "ey.J"), (STORE, "store.invalid"), (PROXY, &proxy)]);
    assert!(said.contains("store.invalid:80 answered 400: *REDACTED*: *REDACTED*"), "{said}");
    assert!(!said.contains("hush") && !said.contains("aHVz"), "{said}");
}

/// The example of the interface's reference, shortened.
const XML: &str = r#"<ACTIONResponse
    xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><ACTIONResult>
    <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn>
    <AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
    <Credentials><SessionToken>st&amp;1</SessionToken><SecretAccessKey>ss/+</SecretAccessKey>
    <Expiration>2026-11-21T10:00:00Z</Expiration><AccessKeyId>SA</AccessKeyId></Credentials>
    </ACTIONResult></ACTIONResponse>"#;

#[test]
fn a_token_is_exchanged_at_the_store_or_at_the_named_service() {
    let web = XML.replace("ACTION", "AssumeRoleWithWebIdentity");
    let token = file("ey.J/=\n");
    let in_file = format!("file:{}", path(&token));
    let service = serving(&[("POST / ", 200, &web)]);
    let url = format!("http://{}", service.authority);
    let role = ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r");
    for variables in [
        &[(WEB_TOKEN, "ey.J/="), (STORE, &service.authority)][..],
        &[(WEB_TOKEN, &in_file), ("AWS_ENDPOINT_URL_STS", &url), role],
    ] {
        assert_eq!(look(variables), "SA ss/+ st&1 the token service (--sts-web-token) ");
        let asked = service.asked.lock().unwrap().pop().unwrap();
        assert!(asked.contains("WebIdentityToken=ey.J%2F%3D"), "{asked}");
        assert_eq!(asked.contains("&RoleArn=arn"), variables.contains(&role), "{asked}");
    }
    let found = look(&[(WEB_IDENTITY, path(&token)), ("AWS_ENDPOINT_URL_STS", &url), role]);
    assert_eq!(found, "SA ss/+ st&1 the web identity (AWS_WEB_IDENTITY_TOKEN_FILE) ");
    let no_role = look(&[(WEB_IDENTITY, path(&token))]);
    assert_eq!(no_role, "AWS_WEB_IDENTITY_TOKEN_FILE: AWS_ROLE_ARN is not set");

    let said = "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>\
                <Message>hush.token is\nno token</Message></Error></ErrorResponse>";
    let service = serving(&[("POST / ", 400, said)]);
    let refused = look(&[(WEB_TOKEN, "hush.token"), (STORE, &service.authority)]);
    let reason = "answered 400: InvalidIdentityToken: *REDACTED* is no token";
    assert_eq!(refused, format!("--sts-web-token: {} {reason}", service.authority));
    assert_eq!(look(&[(WEB_TOKEN, " ")]), "--sts-web-token: the token is empty");
    let hush = file("hush.token");
    let url = format!("http://{}", service.authority);
    let refused = look(&[(WEB_IDENTITY, path(&hush)), ("AWS_ENDPOINT_URL_STS", &url), role]);
    assert!(refused.contains("InvalidIdentityToken") && !refused.contains("hush"), "{refused}");
}

#[test]
fn a_role_is_assumed_with_the_keys_of_its_source() {
    let service = serving(&[("POST / ", 200, &XML.replace("ACTION", "AssumeRole"))]);
    let url = format!("http://{}", service.authority);
    let config = file(CONFIG);
    for (name, roles) in [("role", "r"), ("own-source", "r"), ("role-of-role", "rq")] {
        let found = look(&[
            ("AWS_CONFIG_FILE", path(&config)),
            ("AWS_PROFILE", name),
            ("AWS_ENDPOINT_URL_STS", &url),
        ]);
        assert_eq!(found, format!("SA ss/+ st&1 profile `{name}` eu-west-1"));
        let asked = std::mem::take(&mut *service.asked.lock().unwrap());
        assert_eq!(asked.len(), roles.len(), "{asked:?}");
        for ((request, role), key) in asked.iter().zip(roles.chars()).zip(["CA", "SA"]) {
            let credential = format!("Credential={key}/20261121/eu-west-1/sts/aws4_request");
            assert!(request.contains(&credential), "{request}");
            assert!(request.contains(&format!("role%2F{role}&")), "{request}");
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "writes the login of a profile")]
fn the_address_of_the_store_is_that_of_no_sign_in_service() {
    // It would answer everything.
    let store = serving(&[("", 200, &XML.replace("ACTION", "AssumeRoleWithWebIdentity"))]);
    let (proxy, sts) = (serving(&[]), serving(&[("", 200, &XML.replace("ACTION", "AssumeRole"))]));
    let url = |service: &Service| format!("http://{}", service.authority);
    let (store_url, proxy_url, sts_url) = (url(&store), url(&proxy), url(&sts));
    let token = file("hush.token");
    let config = file(&format!(
        "{CONFIG}[profile web]\nrole_arn = arn:aws:iam::123456789012:role/r\n\
         web_identity_token_file = {}\n",
        path(&token)
    ));
    // The login of `sso`: its name is the SHA-1 of the address that it begins at.
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let login = r#"{"accessToken": "hush.login", "expiresAt": "2099-01-01T00:00:00Z",
        "region": "us-east-1", "startUrl": "https://sso.invalid/start"}"#;
    let login_file = cache.join("24259bbb4f9566835fa614515705228e45bf6f67.json");
    std::fs::write(login_file, login).unwrap();
    let of = |more: &[(&str, &str)]| {
        let home = home.path().to_str().unwrap();
        let all = [("AWS_ENDPOINT_URL", &*store_url), (PROXY, &*proxy_url), ("HOME", home)];
        let said = look(&[&all[..], more].concat());
        assert!(!said.contains("hush"), "{said}");
        said
    };
    // Amazon's is asked, by the proxy.
    let role = ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r");
    let said = of(&[(WEB_IDENTITY, path(&token)), role, ("AWS_REGION", "eu-west-1")]);
    let asked = proxy.asked.lock().unwrap().concat();
    assert!(asked.starts_with("CONNECT sts.eu-west-1.amazonaws.com:443 "), "{said}: {asked}");
    // The library cannot be told to ask it, so it asks nobody.
    let profile = |name| [("AWS_CONFIG_FILE", path(&config)), ("AWS_PROFILE", name)];
    for (name, variable) in [("role", "STS"), ("web", "STS"), ("sso", "SSO")] {
        let said = of(&profile(name));
        assert!(said.contains(&format!("set AWS_ENDPOINT_URL_{variable}, or")), "{name}: {said}");
    }
    let found = of(&[&profile("role")[..], &[("AWS_ENDPOINT_URL_STS", &*sts_url)]].concat());
    assert_eq!(found, "SA ss/+ st&1 profile `role` eu-west-1");
    assert_eq!(*store.asked.lock().unwrap(), [""; 0], "the store has heard of it");
}

#[test]
fn a_refusal_shows_no_secret_of_any_link_of_a_chain() {
    let config = file(
        "[profile base]\naws_access_key_id = A\naws_secret_access_key = sk-of-base\n\
         [profile command]\ncredential_process = echo \
         '{\"Version\":1,\"AccessKeyId\":\"C\",\"SecretAccessKey\":\"sk-of-command\"}'\n\
         [profile of-base]\nrole_arn = arn:aws:iam::123456789012:role/m\nsource_profile = base\n\
         [profile of-role]\nrole_arn = arn:aws:iam::123456789012:role/r\n\
         source_profile = of-base\n\
         [profile of-command]\nrole_arn = arn:aws:iam::123456789012:role/r\n\
         source_profile = command\n",
    );
    let refusal = "<ErrorResponse><Error><Code>AccessDenied</Code>\
                   <Message>no sk-of-base sk-of-command sk-of-role sk-of-token</Message></Error>\
                   </ErrorResponse>";
    let answer = XML.replace("ACTION", "AssumeRole").replace("ss/+", "sk-of-role");
    let answer = answer.replace("st&amp;1", "sk-of-token");
    for (profile, hidden) in [("of-base", "sk-of-base"), ("of-command", "sk-of-command")] {
        let service = serving(&[("POST / ", 400, refusal)]);
        let url = format!("http://{}", service.authority);
        let of_files = [("AWS_CONFIG_FILE", path(&config)), ("AWS_PROFILE", profile)];
        let said = look(&[&of_files[..], &[("AWS_ENDPOINT_URL_STS", &*url)]].concat());
        assert!(said.contains("AccessDenied") && !said.contains(hidden), "{said}");
    }
    // The first role is given, and the second refused.
    let count = std::sync::atomic::AtomicU32::default();
    let service = serve(move || {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        let answer = if is_first { (200, answer.clone()) } else { (400, refusal.to_owned()) };
        BTreeMap::from([("POST / ", answer)])
    });
    let url = format!("http://{}", service.authority);
    let of_files = [("AWS_CONFIG_FILE", path(&config)), ("AWS_PROFILE", "of-role")];
    let said = look(&[&of_files[..], &[("AWS_ENDPOINT_URL_STS", &*url)]].concat());
    let shown = ["sk-of-base", "sk-of-role", "sk-of-token"].iter().any(|of| said.contains(of));
    assert!(said.contains("AccessDenied") && !shown, "{said}");
}

#[test]
fn a_role_may_have_no_name_as_in_minio() {
    let nameless = |action| {
        let xml = XML.replace("ACTION", action);
        let xml = xml.replace("arn:aws:sts::123456789012:assumed-role/r/s", "");
        assert!(xml.contains("<Arn></Arn>"), "{xml}");
        let service = serving(&[("POST / ", 200, &xml)]);
        format!("http://{}", service.authority)
    };
    let config = file(CONFIG);
    let of_profile = look(&[
        ("AWS_CONFIG_FILE", path(&config)),
        ("AWS_PROFILE", "role"),
        ("AWS_ENDPOINT_URL_STS", &nameless("AssumeRole")),
    ]);
    assert_eq!(of_profile, "SA ss/+ st&1 profile `role` eu-west-1");
    let token = file("ey.J/=");
    let of_web_identity = look(&[
        (WEB_IDENTITY, path(&token)),
        ("AWS_ENDPOINT_URL_STS", &nameless("AssumeRoleWithWebIdentity")),
        ("AWS_ROLE_ARN", "arn:minio:iam:::role/r"),
    ]);
    let from = "the web identity (AWS_WEB_IDENTITY_TOKEN_FILE) ";
    assert_eq!(of_web_identity, format!("SA ss/+ st&1 {from}"));
}

#[test]
fn keys_are_renewed_before_they_expire_and_failures_are_told_once() {
    let clock = Arc::new(Moved::default());
    let (at, fails) = (Arc::clone(&clock), Arc::new(std::sync::atomic::AtomicBool::default()));
    let is_failing = Arc::clone(&fails);
    let web = XML.replace("ACTION", "AssumeRoleWithWebIdentity");
    // Each token is one of a minute.
    let service = serve(move || {
        let now = at.0.load(Ordering::SeqCst);
        let expires = now + 60;
        let time = format!("2026-11-21T09:{:02}:{:02}Z", expires / 60, expires % 60);
        let body = web.replace("2026-11-21T10:00:00Z", &time).replace("SA", &format!("SA{now}"));
        let refusal = "<ErrorResponse><Error><Code>Busy</Code><Message>no ss/+ st&amp;1</Message>\
                       </Error></ErrorResponse>";
        let answer = match is_failing.load(Ordering::SeqCst) {
            true => (400, refusal.to_owned()),
            false => (200, body),
        };
        [("POST / ", answer)].into_iter().collect()
    });
    let mut chain = chain(Arc::clone(&clock), |_| None);
    chain.web_token = Some(Secret::from("t".to_owned()));
    chain.store = plimsoll_http::expand_hosts(&service.authority, 80).unwrap().remove(0);
    let found = chain.resolve().unwrap();
    let mut keys = found.keys.clone();
    let mut refresher = Refresher::of(chain, &found).unwrap();
    let (mut renewed, mut told, mut refused) = (0, 0, 0);
    // Three minutes, then one in which the service fails, then a good one.
    for second in 0..300 {
        clock.0.store(second, Ordering::SeqCst);
        fails.store((180..260).contains(&second), Ordering::SeqCst);
        if refresher.due_in().is_some_and(|left| left.is_zero()) {
            match refresher.ask() {
                Refreshed::New(new) => (keys, renewed) = (new, renewed + 1),
                Refreshed::Same => panic!("each token is another"),
                Refreshed::Failed { is_first, error, .. } => {
                    told += u32::from(is_first);
                    // The keys that are in use are no less secret when a service repeats them.
                    let said = format!("{error:?}");
                    assert!(said.contains("Busy: no *REDACTED* *REDACTED*"), "{said}");
                }
            }
        }
        let is_valid = keys.expires.unwrap() > EPOCH.after(Duration::from_secs(second));
        assert!(is_valid || second >= 220, "keys have expired after {second} s");
        refused += u32::from(!is_valid);
        if second == 179 {
            // At 40, 80, 120 and 160 s.
            assert_eq!((renewed, told), (4, 0));
        }
    }
    assert_eq!(told, 1, "one failure was told, and no more of those that followed");
    assert!((40..60).contains(&refused), "those of 220 to about 260 s are refused: {refused}");
    assert!(keys.expires.unwrap() > EPOCH.after(Duration::from_secs(300)), "and then no more");
}
