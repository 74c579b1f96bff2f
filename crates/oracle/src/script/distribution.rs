//! Distributions of service time whose quantiles are known: every draw inverts the cumulative
//! distribution.

use statrs::function::erf::{erfc, erfc_inv};

/// How long serving takes, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Distribution {
    Constant(f64),
    Uniform {
        from: f64,
        to: f64,
    },
    Exponential {
        mean: f64,
    },
    /// The logarithm is normal with mean `mu` and standard deviation `sigma`.
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    /// Above `scale`, the chance of more than x is (scale / x)^shape.
    Pareto {
        scale: f64,
        shape: f64,
    },
    /// `first` with the chance `share`, else `second`.
    Bimodal {
        first: Box<Distribution>,
        second: Box<Distribution>,
        share: f64,
    },
}

impl Distribution {
    /// Returns the value that `unit`, evenly distributed in [0, 1), stands for.
    pub(crate) fn draw(&self, unit: f64) -> f64 {
        match self {
            Self::Bimodal { first, second, share } => match unit < *share {
                true => first.draw(unit / share),
                false => second.draw((unit - share) / (1.0 - share)),
            },
            _ => self.quantile(unit),
        }
    }

    /// Returns the smallest value that is not exceeded with the chance `p`, which is in [0, 1).
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform { from, to } => from + (to - from) * p,
            // ln_1p keeps the digits of small p.
            Self::Exponential { mean } => -mean * (-p).ln_1p(),
            Self::Lognormal { mu, sigma } => {
                (mu - sigma * std::f64::consts::SQRT_2 * erfc_inv(2.0 * p)).exp()
            }
            Self::Pareto { scale, shape } => scale * (-(-p).ln_1p() / shape).exp(),
            Self::Bimodal { first, second, .. } => {
                let (a, b) = (first.quantile(p), second.quantile(p));
                self.smallest_reaching(p, a.min(b), a.max(b))
            }
        }
    }

    /// Returns the chance of at most `value`.
    pub(crate) fn cumulative(&self, value: f64) -> f64 {
        match self {
            Self::Constant(constant) => f64::from(u8::from(value >= *constant)),
            Self::Uniform { from, to } => ((value - from) / (to - from)).clamp(0.0, 1.0),
            Self::Exponential { mean } => -(-value.max(0.0) / mean).exp_m1(),
            Self::Lognormal { .. } if value <= 0.0 => 0.0,
            Self::Lognormal { mu, sigma } => {
                0.5 * erfc((mu - value.ln()) / (sigma * std::f64::consts::SQRT_2))
            }
            Self::Pareto { scale, .. } if value <= *scale => 0.0,
            Self::Pareto { scale, shape } => 1.0 - (scale / value).powf(*shape),
            Self::Bimodal { first, second, share } => {
                share * first.cumulative(value) + (1.0 - share) * second.cumulative(value)
            }
        }
    }

    /// Returns the mean, `None` where it is infinite.
    pub(crate) fn mean(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Uniform { from, to } => Some((from + to) / 2.0),
            Self::Exponential { mean } => Some(*mean),
            Self::Lognormal { mu, sigma } => Some((mu + sigma * sigma / 2.0).exp()),
            Self::Pareto { scale, shape } if *shape > 1.0 => Some(scale * shape / (shape - 1.0)),
            Self::Pareto { .. } => None,
            Self::Bimodal { first, second, share } => {
                Some(share * first.mean()? + (1.0 - share) * second.mean()?)
            }
        }
    }

    /// Returns the smallest value in `[low, high]` whose chance reaches `p`, by halving.
    fn smallest_reaching(&self, p: f64, mut low: f64, mut high: f64) -> f64 {
        // A double has 53 digits, so more halvings change nothing.
        for _ in 0..64 {
            let middle = low + (high - low) / 2.0;
            match self.cumulative(middle) >= p {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }
}
