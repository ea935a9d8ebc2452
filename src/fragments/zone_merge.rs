//! One part made of the stored parts of several zones, as the server itself combines what other processes have
//! aggregated: the states of aggregates are combined, and not finished. Keeps nothing.

use pgrx::pg_sys;

use super::part_run::Source;
use super::recipe::ZoneParts;
use super::zones::ZONES_NAME;
use crate::error::or_raise;
use crate::pg::tuplestore::environment_with;
use crate::serve::Hold;

/// What merges the rows of stored parts. `slot` is one for rows of parts.
///
/// # Safety
/// Holds of parts with the columns of the slot, which are used by nobody else meanwhile. The current memory context
/// must live as long as the source.
pub unsafe fn source(zones: ZoneParts, holds: &[*mut Hold], slot: *mut pg_sys::TupleTableSlot) -> Source {
    // SAFETY: the caller's promise.
    unsafe {
        let columns = (*slot).tts_tupleDescriptor;
        let rows = kept!(pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem));
        let mut values = vec![pg_sys::Datum::null(); (*columns).natts as usize];
        let mut nulls = vec![true; values.len()];
        for hold in holds {
            let Some(stored) = (**hold).rows() else { continue };
            stored.rewind();
            while or_raise(stored.next(&mut values, &mut nulls)) {
                kept!(pg_sys::tuplestore_putvalues(rows, columns, values.as_mut_ptr(), nulls.as_mut_ptr()));
            }
        }
        let environment = environment_with(ZONES_NAME, columns, rows);
        Source { plan: zones.merging, reads: zones.one, environment, rows }
    }
}
