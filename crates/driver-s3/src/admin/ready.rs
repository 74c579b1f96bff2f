//! Makes a bucket ready for what work needs of it, or tells what is lacking.

use plimsoll_driver::{DriverError, Lack, LackReason};
use plimsoll_model::Ability;

use super::{Feature, S3Admin};

impl S3Admin {
    /// Makes sure that the bucket is there and can do what is needed.
    pub(super) async fn ready(
        &mut self,
        needs: &[Ability],
        base: &str,
    ) -> Result<Option<Lack>, DriverError> {
        let locks = needs.contains(&Ability::Retention);
        match locks {
            true => self.ensure_root_with_lock().await?,
            false => self.ensure(false).await?,
        };
        if needs.contains(&Ability::Versions) || locks {
            let lack = |why| Some(Lack { need: Ability::Versions, why });
            if !self.probe(Feature::Versioning, base).await? {
                return Ok(lack(LackReason::OfStore("keeps no versions")));
            }
            if !self.has_created && !self.keeps_versions().await? {
                // Once switched on it can never be undone, and others use the bucket.
                let why = "the bucket has no versioning; name another `bucket`, which is then \
                made with it, or enable it yourself";
                return Ok(lack(LackReason::OfRoot(why.to_owned())));
            }
            self.ensure_versioning().await?;
        }
        for (need, feature, what) in [
            (Ability::ListVersions, Feature::ListVersions, "does not list versions"),
            (Ability::Zip, Feature::Zip, "does not read files out of zip archives"),
            (Ability::Tar, Feature::Snowball, "does not extract archives"),
            (Ability::Fanout, Feature::Fanout, "does not store one body under several keys"),
            (Ability::Append, Feature::Append, "does not support append"),
        ] {
            if needs.contains(&need) && !self.probe(feature, base).await? {
                return Ok(Some(Lack { need, why: LackReason::OfStore(what) }));
            }
        }
        Ok(None)
    }
}
