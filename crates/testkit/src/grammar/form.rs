//! What may stand in a line of a model: numbers in the forms in which programs print them.

use super::cosbench;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// The last cells of fio's shares of latency are of milliseconds only.
const FIO_CELLS: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
const COSBENCH_OPS: [&str; 13] = [
    "init",
    "prepare",
    "mprepare",
    "read",
    "write",
    "mwrite",
    "filewrite",
    "mfilewrite",
    "list",
    "delete",
    "cleanup",
    "dispose",
    "delay",
];

/// Tells whether a text has a form.
pub(super) fn is_a(name: &str, text: &str) -> bool {
    let form = name.trim_start_matches(|c: char| c.is_ascii_digit());
    if let Ok(width) = name[..name.len() - form.len()].parse::<usize>() {
        let inner = text.trim_start_matches(' ');
        let length = text.chars().count();
        let is_wide = length == width || (length > width && inner.len() == text.len());
        return is_wide && is_a(form, inner);
    }
    if let Some(count) = form.strip_prefix('f').and_then(|count| count.parse().ok()) {
        return decimals(text) == Some(count);
    }
    match form {
        "int" => is_digits(text),
        // Plural.
        "ints" => is_digits(text) && text != "1",
        "num" => decimals(text).is_some(),
        "word" => !text.contains(char::is_whitespace),
        "cell" => !text.contains(','),
        "gap" => text.chars().all(|c| c == ' '),
        "text" => !text.is_empty(),
        "lt" => text == "<",
        "clock" => is_clock(text),
        "weekday" => WEEKDAYS.contains(&text),
        "month" => MONTHS.contains(&text),
        "date" => is_date(text),
        form => is_of_program(form, text),
    }
}

