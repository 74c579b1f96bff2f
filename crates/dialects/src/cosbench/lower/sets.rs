//! The sets of a workload: one for each range of names that is written or removed as a whole, which
//! other operations take with names of their own.

use plimsoll_workload::plan::Pattern;
use plimsoll_workload::plan::spec::{
    ContentSpec, FilesOf, Named, NamedSet, NamesOf, SetSpec, Share, Shares, SizeLaw, SizeSpec,
    SizeSteps,
};
use plimsoll_workload::plan::{NumberRange, Size};

use super::super::check::{Act, Affixes, Scan, ScanKind, Understood};
use super::super::selector::{Selector, Sizes, Span};
use super::Touched;

/// Sets in the order in which they are needed.
#[derive(Default)]
pub(super) struct Sets(Vec<Draft>);

/// A set while it is made.
struct Draft {
    target: usize,
    containers: Affixes,
    objects: Affixes,
    buckets: Span,
    keys: Keys,
    size: Option<SizeSpec>,
    is_zero: bool,
    part: Option<u64>,
    is_hash_checked: bool,
    touch: bool,
}

/// What the keys of a set are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    Numbers(Span),
    /// The names of the files of a directory.
    Files(String),
}

/// What an operation needs of its set.
struct Need {
    buckets: Span,
    keys: Keys,
    /// Whether the set must have these names and no others.
    is_whole: bool,
    /// Whether it is only about buckets.
    is_of_buckets: bool,
    size: Option<SizeSpec>,
    /// What is written holds; `None` where nothing is.
    is_zero: Option<bool>,
    part: Option<u64>,
    /// Whether content is looked at by its hash; `None` where none is looked at.
    is_hash_checked: Option<bool>,
    touch: bool,
}

const ONE: Span = Span { from: 1, to: 1 };

impl Need {
    fn of(understood: &Understood) -> Self {
        let hash = Some(understood.is_hash_checked);
        let base = |containers: &Selector, objects: &Selector| Self {
            buckets: containers.span().unwrap_or(ONE),
            keys: Keys::Numbers(objects.span().unwrap_or(ONE)),
            is_whole: false,
            is_of_buckets: false,
            size: None,
            is_zero: None,
            part: None,
            is_hash_checked: None,
            touch: true,
        };
        match &understood.act {
            Act::Read { containers, objects, .. } => {
                Self { is_hash_checked: hash, touch: false, ..base(containers, objects) }
            }
            Act::Head { containers, objects } | Act::Restore { containers, objects, .. } => {
                Self { touch: false, ..base(containers, objects) }
            }
            Act::Delete { containers, objects } => base(containers, objects),
            Act::ListAccount => {
                let of = base(&Selector::Nothing, &Selector::Nothing);
                Self { is_of_buckets: true, touch: false, ..of }
            }
            Act::List { containers } => {
                let of = base(containers, &Selector::Nothing);
                Self { is_of_buckets: true, touch: false, ..of }
            }
            Act::Write(write) => Self {
                size: Some(size(&write.sizes)),
                is_zero: Some(write.is_zero),
                is_hash_checked: hash,
                ..base(&write.containers, &write.objects)
            },
            Act::WriteFiles { containers, files, .. } => Self {
                keys: Keys::Files(files.clone()),
                is_hash_checked: hash,
                ..base(containers, &Selector::Nothing)
            },
            Act::Scan(scan) => {
                let of = base(&scan.containers, &scan.objects);
                let writes = scan.sizes.is_some();
                Self {
                    is_whole: true,
                    is_of_buckets: scan.kind == ScanKind::Dispose
                        || scan.objects == Selector::Nothing,
                    size: scan.sizes.as_ref().map(size),
                    is_zero: writes.then_some(scan.is_zero),
                    part: scan.part,
                    is_hash_checked: if writes { hash } else { None },
                    ..of
                }
            }
            Act::Pause => base(&Selector::Nothing, &Selector::Nothing),
        }
    }
}

impl Sets {
    /// Returns the name of a set.
    pub(super) fn name(set: usize) -> String {
        match set {
            0 => "objects".to_owned(),
            set => format!("objects-{}", set + 1),
        }
    }

    /// Returns the set of an operation, which is made where none will do.
    pub(super) fn choose(&mut self, target: usize, understood: &Understood) -> usize {
        let need = Need::of(understood);
        let fits = |draft: &Draft| {
            let names = draft.target == target
                && draft.containers == understood.containers
                && (need.is_of_buckets || draft.objects == understood.objects);
            let content = need.is_zero.is_none_or(|zero| draft.is_zero == zero)
                && need.is_hash_checked.is_none_or(|hash| draft.is_hash_checked == hash);
            let is_of_files = |keys: &Keys| matches!(keys, Keys::Files(_));
            let keys = need.is_of_buckets
                || match (&draft.keys, &need.keys) {
                    (Keys::Numbers(_), Keys::Numbers(_)) => true,
                    (of, needed) => of == needed,
                };
            // A set that is written as a whole says itself how.
            let writes_whole = need.is_whole && need.size.is_some();
            let whole = !need.is_whole
                || draft.buckets == need.buckets
                    && (need.is_of_buckets || draft.keys == need.keys)
                    && (!writes_whole || draft.size == need.size && draft.part == need.part);
            let by_files =
                need.is_of_buckets || is_of_files(&draft.keys) == is_of_files(&need.keys);
            names && content && keys && whole && by_files
        };
        let covers = |draft: &Draft| {
            let keys = match (&draft.keys, &need.keys) {
                (Keys::Numbers(of), Keys::Numbers(needed)) => of.covers(*needed),
                _ => true,
            };
            draft.buckets.covers(need.buckets) && (need.is_of_buckets || keys)
        };
        let found = self.0.iter().position(|draft| fits(draft) && covers(draft));
        let found = found.or_else(|| self.0.iter().position(fits)).unwrap_or_else(|| {
            self.0.push(Draft {
                target,
                containers: understood.containers.clone(),
                objects: understood.objects.clone(),
                buckets: need.buckets,
                keys: need.keys.clone(),
                size: need.size.clone(),
                is_zero: need.is_zero.unwrap_or(false),
                part: need.part,
                is_hash_checked: need.is_hash_checked.unwrap_or(false),
                touch: false,
            });
            self.0.len() - 1
        });
        self.0[found].touch |= need.touch;
        found
    }

