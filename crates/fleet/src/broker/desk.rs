//! Who may join a fleet, who has joined, and whose leave was taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::ServerAddr;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{BrokerError, JOIN, JOIN_SUBJECT, TokenRules, UP_SUBJECT, address, agent_id};
use crate::nats::{Access, Nats, NatsConfig, Side};
use crate::pki::{Authority, NewKey, PkiError, client_config};
use crate::protocol::{AgentId, NAME_BYTES_MAX};
use crate::token::Token;

/// A request to join.
#[derive(Serialize, Deserialize)]
struct Joining {
    token: u32,
    /// What only those know who have that token: all of them show the server the same name.
    proof: String,
    name: String,
    public_key: String,
}

/// The answer to it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Joined {
    Welcome { id: AgentId, certificate: String },
    Refused(String),
}

/// What a coordinator asks of who has made the fleet.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UpAsk {
    Token { uses: Option<u32>, lasts_ms: Option<u64> },
    Revoke { agents: Vec<String>, tokens: Vec<u32> },
}

/// The answer to it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UpSay {
    Token(String),
    Revoked(Revoked),
    Refused(String),
}

/// Whose leave was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Agents.
    pub agents: Vec<RevokedAgent>,
    /// Tokens.
    pub tokens: Vec<u32>,
    /// What names neither.
    pub unknown: Vec<String>,
}

/// An agent whose leave was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedAgent {
    /// What it was called on the fabric.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The token by which it had joined, where that still lets it join again.
    pub token: Option<u32>,
}

struct TokenState {
    rules: TokenRules,
    proof: String,
    made: std::time::Instant,
    used: u32,
    is_revoked: bool,
}

impl TokenState {
    /// Returns why nobody joins by it any more.
    fn refuses(&self) -> Option<&'static str> {
        if self.is_revoked {
            return Some("the token was revoked");
        }
        if self.rules.lasts.is_some_and(|lasts| self.made.elapsed() > lasts) {
            return Some("the token has expired");
        }
        let is_used = self.rules.uses.is_some_and(|uses| self.used >= uses);
        is_used.then_some("the token was used as often as it may be")
    }
}

/// An agent that has joined.
pub(super) struct Member {
    pub(super) name: String,
    /// By which token.
    token: u32,
    /// By this it is known again.
    public_key: Vec<u8>,
}

/// Who has joined, and who may.
#[derive(Default)]
pub(super) struct Members {
    tokens: BTreeMap<u32, TokenState>,
    /// By number.
    pub(super) agents: BTreeMap<u32, Member>,
    /// The numbers of those whose leave was taken back.
    pub(super) revoked: BTreeSet<u32>,
    /// The numbers of those that have joined, or come back, since somebody asked.
    pub(super) news: Vec<u32>,
}

/// More that have joined are not told one by one.
const NEWS_MAX: usize = 1 << 12;

impl Members {
    /// Returns the number of the agent with that key, unless its leave was taken back.
    fn number_of(&self, public_key: &[u8]) -> Option<u32> {
        let is_it = |(number, of): &(&u32, &Member)| {
            of.public_key == public_key && !self.revoked.contains(*number)
        };
        self.agents.iter().find(is_it).map(|(number, _)| *number)
    }

    /// Takes leave back of agents, by id or name, and of tokens.
    fn revoke(&mut self, agents: &[String], tokens: &[u32]) -> Revoked {
        let mut revoked = Revoked::default();
        for number in tokens {
            match self.tokens.get_mut(number) {
                Some(token) => {
                    token.is_revoked = true;
                    revoked.tokens.push(*number);
                }
                None => revoked.unknown.push(format!("token {number}")),
            }
        }
        for wanted in agents {
            let mut is_known = false;
            // An agent may have chosen the id of another as its name.
            let is_id = self.agents.keys().any(|number| *wanted == agent_id(*number));
            for (number, Member { name, token, .. }) in &self.agents {
                let id = agent_id(*number);
                if *wanted != *(if is_id { &id } else { name }) {
                    continue;
                }
                is_known = true;
                if self.revoked.insert(*number) {
                    let lets_join = self.tokens.get(token).is_some_and(|of| of.refuses().is_none());
                    let token = lets_join.then_some(*token);
                    revoked.agents.push(RevokedAgent { id, name: name.clone(), token });
                }
            }
            if !is_known {
                revoked.unknown.push(format!("agent {wanted}"));
            }
        }
        revoked
    }
}

/// What this process and whoever answers in its name know of the fleet.
pub(super) struct Desk {
    pub(super) authority: Authority,
    pub(super) members: Mutex<Members>,
    pub(super) agents_max: u32,
    /// The addresses by which agents reach the server.
    pub(super) servers: Vec<String>,
}

impl Desk {
    pub(super) fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn token(&self, rules: TokenRules) -> Result<Token, PkiError> {
        let mut members = self.members();
        let number = members.tokens.keys().last().map_or(1, |last| last + 1);
        let token = Token {
            servers: self.servers.clone(),
            authority: self.authority.fingerprint(),
            number,
            identity: self.authority.client(JOIN)?,
        };
        let (proof, made) = (token.proof(), std::time::Instant::now());
        members
            .tokens
            .insert(number, TokenState { rules, proof, made, used: 0, is_revoked: false });
        Ok(token)
    }

