//! Tests of the reader of `security.toml`.

use plimsoll_http::Pem;

use super::*;

fn file(path: &str) -> Pem {
    PathBuf::from(path).into()
}

fn read(text: &str) -> Result<Security, SecurityError> {
    Security::read(text, &|_| None)
}

#[track_caller]
fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

/// As `weed scaffold -config=security` writes it, with what a client reads and some of what it does
/// not.
const FILLED: &str = r#"
# Put this file to one of the location, with descending priority
[cors.allowed_origins]
values = "*"

[jwt.signing]
key = "write-secret"
expires_after_seconds = 10           # seconds

[access]
ui = false

[jwt.signing.read]
key = "read-secret"
expires_after_seconds = 10           # seconds

[jwt.filer_signing]
key = "filer-secret"

[jwt.filer_signing.read]
key = ""

[grpc]
ca = "/etc/weed/ca.crt"
allowed_wildcard_domain = "" # .mycompany.com

[grpc.volume]
cert = "/etc/weed/volume.crt"
key = "/etc/weed/volume.key"

[grpc.client]
cert = "/etc/weed/client.crt"
key = "/etc/weed/client.key"

[https.client]
enabled = true
cert = ""
key = ""
ca = "/etc/weed/web.crt"
insecure_skip_verify = false

[https.volume]
cert = "/etc/weed/volume.crt"
"#;

#[test]
fn what_a_client_needs_is_read_and_the_rest_passed_over() {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let expected = Security {
        masters_are_plain: true,
        keys: SigningKeys { write: bytes("write-secret"), read: bytes("read-secret") },
        filer_keys: SigningKeys { write: bytes("filer-secret"), read: None },
        grpc: Some(TlsOptions {
            ca_file: Some("/etc/weed/ca.crt".into()),
            any_name_of_ca: true,
            identity: Some(TlsIdentity {
                certificate: file("/etc/weed/client.crt"),
                key: file("/etc/weed/client.key"),
            }),
            ..TlsOptions::default()
        }),
        https: Some(TlsOptions {
            ca_file: Some("/etc/weed/web.crt".into()),
            ..TlsOptions::default()
        }),
    };
    assert_eq!(read(FILLED), Ok(expected));
    let shown = format!("{:?}", read(FILLED).unwrap());
    assert!(!shown.contains("secret"), "{shown}");
    for nothing in ["", "# nothing\n", "[jwt.signing]\nkey = \"\"\n[https.client]\nenabled=false"] {
        assert_eq!(read(nothing), Ok(Security::default()));
    }
}

#[test]
fn every_way_of_writing_it_is_read() {
    for text in [
        "jwt.signing.key = 'k'",
        "jwt = { signing = { key = \"k\" } }",
        "[JWT.Signing]\nKey = \"\"\"k\"\"\"",
        "[jwt]\nsigning.key = \"\\u006b\"\r\n",
    ] {
        assert_eq!(read(text).unwrap().keys.write, Some(b"k".to_vec()), "{text}");
    }
    for (written, is_on) in [("true", true), ("\"true\"", true), ("\"1\"", true), ("'0'", false)] {
        let text = format!("[https.client]\nenabled = {written}");
        assert_eq!(read(&text).unwrap().https.is_some(), is_on, "{written}");
    }
    let with_all = "[https.client]\nenabled = true\ncert = 'c'\nkey = 'k'\n\
                    insecure_skip_verify = true";
    let https = read(with_all).unwrap().https.unwrap();
    assert!(https.insecure && https.ca_file.is_none() && !https.any_name_of_ca);
    assert_eq!(https.identity.unwrap().key, file("k"));
}

