//! Addresses `http(s)://[USER@]HOST[:PORT][/PATH][?QUERY]`. No message about one shows what it may
//! keep secret.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use plimsoll_model::Secret;

use crate::Endpoint;

/// The port of plain HTTP.
pub const PORT_PLAIN: u16 = 80;
/// The port of HTTP over TLS.
pub const PORT_TLS: u16 = 443;

/// An address.
#[derive(PartialEq, Eq)]
pub struct Url<'a> {
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// What stands before `@`, as written.
    pub user: Option<&'a str>,
    /// Host and port.
    pub endpoint: Endpoint,
    /// From the first `/` on, as written; empty without one.
    pub path: &'a str,
    /// What stands behind `?`, as written.
    pub query: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// Reads an address; the error says what is wrong with it without repeating it.
    pub fn parse(text: &'a str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err("the address does not begin with http:// or https://"),
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the address holds a blank or a character that is not plain ASCII");
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        // A token may hold `/`, so its end is looked for first.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority)?;
        let port = port.unwrap_or(if tls { PORT_TLS } else { PORT_PLAIN });
        Ok(Self { tls, user, endpoint: Endpoint::new(host, port), path, query })
    }
}

/// Shorter parts of an address are not looked for in other texts: they would stand in many words.
const SECRET_BYTES_MIN: usize = 5;

impl Url<'_> {
    /// Returns what is secret of it, in each form in which others may repeat it: who stands before
    /// `@`, and what stands behind `?`.
    pub fn secrets(&self) -> Vec<Secret> {
        let user = self.user.map(|user| percent_decode_str(user).decode_utf8_lossy().into_owned());
        let query = self.query.unwrap_or_default();
        let values =
            query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        let of_query = [query].into_iter().chain(values).map(str::to_owned);
        long_enough(of_query.chain(user.iter().flat_map(|user| forms_of_user(user))))
    }
}

/// Returns what names a user, `USER:PASSWORD` or a token, in each form in which it is sent or may
/// be repeated.
pub(crate) fn forms_of_user(user: &str) -> [String; 3] {
    let password = user.split_once(':').map_or(user, |(_, password)| password);
    [user.to_owned(), BASE64_STANDARD.encode(user), password.to_owned()]
}

/// Returns those texts that are looked for in others.
pub(crate) fn long_enough(texts: impl Iterator<Item = String>) -> Vec<Secret> {
    texts.filter(|text| text.len() >= SECRET_BYTES_MIN).map(Secret::from).collect()
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("an IPv6 address has no end, `]`")?;
            (host, rest.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("the address names no host");
    }
    let port = port.map(str::parse).transpose();
    Ok((host, port.map_err(|_| "the port is not a number from 1 to 65535")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_of_an_address_is_known_in_the_forms_it_is_sent_in() {
        let secrets = |text: &str| -> Vec<String> {
            let all = Url::parse(text).unwrap().secrets();
            all.iter().map(|secret| secret.expose().to_owned()).collect()
        };
        assert_eq!(secrets("http://h/a"), [""; 0]);
        assert_eq!(secrets("http://token@h"), ["token", "dG9rZW4=", "token"]);
        assert_eq!(
            secrets("https://u:pass%20word@h/a?key=value&b=1"),
            ["key=value&b=1", "value", "u:pass word", "dTpwYXNzIHdvcmQ=", "pass word"]
        );
    }

    #[test]
    fn addresses_and_their_parts() {
        let url = Url::parse("https://tok/en==@h.example:8086/b/o?a=1&b=2").ok().unwrap();
        assert!(url.tls && url.user == Some("tok/en=="));
        assert_eq!(url.endpoint, Endpoint::new("h.example", 8086));
        assert_eq!((url.path, url.query), ("/b/o", Some("a=1&b=2")));
        let url = Url::parse("http://[::1]").ok().unwrap();
        assert!(!url.tls && url.user.is_none() && url.path.is_empty() && url.query.is_none());
        assert_eq!(url.endpoint, Endpoint::new("::1", 80));
        assert_eq!(Url::parse("https://h/x").ok().unwrap().endpoint.port, 443);
        for wrong in ["h:1", "ftp://h", "http://", "http://h:x/", "http://[::1", "http://a b"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
