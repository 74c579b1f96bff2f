//! Servers by the name of their service: SRV records of DNS (RFC 2782), asked of the name servers
//! that the system names. What the system's own resolver offers knows hosts only.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, Question, RCODE, TYPE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Where the system says which name servers to ask.
const SYSTEM_FILE: &str = "/etc/resolv.conf";
const DNS_PORT: u16 = 53;
/// How long one name server may take, where nobody says otherwise, and at most.
const ANSWER_TIME: Duration = Duration::from_secs(2);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How often all name servers are asked in turn.
const ROUNDS: u32 = 2;
/// How many name servers are asked, and how many names are tried, as by the system's resolver.
const SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = 6;
/// The longest answer in one datagram, to who asks for no more (RFC 1035, 4.2.1).
const DATAGRAM_BYTES_MAX: usize = 512;

/// Whom to ask for names, and how short names are made whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers {
    servers: Vec<SocketAddr>,
    search: Vec<String>,
    /// With so many dots a name is tried as it is before others.
    dots_min: usize,
    /// How long one name server may take.
    answer_time: Duration,
}

/// A server of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceHost {
    /// Servers of a lower one come first.
    pub priority: u16,
    /// The host's name, without a dot at its end.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why the servers of a service are not known.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// It cannot be a name of DNS.
    #[error("`{0}` is not a name of a service such as _grpc._tcp.master.example")]
    Name(String),
    /// There is no such name, or it has no servers.
    #[error("the name servers know no servers of the service `{name}` (SRV)")]
    NotFound {
        /// The service.
        name: String,
    },
    /// No name server gave an answer that can be used.
    #[error("cannot look up the service `{name}` (SRV): {why}")]
    NoAnswer {
        /// The service.
        name: String,
        /// What the last one that was asked did.
        why: String,
    },
}

impl NameServers {
    /// Returns those that the system names.
    pub fn of_system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the system's own file")]
        let text = std::fs::read_to_string(SYSTEM_FILE).unwrap_or_default();
        Self::read(&text)
    }

    /// Reads a text as of `resolv.conf(5)`; without a name server in it there is one on this
    /// machine.
    pub fn read(text: &str) -> Self {
        let mut read = Self::at(Vec::new(), ANSWER_TIME);
        read.dots_min = 1;
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    read.servers.extend(address.map(|address| SocketAddr::new(address, DNS_PORT)));
                }
                // The last of them counts.
                Some("search" | "domain") => {
                    read.search = words.take(SEARCH_MAX).map(str::to_owned).collect();
                }
                Some("options") => words.for_each(|word| read.take_option(word)),
                _ => {}
            }
        }
        read.servers.truncate(SERVERS_MAX);
        if read.servers.is_empty() {
            read.servers.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DNS_PORT));
        }
        read
    }

    fn take_option(&mut self, word: &str) {
        if let Some(dots) = word.strip_prefix("ndots:").and_then(|dots| dots.parse().ok()) {
            self.dots_min = dots;
        }
        if let Some(seconds) = word.strip_prefix("timeout:").and_then(|time| time.parse().ok()) {
            self.answer_time =
                Duration::from_secs(seconds).clamp(Duration::from_secs(1), ANSWER_TIME_MAX);
        }
    }

    /// Returns those at these addresses, for names that are whole.
    pub fn at(servers: Vec<SocketAddr>, answer_time: Duration) -> Self {
        Self { servers, search: Vec::new(), dots_min: 0, answer_time }
    }

    /// Returns the servers of a service, best first.
    pub async fn look_up_service(&self, name: &str) -> Result<Vec<ServiceHost>, ServiceError> {
        for whole in self.whole_names(name) {
            let asked = Name::new(&whole).map_err(|_| ServiceError::Name(name.to_owned()))?;
            let mut found = self.ask_all(&asked).await.map_err(|why| {
                let name = name.to_owned();
                ServiceError::NoAnswer { name, why }
            })?;
            if !found.is_empty() {
                found.sort();
                found.dedup();
                return Ok(found);
            }
        }
        Err(ServiceError::NotFound { name: name.to_owned() })
    }

    /// Returns the names that a name may stand for, in the order in which they are tried.
    fn whole_names(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let searched = self.search.iter().map(|domain| {
            let domain = domain.trim_matches('.');
            format!("{name}.{domain}")
        });
        let mut all: Vec<String> = searched.collect();
        let is_first = name.matches('.').count() >= self.dots_min;
        all.insert(if is_first { 0 } else { all.len() }, name.to_owned());
        all
    }

    /// Asks one name server after the other for a whole name; none is found where it is not known.
    async fn ask_all(&self, name: &Name<'_>) -> Result<Vec<ServiceHost>, String> {
        let mut why = "there is no name server".to_owned();
        for _ in 0..ROUNDS {
            for server in &self.servers {
                let answer = match timeout(self.answer_time, ask(*server, name)).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(error)) => {
                        why = format!("name server {server}: {error}").to_lowercase();
                        continue;
                    }
                    Err(_) => {
                        let limit = self.answer_time;
                        why = format!("no answer of name server {server} within {limit:?}");
                        continue;
                    }
                };
                match read_answer(&answer) {
                    Ok(found) => return Ok(found),
                    Err(said) => why = format!("name server {server} {said}"),
                }
            }
        }
        Err(why)
    }
}

