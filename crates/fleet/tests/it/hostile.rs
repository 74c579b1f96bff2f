//! What those can do on a fleet's server who are hostile: they speak to it as they like.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, HeaderMap, Subscriber};
use futures::StreamExt as _;
use plimsoll_conduct::RunTime;
use plimsoll_fleet::broker::{Broker, TokenRules, ask_revoke, join, local_fleet};
use plimsoll_fleet::fabric::{Address, Arrival, Arrivals, Fabric, Kept, Space};
use plimsoll_fleet::nats::{Access, Nats, NatsConfig, Side};
use plimsoll_fleet::pki::{Authority, NewKey, client_config};
use plimsoll_fleet::protocol::{
    About, AgentId, Ask, Progress, State, Step, Tell, What, decode, encode,
};
use plimsoll_fleet::roll::{Call, Recruit, call_roll};
use plimsoll_fleet::token::Token;
use plimsoll_fleet::wire::{Answer, Assignment, ConductDoc, ContentDoc, Held, LiveDoc, Order};
use plimsoll_workload::plan::WorkloadFile;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::broker::broker;
use crate::runs::{ACCESS, On, WORKLOAD, works};
use crate::task::{Task, about};

const ANY: TokenRules = TokenRules { uses: None, lasts: None };
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(20);
/// How long is waited for what must not come.
const SHORT: Duration = Duration::from_millis(200);

/// Somebody with a connection who says what they like.
struct Raw {
    runtime: Runtime,
    client: Client,
}

impl Raw {
    fn connect(config: &NatsConfig, name: &str, inbox: &str) -> Result<Self, String> {
        let Access::Fleet(tls) = &config.access else { panic!("it is a fleet of ours") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = ConnectOptions::new()
            .tls_client_config((**tls).clone())
            .require_tls(true)
            .name(name)
            .custom_inbox_prefix(format!("_INBOX_plimsoll_{inbox}"))
            .request_timeout(Some(SHORT));
        let connected = runtime.block_on(options.connect(config.servers.clone()));
        Ok(Self { client: connected.map_err(|error| error.to_string())?, runtime })
    }

    fn hears(&self, subjects: &[String]) -> Vec<Subscriber> {
        let all = subjects
            .iter()
            .map(|subject| self.runtime.block_on(self.client.subscribe(subject.clone())).unwrap());
        let all = all.collect();
        self.flush();
        all
    }

    fn says(&self, subject: &str, content: &[u8]) {
        // As everybody in a fleet does.
        self.says_with(subject, &[("Plimsoll", "1")], content);
    }

    fn says_with(&self, subject: &str, named: &[(&str, &str)], content: &[u8]) {
        let (subject, content) = (subject.to_owned(), content.to_vec().into());
        let mut headers = HeaderMap::new();
        named.iter().for_each(|(name, value)| headers.insert(*name, *value));
        let said = self.client.publish_with_headers(subject, headers, content);
        self.runtime.block_on(said).unwrap();
    }

    /// Asks for an answer under another subject than its own.
    fn asks_for(&self, subject: &str, reply: &str, content: &[u8]) {
        let (subject, reply) = (subject.to_owned(), reply.to_owned());
        let said = self.client.publish_with_reply(subject, reply, content.to_vec().into());
        self.runtime.block_on(said).unwrap();
        self.flush();
    }

    /// Asks, and returns the answer if there is one.
    fn asks(&self, subject: &str, content: &[u8]) -> Option<String> {
        let asked = self.client.request(subject.to_owned(), content.to_vec().into());
        let answer = self.runtime.block_on(asked).ok()?;
        Some(String::from_utf8_lossy(&answer.payload).into_owned())
    }

    fn flush(&self) {
        self.runtime.block_on(self.client.flush()).unwrap();
    }

    /// Checks that none of these has heard anything.
    #[track_caller]
    fn assert_deaf(&self, subjects: &[String], hearing: &mut [Subscriber]) {
        self.runtime.block_on(async {
            for (subject, each) in subjects.iter().zip(hearing) {
                let heard = tokio::time::timeout(SHORT / 10, each.next()).await;
                // One that the server refuses may just end.
                let heard = heard.ok().flatten();
                assert!(heard.is_none(), "it hears {subject}: {heard:?}");
            }
        });
    }
}

/// A fleet with a coordinator and an agent that know nothing of what is done to them.
struct Victims {
    broker: Broker,
    config: NatsConfig,
    token: Token,
    lead: Nats,
    told: Arrivals,
    id: AgentId,
    agent: Nats,
    asked: Arrivals,
    /// What the agent has handed in, and what the coordinator keeps for all.
    kept: (Kept, Kept),
    place: tempfile::TempDir,
}

const CONTENT: &[u8] = b"what nobody else is to change";
/// What the names of contents begin with.
const RUN: &str = "run";

impl Victims {
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let broker = broker(place.path(), 9)?;
        let token = broker.token(ANY).unwrap();
        let config = local_fleet(&place.path().join("fleet")).unwrap();
        let (lead, told) = Nats::join(&config, Side::Coordinator).unwrap();
        let (id, own) = join(&token, "victim", &NewKey::make().unwrap()).unwrap();
        let (agent, asked) = Nats::join(&own, Side::Agent(&id, 7)).unwrap();
        lead.make(&[(id.clone(), RUN.to_owned())]).unwrap();
        let own = agent.put(&Space::Of(id.clone()), "run/part", &mut Cursor::new(CONTENT));
        let shared = lead.put(&Space::Shared, "run/plan", &mut Cursor::new(CONTENT));
        let kept = (own.unwrap(), shared.unwrap());
        Some(Self { broker, config, token, lead, told, id, agent, asked, kept, place })
    }

