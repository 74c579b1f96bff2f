//! The embedded store: an S3 server of our own on this machine's cores, for who names none. It
//! listens on loopback only and lives as long as its [`Oracle`].

use plimsoll_driver::MissingRoot;
use plimsoll_driver_s3::{Credentials, S3Config};
use plimsoll_http::Endpoint;
use plimsoll_model::WallTime;
use plimsoll_oracle::{Oracle, OracleConfig, OracleError, Script};

use crate::machine;

/// Its access key and its secret key.
pub const KEY: &str = "plimsoll-embedded";

/// Starts it; it does as the script says.
pub fn start(script: Option<Script>, seed: u64) -> Result<Oracle, OracleError> {
    Oracle::start(OracleConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        access_key: KEY.to_owned(),
        secret_key: KEY.to_owned(),
        capacity_bytes: capacity_bytes(),
        threads: threads(),
        anonymous: false,
        domain: None,
        md5_etags: false,
        tls: None,
        script,
        seed,
    })
}

/// Returns how much it holds.
pub fn capacity_bytes() -> u64 {
    machine::memory_usable_bytes() / 2
}

/// Returns how many threads serve; the workers get the rest.
fn threads() -> usize {
    (machine::cores() / 2).max(1)
}

/// Returns how many cores are free beside it, or without it, but one at least.
pub fn cores_free(is_embedded: bool) -> usize {
    let cores = machine::cores();
    if is_embedded { (cores - threads().min(cores)).max(1) } else { cores }
}

/// Returns how it is reached.
pub fn config(oracle: &Oracle, bucket: &str, wall_epoch: WallTime) -> S3Config {
    let addr = oracle.addr();
    let endpoint = Endpoint::new(addr.ip().to_string(), addr.port());
    S3Config {
        credentials: Credentials::keys(KEY, KEY, None),
        missing_bucket: MissingRoot::CreateAndKeep,
        ..S3Config::new(vec![endpoint], bucket, wall_epoch)
    }
}
