//! Limits on concurrent password attempts, so that guessing locks nobody else out.
//!
//! A bcrypt hash takes a core for tens of milliseconds, so few are computed concurrently. Attempts
//! are limited by peer address, and by user within it: a guesser fills its own share and gets 429,
//! while other users and other addresses still get their turn. A password that was right before
//! costs no hash and does not come here.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::refused::Refused;
use crate::held::{Held, Hold};

/// Hashes computed concurrently.
const HASHES_AT_ONCE: usize = 2;
/// Attempts in flight from one address.
const OF_ADDRESS_MAX: usize = 16;
/// Of these, for one user.
const OF_USER_MAX: usize = 4;

/// The attempts in flight.
pub(crate) struct Guesses {
    of_addresses: Arc<Held<IpAddr>>,
    of_users: Arc<Held<(IpAddr, String)>>,
    hashes: Semaphore,
}

/// An attempt in flight; a wrong one holds it until its pause is over.
pub(crate) struct Guess<'g> {
    of: &'g Guesses,
    _holds: (Hold<IpAddr>, Hold<(IpAddr, String)>),
}

impl Default for Guesses {
    fn default() -> Self {
        let (of_addresses, of_users) = Default::default();
        Self { of_addresses, of_users, hashes: Semaphore::new(HASHES_AT_ONCE) }
    }
}

impl Guesses {
    /// Begins an attempt, unless this address or this user already has too many in flight.
    pub(crate) fn begin(&self, peer: IpAddr, user: &str) -> Result<Guess<'_>, Refused> {
        let of_user = self.of_users.take((peer, user.to_owned()), OF_USER_MAX);
        let holds = of_user.and_then(|of_user| {
            let of_address = self.of_addresses.take(peer, OF_ADDRESS_MAX)?;
            Some((of_address, of_user))
        });
        let busy = || {
            Refused::busy(
                "too many passwords are being tried from this address: try again in a second",
            )
        };
        Ok(Guess { of: self, _holds: holds.ok_or_else(busy)? })
    }
}

impl Guess<'_> {
    /// Waits for permission to compute a hash.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, Refused> {
        self.of.hashes.acquire().await.map_err(|_| Refused::internal())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_guesser_locks_out_neither_other_users_nor_other_addresses() {
        let guesses = Guesses::default();
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let try_all = |last, users: &[&str]| -> Vec<Guess<'_>> {
            users.iter().filter_map(|user| guesses.begin(address(last), user).ok()).collect()
        };
        let of_alice = try_all(1, &["alice"; 9]);
        assert_eq!(of_alice.len(), OF_USER_MAX);
        assert_eq!(try_all(1, &["bob"]).len(), 1, "another user, at the same address");
        let names: Vec<String> = (0..99).map(|name| name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let of_many = try_all(1, &names);
        assert_eq!(of_alice.len() + of_many.len(), OF_ADDRESS_MAX);
        assert_eq!(try_all(2, &["alice"]).len(), 1, "another address, the same user");
        drop(of_alice);
        assert_eq!(try_all(1, &["alice"]).len(), 1, "who has been answered makes room");
    }
}
