//! What kinds of target offer.

use plimsoll_model::Ability;

use super::spec::TargetSpec;

impl TargetSpec {
    /// Tells whether targets of the kind offer it. One server may still lack what its protocol has.
    pub fn offers(&self, ability: Ability) -> bool {
        use Ability::{
            Blocks, Buckets, Delete, DeleteMany, DropCaches, Get, List, ListBuckets, Names, Parts,
            Put, Ranges, Stat,
        };
        match self {
            Self::Null(_) => true,
            Self::S3(_) | Self::Oracle(_) => {
                !matches!(ability, Blocks | Names | DropCaches | ListBuckets)
            }
            Self::Files(_) => matches!(
                ability,
                Blocks | Names | DropCaches | Get | Ranges | Put | Stat | Delete | List
            ),
            Self::Seaweedfs(seaweed) => match ability {
                Get | Ranges | Put | Stat | Delete | DeleteMany => true,
                List => seaweed.is_filer(),
                _ => false,
            },
            Self::Swift(_) => {
                matches!(
                    ability,
                    Get | Ranges | Put | Stat | Delete | List | ListBuckets | Buckets | Parts
                )
            }
        }
    }
}
