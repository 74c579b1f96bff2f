//! Tokens (JWT, RFC 7519) by HMAC with SHA-256: made by masters, checked by volume servers.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_model::WallTime;
use serde_json::{Value, json};

/// How long tokens to write are good.
pub(crate) const WRITE_LIFE_S: u64 = 10;
/// How long tokens to read are good.
pub(crate) const READ_LIFE_S: u64 = 60;

/// A key that tokens are signed with.
#[derive(Clone, Debug)]
pub(crate) struct Key(hmac::Key);

impl Key {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns a token for what `names` names, which ends at `expires`, in seconds of Unix time.
    pub(crate) fn sign(&self, names: &str, expires: u64) -> String {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let claims = URL_SAFE_NO_PAD.encode(json!({"fid": names, "exp": expires}).to_string());
        let signed = format!("{header}.{claims}");
        let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, signed.as_bytes()));
        format!("{signed}.{tag}")
    }

    /// Tells whether a token lets do something about what `names` names.
    pub(crate) fn admits(&self, token: &str, names: &str, now: WallTime) -> bool {
        let Some((signed, tag)) = token.rsplit_once('.') else { return false };
        let Ok(tag) = URL_SAFE_NO_PAD.decode(tag) else { return false };
        let is_ours = hmac::verify(&self.0, signed.as_bytes(), &tag).is_ok();
        let claims = signed.split_once('.').and_then(|(_, claims)| {
            serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
        });
        let Some(claims) = claims.filter(|_| is_ours) else { return false };
        let is_valid = claims["exp"].as_u64().is_some_and(|end| seconds(now) < end);
        is_valid && claims["fid"].as_str() == Some(names)
    }
}

/// Returns the seconds of Unix time.
pub(crate) fn seconds(time: WallTime) -> u64 {
    time.as_unix_ns() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_file_and_a_while() {
        let key = Key::new(b"secret");
        let now = WallTime::from_unix_ns(1_700_000_000_000_000_000);
        let token = key.sign("3,01637037d6", seconds(now) + 10);
        assert!(key.admits(&token, "3,01637037d6", now));
        assert!(!key.admits(&token, "3,02637037d6", now));
        assert!(!key.admits(
            &token,
            "3,01637037d6",
            WallTime::from_unix_ns(1_700_000_010 * 1_000_000_000)
        ));
        assert!(!Key::new(b"other").admits(&token, "3,01637037d6", now));
        for no_token in ["", "a.b.c", "a", ".."] {
            assert!(!key.admits(no_token, "3,01637037d6", now), "{no_token}");
        }
        // Worked out with Python's hmac and base64 modules, its claims in another order.
        let foreign = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
                       eyJleHAiOjE3MDAwMDAxMjAsImZpZCI6IjMsMDE2MzcwMzdkNiJ9.\
                       ClnNyfoCpX2tVl5CgHHZwdRc1wE0AFDdGUh5jbpWFrI";
        assert!(key.admits(foreign, "3,01637037d6", now));
    }
}