#[test]
fn variables_count_more_than_the_file() {
    let variable = |name: &str| {
        let value = match name {
            "WEED_JWT_SIGNING_KEY" => "of variable",
            "WEED_JWT_SIGNING_READ_KEY" => "",
            "WEED_JWT_FILER_SIGNING_READ_KEY" => "filer's",
            "WEED_GRPC_CLIENT_CERT" => "/c",
            "WEED_HTTPS_CLIENT_ENABLED" => "false",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let read = Security::read(FILLED, &variable).unwrap();
    let text = |key: Option<Vec<u8>>| String::from_utf8(key.unwrap()).unwrap();
    assert_eq!(text(read.keys.write), "of variable");
    assert_eq!(text(read.keys.read), "read-secret", "an empty variable is none");
    assert_eq!(text(read.filer_keys.read), "filer's");
    let identity = read.grpc.unwrap().identity.unwrap();
    assert_eq!(identity.certificate, file("/c"));
    assert_eq!(identity.key, file("/etc/weed/client.key"));
    assert_eq!(read.https, None);
    // There need not be a file at all.
    let all = |name: &str| name.starts_with("WEED_GRPC").then(|| name.to_owned());
    let grpc = Security::read("", &all).unwrap().grpc.unwrap();
    assert_eq!(grpc.ca_file, Some(PathBuf::from("WEED_GRPC_CA")));
    let wrong = |name: &str| (name == "WEED_HTTPS_CLIENT_ENABLED").then(|| "yes".to_owned());
    let error = Security::read("", &wrong).unwrap_err().to_string();
    assert_eq!(error, "the variable WEED_HTTPS_CLIENT_ENABLED has to be true or false");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "[jwt.signing]\nkey = 5",
            "line 2: `jwt.signing.key` has to be a text in quotes, not integer",
        ),
        ("\n\njwt = 'k'", "line 3: `jwt` has to be a section, not string"),
        ("[grpc]\nca = 'a'\nclient = []", "line 3: `grpc.client` has to be a section, not array"),
        (
            "[https.client]\nenabled = 1.5",
            "line 2: `https.client.enabled` has to be true or false, not float",
        ),
        (
            "[https.client]\nenabled = 'maybe'",
            "line 2: `https.client.enabled` has to be true or false, not string",
        ),
        (
            "grpc.ca = 'a'",
            "`grpc.client.cert` is missing, as `grpc.ca` is given (or the variable \
             WEED_GRPC_CLIENT_CERT)",
        ),
        (
            "[grpc.client]\ncert = 'c'\nkey = 'k'",
            "`grpc.ca` is missing, as `grpc.client.cert` is given (or the variable WEED_GRPC_CA)",
        ),
        (
            "[https.client]\nenabled = true\nkey = 'k'",
            "`https.client.cert` is missing, as `https.client.key` is given (or the variable \
             WEED_HTTPS_CLIENT_CERT)",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
    // What is switched off need not be whole.
    assert_eq!(read("[https.client]\nkey = 'k'").unwrap().https, None);
}

#[test]
fn what_is_no_toml_is_refused_by_its_line_without_its_text() {
    for text in [
        "[jwt.signing]\nkey = \"secret\n",
        "[jwt.signing]\nkey = secret\n",
        "[jwt.signing]\nkey = 'secret' 'secret'\n",
        "[jwt.signing\nkey = 'secret'\n",
        "a = 1\na = 'secret'\n",
        "[jwt]\nsigning = 'secret'\n[jwt.signing]\nkey = 'secret'",
    ] {
        let message = refusal(text);
        assert!(message.starts_with("line "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    let deep = "[".repeat(100_000);
    assert!(refusal(&deep).starts_with("line 1: "));
    assert!(refusal(&format!("a = {deep}")).starts_with("line 1: "));
}

#[test]
fn masters_are_plain_where_only_volume_servers_have_a_certificate() {
    let of = |sections: &str| read(sections).unwrap().masters_are_plain;
    let volume = "[https.volume]\ncert = \"v.crt\"\nkey = \"v.key\"\n";
    assert!(of(volume) && of(&format!("{volume}[https.master]\ncert = \"\"\n")));
    assert!(!of(&format!("{volume}[https.master]\ncert = \"m.crt\"\n")));
    // A client's own file does not say what servers have.
    assert!(!of("[https.client]\nenabled = true\n"));
}
