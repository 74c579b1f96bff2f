//! Host lists as people write them: commas, `{1...8}` ranges, ports, IPv6 in brackets.

use std::collections::HashSet;
use std::net::IpAddr;

use plimsoll_model::EndpointId;

use crate::Endpoint;

/// How many endpoints a list may come to.
pub const ENDPOINTS_COUNT_MAX: usize = EndpointId::COUNT_MAX;
/// The most that are named, those named again included.
const NAMED_MAX: usize = 4 * ENDPOINTS_COUNT_MAX;
/// How long a host or a pattern may be; each of its hosts takes as much.
const PATTERN_BYTES_MAX: usize = 1_024;

/// Why a text is no list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is no host at all.
    #[error("the list of hosts is empty")]
    NoHosts,
    /// Nothing stands between two commas, or before a port.
    #[error("there is an empty host in `{0}`")]
    EmptyHost(String),
    /// It starts with a scheme.
    #[error("`{0}` is a URL: give host:port, and use `tls` for https")]
    Scheme(String),
    /// It starts with the scheme of something else.
    #[error("`{0}://` is not supported; use http:// or https://")]
    OtherScheme(String),
    /// Some hosts are to be spoken to with TLS and some without.
    #[error("some hosts begin with http:// and some with https://; use one of them for all")]
    Schemes,
    /// A URL goes on behind its host and port.
    #[error("`{0}` is a host with a path; name the bucket by `bucket`, not in the URL")]
    Path(String),
    /// Something is wrong with a list that may hold a password, so that nothing of it is shown.
    #[error(
        "a host is not HOST[:PORT] (not repeated here, as it may hold a user name and password \
        before `@`); give credentials by `access_key` and `secret_key`"
    )]
    User,
    /// It holds a character that no host has.
    #[error("`{text}` is not host:port: `{character}` is out of place")]
    Character {
        /// The host as given.
        text: String,
        /// What is out of place.
        character: char,
    },
    /// Braces that are no range.
    #[error("the braces in `{0}` are no range such as {{1...8}}")]
    Braces(String),
    /// An end of a range is neither decimal nor hexadecimal.
    #[error("`{0}` is not a range of numbers such as {{1...8}}")]
    RangeEnds(String),
    /// A range whose first number is the larger one.
    #[error("the range `{0}` runs backwards")]
    RangeBackwards(String),
    /// More endpoints than [`ENDPOINTS_COUNT_MAX`].
    #[error("`{0}` expands to more than {ENDPOINTS_COUNT_MAX} hosts")]
    TooMany(String),
    /// Longer than any name with its ranges.
    #[error("`{0}...` is longer than {PATTERN_BYTES_MAX} characters, which no host is")]
    Long(String),
    /// A port that is no number from 1 to 65535.
    #[error("the port of `{0}` is not a number from 1 to 65535")]
    Port(String),
    /// An IPv6 address without brackets.
    #[error("`{0}` has several colons; write an IPv6 address in brackets, as in [::1]:9000")]
    Colons(String),
    /// Brackets that hold no IPv6 address, or are not closed.
    #[error("the brackets in `{0}` hold no IPv6 address")]
    Brackets(String),
}

/// Returns the endpoints that a comma-separated list of hosts and patterns names.
///
/// `{N...M}` stands for every number from N to M, anywhere in host or port: decimal, or hexadecimal
/// where an end is not decimal; padded with zeros to the width of M where M, or an N of several
/// digits, starts with 0. Of several patterns in one host every combination is meant, the first
/// pattern varying fastest. A host without a port gets `default_port`; a repeated endpoint counts
/// once.
///
/// Where the list may hold a password, no error repeats any of it.
pub fn expand_hosts(text: &str, default_port: u16) -> Result<Vec<Endpoint>, PatternError> {
    without_user(text, expand_list(text, default_port))
}

fn expand_list(text: &str, default_port: u16) -> Result<Vec<Endpoint>, PatternError> {
    if text.trim().is_empty() {
        return Err(PatternError::NoHosts);
    }
    let mut list = EndpointList::new(default_port);
    for pattern in text.split(',') {
        if pattern.trim().is_empty() {
            return Err(PatternError::EmptyHost(text.to_owned()));
        }
        list.add(pattern.trim())?;
    }
    Ok(list.endpoints)
}

