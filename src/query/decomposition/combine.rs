//! The combined query: the site reads the tuplestore of the parts in the place of its FROM and WHERE.

use std::ffi::CStr;

use pgrx::pg_sys::{self, RTEKind};

use super::algebra::combination;
use super::columns::{Columns, PartColumn};
use super::grain::Lifted;
use super::obstacle::{GROUPING_SETS, Obstacle, UNGROUPED_COLUMN};
use super::site::Site;
use crate::pg::compat::tree::add_range_table;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_making::{alias, copy, list_of, list_of_numbers, list_of_oids, new_node, replaced};

/// What the site asks of the tuplestore.
pub(super) struct Combined {
    pub targets: *mut pg_sys::List,
    /// Those of a grain.
    conditions: *mut pg_sys::Node,
    having: *mut pg_sys::Node,
    windows: *mut pg_sys::List,
}

impl Combined {
    /// Rewrites the columns, HAVING and the windows of a site, and the conditions that are asked of the rows of parts.
    ///
    /// # Errors
    /// Why they are not made of parts.
    pub fn of(site: &Site<'_>, columns: &mut Columns, lifted: Option<&Lifted>) -> Result<Self, Obstacle> {
        let query = site.query;
        let lifted = lifted.map_or(std::ptr::null_mut(), |lifted| lifted.conditions);
        // SAFETY: parts of a valid query.
        unsafe {
            let conditions: *mut pg_sys::List = rewritten(lifted.cast(), site, columns)?.cast();
            let has_some = !conditions.is_null();
            Ok(Self {
                conditions: if has_some {
                    kept!(pg_sys::make_ands_explicit(conditions)).cast()
                } else {
                    conditions.cast()
                },
                targets: rewritten(query.targetList.cast(), site, columns)?.cast(),
                having: rewritten(query.havingQual, site, columns)?,
                windows: rewritten(query.windowClause.cast(), site, columns)?.cast(),
            })
        }
    }

    /// Lets the site read the tuplestore.
    ///
    /// # Safety
    /// The site's query, which the caller may change.
    pub unsafe fn install(self, query: *mut pg_sys::Query, columns: &Columns, name: &CStr) {
        let reference = new_node::<pg_sys::RangeTblRef>();
        // SAFETY: new nodes, and those of the query.
        unsafe {
            (*reference).rtindex = columns.tuplestore;
            let below: Vec<*mut pg_sys::Query> = nodes::<pg_sys::RangeTblEntry>((*query).rtable)
                .filter(|entry| (**entry).rtekind == RTEKind::RTE_SUBQUERY)
                .map(|entry| (*entry).subquery)
                .collect();
            for entry in nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
                retire(entry);
            }
            (*query).rtable = kept!(pg_sys::lappend((*query).rtable, tuplestore(columns.kinds(), name).cast()));
            for below in below {
                add_permissions(query, below);
            }
            (*query).jointree = kept!(pg_sys::makeFromExpr(list_of([reference]), self.conditions));
            (*query).targetList = self.targets;
            (*query).havingQual = self.having;
            (*query).windowClause = self.windows;
        }
    }
}

/// An expression of the site, or a list of them, over the tuplestore.
///
/// # Safety
/// Null, or a valid tree of the site's level.
unsafe fn rewritten(
    node: *mut pg_sys::Node,
    site: &Site<'_>,
    columns: &mut Columns,
) -> Result<*mut pg_sys::Node, Obstacle> {
    let mut obstacle = None;
    // SAFETY: the caller's promise.
    let result = unsafe {
        replaced(node, &mut |node, depth| match replacement(node, depth, site, columns) {
            Ok(replacement) => replacement,
            Err(found) => {
                obstacle.get_or_insert(found);
                Some(node.as_ptr())
            }
        })
    };
    obstacle.map_or(Ok(result), Err)
}

