//! The facts of a plan: all that the server checks, locks and holds open for it before its first row, as one number.
//!
//! The planner drops parts of a query by the values of its constants: a sub-query behind `1=1 OR …`, a partition. Plans of one form may
//! therefore read different relations under different permissions. An entry is stored with the facts of the plan that computed it, a template
//! (`serve::Template`) has those of the plan that it was made from, and a template serves an entry only if the two are equal.

use std::cell::Cell;

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys;

use super::hashes::FactsHash;
use super::opened_relations::Opened;
use crate::pg::backend_local::Local;
use crate::pg::compat::tree;
use crate::pg::compat::tree::walkers;
use crate::pg::tree::{Tree, child, children};

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));

/// The facts of a plan that has just been made: relations, permissions, columns, the tables and indexes that it opens,
/// and what else its start does.
/// `opened` is what its executor opens.
pub fn of(plan: Tree<'_, pg_sys::PlannedStmt>, opened: &Opened<'_>, seed: u64) -> FactsHash {
    let mut key = BUFFER.take();
    key.clear();
    key.seed(seed);
    for entry in children!(plan.rtable as RangeTblEntry) {
        key.words([entry.rtekind, entry.relid.to_u32(), entry.relkind as u32, u32::from(entry.inh)]);
        tree::for_each_permission_word(entry, |word| key.u64(word));
    }
    tree::for_each_permission_word_of_plan(plan, |word| key.u64(word));
    if let Some(top) = child!(plan.planTree) {
        for target in children!(top.targetlist as TargetEntry) {
            let expression = target.expr.cast();
            // SAFETY: an expression of a valid plan.
            let (kind, modifier, collation) = unsafe {
                (walkers::exprType(expression), walkers::exprTypmod(expression), walkers::exprCollation(expression))
            };
            key.words([u32::from(target.resjunk), kind.to_u32(), modifier.cast_unsigned(), collation.to_u32()]);
        }
    }
    add_oids(&mut key, opened.tables.iter().copied());
    add_oids(&mut key, opened.indexes.iter().copied());
    key.u8(u8::from(opened.prunes_at_start()) | u8::from(opened.has_foreign_nodes) << 1);
    let hash = key.finish();
    BUFFER.set(key);
    FactsHash(hash)
}

fn add_oids(key: &mut HashBuffer, oids: impl Iterator<Item = pg_sys::Oid>) {
    // InvalidOid ends the list.
    oids.chain([pg_sys::InvalidOid]).for_each(|oid| key.u32(oid.to_u32()));
}
