//! Elements to a workload: attributes with their defaults, definitions inherited, special work
//! expanded, and a note of all that is passed over.

use super::config::{self, Config, Shown, join};
use super::error::{Notes, Place, Refused};
use super::keys;
use super::model::{Access, Division, Operation, Stage, Work, WorkKind, Workload};
use super::xml::Element;

/// All configs together, with what they inherit, are not longer than this.
const CONFIGS_BYTES_MAX: usize = 64 << 20;
/// How many of a million operations of normal work may fail where nothing is said.
const AFR_NORMAL: u32 = 200_000;
const AFR_MAX: i64 = 1_000_000;

/// Returns the workload of a document.
pub(super) fn build(root: &Element) -> Result<Workload, Refused> {
    if root.name != "workload" {
        let why = format!("the root element is `{}`", root.name);
        return Err(Refused::parsing(root.place, &why, "it must be `workload`"));
    }
    Builder { notes: Notes::default(), configs_bytes: 0 }.workload(root)
}

/// What elements inherit.
#[derive(Clone)]
struct Above {
    auth: Access,
    storage: Access,
    config: String,
}

struct Builder {
    notes: Notes,
    configs_bytes: usize,
}

impl Builder {
    fn workload(mut self, root: &Element) -> Result<Workload, Refused> {
        let at = self.element(
            root,
            &["name", "description", "config", "trigger"],
            &["auth", "storage", "workflow"],
        )?;
        let name = at.text("name").unwrap_or_default().to_owned();
        let none = Above { auth: Access::none(), storage: Access::none(), config: String::new() };
        let above = self.above(root, &at, &none)?;
        let own = at.text("config").unwrap_or_default().to_owned();
        self.trigger(&at);
        let mut workflows = root.children.iter().filter(|child| child.name == "workflow");
        let workflow = workflows.next();
        if let Some(second) = workflows.next() {
            return Err(Refused::new(second.place, "there is a second `workflow`; one is needed"));
        }
        let mut stages = Vec::new();
        let mut workflow_config = String::new();
        if let Some(workflow) = workflow {
            let at = self.element(workflow, &["config"], &["workstage"])?;
            let above = self.above(workflow, &at, &above)?;
            workflow_config = at.text("config").unwrap_or_default().to_owned();
            for stage in workflow.children.iter().filter(|child| child.name == "workstage") {
                stages.push(self.stage(stage, &above)?);
            }
        }
        if name.trim().is_empty() {
            let words = "workload name cannot be empty";
            return Err(Refused::worded(root.place, words, "write <workload name=\"...\">"));
        }
        let Some(workflow) = workflow else {
            let more = "stages stand in a <workflow>";
            return Err(Refused::worded(root.place, "workload must have its workflow", more));
        };
        if stages.is_empty() {
            let more = "the workflow is empty: it needs at least one <workstage>";
            return Err(Refused::worded(workflow.place, "workflow must have stages", more));
        }
        let text = |name| at.text(name).map(str::to_owned);
        Ok(Workload {
            name,
            description: text("description"),
            trigger: text("trigger"),
            config: own,
            workflow_config,
            auth: above.auth,
            storage: above.storage,
            stages,
            notes: self.notes.list(),
        })
    }

