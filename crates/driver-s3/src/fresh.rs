//! What nobody else has: keys and letters out of the kernel's randomness. They are secrets or
//! names, not choices of a run, so no seed fixes them.

use std::io::{self, Read as _};

use crate::Encryption;

/// Returns encryption with a key of our own that nobody else has.
pub fn own_key() -> io::Result<Encryption> {
    let mut key = [0; 32];
    fill(&mut key)?;
    Ok(Encryption::SseC { key })
}

/// Returns that many random lower-case letters.
pub fn letters(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect())
}

#[expect(clippy::disallowed_methods, reason = "the kernel's randomness is a file")]
fn fill(bytes: &mut [u8]) -> io::Result<()> {
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}
