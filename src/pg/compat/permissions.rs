//! Checks of permissions that other libraries do not see. The server checks a client's statement once, when it starts
//! it, and `ExecutorCheckPerms_hook` shows that check to them. They are not told of what the cache starts below the
//! statement, or asks before it.
//!
//! State of this backend: the hook that the next check is kept from.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::error_passing::with_cleanup;
use crate::pg::server;
use crate::pg::tree::Tree;
#[cfg(not(feature = "pg15"))]
use crate::pg::tree::children;

/// The column of pg_auth_members (catalog/pg_auth_members.h) with the role that has the member. Since 16 the row has an
/// OID before it.
pub const ROLE_OF_MEMBERSHIP: i16 = if cfg!(feature = "pg15") { 1 } else { 2 };

static KEPT_FROM: Local<Cell<pg_sys::ExecutorCheckPerms_hook_type>> = Local::new(Cell::new(None));

/// Stands in the hook's place for one check. A function that is called after it may run statements, whose checks go to
/// the hook.
#[cfg(feature = "pg15")]
unsafe extern "C-unwind" fn pass_over(_range_table: *mut pg_sys::List, _raises: bool) -> bool {
    show_checks();
    true
}

/// As on 15.
#[cfg(not(feature = "pg15"))]
unsafe extern "C-unwind" fn pass_over(
    _range_table: *mut pg_sys::List,
    _permissions: *mut pg_sys::List,
    _raises: bool,
) -> bool {
    show_checks();
    true
}

/// Puts the hook back, unless that was done before.
fn show_checks() {
    if let Some(hook) = KEPT_FROM.take() {
        // SAFETY: a variable of the backend, which has one thread.
        unsafe { (&raw mut pg_sys::ExecutorCheckPerms_hook).write(Some(hook)) };
    }
}

/// Makes a call in which the server first checks permissions, and does not show that check to other libraries.
///
/// # Safety
/// As `with_cleanup`.
unsafe fn unshown(call: impl FnOnce() + Copy) {
    // SAFETY: a variable of the backend, which has one thread; the caller's promise.
    unsafe {
        let hook = &raw mut pg_sys::ExecutorCheckPerms_hook;
        if (*hook).is_none() {
            return call();
        }
        KEPT_FROM.set(hook.replace(Some(pass_over)));
        with_cleanup(call, show_checks);
    }
}

/// Starts a plan of our own below a statement of the client. What the server raises jumps over this frame.
///
/// # Safety
/// As `standard_ExecutorStart`. No frame between here and PostgreSQL may have pending destructors.
pub unsafe fn start_unshown(query_desc: *mut pg_sys::QueryDesc, flags: i32) {
    // SAFETY: the caller's promise. Nothing of users runs before the server checks the permissions of a plan
    // (`InitPlan`).
    unsafe { unshown(|| direct!(server::standard_ExecutorStart(query_desc, flags))) };
}

/// Returns true if the role that runs a plan has all rights to tables that its start asks for.
pub fn is_permitted(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    let mut is_permitted = false;
    let place = &raw mut is_permitted;
    // SAFETY: the range table of a valid plan, with its permissions.
    unsafe {
        unshown(|| {
            #[cfg(feature = "pg15")]
            place.write(direct!(pg_sys::ExecCheckRTPerms(plan.rtable, false)));
            #[cfg(not(feature = "pg15"))]
            place.write(direct!(pg_sys::ExecCheckPermissions(plan.rtable, plan.permInfos, false)));
        });
    }
    is_permitted
}

/// Calls `visit` with the columns of an entry of a plan's range table that its statement asks to read, by their
/// numbers: 0 for whole rows, and negative ones for the server's own columns. Returns false if it does not ask to read
/// the relation.
pub fn for_each_selected_column(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    entry: Tree<'_, pg_sys::RangeTblEntry>,
    mut visit: impl FnMut(i16),
) -> bool {
    #[cfg(feature = "pg15")]
    let (rights, columns) = {
        let _ = plan;
        (u64::from(entry.requiredPerms), entry.selectedCols)
    };
    #[cfg(not(feature = "pg15"))]
    let (rights, columns) = {
        let mut all = children!(plan.permInfos as RTEPermissionInfo);
        let own = (entry.perminfoindex as usize).checked_sub(1).and_then(|place| all.nth(place));
        own.map_or((0, std::ptr::null_mut()), |own| (own.requiredPerms, own.selectedCols))
    };
    let mut member = -1;
    loop {
        // SAFETY: a set of a valid plan.
        member = unsafe { kept!(pg_sys::bms_next_member(columns, member)) };
        if member < 0 {
            return rights & u64::from(pg_sys::ACL_SELECT) != 0;
        }
        visit((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
    }
}

/// Has a query that is made by hand ask for no rights to a relation that it names. Since 16 the planner wants to know
/// whose they would be.
///
/// # Safety
/// A new query, and an entry of its range table.
pub unsafe fn ask_for_no_rights(query: *mut pg_sys::Query, entry: *mut pg_sys::RangeTblEntry) {
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise.
    unsafe {
        kept!(pg_sys::addRTEPermissionInfo(&raw mut (*query).rteperminfos, entry));
    }
    let _ = (query, entry);
}
