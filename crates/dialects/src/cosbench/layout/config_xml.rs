//! `workload-config.xml`: the workload with every default and all that is inherited, laid out as
//! COSBench lays it out, without secrets.

use crate::cosbench::model::{Access, Stage, Work, Workload};
use crate::cosbench::storage::{text_without_secrets, without_secrets};

/// Attributes go on in another line from this column on.
const LINE_MAX: usize = 72;
const INDENT: usize = 4;

/// Returns the document.
pub fn config_xml(workload: &Workload) -> String {
    let mut out =
        Xml { text: String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"), depth: 0 };
    let mut attributes = vec![("name", workload.name.clone())];
    let shown = |text: &Option<String>| text.as_deref().map(text_without_secrets);
    attributes.extend(shown(&workload.description).map(|text| ("description", text)));
    attributes.extend(shown(&workload.trigger).map(|text| ("trigger", text)));
    attributes.push(("config", without_secrets(&workload.config)));
    out.open("workload", &attributes);
    out.access("auth", &workload.auth);
    out.access("storage", &workload.storage);
    out.open("workflow", &[("config", without_secrets(&workload.workflow_config))]);
    workload.stages.iter().for_each(|stage| out.stage(stage));
    out.close("workflow");
    out.close("workload");
    out.text
}

struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn stage(&mut self, stage: &Stage) {
        let mut attributes =
            vec![("name", stage.name.clone()), ("closuredelay", stage.closure_delay_s.to_string())];
        let trigger = stage.trigger.as_deref().map(text_without_secrets);
        attributes.extend(trigger.map(|text| ("trigger", text)));
        attributes.push(("config", without_secrets(&stage.config)));
        self.open("workstage", &attributes);
        self.access("auth", &stage.auth);
        self.access("storage", &stage.storage);
        stage.works.iter().for_each(|work| self.work(work));
        self.close("workstage");
    }

    fn work(&mut self, work: &Work) {
        let mut attributes = vec![
            ("name", work.name.clone()),
            ("type", work.kind.name().to_owned()),
            ("workers", work.workers.to_string()),
            ("interval", work.interval_s.to_string()),
            ("division", work.division.name().to_owned()),
            ("runtime", work.runtime_s.to_string()),
            ("rampup", work.rampup_s.to_string()),
            ("rampdown", work.rampdown_s.to_string()),
            ("afr", work.afr.to_string()),
            ("totalOps", work.total_ops.to_string()),
            ("totalBytes", work.total_bytes.to_string()),
        ];
        attributes.extend(work.driver.clone().map(|driver| ("driver", driver)));
        attributes.extend(work.iops_max.map(|max| ("maxIOPS", max.to_string())));
        attributes.extend(work.bytes_per_sec_max.map(|max| ("maxBW", max.to_string())));
        attributes.push(("config", without_secrets(&work.config)));
        self.open("work", &attributes);
        self.access("auth", &work.auth);
        self.access("storage", &work.storage);
        for operation in &work.operations {
            let attributes = [
                ("type", operation.kind.clone()),
                ("ratio", operation.ratio.to_string()),
                ("division", operation.division.name().to_owned()),
                ("config", without_secrets(&operation.config.text)),
                ("id", operation.id.clone()),
            ];
            self.tag("operation", &attributes, "/>");
        }
        self.close("work");
    }

    fn access(&mut self, name: &str, access: &Access) {
        let mut attributes = vec![("type", access.kind.clone())];
        if !access.config.text.is_empty() {
            attributes.push(("config", without_secrets(&access.config.text)));
        }
        self.tag(name, &attributes, "/>");
    }

    fn open(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.tag(name, attributes, ">");
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth -= 1;
        // Bound: elements that this writer has open.
        self.text.push_str(&" ".repeat(self.depth * INDENT));
        self.text.push_str(&format!("</{name}>\n"));
    }

    /// Writes a tag. The last attribute stays in its line, however long that becomes.
    fn tag(&mut self, name: &str, attributes: &[(&str, String)], end: &str) {
        // Bound: elements that this writer has open.
        let mut line = format!("{}<{name}", " ".repeat(self.depth * INDENT));
        for (index, (key, value)) in attributes.iter().enumerate() {
            let attribute = format!("{key}=\"{}\"", escaped(value));
            let is_last = index + 1 == attributes.len();
            if !is_last && line.chars().count() + 1 + attribute.chars().count() > LINE_MAX {
                self.text.push_str(&line);
                self.text.push('\n');
                // Bound: elements that this writer has open.
                line = format!("{}{attribute}", " ".repeat((self.depth + 1) * INDENT));
            } else {
                line.push(' ');
                line.push_str(&attribute);
            }
        }
        self.text.push_str(&line);
        self.text.push_str(end);
        self.text.push('\n');
    }
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '"' => text.push_str("&quot;"),
            '\t' | '\n' | '\r' => text.push_str(&format!("&#x{:x};", u32::from(letter))),
            letter => text.push(letter),
        }
    }
    text
}
