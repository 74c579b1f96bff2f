//! The chain against services on loopback.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use plimsoll_engine::RunClock;

use super::*;

/// A service that answers its requests in turn, each on a connection of its own, and returns what
/// it was asked.
fn serve(answers: &[(u16, &str)]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let answers: Vec<(u16, String)> =
        answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
    let server = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let mut stream = listener.accept().unwrap().0;
            let mut request = Vec::new();
            while !is_whole(&request) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            asked.push(String::from_utf8(request).unwrap());
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}")
                .unwrap();
        }
        asked
    });
    (authority, server)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// What the command line calls what it hands over.
const NAMES: Names = Names {
    keys: "the flags",
    access_key: "--access-key",
    secret_key: "--secret-key",
    session_token: "--session-token",
    web_token: "--sts-web-token",
};

fn given(keys: [Option<&str>; 3]) -> StaticKeys {
    let [access_key, secret_key, session_token] = keys.map(|key| key.map(str::to_owned));
    StaticKeys { access_key, secret_key, session_token, names: NAMES }
}

/// Returns an error with its causes.
fn in_full(error: &CredentialsError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// What a test sets.
#[derive(Default)]
struct Asked<'a> {
    flags: [Option<&'a str>; 3],
    web_token: Option<&'a str>,
    store: Option<&'a str>,
    variables: &'a [(&'a str, &'a str)],
}

/// The wall time at the epoch of the tests, 2026-11-21T09:00:00Z.
const EPOCH: WallTime = WallTime::from_unix_ns(1_795_251_600_000_000_000);

impl Asked<'_> {
    fn resolve(&self) -> Result<Found> {
        let variables: HashMap<&str, &str> = self.variables.iter().copied().collect();
        let clock: SharedClock = std::sync::Arc::new(RunClock::start());
        let store = plimsoll_http::expand_hosts(self.store.unwrap_or("store.invalid"), 80).unwrap();
        let chain = Chain {
            given: given(self.flags),
            web_token: self.web_token,
            store: &store[0],
            store_tls: false,
            trust: TlsOptions::default(),
            proxies: None,
            clock: &clock,
            wall_epoch: EPOCH,
            variable: &|name| variables.get(name).map(|value| (*value).to_owned()),
            read: &plimsoll_conduct::input::read_text,
        };
        chain.resolve()
    }

    fn refusal(&self) -> String {
        in_full(&self.resolve().unwrap_err())
    }

    /// Returns access key, secret key, token and source.
    fn keys(&self) -> (String, String, Option<String>, String) {
        let resolved = self.resolve().unwrap();
        let Keys { access_key, secret_key, session_token, .. } = resolved.keys;
        (access_key, secret_key, session_token, resolved.source.to_string())
    }
}

fn found(
    access: &str,
    secret: &str,
    token: Option<&str>,
    source: &str,
) -> (String, String, Option<String>, String) {
    (access.to_owned(), secret.to_owned(), token.map(str::to_owned), source.to_owned())
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn the_first_source_that_has_keys_wins() {
    let profiles = file("[default]\naws_access_key_id=PA\naws_secret_access_key=ps\n");
    let path = profiles.path().to_str().unwrap();
    let all = [
        ("AWS_ACCESS_KEY_ID", "EA"),
        ("AWS_SECRET_ACCESS_KEY", "es"),
        ("AWS_SESSION_TOKEN", "et"),
        ("MINIO_ROOT_USER", "MA"),
        ("MINIO_ROOT_PASSWORD", "ms"),
        ("AWS_SHARED_CREDENTIALS_FILE", path),
    ];
    let flags = [Some("FA"), Some("fs"), None];
    let given = Asked { flags, variables: &all, ..Asked::default() };
    assert_eq!(given.keys(), found("FA", "fs", None, "the flags"));
    let given = Asked { variables: &all, ..Asked::default() };
    let source = "the environment (AWS_ACCESS_KEY_ID)";
    assert_eq!(given.keys(), found("EA", "es", Some("et"), source));
    let given = Asked { variables: &all[3..], ..Asked::default() };
    assert_eq!(given.keys(), found("MA", "ms", None, "the environment (MINIO_ROOT_USER)"));
    let given = Asked { variables: &all[5..], ..Asked::default() };
    assert_eq!(given.keys(), found("PA", "ps", None, "profile `default`"));
    let disabled = [("AWS_EC2_METADATA_DISABLED", "true")];
    let refusal = Asked { variables: &disabled, ..Asked::default() }.refusal();
    assert!(refusal.starts_with("no credentials found: looked at --access-key"), "{refusal}");
}

#[test]
fn half_a_pair_and_an_unknown_profile_are_refused() {
    let half = [("AWS_SECRET_ACCESS_KEY", "hush")];
    let refusal = Asked { variables: &half, ..Asked::default() }.refusal();
    assert_eq!(refusal, "AWS_SECRET_ACCESS_KEY is set without AWS_ACCESS_KEY_ID");
    let flags = [None, Some("hush"), None];
    let refusal = Asked { flags, ..Asked::default() }.refusal();
    assert_eq!(refusal, "--secret-key or --session-token is given without --access-key");
    let refusal = Asked { variables: &[("AWS_PROFILE", "work")], ..Asked::default() }.refusal();
    assert!(refusal.starts_with("there is no profile `work` (AWS_PROFILE)"), "{refusal}");
    let missing = [("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")];
    let refusal = Asked { variables: &missing, ..Asked::default() }.refusal();
    assert!(refusal.starts_with("cannot read the profile file /nonexistent"), "{refusal}");
}

const JSON: &str = r#"{"Code":"Success","AccessKeyId":"JA","SecretAccessKey":"js","Token":"jt",
    "Expiration":"2026-11-21T15:00:00Z","Type":"AWS-HMAC"}"#;