    fn stage(&mut self, element: &Element, above: &Above) -> Result<Stage, Refused> {
        let at = self.element(
            element,
            &["name", "closuredelay", "config", "trigger"],
            &["auth", "storage", "work"],
        )?;
        let name = at.text("name").unwrap_or_default().to_owned();
        if name.contains(';') {
            let why = "stage name cannot contain delimiter ';'";
            return Err(Refused::parsing(at.place("name"), why, "take another name"));
        }
        let delay = at.integer("closuredelay")?.unwrap_or(0);
        if delay < 0 {
            let why = "closure delay cannot be negative";
            let more = format!("closuredelay=\"{delay}\": write seconds of at least 0");
            return Err(Refused::parsing(at.place("closuredelay"), why, more));
        }
        self.trigger(&at);
        let above = self.above(element, &at, above)?;
        let mut works = Vec::new();
        let mut number = 0;
        for work in element.children.iter().filter(|child| child.name == "work") {
            works.push(self.work(work, &above, &mut number)?);
        }
        if name.trim().is_empty() {
            let more = "write <workstage name=\"...\">";
            return Err(Refused::worded(element.place, "stage name cannot be empty", more));
        }
        if works.is_empty() {
            let more = format!("stage `{name}` needs at least one <work>");
            return Err(Refused::worded(element.place, "stage must have works", more));
        }
        Ok(Stage {
            name,
            closure_delay_s: delay as u32,
            trigger: at.text("trigger").map(str::to_owned),
            config: above.config,
            auth: above.auth,
            storage: above.storage,
            works,
            place: element.place,
        })
    }

    fn work(
        &mut self,
        element: &Element,
        above: &Above,
        number: &mut u32,
    ) -> Result<Work, Refused> {
        let at = self.element(element, &keys::WORK, &["auth", "storage", "operation"])?;
        let above = self.above(element, &at, above)?;
        let (kind, written) = (self.work_kind(&at)?, at.text("type"));
        let is_special = kind != WorkKind::Normal;
        let mut work = Work {
            name: at.text("name").unwrap_or_default().to_owned(),
            kind,
            workers: at.counted("workers", "workers", 1)?.unwrap_or(0),
            interval_s: at.counted("interval", "interval", 1)?.unwrap_or(5),
            division: at.division()?,
            runtime_s: at.counted("runtime", "runtime", 0)?.unwrap_or(0),
            rampup_s: at.counted("rampup", "ramp up time", 0)?.unwrap_or(0),
            rampdown_s: at.counted("rampdown", "ramp down time", 0)?.unwrap_or(0),
            total_ops: at.counted("totalOps", "total ops", 0)?.unwrap_or(0),
            total_bytes: at.long("totalBytes", "total bytes")?.unwrap_or(0),
            afr: at.afr()?.unwrap_or(if is_special { 0 } else { AFR_NORMAL }),
            driver: at
                .text("driver")
                .filter(|name| !["", "none"].contains(name))
                .map(str::to_owned),
            iops_max: at.long("maxIOPS", "max IOPS")?.filter(|max| *max > 0),
            bytes_per_sec_max: at.long("maxBW", "max BW")?.filter(|max| *max > 0),
            config: above.config,
            auth: above.auth,
            storage: above.storage,
            operations: Vec::new(),
            place: element.place,
        };
        let children: Vec<&Element> =
            element.children.iter().filter(|child| child.name == "operation").collect();
        let mut operations = Vec::new();
        for child in children {
            operations.push(self.operation(child, &work)?);
        }
        match is_special {
            true => self.special(&at, &mut work, &operations),
            false => {
                work.operations = operations;
                work.operations.retain(|operation| operation.ratio > 0);
            }
        }
        self.sound(&work, written)?;
        name_operations(&mut work.operations);
        for operation in &mut work.operations {
            *number += 1;
            operation.id = format!("op{number}");
        }
        Ok(work)
    }

