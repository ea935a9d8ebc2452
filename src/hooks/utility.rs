//! What a utility statement means to us while it runs: most hide whatever they execute (it is
//! nested), some are mere wrappers around a query of the client (EXECUTE, DECLARE CURSOR, FETCH),
//! EXPLAIN shows a query without running it for its rows, and COMMIT PREPARED makes the changes
//! of another session visible.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use crate::functions::policy;
use crate::invalidation::{after_commit, foreign, publication, targets, write_set};
use crate::pg::error_passing::direct;
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::report::decision_log;
use crate::session::{self, Status, WrappedText, Wrapping};
use crate::{copy, error, shmem};

/// What to undo when the statement is over. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Scope {
    nested: bool,
    wrapping: Option<Wrapping>,
    commits_prepared: bool,
    /// The database that DROP DATABASE drops.
    dropped_database: Option<u32>,
    /// A statement that changes relations by their names; else null. What these stand for was asked before the server has locked it, so it
    /// is asked again afterwards.
    changes_names: *const pg_sys::Node,
    /// The statement for the server, in the place of one that copies to Arrow; else null.
    replaced: *mut pg_sys::PlannedStmt,
}

impl Scope {
    /// The statement that the server is to run: `plan`, or what stands in its place.
    pub fn statement(self, plan: *mut pg_sys::PlannedStmt) -> *mut pg_sys::PlannedStmt {
        if self.replaced.is_null() { plan } else { self.replaced }
    }

    /// Is there anything to do once the statement has succeeded?
    pub fn has_aftermath(self) -> bool {
        self.dropped_database.is_some() || !self.changes_names.is_null()
    }
}

/// Does the statement only tell the transaction where to go? BEGIN, COMMIT, SAVEPOINT and the like run nothing inside: the
/// server acts on them when they are over. So there is nothing to undo, and every transaction is spared the effort.
///
/// # Safety
/// As `enter`.
pub unsafe fn only_steers_transaction(plan: *const pg_sys::PlannedStmt) -> bool {
    use pg_sys::TransactionStmtKind::{TRANS_STMT_COMMIT_PREPARED, TRANS_STMT_ROLLBACK_PREPARED};
    // SAFETY: as the caller promises; the cast follows the node's tag.
    unsafe {
        let statement = (*plan).utilityStmt;
        (*statement).type_ == NodeTag::T_TransactionStmt
            && !matches!(
                (*statement.cast::<pg_sys::TransactionStmt>()).kind,
                TRANS_STMT_COMMIT_PREPARED | TRANS_STMT_ROLLBACK_PREPARED
            )
    }
}

/// Notes a statement that only steers its transaction.
///
/// # Safety
/// As `enter`.
pub unsafe fn note_steering(plan: *const pg_sys::PlannedStmt) {
    if session::at_top_level() {
        session::begin_statement(Reason::UtilityStatement);
        // SAFETY: as the caller promises.
        unsafe { decision_log::note(Status::Bypass(Reason::UtilityStatement), plan) };
    }
}

/// Enters the utility statement of `plan`.
///
/// # Safety
/// `plan` must be the argument of a ProcessUtility hook, `source` its query string.
pub unsafe fn enter(plan: *const pg_sys::PlannedStmt, source: *const std::ffi::c_char) -> Scope {
    // SAFETY: as the caller promises; a utility plan always has its statement.
    let (statement, location, length) = unsafe { ((*plan).utilityStmt, (*plan).stmt_location, (*plan).stmt_len) };
    let text = WrappedText { source, location, length };
    let mut scope = Scope {
        nested: false,
        wrapping: None,
        commits_prepared: false,
        dropped_database: None,
        changes_names: std::ptr::null(),
        replaced: std::ptr::null_mut(),
    };
    // SAFETY: as the caller promises, and the tag says that it is a COPY.
    let replaced = unsafe { if (*statement).type_ == NodeTag::T_CopyStmt { copy::enter(plan) } else { None } };
    if let Some(replaced) = replaced {
        if session::at_top_level() {
            session::begin_statement(Reason::NotSelect);
        }
        scope.replaced = replaced;
        scope.wrapping = Some(session::enter_wrapping(None, false));
        return scope;
    }
    // SAFETY: a statement is a valid node, and its tag says of which kind.
    match unsafe { (*statement).type_ } {
        // What it wraps is the function's that runs it, not the client's.
        NodeTag::T_ExecuteStmt | NodeTag::T_DeclareCursorStmt | NodeTag::T_ExplainStmt if !session::at_top_level() => {
            session::enter_level();
            scope.nested = true;
        }
        NodeTag::T_ExecuteStmt => scope.wrapping = Some(session::enter_execute()),
        NodeTag::T_FetchStmt | NodeTag::T_PrepareStmt | NodeTag::T_DeallocateStmt | NodeTag::T_ClosePortalStmt => {}
        NodeTag::T_DeclareCursorStmt => {
            scope.wrapping = Some(session::enter_wrapping(Some(text), false));
        }
        NodeTag::T_ExplainStmt => {
            session::begin_statement(Reason::Explain);
            // SAFETY: as above.
            unsafe { decision_log::note(Status::Bypass(Reason::Explain), plan) };
            scope.wrapping = Some(session::enter_wrapping(Some(text), true));
        }
        tag => {
            if session::at_top_level() {
                session::begin_statement(Reason::UtilityStatement);
                // SAFETY: as above.
                unsafe { decision_log::note(Status::Bypass(Reason::UtilityStatement), plan) };
            }
            if may_redefine(tag) {
                session::note_definition_change();
            }
            // It may raise, so it comes before there is something to undo.
            // SAFETY: as above.
            unsafe { announce_effects(statement) };
            if matches!(tag, NodeTag::T_CopyStmt | NodeTag::T_TruncateStmt) {
                scope.changes_names = statement;
            }
            session::enter_level();
            scope.nested = true;
            if tag == NodeTag::T_DropdbStmt {
                // SAFETY: as above; the name is a C string, and an unknown one gives no OID.
                let database =
                    unsafe { pg_sys::get_database_oid((*statement.cast::<pg_sys::DropdbStmt>()).dbname, true) };
                scope.dropped_database = (database != pg_sys::InvalidOid).then(|| database.to_u32());
            }
            if tag == NodeTag::T_TransactionStmt {
                // SAFETY: as above.
                let kind = unsafe { (*statement.cast::<pg_sys::TransactionStmt>()).kind };
                scope.commits_prepared = kind == pg_sys::TransactionStmtKind::TRANS_STMT_COMMIT_PREPARED;
            }
        }
    }
    scope
}