#[test]
fn an_instance_is_asked_for_a_token_then_its_role_then_the_keys() {
    let (authority, server) = serve(&[(200, "TOKEN=="), (200, "my-role\n"), (200, JSON)]);
    let url = format!("http://{authority}/");
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
    let given = Asked { variables: &variables, ..Asked::default() };
    assert_eq!(given.keys(), found("JA", "js", Some("jt"), "the instance's role `my-role`"));
    let asked = server.join().unwrap();
    assert!(asked[0].starts_with("PUT /latest/api/token HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].contains("\r\nX-aws-ec2-metadata-token-ttl-seconds: 60\r\n"));
    for (request, path) in asked[1..].iter().zip(["", "my-role"]) {
        let line = format!("GET /latest/meta-data/iam/security-credentials/{path} HTTP/1.1\r\n");
        assert!(request.starts_with(&line), "{request}");
        assert!(request.contains("\r\nX-aws-ec2-metadata-token: TOKEN==\r\n"), "{request}");
    }
}

#[test]
fn an_instance_that_gives_no_keys_is_told_apart() {
    let ask = |answers: &[(u16, &str)]| {
        let (authority, server) = serve(answers);
        let url = format!("http://{authority}");
        let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
        let refusal = Asked { variables: &variables, ..Asked::default() }.refusal();
        server.join().unwrap();
        refusal.replace(&authority, "HERE")
    };
    let start = "the instance's role: ";
    assert!(ask(&[(200, "T"), (404, "")]).starts_with("no credentials found"), "it has no role");
    for (answers, reason) in [
        (&[(403, "")][..], "HERE answered 403 to the wish for a token"),
        (&[(200, "T"), (200, "a/../b")], "HERE answered 200 and names no role"),
        (&[(200, "T"), (200, "r"), (500, "hush")], "HERE answered 500 for role `r`"),
        (&[(200, "T"), (200, "r"), (200, "{\"hush\":")], "the answer is not JSON"),
        (
            &[(200, "T"), (200, "r"), (200, r#"{"AccessKeyId":"A","Token":"hush"}"#)],
            "the answer holds no SecretAccessKey",
        ),
        (
            &[(200, "T"), (200, "r"), (200, r#"{"Code":"Failed"}"#)],
            "the answer is a refusal: Failed",
        ),
    ] {
        assert_eq!(ask(answers), format!("{start}{reason}"));
    }
}

#[test]
fn a_container_is_asked_with_its_token_and_only_near_or_over_tls() {
    let (authority, server) = serve(&[(200, JSON)]);
    let url = format!("http://{authority}/v1/keys?id=7");
    let token = file("Bearer abc\n");
    let token_path = token.path().to_str().unwrap();
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "not-this"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_path),
    ];
    let given = Asked { variables: &variables, ..Asked::default() };
    assert_eq!(given.keys(), found("JA", "js", Some("jt"), "the container"));
    let asked = server.join().unwrap();
    assert!(asked[0].starts_with("GET /v1/keys?id=7 HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].contains("\r\nAuthorization: Bearer abc\r\n"), "{}", asked[0]);

    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/keys")];
    let refusal = Asked { variables: &far, ..Asked::default() }.refusal();
    assert!(refusal.contains("leads to 10.0.0.1:80 in the clear"), "{refusal}");
    let split = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush\r\nX: y"),
    ];
    let refusal = Asked { variables: &split, ..Asked::default() }.refusal();
    assert!(refusal.ends_with("holds a character that a request cannot hold"), "{refusal}");
    assert!(!refusal.contains("hush"), "{refusal}");
}

/// The example of the interface's reference, shortened.
const XML: &str = r#"<AssumeRoleWithWebIdentityResponse
    xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
    <Audience>client</Audience><AssumedRoleUser><Arn>arn:aws:sts::1:x</Arn></AssumedRoleUser>
    <Credentials><SessionToken>st&amp;1</SessionToken><SecretAccessKey>ss/+</SecretAccessKey>
    <Expiration>2026-11-21T10:00:00Z</Expiration><AccessKeyId>SA</AccessKeyId></Credentials>
    </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"#;

#[test]
fn a_web_token_is_exchanged_at_the_store_or_at_the_named_service() {
    let token = file("ey.J/=\n");
    let path = format!("file:{}", token.path().display());
    for (web_token, named) in [("ey.J/=", false), (path.as_str(), true)] {
        let (authority, server) = serve(&[(200, XML)]);
        let url = format!("http://{authority}/sts");
        let variables = [
            ("AWS_ROLE_ARN", "arn:x"),
            ("AWS_ENDPOINT_URL_STS", if named { url.as_str() } else { "" }),
        ];
        let store = (!named).then_some(authority.as_str());
        let web_token = Some(web_token);
        let given = Asked { web_token, store, variables: &variables, ..Asked::default() };
        let source = "the token service (--sts-web-token)";
        assert_eq!(given.keys(), found("SA", "ss/+", Some("st&1"), source));
        let asked = server.join().unwrap();
        let line = format!("POST {} HTTP/1.1\r\n", if named { "/sts" } else { "/" });
        assert!(asked[0].starts_with(&line), "{}", asked[0]);
        let expected = "Action=AssumeRoleWithWebIdentity&Version=2011%2D06%2D15&\
                        WebIdentityToken=ey%2EJ%2F%3D&RoleArn=arn%3Ax&RoleSessionName=plimsoll";
        assert!(asked[0].ends_with(&format!("\r\n\r\n{expected}")), "{}", asked[0]);
    }
}

#[test]
fn a_refused_token_is_said_without_the_token() {
    let refused = "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>\
                   <Message>hush.token is\nno token</Message></Error></ErrorResponse>";
    for (body, said) in [(refused, ": InvalidIdentityToken: … is no token"), ("hush.token", "")] {
        let (authority, server) = serve(&[(400, body)]);
        let (web_token, store) = (Some("hush.token"), Some(authority.as_str()));
        let refusal = Asked { web_token, store, ..Asked::default() }.refusal();
        assert_eq!(refusal, format!("--sts-web-token: {authority} answered 400{said}"));
        server.join().unwrap();
    }
    let refusal = Asked { web_token: Some(" "), ..Asked::default() }.refusal();
    assert_eq!(refusal, "--sts-web-token: the token is empty");
}

#[test]
fn what_expires_within_a_run_is_warned_of_and_what_has_expired_is_refused() {
    let (authority, server) = serve(&[(200, XML)]);
    let store = Some(authority.as_str());
    let resolved = Asked { web_token: Some("t"), store, ..Asked::default() }.resolve().unwrap();
    server.join().unwrap();
    let hour = std::time::Duration::from_secs(3600);
    assert_eq!(resolved.keys.expires, Some(EPOCH.after(hour)));
    assert_eq!(resolved.outlived(EPOCH.after(hour)), None);
    let warning = resolved.outlived(EPOCH.after(hour * 2)).unwrap();
    assert!(warning.contains("expire at 2026-11-21T10:00:00"), "{warning}");
    let printed = format!("{resolved:?}");
    assert!(printed.contains("SA") && !printed.contains("ss/+"), "{printed}");

    let (authority, server) = serve(&[(200, &XML.replace("T10:00", "T09:00"))]);
    let store = Some(authority.as_str());
    let refusal = Asked { web_token: Some("t"), store, ..Asked::default() }.refusal();
    server.join().unwrap();
    let start = "the credentials from the token service (--sts-web-token) have expired at ";
    assert!(refusal.starts_with(start), "{refusal}");
}

#[test]
fn amazons_variables_are_taken_where_no_flag_is_given() {
    let take = |flags: [Option<&str>; 3], variables: &[(&str, &str)]| {
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        given(flags)
            .or_amazon_variables(&|name| variables.get(name).map(|value| (*value).to_owned()))
    };
    let both = [("AWS_ACCESS_KEY_ID", "EA"), ("AWS_SECRET_ACCESS_KEY", "es")];
    let found = take([None; 3], &both).unwrap().unwrap();
    assert_eq!(found.source.to_string(), "the environment (AWS_ACCESS_KEY_ID)");
    let Keys { access_key, secret_key, session_token, .. } = found.keys;
    assert_eq!((&*access_key, &*secret_key, session_token), ("EA", "es", None));
    // A flag wins, and an empty one means nobody.
    assert!(take([Some("A"), Some("s"), None], &both).unwrap().is_none());
    assert!(take([Some(""), None, None], &both).unwrap().is_none());
    // Other names are asked for only where the user has us look everywhere.
    let old = [("MINIO_ROOT_USER", "MA"), ("MINIO_ROOT_PASSWORD", "ms")];
    assert!(take([None; 3], &old).unwrap().is_none());
    let refusal = take([None; 3], &both[..1]).unwrap_err().to_string();
    assert_eq!(refusal, "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
}

#[test]
fn files_without_an_end_are_refused() {
    let variables = [("AWS_SHARED_CREDENTIALS_FILE", "/dev/zero")];
    let refusal = Asked { variables: &variables, ..Asked::default() }.refusal();
    assert!(refusal.ends_with("/dev/zero: it is not a regular file"), "{refusal}");
    let refusal = Asked { web_token: Some("file:/dev/zero"), ..Asked::default() }.refusal();
    assert!(refusal.ends_with("/dev/zero: it is not a regular file"), "{refusal}");
}
