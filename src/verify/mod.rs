//! `verify_sample_rate`: a share of the hits is executed as well, under the same snapshot, and compared with what the cache holds.
//!
//! A chosen hit is left to its own plan, and the client is sent the rows that this gives; for everything else it is a hit. The rows are
//! copied into a digest on their way, and once the last one was read the stored rows go through another digest (`rows`). If the two differ,
//! a WARNING with the query's id is logged, the difference counted, and the entry dropped.
//!
//! Compared are the values of each row and how often it occurs. The order of the rows is compared only as far as the query fixes it
//! (`query::ordering`). Not compared, and not counted as checks, are
//!
//! * queries whose answer SQL leaves open (`query::repeatability`);
//! * results that the client did not read to their end, or read under other settings or definitions than they started with;
//! * scrollable cursors, whose rows may be read in any order; they are served from the cache;
//! * EXPLAIN, which shows what a hit does.
//!
//! A hit of `arrow_cache.query()` is checked in the same way: what the execution gave is encoded, and streamed to the client.
//!
//! The entry is pinned from the decision on by a hold in the query's own memory, so that any way out lets it go. Memory is constant.

mod rows;

use std::cell::RefCell;
use std::ffi::CString;

use arrow_cache_core::{Counter, Digest, Pin, Reason};
use pgrx::{PgMemoryContexts, pg_sys};

use crate::arrow::column::{self, Column, Records};
use crate::error;
use crate::pg::backend_local::Local;
use crate::pg::tee::{RowSink, Tee};
use crate::query::eligibility::QueryTraits;
use crate::query::environment;
use crate::query::hashes::EnvironmentHash;
use crate::query::ordering::OrderedPrefix;
use crate::serve::{self, Hit, Hold};
use crate::shmem::SharedStore;
use crate::{session, settings, shmem};
use rows::RowDigest;

/// What a comparison goes by.
pub struct Terms {
    ordered_by: OrderedPrefix,
    /// The settings that the query was started under.
    environment: EnvironmentHash,
    /// The custom settings among them.
    settings: Vec<CString>,
    /// How often the session had changed a definition by then.
    definition_changes: u64,
}

impl Terms {
    /// Are the settings those that the query was started under, and has the session left definitions alone?
    fn hold(&self) -> bool {
        session::definition_changes() == self.definition_changes
            && shmem::seed().is_some_and(|seed| environment::hash(seed, &self.settings) == Ok(self.environment))
    }
}

/// A stored answer that an execution is to be compared with.
pub struct Sample {
    hold: *mut Hold,
    columns: Vec<Column>,
    terms: Terms,
    /// What other statistics call the query; 0 while nobody computes ids.
    query_id: i64,
}

/// A comparison that an export feeds row by row, perhaps with pauses.
pub struct Comparison {
    sample: Box<Sample>,
    digest: RowDigest,
}

impl Comparison {
    /// Begins to compare rows with these columns; `None` if they are not those of the answer.
    pub fn begin(sample: Box<Sample>, columns: &[Column]) -> Option<Self> {
        let digest = sample.digest();
        sample.has_columns(columns).then_some(Self { sample, digest })
    }

