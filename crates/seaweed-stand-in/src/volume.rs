//! A volume server by HTTP: files are written, read and removed, as the script wants it.

use std::ops::Range as Span;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderValue, RANGE, SERVER,
};
use hyper::http::request::Parts;
use hyper::http::response::Parts as ResponseParts;
use hyper::{Method, Request, Response, StatusCode};
use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_oracle::{
    Act, BoxError, Lie, Nothing, Request as Op, Ruling, Serving, Source, class_of_content, spoil,
    wall_time,
};
use s3s::Body;
use s3s::dto::Range;
use serde_json::json;

use crate::answer::{error, error_text, json_of, query_of};
use crate::cluster::Cluster;
use crate::fid::{Fid, named_by_tokens};
use crate::files::{Stored, crc_of};
use crate::form::{boundary_of, first_file};
use crate::state::State;
use crate::token::Key;

/// One volume server of a cluster.
#[derive(Clone)]
pub(crate) struct VolumeServer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) number: usize,
}

/// A request about one file.
struct Asked<'a> {
    head: &'a Parts,
    /// The path without its leading `/`.
    path: &'a str,
    ruling: &'a Ruling,
}

/// A request that cannot be done: the status and the words; without words the answer has no body.
struct Refused(u16, String);

/// What a write would do.
struct Write {
    fid: Fid,
    file: Stored,
    /// Whether the same content already exists.
    is_same: bool,
    servers: Vec<usize>,
}

/// What a read finds.
struct Found {
    fid: Fid,
    /// Who has it.
    server: usize,
    file: Arc<Stored>,
    span: Span<usize>,
}

/// What a read is answered with.
enum Told {
    /// The file, with this content in the place of what was asked for.
    Content(Bytes),
    /// As it was before its last change.
    Before(Option<Arc<Stored>>),
}

/// Returns an answer that says whose it is.
fn named<B>(mut response: Response<B>) -> Response<B> {
    let name = HeaderValue::from_static("SeaweedFS Volume");
    response.headers_mut().insert(SERVER, name);
    response
}

impl Serving for VolumeServer {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let ruling = Ruling::of(&head.extensions).expect("every connection here has a script");
        let path = head.uri.path().trim_start_matches('/');
        let asked = Asked { head: &head, path, ruling };
        let mut state = self.cluster.state();
        Ok(named(match &head.method {
            _ if matches!(path, "status" | "healthz") => json_of(StatusCode::OK, &json!({})),
            &Method::PUT | &Method::POST => self.put(&mut state, &asked, body),
            &Method::GET => self.read(&state, OpKind::Get, &asked),
            &Method::HEAD => self.read(&state, OpKind::Stat, &asked),
            &Method::DELETE => self.delete(&mut state, &asked),
            _ => error(405, "method not allowed"),
        }))
    }

    fn error(status: StatusCode, code: &str) -> Response<String> {
        // A volume server sheds load by this status, and never by 503.
        let is_shed = Act::SLOW_DOWN == Act::Status { status: status.as_u16(), code: "SlowDown" };
        let status = if is_shed && code == "SlowDown" { 429 } else { status.as_u16() };
        named(error_text(status, &format!("the script says so ({code})")))
    }

    /// A file of another length has another checksum.
    fn fit(parts: &mut ResponseParts, content: &Bytes) {
        if parts.status == StatusCode::OK {
            parts.headers.insert(ETAG, etag(crc_of(content)));
        }
    }
}

impl VolumeServer {
    fn put(&self, state: &mut State, asked: &Asked<'_>, body: Bytes) -> Response<Body> {
        let size = body.len() as u64;
        let checked = self.check_write(state, asked, body);
        let content_bytes = checked.as_ref().map_or(size, |write| write.file.content.len() as u64);
        let honest = class_of(&checked);
        let op = Op { kind: OpKind::Put, key: asked.path, content_bytes, honest };
        let told = asked.ruling.say(&op, &mut |lie, _| {
            let write = checked.as_ref().ok()?;
            match lie {
                Lie::LostWrite => (!write.is_same).then_some(ErrorClass::Ok),
                Lie::LostCopy => {
                    (!write.is_same && write.servers.len() > 1).then_some(ErrorClass::Ok)
                }
                Lie::WrongTag => Some(ErrorClass::Corrupt),
                _ => None,
            }
        });
        let Write { fid, file, is_same, servers } = match (checked, &told) {
            (Err(refused), _) => return refused.answer(),
            (Ok(_), Err(Nothing)) => return Response::new(Body::empty()),
            (Ok(write), Ok(_)) => write,
        };
        let (lie, salt) = told.ok().flatten().unzip();
        let salt = salt.unwrap_or_default();
        let stated =
            if lie == Some(Lie::WrongTag) { file.crc ^ 1 << (salt % 32) } else { file.crc };
        let answer = written(&file, stated, is_same);
        match lie {
            Some(Lie::LostWrite) => state.lose(fid, file),
            Some(Lie::LostCopy) => {
                state.store(fid, file, Some(servers[salt as usize % servers.len()]));
            }
            _ if is_same => {}
            _ => state.store(fid, file, None),
        }
        answer
    }

