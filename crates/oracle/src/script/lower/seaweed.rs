//! The part of a script that only a SeaweedFS does.

use super::{Checked, add_up, check_share, duration, lower_distribution, positive, refuse};
use crate::script::seaweed::{AssignFault, Away, Growth, LeaderChange, SeaweedPlan, When};
use crate::script::spec::{AssignSpec, AwaySpec, GrowthSpec, LeaderSpec, SeaweedSpec};

pub(super) fn lower(spec: &SeaweedSpec) -> Checked<SeaweedPlan> {
    let time = spec.assign.time.as_ref();
    let time = time.map(|time| lower_distribution("seaweed.assign.time", time, false));
    let growth = match &spec.growth {
        None => None,
        Some(GrowthSpec::Assigns(0)) => {
            return refuse("seaweed.growth.assigns", "0 refuses nothing; leave `growth` out");
        }
        Some(GrowthSpec::Assigns(count)) => Some(Growth::Assigns(*count)),
        Some(GrowthSpec::Lasting(text)) => {
            Some(Growth::Lasting(positive("seaweed.growth.lasting", text)?))
        }
    };
    Ok(SeaweedPlan {
        assign_time: time.transpose()?,
        assign_mix: lower_assign(&spec.assign)?,
        growth,
        leaders: (0..).zip(&spec.leaders).map(lower_leader).collect::<Checked<_>>()?,
        away: (0..).zip(&spec.away).map(lower_away).collect::<Checked<_>>()?,
    })
}

fn lower_assign(spec: &AssignSpec) -> Checked<Vec<(f64, AssignFault)>> {
    let shares = [
        (spec.growing, AssignFault::Growing),
        (spec.full, AssignFault::Full),
        (spec.failed, AssignFault::Failed),
        (spec.silent, AssignFault::Silent),
        (spec.expired_token, AssignFault::ExpiredToken),
        (spec.wrong_token, AssignFault::WrongToken),
    ];
    let mut checked = Vec::new();
    for (share, fault) in shares {
        check_share(&format!("seaweed.assign.{}", fault.name()), share)?;
        if share > 0.0 {
            checked.push((share, fault, String::new()));
        }
    }
    let mix = add_up(&checked);
    mix.map_or_else(|| refuse("seaweed.assign", "the shares add up to more than 1"), Ok)
}

fn lower_leader((index, spec): (usize, &LeaderSpec)) -> Checked<LeaderChange> {
    let field = format!("seaweed.leaders[{index}]");
    let when = match (&spec.at, spec.after_assigns) {
        (Some(at), None) => When::At(duration(&format!("{field}.at"), at)?),
        (None, Some(count)) => When::AfterAssigns(count),
        _ => return refuse(field, "give either `at` or `after_assigns`"),
    };
    Ok(LeaderChange { when, master: spec.master.map(|master| master as usize) })
}

fn lower_away((index, spec): (usize, &AwaySpec)) -> Checked<Away> {
    let field = |member: &str| format!("seaweed.away[{index}].{member}");
    Ok(Away {
        server: spec.server as usize,
        from: duration(&field("from"), &spec.from)?,
        lasting: positive(&field("lasting"), &spec.lasting)?,
        is_noticed: !spec.unnoticed,
    })
}
