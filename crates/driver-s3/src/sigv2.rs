//! AWS Signature Version 2 in the Authorization header, for servers that know nothing newer.

use aws_lc_rs::hmac;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use plimsoll_model::WallTime;

use crate::encode;

const SECONDS_PER_DAY: u64 = 86_400;
const NS_PER_SECOND: u64 = 1_000_000_000;
/// The first of January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The parameters of a query that are part of what is signed, of those that this driver sends.
const SUB_RESOURCES: [&str; 10] = [
    "delete",
    "object-lock",
    "partNumber",
    "retention",
    "tagging",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
];

/// The time as HTTP writes it: `Tue, 27 Mar 2007 19:36:42 GMT`.
pub(crate) type HttpDate = [u8; 29];

/// Signs for one key.
pub(crate) struct SignerV2 {
    access_key: String,
    key: hmac::Key,
    content_md5: Vec<u8>,
    content_type: Vec<u8>,
    date: Vec<u8>,
    method: Vec<u8>,
    amz_headers: Vec<u8>,
    resource: Vec<u8>,
}

impl SignerV2 {
    pub(crate) fn new(access_key: &str, secret: &str) -> Self {
        Self {
            access_key: access_key.to_owned(),
            key: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes()),
            content_md5: Vec::new(),
            content_type: Vec::new(),
            date: Vec::new(),
            method: Vec::new(),
            amz_headers: Vec::new(),
            resource: Vec::new(),
        }
    }

    /// Begins a request; `host_bucket` is the bucket where it stands in the host's name, else
    /// empty.
    pub(crate) fn begin(&mut self, method: &str, host_bucket: &str, path: &[u8], query: &[u8]) {
        for text in
            [&mut self.content_md5, &mut self.content_type, &mut self.date, &mut self.amz_headers]
        {
            text.clear();
        }
        self.method.clear();
        self.method.extend_from_slice(method.as_bytes());
        self.resource.clear();
        if !host_bucket.is_empty() {
            self.resource.push(b'/');
            self.resource.extend_from_slice(host_bucket.as_bytes());
        }
        self.resource.extend_from_slice(path);
        let mut separator = b'?';
        for parameter in query.split(|b| *b == b'&') {
            let mut halves = parameter.splitn(2, |b| *b == b'=');
            let name = halves.next().unwrap_or_default();
            if !SUB_RESOURCES.iter().any(|known| known.as_bytes() == name) {
                continue;
            }
            self.resource.push(separator);
            separator = b'&';
            self.resource.extend_from_slice(name);
            let value = halves.next().unwrap_or_default();
            if !value.is_empty() {
                self.resource.push(b'=');
                encode::push_decoded(&mut self.resource, value);
            }
        }
    }

    /// Notes a header; names are in lower case and come in ascending order.
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) {
        let line = match name {
            "content-md5" => &mut self.content_md5,
            "content-type" => &mut self.content_type,
            "date" => &mut self.date,
            _ if name.starts_with("x-amz-") => {
                self.amz_headers.extend_from_slice(name.as_bytes());
                self.amz_headers.push(b':');
                self.amz_headers.extend_from_slice(value);
                self.amz_headers.push(b'\n');
                return;
            }
            _ => return,
        };
        line.clear();
        line.extend_from_slice(value);
    }

    /// Returns the value of the Authorization header.
    pub(crate) fn sign(&self) -> String {
        let mut to_sign = Vec::with_capacity(256);
        for line in [&self.method, &self.content_md5, &self.content_type, &self.date] {
            to_sign.extend_from_slice(line);
            to_sign.push(b'\n');
        }
        to_sign.extend_from_slice(&self.amz_headers);
        to_sign.extend_from_slice(&self.resource);
        let tag = hmac::sign(&self.key, &to_sign);
        format!("AWS {}:{}", self.access_key, BASE64_STANDARD.encode(tag))
    }
}