    /// Has a hostile agent join, which has a bucket of its own.
    fn intruder(&self) -> (AgentId, NatsConfig, Raw) {
        let (own, config) = join(&self.token, "hostile", &NewKey::make().unwrap()).unwrap();
        self.lead.make(&[(own.clone(), RUN.to_owned())]).unwrap();
        let raw = Raw::connect(&config, "x", own.as_str()).unwrap();
        (own, config, raw)
    }

    /// Has somebody connect who knows no more than a token.
    fn stranger(&self) -> Raw {
        let tls = client_config(self.token.authority, &self.token.identity).unwrap();
        let servers = self.token.servers.iter().map(|server| format!("tls://{server}"));
        let servers = servers.map(|server| server.parse().unwrap()).collect();
        let config = NatsConfig { servers, access: Access::Fleet(Arc::new(tls)), system: None };
        Raw::connect(&config, "x", "join").unwrap()
    }

    /// Has something said to and by each, so that there is something to hear.
    fn talk(&self) {
        self.lead.post(&Address::Agents, b"all".to_vec()).unwrap();
        self.lead.post(&Address::Agent(self.id.clone()), b"you".to_vec()).unwrap();
        self.agent.post(&Address::Coordinators(self.id.clone()), b"I".to_vec()).unwrap();
        let mut content = Vec::new();
        self.lead.get(&Space::Of(self.id.clone()), &self.kept.0, &mut content).unwrap();
        assert_eq!(content, CONTENT);
        content.clear();
        self.agent.get(&Space::Shared, &self.kept.1, &mut content).unwrap();
        assert_eq!(content, CONTENT);
    }

    /// Checks that nobody has heard anything but what they said to each other.
    #[track_caller]
    fn assert_undisturbed(&self) {
        let texts = |arrivals: &Arrivals, count: usize| {
            let mut texts = Vec::new();
            for _ in 0..count {
                texts.push(format!("{:?}", arrivals.recv_timeout(LONG).unwrap()));
            }
            let more = arrivals.recv_timeout(SHORT);
            assert!(more.is_err(), "{more:?}");
            texts
        };
        self.talk();
        let asked = texts(&self.asked, 2);
        let expected = [b"all".as_slice(), b"you"]
            .map(|text| format!("{:?}", Arrival::Message { from: None, bytes: text.to_vec() }));
        assert!(expected.iter().all(|text| asked.contains(text)), "{asked:?}");
        let from = Some(self.id.clone());
        let told = Arrival::Message { from, bytes: b"I".to_vec() };
        assert_eq!(texts(&self.told, 1), [format!("{told:?}")]);
    }
}

