//! Sizes as s3-benchmark writes them: a number with a unit that is a power of 1024.

/// The largest object that one PUT writes.
const SIZE_BYTES_MAX: u64 = 5 << 30;
/// The letters of the powers of 1024, from 1 on.
const POWERS: &str = "KMGTPE";

/// Returns the bytes of a size such as `1M`, `1.5KB`, `4KiB`, `100B`, in letters of either case.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let wanted = || {
        "it is a number above 0 with a unit, B, K, M, G, T, P or E, which are powers of 1024: 1M, \
         1.5KB, 4KiB"
            .to_owned()
    };
    let upper = text.trim().to_ascii_uppercase();
    let at = upper.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wanted)?;
    let (number, unit) = upper.split_at(at);
    let power = match unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(unit) {
        "" if unit == "B" => 0,
        letter if letter.len() == 1 => {
            POWERS.find(letter).map(|index| index as i32 + 1).ok_or_else(wanted)?
        }
        _ => return Err(wanted()),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| plain).ok_or_else(wanted)?;
    let bytes = number * 1024f64.powi(power);
    if bytes < 1.0 {
        return Err("an object has at least 1 byte".to_owned());
    }
    if bytes >= (SIZE_BYTES_MAX + 1) as f64 {
        return Err("it is too large: one PUT writes at most 5G".to_owned());
    }
    // What is left below a byte is cut off, as there.
    Ok(bytes as u64)
}
