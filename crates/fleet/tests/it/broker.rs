//! A fleet on a real `nats-server`: who may join, who may say what, and what it carries.

use std::io::Cursor;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use plimsoll_fleet::broker::{
    Broker, BrokerError, BrokerSettings, RevokedAgent, Tended, TokenRules, ask_revoke, ask_token,
    join, local_fleet,
};
use plimsoll_fleet::fabric::{Address, Arrival, Arrivals, Fabric, Kept, Space};
use plimsoll_fleet::nats::{Nats, Side};
use plimsoll_fleet::pki::NewKey;
use plimsoll_fleet::protocol::AgentId;
use plimsoll_fleet::token::Token;

const ANY: TokenRules = TokenRules { uses: None, lasts: None };
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(20);
/// How long is waited for what must not come.
const SHORT: Duration = Duration::from_millis(300);

/// Starts a fleet in a directory, where the live tier runs.
pub(crate) fn broker(directory: &Path, agents_max: u32) -> Option<Broker> {
    let settings = BrokerSettings {
        program: plimsoll_testkit::nats_server()?,
        listen: ("127.0.0.1".to_owned(), 0),
        addresses: vec!["127.0.0.1".to_owned()],
        directory: directory.join("fleet"),
        agents_max,
    };
    Some(Broker::start(settings).unwrap())
}

struct Joined {
    id: AgentId,
    nats: Nats,
    arrivals: Arrivals,
}

fn agent(token: &Token, name: &str) -> Joined {
    returning(token, name, &NewKey::make().unwrap())
}

/// Returns an agent that has joined with its own key.
fn returning(token: &Token, name: &str, key: &NewKey) -> Joined {
    let (id, config) = join(token, name, key).unwrap();
    let (nats, arrivals) = Nats::join(&config, Side::Agent(&id, 7)).unwrap();
    Joined { id, nats, arrivals }
}

fn text(arrival: Arrival) -> String {
    match arrival {
        Arrival::Message { from, bytes } => {
            let from = from.map_or_else(|| "-".to_owned(), |id| id.as_str().to_owned());
            format!("{from}: {}", String::from_utf8(bytes).unwrap())
        }
        Arrival::Disconnected { agent, incarnation } => {
            format!("{} {incarnation} has gone", agent.as_str())
        }
    }
}

