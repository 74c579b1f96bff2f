//! Lists of masters, as SeaweedFS's own programs take them.

use crate::{AddressError, ServerAddress};

/// What SeaweedFS's own programs take the name of a DNS service behind.
const OF_SERVICE: &str = "dnssrv+";

/// Why a text names no masters.
#[derive(Debug, thiserror::Error)]
pub enum MastersError {
    /// There is nothing in it.
    #[error("no master is named; give one such as host:9333")]
    None,
    /// One of them is the name of a service.
    #[error("`{0}`: DNS services are not looked up; name the masters, such as m1:9333,m2:9333")]
    Service(String),
    /// One of them is no address.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Returns the masters in a comma-separated list of `host:port` and `host:port.grpcport`.
pub fn masters_of(text: &str) -> Result<Vec<ServerAddress>, MastersError> {
    let mut masters: Vec<ServerAddress> = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if word.starts_with(OF_SERVICE) {
            return Err(MastersError::Service(word.chars().take(80).collect()));
        }
        let master = word.parse()?;
        if !masters.contains(&master) {
            masters.push(master);
        }
    }
    if masters.is_empty() { Err(MastersError::None) } else { Ok(masters) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_masters_is_read_and_a_service_is_refused() {
        let shown = |text| {
            let masters = masters_of(text).map_err(|error| error.to_string())?;
            let all = masters.iter().map(|master| format!("{master} {}", master.grpc_port));
            Ok::<_, String>(all.collect::<Vec<_>>().join(", "))
        };
        assert_eq!(shown(" a:9333, b:1.2,a:9333,").unwrap(), "a:9333 19333, b:1 2");
        assert_eq!(shown(",").unwrap_err(), "no master is named; give one such as host:9333");
        assert!(shown("a:1,b").unwrap_err().starts_with("`b` is not an address"));
        assert_eq!(
            shown("a:1, dnssrv+_grpc._tcp.m").unwrap_err(),
            "`dnssrv+_grpc._tcp.m`: DNS services are not looked up; name the masters, such as \
             m1:9333,m2:9333"
        );
    }
}
