//! The Custom Scan that reads a stored entry: what the executor calls. Its nodes belong to one query of this backend.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use arrow_cache_core::{Hash128, RoomyVec};
use pgrx::pg_sys;

use super::direct_rows::{self, Run};
use super::explain;
use super::hold::Hold;
use super::rendition::{self, Draft};
use super::rerun;
use super::row_slot::{copy_row, slot_values};
use crate::error::or_raise;
use crate::pg::custom_scan::{ScanKind, Steps};
use crate::pg::error_passing::edge;
use crate::pg::lists::{nodes, oids};
use crate::pg::query_desc::QueryDesc;
use crate::pg::{compat, own_execution};
use crate::session;

/// The executor node.
#[repr(C)]
struct CachedScanState {
    custom: pg_sys::CustomScanState,
    /// The pinned entry. Lives as long as the query's descriptor.
    hold: *mut Hold,
    /// The real plan, if it runs in the place of the entry; else null.
    real: *mut pg_sys::QueryDesc,
    /// The tables and indexes that are held open.
    open: *mut pg_sys::List,
    /// The executor's run that is under way.
    run: Run,
    /// Delivers the entry in this run, in the place of its rows.
    delivery: Option<Delivery>,
}

/// A function that delivers an entry, or some of it, as something else than rows of the executor, and what it is called
/// with. It returns how many rows it has delivered.
type Delivery = (unsafe fn(*mut c_void) -> u64, *mut c_void);

static KIND: ScanKind =
    ScanKind::new(c"ArrowCache", &Steps { create: create_state, begin, next, end, rescan, explain: Some(show) });

/// Makes the node type known by name.
pub fn register() {
    KIND.register();
}

/// The plan node: like `custom`, it reads a held entry, and holds the relations of `open` (OIDs) open. In the current
/// memory context, for one execution, which the hold must outlive. `None` when there is no memory.
pub fn cached_scan(custom: pg_sys::CustomScan, hold: *mut Hold, open: *mut pg_sys::List) -> Option<*mut pg_sys::Plan> {
    KIND.planned(custom, hold.cast(), open)
}

/// What `palloc0` raises jumps over this frame.
unsafe extern "C-unwind" fn create_state(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: only nodes made by `cached_scan`, and copies of these, have our methods. A run of zeroes is one that goes
    // step by step.
    unsafe {
        let state: *mut CachedScanState = KIND.new_state();
        (*state).hold = ScanKind::handed(scan).0.cast();
        state.cast()
    }
}

/// The server has asked for the rights: the hit is counted, unless EXPLAIN shows it.
///
/// Holds open the tables and indexes that the real plan would hold open, so that the server refuses what it would
/// refuse, for example TRUNCATE or ALTER TABLE in this session between two fetches. Errors jump over this frame.
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, _flags: i32) {
    // SAFETY: the node was made by `create_state` for a `cached_scan`; relations are locked as any scan locks them. The
    // references are given back by `end`, or by the resource owner of the portal.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        if !session::explaining() {
            edge(|| (*(*scan).hold).note_start(compat::query_id(&*(*estate).es_plannedstmt)));
        }
        for relation in oids(ScanKind::handed((*node).ss.ps.plan.cast()).1) {
            let open = direct!(pg_sys::relation_open(relation, pg_sys::AccessShareLock as _));
            (*scan).open = direct!(pg_sys::lappend((*scan).open, open.cast()));
        }
    }
}

/// The flags of a scan that tell in which order its rows may be read.
fn order_of(flags: c_int) -> c_int {
    flags & (pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD) as c_int
}

