//! A stored answer and the rows of an execution, compared. Belongs to one execution; nothing is shared.

use std::rc::Rc;

use arrow_cache_core::{Counter, Digest, Pin, Reason};

use super::conditions::Conditions;
use super::row_digest::RowDigest;
use crate::arrow::column::Column;
use crate::error;
use crate::pg::compat;
use crate::pg::query_desc::QueryDesc;
use crate::pg::row::Row;
use crate::pg::tee::RowSink;
use crate::serve::{Hit, Hold};
use crate::shmem::{self, SharedStore};

/// A stored answer that an execution is to be compared with.
pub struct Sample {
    /// The pinned entry. Lives as long as the query's descriptor.
    hold: *mut Hold,
    columns: Rc<[Column]>,
    conditions: Conditions,
    /// What other statistics call the query; 0 while nobody computes ids.
    query_id: i64,
}

/// Keeps the stored answer of a query that is about to be started, for the comparison.
///
/// # Errors
/// There is no memory for that, or the answer cannot be read: then the query runs unverified.
pub fn sample(query: QueryDesc<'_>, hit: Hit, conditions: Conditions) -> Result<Box<Sample>, Reason> {
    let columns = hit.columns.clone();
    // SAFETY: a hit has the columns of its entry.
    let hold = unsafe { Hold::new(query, hit.pin, hit.columns)? };
    Ok(Box::new(Sample { hold, columns, conditions, query_id: compat::query_id(&query.plan()) }))
}

/// A comparison under way. Takes the executed rows one by one, perhaps with pauses.
pub struct Comparison {
    sample: Box<Sample>,
    executed: RowDigest,
}

impl RowSink for Comparison {
    fn append(&mut self, row: Row<'_>) -> Result<(), Reason> {
        // SAFETY: a row has one value per column; `begin` has compared the columns with those of the digest.
        Ok(unsafe { self.executed.add(row.values(), row.nulls()) }?)
    }
}

impl Comparison {
    /// Begins to compare the rows of a query that has just been started, which counts as a hit. `None` if they have
    /// other columns than the answer: another library may have changed the plan.
    pub fn begin(sample: Box<Sample>, columns: &[Column]) -> Option<Self> {
        // SAFETY: the hold lives as long as the descriptor of the query.
        unsafe { (*sample.hold).note_start(sample.query_id) };
        if *sample.columns != *columns {
            return None;
        }
        let executed = RowDigest::new(columns);
        Some(Self { sample, executed })
    }

    /// Returns true if the rows that come now may be compared.
    pub fn may_go_on(&self) -> bool {
        self.sample.conditions.are_met()
    }

    /// Compares, once all rows have come, and lets the entry go. To be called before the query is ended.
    pub fn finish(self) {
        let Self { sample, executed } = self;
        let executed = executed.finish();
        // SAFETY: the hold lies in the memory of the query, which the caller says is there; nobody else uses the hold
        // of a query that is executed.
        let hold = unsafe { &mut *sample.hold };
        let Some(store) = shmem::store() else { return };
        let Some(stored) = sample.digest_of_stored(&store, hold) else { return hold.release() };
        store.counters().add(store.stripe(), Counter::VerifyChecks, 1);
        drop_different(&store, hold, sample.query_id, (stored, executed));
        hold.release();
    }
}

/// Drops a held entry if its rows and those that were executed are not the same, and tells that.
pub(super) fn drop_different(
    store: &SharedStore,
    hold: &mut Hold,
    query_id: i64,
    (stored, executed): (Digest, Digest),
) {
    if stored == executed {
        return;
    }
    store.counters().add(store.stripe(), Counter::VerifyMismatches, 1);
    if let Some(pin) = hold.pin() {
        store.retire(pin);
    }
    hold.release();
    error::warn_of_difference(query_id, stored.rows(), executed.rows());
}

impl Sample {
    /// The digest of the stored rows; `None` if they cannot be compared, or there is no memory for that.
    fn digest_of_stored(&self, store: &SharedStore, hold: &mut Hold) -> Option<Digest> {
        let pin = hold.pin()?;
        if !self.conditions.are_met() || !definitions_stand(store, pin) {
            return None;
        }
        match hold.rows() {
            Some(rows) => RowDigest::of_stored(rows).ok(),
            None => Some(Digest::default()),
        }
    }
}

/// Returns true if the definitions that no relation stands for are still those of the entry. The execution shows them
/// as they are when its rows are computed. Changed rows are no reason to compare nothing: both sides go by the same
/// snapshot.
fn definitions_stand(store: &SharedStore, pin: &Pin) -> bool {
    let versions = store.versions();
    let view = store.view(pin);
    let mut general = view.dependencies().iter().filter(|dependency| dependency.relation == 0);
    general.all(|dependency| versions.version(dependency.slot) == dependency.version)
}
