//! Addresses as SeaweedFS writes them: `host:port`, and `host:port.grpcport` where the port of gRPC
//! is not the one of HTTP plus 10000.

use std::fmt;
use std::str::FromStr;

use plimsoll_http::Endpoint;

/// What lies between a server's port of HTTP and its port of gRPC, where nobody says otherwise.
const GRPC_ABOVE: u16 = 10_000;

/// A server with its two ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Where it speaks HTTP.
    pub http: Endpoint,
    /// Its port of gRPC.
    pub grpc_port: u16,
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has not the form.
    #[error("`{0}` is not an address such as host:9333 or host:9333.19333")]
    Form(String),
    /// No port is so high.
    #[error(
        "`{0}` leaves no port for gRPC, which is {GRPC_ABOVE} above; name it: host:60000.60001"
    )]
    NoGrpcPort(String),
}

impl ServerAddress {
    /// Returns the server whose port of gRPC is the usual one, if there is such a port.
    pub fn new(host: &str, port: u16, grpc_port: Option<u16>) -> Option<Self> {
        let grpc_port = grpc_port.or_else(|| port.checked_add(GRPC_ABOVE))?;
        Some(Self { http: Endpoint::new(host, port), grpc_port })
    }

    /// Returns where it speaks gRPC.
    pub fn grpc(&self) -> Endpoint {
        Endpoint { port: self.grpc_port, ..self.http.clone() }
    }

    /// Returns whether its port of gRPC is the one that nobody needs to name.
    pub(crate) fn has_usual_grpc_port(&self) -> bool {
        self.http.port.checked_add(GRPC_ABOVE) == Some(self.grpc_port)
    }
}

impl ServerAddress {
    /// Returns the volume server of an address that a master named. Its port of gRPC is told apart;
    /// until it is, it is the usual one, or 0 where there is none so high.
    pub(crate) fn of_volume_server(address: &str, grpc_port: Option<u16>) -> Option<Self> {
        let (http, named) = Self::parts(address).ok()?;
        let usual = || http.port.checked_add(GRPC_ABOVE).unwrap_or(0);
        let grpc_port = grpc_port.or(named).unwrap_or_else(usual);
        Some(Self { http, grpc_port })
    }

    /// Reads an address, whose port of gRPC may be left to be worked out.
    fn parts(text: &str) -> Result<(Endpoint, Option<u16>), AddressError> {
        let form = || AddressError::Form(text.chars().take(80).collect());
        let (host, ports) = text.trim().rsplit_once(':').ok_or_else(form)?;
        let (port, grpc) = match ports.split_once('.') {
            Some((port, grpc)) => (port, Some(grpc)),
            None => (ports, None),
        };
        let port_of = |text: &str| match text.bytes().all(|digit| digit.is_ascii_digit()) {
            true => text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(form),
            false => Err(form()),
        };
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inside) if inside.contains(':') => inside,
            None if !host.contains([':', '[', ']']) => host,
            _ => return Err(form()),
        };
        let is_name = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ', ',']);
        if !is_name {
            return Err(form());
        }
        let grpc = grpc.map(port_of).transpose()?;
        Ok((Endpoint::new(host, port_of(port)?), grpc))
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (http, grpc_port) = Self::parts(text)?;
        let grpc_port = grpc_port.or_else(|| http.port.checked_add(GRPC_ABOVE));
        let missing = || AddressError::NoGrpcPort(text.trim().to_owned());
        Ok(Self { http, grpc_port: grpc_port.ok_or_else(missing)? })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        for (text, host, port, grpc_port) in [
            ("localhost:9333", "localhost", 9333, 19_333),
            (" m1:80.8080 ", "m1", 80, 8080),
            ("[::1]:9333", "::1", 9333, 19_333),
            ("[fd00::7]:1.2", "fd00::7", 1, 2),
        ] {
            let expected = ServerAddress { http: Endpoint::new(host, port), grpc_port };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "m1",
            "m1:",
            "m1:x",
            "m1:0",
            "m1:+5",
            "m1:70000",
            "::1:9333",
            "[m1]:5",
            "a/b:5",
            "http://m1:5",
            "u@m1:5",
            "m1:5.",
            "m1:5.x",
            ":9333",
        ] {
            assert!(matches!(text.parse::<ServerAddress>(), Err(AddressError::Form(_))), "{text}");
        }
        let high = "m1:60000".parse::<ServerAddress>().unwrap_err().to_string();
        assert!(high.contains("name it: host:60000.60001"), "{high}");
        // A volume server's is told by the master.
        let server = |port| ServerAddress::of_volume_server("m1:60000", port).unwrap().grpc_port;
        assert_eq!((server(None), server(Some(60_001))), (0, 60_001));
        assert_eq!(ServerAddress::of_volume_server("m1:80", None).unwrap().grpc_port, 10_080);
        assert_eq!(ServerAddress::of_volume_server("m1", Some(1)), None);
    }
}
