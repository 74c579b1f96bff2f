//! Sums in values: `(4k * 2)`, and what is left of `$ncpus-2`.

/// How deep brackets may be nested.
const DEPTH_MAX: usize = 32;

struct Sum<'t, 'a> {
    rest: &'t str,
    depth: usize,
    /// Whether a division that does not come out even is refused instead of cut off.
    is_exact: bool,
    atom: &'a mut dyn FnMut(&str) -> Result<i128, String>,
}

/// Returns what `text` adds up to; `+ - * / % ^`, brackets, and numbers as `atom` reads them.
pub(super) fn evaluate(
    text: &str,
    is_exact: bool,
    atom: &mut dyn FnMut(&str) -> Result<i128, String>,
) -> Result<i128, String> {
    let mut sum = Sum { rest: text.trim_start(), depth: 0, is_exact, atom };
    let value = sum.terms()?;
    match sum.rest {
        "" => Ok(value),
        rest => Err(format!("`{rest}` is left over")),
    }
}

impl Sum<'_, '_> {
    fn terms(&mut self) -> Result<i128, String> {
        let mut value = self.factors()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let right = self.factors()?;
            let both = match sign {
                '+' => value.checked_add(right),
                _ => value.checked_sub(right),
            };
            value = both.ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn factors(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let right = self.power()?;
            if sign != '*' && right == 0 {
                return Err("it divides by zero".to_owned());
            }
            if sign == '/' && self.is_exact && value % right != 0 {
                return Err(format!("{value} / {right} does not come out even"));
            }
            let both = match sign {
                '*' => value.checked_mul(right),
                '/' => value.checked_div(right),
                _ => value.checked_rem(right),
            };
            value = both.ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.unit()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = self.unit()?;
        let exponent = u32::try_from(exponent).map_err(|_| too_large())?;
        base.checked_pow(exponent).ok_or_else(too_large)
    }

    fn unit(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("brackets are nested deeper than {DEPTH_MAX}"));
        }
        let value = if self.take(&['-']).is_some() {
            self.unit()?.checked_neg().ok_or_else(too_large)?
        } else if self.take(&['(']).is_some() {
            let value = self.terms()?;
            if self.take(&[')']).is_none() {
                return Err("a bracket is not closed".to_owned());
            }
            value
        } else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
            let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(length);
            self.rest = rest.trim_start();
            (self.atom)(number)?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn take(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = self.rest[sign.len_utf8()..].trim_start();
        Some(sign)
    }
}

fn too_large() -> String {
    "it is too large".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str, is_exact: bool) -> Result<i128, String> {
        evaluate(text, is_exact, &mut |text| {
            text.parse().map_err(|_| format!("`{text}` is not a number"))
        })
    }

    #[test]
    fn signs_bind_as_in_arithmetic() {
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1+2)*3", 9),
            ("8 - 3 - 2", 3),
            ("2 * 3 ^ 2", 18),
            ("7 % 4", 3),
            ("-2 + 5", 3),
            ("3 - -2", 5),
            ("8/2/2", 2),
        ] {
            assert_eq!(sum(text, true), Ok(value), "{text}");
        }
        assert_eq!(sum("7/2", false), Ok(3));
    }

    #[test]
    fn what_is_no_sum_is_refused() {
        for (text, why) in [
            ("", "`` is not a number"),
            ("1 +", "`` is not a number"),
            ("(1", "a bracket is not closed"),
            ("1)", "`)` is left over"),
            ("1 / 0", "it divides by zero"),
            ("1 % 0", "it divides by zero"),
            ("7 / 2", "7 / 2 does not come out even"),
            ("9 ^ 99", "it is too large"),
            ("2 ^ -1", "it is too large"),
        ] {
            assert_eq!(sum(text, true), Err(why.to_owned()), "{text}");
        }
        assert!(sum(&"(".repeat(100_000), true).is_err_and(|why| why.contains("nested")));
        assert!(sum(&"-".repeat(100_000), true).is_err_and(|why| why.contains("nested")));
    }
}
