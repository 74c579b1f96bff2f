//! Services looked up at a name server of the test's own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use plimsoll_http::{NameServers, ServiceError, ServiceHost};
use simple_dns::rdata::{CNAME, RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, RCODE, ResourceRecord};

use crate::support::block_on;

const NAME: &str = "_grpc._tcp.master.example";

type Server = (u16, u16, &'static str);

/// What a name server does with a question.
#[derive(Clone)]
enum Answer {
    Servers(Vec<Server>),
    /// The same, by a stream only.
    ByStream(Vec<Server>),
    Refusal(RCODE),
    /// Not to this question, and then nothing.
    Other,
}

/// Returns the answer to a question, with an alias before its servers.
fn answer_to(query: &[u8], answer: &Answer, by_stream: bool) -> Vec<u8> {
    let query = Packet::parse(query).unwrap();
    assert_eq!(query.questions[0].qname.to_string(), NAME);
    let mut reply = Packet::new_reply(query.id());
    reply.questions.clone_from(&query.questions);
    let servers = match answer {
        Answer::Servers(servers) => servers.as_slice(),
        Answer::ByStream(servers) if by_stream => servers,
        Answer::ByStream(_) => {
            reply.set_flags(PacketFlag::TRUNCATION);
            &[]
        }
        Answer::Refusal(code) => {
            *reply.rcode_mut() = *code;
            &[]
        }
        Answer::Other => {
            reply.set_id(query.id() ^ 1);
            &[(0, 6, "wrong.example")]
        }
    };
    let alias = Name::new("alias.example").unwrap();
    let of_name =
        |name: &Name<'static>, data| ResourceRecord::new(name.clone(), CLASS::IN, 5, data);
    let asked = Name::new(NAME).unwrap();
    reply.answers.push(of_name(&asked, RData::CNAME(CNAME(alias.clone()))));
    for (priority, port, host) in servers {
        let target = Name::new(host).unwrap();
        let (priority, port) = (*priority, *port);
        let data = RData::SRV(SRV { priority, weight: 1, port, target });
        reply.answers.push(of_name(&alias, data));
    }
    reply.build_bytes_vec_compressed().unwrap()
}

/// Starts a name server on both kinds of socket of one port; it ends with the test's process.
fn name_server(answer: Answer) -> SocketAddr {
    let (socket, listener) = loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // The port may be taken for streams.
        if let Ok(listener) = TcpListener::bind(socket.local_addr().unwrap()) {
            break (socket, listener);
        }
    };
    let address = socket.local_addr().unwrap();
    let of_streams = answer.clone();
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut query) {
            socket.send_to(&answer_to(&query[..len], &answer, false), from).unwrap();
        }
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut len = [0; 2];
            stream.read_exact(&mut len).unwrap();
            let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
            stream.read_exact(&mut query).unwrap();
            let reply = answer_to(&query, &of_streams, true);
            stream.write_all(&(reply.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&reply).unwrap();
        }
    });
    address
}

/// Long on loopback, and short for a test that waits for it.
const ANSWER_TIME: Duration = Duration::from_millis(250);

fn look_up(servers: Vec<SocketAddr>, name: &str) -> Result<Vec<ServiceHost>, ServiceError> {
    block_on(NameServers::at(servers, ANSWER_TIME).look_up_service(name))
}

#[test]
fn the_servers_of_a_service_are_found_in_their_order() {
    let many: Vec<Server> = vec![(20, 9333, "c.example"), (10, 9334, "b.example"), (10, 1, "a-1")];
    let found = |priority, host: &str, port| ServiceHost { priority, host: host.to_owned(), port };
    let expected =
        [found(10, "a-1", 1), found(10, "b.example", 9334), found(20, "c.example", 9333)];
    for answer in [Answer::Servers(many.clone()), Answer::ByStream(many)] {
        let server = name_server(answer);
        assert_eq!(look_up(vec![server], NAME).unwrap(), expected);
        assert_eq!(look_up(vec![server], &format!("{NAME}.")).unwrap(), expected);
    }
}

#[test]
fn another_name_server_is_asked_where_one_does_not_answer() {
    let good = name_server(Answer::Servers(vec![(1, 2, "a.example")]));
    let failing = name_server(Answer::Refusal(RCODE::ServerFailure));
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = look_up(vec![failing, closed, good], NAME).unwrap();
    assert_eq!(found.len(), 1);
    let error = look_up(vec![failing], NAME).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "cannot look up the service `{NAME}` (SRV): name server {failing} refused to answer \
             (ServerFailure)"
        )
    );
}

#[test]
fn what_is_not_there_is_not_found_and_what_nobody_asked_is_not_taken() {
    for answer in [
        Answer::Refusal(RCODE::NameError),
        Answer::Servers(Vec::new()),
        Answer::Servers(vec![(0, 0, "")]),
    ] {
        let error = look_up(vec![name_server(answer)], NAME).unwrap_err();
        assert!(matches!(error, ServiceError::NotFound { .. }), "{error}");
    }
    let error = look_up(vec![name_server(Answer::Other)], NAME).unwrap_err().to_string();
    assert!(error.contains("no answer of name server"), "{error}");
    let long = "x".repeat(64);
    let error = look_up(vec![name_server(Answer::Other)], &long).unwrap_err();
    assert!(matches!(error, ServiceError::Name(_)), "{error}");
}