/// Returns the endpoints that a file's text names, one host, pattern or list of them a line; blank
/// lines are skipped.
pub fn expand_lines(text: &str, default_port: u16) -> Result<Vec<Endpoint>, PatternError> {
    let mut list = EndpointList::new(default_port);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        for endpoint in expand_hosts(line, default_port)? {
            list.push(endpoint, line)?;
        }
    }
    if list.endpoints.is_empty() { Err(PatternError::NoHosts) } else { Ok(list.endpoints) }
}

/// What is spoken with hosts that are named by URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP within TLS.
    Https,
}

/// Takes the schemes off the hosts of a list, where they have any, and returns the one that they
/// have in common with the list without it; a `/` behind a host goes too.
pub fn split_scheme(text: &str) -> Result<(Option<Scheme>, String), PatternError> {
    without_user(text, split_list(text))
}

fn split_list(text: &str) -> Result<(Option<Scheme>, String), PatternError> {
    let mut found = None;
    let mut hosts = Vec::new();
    for pattern in text.split(',').map(str::trim) {
        let Some((scheme, rest)) = pattern.split_once("://") else {
            hosts.push(pattern);
            continue;
        };
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
            _ if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
            _ if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Err(PatternError::OtherScheme(scheme.to_owned()));
            }
            _ => return Err(PatternError::User),
        };
        if found.is_some_and(|before| before != scheme) {
            return Err(PatternError::Schemes);
        }
        found = Some(scheme);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        match rest.split_once(['/', '?', '#']) {
            Some((authority, _)) => return Err(PatternError::Path(authority.to_owned())),
            None => hosts.push(rest),
        }
    }
    Ok((found, hosts.join(",")))
}

/// Returns the result of reading `text`; an error shows nothing of one with an `@`, before which a
/// password may stand, whatever the error is about.
fn without_user<T>(text: &str, result: Result<T, PatternError>) -> Result<T, PatternError> {
    result.map_err(|error| if text.contains('@') { PatternError::User } else { error })
}

/// Endpoints in the order written, each once.
struct EndpointList {
    default_port: u16,
    endpoints: Vec<Endpoint>,
    seen: HashSet<Endpoint>,
    /// How many were named, each as often as it was.
    named: usize,
}

impl EndpointList {
    fn new(default_port: u16) -> Self {
        Self { default_port, endpoints: Vec::new(), seen: HashSet::new(), named: 0 }
    }

    fn add(&mut self, pattern: &str) -> Result<(), PatternError> {
        if pattern.contains("://") {
            let end = pattern.find(['?', '#']).unwrap_or(pattern.len());
            return Err(PatternError::Scheme(pattern[..end].to_owned()));
        }
        for text in expand(pattern)? {
            self.named += 1;
            if self.named > NAMED_MAX {
                return Err(PatternError::TooMany(pattern.to_owned()));
            }
            let endpoint = parse_endpoint(&text, self.default_port)?;
            self.push(endpoint, pattern)?;
        }
        Ok(())
    }

    fn push(&mut self, endpoint: Endpoint, pattern: &str) -> Result<(), PatternError> {
        if self.seen.contains(&endpoint) {
            return Ok(());
        }
        if self.endpoints.len() == ENDPOINTS_COUNT_MAX {
            return Err(PatternError::TooMany(pattern.to_owned()));
        }
        self.seen.insert(endpoint.clone());
        self.endpoints.push(endpoint);
        Ok(())
    }
}

