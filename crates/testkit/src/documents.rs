//! Command lines that documents quote, in fenced blocks, and the files that they show.

/// A fenced block.
pub struct Block {
    /// What stands behind its fence, such as `sh run` or `yaml file=workload.yaml`.
    pub info: String,
    /// What it holds, as it stands.
    pub body: String,
    /// Its commands of the program, each on one line: what goes on behind a `\` is joined.
    pub lines: Vec<String>,
}

impl Block {
    /// Returns the name of the file that it shows, where it says one: `file=NAME`.
    pub fn file(&self) -> Option<&str> {
        self.info.split(' ').find_map(|word| word.strip_prefix("file="))
    }

    /// Returns all that a shell would run, each command on one line.
    pub fn shell_lines(&self) -> Vec<String> {
        let joined = self.body.replace("\\\n", " ");
        let lines = joined.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line).trim());
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }
}

/// Returns the fenced blocks of a page, in their order.
pub fn fenced(page: &str) -> Vec<Block> {
    let block = |block: &str| {
        let (info, body) = block.split_once('\n')?;
        let mut block = Block { info: info.to_owned(), body: body.to_owned(), lines: Vec::new() };
        let lines = block.shell_lines().into_iter();
        block.lines = lines.filter(|line| line.starts_with("plimsoll ")).collect();
        Some(block)
    };
    page.split("```").skip(1).step_by(2).filter_map(block).collect()
}

/// Returns the blocks of a page that have commands of the program, in their order.
pub fn blocks(page: &str) -> Vec<Block> {
    fenced(page).into_iter().filter(|block| !block.lines.is_empty()).collect()
}

/// Returns the scripts behind `run:` of a workflow file for continuous integration.
pub fn workflow_runs(workflow: &str) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        let depth = line.len() - line.trim_start().len();
        let Some(script) = line.trim_start().trim_start_matches("- ").strip_prefix("run:") else {
            continue;
        };
        if script.trim() != "|" {
            scripts.push(format!("{}\n", script.split(" #").next().unwrap_or_default().trim()));
            continue;
        }
        let mut block = String::new();
        let is_inside =
            |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > depth;
        while let Some(line) = lines.next_if(is_inside) {
            block.push_str(line.trim_start());
            block.push('\n');
        }
        scripts.push(block);
    }
    scripts
}
