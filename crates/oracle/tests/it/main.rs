//! The oracle over loopback, asked by a client that shares no code with it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod access;
mod client;
mod hostile;
mod listing;
mod objects;
mod python;
mod script;
mod uploads;
mod versions;

use std::net::SocketAddr;

use plimsoll_oracle::{Oracle, OracleConfig};

use client::{Client, Payload};

const KEYS: (&str, &str) = ("test-key", "test-secret");

fn config() -> OracleConfig {
    OracleConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        access_key: KEYS.0.to_owned(),
        secret_key: KEYS.1.to_owned(),
        capacity_bytes: 1 << 30,
        threads: 2,
        anonymous: false,
        domain: None,
        md5_etags: false,
        tls: None,
        script: None,
        seed: 0,
    }
}

fn client(oracle: &Oracle) -> Client {
    let addr = oracle.addr();
    Client { addr, keys: Some(KEYS), ahead_secs: 0, host: None, payload: Payload::Signed }
}

/// Starts an oracle with one bucket called `bucket`.
fn start(config: OracleConfig) -> (Oracle, Client) {
    let oracle = Oracle::start(config).unwrap();
    let client = client(&oracle);
    assert_eq!(client.request("PUT", "/bucket", &[], b"").status, 200);
    (oracle, client)
}
