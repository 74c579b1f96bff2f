//! A bucket of others, written and looked at by a client that is not ours.
#![expect(clippy::disallowed_methods, reason = "a signature carries the wall time")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::harness::Target;

/// What the signing rules leave as it is in a query, and in a path.
const QUERY_SAFE: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PATH_SAFE: AsciiSet = QUERY_SAFE.remove(b'/');
/// For how long from now on some of the objects are retained.
pub(crate) const RETAINED_UNTIL_HOURS: u64 = 24;
/// What is below it are runs.
const HOME: &str = "plimsoll/s3-";

/// A bucket that keeps versions and can retain objects.
pub(crate) struct Bucket<'t> {
    target: &'t Target,
}

/// All that is in a bucket, as the server tells it: keys, versions, times, ETags, sizes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) versions: Vec<String>,
    pub(crate) markers: Vec<String>,
    pub(crate) uploads: Vec<String>,
    pub(crate) retained: Vec<String>,
}

impl<'t> Bucket<'t> {
    /// Makes the bucket, with `count` objects of nine kinds of names and five of states.
    pub(crate) fn planted(target: &'t Target, count: u64) -> Self {
        let bucket = Self { target };
        bucket.ask("PUT", "", &[("x-amz-bucket-object-lock-enabled", "true")], "");
        for number in 0..count {
            bucket.plant(&name(number), number / 9 % 5, number);
        }
        bucket
    }

    fn plant(&self, key: &str, state: u64, number: u64) {
        let path = encoded(key, &PATH_SAFE);
        let content = format!("{number} is not ours ").repeat(number as usize % 7 + 1);
        match state {
            1 => drop(self.ask("PUT", &path, &[], "an older version")),
            3 => {
                let later = Duration::from_secs(RETAINED_UNTIL_HOURS * 3_600);
                let until = jiff::Timestamp::try_from(SystemTime::now() + later).unwrap();
                let until = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                let mode = ("x-amz-object-lock-mode", "GOVERNANCE");
                let until = ("x-amz-object-lock-retain-until-date", &*until);
                let md5 = ("x-amz-meta-by", "another");
                self.ask("PUT", &path, &[mode, until, md5], &content);
                return;
            }
            _ => {}
        }
        self.ask("PUT", &path, &[], &content);
        if state == 2 {
            self.ask("DELETE", &path, &[], "");
        }
        if state == 4 {
            let begun = self.ask("POST", &format!("{path}?uploads="), &[], "");
            let upload = element(&begun, "UploadId").unwrap();
            let part = format!("{path}?partNumber=1&uploadId={upload}");
            self.ask("PUT", &part, &[], "a part of an upload that goes on tomorrow");
        }
    }

    /// Looks whether a run has written anything yet, which takes as long as that takes.
    pub(crate) fn glance(&self) {
        self.ask(
            "GET",
            &format!("?list-type=2&max-keys=1&prefix={}", encoded(HOME, &QUERY_SAFE)),
            &[],
            "",
        );
    }

    /// Returns all that is in the bucket.
    pub(crate) fn look(&self) -> Look {
        let (mut versions, mut markers) = (Vec::new(), Vec::new());
        let mut from = String::new();
        loop {
            let page = self.ask("GET", &format!("?versions={from}"), &[], "");
            versions.extend(elements(&page, "Version"));
            markers.extend(elements(&page, "DeleteMarker"));
            if element(&page, "IsTruncated").as_deref() != Some("true") {
                break;
            }
            let key = encoded(&element(&page, "NextKeyMarker").unwrap(), &QUERY_SAFE);
            let version = encoded(&element(&page, "NextVersionIdMarker").unwrap(), &QUERY_SAFE);
            from = format!("&key-marker={key}&version-id-marker={version}");
        }
        let uploads = self.ask("GET", "?uploads=", &[], "");
        assert_eq!(element(&uploads, "IsTruncated").as_deref(), Some("false"));
        // MinIO keeps this list in memory, and goes on naming an upload whose client was killed
        // while it was begun; the list of a key's uploads is what is there.
        let mut uploads = elements(&uploads, "Upload");
        uploads.retain(|upload| {
            let key = encoded(&element(upload, "Key").unwrap(), &QUERY_SAFE);
            let of_key = self.ask("GET", &format!("?prefix={key}&uploads="), &[], "");
            of_key.contains(&element(upload, "UploadId").unwrap())
        });
        uploads.sort();
        let retained = versions.iter().filter_map(|version| self.retention(version)).collect();
        Look { versions, markers, uploads, retained }
    }

