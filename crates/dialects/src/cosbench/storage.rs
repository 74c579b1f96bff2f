//! Storages and logins: which are spoken, and what their settings are here.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_model::Secret;
use plimsoll_workload::plan::spec::{
    Lookup, NullTarget, OneOrMany, S3Signature, S3Target, SwiftAuth, SwiftTarget, TargetSpec,
};
use plimsoll_workload::plan::{Percent, Secrets, Size, Time};

use super::config::Config;
use super::error::Refused;
use super::model::Access;

/// What is written in the place of a secret.
pub(super) const HIDDEN: &str = "***";

/// What to do with a storage that is not spoken.
pub(super) const REFUSED: [(&str, &str); 9] = [
    (
        "ecs",
        "ECS speaks S3: write type=\"s3\" with its accesskey, secretkey, endpoint and \
         path_style_access; leave out namespace, http_client and use_smart_client",
    ),
    (
        "gcs",
        "Google Cloud Storage speaks S3: write type=\"s3\" with an HMAC key as accesskey and \
         secretkey, and endpoint=https://storage.googleapis.com",
    ),
    (
        "oss",
        "OSS speaks S3: write type=\"s3\" with its accesskey, secretkey and endpoint; proxyhost \
         and proxyport stay as they are",
    ),
    ("ampli", "AmpliStor is not spoken; if it has a gateway for S3, write type=\"s3\""),
    (
        "librados",
        "librados is not spoken: put a RADOS gateway before the cluster and write type=\"s3\" or \
         type=\"swift\"",
    ),
    ("sproxyd", "sproxyd is not spoken: take the S3 connector of Scality and write type=\"s3\""),
    ("cdmi", "CDMI is not spoken; if the store has S3 or Swift, write type=\"s3\" or \"swift\""),
    ("cdmi_swift", "CDMI is not spoken; write type=\"swift\" for the same store"),
    ("openio", "OpenIO's own protocol is not spoken: take its gateway and write type=\"s3\""),
];

/// Tells whether a type of storage is of the fork.
pub(super) fn is_fork(kind: &str) -> bool {
    matches!(kind, "sio" | "siov1" | "gdas")
}

/// Tells whether a type of storage speaks S3.
pub(super) fn is_s3(kind: &str) -> bool {
    kind == "s3" || is_fork(kind)
}

/// A target with who asks it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reached {
    pub(super) spec: TargetSpec,
    pub(super) secrets: Secrets,
}

/// Refuses a storage or a login that is not spoken, or that is told what it cannot be told.
pub(super) fn check(storage: &Access, auth: &Access) -> Result<(), Refused> {
    reach(storage, auth).map(|_| ())
}

/// Returns the target of a storage with its login.
pub(super) fn reach(storage: &Access, auth: &Access) -> Result<Reached, Refused> {
    storage.config.switch("logging")?;
    let known = ["none", "mock", "swauth", "tempauth", "keystone", "httpauth"];
    if !known.contains(&&*auth.kind) {
        let words = format!("unrecognized auth type: {}", auth.kind);
        let more = "write none, mock, swauth, tempauth or keystone";
        return Err(Refused::worded(auth.config.place, words, more));
    }
    let config = &storage.config;
    match storage.kind.as_str() {
        "none" => Ok(null(NullTarget::default())),
        "mock" => mock(config),
        kind if is_s3(kind) => s3(config),
        "swift" => swift(config, auth),
        kind => Err(not_spoken(kind, config)),
    }
}

fn not_spoken(kind: &str, config: &Config) -> Refused {
    match REFUSED.iter().find(|(known, _)| *known == kind) {
        Some((_, what)) => {
            Refused::new(config.place, format!("storage of type `{kind}` is not taken: {what}"))
        }
        None => {
            let words = format!("unrecognized storage type: {kind}");
            let more = "write s3, swift, mock or none, or sio, siov1 or gdas of the fork";
            Refused::worded(config.place, words, more)
        }
    }
}

fn null(target: NullTarget) -> Reached {
    Reached { spec: TargetSpec::Null(target), secrets: Secrets::default() }
}

fn mock(config: &Config) -> Result<Reached, Refused> {
    let errors = match config.get("errors") {
        None => 0.0,
        Some(written) => {
            let share = written.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| config.refuse("errors", written, "write a share of 0 to 1"))?
        }
    };
    let delay = Duration::from_millis(config.number("delay")?.unwrap_or(10));
    let size = config.number("size")?.unwrap_or(1_000);
    Ok(null(NullTarget {
        delay: Time(delay),
        error_rate: (errors > 0.0).then_some(Percent(errors * 100.0)),
        read_size: Some(Size(size)),
    }))
}

/// An address as it is written: `http://host:port`.
struct Address {
    is_tls: bool,
    host: String,
}

