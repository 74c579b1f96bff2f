//! The facts of a run around its figures, as its HTML report lists them.

use plimsoll_model::Bytes;
use plimsoll_record::schema::Manifest;
use plimsoll_report::html::Environment;

/// Returns the facts of a run that its HTML report begins with.
pub fn environment(manifest: &Manifest) -> Environment {
    let (machine, tool) = (&manifest.machine, &manifest.tool);
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let facts = [
        ("machine", machine.hostname.clone()),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.cpu_model.clone()),
        ("processor features", joined(&machine.cpu_features)),
        ("cores", machine.cores_count.map(|cores| cores.to_string())),
        ("memory", machine.memory_bytes.map(|bytes| Bytes(bytes).to_string())),
        ("clock", Some(or_unknown(&manifest.clock.source))),
        ("tool", Some(format!("{} {}", or_unknown(&tool.name), or_unknown(&tool.version)))),
        ("commit", tool.commit.clone()),
        ("built for", tool.built_for.clone()),
        ("profile", tool.profile.clone()),
        ("bucket", manifest.target.bucket.clone()),
        ("addressing", manifest.target.lookup.map(|lookup| lookup.name().to_owned())),
        ("TLS", manifest.target.tls.map(|tls| if tls { "yes" } else { "no" }.to_owned())),
        ("payload of uploads", manifest.target.payload_signing.clone()),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Environment { facts: known.collect() }
}

fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}