    fn check_write(&self, state: &State, asked: &Asked<'_>, body: Bytes) -> Result<Write, Refused> {
        let fid = asked.fid()?;
        asked.check_token(self.cluster.keys.write.as_ref())?;
        let here = &state.servers[self.number];
        let missing =
            || Refused(500, format!("volume {} not found on {}", fid.volume, here.address.url()));
        let volume = state.volumes.get(&fid.volume).ok_or_else(missing)?;
        let file = asked.file(fid, body)?;
        let server = state.answering(self.number, fid.volume).ok_or_else(missing)?;
        let before = state.file(server, (fid.volume, fid.key));
        if before.is_some_and(|before| before.cookie != fid.cookie) {
            let words =
                format!("failed to write to local disk: mismatching cookie {:x}", fid.cookie);
            return Err(Refused(500, words));
        }
        if volume.servers.iter().any(|server| !state.servers[*server].is_here) {
            let words = format!("failed to write to replicas for volume {}", fid.volume);
            return Err(Refused(500, words));
        }
        let is_same = before.is_some_and(|before| before.content == file.content);
        Ok(Write { fid, file, is_same, servers: volume.servers.clone() })
    }

    fn read(&self, state: &State, kind: OpKind, asked: &Asked<'_>) -> Response<Body> {
        let found = self.find(state, kind, asked);
        let key = |found: &Found| (found.fid.volume, found.fid.key);
        let honest = match &found {
            // A write that was acknowledged and lost shows as soon as the file is read.
            Ok(found) if kind == OpKind::Get && !state.is_true(key(found), &found.file) => {
                ErrorClass::Corrupt
            }
            _ => class_of(&found),
        };
        let content_bytes = match (&found, kind) {
            (Ok(found), OpKind::Get) => found.span.len() as u64,
            _ => 0,
        };
        let op = Op { kind, key: asked.path, content_bytes, honest };
        let mut tale = None;
        let said = asked.ruling.say(&op, &mut |lie, salt| {
            let (told, class) = match (lie, &found) {
                (Lie::StaleRead, _) => self.before(state, asked, kind)?,
                (_, Ok(found)) => spoiled(state, lie, salt, found)?,
                _ => return None,
            };
            tale = Some(told);
            Some(class)
        });
        let lie = match said {
            Err(Nothing) => return Response::new(Body::empty()),
            Ok(lie) => lie,
        };
        match (tale.filter(|_| lie.is_some()), found) {
            (Some(Told::Before(None)), _) => Refused(404, String::new()).answer(),
            (Some(Told::Before(Some(before))), _) => match asked.span(&before) {
                Ok(span) => given(&before, &span, before.content.slice(span.clone())),
                Err(refused) => refused.answer(),
            },
            (Some(Told::Content(content)), Ok(found)) => given(&found.file, &found.span, content),
            (_, Ok(Found { file, span, .. })) => {
                given(&file, &span, file.content.slice(span.clone()))
            }
            (_, Err(refused)) => refused.answer(),
        }
    }

    fn find(&self, state: &State, kind: OpKind, asked: &Asked<'_>) -> Result<Found, Refused> {
        let fid = asked.fid().map_err(|Refused(status, _)| Refused(status, String::new()))?;
        asked.check_token(self.cluster.keys.read.as_ref())?;
        let missing = || Refused(404, String::new());
        let server = state.answering(self.number, fid.volume).ok_or_else(missing)?;
        let file = state.file(server, (fid.volume, fid.key));
        let file = file.filter(|file| file.cookie == fid.cookie).ok_or_else(missing)?;
        let span = match kind {
            OpKind::Get => asked.span(file)?,
            _ => 0..file.content.len(),
        };
        Ok(Found { fid, server, file: Arc::clone(file), span })
    }

