//! What a plan carries (`carried`) whose query may be taken apart when it runs: a plan for a Bind, one that is kept, or a cursor's. Keeps nothing.

use arrow_cache_core::Hash128;
use pgrx::pg_sys;

use crate::fragments::carried;
use crate::pg::lists::{integers, node_at};
use crate::pg::tree::Tree;
use crate::pg::tree_making::{list_of, list_of_numbers};
use crate::query::Versions;
use crate::query::hashes::{FormId, PlanningHash};

/// A query that was taken apart when it was planned. Plain data.
#[derive(Clone, Copy)]
pub struct Kept {
    /// The clock-free part. Not to be changed.
    pub part: *mut pg_sys::Query,
    /// The projection. Not to be changed.
    pub projection: *mut pg_sys::List,
    /// The definitions that were current before the query was checked and planned.
    pub versions: Versions,
    /// The role and the settings under which it was planned.
    pub under: PlanningHash,
    /// The form of the part.
    pub form: FormId,
    /// Constants stand for the values that it was planned for.
    pub for_values: bool,
}

impl Kept {
    /// As a list, in the current memory context.
    ///
    /// # Safety
    /// Part and projection must be valid as long as the list.
    pub unsafe fn to_list(self) -> *mut pg_sys::List {
        let Versions { catalogs, ddl } = self.versions;
        let numbers = [catalogs, ddl, self.under.0.hi, self.under.0.lo, self.form.0, u64::from(self.for_values)];
        let halves = numbers.into_iter().flat_map(|number| [number as u32 as i32, (number >> 32) as i32]);
        list_of::<pg_sys::Node>([self.part.cast(), self.projection.cast(), list_of_numbers(halves).cast()])
    }
}

/// What a plan carries, if it carries something.
pub fn of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Kept> {
    // SAFETY: only lists that `Kept` has made are carried.
    unsafe { read(carried::clock_free_of(plan)?) }
}

/// What `to_list` has made a list of, or the server a copy of that.
///
/// # Safety
/// It must have made the list.
#[inline(never)]
unsafe fn read(list: *mut pg_sys::List) -> Option<Kept> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut halves = integers(node_at::<pg_sys::List>(list, 2)?);
        let mut number = || Some(u64::from(halves.next()? as u32) | u64::from(halves.next()? as u32) << 32);
        Some(Kept {
            part: node_at(list, 0)?,
            projection: node_at(list, 1)?,
            versions: Versions { catalogs: number()?, ddl: number()? },
            under: PlanningHash(Hash128 { hi: number()?, lo: number()? }),
            form: FormId(number()?),
            for_values: number()? != 0,
        })
    }
}
