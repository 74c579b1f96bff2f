//! Where volumes are put: copies on servers, racks and data centers apart.

/// How many copies there are beyond the first, and how far apart: `XYZ` of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Replication {
    /// In other data centers.
    centers: usize,
    /// On other racks of the same one.
    racks: usize,
    /// On other servers of the same rack.
    servers: usize,
}

impl Replication {
    /// Reads three digits; nothing stands for `000`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digit = |at: usize| Some(text.as_bytes().get(at)?.checked_sub(b'0')? as usize);
        match text.len() {
            0 => Some(Self { centers: 0, racks: 0, servers: 0 }),
            3 if text.bytes().all(|digit| digit.is_ascii_digit()) => {
                Some(Self { centers: digit(0)?, racks: digit(1)?, servers: digit(2)? })
            }
            _ => None,
        }
    }

    /// Returns how many copies there are in all.
    pub(crate) fn copies(self) -> usize {
        1 + self.centers + self.racks + self.servers
    }

    /// Returns how many volumes are made when one is needed, as SeaweedFS does.
    pub(crate) fn grown_at_once(self) -> usize {
        match self.copies() {
            1 => 7,
            2 => 6,
            3 => 3,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Replication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.centers, self.racks, self.servers)
    }
}

/// Volumes of a kind, of which any will do for a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Layout {
    pub(crate) collection: String,
    pub(crate) replication: Replication,
    pub(crate) ttl: String,
    pub(crate) disk: String,
}

/// Where a volume server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its data center.
    pub data_center: String,
    /// Its rack in it.
    pub rack: String,
}

impl Default for Site {
    fn default() -> Self {
        Self { data_center: "DefaultDataCenter".to_owned(), rack: "DefaultRack".to_owned() }
    }
}

impl Site {
    /// Tells whether it is where a volume is to be; an empty name is anywhere.
    pub(crate) fn is_in(&self, data_center: &str, rack: &str) -> bool {
        let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        fits(data_center, &self.data_center) && fits(rack, &self.rack)
    }
}

/// Returns servers for the copies of one volume, the first of them in `within` (data center and
/// rack), or `None` where there are not enough. `free` are the servers with room, in the order in
/// which they are to be taken.
pub(crate) fn place(
    sites: &[Site],
    free: &[usize],
    replication: Replication,
    within: (&str, &str),
) -> Option<Vec<usize>> {
    let mut firsts = free.iter().filter(|server| sites[**server].is_in(within.0, within.1));
    firsts.find_map(|first| {
        let here = &sites[*first];
        let others = || free.iter().copied().filter(|other| other != first);
        let near = others().filter(|other| sites[*other] == *here).take(replication.servers);
        let mut placed: Vec<usize> = std::iter::once(*first).chain(near).collect();
        let mut racks = vec![&here.rack];
        let mut centers = vec![&here.data_center];
        for other in others() {
            let Site { data_center, rack } = &sites[other];
            let is_here = *data_center == here.data_center;
            if is_here && racks.len() <= replication.racks && !racks.contains(&rack) {
                racks.push(rack);
                placed.push(other);
            } else if centers.len() <= replication.centers && !centers.contains(&data_center) {
                centers.push(data_center);
                placed.push(other);
            }
        }
        (placed.len() == replication.copies()).then_some(placed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(of: &[(&str, &str)]) -> Vec<Site> {
        let site = |(center, rack): &(&str, &str)| Site {
            data_center: (*center).to_owned(),
            rack: (*rack).to_owned(),
        };
        of.iter().map(site).collect()
    }

    #[test]
    fn copies_are_as_far_apart_as_asked() {
        let sites = sites(&[("a", "1"), ("a", "1"), ("a", "2"), ("b", "1"), ("b", "1")]);
        let free = [2, 0, 1, 4, 3];
        let placed =
            |text: &str, within| place(&sites, &free, Replication::parse(text).unwrap(), within);
        assert_eq!(placed("", ("", "")), Some(vec![2]));
        assert_eq!(placed("001", ("", "")), Some(vec![0, 1]));
        assert_eq!(placed("001", ("b", "")), Some(vec![4, 3]));
        assert_eq!(placed("010", ("", "")), Some(vec![2, 0]));
        assert_eq!(placed("100", ("a", "1")), Some(vec![0, 4]));
        assert_eq!(placed("111", ("", "")), Some(vec![0, 1, 2, 4]));
        assert_eq!(placed("002", ("", "")), None);
        assert_eq!(placed("020", ("", "")), None);
        assert_eq!(placed("000", ("c", "")), None);
    }

    #[test]
    fn three_digits_say_how_many() {
        for (text, copies, grown) in [("", 1, 7), ("001", 2, 6), ("011", 3, 3), ("200", 3, 3)] {
            let replication = Replication::parse(text).unwrap();
            assert_eq!((replication.copies(), replication.grown_at_once()), (copies, grown));
        }
        assert_eq!(Replication::parse("111").unwrap().grown_at_once(), 1);
        for text in ["0", "01", "0000", "0x1", "xyz", "é1"] {
            assert_eq!(Replication::parse(text), None, "{text}");
        }
    }
}