    /// Returns the buckets of an operation, where they are others than its set's.
    pub(super) fn other_buckets(&self, set: usize, containers: &Selector) -> Option<Pattern> {
        let draft = &self.0[set];
        let span = containers.span()?;
        (span != draft.buckets).then(|| pattern(&draft.containers, span))
    }

    /// Returns the keys of an operation, where they are others than its set's.
    pub(super) fn other_keys(&self, set: usize, objects: &Selector) -> Option<Pattern> {
        let draft = &self.0[set];
        let span = objects.span()?;
        (draft.keys != Keys::Numbers(span)).then(|| pattern(&draft.objects, span))
    }

    /// Returns sizes, where they are others than the set's.
    pub(super) fn other_size(&self, set: usize, sizes: &Sizes) -> Option<SizeSpec> {
        let size = size(sizes);
        (self.0[set].size.as_ref() != Some(&size)).then_some(size)
    }

    /// Returns all sets; `targets` are the names of targets, where there are several.
    pub(super) fn specs(&self, targets: Option<&[String]>) -> Named<SetSpec> {
        let specs = self.0.iter().enumerate().map(|(index, draft)| {
            let bucket = Some(pattern(&draft.containers, draft.buckets));
            let named = match &draft.keys {
                Keys::Numbers(span) => NamesOf::keys(bucket, pattern(&draft.objects, *span)),
                Keys::Files(directory) => {
                    let files = Some(FilesOf::In(directory.clone()));
                    NamesOf { bucket, key: None, files }
                }
            };
            let set = NamedSet {
                on: targets.map(|names| names[draft.target].clone()),
                size: draft.size.clone(),
                part: draft.part.map(Size),
                content: if draft.is_zero { ContentSpec::Zero } else { ContentSpec::Random },
                touch: draft.touch,
                shared: true,
                hash_check: draft.is_hash_checked,
                ..NamedSet::of(named)
            };
            (Self::name(index), SetSpec::Named(set))
        });
        specs.collect()
    }

    /// Returns the buckets that are written to, each pattern once.
    pub(super) fn touched(&self, targets: &[String]) -> Vec<Touched> {
        let mut touched: Vec<Touched> = Vec::new();
        for draft in self.0.iter().filter(|draft| draft.touch) {
            let buckets = pattern(&draft.containers, draft.buckets).to_string();
            let one = Touched { target: targets[draft.target].clone(), buckets };
            if !touched.contains(&one) {
                touched.push(one);
            }
        }
        touched
    }
}

/// Returns the names of these numbers.
fn pattern(affixes: &Affixes, Span { from, to }: Span) -> Pattern {
    let plain = |text: &str| text.replace('{', "{{").replace('}', "}}");
    let (before, behind) = (plain(&affixes.before), plain(&affixes.behind));
    let text = match from == to {
        true => format!("{before}{from}{behind}"),
        false => format!("{before}{{{from}..{to}}}{behind}"),
    };
    text.parse().expect("literal braces are doubled, and there are fewer numbers than 2^31")
}

/// Returns sizes as they are written here.
fn size(sizes: &Sizes) -> SizeSpec {
    let unit = sizes.unit;
    let numbers =
        |span: Span, weight| Share { value: NumberRange { from: span.from, to: span.to }, weight };
    let shares: Vec<Share<NumberRange>> = match &sizes.selector {
        Selector::Nothing => Vec::new(),
        Selector::Constant(_) => Vec::new(),
        Selector::Uniform(span) | Selector::Range(span) | Selector::Sequential(span) => {
            vec![numbers(*span, 1)]
        }
        Selector::Histogram(buckets) => {
            buckets.iter().map(|bucket| numbers(bucket.span, bucket.weight)).collect()
        }
    };
    let bytes = sizes.bytes();
    match bytes.from == bytes.to {
        true => SizeSpec::Fixed(Size(bytes.from)),
        false => {
            SizeSpec::Drawn(SizeLaw::Steps(SizeSteps { unit: Size(unit), numbers: Shares(shares) }))
        }
    }
}

impl Scan {
    /// Tells whether it writes objects.
    pub(super) fn writes(&self) -> bool {
        self.sizes.is_some()
    }
}
