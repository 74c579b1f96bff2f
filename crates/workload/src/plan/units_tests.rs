//! Units are read, written and refused.

use proptest::prelude::*;

use super::*;

fn again<T: FromStr<Err = String> + fmt::Display + PartialEq + fmt::Debug>(value: &T) {
    assert_eq!(value.to_string().parse::<T>().as_ref(), Ok(value), "{value}");
}

#[test]
fn what_is_written_is_short() {
    for (text, written) in [("5m", "5m"), ("1m30s", "90s"), ("0", "0s"), ("100s", "100s")] {
        assert_eq!(text.parse::<Time>().unwrap().to_string(), written);
    }
    for (text, written) in [("64KiB", "64KiB"), ("64KB", "64000B"), ("4096", "4KiB")] {
        assert_eq!(text.parse::<Size>().unwrap().to_string(), written);
    }
    assert_eq!("4KiB..1MiB".parse::<SizeRange>().unwrap().to_string(), "4KiB..1MiB");
    assert_eq!("7".parse::<NumberRange>().unwrap().to_string(), "7");
    assert_eq!("50/s..2k/s".parse::<RateRange>().unwrap().to_string(), "50/s..2000/s");
    assert_eq!("5MiB/s".parse::<Cap>().unwrap(), Cap::BytesPerSec(5_242_880.0));
    assert_eq!("100/s".parse::<Cap>().unwrap(), Cap::OpsPerSec(100.0));
    assert_eq!("0.1%".parse::<Percent>().unwrap().to_string(), "0.1%");
}

#[test]
fn what_is_no_unit_is_refused() {
    assert!("5".parse::<Time>().is_err() && "600y".parse::<Time>().is_err());
    assert!("1000000d".parse::<Time>().is_err(), "more than 64 bits of nanoseconds");
    assert!("9..5".parse::<SizeRange>().is_err() && "5..x".parse::<SizeRange>().is_err());
    assert!("5/s".parse::<RateRange>().is_err() && "9/s..5/s".parse::<RateRange>().is_err());
    assert!("-5%".parse::<Percent>().is_err() && "0MiB/s".parse::<Cap>().is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        ns in any::<u64>(), bytes in any::<u64>(), more in 0u64..1 << 40, rate in 1e-6..1e7f64,
    ) {
        let time = Duration::from_nanos(ns);
        again(&Time(time));
        again(&Size(bytes));
        again(&Rate(rate));
        again(&Percent(rate));
        again(&Cap::BytesPerSec(rate));
        again(&Cap::OpsPerSec(rate));
        let (min, max) = (bytes.min(more), bytes.max(more));
        again(&SizeRange { min, max });
        again(&NumberRange { from: min, to: max });
        again(&TimeRange { min: Duration::from_nanos(min), max: Duration::from_nanos(max) });
        again(&RateRange { from: rate / 2.0, to: rate });
    }
}
