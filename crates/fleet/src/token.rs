//! The line that lets an agent join.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::pki::{Fingerprint, Identity};

/// What a token begins with.
const BEGINS: &str = "plimsoll1.";
/// The longest token.
const BYTES_MAX: usize = 8 << 10;

/// So many bytes at the end tell whether all before them are as they were.
const CHECK_BYTES: usize = 4;

/// Returns the first bytes of the SHA-256 of the others.
fn check_of(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = digest::digest(&digest::SHA256, bytes);
    *digest.as_ref().first_chunk().expect("a digest is longer")
}

/// Lets an agent join: where the fleet is, how it is known, and who asks to join.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The addresses of its server, `HOST:PORT`.
    pub servers: Vec<String>,
    /// The fingerprint of its authority.
    pub authority: Fingerprint,
    /// Which of its tokens it is.
    pub number: u32,
    /// What whoever asks to join shows.
    pub identity: Identity,
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "that is not a token: copy the whole line that `plimsoll fleet up` prints, which begins with \
     `{BEGINS}`"
)]
pub struct TokenError;

impl Token {
    /// Returns what shows that somebody has it: a digest of its key, by which the key is not found.
    pub(crate) fn proof(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &self.identity.key))
    }

    /// Returns it as one word.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        bytes.extend(self.authority);
        bytes.extend(self.number.to_be_bytes());
        let servers = self.servers.join(",");
        let fields: [&[u8]; 3] =
            [servers.as_bytes(), &self.identity.certificate, &self.identity.key];
        for field in fields {
            let length = u16::try_from(field.len()).expect("no field of a token is that long");
            bytes.extend(length.to_be_bytes());
            bytes.extend(field);
        }
        bytes.extend(check_of(&bytes));
        format!("{BEGINS}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns the token that a text is.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let coded = text.trim().strip_prefix(BEGINS).ok_or(TokenError)?;
        if coded.len() > BYTES_MAX {
            return Err(TokenError);
        }
        let bytes = URL_SAFE_NO_PAD.decode(coded).map_err(|_| TokenError)?;
        let (bytes, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(TokenError)?;
        if *check != check_of(bytes) {
            return Err(TokenError);
        }
        let (authority, rest) = bytes.split_first_chunk::<32>().ok_or(TokenError)?;
        let (number, mut rest) = rest.split_first_chunk::<4>().ok_or(TokenError)?;
        let mut field = || {
            let (length, after) = rest.split_first_chunk::<2>().ok_or(TokenError)?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (field, after) = after.split_at_checked(length).ok_or(TokenError)?;
            rest = after;
            Ok(field.to_vec())
        };
        let servers = String::from_utf8(field()?).map_err(|_| TokenError)?;
        let identity = Identity { certificate: field()?, key: field()? };
        let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
        let is_whole = rest.is_empty() && servers.iter().all(|server| !server.is_empty());
        if !is_whole {
            return Err(TokenError);
        }
        let number = u32::from_be_bytes(*number);
        Ok(Self { servers, authority: *authority, number, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_comes_back_whole() {
        let identity = Identity { certificate: vec![7; 300], key: vec![9; 138] };
        let servers = vec!["10.0.0.1:4222".to_owned(), "[::1]:4222".to_owned()];
        let token = Token { servers, authority: [3; 32], number: 5, identity };
        let text = token.to_text();
        assert!(text.len() < 750 && !text.contains(char::is_whitespace), "{}", text.len());
        assert!(Token::parse(&format!(" {text}\n")).is_ok_and(|read| read == token));
        let cut = &text[..text.len() - 1];
        let longer = format!("{text}AA");
        for bad in ["", "plimsoll1.", "plimsoll2.AAAA", cut, &longer, "plimsoll1.%%"] {
            assert!(Token::parse(bad).is_err(), "{bad}");
        }
        // Wherever a letter is another.
        for at in BEGINS.len()..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
            assert!(Token::parse(&String::from_utf8(wrong).unwrap()).is_err(), "{at}");
        }
    }
}