    /// Returns what a read says that answers as before the file's last change, and what a right
    /// client makes of that.
    fn before(&self, state: &State, asked: &Asked<'_>, kind: OpKind) -> Option<(Told, ErrorClass)> {
        let fid = asked.fid().ok()?;
        let (server, key) = (state.answering(self.number, fid.volume)?, (fid.volume, fid.key));
        let before = state.servers[server].files.before(key)?;
        let class = match (before, state.file(server, key)) {
            (None, None) => return None,
            (None, Some(_)) => ErrorClass::NotFound,
            (Some(_), None) => ErrorClass::Ok,
            (Some(before), Some(now)) if kind == OpKind::Get => {
                let (told, truth) = (asked.span(before).ok()?, asked.span(now).ok()?);
                class_of_content(&before.content[told], &now.content[truth])?
            }
            (Some(before), Some(now)) if before.content.len() != now.content.len() => {
                ErrorClass::Corrupt
            }
            _ => return None,
        };
        Some((Told::Before(before.cloned()), class))
    }

    fn delete(&self, state: &mut State, asked: &Asked<'_>) -> Response<Body> {
        let found = self.check_delete(state, asked);
        let honest = class_of(&found);
        let op = Op { kind: OpKind::Delete, key: asked.path, content_bytes: 0, honest };
        let is_there = found.as_ref().is_ok_and(|(_, size)| size.is_some());
        let told = asked
            .ruling
            .say(&op, &mut |lie, _| (lie == Lie::LostWrite && is_there).then_some(ErrorClass::Ok));
        let (fid, size) = match (found, &told) {
            (Err(refused), _) => return refused.answer(),
            (Ok(_), Err(Nothing)) => return Response::new(Body::empty()),
            (Ok(found), Ok(_)) => found,
        };
        let Some(size) = size else {
            return json_of(StatusCode::NOT_FOUND, &json!({"size": 0}));
        };
        if let Ok(None) = told {
            let servers = state.volumes[&fid.volume].servers.clone();
            state.remove(fid, &servers);
        }
        json_of(StatusCode::ACCEPTED, &json!({"size": size}))
    }

    /// Returns what is to be removed, with its size where it is there.
    fn check_delete(
        &self,
        state: &State,
        asked: &Asked<'_>,
    ) -> Result<(Fid, Option<usize>), Refused> {
        let fid = asked.fid().map_err(|_| Refused(400, "Invalid fid: ".to_owned()))?;
        asked.check_token(self.cluster.keys.write.as_ref())?;
        let server = state.answering(self.number, fid.volume);
        let file = server.and_then(|server| state.file(server, (fid.volume, fid.key)));
        match file {
            None => Ok((fid, None)),
            Some(file) if file.cookie != fid.cookie => {
                Err(Refused(400, "File Random Cookie does not match.".to_owned()))
            }
            Some(file) => {
                let of = &state.volumes[&fid.volume].servers;
                match of.iter().all(|server| state.servers[*server].is_here) {
                    true => Ok((fid, Some(file.needle_size()))),
                    false => Err(Refused(500, "failed to delete from replicas".to_owned())),
                }
            }
        }
    }
}

