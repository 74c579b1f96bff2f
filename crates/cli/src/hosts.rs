//! The hosts that a workload names.

use plimsoll_driver_seaweed::FILER_PORT;
use plimsoll_http::{Endpoint, PORT_PLAIN, PORT_TLS, expand_hosts};
use plimsoll_model::EndpointId;
use plimsoll_workload::plan::WorkloadFile;
use plimsoll_workload::plan::spec::{TargetSpec, Targets};

/// Default ports of masters, and of each scheme.
const MASTER_PORT: u16 = 9333;
const PORTS: [(&str, u16); 4] =
    [("http", PORT_PLAIN), ("https", PORT_TLS), ("socks5", 1080), ("socks5h", 1080)];

/// Returns every host that a workload names: stores, proxies, masters, filers and sign-in services,
/// each with whether its address says that it is spoken to over TLS; `None` if an address cannot be
/// read without a name server.
pub(crate) fn named_in(file: &WorkloadFile) -> Option<Vec<(Endpoint, bool)>> {
    let mut found: Vec<(Endpoint, bool)> = Vec::new();
    for spec in specs(file) {
        let begin = found.len();
        let (proxies, stores): (Vec<_>, Vec<_>) =
            spec.addresses().into_iter().partition(|(field, _)| *field == "proxy");
        for (field, addresses) in stores.into_iter().chain(proxies) {
            let port = match (field, spec) {
                ("master", _) => MASTER_PORT,
                ("filer", _) => FILER_PORT,
                ("hosts", TargetSpec::S3(s3)) if s3.tls => PORT_TLS,
                _ => PORT_PLAIN,
            };
            // A proxy reads what is sent to the stores without TLS.
            let is_tunnelled = field == "proxy" && found[begin..].iter().all(|(_, tls)| *tls);
            let lists = addresses.iter().map(|list| (list, list.trim().starts_with("https://")));
            let each = lists.flat_map(|(list, tls)| list.split(',').map(move |one| (one, tls)));
            for (address, tls) in each {
                let address = address.trim();
                let over_tls = (tls || port == PORT_TLS) && !address.starts_with("http://");
                let endpoints = endpoints_of(address, port)?.into_iter();
                found.extend(endpoints.map(|endpoint| (endpoint, over_tls || is_tunnelled)));
                if found.len() > EndpointId::COUNT_MAX {
                    // It is refused when it is judged.
                    return None;
                }
            }
        }
    }
    Some(found)
}

/// Returns the targets that a workload defines.
pub(crate) fn specs(file: &WorkloadFile) -> Vec<&TargetSpec> {
    match &file.targets {
        Targets::Given => Vec::new(),
        Targets::One(spec) => vec![spec],
        Targets::Several(several) => several.iter().map(|(_, spec)| spec).collect(),
    }
}

/// Tells whether a workload has any certificate accepted.
pub(crate) fn takes_any_certificate(file: &WorkloadFile) -> bool {
    specs(file).iter().any(|spec| match spec {
        TargetSpec::S3(s3) => s3.insecure,
        TargetSpec::Swift(swift) => swift.insecure,
        _ => false,
    })
}

fn endpoints_of(address: &str, port: u16) -> Option<Vec<Endpoint>> {
    let (host, port) = match address.split_once("://") {
        None => (address, port),
        Some((scheme, rest)) => {
            let (_, port) = PORTS.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name))?;
            (rest.split(['/', '?', '#']).next()?, *port)
        }
    };
    expand_hosts(host, port).ok().filter(|_| !address.contains('@'))
}
