//! The client that `aws-config` asks services with: our own, one exchange on a connection each, so
//! that proxies, certificate authorities and TLS are those of the run.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use plimsoll_http::{
    Body, Client, Endpoint, ExchangeErrorKind, Options, Proxies, Request, ResponseHead,
    ResponseSink, TlsConfig, TlsOptions, Url,
};
use plimsoll_model::{Secret, SharedClock};
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::in_one_line;
use crate::{Chain, KnownSecrets};

/// How long a connection may take where nothing else is asked for.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a whole exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// More than any answer with credentials has.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Networks of the machine itself, in which platforms hand out credentials.
const NEAR: [&str; 2] = ["169.254.", "fd00:ec2::"];
/// What names the store. The library takes it for the address of every service.
const GENERAL: &str = "AWS_ENDPOINT_URL";
/// What names the services that the library signs in at: for tokens, single sign-on, and the
/// renewal of its login.
const SIGN_IN: [&str; 3] =
    ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SSO", "AWS_ENDPOINT_URL_SSO_OIDC"];

/// Headers, and members of documents, that hold secrets.
const SECRET_HEADERS: [&str; 4] =
    ["x-amz-security-token", "x-amz-sso_bearer_token", "x-aws-ec2-metadata-token", "authorization"];
const HANDED_OUT: [&str; 5] =
    ["SecretAccessKey", "SessionToken", "Token", "accessToken", "refreshToken"];
const SECRET_MEMBERS: [&str; 2] = ["clientSecret", "refreshToken"];

/// Makes exchanges for `aws-config` and its like.
#[derive(Clone)]
pub(crate) struct OwnClient(Arc<Ways>);

/// How services are reached.
struct Ways {
    clock: SharedClock,
    store: Endpoint,
    store_trust: TlsOptions,
    services_trust: TlsOptions,
    proxies: Option<Proxies>,
    /// What names the sign-in services that nothing may be sent to: the library would take the
    /// address of the store for theirs, whatever a profile says, and cannot be told otherwise.
    misled: Vec<&'static str>,
    /// What no error may show.
    known: KnownSecrets,
}

impl OwnClient {
    /// Returns the client of services whose addresses are found here.
    pub(crate) fn of(chain: &Chain) -> Self {
        Self::sparing(chain, Vec::new())
    }

    /// Returns the client of services whose addresses the library finds in the environment.
    pub(crate) fn of_library(chain: &Chain) -> Self {
        let names = SIGN_IN.into_iter().filter(|name| chain.set(name).is_none());
        Self::sparing(chain, chain.set(GENERAL).map(|_| names.collect()).unwrap_or_default())
    }

    fn sparing(chain: &Chain, misled: Vec<&'static str>) -> Self {
        chain.known.add(chain.proxies.iter().flat_map(Proxies::secrets));
        Self(Arc::new(Ways {
            clock: chain.clock.clone(),
            store: chain.store.clone(),
            store_trust: chain.trust.clone(),
            services_trust: chain.services_trust.clone(),
            proxies: chain.proxies.clone(),
            misled,
            known: chain.known.clone(),
        }))
    }

    /// Masks known secrets in an error of the library, which may quote any part of an answer.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        self.0.known.hidden_in(text)
    }
}

impl Ways {
    /// Returns whom to trust where TLS is spoken to that endpoint.
    fn trust(&self, endpoint: &Endpoint) -> &TlsOptions {
        let of = |endpoint: &Endpoint| (endpoint.host.to_ascii_lowercase(), endpoint.port);
        match of(endpoint) == of(&self.store) {
            true => &self.store_trust,
            false => &self.services_trust,
        }
    }
}

impl fmt::Debug for OwnClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnClient")
    }
}

impl HttpClient for OwnClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Connector {
            ways: self.0.clone(),
            connect_timeout: settings.connect_timeout().unwrap_or(CONNECT_MAX),
            exchange_timeout: settings.read_timeout().unwrap_or(EXCHANGE_MAX),
        })
    }
}

#[derive(Clone)]
struct Connector {
    ways: Arc<Ways>,
    connect_timeout: Duration,
    exchange_timeout: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    /// Our client stays on one thread, and what is asked of a connector may not: so each exchange,
    /// of which there are few, has a thread of its own.
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move {
            let (done, answered) = oneshot::channel();
            let thread = std::thread::Builder::new().name("credentials".to_owned());
            let exchange = move || drop(done.send(connector.exchange(&request)));
            thread.spawn(exchange).map_err(|error| ConnectorError::io(error.into()))?;
            let lost = |_| ConnectorError::other("the exchange was lost".into(), None);
            answered.await.map_err(lost)?
        })
    }
}