/// What stands in the place of a node, which may lie in sub-queries of the site.
fn replacement(
    node: Tree<'_, pg_sys::Node>,
    depth: u32,
    site: &Site<'_>,
    columns: &mut Columns,
) -> Result<Option<*mut pg_sys::Node>, Obstacle> {
    if depth == 0
        && let Some(key) = columns.key(node)
    {
        return Ok(Some(key));
    }
    let level = match_node! { node;
        Aggref(aggregate) => aggregate.agglevelsup,
        GroupingFunc(function) => function.agglevelsup,
        Var(column) => column.varlevelsup,
        _ => return Ok(None),
    };
    if level != depth {
        return Ok(None);
    }
    if depth > 0 {
        return Err("A sub-query reads a column, or an aggregate, of the query around it.");
    }
    match_node! { node;
        // SAFETY: an aggregate of the site, which is not changed.
        Aggref(aggregate) => unsafe { combination(aggregate, columns) }.map(Some),
        Var(column) => {
            // A column that depends on the keys: it has one value in each group.
            if site.is_grand() || column.varattno <= 0 {
                return Err(UNGROUPED_COLUMN);
            }
            // SAFETY: a column of the site.
            Ok(Some(unsafe { columns.add(column.as_ptr().cast()) }))
        },
        _ => Err(GROUPING_SETS),
    }
}

/// Adds the entries of what FROM selects of to the range table of the site, as the planner does when it takes such a
/// sub-query apart: so their permissions are asked, and the answer rests on the views.
///
/// # Safety
/// The site's query, which the caller may change, and a sub-query of its FROM.
unsafe fn add_permissions(query: *mut pg_sys::Query, selection: *mut pg_sys::Query) {
    // SAFETY: the caller's promise.
    unsafe {
        let selection = copy(selection);
        for entry in nodes::<pg_sys::RangeTblEntry>((*selection).rtable) {
            retire(entry);
        }
        add_range_table(query, selection);
        for entry in nodes::<pg_sys::RangeTblEntry>((*selection).rtable) {
            if (*entry).rtekind == RTEKind::RTE_SUBQUERY {
                add_permissions(query, (*entry).subquery);
            }
        }
    }
}

/// Makes of an entry of the range table one that is asked for nothing but permissions.
///
/// # Safety
/// A valid entry that the caller may change.
unsafe fn retire(entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: the caller's promise. The planner looks for the outer joins of entries that stand for joins; one for an
    // empty FROM has nothing.
    unsafe {
        (*entry).securityQuals = std::ptr::null_mut();
        if (*entry).rtekind == RTEKind::RTE_JOIN {
            (*entry).rtekind = RTEKind::RTE_RESULT;
            (*entry).joinaliasvars = std::ptr::null_mut();
            (*entry).joinleftcols = std::ptr::null_mut();
            (*entry).joinrightcols = std::ptr::null_mut();
            (*entry).join_using_alias = std::ptr::null_mut();
        }
    }
}

/// The entry of the range table for the tuplestore.
///
/// # Safety
/// The columns must be valid.
pub(super) unsafe fn tuplestore(kinds: &[PartColumn], name: &CStr) -> *mut pg_sys::RangeTblEntry {
    let entry = new_node::<pg_sys::RangeTblEntry>();
    // SAFETY: a new node, filled as the parser does it (parser/parse_relation.c).
    unsafe {
        (*entry).rtekind = RTEKind::RTE_NAMEDTUPLESTORE;
        (*entry).enrname = kept!(pg_sys::pstrdup(name.as_ptr()));
        // How many rows there will be is not known here.
        (*entry).enrtuples = -1.0;
        (*entry).coltypes = list_of_oids(kinds.iter().map(|kind| kind.type_oid));
        (*entry).coltypmods = list_of_numbers(kinds.iter().map(|kind| kind.modifier));
        (*entry).colcollations = list_of_oids(kinds.iter().map(|kind| kind.collation));
        (*entry).eref = alias(name, kinds.iter().map(|_| c"value"));
        (*entry).inFromCl = true;
    }
    entry
}
