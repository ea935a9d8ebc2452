//! Where the conditions stand that every row of the table passes on its way to the site: WHERE of the site and of the
//! sub-queries of FROM that select, and ON of inner joins. Reads trees; who asks may change the conditions.
//!
//! What stands in ON of an outer join, or on the side of one that adds rows without it, is not among them: the table
//! lies on the side whose rows are all kept (`site`), so such a condition decides what a row is joined with, and not
//! whether it is there.

use pgrx::pg_sys::{self, JoinType};

use super::site::selection;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_search::entry_at;

/// A place for a condition.
#[derive(Clone, Copy)]
pub(super) struct Filter {
    /// The query level whose columns it names.
    pub level: *mut pg_sys::Query,
    /// The condition; null for none.
    pub condition: *mut *mut pg_sys::Node,
}

/// The places of a query and of the sub-queries of its FROM, WHERE of the query first. Which ones there are, and in
/// which order, does not depend on the conditions, nor on which leaf is read: a copy has the same.
///
/// # Safety
/// A valid query, which is changed while the result is used in nothing but its conditions.
pub(super) unsafe fn filters(query: *mut pg_sys::Query) -> Vec<Filter> {
    let mut found = Vec::new();
    // SAFETY: the caller's promise.
    if let Some(query) = unsafe { Tree::enter(query) } {
        add_query(query, &mut found);
    }
    found
}

fn add_query(level: Tree<'_, pg_sys::Query>, found: &mut Vec<Filter>) {
    if let Some(from) = child!(level.jointree) {
        add_item(level, from.as_node(), found);
    }
}

fn add_item(level: Tree<'_, pg_sys::Query>, item: Tree<'_, pg_sys::Node>, found: &mut Vec<Filter>) {
    match_node! { item;
        FromExpr(from) => {
            // SAFETY: a field of a valid node.
            let condition = unsafe { &raw mut (*from.as_ptr()).quals };
            found.push(Filter { level: level.as_ptr(), condition });
            children!(from.fromlist as Node).for_each(|item| add_item(level, item, found));
        },
        JoinExpr(join) => {
            if join.jointype == JoinType::JOIN_INNER {
                // SAFETY: as above.
                let condition = unsafe { &raw mut (*join.as_ptr()).quals };
                found.push(Filter { level: level.as_ptr(), condition });
            }
            let keeps_left = matches!(join.jointype, JoinType::JOIN_INNER | JoinType::JOIN_LEFT);
            let keeps_right = matches!(join.jointype, JoinType::JOIN_INNER | JoinType::JOIN_RIGHT);
            let sides = [child!(join.larg).filter(|_| keeps_left), child!(join.rarg).filter(|_| keeps_right)];
            sides.into_iter().flatten().for_each(|side| add_item(level, side, found));
        },
        RangeTblRef(reference) => {
            if let Some(below) = entry_at(child!(level.rtable), reference.rtindex).and_then(selection) {
                add_query(below, found);
            }
        },
        _ => (),
    }
}
