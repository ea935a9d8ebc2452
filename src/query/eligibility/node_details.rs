//! What nodes that name no function say by themselves, apart from their kind (`node_table`).

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::EligibilityChecker;
use crate::pg::compat::tree;
use crate::pg::compat::tree::walkers::exprCollation;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::query::node_table::{COLLATED, TYPED, in_query};

/// System column that is not tied to a tuple's physical place (access/sysattr.h).
const TABLE_OID_ATTRIBUTE: i16 = pg_sys::TableOidAttributeNumber as i16;

/// Returns true if this expression can have a type that none of its parts has. The columns of a row that is written
/// without a name are parts of it.
pub(super) fn makes_a_type(node: Tree<'_, pg_sys::Node>) -> bool {
    if let Some(row) = node.as_a::<pg_sys::RowExpr>() {
        return row.row_typeid != pg_sys::RECORDOID;
    }
    in_query(node.tag()).has(TYPED)
}

/// Returns true if a collation comes in here that can be dropped. All that is not the server's own can, those that
/// initdb has found among them. All other expressions have the collations of their parts.
pub(super) fn names_collation(node: Tree<'_, pg_sys::Node>) -> bool {
    // SAFETY: an expression of a valid tree.
    in_query(node.tag()).has(COLLATED) && unsafe { exprCollation(node.as_ptr()) }.to_u32() >= FIRST_UNPINNED_OID
}

/// Checks of nodes that name no function. Each returns true to stop the walk.
impl EligibilityChecker {
    pub(super) fn check_query_itself(&mut self, query: &pg_sys::Query) -> bool {
        if query.commandType != pg_sys::CmdType::CMD_SELECT || query.hasModifyingCTE {
            return self.refuse(Reason::DataModifyingCte);
        }
        if !query.rowMarks.is_null() || query.hasForUpdate {
            return self.refuse(Reason::RowLocks);
        }
        if !query.utilityStmt.is_null() {
            return self.refuse(Reason::UtilityStatement);
        }
        false
    }

    pub(super) fn check_range_table_entry(&mut self, entry: &pg_sys::RangeTblEntry) -> bool {
        match entry.rtekind {
            pg_sys::RTEKind::RTE_RELATION => {
                self.reads_something = true;
                !entry.tablesample.is_null() && self.refuse(Reason::Tablesample)
            }
            pg_sys::RTEKind::RTE_FUNCTION | pg_sys::RTEKind::RTE_VALUES => {
                self.reads_something = true;
                false
            }
            pg_sys::RTEKind::RTE_TABLEFUNC if tree::is_json_table(entry) => self.refuse(Reason::StableFunction),
            pg_sys::RTEKind::RTE_TABLEFUNC => self.refuse(Reason::XmlExpression),
            pg_sys::RTEKind::RTE_NAMEDTUPLESTORE => self.refuse(Reason::UnsupportedRelation),
            pg_sys::RTEKind::RTE_SUBQUERY
            | pg_sys::RTEKind::RTE_JOIN
            | pg_sys::RTEKind::RTE_CTE
            | pg_sys::RTEKind::RTE_RESULT => false,
            kind if tree::is_grouping_entry(kind) => false,
            _ => self.refuse(Reason::TooComplex),
        }
    }

    pub(super) fn check_var(&mut self, var: &pg_sys::Var) -> bool {
        self.note_type(var.vartype);
        var.varattno < 0 && var.varattno != TABLE_OID_ATTRIBUTE && self.refuse(Reason::SystemColumn)
    }
}

/// The type of an expression.
pub(super) fn type_of(expression: Tree<'_, pg_sys::Node>) -> pg_sys::Oid {
    // SAFETY: an expression of a valid tree.
    unsafe { server::exprType(expression.as_ptr()) }
}