fn words(subjects: &[&str]) -> Vec<String> {
    subjects.iter().map(|subject| (*subject).to_owned()).collect()
}

/// What nobody but a coordinator may ask of the object stores of others.
fn of_streams(id: &str) -> Vec<String> {
    let others = [format!("OBJ_plimsoll-of-{id}"), "OBJ_plimsoll-shared".to_owned()];
    let mut subjects = words(&[
        "$JS.API.INFO",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.CREATE.MINE",
        "$JS.API.ACCOUNT.PURGE.FLEET",
        "$SYS.REQ.SERVER.PING",
    ]);
    for stream in &others {
        for api in ["STREAM.DELETE", "STREAM.UPDATE", "STREAM.PURGE", "STREAM.MSG.DELETE"] {
            subjects.push(format!("$JS.API.{api}.{stream}"));
        }
    }
    let other = &others[0];
    for api in ["STREAM.INFO", "STREAM.MSG.GET", "CONSUMER.CREATE", "CONSUMER.LIST"] {
        subjects.push(format!("$JS.API.{api}.{other}"));
    }
    subjects.push(format!("$JS.API.CONSUMER.DURABLE.CREATE.{other}.x"));
    subjects.push(format!("$JS.API.DIRECT.GET.{other}.$O.plimsoll-of-{id}.C.x"));
    subjects.push(format!("$JS.API.CONSUMER.CREATE.{other}.x.y"));
    subjects
}

#[test]
fn a_token_lets_nobody_hear_or_say_anything_but_ask_to_join() {
    let Some(victims) = Victims::new() else { return };
    let id = victims.id.as_str();
    let raw = victims.stranger();
    let mut subjects = words(&[">", "*.>", "plimsoll.>", "plimsoll.ask.all", "plimsoll.tell.*"]);
    subjects.extend(words(&["plimsoll.join", "plimsoll.up.>", "$JS.>", "$O.>", "$SYS.>"]));
    subjects.push(format!("plimsoll.ask.{id}"));
    subjects.push(format!("_INBOX_plimsoll_{id}.>"));
    subjects.push("_INBOX_plimsoll_coordinator.>".to_owned());
    let mut hearing = raw.hears(&subjects);
    for subject in ["plimsoll.ask.all", "plimsoll.up.ask", "plimsoll.tell.a0001"] {
        raw.says(subject, b"as somebody else");
    }
    for subject in [format!("plimsoll.ask.{id}"), format!("$O.plimsoll-of-{id}.C.x")] {
        raw.says(&subject, b"as somebody else");
    }
    for subject in of_streams(id) {
        assert_eq!(raw.asks(&subject, b"{}"), None, "{subject}");
    }
    // Nor has it others say something to whom it likes.
    for reply in ["plimsoll.ask.all", "plimsoll.tell.a0001", "_INBOX_plimsoll_coordinator.x"] {
        raw.asks_for("plimsoll.join", reply, b"{}");
    }
    for garbage in [&b""[..], b"\xff\xfe", &[b'['; 8_000], br#"{"token":1}"#] {
        let refused = raw.asks("plimsoll.join", garbage).unwrap();
        assert!(refused.contains("is not understood"), "{refused}");
    }
    victims.assert_undisturbed();
    raw.assert_deaf(&subjects, &mut hearing);
}

