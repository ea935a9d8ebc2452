//! The keys by which a run reads rows of an index. While a run is captured, the nodes are watched that evaluate keys of
//! their own. The answer then rests on the values that these keys have had. State of this backend; no lock.
//!
//! A node evaluates its keys when it is scanned anew. When it is asked for a row, it reads rows with these keys alone.
//! So a key is noted behind each of these calls. One that finds no row is noted, too: a row with it may come.

use std::cell::RefCell;
use std::ffi::c_void;

use arrow_cache_core::{Reason, RoomyVec};
use pgrx::pg_sys::{self, NodeTag};

use crate::lookup::{self, Miss, Probed};
use crate::pg::backend_local::Local;
use crate::pg::compat::tree::walkers::planstate_tree_walker;
use crate::pg::error_passing::edge;
use crate::pg::memory_context::try_leak;
use crate::pg::next_row::{self, NextRow};
use crate::pg::query_desc::QueryDesc;
use crate::query::asked_values::{Place, Probe};
use crate::shmem;

/// Most different values that are noted of a key, and of all keys of an answer.
const MOST_VALUES: usize = 64;
/// Most nodes that are watched for one answer.
const MOST_NODES: usize = 16;

/// A node whose key is noted.
struct Watched {
    /// The state of its query.
    query: *const pg_sys::EState,
    node: *mut pg_sys::PlanState,
    /// What the node does by itself.
    next_row: NextRow,
    /// Where the node has its keys, if the value is one of them.
    keys: *const pg_sys::ScanKey,
    probe: Probe,
    /// The hashes of the values, each once; `None` if there was one that cannot be noted.
    hashes: Option<Vec<u64>>,
}

/// A node stays on the list until the memory of its query goes, since the server calls it by what stands here.
static WATCHED: Local<RefCell<Vec<Watched>>> = Local::new(RefCell::new(Vec::new()));

/// Lies in the memory of a query, and takes its nodes off the list when that goes.
struct Registration(*const pg_sys::EState);

impl Drop for Registration {
    /// This may run in the middle of error recovery: it frees Rust memory, and does nothing else.
    fn drop(&mut self) {
        WATCHED.with_borrow_mut(|all| {
            all.retain(|watched| !std::ptr::eq(watched.query, self.0));
            all.shrink_to(MOST_NODES);
        });
    }
}

/// Begins to note the keys of a query that has just been started, and has not been asked for a row.
pub fn begin(query: QueryDesc<'_>, probed: &[Probed]) {
    let mut probes = [None; MOST_NODES];
    let all = || probed.iter().flat_map(|relation| &relation.probes);
    if all().count() > MOST_NODES || probed.is_empty() || query.plan_state().is_null() {
        return;
    }
    probes.iter_mut().zip(all()).for_each(|(place, probe)| *place = Some(*probe));
    let (Some(memory), Some(state)) = (query.memory(), query.estate()) else { return };
    // SAFETY: the memory of a query that was started.
    if unsafe { try_leak(memory, Registration(state.as_ptr())) }.is_err() {
        return;
    }
    // SAFETY: the state of a query that was started, and a context that outlives the walk. No frame of it has a
    // destructor pending.
    unsafe {
        watch(query.plan_state(), &probes);
        let context = (&raw mut probes).cast();
        kept!(planstate_tree_walker(query.plan_state(), Some(visit), context));
    }
}

/// Watches a node if it is one of those wanted, and goes on to the nodes below it.
///
/// # Safety
/// `state` must be a node of a query that was started, `wanted` the keys. An error jumps over this frame.
unsafe extern "C-unwind" fn visit(state: *mut pg_sys::PlanState, wanted: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        watch(state, &*wanted.cast::<[Option<Probe>; MOST_NODES]>());
        direct!(planstate_tree_walker(state, Some(visit), wanted))
    }
}

/// Watches a node if it is one of those wanted.
///
/// # Safety
/// `node` must be a node of a query that was started.
unsafe fn watch(node: *mut pg_sys::PlanState, wanted: &[Option<Probe>; MOST_NODES]) {
    // SAFETY: the caller's promise: it has a plan, and its query a state.
    unsafe {
        let number = (*(*node).plan).plan_node_id;
        let Some(probe) = wanted.iter().flatten().find(|probe| probe.node == number) else { return };
        let keys = match probe.at {
            Place::Key(place) => keys_of(node, place),
            Place::Row(_) => Some(std::ptr::null()),
        };
        let Some(keys) = keys else { return };
        let Some(next_row) = next_row::own_routine(node, next_noted_row) else { return };
        let hashes = Some(Vec::new());
        let watched = Watched { query: (*node).state, node, next_row, keys, probe: *probe, hashes };
        // Without memory for that, the keys are not known.
        if WATCHED.with_borrow_mut(|all| all.add(watched)).is_ok() {
            next_row::put(node, next_noted_row);
        }
    }
}

