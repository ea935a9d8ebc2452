//! A query as a combination of parts: an aggregate over a table is computed from what each leaf, or each zone, answers.
//!
//! *Site*: the query level that aggregates. *Table*: the partitioned table of the site, whose *leaves* make the parts,
//! or the largest plain one, whose *zones* do: ranges of its blocks (`zone`). *Part*: the site's question asked of one
//! leaf. *Bound*: a condition that compares a column of the table with a constant, and that every row of the table
//! passes on its way to the site (`filters`). *Dimension*: another relation of the site. *Grain*: the keys of parts of
//! whose rows some conditions are asked (`grain`).
//!
//! Each row that the site aggregates comes of exactly one row of the table, because FROM joins the table so that no row
//! of the answer lacks one (`site`), and whether it is there depends on that row and the dimensions alone. So the rows
//! of the leaves are those of the table, each once. The aggregates of all are computed from the states of leaves
//! (`algebra`), and groups are joined by their keys (`columns`); which one of equal values a group shows is open. What
//! stands above the aggregates (HAVING, windows, DISTINCT, ORDER BY, LIMIT, the queries around the site) reads the
//! combined ones (`combine`).
//!
//! Errors: a part computes what the statement computes of the rows of its leaf. In a grain it computes other rows as
//! well, so it must not fail. A site below the top is taken only if
//! nothing in its part may fail: conditions from around it could have gone into it, or nobody may ask for its rows.
//!
//! Reads trees and catalogs; what it makes lies in the current memory context. Nothing is kept.

mod algebra;
mod columns;
mod combine;
mod conditions;
mod constants;
mod filters;
mod grain;
mod leaf;
mod merge;
mod obstacle;
mod part;
mod site;
mod zone;

use pgrx::pg_sys;

use columns::Columns;
use combine::Combined;
pub use constants::Values;
pub use grain::Grain;
use grain::Lifted;
pub use obstacle::{NO_TABLE, Obstacle};
pub use part::{AskedPart, Part};
use site::Site;
pub use zone::{NOT_BEFORE, start_of};

use crate::pg::compat::tree::name_grouped_columns;
use crate::pg::tree::Tree;
use crate::pg::tree_making::copy;
use crate::query::scan_of_parts::TUPLESTORE_NAME;

/// A query as a combination of parts.
pub struct Decomposition {
    /// The query, whose site reads the tuplestore.
    pub combined: *mut pg_sys::Query,
    pub part: Part,
}

/// Returns true if the query may have parts. Quick to tell. A table without partitions counts if it has `least` blocks,
/// as far as the server knows.
pub fn has_candidates(query: Tree<'_, pg_sys::Query>, least: u32) -> bool {
    site::candidate(query, least).is_some()
}

/// Finds out of which parts a query can be computed: those of the leaves of a partitioned table, or of the zones of a
/// table that has `least` blocks. In a `grain`, other conditions are asked of the rows of the same parts.
///
/// # Errors
/// What stands in the way.
pub fn decompose(query: Tree<'_, pg_sys::Query>, least: u32, grain: Option<Grain>) -> Result<Decomposition, Obstacle> {
    if !has_candidates(query, least) {
        return Err(NO_TABLE);
    }
    // SAFETY: a valid query. The copy is changed only where the walk over it is over.
    unsafe {
        let combined = copy(query.as_ptr());
        let level = Tree::enter(combined).and_then(|query| site::candidate(query, least)).ok_or(NO_TABLE)?;
        let part = part_of(level, level.as_ptr() != combined, least, grain)?;
        Ok(Decomposition { combined, part })
    }
}

/// Lets a query level read the tuplestore. `is_below`: it is not the top.
///
/// # Errors
/// What stands in the way.
///
/// # Safety
/// A valid query that the caller may change.
unsafe fn part_of(
    query: Tree<'_, pg_sys::Query>,
    is_below: bool,
    least: u32,
    grain: Option<Grain>,
) -> Result<Part, Obstacle> {
    if query.groupingSets.is_null() {
        // SAFETY: the caller's promise. The query stays the same question.
        unsafe { name_grouped_columns(query.as_ptr()) };
    }
    let site = Site::of(query, least)?;
    // SAFETY: the caller's promise: nobody reads the conditions meanwhile.
    let lifted = grain.map(|grain| unsafe { Lifted::take(&site, grain) }).transpose()?;
    let mut columns = Columns::of_keys(&site, lifted.as_ref())?;
    // SAFETY: parts of a valid query; it is changed last.
    unsafe {
        let combined = Combined::of(&site, &mut columns, lifted.as_ref())?;
        let part = Part::of(&site, &columns)?;
        if lifted.is_some() && part.states_may_fail() {
            return Err("Rows that its conditions leave out may raise an error.");
        }
        if is_below && part.may_fail() {
            return Err("A sub-query aggregates, and computing it may raise an error.");
        }
        combined.install(query.as_ptr(), &columns, TUPLESTORE_NAME);
        Ok(part)
    }
}