    /// Makes of a work what its type stands for.
    fn special(&mut self, at: &At<'_>, work: &mut Work, operations: &[Operation]) {
        let line = at.element.place.line;
        let kind = work.kind.name();
        let differs = operations.iter().any(|own| {
            own.kind != kind || work.kind != WorkKind::Delay && own.config.text != work.config
        });
        if differs {
            let text =
                format!("operations of {kind} work are ignored, as there: its config says all");
            self.notes.add(Some(line), text);
        }
        for name in ["runtime", "rampup", "rampdown", "totalOps", "totalBytes"] {
            if at.text(name).is_some_and(|value| value != "0" && name != "totalOps") {
                let text =
                    format!("`{name}` of {kind} work is ignored, as there: it ends when done");
                self.notes.add(Some(line), text);
            }
        }
        if work.name.is_empty() {
            kind.clone_into(&mut work.name);
        }
        if work.kind == WorkKind::Delay {
            work.workers = 1;
        }
        (work.runtime_s, work.rampup_s, work.rampdown_s, work.total_bytes) = (0, 0, 0, 0);
        work.total_ops = work.workers;
        let (division, defaults) = match work.kind {
            WorkKind::Init | WorkKind::Dispose => {
                (Division::Container, "objects=r(0,0);sizes=c(0)B")
            }
            WorkKind::Prepare | WorkKind::MultipartPrepare => {
                (Division::Object, "createContainer=false")
            }
            WorkKind::Cleanup => (Division::Object, "deleteContainer=false"),
            WorkKind::Normal | WorkKind::Delay => (Division::None, ""),
        };
        work.division = division;
        let of_work = &work.config;
        let named = defaults.split('=').next().unwrap_or_default();
        let is_named =
            !defaults.starts_with("objects") && config::pairs(of_work).any(|(key, _)| key == named);
        let tail = join(if is_named { "" } else { defaults }, of_work);
        // COSBench hands the work's config down once for each time that it looks at it.
        let above = join(&join(of_work, of_work), of_work);
        work.operations = vec![Operation {
            id: String::new(),
            kind: kind.to_owned(),
            name: String::new(),
            ratio: 100,
            division,
            config: Config::new(&join(&above, &tail), at.place("config")),
        }];
    }

    fn operation(&mut self, element: &Element, work: &Work) -> Result<Operation, Refused> {
        let at = self.element(element, &["type", "ratio", "division", "config", "id"], &[])?;
        let kind = at.text("type").unwrap_or_default().trim().to_owned();
        if kind.is_empty() {
            let more = "write <operation type=\"read\" .../>";
            return Err(Refused::worded(element.place, "operation type cannot be empty", more));
        }
        let ratio = at.counted("ratio", "operation ratio", 0)?.unwrap_or(100);
        if ratio > 100 {
            let why = format!("illegal operation ratio: {ratio}");
            let more = "a ratio is 0 to 100, and all of a work add up to 100";
            return Err(Refused::parsing(at.place("ratio"), &why, more));
        }
        let division = match at.text("division") {
            Some(_) => at.division()?,
            None => work.division,
        };
        let own = Config::new(at.text("config").unwrap_or_default(), at.place("config"));
        self.note_config(&at);
        let text = own.below(&work.config);
        self.count(&text, own.place)?;
        let config = Config { text, place: own.place };
        Ok(Operation { id: String::new(), kind, name: String::new(), ratio, division, config })
    }

    /// Refuses a work that COSBench refuses when it is submitted.
    fn sound(&mut self, work: &Work, written: Option<&str>) -> Result<(), Refused> {
        let place = work.place;
        if work.name.trim().is_empty() {
            let more = "normal work needs a name: write <work name=\"...\" ...>";
            return Err(Refused::worded(place, "work name cannot be empty", more));
        }
        if work.workers == 0 {
            let more = format!("work `{}`: write workers=\"8\"", work.name);
            return Err(Refused::worded(place, "must specify 'workers' for a work", more));
        }
        if work.kind != WorkKind::Normal {
            return Ok(());
        }
        if work.runtime_s == 0 && work.total_ops == 0 && work.total_bytes == 0 {
            let words = "no work limits detectd, either runtime, total ops or total bytes";
            let more = format!("work `{}` would never end: write runtime=\"30\"", work.name);
            return Err(Refused::worded(place, words, more));
        }
        let written = written.filter(|written| *written != "normal").map(|written| {
            let kinds = WorkKind::SPECIAL.map(WorkKind::name).join(", ");
            format!("; its type `{written}` is not one of {kinds}, so it is normal work")
        });
        let written = written.unwrap_or_default();
        if work.operations.is_empty() {
            let more = format!("work `{}` has no <operation>{written}", work.name);
            return Err(Refused::worded(place, "work must have operations", more));
        }
        let sum: u32 = work.operations.iter().map(|operation| operation.ratio).sum();
        if sum != 100 {
            let more = format!("the ratios of work `{}` add up to {sum}", work.name);
            return Err(Refused::worded(place, "op ratio should sum to 100", more));
        }
        Ok(())
    }

