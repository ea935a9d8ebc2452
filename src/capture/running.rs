//! The queries under way whose rows concern the cache: misses that are stored or timed, and hits that are compared. A
//! list of this backend, by the address of the query's descriptor. A query is on it from its start to its end, or to
//! the end of its memory context when an error comes between.

use std::cell::RefCell;
use std::rc::Rc;

use super::miss_run::MissRun;
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::memory_context::try_leak;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tee::Tee;
use crate::verify::Comparison;

/// A query under way.
pub enum Running {
    /// A miss.
    Miss(MissRun),
    /// A hit that is executed as well. `None` once the comparison was made or given up.
    Comparison(Option<Box<Tee<Comparison>>>),
}

/// A query on the list. It stays in its place while its query runs and nested queries come and go. Nothing but the
/// hooks of its own query borrows it.
pub type Shared = Rc<RefCell<Running>>;

/// Few: the open portals of this backend.
static RUNNING: Local<Attended<Vec<(usize, Shared)>>> = Local::new(Attended::new(Matter::Captures, Vec::new()));

/// What reports the end of a query's memory context. Lives in that context. The number is the address of the query.
struct Registration(usize);

/// Returns true if the list is empty. Then runs and ends of queries need no attention.
pub fn idle() -> bool {
    RUNNING.holds_nothing()
}

/// Puts a query that has just been started on the list.
///
/// # Errors
/// What was to be put there, if there is no memory to be told of the query's end.
pub fn add(query: QueryDesc<'_>, running: Running) -> Result<(), Running> {
    let Some(context) = query.memory() else { return Err(running) };
    // SAFETY: the context is that of a query under way.
    if unsafe { try_leak(context, Registration(query.address())) }.is_err() {
        return Err(running);
    }
    let shared = Rc::new(RefCell::new(running));
    RUNNING.with_borrow_mut(|list| list.push((query.address(), shared)));
    Ok(())
}

/// A query of the list, if it is there.
pub fn find(query: QueryDesc<'_>) -> Option<Shared> {
    RUNNING.with_borrow(|list| {
        list.iter().find(|(address, _)| *address == query.address()).map(|(_, running)| Rc::clone(running))
    })
}

/// Takes a query off the list, if it is there.
pub fn take(query: QueryDesc<'_>) -> Option<Running> {
    take_address(query.address())
}

fn take_address(query: usize) -> Option<Running> {
    let shared = RUNNING.with_borrow_mut(|list| {
        let position = list.iter().position(|(address, _)| *address == query)?;
        Some(list.swap_remove(position).1)
    })?;
    Rc::into_inner(shared).map(RefCell::into_inner)
}

impl Drop for Registration {
    /// The query's context goes away, after an error or long after `take`. This runs in the middle of error recovery:
    /// it frees Rust memory, touches atomics and what this backend remembers, and does nothing else.
    fn drop(&mut self) {
        if let Some(Running::Miss(run)) = take_address(self.0) {
            run.fail();
        }
    }
}
