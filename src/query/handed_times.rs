//! Times that a query without FROM hands on: `FROM t, (SELECT now() - interval '1 day' AS since) w WHERE at > w.since`,
//! or the same by WITH. The planner puts such an expression in the place of the column (`SS_process_ctes` in
//! subselect.c, `pull_up_subqueries` in prepjointree.c). Here that is done in a copy of a query before it is judged, so
//! that the clock expression is seen where it is used. Then nothing uses the column any more (`unused_columns`). Keeps
//! nothing.

use pgrx::pg_sys::{self, CTEMaterialize, JoinType};

use super::clock::closed;
use super::enclosing::Enclosing;
use crate::pg::lone_expression::computes_one_row;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_making::{copy, replaced_in_query};
use crate::pg::tree_search::column_at;

/// Returns true if a query may hand times on to the one around it: as a part of FROM, or in WITH.
pub fn may_hand_on(query: Tree<'_, pg_sys::Query>, around: Tree<'_, pg_sys::Query>) -> bool {
    computes_one_row(&query)
        && (children!(around.rtable as RangeTblEntry).any(|entry| entry.subquery == query.as_ptr())
            || children!(around.cteList as CommonTableExpr).any(|with| with.ctequery.cast() == query.as_ptr()))
}

/// A copy of a query with the expressions in the place of the columns, in the current memory context; `None` if no time
/// is handed on. A query that WITH holds apart (MATERIALIZED) stays as it is.
pub fn with_times(query: Tree<'_, pg_sys::Query>) -> Option<*mut pg_sys::Query> {
    let mut is_other = false;
    // The queries around the walk, from the outermost one; those behind the present depth are left.
    let mut around = vec![query];
    let mut replace = |node: Tree<'_, pg_sys::Node>, depth: u32| {
        // SAFETY: the nodes are those of the query, which outlives the walk.
        let node: Tree<'_, pg_sys::Node> = unsafe { Tree::enter(node.as_ptr()) }?;
        let depth = depth as usize;
        match_node! { node;
            Query(inner) => {
                around.truncate(depth + 1);
                around.push(inner);
                None
            },
            // The planner keeps apart what is referred to more than once.
            CommonTableExpr(with) => {
                let inner = child!(with.ctequery)?.as_a::<pg_sys::Query>().filter(|inner| computes_one_row(inner))?;
                let is_time = |target: Tree<'_, pg_sys::TargetEntry>| {
                    child!(target.expr).is_some_and(|one| asks(one.as_node()))
                };
                let is_wanted = with.ctematerialized == CTEMaterialize::CTEMaterializeDefault
                    && children!(inner.targetList as TargetEntry).any(is_time);
                // SAFETY: a part of the query, of which a copy is changed.
                is_wanted.then(|| unsafe {
                    let other = copy(with.as_ptr());
                    (*other).ctematerialized = CTEMaterialize::CTEMaterializeNever;
                    other.cast()
                })
            },
            // A column that a join lists counts where it is referred to.
            List(list) => {
                let here = *around.get(depth)?;
                let mut entries = children!(here.rtable as RangeTblEntry);
                let is_of_join = entries.any(|entry| entry.joinaliasvars == list.as_ptr());
                // SAFETY: a list of expressions.
                is_of_join.then(|| unsafe { copy(node.as_ptr()) })
            },
            Var(column) => {
                let queries = Enclosing::of(|levels| around.get(depth.checked_sub(levels as usize)?).copied());
                let found = time_of(&column, &queries)?;
                is_other = true;
                // SAFETY: an expression without columns.
                Some(unsafe { copy(found.as_ptr()) })
            },
            _ => None,
        }
    };
    // SAFETY: a valid query.
    let copied = unsafe { replaced_in_query(query.as_ptr(), &mut replace) };
    is_other.then_some(copied)
}

/// The clock expression that a column stands for, if a query without FROM hands it on.
fn time_of<'t>(column: &pg_sys::Var, queries: &Enclosing<'t>) -> Option<Tree<'t, pg_sys::Node>> {
    let entry = queries.entry(column)?;
    let own = queries.above(column.varlevelsup);
    let inner = own.inside(entry)?.innermost().filter(|inner| computes_one_row(inner))?;
    let holder = own.holder(entry).innermost()?;
    let is_apart = children!(holder.cteList as CommonTableExpr).any(|with| {
        with.ctequery.cast() == inner.as_ptr() && with.ctematerialized == CTEMaterialize::CTEMaterializeAlways
    });
    let expression = column_at(inner, column.varattno)?;
    let query = own.innermost()?;
    let from = child!(query.jointree)?.as_node();
    // The planner keeps a column apart from the same expression elsewhere, which GROUPING SETS do not make NULL.
    let is_kept = is_apart || entry.security_barrier || !query.groupingSets.is_null();
    (asks(expression) && !is_kept && always_has(from, column.varno)).then_some(expression)
}

/// Returns true for a clock expression.
fn asks(expression: Tree<'_, pg_sys::Node>) -> bool {
    closed(expression).is_some_and(|found| found.asks)
}

/// Returns true if each row of FROM, or of a part of it, has a row of this entry: no outer join puts NULL there.
fn always_has(from: Tree<'_, pg_sys::Node>, number: i32) -> bool {
    match_node! { from;
        RangeTblRef(reference) => reference.rtindex == number,
        FromExpr(from) => children!(from.fromlist as Node).any(|one| always_has(one, number)),
        JoinExpr(join) => {
            let left = matches!(join.jointype, JoinType::JOIN_INNER | JoinType::JOIN_LEFT);
            let right = matches!(join.jointype, JoinType::JOIN_INNER | JoinType::JOIN_RIGHT);
            (left && child!(join.larg).is_some_and(|one| always_has(one, number)))
                || (right && child!(join.rarg).is_some_and(|one| always_has(one, number)))
        },
        _ => false,
    }
}