#[test]
fn what_the_server_refuses_fills_no_disk() {
    let Some(victims) = Victims::new() else { return };
    let raw = victims.stranger();
    let subject = "x".repeat(1_900);
    (0..20_000).for_each(|_| raw.says(&subject, b""));
    raw.flush();
    let directory = victims.place.path().join("fleet");
    let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
    let logs: Vec<_> =
        entries.filter(|of| of.file_name().to_string_lossy().starts_with("nats.log")).collect();
    let bytes: u64 = logs.iter().map(|log| log.metadata().unwrap().len()).sum();
    assert!(logs.len() > 1 && bytes < 32 << 20, "{logs:?}: {bytes}");
    victims.assert_undisturbed();
    drop((raw, victims.broker));
    assert!(!directory.exists(), "{:?}", std::fs::read_dir(&directory));
}

#[test]
fn who_is_called_like_another_is_not_taken_for_it() {
    let Some(victims) = Victims::new() else { return };
    let id = victims.id.as_str().to_owned();
    join(&victims.token, &id, &NewKey::make().unwrap()).unwrap();
    let revoked = ask_revoke(&victims.lead, vec![id.clone()], Vec::new()).unwrap();
    let cut: Vec<&str> = revoked.agents.iter().map(|agent| &*agent.id).collect();
    assert_eq!(cut, [id]);
}

#[test]
fn an_agent_is_nobody_but_itself() {
    let Some(victims) = Victims::new() else { return };
    let id = victims.id.as_str();
    let (own, config, raw) = victims.intruder();
    let own = own.as_str();
    let mut subjects = words(&[">", "*.>", "plimsoll.>", "plimsoll.ask.*", "plimsoll.tell.*"]);
    subjects.extend(words(&["plimsoll.join", "plimsoll.up.>", "$JS.>", "$O.>", "$SYS.>"]));
    subjects.push(format!("plimsoll.ask.{id}"));
    subjects.push(format!("_INBOX_plimsoll_{id}.>"));
    subjects.push("_INBOX_plimsoll_coordinator.>".to_owned());
    subjects.push("_INBOX_plimsoll_join.>".to_owned());
    let mut hearing = raw.hears(&subjects);
    for subject in
        ["plimsoll.ask.all", "plimsoll.up.ask", "plimsoll.join", "$O.plimsoll-shared.C.x"]
    {
        raw.says(subject, b"as somebody else");
    }
    for subject in [
        format!("plimsoll.ask.{id}"),
        format!("plimsoll.tell.{id}"),
        format!("$O.plimsoll-of-{id}.C.x"),
        format!("$O.plimsoll-of-{id}.C.cnVu.cGFydA==.x"),
        format!("_INBOX_plimsoll_{id}.x"),
    ] {
        raw.says(&subject, b"as somebody else");
    }
    for subject in of_streams(id) {
        assert_eq!(raw.asks(&subject, b"{}"), None, "{subject}");
    }
    let of_own = ["STREAM.DELETE", "STREAM.UPDATE", "CONSUMER.CREATE", "CONSUMER.LIST"];
    for api in of_own {
        let subject = format!("$JS.API.{api}.OBJ_plimsoll-of-{own}");
        assert_eq!(raw.asks(&subject, b"{}"), None, "{subject}");
    }
    // It says that it is another, and goes: the other is still there.
    let twin = Raw::connect(&config, &format!("plimsoll-agent/{id}/7"), own).unwrap();
    drop(twin);
    victims.assert_undisturbed();
    raw.assert_deaf(&subjects, &mut hearing);
}

