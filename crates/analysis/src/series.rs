//! What is counted of a row: by endpoint and kind, and with details also by kind and by client.

use std::collections::BTreeSet;

use plimsoll_model::{EndpointId, OpKind, OpRecord};

use crate::accumulator::{Accumulator, Frame};
use crate::detail::{
    ClientDetails, ClientKind, EndpointSeries, KindDetail, KindDetails, RowDetails, series,
};
use crate::{Depth, EndpointAnalysis, Question};

type ByKind<T> = [Option<Box<T>>; OpKind::ALL.len()];

/// All that is counted of one row.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    question: &'a Question<'a>,
    frame: Frame,
    /// Whether each endpoint is counted by itself; if not, all count as the first.
    by_host: bool,
    endpoints: Vec<ByKind<Accumulator>>,
    clients: Vec<ByKind<Accumulator>>,
    kinds: ByKind<KindDetail>,
}

impl<'a> Series<'a> {
    pub(crate) fn new(question: &'a Question<'a>, frame: Frame, by_host: bool) -> Self {
        let (endpoints, clients) = (Vec::new(), Vec::new());
        Self { question, frame, by_host, endpoints, clients, kinds: ByKind::default() }
    }

    /// Counts an operation.
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let (frame, depth) = (&self.frame, self.question.depth);
        let segments = depth > Depth::Figures;
        let endpoint = if self.by_host { op.endpoint.0 } else { 0 };
        counted(&mut self.endpoints, endpoint, frame, op.kind, segments).add(frame, op);
        if depth < Depth::Details {
            return;
        }
        if let Some(&client) = self.question.client_of.get(op.worker.0 as usize) {
            counted(&mut self.clients, client, frame, op.kind, false).add(frame, op);
        }
        let kind = &mut self.kinds[op.kind as usize];
        let kind = kind.get_or_insert_with(|| Box::new(KindDetail::new(frame.segments_count)));
        kind.ended.add(op, self.question.started, frame.segment_length());
        if op.outcome.is_ok() {
            kind.add(frame, op);
        }
    }

    /// Adds what another one counted of the same row.
    pub(crate) fn merge(&mut self, other: Self) {
        merge(&mut self.endpoints, other.endpoints);
        merge(&mut self.clients, other.clients);
        merge_kinds(&mut self.kinds, other.kinds, KindDetail::merge);
    }

    fn iter(&self) -> impl Iterator<Item = (OpKind, EndpointId, &Accumulator)> {
        iter(&self.endpoints).map(|(kind, endpoint, counted)| (kind, EndpointId(endpoint), counted))
    }

    /// Returns the kinds that occurred, in the order of their numbers.
    pub(crate) fn kinds(&self) -> BTreeSet<OpKind> {
        self.iter().map(|(kind, ..)| kind).collect()
    }

    /// Returns the wanted ones as one.
    pub(crate) fn merged(&self, wanted: impl Fn(OpKind, EndpointId) -> bool) -> Accumulator {
        let wanted = self.iter().filter(|(kind, endpoint, _)| wanted(*kind, *endpoint));
        merged(wanted.map(|(.., counted)| counted), &self.frame)
    }

    /// Returns the figures of each endpoint, of one kind or of all; none where they are not told
    /// apart.
    pub(crate) fn endpoints(&self, kind: Option<OpKind>) -> Vec<EndpointAnalysis> {
        if !self.by_host {
            return Vec::new();
        }
        let wanted = |of: OpKind| kind.is_none_or(|kind| of == kind);
        let frame = self.frame.opened_without_histograms();
        let figures = |endpoint: EndpointId| {
            self.merged(|of, at| wanted(of) && at == endpoint).figures(&frame)
        };
        let seen = self.iter().filter(|(kind, ..)| wanted(*kind)).map(|(_, endpoint, _)| endpoint);
        let seen: BTreeSet<EndpointId> = seen.collect();
        let of_each = |endpoint| EndpointAnalysis { endpoint, figures: figures(endpoint) };
        seen.into_iter().map(of_each).collect()
    }

    /// Returns what was asked for beyond the figures.
    pub(crate) fn details(&self) -> Option<RowDetails> {
        (self.question.depth > Depth::Figures).then(|| RowDetails {
            kinds: self.kinds().into_iter().map(|kind| self.kind_details(kind)).collect(),
            series: series(&self.merged(|_, _| true), &self.frame, &[]),
            clients: self.client_details(),
        })
    }

    fn kind_details(&self, kind: OpKind) -> KindDetails {
        let whole = self.merged(|of, _| of == kind);
        let detail = self.kinds[kind as usize].as_deref();
        let segment_times = detail.map_or(&[][..], |detail| &detail.segments);
        let endpoints = self.iter().filter(|(of, ..)| self.by_host && *of == kind);
        let of_each = |(_, endpoint, counted)| EndpointSeries {
            endpoint,
            series: series(counted, &self.frame, &[]),
        };
        KindDetails {
            kind,
            series: series(&whole, &self.frame, segment_times),
            endpoints: endpoints.map(of_each).collect(),
            segment_times: segment_times.to_vec(),
            ended: detail.map_or(Vec::new(), |detail| {
                let bounds = (self.question.started, self.question.ended);
                detail.ended.intervals(bounds, self.frame.segment_length())
            }),
            sizes: detail.map_or(Vec::new(), KindDetail::sizes),
            access: detail.and_then(KindDetail::access),
        }
    }

    fn client_details(&self) -> Vec<ClientDetails> {
        let all = || iter(&self.clients);
        let seen: BTreeSet<u16> = all().map(|(_, client, _)| client).collect();
        if seen.len() < 2 {
            return Vec::new();
        }
        let frame = self.frame.opened_without_histograms();
        let of_each = |client| {
            let own = || all().filter(|(_, of, _)| *of == client);
            ClientDetails {
                client,
                total: merged(own().map(|(.., counted)| counted), &self.frame).figures(&frame),
                kinds: own()
                    .map(|(kind, _, counted)| ClientKind { kind, figures: counted.figures(&frame) })
                    .collect(),
            }
        };
        seen.into_iter().map(of_each).collect()
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }
}