/// The next row: of the entry, or of the real plan if a guarded hit turns out not to hold. That plan's errors jump over
/// this frame, as do those of sending rows.
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`; its slot is a virtual one with one value per column of the entry.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        let slot = (*node).ss.ss_ScanTupleSlot;
        if let Some((deliver, argument)) = (*scan).delivery.take() {
            let rows = edge(|| deliver(argument));
            // Other libraries read here how many rows a run has had, and its node.
            (*(*node).ss.ps.state).es_processed += rows;
            if let Some(measured) = (*node).ss.ps.instrument.as_mut() {
                measured.tuplecount += rows as f64;
            }
            edge(|| pg_sys::ExecClearTuple(slot));
            return slot;
        }
        if (*(*scan).hold).guard().is_some()
            && let Some((plan, role)) = edge(|| rerun::needed(&mut *(*scan).hold))
        {
            let estate = (*node).ss.ps.state;
            (*scan).real = rerun::start(estate, plan, order_of((*estate).es_top_eflags), role);
        }
        if !(*scan).real.is_null() {
            let row = own_execution::next((*scan).real, (*(*node).ss.ps.state).es_direction);
            edge(|| {
                pg_sys::ExecClearTuple(slot);
                if !row.is_null() {
                    copy_row(row, slot);
                }
            });
            return slot;
        }
        if !(*scan).run.is_stepwise()
            && let Some((pin, rows, direct)) = (*(*scan).hold).reading()
            && direct_rows::deliver(&raw mut (*scan).run, pin, (rows, direct), &raw const (*node).ss.ps)
        {
            // No row was put there, unless rows of this run went to the executor before.
            if (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0 {
                edge(|| pg_sys::ExecClearTuple(slot));
            }
        } else {
            edge(|| (*scan).fill(slot));
        }
        slot
    }
}

impl CachedScanState {
    /// Puts the entry's next row into the scan's slot, or nothing at its end. By-reference values live until the next
    /// row, as a slot's must.
    ///
    /// # Safety
    /// The slot must be the scan's own.
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the hold lives as long as the query's descriptor; the slot is a virtual one with one value per column
        // of the entry.
        unsafe {
            pg_sys::ExecClearTuple(slot);
            let hold = &mut *self.hold;
            let (values, nulls) = slot_values(slot);
            let forward = (*self.custom.ss.ps.state).es_direction != pg_sys::ScanDirection::BackwardScanDirection;
            // As any scan, this one keeps what it has made for a row until the next one.
            let of_row = (*self.custom.ss.ps.ps_ExprContext).ecxt_per_tuple_memory;
            if !(*of_row).isReset {
                kept!(pg_sys::MemoryContextReset(of_row));
            }
            let caller = pg_sys::MemoryContextSwitchTo(of_row);
            let filled =
                hold.rows().map(|rows| if forward { rows.next(values, nulls) } else { rows.previous(values, nulls) });
            pg_sys::MemoryContextSwitchTo(caller);
            if filled.is_some_and(or_raise) {
                kept!(pg_sys::ExecStoreVirtualTuple(slot));
            }
        }
    }
}

/// A query under way that is answered from an entry.
#[derive(Clone, Copy)]
pub struct ServedQuery<'q> {
    query: QueryDesc<'q>,
    scan: NonNull<CachedScanState>,
}

/// The query as one that is answered from an entry, if it is. Reads two words and calls nothing.
pub fn served(query: QueryDesc<'_>) -> Option<ServedQuery<'_>> {
    let state = NonNull::new(query.plan_state())?;
    // SAFETY: the nodes of a query under way.
    unsafe { KIND.is_of(state.as_ptr()) }.then_some(ServedQuery { query, scan: state.cast() })
}

impl ServedQuery<'_> {
    /// Notes that up to `limit` rows (0: all) are going to be read.
    pub fn note_run(self, direction: pg_sys::ScanDirection::Type, limit: u64) {
        // SAFETY: `served` has found the scan. Nobody else uses it now.
        unsafe { (*self.scan.as_ptr()).run = Run::new(self.query, direction, limit) };
    }

    /// Has the next run deliver the entry by this function, which is called once with this argument.
    ///
    /// # Safety
    /// The function must accept the argument, whenever the query is run next.
    pub unsafe fn deliver_by(self, deliver: unsafe fn(*mut c_void) -> u64, argument: *mut c_void) {
        // SAFETY: as in `note_run`.
        unsafe { (*self.scan.as_ptr()).delivery = Some((deliver, argument)) };
    }

    /// The messages that an earlier export has left under this key. They stay where they are as long as the entry is
    /// held.
    pub fn exported(self, key: Hash128) -> Option<Vec<&'static [u8]>> {
        // SAFETY: as in `note_run`.
        let pin = unsafe { (*self.hold()).pin()? };
        let mut messages = Vec::new();
        let mut next = Some(rendition::find(pin, key)?);
        while let Some(place) = next {
            let (start, length, after) = rendition::block(pin, place);
            // SAFETY: a block of a ready rendition is constant, and stays while the entry is pinned; shared memory
            // outlives the process.
            messages.add(unsafe { std::slice::from_raw_parts(start, length) }).ok()?;
            next = after;
        }
        Some(messages)
    }

    /// Begins to keep the messages of an export under this key. False if they are not kept.
    pub fn begin_export(self, key: Hash128) -> bool {
        // SAFETY: as in `note_run`.
        unsafe { (*self.hold()).begin_rendition(key) }
    }

    /// Does something with the messages of the export that are kept.
    pub fn with_export<R>(self, code: impl FnOnce(&mut Option<Draft>) -> R) -> R {
        // SAFETY: as in `note_run`.
        code(unsafe { (*self.hold()).rendition() })
    }

    fn hold(self) -> *mut Hold {
        // SAFETY: `served` has found the scan, which lives as long as the query's descriptor.
        unsafe { (*self.scan.as_ptr()).hold }
    }
}

unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; the hold lives in the context of the query's descriptor, which is
    // still there.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        edge(|| (*(*scan).hold).release());
        for relation in nodes::<pg_sys::RelationData>((*scan).open) {
            direct!(pg_sys::relation_close(relation, pg_sys::NoLock as _));
        }
        if !(*scan).real.is_null() {
            own_execution::end((*scan).real);
        }
    }
}

/// Goes back to the start. What the real plan raises jumps over this frame.
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; the hold lives as long as the query's descriptor.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        edge(|| {
            if let Some(rows) = (*(*scan).hold).rows() {
                rows.rewind();
            }
        });
        if !(*scan).real.is_null() {
            rerun::rewind((*scan).real);
        }
    }
}

unsafe extern "C-unwind" fn show(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    explain: *mut pg_sys::ExplainState,
) {
    let body = || {
        // SAFETY: the node was made by `create_state`; EXPLAIN runs before ExecutorEnd, so the entry is still pinned.
        unsafe { explain::show(&*(*node.cast::<CachedScanState>()).hold, &mut *explain) };
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

// PostgreSQL sees only the head of the node.
const _: () = assert!(std::mem::offset_of!(CachedScanState, custom) == 0);