    fn work_kind(&mut self, at: &At<'_>) -> Result<WorkKind, Refused> {
        let Some(written) = at.text("type") else { return Ok(WorkKind::Normal) };
        if written.trim().is_empty() {
            let more = "leave `type` out for normal work";
            return Err(Refused::worded(at.place("type"), "work type cannot be empty", more));
        }
        let found = WorkKind::SPECIAL.into_iter().find(|kind| kind.name() == written);
        if found.is_none() && written != "normal" {
            let text = format!("work of type `{written}` is taken as normal work, as there");
            self.notes.add(Some(at.place("type").line), text);
        }
        Ok(found.unwrap_or(WorkKind::Normal))
    }

    /// Returns what the children of an element inherit.
    fn above(&mut self, element: &Element, at: &At<'_>, above: &Above) -> Result<Above, Refused> {
        let mut own = above.clone();
        for child in &element.children {
            match child.name.as_str() {
                "auth" if element.name != "workflow" => own.auth = self.access(child)?,
                "storage" if element.name != "workflow" => own.storage = self.access(child)?,
                _ => {}
            }
        }
        self.note_config(at);
        own.config = join(&above.config, at.text("config").unwrap_or_default());
        self.count(&own.config, element.place)?;
        Ok(own)
    }

    fn access(&mut self, element: &Element) -> Result<Access, Refused> {
        let at = self.element(element, &["type", "config"], &[])?;
        let kind = at.text("type").unwrap_or_default().trim().to_owned();
        if kind.is_empty() {
            let words = format!("{} type cannot be empty", element.name);
            let more = format!("write <{} type=\"...\" config=\"...\"/>", element.name);
            return Err(Refused::worded(element.place, words, more));
        }
        let text = at.text("config").unwrap_or_default();
        let place = at.place("config");
        let known = keys::of_access(&element.name, &kind);
        let at = (place.line, Shown::Keys);
        config::note(text, at, |key| keys::taken(known, key), &mut self.notes);
        Ok(Access { kind, config: Config::new(text, place) })
    }

    /// Counts a config string, so that few bytes of XML do not come to very many.
    fn count(&mut self, text: &str, place: Place) -> Result<(), Refused> {
        // Special work holds five of it.
        self.configs_bytes += text.len() * 5;
        match self.configs_bytes <= CONFIGS_BYTES_MAX {
            true => Ok(()),
            false => Err(Refused::new(place, "the configs are too long with what they inherit")),
        }
    }

    fn note_config(&mut self, at: &At<'_>) {
        let Some(text) = at.text("config") else { return };
        let line = at.place("config").line;
        config::note(text, (line, Shown::All), keys::of_operation, &mut self.notes);
    }

    fn trigger(&mut self, at: &At<'_>) {
        if at.text("trigger").is_some_and(|script| !script.is_empty()) {
            let text = "`trigger` is ignored: no scripts are run on agents";
            self.notes.add(Some(at.place("trigger").line), text);
        }
    }