fn refusal(token: &Token) -> String {
    match join(token, "late", &NewKey::make().unwrap()) {
        Err(error @ BrokerError::Refused(_)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok((id, _)) => panic!("{id:?} has joined"),
    }
}

#[test]
fn agents_join_by_a_token_and_hear_what_is_for_them_alone() {
    let place = tempfile::tempdir().unwrap();
    let Some(broker) = broker(place.path(), 3) else { return };
    let token = Token::parse(&broker.token(ANY).unwrap().to_text()).unwrap();
    let config = local_fleet(&place.path().join("fleet")).unwrap();
    let (lead, told) = Nats::join(&config, Side::Coordinator).unwrap();
    let (first, second) = (agent(&token, "node1"), agent(&token, "node2"));
    assert_eq!([first.id.as_str(), second.id.as_str()], ["a0001", "a0002"]);
    let names = broker.joined();
    assert_eq!(names[1], ("a0002".to_owned(), "node2".to_owned()));

    // What the server hears from an agent comes after the subscriptions of that agent.
    let own = |agent: &Joined| Address::Coordinators(agent.id.clone());
    for agent in [&first, &second] {
        agent.nats.post(&own(agent), b"here".to_vec()).unwrap();
        assert_eq!(text(told.recv_timeout(LONG).unwrap()), format!("{}: here", agent.id.as_str()));
    }
    lead.post(&Address::Agents, b"all".to_vec()).unwrap();
    lead.post(&Address::Agent(second.id.clone()), b"you".to_vec()).unwrap();
    assert_eq!(text(first.arrivals.recv_timeout(LONG).unwrap()), "-: all");
    let heard = [(); 2].map(|()| text(second.arrivals.recv_timeout(LONG).unwrap()));
    assert!(heard.contains(&"-: you".to_owned()), "{heard:?}");
    assert!(first.arrivals.recv_timeout(SHORT).is_err(), "it heard what was for another");

    // Nobody speaks as another, nor to another agent.
    first.nats.post(&own(&second), b"as another".to_vec()).unwrap();
    first.nats.post(&Address::Agent(second.id.clone()), b"to another".to_vec()).unwrap();
    first.nats.post(&Address::Agents, b"to all".to_vec()).unwrap();
    first.nats.post(&own(&first), b"as itself".to_vec()).unwrap();
    assert_eq!(text(told.recv_timeout(LONG).unwrap()), "a0001: as itself");
    assert!(told.recv_timeout(SHORT).is_err());
    assert!(second.arrivals.recv_timeout(SHORT).is_err());

    let spaces = [&first, &second].map(|agent| Space::Of(agent.id.clone()));
    let word = |agent: &Joined| (agent.id.clone(), "run".to_owned());
    lead.make(&[word(&first), word(&second)]).unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut part = first.nats.put(&spaces[0], "run/part", &mut Cursor::new(&large)).unwrap();
    let plan = lead.put(&Space::Shared, "run/plan", &mut Cursor::new(&large[..700_000])).unwrap();
    let fetched = |nats: &Nats, space: &Space, kept: &Kept| {
        let mut bytes = Vec::new();
        nats.get(space, kept, &mut bytes).map(|size| (size, bytes))
    };
    assert_eq!(fetched(&lead, &spaces[0], &part).unwrap(), (3_000_000, large.clone()));
    let shared = fetched(&second.nats, &Space::Shared, &plan).unwrap();
    assert_eq!(shared, (700_000, large[..700_000].to_vec()));
    // What comes later under a name is there instead, also where it is nothing.
    for size in [800_000, 0, 2_000_001] {
        let later: Vec<u8> = large[..size].iter().rev().copied().collect();
        let now = first.nats.put(&spaces[0], "run/part", &mut Cursor::new(&later)).unwrap();
        assert!(part.size_bytes == 0 || fetched(&lead, &spaces[0], &part).is_err(), "{size}");
        let there = fetched(&lead, &spaces[0], &now).unwrap();
        assert!(there == (size as u64, later), "{size}");
        part = now;
    }
    lead.remove(&spaces[0], "run").unwrap();
    assert!(fetched(&lead, &spaces[0], &part).is_err());
    // Only named entries of the shared space are removed.
    let other = lead.put(&Space::Shared, "other/plan", &mut Cursor::new(b"other")).unwrap();
    lead.remove(&Space::Shared, "run").unwrap();
    assert!(fetched(&second.nats, &Space::Shared, &plan).is_err());
    assert_eq!(fetched(&second.nats, &Space::Shared, &other).unwrap().1, b"other");

    // The end of a connection is told at once.
    drop(second);
    assert_eq!(text(told.recv_timeout(LONG).unwrap()), "a0002 7 has gone");
}

#[test]
fn tokens_are_used_as_often_as_they_may_be_and_no_longer() {
    let place = tempfile::tempdir().unwrap();
    let Some(mut broker) = broker(place.path(), 3) else { return };
    let once = broker.token(TokenRules { uses: Some(1), lasts: None }).unwrap();
    let over = broker.token(TokenRules { uses: None, lasts: Some(Duration::ZERO) }).unwrap();
    let any = broker.token(ANY).unwrap();
    let first = agent(&once, "node1");
    assert!(refusal(&once).ends_with("was used as often as it may be"), "{}", refusal(&once));
    assert!(refusal(&over).ends_with("has expired"));
    // Nor does it become another by its number.
    let other = Token { number: any.number, ..once.clone() };
    assert!(refusal(&other).ends_with("the token is unknown"));
    let other = Token { number: 99, ..any.clone() };
    assert!(refusal(&other).ends_with("the token is unknown"));
    // A token of another fleet is not even spoken to, and one of this fleet speaks to no other.
    let strange = Token { authority: [0; 32], ..any.clone() };
    assert!(matches!(join(&strange, "x", &NewKey::make().unwrap()), Err(BrokerError::Fabric(_))));
    drop(agent(&any, "node2"));
    let config = local_fleet(&place.path().join("fleet")).unwrap();
    let (lead, told) = Nats::join(&config, Side::Coordinator).unwrap();
    let revoked = ask_revoke(&lead, Vec::new(), vec![any.number, 77]).unwrap();
    assert_eq!((revoked.tokens, revoked.unknown), (vec![any.number], vec!["token 77".to_owned()]));
    assert!(refusal(&any).ends_with("was revoked"));
    let more = Token::parse(&ask_token(&lead, ANY).unwrap()).unwrap();
    // Only coordinators ask that.
    assert!(ask_token(&first.nats, ANY).is_err());
    assert!(ask_revoke(&first.nats, vec!["node2".to_owned()], Vec::new()).is_err());
    drop(agent(&more, "node3"));
    assert!(refusal(&more).contains("as many agents have joined as may"));
    assert!(matches!(join(&more, "", &NewKey::make().unwrap()), Err(BrokerError::Refused(_))));

    // An agent whose leave is taken back is cut off, and stays so, also when the server has ended.
    let gone = |name: &str| format!("{name} has gone");
    while told.recv_timeout(SHORT).is_ok() {}
    let revoked =
        ask_revoke(&lead, ["node1", "a0003", "node9"].map(str::to_owned).into(), Vec::new());
    let revoked = revoked.unwrap();
    let agent = |id: &str, name: &str, token| RevokedAgent {
        id: id.to_owned(),
        name: name.to_owned(),
        token,
    };
    // The first has used its token up; the third may join again.
    let expected = [agent("a0001", "node1", None), agent("a0003", "node3", Some(more.number))];
    assert_eq!(
        (&*revoked.agents, &*revoked.unknown),
        (&expected[..], &["agent node9".to_owned()][..])
    );
    assert_eq!(broker.tend().unwrap(), None);
    assert_eq!(text(told.recv_timeout(LONG).unwrap()), gone("a0001 7"));
    let server = rustix::process::Pid::from_raw(broker.server_pid() as i32).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::KILL).unwrap();
    let is_back = (0..LONG.as_millis()).any(|_| broker.tend().unwrap() == Some(Tended::Restarted));
    assert!(is_back);
    first.nats.post(&Address::Coordinators(first.id.clone()), b"here".to_vec()).unwrap();
    // It tries again, and whatever ends with that is all that is heard of it.
    let is_message = |arrival: &Arrival| matches!(arrival, Arrival::Message { .. });
    for _ in 0..10 {
        let heard = told.recv_timeout(SHORT);
        assert!(!heard.as_ref().is_ok_and(is_message), "{heard:?}");
        if heard.is_err() {
            break;
        }
    }
}

