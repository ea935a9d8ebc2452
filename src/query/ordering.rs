//! How much of the order of its rows a query fixes.
//!
//! Two right answers to one query may hold their rows in different orders: rows that sort alike come in any order. The leading sort keys
//! themselves read the same from top to bottom in both answers, provided that equal keys are the same bytes. `verify` therefore compares the
//! columns that show those keys position by position.

use pgrx::pg_sys;

use super::bytewise::{is_bytewise, sorted_target};
use crate::pg::tree::{Tree, child, children};

/// Sort keys that are compared; few rows sort alike by all of them.
const KEYS: usize = 3;
/// The last column that is compared.
const LAST_COLUMN: i16 = 1023;

/// The columns of the answer that show the leading sort keys: numbers from 1; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OrderedPrefix([u16; KEYS]);

impl OrderedPrefix {
    /// Returns true if it has no columns.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The columns, numbered from 0.
    pub fn columns(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().take_while(|column| *column > 0).map(|column| usize::from(column) - 1)
    }
}

/// The leading sort keys of a query that are columns of its answer and of a type whose equal values are the same bytes. Ends before the
/// first key that is not.
pub fn ordered_prefix(query: Tree<'_, pg_sys::Query>) -> OrderedPrefix {
    let mut prefix = OrderedPrefix::default();
    for (place, clause) in prefix.0.iter_mut().zip(children!(query.sortClause as SortGroupClause)) {
        let Some(target) = sorted_target(query, clause) else { break };
        // Entries that are not shown stand behind all that are, so that the numbers of these have no gaps.
        if target.resjunk || !is_bytewise(child!(target.expr)) || target.resno > LAST_COLUMN {
            break;
        }
        *place = target.resno as u16;
    }
    prefix
}