/// Adds accumulators by number and kind to others.
fn merge(mine: &mut Vec<ByKind<Accumulator>>, theirs: Vec<ByKind<Accumulator>>) {
    if mine.len() < theirs.len() {
        mine.resize_with(theirs.len(), Default::default);
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        merge_kinds(mine, theirs, |mine, theirs| mine.merge(&theirs));
    }
}

fn merge_kinds<T>(mine: &mut ByKind<T>, theirs: ByKind<T>, merge: impl Fn(&mut T, T)) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => merge(mine, *theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
    }
}

/// Returns what is counted of that number and kind, made when it is the first time.
fn counted<'l>(
    all: &'l mut Vec<ByKind<Accumulator>>,
    number: u16,
    frame: &Frame,
    kind: OpKind,
    details: bool,
) -> &'l mut Accumulator {
    let number = usize::from(number);
    if number >= all.len() {
        // Bound: a number of 16 bits.
        all.resize_with(number + 1, Default::default);
    }
    all[number][kind as usize]
        .get_or_insert_with(|| Box::new(Accumulator::new(frame, kind.moves_bytes(), details)))
}

fn iter(all: &[ByKind<Accumulator>]) -> impl Iterator<Item = (OpKind, u16, &Accumulator)> {
    all.iter().zip(0u16..=u16::MAX).flat_map(|(kinds, number)| {
        let kinds = OpKind::ALL.into_iter().zip(kinds);
        kinds.filter_map(move |(kind, counted)| Some((kind, number, counted.as_deref()?)))
    })
}

fn merged<'l>(mut all: impl Iterator<Item = &'l Accumulator>, frame: &Frame) -> Accumulator {
    let first = all.next().cloned();
    let mut sum = first.unwrap_or_else(|| Accumulator::new(frame, false, false));
    all.for_each(|counted| sum.merge(counted));
    sum
}