#[test]
fn an_agent_has_the_server_say_nothing_to_others() {
    let Some(victims) = Victims::new() else { return };
    let id = victims.id.as_str();
    let (own, _config, raw) = victims.intruder();
    let own = own.as_str();
    // What it says in the name of a coordinator, and of another agent, lies in its own bucket.
    let ask: Ask<Order> = Ask::Roll { coordinator: 66, look: Vec::new(), number: 1 };
    let kept = format!("$O.plimsoll-of-{own}.C.cnVu.x");
    raw.says(&kept, &encode(&ask).unwrap());
    let shared = format!("$O.plimsoll-shared.C.cnVu.cGxhbg==.{}", victims.kept.1.word);
    for (stream, subject) in
        [(format!("OBJ_plimsoll-of-{own}"), kept), ("OBJ_plimsoll-shared".to_owned(), shared)]
    {
        let last = format!("{{\"last_by_subj\":\"{subject}\"}}");
        for to in
            ["plimsoll.ask.all", &format!("plimsoll.ask.{id}"), &format!("plimsoll.tell.{id}")]
        {
            raw.asks_for(&format!("$JS.API.DIRECT.GET.{stream}.{subject}"), to, b"");
            for api in ["DIRECT.GET", "STREAM.MSG.GET", "STREAM.INFO"] {
                raw.asks_for(&format!("$JS.API.{api}.{stream}"), to, last.as_bytes());
            }
            raw.asks_for(&format!("$O.plimsoll-of-{own}.C.cnVu.x"), to, b"acknowledged there");
            let consumer = json!({"stream_name": stream, "config": {"name": "n",
                "deliver_subject": to, "deliver_policy": "all", "ack_policy": "none",
                "replay_policy": "instant"}});
            let consumer = consumer.to_string();
            for api in ["CREATE", "DURABLE.CREATE"] {
                for of in ["", ".n", ".n.$O.>"] {
                    let subject = format!("$JS.API.CONSUMER.{api}.{stream}{of}");
                    assert_eq!(raw.asks(&subject, consumer.as_bytes()), None, "{subject} {to}");
                }
            }
        }
    }
    victims.assert_undisturbed();
}

/// The reply to a request is stored where its subject belongs to a bucket, whosever that is.
#[test]
fn an_agent_has_the_server_store_nothing_over_what_others_have_put_there() {
    let Some(victims) = Victims::new() else { return };
    let id = victims.id.as_str();
    let (own, _config, raw) = victims.intruder();
    let own = own.as_str();
    // What it keeps itself asks a server to remove all else, wherever it is stored.
    let (evil, all) = (format!("$O.plimsoll-of-{own}.C.cnVu.evil"), [("Nats-Rollup", "all")]);
    raw.says_with(&evil, &all, b"other bytes");
    raw.says(&evil, b"other bytes");
    let word = &victims.kept.1.word;
    let shared = format!("$O.plimsoll-shared.C.cnVu.cGxhbg==.{word}");
    let places = [
        format!("$O.plimsoll-of-{id}.M.cnVuL3BhcnQ="),
        format!("$O.plimsoll-of-{id}.C.cnVu.cGFydA==.x"),
        format!("$O.plimsoll-of-{id}.C.cnVu.cGFydA=="),
        "$O.plimsoll-shared.M.cnVuL3BsYW4=".to_owned(),
        shared.clone(),
    ];
    for (stream, subject) in
        [(format!("OBJ_plimsoll-of-{own}"), &evil), ("OBJ_plimsoll-shared".to_owned(), &shared)]
    {
        let last = format!("{{\"last_by_subj\":\"{subject}\"}}");
        for place in &places {
            raw.asks_for(&evil, place, b"acknowledged there");
            raw.asks_for(&format!("$JS.API.DIRECT.GET.{stream}.{subject}"), place, b"");
            for api in ["DIRECT.GET", "STREAM.MSG.GET", "STREAM.PURGE", "STREAM.INFO"] {
                raw.asks_for(&format!("$JS.API.{api}.{stream}"), place, last.as_bytes());
            }
        }
    }
    victims.assert_undisturbed();
}