/// Returns every text that `pattern` stands for, each at most as long as it.
fn expand(pattern: &str) -> Result<Vec<String>, PatternError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(PatternError::Long(pattern.chars().take(80).collect()));
    }
    let mut texts = vec![String::new()];
    let mut rest = pattern;
    let braces = || PatternError::Braces(pattern.to_owned());
    while let Some(open) = rest.find('{') {
        let len = rest[open..].find('}').ok_or_else(braces)?;
        let range = Range::parse(&rest[open..=open + len], pattern)?;
        let count = range.count().checked_mul(texts.len() as u64);
        if count.is_none_or(|count| count > ENDPOINTS_COUNT_MAX as u64) {
            return Err(PatternError::TooMany(pattern.to_owned()));
        }
        let literal = checked_literal(&rest[..open]).ok_or_else(braces)?;
        // The new range is the outer loop, so that the first one varies fastest.
        let numbers = (range.first..=range.last).map(|number| range.text(number));
        texts = numbers
            .flat_map(|number| texts.iter().map(move |text| format!("{text}{literal}{number}")))
            .collect();
        rest = &rest[open + len + 1..];
    }
    let literal = checked_literal(rest).ok_or_else(braces)?;
    texts.iter_mut().for_each(|text| text.push_str(literal));
    Ok(texts)
}

/// Returns `text` unless a brace is left over in it.
fn checked_literal(text: &str) -> Option<&str> {
    (!text.contains(['{', '}'])).then_some(text)
}

struct Range {
    first: u64,
    last: u64,
    hexadecimal: bool,
    /// 0 for numbers as they are.
    width: usize,
}

impl Range {
    /// Parses a range with its braces.
    fn parse(text: &str, pattern: &str) -> Result<Self, PatternError> {
        let inner = &text[1..text.len() - 1];
        let (from, to) =
            inner.split_once("...").ok_or_else(|| PatternError::Braces(pattern.to_owned()))?;
        let ends_in = |radix| Some((number(from, radix)?, number(to, radix)?));
        let decimal = ends_in(10);
        let (first, last) = decimal
            .or_else(|| ends_in(16))
            .ok_or_else(|| PatternError::RangeEnds(text.to_owned()))?;
        if first > last {
            return Err(PatternError::RangeBackwards(text.to_owned()));
        }
        let padded = (from.starts_with('0') && from.len() > 1) || to.starts_with('0');
        let width = if padded { to.len() } else { 0 };
        Ok(Self { first, last, hexadecimal: decimal.is_none(), width })
    }

    fn count(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    fn text(&self, number: u64) -> String {
        let width = self.width;
        if self.hexadecimal { format!("{number:0width$x}") } else { format!("{number:0width$}") }
    }
}

/// Parses digits only: no sign, no white space.
fn number(text: &str, radix: u32) -> Option<u64> {
    let digits_only = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    digits_only.then(|| u64::from_str_radix(text, radix).ok()).flatten()
}

/// Splits off the address behind `@`, where it is one: the form of [`Endpoint::label`].
fn split_address(text: &str) -> (&str, Option<IpAddr>) {
    let parts =
        text.split_once('@').and_then(|(name, address)| Some((name, address.parse().ok()?)));
    parts.map_or((text, None), |(name, address)| (name, Some(address)))
}

fn parse_endpoint(whole: &str, default_port: u16) -> Result<Endpoint, PatternError> {
    let (text, address) = split_address(whole);
    let out_of_place = |c: &char| c.is_whitespace() || c.is_control() || "/@?#\\\"".contains(*c);
    if let Some(character) = text.chars().find(out_of_place) {
        // What follows these is no host, and may be a token.
        let end = text.find(['?', '#']).map_or(text.len(), |at| at + 1);
        return Err(PatternError::Character { text: text[..end].to_owned(), character });
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => split_bracketed(text, rest)?,
        None if text.contains(['[', ']']) => return Err(PatternError::Brackets(text.to_owned())),
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(PatternError::Colons(text.to_owned()));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(PatternError::EmptyHost(text.to_owned()));
    }
    let port = match port {
        None => default_port,
        Some(port) => number(port, 10)
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0)
            .ok_or_else(|| PatternError::Port(text.to_owned()))?,
    };
    Ok(Endpoint { host: host.to_owned(), port, address })
}