    /// Returns the attributes of an element, with notes of those that are unknown, and of unknown
    /// children.
    fn element<'a>(
        &mut self,
        element: &'a Element,
        attributes: &[&str],
        children: &[&str],
    ) -> Result<At<'a>, Refused> {
        for attribute in &element.attributes {
            let name = attribute.name.as_str();
            let is_namespace = name == "xmlns" || name.contains(':');
            if !attributes.contains(&name) && !is_namespace {
                let text = format!("attribute `{name}` of {} is unknown and ignored", element.name);
                self.notes.add(Some(attribute.place.line), text);
            }
        }
        for child in &element.children {
            if !children.contains(&child.name.as_str()) {
                let name = &child.name;
                let text = format!("element `{name}` in {} is unknown and ignored", element.name);
                self.notes.add(Some(child.place.line), text);
            }
        }
        if let Some(place) = element.text_at {
            let text = format!("text inside of {} is ignored", element.name);
            self.notes.add(Some(place.line), text);
        }
        Ok(At { element })
    }
}

/// Gives operations their names: their type, with a number in front where several have one.
fn name_operations(operations: &mut [Operation]) {
    let kinds: Vec<String> = operations.iter().map(|operation| operation.kind.clone()).collect();
    for (index, operation) in operations.iter_mut().enumerate() {
        let kind = &kinds[index];
        let before = kinds[..=index].iter().filter(|other| *other == kind).count();
        let all = kinds.iter().filter(|other| *other == kind).count();
        let named = operation.config.get("name").filter(|name| !name.is_empty());
        operation.name = match (named, all) {
            (Some(name), _) => name.to_owned(),
            (None, 1) => kind.clone(),
            (None, _) => format!("{before}-{kind}"),
        };
    }
}

/// The attributes of an element.
struct At<'a> {
    element: &'a Element,
}

impl<'a> At<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.element.attribute(name).map(|attribute| attribute.value.as_str())
    }

    fn place(&self, name: &str) -> Place {
        self.element.attribute(name).map_or(self.element.place, |attribute| attribute.place)
    }

    fn not_number(&self, name: &str, value: &str) -> Refused {
        let shown: String = value.chars().take(80).collect();
        let why = format!("For input string: \"{shown}\"");
        let more = format!("{name}=\"{shown}\": write a whole number");
        Refused::parsing(self.place(name), &why, more)
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, Refused> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.parse::<i32>() {
            Ok(number) => Ok(Some(number.into())),
            Err(_) => Err(self.not_number(name, value)),
        }
    }

    /// Returns a number of at least `least`, which COSBench calls `called` where it refuses it.
    fn counted(&self, name: &str, called: &str, least: i64) -> Result<Option<u32>, Refused> {
        match self.integer(name)? {
            Some(number) if number < least => {
                let why = format!("illegal {called}: {number}");
                let more = format!("{name}=\"{number}\": write at least {least}");
                Err(Refused::parsing(self.place(name), &why, more))
            }
            number => Ok(number.map(|number| number as u32)),
        }
    }

    fn long(&self, name: &str, called: &str) -> Result<Option<u64>, Refused> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.parse::<i64>() {
            Ok(number) => match u64::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => {
                    let why = format!("illegal {called}: {number}");
                    let more = format!("{name}=\"{number}\": write at least 0");
                    Err(Refused::parsing(self.place(name), &why, more))
                }
            },
            Err(_) => Err(self.not_number(name, value)),
        }
    }

    fn afr(&self) -> Result<Option<u32>, Refused> {
        match self.integer("afr")? {
            Some(afr) if !(0..=AFR_MAX).contains(&afr) => {
                let why = "afr should be at 0 to 1000000 range";
                let more = format!("afr=\"{afr}\": how many of a million operations may fail");
                Err(Refused::parsing(self.place("afr"), why, more))
            }
            afr => Ok(afr.map(|afr| afr as u32)),
        }
    }

    fn division(&self) -> Result<Division, Refused> {
        let all = [Division::None, Division::Container, Division::Object];
        match self.text("division") {
            None => Ok(Division::None),
            Some(written) => {
                all.into_iter().find(|known| known.name() == written).ok_or_else(|| {
                    let shown: String = written.chars().take(80).collect();
                    let words = format!("unrecognized division: {shown}");
                    let more = "write none, container or object";
                    Refused::worded(self.place("division"), words, more)
                })
            }
        }
    }
}