/// Where a node has the keys by which it scans a B-tree or a hash index, if there are more than `place`.
///
/// # Safety
/// As `watch`.
unsafe fn keys_of(node: *mut pg_sys::PlanState, place: usize) -> Option<*const pg_sys::ScanKey> {
    // SAFETY: the tag of a node tells its type. The index is open, and has its row of pg_class. It is null for EXPLAIN.
    unsafe {
        let (keys, count, index) = match (*node).type_ {
            NodeTag::T_IndexScanState => {
                let scan = node.cast::<pg_sys::IndexScanState>();
                (&raw const (*scan).iss_ScanKeys, (*scan).iss_NumScanKeys, (*scan).iss_RelationDesc)
            }
            NodeTag::T_IndexOnlyScanState => {
                let scan = node.cast::<pg_sys::IndexOnlyScanState>();
                (&raw const (*scan).ioss_ScanKeys, (*scan).ioss_NumScanKeys, (*scan).ioss_RelationDesc)
            }
            NodeTag::T_BitmapHeapScanState if (*(*node).lefttree).type_ == NodeTag::T_BitmapIndexScanState => {
                let scan = (*node).lefttree.cast::<pg_sys::BitmapIndexScanState>();
                (&raw const (*scan).biss_ScanKeys, (*scan).biss_NumScanKeys, (*scan).biss_RelationDesc)
            }
            _ => return None,
        };
        let method = (*index.as_ref()?.rd_rel).relam;
        let is_exact = method == pg_sys::BTREE_AM_OID || method == pg_sys::HASH_AM_OID;
        (is_exact && place < count as usize).then_some(keys)
    }
}

/// Gives the next row of a watched node, and notes the key by which it was found.
///
/// # Safety
/// Called by the server, for a node that `watch` has been at.
unsafe extern "C-unwind" fn next_noted_row(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the server calls this while the query runs, and the node is on the list until the memory of its query
    // goes. What is kept over the call is plain data.
    unsafe {
        let (next_row, at) = edge(|| next_row_of(node)).unwrap_unchecked();
        let slot = direct!(next_row(node));
        edge(|| {
            let is_row = !slot.is_null() && u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY == 0;
            match at {
                Place::Key(_) => note(node, None),
                Place::Row(place) if is_row => {
                    if usize::from((*slot).tts_nvalid.cast_unsigned()) <= place {
                        kept!(pg_sys::slot_getsomeattrs_int(slot, place as i32 + 1));
                    }
                    note(node, Some((!*(*slot).tts_isnull.add(place)).then(|| *(*slot).tts_values.add(place))));
                }
                Place::Row(_) => {}
            }
        });
        slot
    }
}

fn next_row_of(node: *mut pg_sys::PlanState) -> Option<(NextRow, Place)> {
    WATCHED.with_borrow(|all| {
        all.iter().rfind(|watched| watched.node == node).map(|watched| (watched.next_row, watched.probe.at))
    })
}

/// Notes the key that a node has now, or a value `of_row`. When no more can be noted, the node does again what it does
/// by itself.
///
/// # Safety
/// The query of the node must be under way, and the node must just have given its next row.
unsafe fn note(node: *mut pg_sys::PlanState, of_row: Option<Option<pg_sys::Datum>>) {
    WATCHED.with_borrow_mut(|all| {
        let Some(watched) = all.iter_mut().rfind(|watched| watched.node == node) else { return };
        // SAFETY: the caller's promise. The value of a key stays in its place while its rows are read.
        unsafe {
            let hash = match (of_row, watched.probe.at) {
                (Some(value), _) => value.and_then(|value| watched.probe.form.hash(value)),
                (None, Place::Key(place)) => {
                    let key = (*watched.keys).add(place);
                    // No row is equal to NULL.
                    if (*key).sk_flags & pg_sys::SK_ISNULL as i32 != 0 {
                        return;
                    }
                    watched.probe.form.hash((*key).sk_argument)
                }
                (None, Place::Row(_)) => return,
            };
            if watched.add(hash).is_none() {
                watched.hashes = None;
                next_row::take_back(node, watched.next_row);
            }
        }
    });
}

impl Watched {
    /// Adds a hash; `None` if it is none, or there are too many.
    fn add(&mut self, hash: Option<u64>) -> Option<()> {
        let (hash, hashes) = (hash?, self.hashes.as_mut()?);
        if hashes.last() == Some(&hash) || hashes.contains(&hash) {
            return Some(());
        }
        (hashes.len() < MOST_VALUES).then_some(())?;
        hashes.add(hash).ok()
    }
}

/// Has an answer rest on the keys of its run, whose last row has been read.
///
/// # Errors
/// Why it can rest neither on these nor on the relation.
pub fn rest_on_them(miss: &mut Miss, query: QueryDesc<'_>) -> Result<(), Reason> {
    let probed = std::mem::take(&mut miss.guarantees.probed);
    if probed.is_empty() {
        return Ok(());
    }
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    let snapshot = lookup::snapshot(&store, query.snapshot_data())?;
    let mut left = MOST_VALUES;
    for relation in probed {
        let values = values_of(query, &relation.probes).filter(|values| values.len() <= left);
        left -= values.as_ref().map_or(0, Vec::len);
        miss.guarantees.dependencies.extend(relation.dependencies(&store, values.as_deref(), &snapshot)?);
    }
    Ok(())
}

/// The values that keys have had in a run, each with its column; `None` if one of them was not watched to the end.
fn values_of(query: QueryDesc<'_>, probes: &[Probe]) -> Option<Vec<(i16, u64)>> {
    let state = query.estate()?.as_ptr().cast_const();
    WATCHED.with_borrow(|all| {
        let mut values = Vec::new();
        for probe in probes {
            let mut nodes = all.iter().filter(|watched| watched.query == state && watched.probe == *probe);
            // Nodes with one number cannot be told apart.
            let node = nodes.next().filter(|_| nodes.next().is_none())?;
            values.extend(node.hashes.as_ref()?.iter().map(|hash| probe.value(*hash)));
        }
        values.sort_unstable();
        values.dedup();
        Some(values)
    })
}
