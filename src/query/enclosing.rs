//! The queries around a part of a query tree, and where columns of their FROM come from. Reads trees; keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, RTEKind};

use crate::pg::tree::{Tree, child, child_text, children};
use crate::pg::tree_search::entry_at;

/// Most queries that are known, each inside of the next one. Those further out count as not there.
const DEEPEST: usize = 8;

/// The query that a part of a tree belongs to, and those around it.
#[derive(Clone, Copy)]
pub struct Enclosing<'t> {
    queries: [Option<Tree<'t, pg_sys::Query>>; DEEPEST],
}

impl<'t> Enclosing<'t> {
    /// No query.
    pub const NONE: Self = Self { queries: [None; DEEPEST] };

    /// `query` tells the query as many levels up.
    pub fn of(query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>) -> Self {
        Self { queries: std::array::from_fn(|levels| query(levels as u32)) }
    }

    /// The query itself.
    pub fn innermost(&self) -> Option<Tree<'t, pg_sys::Query>> {
        self.queries[0]
    }

    /// The query as many levels up, and those around it.
    pub fn above(&self, levels: u32) -> Self {
        Self { queries: std::array::from_fn(|place| *self.queries.get(place + levels as usize)?) }
    }

    /// A query that stands in this one.
    pub fn within(&self, query: Tree<'t, pg_sys::Query>) -> Self {
        Self { queries: std::array::from_fn(|place| if place == 0 { Some(query) } else { self.queries[place - 1] }) }
    }

    /// The part of FROM that a column belongs to.
    pub fn entry(&self, column: &pg_sys::Var) -> Option<Tree<'t, pg_sys::RangeTblEntry>> {
        let query = self.above(column.varlevelsup).innermost()?;
        entry_at(child!(query.rtable), column.varno)
    }

    /// The query that has the WITH query of a part of FROM.
    pub fn holder(&self, entry: Tree<'t, pg_sys::RangeTblEntry>) -> Self {
        self.above(entry.ctelevelsup)
    }

    /// The SELECT that a part of the innermost query's FROM stands for: a sub-query, or a WITH query that does not
    /// refer to itself.
    pub fn inside(&self, entry: Tree<'t, pg_sys::RangeTblEntry>) -> Option<Self> {
        match entry.rtekind {
            RTEKind::RTE_SUBQUERY => Some(self.within(child!(entry.subquery)?)),
            RTEKind::RTE_CTE => {
                let holder = self.holder(entry);
                Some(holder.within(with_query(holder.innermost()?, child_text!(entry.ctename)?)?))
            }
            _ => None,
        }
    }
}

/// What a column of a join stands for, in the query of the join: of a row of the join it is all of its columns. `None`
/// for a system column.
pub fn joined<'t>(
    column: &pg_sys::Var,
    join: Tree<'t, pg_sys::RangeTblEntry>,
) -> Option<impl Iterator<Item = Tree<'t, pg_sys::Node>> + use<'t>> {
    let number = usize::try_from(column.varattno).ok()?;
    let (skipped, taken) = if number == 0 { (0, usize::MAX) } else { (number - 1, 1) };
    Some(child!(join.joinaliasvars).into_iter().flat_map(Tree::items).skip(skipped).take(taken).flatten())
}

/// The SELECT that a query has under this name in WITH, if it does not refer to itself.
fn with_query<'t>(holder: Tree<'t, pg_sys::Query>, name: &CStr) -> Option<Tree<'t, pg_sys::Query>> {
    let found = children!(holder.cteList as CommonTableExpr)
        .find(|&with| child_text!(with.ctename).is_some_and(|other| other == name))?;
    let query = child!(found.ctequery)?.as_a::<pg_sys::Query>()?;
    (!found.cterecursive && query.commandType == pg_sys::CmdType::CMD_SELECT).then_some(query)
}