/// Splits `[address]` or `[address]:port`, of which `rest` is what follows the first bracket.
fn split_bracketed<'a>(
    text: &str,
    rest: &'a str,
) -> Result<(&'a str, Option<&'a str>), PatternError> {
    let wrong = || PatternError::Brackets(text.to_owned());
    let (host, tail) = rest.split_once(']').ok_or_else(wrong)?;
    // A zone such as `%eth0` may follow the address.
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    address.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
    match tail.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if tail.is_empty() => Ok((host, None)),
        None => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        expand_hosts(text, 9000).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pattern_does_not_stand_for_more_text_than_memory_holds() {
        let rest = "x".repeat(16 << 20);
        for text in [format!("{{1...60000}}{rest}"), format!("{{1...{}9}}", "0".repeat(16 << 20))] {
            assert!(matches!(expand_hosts(&text, 1), Err(PatternError::Long(_))));
        }
    }

    #[test]
    fn every_form_of_pattern_expands() {
        for (text, expected) in [
            ("a", "a:9000"),
            (" a , b:80 ", "a:9000 b:80"),
            ("h{1...3}", "h1:9000 h2:9000 h3:9000"),
            ("h{9...11}.x:7", "h9.x:7 h10.x:7 h11.x:7"),
            ("h:{9000...9002}", "h:9000 h:9001 h:9002"),
            ("h{01...03}:1", "h01:1 h02:1 h03:1"),
            ("h{1...03}:1", "h01:1 h02:1 h03:1"),
            ("h{08...11}:1", "h08:1 h09:1 h10:1 h11:1"),
            // The width is that of the range's last number.
            ("h{008...11}:1", "h08:1 h09:1 h10:1 h11:1"),
            ("h{8...0011}:1", "h0008:1 h0009:1 h0010:1 h0011:1"),
            // A single 0 is a number, not padding.
            ("h{0...10}:1", "h0:1 h1:1 h2:1 h3:1 h4:1 h5:1 h6:1 h7:1 h8:1 h9:1 h10:1"),
            ("h{8...b}:1", "h8:1 h9:1 ha:1 hb:1"),
            ("h{E...10a}:1", ""),
            ("h{0e...11}:1", "h0e:1 h0f:1 h10:1 h11:1"),
            ("{1...2}h{5...6}:1", "1h5:1 2h5:1 1h6:1 2h6:1"),
            ("h{1...2}{3...4}:1", "h13:1 h23:1 h14:1 h24:1"),
            ("h{1...2}:{8...9}", "h1:8 h2:8 h1:9 h2:9"),
            ("10.0.0.{4...5}", "10.0.0.4:9000 10.0.0.5:9000"),
            ("[::1]", "[::1]:9000"),
            ("[fe80::{a...b}]:70", "[fe80::a]:70 [fe80::b]:70"),
            ("[fe80::1%eth0]:70", "[fe80::1%eth0]:70"),
            ("a,b,a:9000,h{1...2},h2", "a:9000 b:9000 h1:9000 h2:9000"),
            ("a@10.0.0.1,a@::1,a:7@10.0.0.1", "a:9000@10.0.0.1 a:9000@::1 a:7@10.0.0.1"),
        ] {
            if expected.is_empty() {
                // 0xe to 0x10a: 253 hosts, too many to write down.
                let all = hosts(text);
                assert_eq!(
                    (all.len(), all[0].as_str(), all[252].as_str()),
                    (253, "he:1", "h10a:1")
                );
                continue;
            }
            assert_eq!(hosts(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn the_host_of_an_endpoint_has_no_brackets() {
        let endpoint = Endpoint::new("::1", 9);
        assert_eq!(expand_hosts("[::1]:9", 9000), Ok(vec![endpoint]));
    }

    #[test]
    fn what_is_no_host_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "the list of hosts is empty"),
            ("  ", "the list of hosts is empty"),
            ("a,,b", "there is an empty host in `a,,b`"),
            ("a,", "there is an empty host in `a,`"),
            (":9000", "there is an empty host in `:9000`"),
            ("https://a:9", "`https://a:9` is a URL: give host:port, and use `tls` for https"),
            ("http://a", "`http://a` is a URL: give host:port, and use `tls` for https"),
            ("a/b", "`a/b` is not host:port: `/` is out of place"),
            ("a b", "`a b` is not host:port: ` ` is out of place"),
            ("h{9...1}", "the range `{9...1}` runs backwards"),
            ("h{4...02}", "the range `{4...02}` runs backwards"),
            ("h{1..3}", "the braces in `h{1..3}` are no range such as {1...8}"),
            ("h{1...3", "the braces in `h{1...3` are no range such as {1...8}"),
            ("h1...3}", "the braces in `h1...3}` are no range such as {1...8}"),
            ("h{1...3}}", "the braces in `h{1...3}}` are no range such as {1...8}"),
            ("h{{1...3}}", "`{{1...3}` is not a range of numbers such as {1...8}"),
            ("h{f...z}", "`{f...z}` is not a range of numbers such as {1...8}"),
            ("h{-1...1}", "`{-1...1}` is not a range of numbers such as {1...8}"),
            ("h{1....4}", "`{1....4}` is not a range of numbers such as {1...8}"),
            ("h{...}", "`{...}` is not a range of numbers such as {1...8}"),
            ("h{0...65535}", "`h{0...65535}` expands to more than 4096 hosts"),
            (
                // The same again and again.
                &*vec!["h{1...999}"; 17].join(","),
                "`h{1...999}` expands to more than 4096 hosts",
            ),
            (
                "h{0...18446744073709551615}{1...9}",
                "`h{0...18446744073709551615}{1...9}` expands to more than 4096 hosts",
            ),
            ("h:0", "the port of `h:0` is not a number from 1 to 65535"),
            ("h:65536", "the port of `h:65536` is not a number from 1 to 65535"),
            ("h:+9", "the port of `h:+9` is not a number from 1 to 65535"),
            ("h:", "the port of `h:` is not a number from 1 to 65535"),
            (
                "::1",
                "`::1` has several colons; write an IPv6 address in brackets, as in [::1]:9000",
            ),
            ("[::1", "the brackets in `[::1` hold no IPv6 address"),
            ("[a]:9", "the brackets in `[a]:9` hold no IPv6 address"),
            ("[::1]9", "the brackets in `[::1]9` hold no IPv6 address"),
        ] {
            let refusal = expand_hosts(text, 9000).map_err(|error| error.to_string());
            assert_eq!(refusal, Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_file_has_one_pattern_a_line() {
        let endpoints = expand_lines("a\n\n  b{1...2}:80\r\na,c\n", 9000).unwrap();
        let texts: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["a:9000", "b1:80", "b2:80", "c:9000"]);
        assert_eq!(expand_lines("\n \n", 9000), Err(PatternError::NoHosts));
        assert_eq!(
            expand_lines("a\nb{2...1}\n", 9000),
            Err(PatternError::RangeBackwards("{2...1}".to_owned()))
        );
    }

    #[test]
    fn no_error_shows_what_may_be_a_password() {
        for text in [
            "AK:SECRET@h",
            "h,user:SECRET@h",
            "user:SE,SECRET@h:9",
            "AK:SECRET@10.0.0.1",
            "http://AK:SECRET@h:9/b",
            "https://h,ftp://AK:SECRET@h",
            "AK/SECRET@h{1...x}",
            "h?token=SECRET",
            "https://h/?token=SECRET",
            "http://h#SECRET",
        ] {
            let both = [split_scheme(text).err(), expand_hosts(text, 80).err()];
            let said: Vec<String> = both.iter().flatten().map(ToString::to_string).collect();
            assert!(!said.is_empty(), "{text} is refused");
            assert!(said.iter().all(|said| !said.contains("SECRET")), "{text}: {said:?}");
        }
    }

    #[test]
    fn a_scheme_is_taken_off_a_list() {
        for (text, scheme, hosts) in [
            ("a:9,b", None, "a:9,b"),
            ("https://h{1...4}:9000/", Some(Scheme::Https), "h{1...4}:9000"),
            (" HTTP://a , b ", Some(Scheme::Http), "a,b"),
            ("https://a@10.0.0.1,https://[::1]", Some(Scheme::Https), "a@10.0.0.1,[::1]"),
        ] {
            assert_eq!(split_scheme(text), Ok((scheme, hosts.to_owned())), "{text}");
        }
        for (text, reason) in [
            ("http://a,https://b", "some hosts begin with http:// and some with https://"),
            ("s3://b", "`s3://` is not supported"),
            ("https://h/bucket", "`h` is a host with a path"),
        ] {
            let error = split_scheme(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
