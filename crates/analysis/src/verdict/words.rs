//! Figures of a verdict in words, and all that is known of a stage beside what decides.

use std::time::Duration;

use super::facts::{ClientFacts, LoadFacts, RowFacts, SocketFacts};

/// How many lines there are of one client, and how many clients have lines of their own: a fleet
/// has hundreds, and the one that matters is named by what decides.
const CLIENTS_TOLD_MAX: usize = 8;

/// Returns a share of 1 in percent.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Returns a time with three digits.
pub(super) fn time(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    let (value, unit) = match ns {
        ..1e3 => return format!("{ns:.0} ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        ..10.0 => format!("{value:.2} {unit}"),
        ..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Returns a number of things.
pub(super) fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

/// Returns the number, or a word for one of them.
pub(super) fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Returns what begins a line about a client.
pub(super) fn of(client: &ClientFacts) -> String {
    client.name.as_ref().map_or_else(String::new, |name| format!("{name}: "))
}

/// Returns all that is known of a stage, a line each.
pub(super) fn known(load: &LoadFacts<'_>, clients: &[ClientFacts]) -> Vec<String> {
    let mut lines: Vec<String> = load.rows.iter().filter_map(in_flight).collect();
    for client in clients.iter().take(CLIENTS_TOLD_MAX) {
        let own = [
            processors(client),
            stood_still(client),
            delay(client),
            throttled(client),
            steal(client),
            recorder(client),
            connections(client),
            round_trip(client),
            lost(client),
            window(client),
            descriptors(client),
        ];
        lines.extend(own.into_iter().flatten());
        lines.extend(link(client));
        lines.extend(device(client));
    }
    if clients.len() > CLIENTS_TOLD_MAX {
        let more = clients.len() - CLIENTS_TOLD_MAX;
        lines.push(format!("{more} more clients: see the record"));
    }
    lines
}

/// Says how many operations were under way, by Little's law.
pub(super) fn in_flight(row: &RowFacts<'_>) -> Option<String> {
    let mean = row.in_flight()?;
    let (rate, service) = (row.analysis.total.rates?.ops.0, row.analysis.total.service().mean?);
    Some(format!(
        "{} of {} operations at most were in flight on average ({}/s × {}, Little's law)",
        number(mean),
        row.in_flight_max,
        number(rate),
        time(service)
    ))
}

/// Says how much of the processors the client used.
pub(super) fn processors(client: &ClientFacts) -> Option<String> {
    let share = client.cpu_share()?;
    let busiest = client.threads.first().and_then(|thread| client.wanted(thread));
    let busiest = busiest.map_or(String::new(), |of| format!(", the busiest {}", percent(of)));
    let machine = client.machine.map_or(String::new(), |machine| {
        let own = machine.own.map_or(String::new(), |own| format!(", {} by this", percent(own)));
        format!("; the machine's processors were busy {} of it{own}", percent(machine.busy))
    });
    let threads = plural(u64::from(client.threads_count), "worker thread");
    Some(format!(
        "{}{threads} used a processor {} of the time{busiest}{machine}",
        of(client),
        percent(share)
    ))
}

/// Says how often the client stood still, if it did.
pub(super) fn stood_still(client: &ClientFacts) -> Option<String> {
    let share = client.still_share().filter(|_| client.standstills_count > 0)?;
    Some(format!(
        "{}the client itself stood still {}, {} of the time ({} in all)",
        of(client),
        plural(client.standstills_count, "time"),
        percent(share),
        time(client.stood_still)
    ))
}

/// Says how long worker threads waited for a processor.
pub(super) fn delay(client: &ClientFacts) -> Option<String> {
    let share = client.delay_share()?;
    Some(format!(
        "{}worker threads were ready to run and had no processor {} of the time",
        of(client),
        percent(share)
    ))
}

/// Says how often the control group was stopped.
pub(super) fn throttled(client: &ClientFacts) -> Option<String> {
    let quota = client.quota?;
    let share = quota.share()?;
    let cores = quota.cores.map_or(String::new(), |cores| {
        format!(
            " of {} processors",
            if cores < 10.0 { format!("{cores:.2}") } else { number(cores) }
        )
    });
    Some(format!(
        "{}the control group's bound{cores} stopped the client in {} of {}",
        of(client),
        percent(share),
        plural(quota.periods, "period")
    ))
}

/// Says how much the hypervisor took away.
pub(super) fn steal(client: &ClientFacts) -> Option<String> {
    let steal = client.machine?.steal;
    (steal > 0.0).then(|| {
        format!("{}the hypervisor took {} of the machine's time", of(client), percent(steal))
    })
}

/// Says how long worker threads waited for the recorder.
pub(super) fn recorder(client: &ClientFacts) -> Option<String> {
    let share = client.recorder_share()?;
    Some(format!(
        "{}worker threads waited for the recorder {} of the time ({} in all)",
        of(client),
        percent(share),
        time(client.recorder_wait?)
    ))
}

/// Says how many connections there were, and what carried them.
pub(super) fn connections(client: &ClientFacts) -> Option<String> {
    let SocketFacts { opened, over_ring, .. } = client.sockets?;
    let carried = match over_ring {
        0 => "all requests over sockets".to_owned(),
        some => format!("{} sent by io_uring", plural(some, "request")),
    };
    Some(format!("{}{} made, {carried}", of(client), plural(opened, "connection")))
}

/// Says how long the way to the store and back is.
pub(super) fn round_trip(client: &ClientFacts) -> Option<String> {
    let rtt = client.sockets?.rtt_min?;
    Some(format!(
        "{}the shortest round trip took {} (median of connections)",
        of(client),
        time(rtt)
    ))
}

/// Says how much was lost on the way.
pub(super) fn lost(client: &ClientFacts) -> Option<String> {
    let sockets = client.sockets?;
    sockets.lost()?;
    Some(format!(
        "{}{} of {} sent again, {} of {} received out of order",
        of(client),
        sockets.retransmits,
        plural(sockets.segments_sent, "segment"),
        sockets.out_of_order,
        sockets.segments_received
    ))
}

/// Says for how long the receiver took nothing.
pub(super) fn window(client: &ClientFacts) -> Option<String> {
    let sockets = client.sockets?;
    let window = sockets.window_limited?;
    let buffer = sockets.buffer_limited.unwrap_or(0.0);
    Some(format!(
        "{}of the time with something to send, {} waited for the store to take it, {} for room in \
         the send buffer",
        of(client),
        percent(window),
        percent(buffer)
    ))
}

/// Says what could not be opened.
pub(super) fn descriptors(client: &ClientFacts) -> Option<String> {
    let (ports, descriptors) = (client.no_port_count, client.no_descriptor_count);
    let mut parts = Vec::new();
    if ports > 0 {
        parts.push(format!("{ports} for want of a local port"));
    }
    if descriptors > 0 {
        let most = client.descriptors_max.map_or(String::new(), |max| format!(" (limit {max})"));
        parts.push(format!("{descriptors} for want of a descriptor{most}"));
    }
    (!parts.is_empty())
        .then(|| format!("{}could not open connections or files: {}", of(client), parts.join(", ")))
}

/// Says what the busiest network interface carried.
pub(super) fn link(client: &ClientFacts) -> Option<String> {
    let link = client.links.first()?;
    let mib = link.bytes_per_sec / f64::from(1 << 20);
    let used = link.used().map_or(String::new(), |used| format!(", {} of it", percent(used)));
    Some(format!("{}{} carried {mib:.1} MiB/s in one direction{used}", of(client), link.name))
}

/// Says what the busiest device below the files did.
pub(super) fn device(client: &ClientFacts) -> Option<String> {
    let device = client.devices.first()?;
    Some(format!(
        "{}{} was busy {} of the time, with {} requests in it or waiting",
        of(client),
        device.name,
        percent(device.busy),
        number(device.queue)
    ))
}
