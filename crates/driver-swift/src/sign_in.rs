//! What is said to sign in, and what an answer to it holds: tempauth and its like, Keystone 2, 3.

use plimsoll_driver::{DriverError, one_line};
use plimsoll_model::{ErrorClass, Secret, redacted};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{Address, Named, Service, SignIn, Who};
use crate::error;

/// The type of the service that stores objects.
const OBJECT_STORE: &str = "object-store";
const PUBLIC: &str = "public";

/// The headers of an answer that are looked at.
pub(crate) const HEADERS: &[&str] = &[
    "x-auth-token",
    "x-storage-token",
    "x-subject-token",
    "x-storage-url",
    "location",
    error::OF_SWIFT[0],
    error::OF_SWIFT[1],
];

/// A request by which somebody signs in.
pub(crate) struct Asked {
    pub(crate) address: Address,
    /// The whole head.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// What somebody has who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What every request carries.
    pub(crate) token: Secret,
    /// Where the account is, where the answer says it.
    pub(crate) storage: Option<Address>,
}

/// An answer to it.
pub(crate) struct Answered<'a> {
    pub(crate) status: u16,
    /// By names of [`HEADERS`].
    pub(crate) header: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) body: &'a [u8],
    /// Tokens that were got before, which a service may repeat.
    pub(crate) past: &'a [Secret],
}

/// Returns the request by which somebody signs in; `None`: nobody has to.
pub(crate) fn ask(sign_in: &SignIn) -> Result<Option<Asked>, DriverError> {
    let (auth, path, body) = match sign_in {
        SignIn::Known { .. } => return Ok(None),
        SignIn::V1 { auth, user, key } => return ask_v1(auth, user, key).map(Some),
        SignIn::V2 { auth, who, project, .. } => {
            (auth, below(auth, "/v2.0", "/tokens"), body_v2(who, project.as_ref()))
        }
        SignIn::V3 { auth, who, project, user_domain, project_domain, .. } => {
            let scope = project.as_ref().map(|project| scope_of(project, project_domain));
            (auth, below(auth, "/v3", "/auth/tokens"), body_v3(who, user_domain, scope))
        }
    };
    let body = body.to_string().into_bytes();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\n\r\n",
        auth.authority(),
        body.len()
    );
    Ok(Some(Asked { address: auth.clone(), head: head.into_bytes(), body }))
}

/// Returns the path of a call below the address of a Keystone, which may be given with or without
/// its version, and with the call itself.
fn below(auth: &Address, version: &str, call: &str) -> String {
    let base = auth.path.strip_suffix(call).unwrap_or(&auth.path);
    let is_version = |part: &str| {
        let digits = part.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|digit: char| digit.is_ascii_digit())
    };
    match base.rsplit('/').next().is_some_and(is_version) {
        true => format!("{base}{call}"),
        false => format!("{base}{version}{call}"),
    }
}

fn ask_v1(auth: &Address, user: &str, key: &Secret) -> Result<Asked, DriverError> {
    for (what, text) in [("user", user), ("key", key.expose())] {
        if text.is_empty() || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let why = format!("a {what} that stands in a header must be printable ASCII");
            return Err(DriverError::new(ErrorClass::Client, why));
        }
    }
    let path = if auth.path.is_empty() { "/auth/v1.0" } else { &auth.path };
    // Both pairs of names are in use, and each server knows one of them.
    let key = key.expose();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nX-Auth-User: {user}\r\nX-Auth-Key: {key}\r\n\
         X-Storage-User: {user}\r\nX-Storage-Pass: {key}\r\n\r\n",
        auth.authority()
    );
    Ok(Asked { address: auth.clone(), head: head.into_bytes(), body: Vec::new() })
}

fn body_v2(who: &Who, project: Option<&Named>) -> Value {
    let mut auth = match who {
        Who::User { user, password } => {
            let (field, user) = match user {
                Named::Name(name) => ("username", name),
                Named::Id(id) => ("userId", id),
            };
            json!({"passwordCredentials": {field: user, "password": password.expose()}})
        }
        Who::Holder(token) => json!({"token": {"id": token.expose()}}),
    };
    match project {
        Some(Named::Name(name)) => auth["tenantName"] = json!(name),
        Some(Named::Id(id)) => auth["tenantId"] = json!(id),
        None => {}
    }
    json!({"auth": auth})
}