impl Asked<'_> {
    fn fid(&self) -> Result<Fid, Refused> {
        let wrong = || Refused(400, format!("{:?} is not a file id", self.path));
        Fid::of_path(self.path).ok_or_else(wrong)
    }

    /// Checks the token where there is a key: that of the query, else that of the head.
    fn check_token(&self, key: Option<&Key>) -> Result<(), Refused> {
        let Some(key) = key else { return Ok(()) };
        let query = query_of(self.head);
        let header = self.head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let header = header.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        });
        let token = query.get("jwt").map(String::as_str).or(header).unwrap_or_default();
        match key.admits(token, &named_by_tokens(self.path), wall_time()) {
            true => Ok(()),
            false => Err(Refused(401, "wrong jwt".to_owned())),
        }
    }

    /// Returns the file that a body holds, by itself or in a form.
    fn file(&self, fid: Fid, body: Bytes) -> Result<Stored, Refused> {
        let kind = self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default();
        let boundary = boundary_of(kind).filter(|_| self.head.method == Method::POST);
        let Some(boundary) = boundary else {
            // The real one takes such bytes for a form and stores nothing of them.
            if kind.is_empty() || kind == "application/x-www-form-urlencoded" {
                let words = "the stand-in wants a Content-Type that is not one of a form";
                return Err(Refused(400, words.to_owned()));
            }
            let name = self.path.rsplit('/').next().unwrap_or_default();
            return Ok(Stored::new(fid.cookie, name.to_owned(), kind.to_owned(), body));
        };
        let file = first_file(&body, boundary);
        let file = file.ok_or_else(|| Refused(400, "no file in the form".to_owned()))?;
        Ok(Stored::new(fid.cookie, file.name, file.mime, file.content))
    }

    /// Returns which bytes of a file are asked for.
    fn span(&self, file: &Stored) -> Result<Span<usize>, Refused> {
        let size = file.content.len();
        let Some(range) = self.head.headers.get(RANGE) else { return Ok(0..size) };
        let beyond = || Refused(416, "invalid range: failed to overlap".to_owned());
        let range = range.to_str().ok().and_then(|range| Range::parse(range).ok());
        let span = range.ok_or_else(beyond)?.check(size as u64).map_err(|_| beyond())?;
        Ok(span.start as usize..span.end as usize)
    }
}

impl Refused {
    fn answer(self) -> Response<Body> {
        let Self(status, words) = self;
        match words.is_empty() {
            true => {
                let mut response = error(status, "");
                response.headers_mut().clear();
                response.map(|_| Body::empty())
            }
            false => error(status, &words),
        }
    }
}

/// Returns how a right client classes what comes of a request that is served as it should be.
fn class_of<T>(checked: &Result<T, Refused>) -> ErrorClass {
    match checked {
        Ok(_) => ErrorClass::Ok,
        Err(Refused(404, _)) => ErrorClass::NotFound,
        Err(Refused(401, _)) => ErrorClass::Denied,
        Err(Refused(500.., _)) => ErrorClass::Server,
        Err(_) => ErrorClass::Client,
    }
}

fn etag(crc: u32) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{crc:08x}\"")).expect("digits are plain")
}

/// Returns the answer to a write, which states that checksum.
fn written(file: &Stored, stated: u32, is_same: bool) -> Response<Body> {
    let mut body = json!({"name": file.name});
    if !file.content.is_empty() {
        body["size"] = file.content.len().into();
    }
    body["eTag"] = format!("{stated:08x}").into();
    body["mime"] = file.mime.clone().into();
    let mut response = match is_same {
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        false => json_of(StatusCode::CREATED, &body),
    };
    response.headers_mut().insert(ETAG, etag(stated));
    response
}

/// Returns the answer to a read of that part of a file, whose bytes are said to be `content`.
fn given(file: &Stored, span: &Span<usize>, content: Bytes) -> Response<Body> {
    let size = file.content.len();
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(ETAG, etag(file.crc));
    headers.insert(CONTENT_LENGTH, span.len().into());
    let mut say = |name, value: String| {
        // What a client named its file is not worth a failure.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    if !file.mime.is_empty() {
        say(CONTENT_TYPE, file.mime.clone());
    }
    if !file.name.is_empty() {
        say(CONTENT_DISPOSITION, format!("inline; filename=\"{}\"", file.name));
    }
    if span.len() < size {
        let last = span.end.saturating_sub(1);
        say(CONTENT_RANGE, format!("bytes {}-{last}/{size}", span.start));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// Returns wrong bytes in the place of those that a read finds.
fn spoiled(state: &State, lie: Lie, salt: u64, found: &Found) -> Option<(Told, ErrorClass)> {
    let Found { fid, server, file, span } = found;
    let (files, key) = (&state.servers[*server].files, (fid.volume, fid.key));
    let older = files.before(key).flatten();
    let other = match lie {
        Lie::OtherKey | Lie::Torn => files.neighbour(key, file.content.len()),
        _ => None,
    };
    let source = Source {
        object: &file.content,
        offset: span.start,
        len: span.len(),
        older: older.map(|older| &older.content[..]),
        other: other.map(|other| &other.content[..]),
    };
    let wrong = spoil(lie, salt, &source)?;
    Some((Told::Content(wrong.into()), ErrorClass::Corrupt))
}
