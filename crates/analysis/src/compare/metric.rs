//! What is compared: each metric with its name, its unit and which way is better.

/// A figure of a run that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Metric {
    /// The load line, the highest rate at which a store keeps what was asked, in operations per
    /// second.
    LoadLine,
    /// The highest rate at which operations succeeded in any probe of a search for it.
    Capacity,
    /// Operations per second.
    Rate,
    /// Objects per second.
    Objects,
    /// Bytes per second.
    Throughput,
    /// Bytes per second in the fastest segment.
    Fastest,
    /// Bytes per second in the median segment.
    Median,
    /// Bytes per second in the slowest segment.
    Slowest,
    /// Objects per second in the fastest segment.
    FastestObjects,
    /// Objects per second in the median segment.
    MedianObjects,
    /// Objects per second in the slowest segment.
    SlowestObjects,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 90th percentile of the latency.
    P90,
    /// 99th percentile of the latency.
    P99,
    /// 99.9th percentile of the latency.
    P99_9,
    /// Longest latency.
    Max,
    /// Shortest latency.
    Min,
    /// Standard deviation of the latency.
    StdDev,
    /// Mean time to first byte.
    TtfbMean,
    /// Median time to first byte.
    TtfbP50,
    /// 90th percentile of the time to first byte.
    TtfbP90,
    /// 99th percentile of the time to first byte.
    TtfbP99,
    /// Longest time to first byte.
    TtfbMax,
    /// Shortest time to first byte.
    TtfbMin,
    /// Standard deviation of the time to first byte.
    TtfbStdDev,
    /// Failed of all operations of the stage, 0 to 1.
    Errors,
}

/// What a metric is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second.
    OpsPerSec,
    /// Objects per second.
    ObjectsPerSec,
    /// Bytes per second.
    BytesPerSec,
    /// Nanoseconds.
    Nanoseconds,
    /// A part of the whole, 0 to 1.
    Fraction,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    HigherIsBetter,
    /// Less is better.
    LowerIsBetter,
}

impl Metric {
    /// Every metric, in the order they are shown in.
    pub const ALL: [Self; 27] = [
        Self::LoadLine,
        Self::Capacity,
        Self::Rate,
        Self::Objects,
        Self::Throughput,
        Self::Fastest,
        Self::Median,
        Self::Slowest,
        Self::FastestObjects,
        Self::MedianObjects,
        Self::SlowestObjects,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P99_9,
        Self::Max,
        Self::Min,
        Self::StdDev,
        Self::TtfbMean,
        Self::TtfbP50,
        Self::TtfbP90,
        Self::TtfbP99,
        Self::TtfbMax,
        Self::TtfbMin,
        Self::TtfbStdDev,
        Self::Errors,
    ];

    /// Returns the name used in gates and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoadLine => "load-line",
            Self::Capacity => "capacity",
            Self::Rate => "rate",
            Self::Objects => "objects",
            Self::Throughput => "throughput",
            Self::Fastest => "fastest",
            Self::Median => "median",
            Self::Slowest => "slowest",
            Self::FastestObjects => "fastest-objects",
            Self::MedianObjects => "median-objects",
            Self::SlowestObjects => "slowest-objects",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::Max => "max",
            Self::Min => "min",
            Self::StdDev => "std-dev",
            Self::TtfbMean => "ttfb-mean",
            Self::TtfbP50 => "ttfb-p50",
            Self::TtfbP90 => "ttfb-p90",
            Self::TtfbP99 => "ttfb-p99",
            Self::TtfbMax => "ttfb-max",
            Self::TtfbMin => "ttfb-min",
            Self::TtfbStdDev => "ttfb-std-dev",
            Self::Errors => "errors",
        }
    }

    /// Returns the metric of that name, in letters of either case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name().eq_ignore_ascii_case(name))
    }

    /// Returns what it is counted in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::LoadLine | Self::Capacity | Self::Rate => Unit::OpsPerSec,
            Self::Objects | Self::FastestObjects | Self::MedianObjects | Self::SlowestObjects => {
                Unit::ObjectsPerSec
            }
            Self::Throughput | Self::Fastest | Self::Median | Self::Slowest => Unit::BytesPerSec,
            Self::Errors => Unit::Fraction,
            _ => Unit::Nanoseconds,
        }
    }

    /// Returns which way it is better.
    pub const fn direction(self) -> Direction {
        match self.unit() {
            Unit::OpsPerSec | Unit::ObjectsPerSec | Unit::BytesPerSec => Direction::HigherIsBetter,
            Unit::Nanoseconds | Unit::Fraction => Direction::LowerIsBetter,
        }
    }

    /// Returns the metric that tells the same of a kind: segments are of objects where no bytes
    /// move.
    pub const fn of_kind(self, moves_bytes: bool) -> Self {
        match self {
            Self::Fastest if !moves_bytes => Self::FastestObjects,
            Self::Median if !moves_bytes => Self::MedianObjects,
            Self::Slowest if !moves_bytes => Self::SlowestObjects,
            _ => self,
        }
    }
}