#[test]
fn what_an_agent_has_put_there_is_removed_whatever_it_is() {
    let Some(victims) = Victims::new() else { return };
    let (own, config, raw) = victims.intruder();
    let space = Space::Of(own.clone());
    let (agent, _asked) = Nats::join(&config, Side::Agent(&own, 8)).unwrap();
    let kept = agent.put(&space, "run/part", &mut Cursor::new(CONTENT)).unwrap();
    for odd in ["M.x", "C.%%", "C.x.y", "C.cnVu.b2Rk.x", "C.cnVu"] {
        raw.says(&format!("$O.plimsoll-of-{}.{odd}", own.as_str()), b"garbage");
    }
    // Nor can a header remove what was put there before.
    raw.says_with(&format!("$O.plimsoll-of-{}.C.x", own.as_str()), &[("Nats-Rollup", "all")], b"x");
    raw.flush();
    let fetched = |kept: &Kept| {
        let mut content = Vec::new();
        victims.lead.get(&space, kept, &mut content).map(|_| content)
    };
    // What it says of a content may be anything, and is found out at once: a server is tried again
    // for as long as it does not answer.
    let odd: [&dyn Fn(&mut Kept); 12] = [
        &|kept| kept.word = "x".to_owned(),
        &|kept| kept.word = String::new(),
        &|kept| kept.word = ">".to_owned(),
        &|kept| kept.word = "a b".to_owned(),
        &|kept| kept.word = "x".repeat(100_000),
        &|kept| kept.name = "run/odd".to_owned(),
        &|kept| kept.name = String::new(),
        &|kept| kept.name = "run//part".to_owned(),
        &|kept| kept.name = "x".repeat(100_000),
        &|kept| kept.size_bytes += 1,
        &|kept| kept.size_bytes = u64::MAX,
        &|kept| kept.sha256 = "x".to_owned(),
    ];
    for (number, change) in odd.iter().enumerate() {
        let mut changed = kept.clone();
        change(&mut changed);
        let why = fetched(&changed).unwrap_err();
        let why = std::error::Error::source(&why).unwrap().to_string();
        assert!(!why.contains("cannot be asked for"), "{number}: {why}");
    }
    assert_eq!(fetched(&kept).unwrap(), CONTENT);
    victims.lead.remove(&space, "run").unwrap();
    assert!(fetched(&kept).is_err());
    victims.assert_undisturbed();
}

/// Returns the server's description of an agent's stream, if there is one.
fn stream_of(victims: &Victims, id: &str) -> Option<Value> {
    let raw = Raw::connect(&victims.config, "x", "coordinator").unwrap();
    let said = raw.asks(&format!("$JS.API.STREAM.INFO.OBJ_plimsoll-of-{id}"), b"{}").unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    said.get("config").is_some().then_some(said)
}

#[test]
fn what_an_agent_keeps_takes_its_own_room_and_no_other() {
    let Some(mut victims) = Victims::new() else { return };
    let (own, _config, raw) = victims.intruder();
    let (own, id) = (own.as_str().to_owned(), victims.id.as_str().to_owned());
    let kept = |victims: &Victims, id: &str| {
        stream_of(victims, id).unwrap()["state"]["messages"].as_u64().unwrap()
    };
    let config = stream_of(&victims, &own).unwrap()["config"].clone();
    let room = config["max_msgs"].as_u64().unwrap() * config["max_msg_size"].as_u64().unwrap();
    assert!(room > 0 && config["max_msg_size"].as_u64().unwrap() < 1 << 19, "{config}");
    // Below the word that it was given, pieces of contents; nothing else, and nothing elsewhere.
    let below = |id: &str, path: &str| format!("$O.plimsoll-of-{id}.C.{path}");
    raw.says(&below(&own, "cnVu.x"), &[0; 1 << 18]);
    raw.says(&below(&own, "cnVu.y"), &[0; 1 << 19]);
    raw.says(&below(&own, "eA==.x"), b"below another word");
    // The word of another agent is not known, so what the server answers is not kept for it.
    raw.asks_for(&below(&own, "cnVu.z"), &below(&id, "eA==.x"), b"acknowledged there");
    raw.flush();
    assert_eq!((kept(&victims, &own), kept(&victims, &id)), (2, 1));
    let lead = victims.lead.make(&[(victims.id.clone(), "another".to_owned())]);
    lead.unwrap();
    assert_eq!(kept(&victims, &id), 1, "what was there stays");
    // When its leave is taken back, all of it goes.
    ask_revoke(&victims.lead, vec![own.clone()], Vec::new()).unwrap();
    victims.broker.tend().unwrap();
    assert_eq!(stream_of(&victims, &own), None);
    assert_eq!(kept(&victims, &id), 1);
}

