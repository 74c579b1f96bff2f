//! What nobody else has: the beginning of names that no seed may fix.

use std::io;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};

/// Returns random digits by which what one process writes is told from what others do.
pub(crate) fn digits() -> io::Result<String> {
    let mut bytes = [0; 6];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
