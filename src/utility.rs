//! What a utility statement means to us while it runs: most hide whatever they execute (it is
//! nested), some are mere wrappers around a query of the client (EXECUTE, DECLARE CURSOR, FETCH),
//! EXPLAIN shows a query without running it for its rows, and COMMIT PREPARED makes the changes
//! of another session visible.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use crate::session::{self, Explaining, Nesting, Wrapped};
use crate::writes;

/// Held while the statement runs; dropped on the error path too.
pub struct Scope {
    _nesting: Option<Nesting>,
    _explaining: Option<Explaining>,
    _wrapped: Option<Wrapped>,
    finishes_prepared: bool,
}

impl Drop for Scope {
    fn drop(&mut self) {
        if self.finishes_prepared {
            writes::bump_catalogs();
        }
    }
}

/// Enters the utility statement of `plan`.
///
/// # Safety
/// `plan` must be the argument of a ProcessUtility hook, `text` its query string.
pub unsafe fn enter(plan: *mut pg_sys::PlannedStmt, text: *const std::ffi::c_char) -> Scope {
    writes::note_counting();
    // SAFETY: as the caller promises; a utility plan always has its statement.
    let (statement, location, length) = unsafe {
        ((*plan).utilityStmt, (*plan).stmt_location, (*plan).stmt_len)
    };
    // SAFETY: a statement is a valid node.
    let tag = unsafe { (*statement).type_ };
    let mut scope =
        Scope { _nesting: None, _explaining: None, _wrapped: None, finishes_prepared: false };
    match tag {
        NodeTag::T_ExecuteStmt | NodeTag::T_FetchStmt | NodeTag::T_PrepareStmt
        | NodeTag::T_DeallocateStmt | NodeTag::T_ClosePortalStmt => {}
        NodeTag::T_DeclareCursorStmt => {
            scope._wrapped = Some(Wrapped::enter(text, location, length));
        }
        NodeTag::T_ExplainStmt => {
            if session::at_top_level() {
                session::begin_statement(Reason::Explain);
            }
            scope._explaining = Some(Explaining::enter());
            scope._wrapped = Some(Wrapped::enter(text, location, length));
        }
        _ => {
            if session::at_top_level() {
                session::begin_statement(Reason::UtilityStatement);
            }
            scope._nesting = Some(Nesting::enter());
            if tag == NodeTag::T_TransactionStmt {
                // SAFETY: the tag says what the node is.
                let kind = unsafe { (*statement.cast::<pg_sys::TransactionStmt>()).kind };
                scope.finishes_prepared = kind
                    == pg_sys::TransactionStmtKind::TRANS_STMT_COMMIT_PREPARED
                    || kind == pg_sys::TransactionStmtKind::TRANS_STMT_ROLLBACK_PREPARED;
            }
        }
    }
    scope
}
