//! The lanes of a stage: by endpoint and kind, and with details also by kind and by client.

use std::collections::BTreeSet;

use plimsoll_model::{EndpointId, OpKind, OpRecord};

use crate::detail::{ClientDetails, KindDetail, KindDetails, StageDetails, series};
use crate::lane::{Frame, Lane};
use crate::{EndpointAnalysis, Question};

type ByKind<T> = [Option<Box<T>>; OpKind::ALL.len()];

/// All lanes of one stage.
#[derive(Debug)]
pub(crate) struct Lanes<'a> {
    question: &'a Question<'a>,
    frame: Frame,
    endpoints: Vec<ByKind<Lane>>,
    clients: Vec<ByKind<Lane>>,
    kinds: ByKind<KindDetail>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(question: &'a Question<'a>, frame: Frame) -> Self {
        let (endpoints, clients) = (Vec::new(), Vec::new());
        Self { question, frame, endpoints, clients, kinds: ByKind::default() }
    }

    /// Counts an operation if the question is about it.
    pub(crate) fn add(&mut self, op: &OpRecord) {
        if !self.question.asks_for(op) {
            return;
        }
        let (frame, details) = (&self.frame, self.question.details);
        lane(&mut self.endpoints, op.endpoint.0, frame, op.kind, details).add(frame, op);
        if !details {
            return;
        }
        if let Some(&client) = self.question.client_of.get(op.worker.0 as usize) {
            lane(&mut self.clients, client, frame, op.kind, false).add(frame, op);
        }
        let kind = &mut self.kinds[op.kind as usize];
        let kind = kind.get_or_insert_with(|| Box::new(KindDetail::new(frame.segments_count)));
        if op.outcome.is_ok() {
            kind.add(frame, op);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (OpKind, EndpointId, &Lane)> {
        iter(&self.endpoints).map(|(kind, endpoint, lane)| (kind, EndpointId(endpoint), lane))
    }

    /// Returns the kinds that occurred, in the order of their numbers.
    pub(crate) fn kinds(&self) -> BTreeSet<OpKind> {
        self.iter().map(|(kind, ..)| kind).collect()
    }

    /// Returns the wanted lanes as one.
    pub(crate) fn merged(&self, wanted: impl Fn(OpKind, EndpointId) -> bool) -> Lane {
        let wanted = self.iter().filter(|(kind, endpoint, _)| wanted(*kind, *endpoint));
        merged(wanted.map(|(.., lane)| lane), &self.frame)
    }

    /// Returns the figures of each endpoint, of one kind or of all.
    pub(crate) fn endpoints(&self, kind: Option<OpKind>) -> Vec<EndpointAnalysis> {
        let wanted = |of: OpKind| kind.is_none_or(|kind| of == kind);
        let figures = |endpoint: EndpointId| {
            self.merged(|of, at| wanted(of) && at == endpoint).figures(&self.frame)
        };
        let seen = self.iter().filter(|(kind, ..)| wanted(*kind)).map(|(_, endpoint, _)| endpoint);
        let seen: BTreeSet<EndpointId> = seen.collect();
        let of_each = |endpoint| EndpointAnalysis { endpoint, figures: figures(endpoint) };
        seen.into_iter().map(of_each).collect()
    }

    /// Returns what was asked for beyond the figures.
    pub(crate) fn details(&self) -> Option<StageDetails> {
        self.question.details.then(|| StageDetails {
            kinds: self.kinds().into_iter().map(|kind| self.kind_details(kind)).collect(),
            series: series(&self.merged(|_, _| true), &self.frame, &[]),
            clients: self.client_details(),
        })
    }

    fn kind_details(&self, kind: OpKind) -> KindDetails {
        let whole = self.merged(|of, _| of == kind);
        let detail = self.kinds[kind as usize].as_ref().expect("every kind seen has its details");
        let endpoints = self.iter().filter(|(of, ..)| *of == kind);
        let of_each = |(_, endpoint, lane)| (endpoint, series(lane, &self.frame, &[]));
        KindDetails {
            kind,
            series: series(&whole, &self.frame, &detail.segments),
            endpoints: endpoints.map(of_each).collect(),
            segment_times: detail.segments.clone(),
            service_time: self.question.open.then(|| whole.service_time().clone()),
            latency: whole.latency,
            ttfb: whole.ttfb,
            sizes: detail.sizes(),
            access: detail.access(),
        }
    }

    fn client_details(&self) -> Vec<ClientDetails> {
        let lanes = || iter(&self.clients);
        let seen: BTreeSet<u16> = lanes().map(|(_, client, _)| client).collect();
        if seen.len() < 2 {
            return Vec::new();
        }
        let of_each = |client| {
            let own = || lanes().filter(|(_, of, _)| *of == client);
            ClientDetails {
                client,
                total: merged(own().map(|(.., lane)| lane), &self.frame).figures(&self.frame),
                kinds: own().map(|(kind, _, lane)| (kind, lane.figures(&self.frame))).collect(),
            }
        };
        seen.into_iter().map(of_each).collect()
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }
}

/// Returns the lane of that number and kind, made when it is the first time.
fn lane<'l>(
    lanes: &'l mut Vec<ByKind<Lane>>,
    number: u16,
    frame: &Frame,
    kind: OpKind,
    details: bool,
) -> &'l mut Lane {
    let number = usize::from(number);
    if number >= lanes.len() {
        lanes.resize_with(number + 1, Default::default);
    }
    lanes[number][kind as usize]
        .get_or_insert_with(|| Box::new(Lane::new(frame, kind.moves_bytes(), details)))
}

fn iter(lanes: &[ByKind<Lane>]) -> impl Iterator<Item = (OpKind, u16, &Lane)> {
    lanes.iter().zip(0u16..=u16::MAX).flat_map(|(kinds, number)| {
        let lanes = OpKind::ALL.into_iter().zip(kinds);
        lanes.filter_map(move |(kind, lane)| Some((kind, number, lane.as_deref()?)))
    })
}

fn merged<'l>(mut lanes: impl Iterator<Item = &'l Lane>, frame: &Frame) -> Lane {
    let first = lanes.next().cloned();
    let mut all = first.unwrap_or_else(|| Lane::new(frame, false, false));
    lanes.for_each(|lane| all.merge(lane));
    all
}