#[test]
fn an_agent_that_comes_back_uses_up_no_number() {
    let place = tempfile::tempdir().unwrap();
    let Some(broker) = broker(place.path(), 2) else { return };
    let once = broker.token(TokenRules { uses: Some(1), lasts: None }).unwrap();
    let keys = [(); 3].map(|()| NewKey::make().unwrap());
    for name in ["node1", "node1", "other"] {
        let agent = returning(&once, name, &keys[0]);
        assert_eq!(agent.id.as_str(), "a0001");
        assert_eq!(broker.joined(), [("a0001".to_owned(), name.to_owned())]);
    }
    let any = broker.token(ANY).unwrap();
    assert_eq!(returning(&any, "node2", &keys[1]).id.as_str(), "a0002");
    let full = join(&any, "node3", &keys[2]).err().unwrap().to_string();
    assert!(full.contains("as many agents have joined as may"), "{full}");
    assert_eq!(returning(&any, "node2", &keys[1]).id.as_str(), "a0002");
    // Whose leave was taken back is not known again by its key.
    let config = local_fleet(&place.path().join("fleet")).unwrap();
    let (lead, _told) = Nats::join(&config, Side::Coordinator).unwrap();
    ask_revoke(&lead, vec!["a0002".to_owned()], Vec::new()).unwrap();
    let full = join(&any, "node2", &keys[1]).err().unwrap().to_string();
    assert!(full.contains("as many agents have joined as may"), "{full}");
}