    /// May the rows that come now be compared?
    pub fn holds(&self) -> bool {
        self.sample.terms.hold()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Why no further rows are wanted.
    ///
    /// # Safety
    /// `values` and `nulls` must hold one value per column.
    pub unsafe fn add(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Result<(), Reason> {
        // SAFETY: as the caller promises.
        unsafe { self.digest.append(values, nulls) }
    }

    /// All rows have come: compares.
    ///
    /// # Safety
    /// The query must still be there.
    pub unsafe fn finish(self) {
        // SAFETY: as the caller promises.
        unsafe { self.sample.compare(&self.digest.finish()) };
    }
}

/// A query that is executed for comparison. Lives in the query's memory, under its own address.
struct Check {
    query_desc: usize,
    sample: Box<Sample>,
    tee: Tee<RowDigest>,
    /// The comparison was made or given up.
    over: bool,
}

/// Checks by the address of their query descriptor.
static RUNNING: Local<RefCell<Vec<(usize, *mut Check)>>> = Local::new(RefCell::new(Vec::new()));

/// The terms of a comparison, if a hit is to be executed as well: by chance, at the rate that is set.
pub fn choose(traits: &QueryTraits, environment: EnvironmentHash, settings: &[CString]) -> Option<Terms> {
    let rate = settings::verify_sample_rate();
    let ordered_by = traits.repeatable.filter(|_| rate > 0.0)?;
    // SAFETY: the backend's own generator, which random() does not use; it gives numbers from 0 to below 1.
    let drawn = unsafe { pg_sys::pg_prng_double(&raw mut pg_sys::pg_global_prng_state) };
    (drawn < rate).then(|| Terms {
        ordered_by,
        environment,
        settings: settings.to_vec(),
        definition_changes: session::definition_changes(),
    })
}

/// Are the definitions that no relation stands for still those of the entry? The execution shows them as they are when its
/// rows are computed. A change of rows, on the other hand, is no excuse: the snapshot settles what of it may be seen.
fn definitions_stand(store: &SharedStore, pin: &Pin) -> bool {
    let versions = store.versions();
    let view = store.view(pin);
    let mut general = view.dependencies().iter().filter(|dependency| dependency.relation == 0);
    general.all(|dependency| versions.slot(dependency.slot).version() == dependency.version)
}

/// Keeps the stored answer for the comparison. `None` when there is no memory for that: then the query runs unverified.
///
/// # Safety
/// `query_desc` must not have been started; the hit must answer it.
pub unsafe fn sample(query_desc: *mut pg_sys::QueryDesc, hit: Hit, terms: Terms) -> Option<Box<Sample>> {
    // SAFETY: as the caller promises.
    unsafe {
        let hold = serve::hold(query_desc, hit.pin, hit.columns.clone())?;
        Some(Box::new(Sample {
            hold,
            columns: hit.columns,
            terms,
            query_id: (*(*query_desc).plannedstmt).queryId as i64,
        }))
    }
}

impl Sample {
    /// Are these the columns of the answer? Whatever happened to the plan on its way, rows of another shape are not ours.
    pub fn has_columns(&self, columns: &[Column]) -> bool {
        self.columns == columns
    }

    /// A digest for rows of this answer.
    fn digest(&self) -> RowDigest {
        RowDigest::new(&self.columns, self.terms.ordered_by)
    }

    /// Compares the stored rows with those that were executed, which are complete.
    ///
    /// # Safety
    /// The query must still be there.
    unsafe fn compare(&self, executed: &Digest) {
        // SAFETY: the hold lives as long as the query's descriptor.
        let hold = unsafe { &mut *self.hold };
        // SAFETY: the pin is used while the hold has it.
        let (Some(store), Some(pin)) = (shmem::store(), unsafe { hold.pin() }) else { return };
        if !self.terms.hold() || !definitions_stand(&store, &pin) {
            return hold.release();
        }
        let mut digest = self.digest();
        if let Some(rows) = hold.rows() {
            // SAFETY: the rows are those of the entry, whose columns these are.
            if unsafe { digest.add_all(rows) }.is_err() {
                return hold.release();
            }
        }
        let stored = digest.finish();
        let difference = stored.difference(executed);
        store.counters().add(store.stripe(), Counter::VerifyChecks, 1);
        if difference.is_some() {
            store.counters().add(store.stripe(), Counter::VerifyMismatches, 1);
            store.retire(&pin);
        }
        hold.release();
        if let Some(difference) = difference {
            let (stored, executed) = (stored.rows(), executed.rows());
            error::warn_of_difference(self.query_id, difference, stored, executed);
        }
    }
}

/// Begins to compare a query that has just been started.
///
/// # Safety
/// `query_desc` must be the started query that the sample was taken for.
pub unsafe fn begin(query_desc: *mut pg_sys::QueryDesc, sample: Box<Sample>) {
    // SAFETY: as the caller promises. The check goes with the query's context, at its end or after an error.
    unsafe {
        let shape = column::columns_of((*query_desc).tupDesc, Records::Refused);
        if !shape.is_ok_and(|columns| sample.has_columns(&columns)) {
            return;
        }
        let tee = Tee::new(query_desc, sample.digest());
        let check = Check { query_desc: query_desc as usize, sample, tee, over: false };
        let context = (*(*query_desc).estate).es_query_cxt;
        let check = PgMemoryContexts::For(context).leak_and_drop_on_delete(check);
        RUNNING.with_borrow_mut(|running| running.push((query_desc as usize, check)));
    }
}

impl Drop for Check {
    /// In the middle of error recovery perhaps: the freeing of Rust memory only. The entry is let go by its hold.
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.retain(|(address, _)| *address != self.query_desc));
    }
}

/// Is no query executed for comparison?
pub fn idle() -> bool {
    RUNNING.with_borrow(Vec::is_empty)
}

/// The check of a query, unless it is over.
fn running(query_desc: *const pg_sys::QueryDesc) -> Option<*mut Check> {
    let find = |running: &Vec<(usize, *mut Check)>| {
        running.iter().find(|(address, _)| *address == query_desc as usize).map(|(_, check)| *check)
    };
    // SAFETY: a check is in the list as long as it lives.
    RUNNING.with_borrow(find).filter(|check| unsafe { !(**check).over })
}

/// Prepares a run of a query, if it is compared. Returns the receiver to put back afterwards; null when it was not replaced.
///
/// # Safety
/// `query_desc` must be the query of an ExecutorRun hook.
pub unsafe fn before_run(query_desc: *mut pg_sys::QueryDesc, forward: bool) -> *mut pg_sys::DestReceiver {
    let Some(check) = running(query_desc) else { return std::ptr::null_mut() };
    // SAFETY: as the caller promises; the check stays in its place.
    unsafe {
        let check = &mut *check;
        if !forward || !check.sample.terms.hold() {
            check.over = true;
            return std::ptr::null_mut();
        }
        check.tee.install(query_desc)
    }
}

/// A run for up to `count` rows (0: all) has returned without an error.
///
/// # Safety
/// As `before_run`.
pub unsafe fn after_run(query_desc: *mut pg_sys::QueryDesc, count: u64) {
    let Some(check) = running(query_desc) else { return };
    // SAFETY: as the caller promises; the check stays in its place.
    unsafe {
        let check = &mut *check;
        if check.tee.failure.is_some() {
            check.over = true;
        } else if count == 0 || (*(*query_desc).estate).es_processed < count {
            check.over = true;
            check.sample.compare(&check.tee.sink.finish());
        }
    }
}