#[test]
fn names_that_are_none_are_shown_to_nobody() {
    let Some(victims) = Victims::new() else { return };
    let (own, _config, raw) = victims.intruder();
    let says = |number, about: About| {
        let what = What::<Answer, LiveDoc>::Here(about);
        let tell = Tell { agent: own.clone(), incarnation: 7, number, coordinator: None, what };
        raw.says(&format!("plimsoll.tell.{}", own.as_str()), &encode(&tell).unwrap());
        raw.flush();
    };
    let good = about("good", 1);
    let bad = [
        About { name: "\u{1b}]0;x\u{7}".to_owned(), ..good.clone() },
        About { name: "x".repeat(100_000), ..good.clone() },
        About { name: String::new(), ..good.clone() },
        About { version: "1\n2".to_owned(), ..good.clone() },
        About { kept: vec!["\r".to_owned()], ..good.clone() },
        About { busy: Some("\u{8}".to_owned()), ..good.clone() },
    ];
    let count = bad.len() as u64;
    (0..).zip(bad).for_each(|(number, about)| says(number, about));
    says(count, good);
    let clock = RunTime::machine().clock;
    let call = Call { coordinator: 1, look: &[], limit: LONG };
    let mut any = |present: &[Recruit], _| !present.is_empty();
    let roll = call_roll(&victims.lead, &victims.told, &*clock, call, &mut any).unwrap();
    let names: Vec<&str> = roll.present.iter().map(|each| &*each.about.name).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn who_floods_is_cut_short_and_others_are_heard() {
    const FLOOD: usize = 60_000;
    let Some(victims) = Victims::new() else { return };
    let (own, _config, raw) = victims.intruder();
    let subject = format!("plimsoll.tell.{}", own.as_str());
    // What is larger than a message may be is not even taken.
    (0..200).for_each(|_| raw.says(&subject, &[b'['; 900_000]));
    for at in 0..FLOOD {
        raw.says(&subject, b"again and again");
        if at == FLOOD / 2 {
            let to = Address::Coordinators(victims.id.clone());
            victims.agent.post(&to, b"still here".to_vec()).unwrap();
        }
    }
    raw.flush();
    let (mut taken, mut is_heard) = (0, false);
    while let Ok(arrival) = victims.told.recv_timeout(if is_heard { SHORT } else { LONG }) {
        let Arrival::Message { from, bytes } = arrival else { continue };
        match from == Some(own.clone()) {
            true => taken += 1,
            false => is_heard |= bytes == b"still here",
        }
        assert!(bytes.len() < 900_000);
    }
    assert!(is_heard);
    assert!(taken < FLOOD, "all of {taken}");
}

#[test]
fn a_coordinator_has_agents_write_nowhere_but_where_their_owners_say() {
    let Some(victims) = Victims::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let parts = place.path().join("parts");
    let works = works(&parts, &On::Null, 0);
    let through = |_, nats| Arc::new(nats) as Arc<dyn Fabric>;
    let task = Task::join(&victims.token, about("agent", 1), works, &through);
    let agent = AgentId::new("a0002").unwrap();
    victims.lead.make(&[(agent.clone(), RUN.to_owned())]).unwrap();
    let file = WorkloadFile::from_yaml("w", WORKLOAD).unwrap();
    let open = |weights: &[u32], part| {
        Order::Open(Box::new(Assignment {
            workload: Held::Here(serde_json::to_value(&file).unwrap()),
            seed: 1,
            weights: weights.to_vec(),
            names: Vec::new(),
            part,
            access: ACCESS.into(),
            conduct: ConductDoc { op_timeout_ns: 60_000_000_000, ..ConductDoc::default() },
            found: Held::Here(BTreeMap::new()),
            content: Held::Here(ContentDoc::default()),
            receipt: RUN.to_owned(),
        }))
    };
    let elsewhere =
        Held::Kept(Kept { name: "../../etc/passwd".to_owned(), ..victims.kept.1.clone() });
    let mut strange = open(&[1], 0);
    if let Order::Open(assignment) = &mut strange {
        assignment.workload = elsewhere;
    }
    let asks = [
        ("../../outside", open(&[1], 0), "run id"),
        ("/outside", open(&[1], 0), "run id"),
        ("../../outside", Order::Collect, "it keeps no part of that run"),
        ("run-1", open(&[1], 7), "the shares of the agents mean nothing"),
        ("run-2", strange, "cannot fetch"),
        ("run-3", Order::Forget { stays: true }, "something else than it said"),
    ];
    for (number, (run, order, why)) in asks.into_iter().enumerate() {
        let step = |order, dismissed| Step {
            coordinator: number as u64,
            run: run.to_owned(),
            incarnation: 7,
            step: 1,
            order,
            ends: false,
            dismissed,
            is_known: false,
            probe: None,
        };
        let to = Address::Agent(agent.clone());
        let say = |step| victims.lead.post(&to, encode(&Ask::<Order>::Step(step)).unwrap());
        say(step(Some(order), false)).unwrap();
        let answer = loop {
            let Arrival::Message { bytes, .. } = victims.told.recv_timeout(LONG).unwrap() else {
                continue;
            };
            let Ok(tell) = decode::<Tell<Answer, LiveDoc>>(&bytes) else { continue };
            if let What::Run(Progress { state: State::Done { answer, .. }, .. }) = tell.what {
                break answer.unwrap();
            }
        };
        let Answer::Failed { why: said } = answer else { panic!("{run}: {answer:?}") };
        assert!(said.contains(why), "{run}: {said}");
        say(step(None, true)).unwrap();
        // It is free again.
        let is_free = |bytes: &[u8]| {
            let tell = decode::<Tell<Answer, LiveDoc>>(bytes);
            tell.is_ok_and(|tell| match tell.what {
                What::Run(progress) => matches!(progress.state, State::Unknown),
                _ => false,
            })
        };
        while !matches!(victims.told.recv_timeout(LONG).unwrap(),
            Arrival::Message { bytes, .. } if is_free(&bytes))
        {}
    }
    // What means nothing it passes over.
    for garbage in [&b"\xff"[..], &[b'['; 400_000], b"{}"] {
        victims.lead.post(&Address::Agent(agent.clone()), garbage.to_vec()).unwrap();
    }
    task.end();
    let left = std::fs::read_dir(place.path()).unwrap().count();
    assert!(left <= 1 && std::fs::read_dir(&parts).map_or(0, Iterator::count) == 0, "{left}");
}

#[test]
fn who_has_no_certificate_of_the_fleet_is_not_spoken_to() {
    let Some(victims) = Victims::new() else { return };
    let server = &victims.token.servers[0];
    // Without TLS: the server says where it is, and nothing more.
    let mut plain = std::net::TcpStream::connect(server).unwrap();
    plain.set_read_timeout(Some(LONG)).unwrap();
    plain.write_all(b"CONNECT {\"verbose\":true}\r\nPING\r\nSUB > 1\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("INFO {") && !said.contains("PONG"), "{said}");
    // With one that somebody else has signed, under any name.
    let other = Authority::new().unwrap();
    for name in ["a0001", "coordinator", "up", "system", "join", "nobody"] {
        let tls = client_config(victims.token.authority, &other.client(name).unwrap()).unwrap();
        let servers = vec![format!("tls://{server}").parse().unwrap()];
        let config = NatsConfig { servers, access: Access::Fleet(Arc::new(tls)), system: None };
        let refused = Raw::connect(&config, "x", name).err();
        assert!(refused.is_some(), "{name}");
    }
    victims.assert_undisturbed();
}
