//! A store as one URL, `http[s]://HOST[:PORT][/BUCKET]`. It is taken apart before anything can be
//! said of it, and what may be a password or a token is in no error.

use anyhow::{Result, bail};

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoreUrl<'a> {
    pub(crate) tls: bool,
    /// Host and port as written.
    pub(crate) authority: &'a str,
    /// Empty where it names none.
    pub(crate) bucket: &'a str,
}

impl<'a> StoreUrl<'a> {
    pub(crate) fn parse(url: &'a str) -> Result<Self> {
        if url.contains('@') {
            bail!(
                "the URL (not repeated here) holds credentials before `@`; give them with \
                 --access-key and --secret-key"
            );
        }
        let (shown, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
        let (tls, place) = match shown.split_once("://") {
            Some(("http", place)) => (false, place),
            Some(("https", place)) => (true, place),
            _ => bail!("`{shown}` does not begin with http:// or https://"),
        };
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        if authority.is_empty() {
            bail!("`{shown}` names no host");
        }
        let bucket = path.trim_end_matches('/');
        if !rest.is_empty() || bucket.contains('/') {
            bail!("`{shown}` names more than a bucket; keys are made below plimsoll/ in it");
        }
        Ok(Self { tls, authority, bucket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_shows_what_may_be_secret() {
        for url in [
            "http://AK:SECRET@h/b",
            "AK:SECRET@h",
            "ftp://u:SECRET@h",
            "https://h/b?X-Amz-Signature=SECRET",
            "http://h#SECRET",
            "https://h/b/k?token=SECRET",
            "h/b?token=SECRET",
            "http://u:pa?ss#SECRET@h",
        ] {
            let error = format!("{:#}", StoreUrl::parse(url).unwrap_err());
            assert!(!error.contains("SECRET") && !error.contains("AK"), "{url}: {error}");
        }
        let error = StoreUrl::parse("https://h/b?X=SECRET").unwrap_err().to_string();
        assert!(error.starts_with("`https://h/b` names more than a bucket"), "{error}");
    }
}