impl Connector {
    fn exchange(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let user = |reason: String| ConnectorError::user(reason.into());
        let url = Url::parse(request.uri()).map_err(|reason| user(reason.to_owned()))?;
        self.ways.known.add(secrets_of(request, &url));
        if let Some(name) = named_by(request, url.path).filter(|of| self.ways.misled.contains(of)) {
            return Err(user(format!(
                "{GENERAL} names the store and no sign-in service: set {name}, or name the store \
                 by {GENERAL}_S3 instead"
            )));
        }
        let tls = url.tls.then(|| TlsConfig::load(self.ways.trust(&url.endpoint))).transpose();
        let tls = tls.map_err(|error| user(in_one_line(&error)))?;
        let options = Options {
            connect_timeout: self.connect_timeout,
            tls,
            keep_alive: false,
            proxies: self.ways.proxies.clone().filter(|_| !is_near(&url.endpoint.host)),
            ..Options::default()
        };
        let body = request.body().bytes().unwrap_or_default();
        let head = head_of(&url, request, body.len()).map_err(user)?;
        let head =
            Request { head: head.as_bytes(), method_is_head: false, body: Body::Bytes(body) };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ConnectorError::io(error.into()))?;
        let endpoints = Rc::from([url.endpoint.clone()]);
        let mut client = Client::new(endpoints, Rc::new(options), self.ways.clock.clone());
        let mut answer = Answer::default();
        let exchange = runtime.block_on(async {
            timeout(self.exchange_timeout, client.exchange(0, head, &mut answer)).await
        });
        let name = &url.endpoint;
        match exchange {
            Err(_) => Err(ConnectorError::timeout(format!("{name} does not answer").into())),
            Ok(Err(error)) if error.kind == ExchangeErrorKind::ConnectTimeout => {
                Err(ConnectorError::timeout(error.into()))
            }
            Ok(Err(error)) => Err(ConnectorError::io(error.into())),
            Ok(Ok(_)) if answer.is_too_long => {
                let words = format!("the answer of {name} is longer than credentials are");
                Err(ConnectorError::other(words.into(), None))
            }
            Ok(Ok(_)) => {
                self.ways.known.add(handed_out(&String::from_utf8_lossy(&answer.body)));
                answer.into_response()
            }
        }
    }
}

/// Returns what of a request is secret.
fn secrets_of(request: &HttpRequest, url: &Url<'_>) -> Vec<Secret> {
    let body = request.body().bytes().unwrap_or_default();
    let body = std::str::from_utf8(body).unwrap_or_default();
    let document: Value = serde_json::from_str(body).unwrap_or_default();
    let headers = SECRET_HEADERS.into_iter().filter_map(|name| request.headers().get(name));
    // Such a token needs no escapes in a form.
    let fields = body.split('&').filter_map(|field| field.strip_prefix("WebIdentityToken="));
    let members = SECRET_MEMBERS.into_iter().filter_map(|name| document[name].as_str());
    let of_request = headers.chain(fields).chain(members);
    of_request.map(|text| Secret::from(text.to_owned())).chain(url.secrets()).collect()
}

/// Returns the secrets that an answer hands out: keys, and tokens of single sign-on.
fn handed_out(body: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for tag in ["SecretAccessKey", "SessionToken"] {
        let tag = format!("<{tag}>");
        let behind = body.split(&tag).skip(1);
        found.extend(
            behind.filter_map(|text| text.split_once("</")).map(|(text, _)| text.to_owned()),
        );
    }
    let mut rest = vec![serde_json::from_str::<Value>(body).unwrap_or_default()];
    while let Some(value) = rest.pop() {
        let Value::Object(members) = value else { continue };
        for (name, value) in members {
            let is_secret = HANDED_OUT.iter().any(|of| of.eq_ignore_ascii_case(&name));
            match value {
                Value::String(text) if is_secret => found.push(text),
                value => rest.push(value),
            }
        }
    }
    found.into_iter().map(Secret::from).collect()
}

/// Returns what names the sign-in service that a request is for; `None` where it is for none.
fn named_by(request: &HttpRequest, path: &str) -> Option<&'static str> {
    let [token_service, single_sign_on, renewal] = SIGN_IN;
    let body = request.body().bytes().unwrap_or_default();
    match request.method() {
        "POST" if body.starts_with(b"Action=") => Some(token_service),
        "GET" if path.ends_with("/federation/credentials") => Some(single_sign_on),
        "POST" if path.ends_with("/token") => Some(renewal),
        _ => None,
    }
}

/// Tells whether a host is this machine, or one of its platform's own addresses.
fn is_near(host: &str) -> bool {
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback
        || host.eq_ignore_ascii_case("localhost")
        || NEAR.iter().any(|network| host.starts_with(network))
}

