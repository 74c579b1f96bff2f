//! The parts of what took a while, by time.

/// Gives every cell of `cell_ns` that the time from `start_ns` to `end_ns` touches its share of
/// `wholes`.
///
/// Cumulative shares are rounded down at each border and subtracted, so that the parts add up
/// exactly, and so that two neighbouring cells get together what one of twice the length gets.
pub(crate) fn share_by_time<const N: usize>(
    start_ns: u64,
    end_ns: u64,
    cell_ns: u64,
    wholes: [u64; N],
    mut give: impl FnMut(usize, [u64; N]),
) {
    let (first, last) = (start_ns / cell_ns, end_ns / cell_ns);
    if first == last {
        give(last as usize, wholes);
        return;
    }
    let span = u128::from(end_ns - start_ns);
    let mut before = [0; N];
    for index in first..=last {
        let until = end_ns.min((index + 1) * cell_ns);
        let part = |whole: u64| (u128::from(whole) * u128::from(until - start_ns) / span) as u64;
        let now = wholes.map(part);
        give(index as usize, std::array::from_fn(|which| now[which] - before[which]));
        before = now;
    }
}
