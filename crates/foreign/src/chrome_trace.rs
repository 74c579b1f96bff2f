//! Traces in the JSON format of Chrome's trace events, which `ui.perfetto.dev` and `about:tracing`
//! show. An object with a list of events, and after it what is known of the whole.
//!
//! Moments and lengths are microseconds with a fraction.

use std::io::{self, Write};

use serde::Serialize;

/// A slice on a track: something that lasted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Slice<'a, A> {
    /// What is written on it.
    pub name: &'a str,
    /// Its category.
    pub cat: &'a str,
    /// The process that holds the track.
    pub pid: u32,
    /// The track.
    pub tid: u32,
    /// When it began.
    #[serde(rename = "ts", serialize_with = "microseconds")]
    pub start_ns: u64,
    /// How long it lasted.
    #[serde(rename = "dur", serialize_with = "microseconds")]
    pub length_ns: u64,
    /// What else is known of it.
    pub args: A,
}

fn microseconds<S: serde::Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1_000.0)
}

/// Any event, with the letter of its kind.
#[derive(Serialize)]
struct Lettered<'a, E> {
    ph: &'a str,
    #[serde(flatten)]
    event: E,
}

/// What is said of a process or a track.
#[derive(Serialize)]
struct About<'a, A> {
    name: &'a str,
    pid: u32,
    tid: u32,
    args: A,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct SortIndex {
    sort_index: u32,
}

/// Writes a trace.
pub struct Writer<W: Write> {
    to: W,
    events: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    pub fn begin(mut to: W) -> io::Result<Self> {
        to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        Ok(Self { to, events: 0 })
    }

    fn event(&mut self, event: &impl Serialize) -> io::Result<()> {
        self.to.write_all(if self.events == 0 { b"\n" } else { b",\n" })?;
        self.events += 1;
        Ok(serde_json::to_writer(&mut self.to, event)?)
    }

    fn about(&mut self, name: &str, pid: u32, tid: u32, args: impl Serialize) -> io::Result<()> {
        self.event(&Lettered { ph: "M", event: About { name, pid, tid, args } })
    }

    /// Names a process, and says where it stands.
    pub fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        self.about("process_name", pid, 0, Name { name })?;
        self.about("process_sort_index", pid, 0, SortIndex { sort_index: pid })
    }

    /// Names a track, and says where in its process it stands.
    pub fn track(&mut self, pid: u32, tid: u32, name: &str, place: u32) -> io::Result<()> {
        self.about("thread_name", pid, tid, Name { name })?;
        self.about("thread_sort_index", pid, tid, SortIndex { sort_index: place })
    }

    /// Adds a slice. Slices of a track are apart or one in the other, the outer one first.
    pub fn slice<A: Serialize>(&mut self, slice: &Slice<'_, A>) -> io::Result<()> {
        self.event(&Lettered { ph: "X", event: slice })
    }

    /// Ends the trace with what is known of the whole.
    pub fn finish(mut self, about: &impl Serialize) -> io::Result<()> {
        self.to.write_all(b"\n],\"otherData\":")?;
        serde_json::to_writer(&mut self.to, about)?;
        self.to.write_all(b"}\n")?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_one_object() {
        let mut text = Vec::new();
        let mut writer = Writer::begin(&mut text).unwrap();
        writer.process(1, "a \"host\"").unwrap();
        writer.track(1, 7, "worker 3", 3).unwrap();
        let slice = Slice {
            name: "GET",
            cat: "c",
            pid: 1,
            tid: 7,
            start_ns: 1_500,
            length_ns: 20_000_000,
            args: SortIndex { sort_index: 2 },
        };
        writer.slice(&slice).unwrap();
        writer.finish(&Name { name: "run" }).unwrap();
        let expected = r#"{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"a \"host\""}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":7,"args":{"name":"worker 3"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":7,"args":{"sort_index":3}},
{"ph":"X","name":"GET","cat":"c","pid":1,"tid":7,"ts":1.5,"dur":20000.0,"args":{"sort_index":2}}
],"otherData":{"name":"run"}}
"#;
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
