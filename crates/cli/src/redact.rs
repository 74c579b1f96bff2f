//! The command line without its secrets, for the record.

/// Flags whose value is never kept.
const SECRET_FLAGS: [&str; 6] =
    ["--access-key", "--secret-key", "--session-token", "--sts-web-token", "--influxdb", "--otlp"];
/// The same of s3-benchmark's flags, which mean something else anywhere else.
const SECRET_FLAGS_S3_BENCHMARK: [&str; 4] = ["-a", "--a", "-s", "--s"];
const REDACTED: &str = "*REDACTED*";

/// Returns `words` with the values of secret flags replaced.
pub(crate) fn command_line(words: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let is_s3_benchmark = words.windows(2).any(|pair| pair == ["as", "s3-benchmark"]);
    let is_secret = |flag: &str| {
        SECRET_FLAGS.contains(&flag) || is_s3_benchmark && SECRET_FLAGS_S3_BENCHMARK.contains(&flag)
    };
    words
        .iter()
        .map(|word| {
            if std::mem::take(&mut hide_next) {
                return REDACTED.to_owned();
            }
            let flag = word.split_once('=').map_or(&**word, |(flag, _)| flag);
            // clap takes no abbreviated long flags, so the names are whole.
            if !is_secret(flag) {
                return word.clone();
            }
            if flag.len() < word.len() {
                return format!("{flag}={REDACTED}");
            }
            hide_next = true;
            word.clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_a_secret_flag_gives_its_value_away() {
        let line = "plimsoll s3 get --secret-key=S1 --access-key S2 --host h --session-token --x \
                    --sts-web-token ey.J --influxdb=http://T@h:1/b/o --otlp http://h/?key=K";
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(
            command_line(&words).join(" "),
            "plimsoll s3 get --secret-key=*REDACTED* --access-key *REDACTED* --host h \
             --session-token *REDACTED* --sts-web-token *REDACTED* --influxdb=*REDACTED* \
             --otlp *REDACTED*"
        );
    }
    #[test]
    fn the_letters_of_s3_benchmark_are_secret_there_only() {
        let hidden = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            command_line(&words).join(" ")
        };
        assert_eq!(
            hidden("plimsoll as s3-benchmark --md5 -a A1 -s=S1 --s -S2 -u http://h -b b"),
            "plimsoll as s3-benchmark --md5 -a *REDACTED* -s=*REDACTED* --s *REDACTED* -u http://h -b b"
        );
        assert_eq!(hidden("plimsoll as fio -a A1 -s S1"), "plimsoll as fio -a A1 -s S1");
    }
}
