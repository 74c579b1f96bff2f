//! What an address of a store says of where it is.

use std::net::IpAddr;

/// Returns the host of an address of a store, which may have a scheme, a port and a path.
pub fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.split(['/', '?']).next().unwrap_or_default();
    match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => rest.rsplit_once(':').map_or(rest, |(host, _)| host),
    }
}

/// Tells whether an address is that of the machine which uses it, whichever that is.
pub fn is_loopback(address: &str) -> bool {
    let host = host_of(address);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_every_form_is_found() {
        for (address, host, own) in [
            ("127.0.0.1:9000", "127.0.0.1", true),
            ("https://[::1]:9000/path", "::1", true),
            ("http://localhost", "localhost", true),
            ("store-1:9000", "store-1", false),
            ("10.1.2.3", "10.1.2.3", false),
            ("https://s3.example.com/?x=[::1]", "s3.example.com", false),
            ("", "", false),
        ] {
            assert_eq!((host_of(address), is_loopback(address)), (host, own), "{address}");
        }
    }
}