/// Returns the time as HTTP writes it (RFC 9110, section 5.6.7).
pub(crate) fn http_date(now: WallTime) -> HttpDate {
    let (year, month, day, hour, minute, second) = now.civil();
    let days = now.as_unix_ns() / NS_PER_SECOND / SECONDS_PER_DAY;
    let weekday = WEEKDAYS[(days % 7) as usize];
    let month = MONTHS[month as usize - 1];
    let text = format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT");
    text.as_bytes().try_into().expect("a year has four digits until 2554")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Vector {
        name: &'static str,
        method: &'static str,
        host_bucket: &'static str,
        path: &'static str,
        query: &'static str,
        headers: &'static [(&'static str, &'static str)],
        signature: &'static str,
    }

    /// The examples of "Signing and Authenticating REST Requests" in the S3 developer guide, with
    /// its key.
    #[test]
    fn the_examples_of_the_s3_documentation() {
        let vectors = [
            Vector {
                name: "Object GET",
                method: "GET",
                host_bucket: "johnsmith",
                path: "/photos/puppy.jpg",
                query: "",
                headers: &[("date", "Tue, 27 Mar 2007 19:36:42 +0000")],
                signature: "bWq2s1WEIj+Ydj0vQ697zp+IXMU=",
            },
            Vector {
                name: "Object PUT",
                method: "PUT",
                host_bucket: "johnsmith",
                path: "/photos/puppy.jpg",
                query: "",
                headers: &[
                    ("content-type", "image/jpeg"),
                    ("date", "Tue, 27 Mar 2007 21:15:45 +0000"),
                ],
                signature: "MyyxeRY7whkBe+bq8fHCL/2kKUg=",
            },
            Vector {
                name: "List",
                method: "GET",
                host_bucket: "johnsmith",
                path: "/",
                query: "marker=puppy&max-keys=50&prefix=photos",
                headers: &[("date", "Tue, 27 Mar 2007 19:42:41 +0000")],
                signature: "htDYFYduRNen8P9ZfE/s9SuKy0U=",
            },
            Vector {
                name: "Delete, by the older form of its date",
                method: "DELETE",
                host_bucket: "",
                path: "/johnsmith/photos/puppy.jpg",
                query: "",
                headers: &[("date", "Tue, 27 Mar 2007 21:20:26 +0000")],
                signature: "lx3byBScXR6KzyMaifNkardMwNk=",
            },
            Vector {
                name: "Upload",
                method: "PUT",
                host_bucket: "static.johnsmith.net",
                path: "/db-backup.dat.gz",
                query: "",
                headers: &[
                    ("content-md5", "4gJE4saaMU4BqNR0kLY+lw=="),
                    ("content-type", "application/x-download"),
                    ("date", "Tue, 27 Mar 2007 21:06:08 +0000"),
                    ("x-amz-acl", "public-read"),
                    ("x-amz-meta-checksumalgorithm", "crc32"),
                    ("x-amz-meta-filechecksum", "0x02661779"),
                    ("x-amz-meta-reviewedby", "joe@johnsmith.net,jane@johnsmith.net"),
                ],
                signature: "ilyl83RwaSoYIEdixDQcA4OnAnc=",
            },
        ];
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let mut signer = SignerV2::new("AKIAIOSFODNN7EXAMPLE", secret);
        for vector in vectors {
            let (path, query) = (vector.path.as_bytes(), vector.query.as_bytes());
            signer.begin(vector.method, vector.host_bucket, path, query);
            for (name, value) in vector.headers {
                signer.header(name, value.as_bytes());
            }
            let expected = format!("AWS AKIAIOSFODNN7EXAMPLE:{}", vector.signature);
            assert_eq!(signer.sign(), expected, "{}", vector.name);
        }
    }

    #[test]
    fn what_names_a_part_of_an_object_is_signed_and_the_rest_is_not() {
        let mut signer = SignerV2::new("a", "s");
        signer.begin("GET", "", b"/b/k", b"encoding-type=url&uploadId=a%2Fb&uploads=&x=1");
        assert_eq!(signer.resource, b"/b/k?uploadId=a/b&uploads");
        signer.begin("GET", "b", b"/", b"max-keys=5");
        assert_eq!(signer.resource, b"/b/");
        // Each property of a bucket that is asked for.
        for property in ["object-lock", "tagging", "versioning"] {
            signer.begin("GET", "b", b"/", property.as_bytes());
            assert_eq!(signer.resource, format!("/b/?{property}").as_bytes());
        }
    }

    #[test]
    fn dates_have_their_day_of_the_week() {
        // `date -u -d @N`: 1175024202 and 951782400 and 0.
        for (second, text) in [
            (1_175_024_202, "Tue, 27 Mar 2007 19:36:42 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            let date = http_date(WallTime::from_unix_ns(second * NS_PER_SECOND));
            assert_eq!(std::str::from_utf8(&date).unwrap(), text);
        }
    }
}