/// May a statement of this kind change a definition by itself? What others run inside comes here as well.
fn may_redefine(tag: NodeTag) -> bool {
    !matches!(
        tag,
        NodeTag::T_TransactionStmt
            | NodeTag::T_VariableSetStmt
            | NodeTag::T_VariableShowStmt
            | NodeTag::T_CopyStmt
            | NodeTag::T_DoStmt
            | NodeTag::T_CallStmt
            | NodeTag::T_LockStmt
            | NodeTag::T_ListenStmt
            | NodeTag::T_UnlistenStmt
            | NodeTag::T_NotifyStmt
            | NodeTag::T_ConstraintsSetStmt
            | NodeTag::T_VacuumStmt
            | NodeTag::T_CheckPointStmt
            | NodeTag::T_LoadStmt
    )
}

/// Does ALTER TABLE … NO INHERIT take a child away from its parent? The parent is not invalidated by that, and the
/// child only through the columns that it had inherited, if there were any.
///
/// # Safety
/// `statement` must be valid.
unsafe fn leaves_parent(statement: *const pg_sys::AlterTableStmt) -> bool {
    // SAFETY: as the caller promises; the list holds the statement's commands.
    unsafe {
        nodes::<pg_sys::AlterTableCmd>((*statement).cmds)
            .any(|command| (*command).subtype == pg_sys::AlterTableType::AT_DropInherit)
    }
}

/// Prepares for what some statements do that no later hook tells.
///
/// # Safety
/// `statement` must be a valid utility statement.
unsafe fn announce_effects(statement: *const pg_sys::Node) {
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*statement).type_ {
            NodeTag::T_AlterTableStmt if leaves_parent(statement.cast()) => write_set::note_silent_definition(),
            NodeTag::T_SecLabelStmt => policy::before_security_label(statement.cast()),
            NodeTag::T_CopyStmt if (*statement.cast::<pg_sys::CopyStmt>()).is_from => {
                let name = (*statement.cast::<pg_sys::CopyStmt>()).relation;
                if let Some(relation) = targets::changeable(Tree::enter(name), pg_sys::ACL_INSERT) {
                    publication::note_relation(relation);
                    foreign::note_reached(relation);
                }
            }
            NodeTag::T_TruncateStmt => {
                for name in nodes::<pg_sys::RangeVar>((*statement.cast::<pg_sys::TruncateStmt>()).relations) {
                    if let Some(relation) = targets::changeable(Tree::enter(name), pg_sys::ACL_TRUNCATE) {
                        foreign::note_reached(relation);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Leaves a utility statement, after an error too, if it has `raised` one. Nothing here can raise.
///
/// # Safety
/// If it has, that must be the server's present error.
pub unsafe fn leave(scope: Scope, raised: bool) {
    if scope.nested {
        session::leave_level();
    }
    if !scope.replaced.is_null() {
        copy::leave();
    }
    if let Some(outer) = scope.wrapping {
        session::leave_wrapping(outer);
    }
    if scope.commits_prepared && shmem::may_have_prepared_definitions() {
        // What it has redefined is known only to the session that prepared it. An error may come after its end as well, but
        // whoever was refused has ended nothing.
        // SAFETY: as the caller promises.
        if !(raised && error::refuses_prepared(unsafe { direct!(server::geterrcode()) })) {
            after_commit::bump_all_definitions();
        }
    }
}

/// The statement has succeeded: the entries of a database that is gone go too, since its OID may
/// be given to another one some day.
pub fn succeed(scope: Scope) {
    if let (Some(database), Some(store)) = (scope.dropped_database, shmem::store()) {
        store.retire_matching(|entry| entry.database() == database);
    }
    if !scope.changes_names.is_null() {
        // SAFETY: the statement that has just been executed, which is still there.
        unsafe { announce_effects(scope.changes_names) };
    }
}
