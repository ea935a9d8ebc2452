//! What the parts of a plan are asked by the values of the present: parameters, the clock and settings. A plan that is
//! kept has the leaves of all values. Keeps nothing.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::decomposition::{AskedPart, Part, Values};
use crate::query::partitions::{Leaf, leaves};

/// What is asked, and of which leaves.
pub struct Present {
    /// What is asked of each.
    pub asked: AskedPart,
    /// The planned leaves in their order; `None` for one that has no row within the bounds.
    pub leaves: Vec<Option<Leaf>>,
}

impl Present {
    /// What a part asks with these parameters, under the active snapshot. `None` if that cannot be told, or there are
    /// other leaves than the `planned` ones.
    pub fn of(
        part: &Part,
        planned: impl Iterator<Item = pg_sys::Oid>,
        params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    ) -> Option<Self> {
        let asked = part.asked(params, Values::Present).ok()?;
        // SAFETY: the bounds were taken from the query.
        let found = unsafe { leaves(part.relation, asked.bounds(), &|key| asked.may_prune_otherwise(key)) }.ok()?;
        // They come in the order in which they were planned.
        let mut found = found.leaves.into_iter().peekable();
        let leaves = planned.map(|relation| found.next_if(|leaf| leaf.relation == relation)).collect();
        found.next().is_none().then_some(Self { asked, leaves })
    }
}