    fn retention(&self, version: &str) -> Option<String> {
        let key = element(version, "Key").unwrap();
        let number: u64 = key.rsplit(['/', '-', ' ']).next()?.parse().ok()?;
        (key == name(number) && number / 9 % 5 == 3).then(|| {
            let id = element(version, "VersionId").unwrap();
            self.ask(
                "GET",
                &format!("{}?retention=&versionId={id}", encoded(&key, &PATH_SAFE)),
                &[],
                "",
            )
        })
    }

    /// Sends one request, which must succeed, and returns the body of the answer.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let Target { host, bucket, .. } = self.target;
        let path = format!("/{bucket}/{path}");
        let mut all = vec![("host", host.as_str())];
        all.extend(headers);
        let signed = self.signature(method, &path, &all, body);
        all.extend(signed.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        // HTTP/1.0 has neither chunks nor connections to keep.
        let mut request = format!("{method} {path} HTTP/1.0\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in all {
            request += &format!("{name}: {value}\r\n");
        }
        request = request + "\r\n" + body;
        let mut socket = TcpStream::connect(host).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        assert!(status.starts_with('2'), "{method} {path}: {answer}");
        text.to_owned()
    }

    fn signature(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Vec<(String, String)> {
        let Target { host, access_key, secret_key, .. } = self.target;
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = Credentials::new(access_key, secret_key, None, None, "test").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .unwrap()
            .into();
        let url = format!("http://{host}{path}");
        let body = SignableBody::Bytes(body.as_bytes());
        let request = SignableRequest::new(method, &url, headers.iter().copied(), body).unwrap();
        let (instructions, _) = sign(request, &params).unwrap().into_parts();
        let added = instructions.headers();
        added.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Look {
    /// Checks that nothing has come, gone or changed.
    #[track_caller]
    pub(crate) fn assert_same(&self, now: &Self, what: &str) {
        for (before, now) in [
            (&self.versions, &now.versions),
            (&self.markers, &now.markers),
            (&self.uploads, &now.uploads),
            (&self.retained, &now.retained),
        ] {
            let come: Vec<_> = now.iter().filter(|each| !before.contains(each)).collect();
            let gone: Vec<_> = before.iter().filter(|each| !now.contains(each)).collect();
            let few =
                |all: &[&String]| all.iter().take(3).map(|s| s.to_string()).collect::<Vec<_>>();
            let (come, gone) = ((come.len(), few(&come)), (gone.len(), few(&gone)));
            assert!(come.0 == 0 && gone.0 == 0, "{what}: come {come:#?} gone {gone:#?}");
        }
        assert!(self == now, "{what}: the same in another order");
    }
}

/// Returns the name of a foreign object; all but two kinds look like a run's.
fn name(number: u64) -> String {
    match number % 9 {
        0 => format!("plimsoll/readme-{number}"),
        1 => format!("plimsoll/not-a-run/{number}"),
        2 => format!("plimsollx/{number}"),
        3 => format!("data/{number}"),
        4 => format!("plimsoll/s3-get-2020-01-01-aaaa/{number}"),
        5 => format!("data/plimsoll/not-a-run/{number}"),
        // A run's name, but no folder of that name.
        6 => format!("plimsoll/s3-put-20200101t000000z-{number:04}"),
        7 => format!("other/plimsoll/s3-get-20200101t000000z-aaaa/{number}"),
        _ => format!("100% é+ü {number}"),
    }
}

fn encoded(text: &str, safe: &'static AsciiSet) -> String {
    utf8_percent_encode(text, safe).to_string()
}

/// Returns what is within the elements of that name, as it stands there.
fn elements(text: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let tails = text.split(&open).skip(1);
    tails.map(|tail| tail.split_once(&close).unwrap().0.to_owned()).collect()
}

fn element(text: &str, name: &str) -> Option<String> {
    elements(text, name).into_iter().next()
}