fn body_v3(who: &Who, domain: &Named, scope: Option<Value>) -> Value {
    let identity = match who {
        Who::User { user, password } => {
            let mut user = match user {
                Named::Name(name) => json!({"name": name, "domain": named(domain)}),
                Named::Id(id) => json!({"id": id}),
            };
            user["password"] = json!(password.expose());
            json!({"methods": ["password"], "password": {"user": user}})
        }
        Who::Holder(token) => {
            json!({"methods": ["token"], "token": {"id": token.expose()}})
        }
    };
    let mut auth = json!({"identity": identity});
    if let Some(scope) = scope {
        auth["scope"] = scope;
    }
    json!({"auth": auth})
}

fn named(named: &Named) -> Value {
    match named {
        Named::Name(name) => json!({"name": name}),
        Named::Id(id) => json!({"id": id}),
    }
}

fn scope_of(project: &Named, domain: &Named) -> Value {
    match project {
        Named::Name(name) => json!({"project": {"name": name, "domain": named(domain)}}),
        Named::Id(id) => json!({"project": {"id": id}}),
    }
}

#[derive(Deserialize)]
struct AnswerV2 {
    access: Access,
}

#[derive(Deserialize)]
struct Access {
    token: TokenV2,
    #[serde(default, rename = "serviceCatalog")]
    catalog: Vec<Listed>,
}

#[derive(Deserialize)]
struct TokenV2 {
    id: String,
}

#[derive(Deserialize)]
struct AnswerV3 {
    token: TokenV3,
}

#[derive(Deserialize)]
struct TokenV3 {
    #[serde(default)]
    catalog: Vec<Listed>,
}

/// A service of a catalogue, of either version.
#[derive(Deserialize)]
struct Listed {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    endpoints: Vec<Place>,
}

/// An address of a service; of version 2 it has all three, of version 3 it says for whom it is.
#[derive(Deserialize)]
struct Place {
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default)]
    interface: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default, rename = "publicURL")]
    public: Option<String>,
    #[serde(default, rename = "internalURL")]
    internal: Option<String>,
    #[serde(default, rename = "adminURL")]
    admin: Option<String>,
}

impl Place {
    fn is_in(&self, region: &str) -> bool {
        [&self.region, &self.region_id].into_iter().flatten().any(|of| of == region)
    }

    /// Returns the address for those people.
    fn for_whom(&self, interface: &str) -> Option<&str> {
        match (&self.interface, interface) {
            (Some(of), _) if of == interface => self.url.as_deref(),
            (Some(of), _) if of.strip_suffix("URL") == Some(interface) => self.url.as_deref(),
            (Some(_), _) => None,
            (None, PUBLIC) => self.public.as_deref(),
            (None, "internal") => self.internal.as_deref(),
            (None, "admin") => self.admin.as_deref(),
            (None, _) => None,
        }
    }
}

/// Reads an answer. Where the storage URL is known beside it, none is looked for.
pub(crate) fn read(
    sign_in: &SignIn,
    answered: &Answered<'_>,
    looks_for_url: bool,
) -> Result<Found, DriverError> {
    check_status(sign_in, answered)?;
    let header = |name: &str| (answered.header)(name).filter(|value| !value.is_empty());
    let status = answered.status;
    match sign_in {
        SignIn::Known { .. } => {
            Err(DriverError::new(ErrorClass::Client, "no sign-in is needed there"))
        }
        SignIn::V1 { .. } => {
            let token = header("x-auth-token").or_else(|| header("x-storage-token"));
            let token = token.ok_or_else(|| {
                error::of_success(status, "the answer to the sign-in holds no token (X-Auth-Token)")
            })?;
            let url = header("x-storage-url").filter(|_| looks_for_url);
            found(token, url.as_deref(), status)
        }
        SignIn::V2 { service, .. } => {
            let answer: AnswerV2 = parsed(answered)?;
            let Access { token, catalog } = answer.access;
            let url = looks_for_url.then(|| url_of(&catalog, service, status)).transpose()?;
            found(token.id, url, status)
        }
        SignIn::V3 { service, .. } => {
            let token = header("x-subject-token").ok_or_else(|| {
                let why = "the answer to the sign-in holds no token (X-Subject-Token)";
                error::of_success(status, why)
            })?;
            let answer: AnswerV3 = parsed(answered)?;
            let catalog = answer.token.catalog;
            let url = looks_for_url.then(|| url_of(&catalog, service, status)).transpose()?;
            found(token, url, status)
        }
    }
}

