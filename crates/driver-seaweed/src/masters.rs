//! Masters as SeaweedFS's own programs are told of them: addresses, or the name of a service.

use std::io;

use plimsoll_http::{NameServers, ServiceError};

use crate::{AddressError, ServerAddress};

/// What stands before the name of a service whose servers are the masters.
pub const OF_SERVICE: &str = "dnssrv+";

/// Why a text names no masters.
#[derive(Debug, thiserror::Error)]
pub enum MastersError {
    /// There is nothing in it.
    #[error("no master is named; give one such as host:9333, or dnssrv+NAME")]
    None,
    /// One of them is no address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The name of a service does not lead to them.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// There was nothing to ask name servers with.
    #[error("cannot ask name servers")]
    Io(#[source] io::Error),
}

/// Returns the masters that a text names: a list of `host:port` and `host:port.grpcport`, parted by
/// commas, in which `dnssrv+NAME` stands for the servers of the service NAME (SRV records, with
/// their ports of HTTP). Waits for name servers, which are asked only then.
pub fn masters_of(text: &str, names: &NameServers) -> Result<Vec<ServerAddress>, MastersError> {
    let mut masters: Vec<ServerAddress> = Vec::new();
    for word in words(text) {
        let found = match word.strip_prefix(OF_SERVICE) {
            None => vec![word.parse()?],
            Some(service) => servers_of(service, names)?,
        };
        for master in found {
            if !masters.contains(&master) {
                masters.push(master);
            }
        }
    }
    if masters.is_empty() { Err(MastersError::None) } else { Ok(masters) }
}

/// Returns the names of the services in such a text, which name servers are asked for.
pub fn services_of(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter_map(|word| word.strip_prefix(OF_SERVICE))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn servers_of(service: &str, names: &NameServers) -> Result<Vec<ServerAddress>, MastersError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = runtime.map_err(MastersError::Io)?.block_on(names.look_up_service(service))?;
    let masters = found.into_iter().map(|of| format!("{}:{}", of.host, of.port).parse());
    Ok(masters.collect::<Result<_, AddressError>>()?)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    fn nobody() -> NameServers {
        NameServers::at(Vec::new(), Duration::ZERO)
    }

    fn shown(text: &str, names: &NameServers) -> Result<String, String> {
        let masters = masters_of(text, names).map_err(|error| error.to_string())?;
        let all = masters.iter().map(|master| format!("{master} {}", master.grpc_port));
        Ok(all.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn lists_are_read_without_asking_anybody() {
        let shown = |text| shown(text, &nobody());
        let expected = "a:9333 19333, b:1 2".to_owned();
        assert_eq!(shown(" a:9333, b:1.2,a:9333,"), Ok(expected));
        assert!(shown(",").unwrap_err().starts_with("no master is named"));
        assert!(shown("a:1,b").unwrap_err().starts_with("`b` is not an address"));
        let failed = shown("dnssrv+_grpc._tcp.m").unwrap_err();
        assert!(failed.starts_with("cannot look up the service `_grpc._tcp.m` (SRV)"), "{failed}");
    }

    #[test]
    fn a_service_stands_for_its_servers() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = socket.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let mut query = [0; 512];
            let (len, from) = socket.recv_from(&mut query).unwrap();
            // The question again, as an answer, with two servers behind it.
            let mut answer = query[..len].to_vec();
            (answer[2], answer[7]) = (0x81, 2);
            for (port, host) in [(9333_u16, b"m1"), (9334, b"m2")] {
                answer.extend_from_slice(b"\xc0\x0c\x00\x21\x00\x01\x00\x00\x00\x05\x00\x0a");
                answer.extend_from_slice(b"\x00\x01\x00\x01");
                answer.extend_from_slice(&port.to_be_bytes());
                answer.push(2);
                answer.extend_from_slice(host);
                answer.push(0);
            }
            socket.send_to(&answer, from).unwrap();
        });
        let names = NameServers::at(vec![server], Duration::from_secs(20));
        let expected = "a:1 10001, m1:9333 19333, m2:9334 19334".to_owned();
        assert_eq!(shown("a:1,dnssrv+_grpc._tcp.m.example", &names), Ok(expected));
        answering.join().unwrap();
    }
}