fn head_of(url: &Url<'_>, request: &HttpRequest, body_len: usize) -> Result<String, String> {
    let authority = url.endpoint.authority(url.tls);
    let path = if url.path.is_empty() { "/" } else { url.path };
    let query = url.query.map(|query| format!("?{query}")).unwrap_or_default();
    let method = request.method();
    let mut head = format!("{method} {path}{query} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in request.headers() {
        if ["host", "content-length", "connection"].contains(&name) {
            continue;
        }
        if !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(format!(
                "the value for {name} holds a character that a request cannot hold"
            ));
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {body_len}\r\nConnection: close\r\n\r\n"));
    Ok(head)
}

/// Returns an answer without a role that has no name. MinIO's token service knows none, and the
/// library, which looks for an account's number there, refuses keys for it.
fn without_nameless_role(body: Vec<u8>) -> Vec<u8> {
    const ROLE: (&str, &str) = ("<AssumedRoleUser>", "</AssumedRoleUser>");
    let cut = |text: &str| {
        let begin = text.find(ROLE.0)?;
        let end = begin + text[begin..].find(ROLE.1)? + ROLE.1.len();
        let is_nameless = ["<Arn></Arn>", "<Arn/>"].iter().any(|of| text[begin..end].contains(of));
        is_nameless.then(|| format!("{}{}", &text[..begin], &text[end..]).into_bytes())
    };
    std::str::from_utf8(&body).ok().and_then(cut).unwrap_or(body)
}

/// An answer, kept whole.
#[derive(Default)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    is_too_long: bool,
}

impl ResponseSink for Answer {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        let text = |value: &[u8]| std::str::from_utf8(value).ok().map(str::to_owned);
        let fields = head.headers.iter();
        let fields = fields.filter_map(|of| Some((of.name.to_ascii_lowercase(), text(of.value)?)));
        self.headers = fields.collect();
    }

    fn body(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.body.len() + bytes.len() > ANSWER_BYTES_MAX;
        if !self.is_too_long {
            self.body.extend_from_slice(bytes);
        }
    }
}

impl Answer {
    fn into_response(self) -> Result<HttpResponse, ConnectorError> {
        let odd = |_| ConnectorError::other("the answer has no status".into(), None);
        let status = self.status.try_into().map_err(odd)?;
        let body = without_nameless_role(self.body);
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        for (name, value) in self.headers {
            // One that cannot be kept says nothing that is asked for.
            let _ = response.headers_mut().try_append(name, value);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_engine::RunClock;

    use super::*;

    #[test]
    fn what_is_trusted_of_the_store_is_trusted_of_nobody_else() {
        let ways = Ways {
            clock: Arc::new(RunClock::start()),
            store: Endpoint::new("Store.lan", 9000),
            store_trust: TlsOptions { insecure: true, ..TlsOptions::default() },
            services_trust: TlsOptions::default(),
            proxies: None,
            misled: Vec::new(),
            known: KnownSecrets::default(),
        };
        let insecure = |host: &str, port| ways.trust(&Endpoint::new(host, port)).insecure;
        assert!(insecure("store.lan", 9000));
        for (host, port) in [("store.lan", 443), ("sts.amazonaws.com", 443), ("127.0.0.1", 9000)] {
            assert!(!insecure(host, port), "{host}:{port}");
        }
    }

    #[test]
    fn the_secrets_of_a_request_are_known() {
        let form = "Action=AssumeRoleWithWebIdentity&WebIdentityToken=eyJ.a.b&Version=1";
        let document = r#"{"clientId": "c", "clientSecret": "s3", "refreshToken": "r4"}"#;
        let url = Url::parse("http://h/role?token=t5-of-query").unwrap();
        for (body, secrets) in [(form, vec!["eyJ.a.b"]), (document, vec!["s3", "r4"])] {
            for header in SECRET_HEADERS {
                let mut request = HttpRequest::new(SdkBody::from(body));
                request.headers_mut().insert(header, "T1");
                let found = secrets_of(&request, &url);
                let mut found: Vec<&str> = found.iter().map(Secret::expose).collect();
                found.retain(|secret| !secret.contains("t5"));
                assert_eq!(found, [&["T1"], &*secrets].concat(), "{header}");
            }
        }
    }

    #[test]
    fn the_secrets_of_an_answer_are_known() {
        let xml = "<C><SessionToken>t/1=</SessionToken><SecretAccessKey>s+1</SecretAccessKey></C>";
        let json = r#"{"AccessKeyId":"A","SecretAccessKey":"s2","Token":"t2","Code":"Success"}"#;
        let nested = r#"{"roleCredentials":{"secretAccessKey":"s3","sessionToken":"t3"}}"#;
        let known = |body: &str| {
            let mut all =
                handed_out(body).iter().map(|of| of.expose().to_owned()).collect::<Vec<_>>();
            all.sort();
            all
        };
        assert_eq!(known(xml), ["s+1", "t/1="]);
        assert_eq!(
            (known(json), known(nested)),
            (vec!["s2".into(), "t2".into()], vec!["s3".into(), "t3".into()])
        );
        assert!(known("no <keys>").is_empty());
    }
}