/// Tells whether a text has a form that one program only prints.
fn is_of_program(form: &str, text: &str) -> bool {
    match form {
        // mdtest's.
        "slashes" => {
            let lengths: Vec<usize> = text.split('/').map(str::len).collect();
            lengths == [2, 2, 4] && text.split('/').all(is_digits)
        }
        // Three decimals, or what we put where nothing is known.
        "known" => text == "–" || decimals(text) == Some(3),
        "share" => text.strip_suffix('%').is_some_and(|of| of == "–" || decimals(of) == Some(1)),
        // weed's.
        "os" => ["linux", "darwin", "freebsd", "windows"].contains(&text),
        "arch" => ["amd64", "arm64", "386", "arm"].contains(&text),
        // fio's.
        "size" => is_fio_size(text, &["KiB", "MiB", "GiB", "TiB"]),
        "dsize" => is_fio_size(text, &["kB", "MB", "GB", "TB"]),
        "bare" => has_unit(text, &["Ki", "Mi", "Gi", "Ti"], |text| is_scaled(text, 4)),
        "rw" => {
            let mixed = text.strip_prefix("rand").unwrap_or(text);
            ["read", "write", "rw", "trim", "trimwrite"].contains(&mixed)
        }
        "engine" => {
            let (psync, aio) = (
                ["sync", "psync", "pvsync", "pvsync2", "null", "mmap"],
                ["libaio", "posixaio", "io_uring"],
            );
            psync.contains(&text) || aio.contains(&text)
        }
        "count" => is_short(text, 4),
        "bound" => is_short(text, 6),
        // s3-benchmark's, of at most one decimal that is not 0.
        "s3size" => has_unit(text, &["B", "K", "M", "G", "T", "P", "E"], |text| {
            is_digits(text) || (decimals(text) == Some(1) && !text.ends_with('0'))
        }),
        // COSBench's: at most two decimals that do not end in 0.
        "cos" => is_cosbench(text),
        "cosna" => text == "N/A" || is_cosbench(text),
        "cos%" => text.strip_suffix('%').is_some_and(is_cosbench),
        "cos%na" => text == "N/A" || text.strip_suffix('%').is_some_and(is_cosbench),
        "cosop" => COSBENCH_OPS.contains(&text),
        "cosid" => text.strip_prefix('w').is_some_and(is_digits),
        "cosstate" => cosbench::is_state(false, text),
        "cosend" => cosbench::is_state(true, text),
        "cosstates" => is_states(false, text),
        "cosends" => is_states(true, text),
        // In quotes.
        "q" => is_quoted(text, |text| !text.contains(['"', '<'])),
        "qint" => is_quoted(text, is_digits),
        "tens" => text == "N/A" || (is_digits(text) && text.ends_with('0') && text.len() > 1),
        other => panic!("a pattern knows no <{other}>"),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns how many decimals a number has.
fn decimals(text: &str) -> Option<usize> {
    match text.split_once('.') {
        None => is_digits(text).then_some(0),
        Some((whole, rest)) => (is_digits(whole) && is_digits(rest)).then_some(rest.len()),
    }
}

fn has_unit(text: &str, units: &[&str], is_number: impl Fn(&str) -> bool) -> bool {
    units.iter().filter_map(|unit| text.strip_suffix(unit)).any(is_number)
}

fn is_clock(text: &str) -> bool {
    text.len() == 8 && text.split(':').all(|part| part.len() == 2 && is_digits(part))
}

/// `2026-11-20 20:55:06`.
fn is_date(text: &str) -> bool {
    let Some((day, clock)) = text.split_once(' ') else { return false };
    let lengths: Vec<usize> = day.split('-').map(str::len).collect();
    lengths == [4, 2, 2] && day.split('-').all(is_digits) && is_clock(clock)
}

/// A number before a prefix of fio's, which leaves it at most so many characters: `59.1`, `118`.
fn is_scaled(text: &str, width: usize) -> bool {
    match decimals(text) {
        None => false,
        Some(0) => (width - 1..=width).contains(&text.len()),
        // Where the point itself would make it too long, a decimal less.
        Some(_) => text.len() == width,
    }
}

fn is_short(text: &str, width: usize) -> bool {
    let is_scaled = |text: &str| is_scaled(text, width);
    (is_digits(text) && text.len() <= width) || has_unit(text, &["k", "M", "G", "T"], is_scaled)
}

fn is_fio_size(text: &str, units: &[&str]) -> bool {
    let bytes = text.strip_suffix('B').is_some_and(|text| is_digits(text) && text.len() <= 4);
    bytes || has_unit(text, units, |text| is_scaled(text, 4))
}

/// Tells whether lines are fio's shares of latency in one unit: five a line, smallest cell first.
pub(super) fn are_fio_shares(unit: &str, lines: &[&str]) -> bool {
    let known = if unit == "msec" { &FIO_CELLS[..] } else { &FIO_CELLS[..10] };
    let cell = |part: &str| {
        let (cell, share) = part.split_once('=')?;
        let is_share = decimals(share.strip_suffix('%')?) == Some(2);
        known.iter().position(|known| *known == cell).filter(|_| is_share)
    };
    let head = format!("  lat ({unit})   : ");
    let mut cells: Vec<Option<usize>> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(line) = line.strip_prefix(&head) else { return false };
        let before = cells.len();
        cells.extend(line.split(", ").map(cell));
        let is_last = number + 1 == lines.len();
        if cells.len() - before > 5 || (cells.len() - before < 5 && !is_last) {
            return false;
        }
    }
    cells.iter().all(Option::is_some) && cells.is_sorted_by(|a, b| a < b)
}

/// Tells whether lines are fio's percentiles: in order, as many a line as fit, in equal columns.
pub(super) fn are_fio_percentiles(lines: &[&str]) -> bool {
    let mut all: Vec<(f64, u64)> = Vec::new();
    let mut columns = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(line) = line.strip_prefix("     |") else { return false };
        let is_last = number + 1 == lines.len();
        let line = if is_last { Some(line) } else { line.strip_suffix(',') };
        let Some(cells) = line.and_then(percentile_cells) else { return false };
        let of = cells[0].0;
        let most = (73 / (of.0 + 10 + of.2)).max(1);
        if cells.iter().any(|cell| *columns.get_or_insert(cell.0) != cell.0)
            || cells.len() > most
            || (cells.len() < most && !is_last)
        {
            return false;
        }
        all.extend(cells.into_iter().map(|(_, percentile)| percentile));
    }
    let Some((_, _, width)) = columns else { return false };
    let needed = all.last().map_or(0, |(_, value)| value.to_string().len());
    width == needed.max(5) && all.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1)
}

/// The decimals of a percentile, its width, and the width of its value.
type Columns = (usize, usize, usize);

fn percentile_cells(text: &str) -> Option<Vec<(Columns, (f64, u64))>> {
    let cell = |cell: &str| {
        let (percent, value) = cell.strip_prefix(' ')?.split_once("th=[")?;
        let value = value.strip_suffix(']')?;
        let places = decimals(percent.trim_start_matches(' '))?;
        let columns = (places, percent.len(), value.len());
        if percent.len() < places + 3 {
            return None;
        }
        let (percent, value) = (percent.trim_start_matches(' '), value.trim_start_matches(' '));
        Some((columns, (percent.parse().ok()?, value.parse().ok()?)))
    };
    text.split(',').map(cell).collect()
}

fn is_cosbench(text: &str) -> bool {
    match decimals(text) {
        Some(0) => true,
        Some(1 | 2) => !text.ends_with('0'),
        _ => false,
    }
}

/// States with their dates: `waiting @ 2026-11-20 20:55:06,...`.
fn is_states(of_workload: bool, text: &str) -> bool {
    let is_one = |one: &str| {
        one.split_once(" @ ")
            .is_some_and(|(state, at)| cosbench::is_state(of_workload, state) && is_date(at))
    };
    text.split(',').all(is_one)
}

fn is_quoted(text: &str, is_it: impl Fn(&str) -> bool) -> bool {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).is_some_and(is_it)
}
