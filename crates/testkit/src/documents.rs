//! Command lines that documents quote, in fenced blocks.

/// A fenced block with commands of the program.
pub struct Block {
    /// What stands behind its fence, such as `sh run`.
    pub info: String,
    /// Its commands, each on one line: what goes on behind a `\` is joined.
    pub lines: Vec<String>,
}

/// Returns the blocks of a page that have commands, in their order.
pub fn blocks(page: &str) -> Vec<Block> {
    let block = |block: &str| {
        let (info, body) = block.split_once('\n')?;
        let body = body.replace("\\\n", " ");
        let lines = body.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
        let lines = lines.filter(|line| line.starts_with("plimsoll ")).map(str::to_owned);
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| Block { info: info.to_owned(), lines })
    };
    page.split("```").skip(1).step_by(2).filter_map(block).collect()
}
