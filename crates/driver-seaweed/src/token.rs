//! Tokens (JWT, RFC 7519) that let write or read one file, signed by HMAC with SHA-256.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_model::WallTime;

/// How long a token made here is valid: longer than any operation, so that no upload ends after it.
const LIFE_SECONDS: u64 = 120;

/// `{"alg":"HS256","typ":"JWT"}`
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// Returns a token that is valid from `now` on: for one file, or, as a filer takes it, for all.
pub(crate) fn sign(key: &hmac::Key, fid: Option<&str>, now: WallTime) -> String {
    let expires = now.as_unix_ns() / 1_000_000_000 + LIFE_SECONDS;
    let claims = match fid {
        Some(fid) => format!(r#"{{"exp":{expires},"fid":"{fid}"}}"#),
        None => format!(r#"{{"exp":{expires}}}"#),
    };
    let mut token = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
    let tag = hmac::sign(key, token.as_bytes());
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(tag.as_ref(), &mut token);
    token
}

/// Returns when a token ends to be valid, in seconds of Unix time, where it says so.
pub(crate) fn expires_at(token: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Claims {
        exp: u64,
    }

    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    serde_json::from_slice::<Claims>(&claims).ok().map(|claims| claims.exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_when_it_ends() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let now = WallTime::from_unix_ns(1_700_000_000_000_000_000);
        let token = sign(&key, Some("3,01637037d6"), now);
        assert_eq!(expires_at(&token), Some(1_700_000_120));
        // Worked out with Python's hmac and base64 modules.
        let claims = "eyJleHAiOjE3MDAwMDAxMjAsImZpZCI6IjMsMDE2MzcwMzdkNiJ9";
        assert_eq!(token, format!("{HEADER}.{claims}.ClnNyfoCpX2tVl5CgHHZwdRc1wE0AFDdGUh5jbpWFrI"));
        for no_token in ["", "a.b.c", "a", "..", "e30.e30.x"] {
            assert_eq!(expires_at(no_token), None, "{no_token}");
        }
    }
}