fn address(config: &Config, key: &str, written: &str) -> Result<Address, Refused> {
    let refuse = |why: &str| Err(Refused::new(config.place, format!("`{key}`: {why}")));
    let (is_tls, rest) = match written.split_once("://") {
        Some(("http", rest)) => (false, rest),
        Some(("https", rest)) => (true, rest),
        Some(_) => return refuse("write http:// or https:// before the host"),
        None => (false, written),
    };
    if rest.contains('@') {
        return refuse("an address must hold no user and no password");
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.:[]%".contains(letter);
    if host.is_empty() || !host.chars().all(is_plain) {
        return refuse("it names no host, such as http://192.168.0.1:9000");
    }
    if !path.trim_matches('/').is_empty() {
        return refuse(
            "a store is asked at the root of its host; leave out what is behind the `/`",
        );
    }
    Ok(Address { is_tls, host: host.to_owned() })
}

fn timeout(config: &Config) -> Result<Option<Time>, Refused> {
    let time = config.number("timeout")?.filter(|milliseconds| *milliseconds > 0);
    Ok(time.map(|milliseconds| Time(Duration::from_millis(milliseconds))))
}

fn secret(config: &Config, key: &str) -> Option<Secret> {
    config.get(key).filter(|value| !value.is_empty()).map(|value| Secret::from(value.to_owned()))
}

fn s3(config: &Config) -> Result<Reached, Refused> {
    let endpoint = config.get("endpoint").unwrap_or("http://s3.amazonaws.com");
    let at = address(config, "endpoint", endpoint)?;
    // The client of COSBench names the bucket in the path for an address of numbers only.
    let is_numeric = at
        .host
        .trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ':')
        .chars()
        .all(|letter| letter.is_ascii_digit() || letter == '.')
        || at.host.starts_with('[');
    let lookup = match config.switch("path_style_access")? {
        Some(true) => Some(Lookup::Path),
        Some(false) if is_numeric => Some(Lookup::Path),
        Some(false) => Some(Lookup::Host),
        None => None,
    };
    let signature = match config.get("signer_version") {
        None => None,
        Some(version) => match version.to_ascii_lowercase().trim_start_matches('v') {
            "4" | "aws4" => Some(S3Signature::V4),
            "2" | "aws2" => Some(S3Signature::V2),
            _ => return Err(config.refuse("signer_version", version, "write V2 or V4")),
        },
    };
    let proxy = match config.get("proxyhost").filter(|host| !host.is_empty()) {
        None => None,
        Some(host) => {
            let port = config.number("proxyport")?.unwrap_or(80);
            Some(address(config, "proxyhost", &format!("{host}:{port}"))?.host)
        }
    };
    let text = |key| config.get(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let keys = (secret(config, "accesskey"), secret(config, "secretkey"));
    let secrets = Secrets {
        access_key: keys.0,
        secret_key: keys.1,
        session_token: secret(config, "session_token"),
        ..Secrets::default()
    };
    let insecure = at.is_tls && config.switch("no_verify_ssl")?.unwrap_or(false);
    let spec = TargetSpec::S3(S3Target {
        hosts: OneOrMany::from(at.host),
        region: text("aws_region").or_else(|| text("region")),
        tls: at.is_tls,
        lookup,
        signature,
        timeout: timeout(config)?,
        proxy,
        storage_class: text("storage_class"),
        insecure,
        ..S3Target::default()
    });
    Ok(Reached { spec, secrets })
}

fn swift(config: &Config, auth: &Access) -> Result<Reached, Refused> {
    let of = &auth.config;
    let text = |config: &Config, key: &str| {
        config.get(key).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let url = |default: &str| -> Result<Option<String>, Refused> {
        let url = of.get("auth_url").or_else(|| of.get("url")).unwrap_or(default);
        match url.contains('@') {
            true => Err(Refused::new(of.place, "`auth_url` must hold no user and no password")),
            false => Ok(Some(url.to_owned())),
        }
    };
    let plain = SwiftTarget {
        storage_url: text(config, "storage_url"),
        policy: text(config, "policy"),
        timeout: timeout(config)?,
        ..SwiftTarget::default()
    };
    let login = |token| Secrets { password: secret(of, "password"), token, ..Secrets::default() };
    let is_known = config.get("token").is_some() || matches!(&*auth.kind, "none" | "mock");
    let (spec, secrets) = match auth.kind.as_str() {
        _ if is_known => {
            let token = secret(config, "token").or_else(|| secret(of, "token"));
            if token.is_none() {
                let more = "Swift needs a login: write <auth type=\"swauth\" .../>, or token=... \
                            and storage_url=... in the storage's config";
                return Err(Refused::new(config.place, more));
            }
            config.need("storage_url")?;
            let spec = SwiftTarget { auth_version: Some(SwiftAuth::None), ..plain };
            (spec, Secrets { token, ..Secrets::default() })
        }
        "swauth" | "tempauth" => {
            let auth = url("http://127.0.0.1:8080/auth/v1.0")?;
            let (auth_version, user) = (Some(SwiftAuth::V1), text(of, "username"));
            (SwiftTarget { auth, auth_version, user, ..plain }, login(None))
        }
        "keystone" => {
            let auth = url("http://127.0.0.1:5000/v2.0")?;
            let is_v3 = auth.as_ref().is_some_and(|url| url.contains("/v3"));
            let project = text(of, "tenant_name").or_else(|| text(of, "tenname"));
            let spec = SwiftTarget {
                auth,
                auth_version: Some(if is_v3 { SwiftAuth::V3 } else { SwiftAuth::V2 }),
                user: text(of, "username"),
                project_id: if project.is_none() { text(of, "tenant_id") } else { None },
                project,
                region: text(of, "region"),
                service: text(of, "service"),
                ..plain
            };
            (spec, login(secret(of, "usertoken")))
        }
        kind => {
            let more = format!("login of type `{kind}` is not taken for Swift");
            return Err(Refused::new(of.place, more));
        }
    };
    Ok(Reached { spec: TargetSpec::Swift(Box::new(spec)), secrets })
}

/// Tells whether a key may hold a secret, however it is spelt: one that is misspelt is passed over,
/// and its value is a secret all the same.
pub fn may_hide(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let hides = ["key", "secret", "passw", "token", "credential", "auth"];
    let shows = ["authurl", "url"];
    hides.iter().any(|word| plain.contains(word)) && !shows.contains(&&*plain)
}

/// Returns a config string without what nobody is to see.
pub(super) fn without_secrets(config: &str) -> String {
    let mut behind_secret = false;
    let piece = |piece: &str| match piece.split_once('=') {
        Some((key, value)) => {
            behind_secret = may_hide(key) && !value.trim().is_empty();
            match behind_secret {
                true => format!("{key}={HIDDEN}"),
                false => format!("{key}={}", address_without_secrets(value)),
            }
        }
        // A secret that holds a `;` goes on here.
        None if behind_secret && !piece.trim().is_empty() => HIDDEN.to_owned(),
        None => piece.to_owned(),
    };
    config.split(';').map(piece).collect::<Vec<_>>().join(";")
}

/// Returns an address without who asks and without its query, which may be a signature; any other
/// text as it is.
pub(super) fn address_without_secrets(text: &str) -> Cow<'_, str> {
    let Some(at) = text.find("://") else { return Cow::Borrowed(text) };
    let (scheme, rest) = text.split_at(at + 3);
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (path, query) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let user = host.rfind('@');
    if user.is_none() && query.is_empty() {
        return Cow::Borrowed(text);
    }
    let host = user.map_or(host.to_owned(), |at| format!("{HIDDEN}{}", &host[at..]));
    let query = if query.is_empty() { String::new() } else { format!("{}{HIDDEN}", &query[..1]) };
    Cow::Owned(format!("{scheme}{host}{path}{query}"))
}

/// Returns a text of people's own without what looks like `key=value` of a secret.
pub(super) fn text_without_secrets(text: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((key, value)) if !value.is_empty() && key.rsplit(';').next().is_some_and(may_hide) => {
            format!("{key}={HIDDEN}")
        }
        _ => address_without_secrets(word).into_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_however_its_key_is_spelt() {
        for (config, shown) in [
            (
                "accesskey=A;secretkey=S;endpoint=http://h",
                "accesskey=***;secretkey=***;endpoint=http://h",
            ),
            (
                "secretKey=S;SECRETKEY=S;secret-key=S;passwd=S",
                "secretKey=***;SECRETKEY=***;secret-key=***;passwd=***",
            ),
            ("secretkey=a;bc;path_style_access=true", "secretkey=***;***;path_style_access=true"),
            (
                "auth_url=http://h/auth;username=u;password=p",
                "auth_url=http://h/auth;username=u;password=***",
            ),
        ] {
            assert_eq!(without_secrets(config), shown);
        }
        for (address, shown) in [
            ("http://u:p@h:1/auth?sig=S", "http://***@h:1/auth?***"),
            ("http://h/v1#S", "http://h/v1#***"),
            ("http://u:a@b@h", "http://***@h"),
            ("http://h:1/auth/v1.0", "http://h:1/auth/v1.0"),
            ("u@h?x", "u@h?x"),
        ] {
            assert_eq!(address_without_secrets(address), shown);
            assert_eq!(
                without_secrets(&format!("auth_url={address}")),
                format!("auth_url={shown}")
            );
        }
        let text = "nightly; secretkey=LEAK and size=3 at http://u:p@h/x";
        let shown = "nightly; secretkey=*** and size=3 at http://***@h/x";
        assert_eq!(text_without_secrets(text), shown);
    }
}
