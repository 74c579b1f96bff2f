//! Where the servers of a cluster are, and whether files can be placed among them as asked.

use serde::Deserialize;

use crate::SeaweedConfig;

/// Servers, rack by rack, as a master knows them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Topology {
    #[serde(default)]
    data_centers: Option<Vec<DataCenter>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataCenter {
    #[serde(default)]
    id: String,
    #[serde(default)]
    racks: Option<Vec<Rack>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Rack {
    #[serde(default)]
    id: String,
    #[serde(default)]
    data_nodes: Option<Vec<DataNode>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataNode {
    url: String,
}

impl Topology {
    /// Returns the addresses of all volume servers.
    pub(crate) fn servers(&self) -> Vec<String> {
        let nodes = self.centers().flat_map(DataCenter::racks).flat_map(Rack::nodes);
        nodes.map(|node| node.url.clone()).collect()
    }

    /// Returns why no server, or too few of them, are where files and their copies are to be;
    /// `None` if that is not the reason why there are no volumes.
    ///
    /// The digits of a replication are the copies beyond the first in other data centers, on other
    /// racks of the same data center, and on other servers of the same rack. Source: SeaweedFS's
    /// wiki, *Replication*.
    pub(crate) fn lacks(&self, config: &SeaweedConfig) -> Option<String> {
        let SeaweedConfig { replication, data_center, rack, .. } = config;
        let centers: Vec<&DataCenter> =
            self.centers().filter(|of| is(&of.id, data_center)).collect();
        // Where no server has come yet, nothing is known.
        self.centers().next()?;
        if centers.is_empty() {
            let known = listed(self.centers().map(|of| &*of.id));
            return Some(format!("there is no data center `{data_center}`, only {known}"));
        }
        let all = || centers.iter().flat_map(|of| of.racks());
        let racks: Vec<&Rack> = all().filter(|of| is(&of.id, rack)).collect();
        if racks.is_empty() {
            let known = listed(all().map(|of| &*of.id));
            return Some(format!("there is no rack `{rack}`, only {known}"));
        }
        let mut digits = replication.bytes().map(|digit| usize::from(digit.wrapping_sub(b'0')));
        let (Some(centers_more), Some(racks_more), Some(servers_more)) =
            (digits.next(), digits.next(), digits.next())
        else {
            return None;
        };
        let most = |counts: &mut dyn Iterator<Item = usize>| counts.max().unwrap_or(0);
        let there = [
            (centers_more, self.centers().count(), "data centers", "there are"),
            (
                racks_more,
                most(&mut centers.iter().map(|of| of.racks().count())),
                "racks in a data center",
                "the most are",
            ),
            (
                servers_more,
                most(&mut racks.iter().map(|of| of.nodes().count())),
                "volume servers on a rack",
                "the most are",
            ),
        ];
        let (more, there, what, are) = there.into_iter().find(|(more, there, ..)| there <= more)?;
        let needed = more + 1;
        Some(format!("replication {replication} needs {needed} {what}, and {are} {there}"))
    }

    fn centers(&self) -> impl Iterator<Item = &DataCenter> {
        self.data_centers.iter().flatten()
    }
}

impl DataCenter {
    fn racks(&self) -> impl Iterator<Item = &Rack> {
        self.racks.iter().flatten()
    }
}

impl Rack {
    fn nodes(&self) -> impl Iterator<Item = &DataNode> {
        self.data_nodes.iter().flatten()
    }
}

/// Tells whether a place is the one that is asked for; every place is where none is.
fn is(id: &str, asked: &str) -> bool {
    asked.is_empty() || id == asked
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two data centers: one with two racks of two servers and of one, the other with one server.
    fn topology() -> Topology {
        let node = |port: u16| serde_json::json!({"Url": format!("h:{port}")});
        let text = serde_json::json!({"DataCenters": [
            {"Id": "dc1", "Racks": [
                {"Id": "r1", "DataNodes": [node(1), node(2)]},
                {"Id": "r2", "DataNodes": [node(3)]},
            ]},
            {"Id": "dc2", "Racks": [{"Id": "r9", "DataNodes": [node(4)]}]},
        ]});
        serde_json::from_value(text).unwrap()
    }

    fn lacks(replication: &str, data_center: &str, rack: &str) -> Option<String> {
        let mut config = SeaweedConfig::new(Vec::new(), "c");
        (config.replication, config.data_center, config.rack) =
            (replication.to_owned(), data_center.to_owned(), rack.to_owned());
        topology().lacks(&config)
    }

    #[test]
    fn copies_need_places() {
        for (replication, data_center, rack) in [
            ("", "", ""),
            ("000", "dc2", "r9"),
            ("001", "", ""),
            ("010", "", ""),
            ("100", "dc2", ""),
            ("001", "dc1", "r1"),
            ("011", "", ""),
        ] {
            assert_eq!(lacks(replication, data_center, rack), None, "{replication}");
        }
        for (replication, data_center, rack, why) in [
            ("200", "", "", "replication 200 needs 3 data centers, and there are 2"),
            ("020", "", "", "replication 020 needs 3 racks in a data center, and the most are 2"),
            (
                "010",
                "dc2",
                "",
                "replication 010 needs 2 racks in a data center, and the most are 1",
            ),
            ("002", "", "", "replication 002 needs 3 volume servers on a rack, and the most are 2"),
            (
                "001",
                "",
                "r2",
                "replication 001 needs 2 volume servers on a rack, and the most are 1",
            ),
            ("", "nope", "", "there is no data center `nope`, only `dc1`, `dc2`"),
            ("", "dc1", "r9", "there is no rack `r9`, only `r1`, `r2`"),
        ] {
            assert_eq!(lacks(replication, data_center, rack).as_deref(), Some(why));
        }
        assert_eq!(topology().servers(), ["h:1", "h:2", "h:3", "h:4"]);
    }
}