/// Asks one name server: by a datagram, and where the answer has no room in one by a stream.
async fn ask(server: SocketAddr, name: &Name<'_>) -> io::Result<Vec<u8>> {
    let mut id = [0; 2];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut id).map_err(|_| io::Error::other("no random number"))?;
    let id = u16::from_be_bytes(id);
    let mut query = Packet::new_query(id);
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    let question = Question::new(name.clone(), TYPE::SRV.into(), QCLASS::CLASS(CLASS::IN), false);
    query.questions.push(question);
    let query = query.build_bytes_vec().map_err(io::Error::other)?;
    let is_ours = |answer: &[u8]| {
        Packet::parse(answer).is_ok_and(|answer| {
            let of_name = answer.questions.first().is_some_and(|asked| asked.qname == *name);
            answer.id() == id && answer.has_flags(PacketFlag::RESPONSE) && of_name
        })
    };
    let local: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(local).await?;
    socket.connect(server).await?;
    socket.send(&query).await?;
    let mut answer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let len = socket.recv(&mut answer).await?;
        // Another one may be guessed by somebody, or late.
        if !is_ours(&answer[..len]) {
            continue;
        }
        let is_whole = Packet::parse(&answer[..len])
            .is_ok_and(|answer| !answer.has_flags(PacketFlag::TRUNCATION));
        if is_whole {
            answer.truncate(len);
            return Ok(answer);
        }
        break;
    }
    let answer = ask_by_stream(server, &query).await?;
    match is_ours(&answer) {
        true => Ok(answer),
        false => Err(io::Error::other("its answer is to another question")),
    }
}

/// Messages have their length before them there (RFC 1035, 4.2.2).
async fn ask_by_stream(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let len = u16::try_from(query.len()).map_err(io::Error::other)?;
    let message = [&len.to_be_bytes(), query].concat();
    stream.write_all(&message).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Reads the servers in an answer; `Err` holds what is wrong with it.
fn read_answer(answer: &[u8]) -> Result<Vec<ServiceHost>, String> {
    let answer =
        Packet::parse(answer).map_err(|_| "sent something that is not an answer".to_owned())?;
    match answer.rcode() {
        RCODE::NoError | RCODE::NameError => {}
        other => return Err(format!("refused to answer ({other:?})")),
    }
    let mut found = Vec::new();
    for record in &answer.answers {
        // Others lead to these (CNAME).
        let RData::SRV(server) = &record.rdata else { continue };
        let host = server.target.to_string();
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        // An empty name says that there is no such service here.
        if host.is_empty() || host == "." {
            continue;
        }
        if !host.bytes().all(is_plain) {
            return Err("names an invalid host".to_owned());
        }
        found.push(ServiceHost { priority: server.priority, host, port: server.port });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_file_is_read() {
        let text = "# by hand\nnameserver 10.0.0.1\n nameserver  fd00::1 ; second\n\
                    nameserver x\nsearch a.example b.example\ndomain c.example\n\
                    options edns0 ndots:2 timeout:1\nnonsense\nnameserver 1.1.1.1\n\
                    nameserver 2.2.2.2";
        let read = NameServers::read(text);
        let servers: Vec<String> = read.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[fd00::1]:53", "1.1.1.1:53"]);
        assert_eq!(read.answer_time, Duration::from_secs(1));
        assert_eq!(read.whole_names("a.b"), ["a.b.c.example", "a.b"]);
        assert_eq!(read.whole_names("a.b.c"), ["a.b.c", "a.b.c.c.example"]);
        assert_eq!(read.whole_names("a."), ["a"]);
        let empty = NameServers::read("");
        assert_eq!(empty.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(empty.whole_names("a.b"), ["a.b"]);
        assert_eq!(empty.answer_time, ANSWER_TIME);
    }
}