#[test]
fn what_cannot_begin_says_why() {
    let place = tempfile::tempdir().unwrap();
    let none = local_fleet(&place.path().join("nowhere")).err().unwrap().to_string();
    assert!(none.contains("plimsoll fleet up"), "{none}");
    let Some(running) = broker(place.path(), 1) else { return };
    let settings = |directory: &str, port| BrokerSettings {
        program: plimsoll_testkit::nats_server().unwrap(),
        listen: ("127.0.0.1".to_owned(), port),
        addresses: vec!["127.0.0.1".to_owned()],
        directory: place.path().join(directory),
        agents_max: 1,
    };
    let twice = Broker::start(settings("fleet", 0)).err().unwrap();
    assert!(matches!(twice, BrokerError::Up { .. }), "{twice}");
    let taken = Broker::start(settings("other", running.port())).err().unwrap().to_string();
    assert!(taken.contains("address already in use"), "{taken}");
    drop(running);
    assert!(!place.path().join("fleet").exists(), "keys of a fleet that is over");
}

#[test]
fn a_directory_that_others_filled_is_refused_and_left_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let theirs = place.path().join("server.pem");
    std::fs::write(&theirs, "theirs").unwrap();
    let refused = Broker::start(without_server(place.path())).err().unwrap();
    assert!(matches!(refused, BrokerError::Directory(_)), "{refused}");
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_fleet_that_cannot_begin_leaves_no_keys_behind() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("fleet");
    let refused = Broker::start(without_server(&directory)).err().unwrap();
    assert!(matches!(refused, BrokerError::Files { what: "start", .. }), "{refused}");
    assert!(!directory.exists());
}

/// Returns how a fleet is made whose server cannot be started.
fn without_server(directory: &Path) -> BrokerSettings {
    BrokerSettings {
        program: "/nowhere/nats-server".into(),
        listen: ("127.0.0.1".to_owned(), 0),
        addresses: vec!["127.0.0.1".to_owned()],
        directory: directory.to_path_buf(),
        agents_max: 1,
    }
}

#[test]
fn the_end_of_a_fleet_removes_its_own_files_alone() {
    let place = tempfile::tempdir().unwrap();
    let Some(running) = broker(place.path(), 1) else { return };
    let directory = place.path().join("fleet");
    std::fs::write(directory.join("notes"), "of the user").unwrap();
    std::fs::create_dir(directory.join("jetstream-of-mine")).unwrap();
    drop(running);
    let mut left: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["jetstream-of-mine", "notes"]);
    // Without the mark nothing that the user puts there later is taken for a fleet's.
    let refused = Broker::start(without_server(&directory)).err().unwrap();
    assert!(matches!(refused, BrokerError::Directory(_)), "{refused}");
}

#[test]
fn a_fleet_that_another_user_may_have_made_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("fleet");
    let file = directory.join("fleet.json");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(&file, "{}").unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&directory, 0o755);
    mode(&file, 0o644);
    let why = || {
        let refused = local_fleet(&directory).err().unwrap();
        let why = std::error::Error::source(&refused).map(ToString::to_string);
        why.unwrap_or_else(|| refused.to_string())
    };
    for (path, own_mode) in [(&directory, 0o755), (&file, 0o644)] {
        mode(path, own_mode | 0o022);
        assert_eq!(why(), "other users can change it (chmod go-w)");
        mode(path, own_mode);
        // It was read, and holds something else.
        assert!(why().ends_with("is not what `plimsoll fleet up` writes"), "{}", why());
        // Only root can make what belongs to another user.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path, Some(65_534), None).unwrap();
            assert_eq!(why(), "it belongs to another user");
            std::os::unix::fs::chown(path, Some(0), None).unwrap();
        }
    }
}