fn check_status(sign_in: &SignIn, answered: &Answered<'_>) -> Result<(), DriverError> {
    let status = answered.status;
    if (200..=299).contains(&status) {
        return Ok(());
    }
    // Some services repeat what they were sent.
    let secrets = || sign_in.secret().into_iter().chain(answered.past).map(Secret::expose);
    let without_secret = |text: &str| redacted(text, secrets());
    let words = without_secret(&refusal_words(answered));
    let mut error = error::of_answer(status, words.as_bytes());
    error.message = match (status, (answered.header)("location")) {
        (401 | 403, _) => format!("the sign-in was refused: {}", error.message),
        (300..=399, Some(to)) => format!(
            "the sign-in was answered {status}, go to `{}`; a password is not sent on, so name that \
             address yourself (`auth`)",
            one_line(&without_secret(&to))
        ),
        _ => format!("the sign-in failed: {}", error.message),
    };
    Err(error)
}

/// Returns what Keystone says in a refusal, `{"error": {"message": "..."}}`, or a page of Swift's.
fn refusal_words(answered: &Answered<'_>) -> String {
    let said: Option<Value> = serde_json::from_slice(answered.body).ok();
    let words = said.as_ref().and_then(|said| said["error"]["message"].as_str());
    let is_of_swift = || error::OF_SWIFT.iter().any(|name| (answered.header)(name).is_some());
    let page = || is_of_swift().then(|| String::from_utf8_lossy(answered.body).into_owned());
    words.map(str::to_owned).or_else(page).unwrap_or_default()
}

fn parsed<'a, T: Deserialize<'a>>(answered: &Answered<'a>) -> Result<T, DriverError> {
    serde_json::from_slice(answered.body).map_err(|error| {
        // What could not be understood may hold a token, so only its place is shown.
        let (line, column) = (error.line(), error.column());
        let why = format!(
            "the answer to the sign-in cannot be understood at line {line}, column {column}"
        );
        error::of_success(answered.status, why)
    })
}

/// Finds the address of the store in a catalogue.
fn url_of<'c>(
    catalog: &'c [Listed],
    service: &Service,
    status: u16,
) -> Result<&'c str, DriverError> {
    let refused = |why: String| Err(error::of_success(status, why));
    let is_it = |listed: &&Listed| match &service.name {
        Some(name) => listed.name == *name || listed.kind == *name,
        None => listed.kind == OBJECT_STORE,
    };
    let wanted = service.name.as_deref().unwrap_or(OBJECT_STORE);
    let Some(listed) = catalog.iter().find(is_it) else {
        let known: Vec<&str> = catalog.iter().map(|listed| &*listed.name).take(20).collect();
        let known = one_line(&known.join(", "));
        return refused(format!(
            "Keystone's catalogue has no service `{wanted}` (`service`), but these: {known}; a \
             `storage_url` needs none"
        ));
    };
    let region = |place: &&Place| service.region.as_ref().is_none_or(|name| place.is_in(name));
    let interface = service.interface.as_deref().unwrap_or(PUBLIC);
    let places = listed.endpoints.iter().filter(region);
    match places.filter_map(|place| place.for_whom(interface)).next() {
        Some(url) => Ok(url),
        None => {
            let within = service.region.as_deref();
            let within = within.map_or(String::new(), |region| format!(" in region `{region}`"));
            refused(format!(
                "Keystone's catalogue has no {interface} address of `{wanted}`{within}"
            ))
        }
    }
}

fn found(token: String, url: Option<&str>, status: u16) -> Result<Found, DriverError> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = "the token of the answer to the sign-in is not allowed in a header";
        return Err(error::of_success(status, why));
    }
    let storage = url.map(Address::parse).transpose().map_err(|why| {
        error::of_success(status, format!("the storage URL of the sign-in is invalid: {why}"))
    })?;
    Ok(Found { token: token.into(), storage })
}

#[cfg(test)]
#[path = "sign_in_tests.rs"]
mod tests;