    /// Answers a coordinator.
    pub(super) fn answer(&self, asked: &[u8]) -> UpSay {
        match serde_json::from_slice(asked) {
            Ok(UpAsk::Token { uses, lasts_ms }) => {
                let lasts = lasts_ms.map(Duration::from_millis);
                match self.token(TokenRules { uses, lasts }) {
                    Ok(token) => UpSay::Token(token.to_text()),
                    Err(error) => UpSay::Refused(error.to_string()),
                }
            }
            Ok(UpAsk::Revoke { agents, tokens }) => {
                UpSay::Revoked(self.members().revoke(&agents, &tokens))
            }
            Err(_) => UpSay::Refused("the request is not understood".to_owned()),
        }
    }

    /// Lets somebody join who may.
    pub(super) fn welcome(&self, asked: &[u8]) -> Joined {
        let refused = |why: &str| Joined::Refused(why.to_owned());
        let Ok(Joining { token, proof, name, public_key }) = serde_json::from_slice(asked) else {
            return refused("the request is not understood");
        };
        let is_printable = !name.is_empty() && !name.contains(char::is_control);
        if !is_printable || name.len() > NAME_BYTES_MAX {
            return refused("its name is empty, too long or not printable");
        }
        let mut members = self.members();
        let Some(of) = members.tokens.get(&token).filter(|of| of.proof == proof) else {
            return refused("the token is unknown");
        };
        let refuses = of.refuses();
        let Ok(public_key) = STANDARD.decode(public_key) else {
            return refused("its key is invalid");
        };
        // One that comes back needs no leave again: it has it until that is taken back.
        let known = members.number_of(&public_key);
        if let Some(why) = refuses.filter(|_| known.is_none()) {
            return refused(why);
        }
        let next = members.agents.keys().last().map_or(1, |last| last + 1);
        let number = known.unwrap_or(next);
        if number > self.agents_max {
            return refused("as many agents have joined as may (--agents-max)");
        }
        let Ok(certificate) = self.authority.sign(&agent_id(number), &public_key) else {
            return refused("its key is invalid");
        };
        if let Some(known) = members.agents.get_mut(&number) {
            known.name = name;
        } else {
            if let Some(of) = members.tokens.get_mut(&token) {
                of.used += 1;
            }
            members.agents.insert(number, Member { name, token, public_key });
        }
        if members.news.len() < NEWS_MAX {
            members.news.push(number);
        }
        let id = AgentId::new(agent_id(number)).expect("a number is an id");
        Joined::Welcome { id, certificate: STANDARD.encode(certificate) }
    }
}

/// Asks who has made a fleet for a new token, and returns it as one word.
pub fn ask_token(nats: &Nats, rules: TokenRules) -> Result<String, BrokerError> {
    let lasts_ms = rules.lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
    match ask(nats, &UpAsk::Token { uses: rules.uses, lasts_ms })? {
        UpSay::Token(token) => Ok(token),
        _ => Err(BrokerError::Answer),
    }
}

/// Asks who has made a fleet to take leave back of agents, by id or name, and of tokens.
pub fn ask_revoke(
    nats: &Nats,
    agents: Vec<String>,
    tokens: Vec<u32>,
) -> Result<Revoked, BrokerError> {
    match ask(nats, &UpAsk::Revoke { agents, tokens })? {
        UpSay::Revoked(revoked) => Ok(revoked),
        _ => Err(BrokerError::Answer),
    }
}

fn ask(nats: &Nats, asked: &UpAsk) -> Result<UpSay, BrokerError> {
    let asked = serde_json::to_vec(asked).expect("it is JSON");
    let answer = nats.request(UP_SUBJECT, asked)?;
    match serde_json::from_slice(&answer) {
        Ok(UpSay::Refused(why)) => Err(BrokerError::Refuses(why)),
        Ok(said) => Ok(said),
        Err(_) => Err(BrokerError::Answer),
    }
}

/// Joins the fleet of a token under a name, and returns what the agent is called there and how it
/// is reached: the same as before where it has joined with that key before.
pub fn join(token: &Token, name: &str, key: &NewKey) -> Result<(AgentId, NatsConfig), BrokerError> {
    let servers: Vec<ServerAddr> =
        token.servers.iter().map(|server| address(server)).collect::<Result<_, _>>()?;
    let tls = Arc::new(client_config(token.authority, &token.identity)?);
    let asks = NatsConfig { servers: servers.clone(), access: Access::Fleet(tls), system: None };
    let nats = Nats::join_with(&asks, Side::Join, |_| true)?;
    let joining = Joining {
        token: token.number,
        proof: token.proof(),
        name: name.to_owned(),
        public_key: STANDARD.encode(key.public()),
    };
    let asked = serde_json::to_vec(&joining).expect("it is JSON");
    let answer = nats.request(JOIN_SUBJECT, asked)?;
    let refused = |why: &str| BrokerError::Refused(why.to_owned());
    let joined: Joined =
        serde_json::from_slice(&answer).map_err(|_| refused("it answers something else"))?;
    match joined {
        Joined::Refused(why) => Err(BrokerError::Refused(why)),
        Joined::Welcome { id, certificate } => {
            let certificate = STANDARD.decode(certificate);
            let certificate = certificate.map_err(|_| refused("its certificate is invalid"))?;
            let tls = Arc::new(client_config(token.authority, &key.with(certificate))?);
            Ok((id, NatsConfig { servers, access: Access::Fleet(tls), system: None }))
        }
    }
}
