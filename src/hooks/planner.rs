//! The planner hook. Keeps nothing.

use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

use super::previous::{PREVIOUS, active};
use crate::fragments;
use crate::lookup::{self, Call, Placeholder, Planning};
use crate::pg::error_passing::{direct, edge, with_outcome};
use crate::pg::lists::oids;
use crate::pg::server;
use crate::session;

/// `planner_hook`: plans a query, or finds that it need not be planned. What planning raises jumps over this frame.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged; what is kept over the calls is plain data.
    unsafe {
        let planning = if session::plans_matter() && active() {
            edge(|| lookup::before_planning(&Call::of_hook(query, text, options, params)))
        } else {
            Planning::Ignored
        };
        if let Planning::Ready(Placeholder { plan, locks }) = planning {
            // Before the snapshot is taken, so that whoever holds a lock is waited for and then seen.
            for relation in oids(locks) {
                direct!(server::LockRelationOid(relation, pg_sys::AccessShareLock as _));
            }
            return plan;
        }
        let next = PREVIOUS.planner.unwrap_or(server::standard_planner);
        let combination = match &planning {
            Planning::Eligible(eligible) => {
                edge(|| fragments::combine(&Call::of_hook(query, text, options, params), eligible))
            }
            _ => None,
        };
        let mut plan: *mut pg_sys::PlannedStmt = std::ptr::null_mut();
        let place = &raw mut plan;
        match combination {
            None => place.write(direct!(next(query, text, options, params))),
            Some(combined) => {
                with_outcome(
                    || place.write(direct!(next(combined.query, text, options, params))),
                    |failed| {
                        if failed {
                            fragments::finish(combined, std::ptr::null_mut())
                        }
                    },
                );
                edge(|| fragments::finish(combined, plan));
            }
        }
        match planning {
            Planning::Eligible(eligible) => edge(|| lookup::after_planning(plan, eligible)),
            Planning::Refused(reason) => edge(|| lookup::refuse(plan, reason)),
            Planning::Ignored | Planning::Ready { .. } => {}
        }
        plan
    }
}
