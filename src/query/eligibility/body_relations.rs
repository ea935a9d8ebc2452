//! The relations that the body of a function in SQL reads, when it is a query. The server plans such a query when the function is first called in a
//! statement, so there is no plan to look at: whatever a plan of it may read has to be harmless. What it may take from definitions is checked
//! with the plan of the statement (`planner_input`). Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::named_relations;
use crate::pg::tree::Tree;
use crate::query::relations;

/// Most relations of one body.
const MOST: usize = 64;

/// The relations that a rewritten query names, views among them. All of them are locked.
///
/// # Errors
/// Why answers must not rest on what it reads.
pub(super) fn read_by(query: Tree<'_, pg_sys::Query>) -> Result<Vec<u32>, Reason> {
    let mut found = Vec::new();
    let mut refusal = None;
    named_relations::any(query, &mut |entry| {
        refusal = note(entry, &mut found).err();
        refusal.is_some()
    })
    .ok_or(Reason::TooComplex)?;
    refusal.map_or(Ok(found), Err)
}

fn note(entry: &pg_sys::RangeTblEntry, found: &mut Vec<u32>) -> Result<(), Reason> {
    let relation = entry.relid.to_u32();
    if found.contains(&relation) && !entry.inh {
        return Ok(());
    }
    if found.len() == MOST {
        return Err(Reason::TooComplex);
    }
    relations::check_without_plan(entry.relid, entry.inh)?;
    found.push(relation);
    Ok(())
}
