//! One result on its way into the store: rows in, batches out, an entry at the end. An unpublished entry belongs to
//! this backend alone; the store's own locks guard its memory.

use std::rc::Rc;
use std::time::{Duration, Instant};

use arrow_cache_core::{Counter, Fill, NewEntry, NewKind, OutOfMemory, Pin, Reason, RoomyVec, StoreError};
use pgrx::pg_sys;

use crate::arrow::column::{self, Column};
use crate::arrow::encode::{BLOCK_ROWS, Encoder};
use crate::invalidation::own_writes;
use crate::lookup::admission::Watch;
use crate::lookup::{Guarantees, Miss, have_changed, staleness};
use crate::pg::backend;
use crate::pg::row::Row;
use crate::pg::tee::RowSink;
use crate::serve::ClientRows;
use crate::shmem::SharedStore;
use crate::verify::ReadBack;
use crate::{settings, shmem};

/// Largest row that is stored, in bytes, whatever `max_entry_size` is: a batch is made in the backend's own memory.
const LARGEST_ROW: usize = 256 * 1024 * 1024;
/// Largest row that is encoded for the client alone, in bytes. The receiver takes a larger one, and those behind it.
const LARGEST_PASSING_ROW: usize = 64 * 1024;

/// A result being stored.
pub struct ResultFill {
    columns: Rc<[Column]>,
    encoder: Encoder,
    /// How the rows go to the client.
    client_rows: ClientRows,
    batches: Batches,
    rows: u64,
    /// While it may turn out that it is better stored when it is asked again.
    watch: Option<Watch>,
    /// It is not stored. Its rows are encoded for the client alone.
    passes: bool,
    /// What it is compared with once it is stored.
    pub read_back: Option<ReadBack>,
}

/// The batches stored so far. Holds an unpublished entry from the first one on.
struct Batches {
    fill: Option<Fill>,
    bytes: usize,
    /// Largest result that is stored, in bytes, as set when it began.
    limit: usize,
    /// When it began.
    began: Instant,
    /// What is worth more stays: the client does not insist on storing.
    competes: bool,
}

impl RowSink for ResultFill {
    fn append(&mut self, row: Row<'_>) -> Result<(), Reason> {
        if self.encoder.is_full() && !self.passes {
            self.flush()?;
        }
        if self.passes {
            return self.pass(row);
        }
        self.encode(row, self.batches.room().min(LARGEST_ROW))?;
        self.rows += 1;
        if let Some(read_back) = &mut self.read_back {
            read_back.add(row)?;
        }
        let (rows, bytes) = (self.encoder.pending_rows(), self.encoder.pending_bytes());
        if self.watch.as_ref().is_some_and(|watch| watch.is_due(rows, bytes)) {
            self.judge(self.columns.len());
        }
        Ok(())
    }

    fn begin_run(&mut self, receiver: *mut pg_sys::DestReceiver) {
        self.client_rows.begin_run(receiver);
    }

    fn end_run(&mut self) {
        self.client_rows.end_run();
    }

    fn sends(&mut self) -> bool {
        self.client_rows.are_sent(&self.columns)
    }

    unsafe fn send(this: *mut Self, row: Row<'_>) -> bool {
        // SAFETY: the caller's promises; the encoder has this row as its last, and a batch is taken before the next
        // one.
        unsafe { ClientRows::send(&raw mut (*this).client_rows, row, || (*this).encoder.last_row(row)) }
    }
}

impl ResultFill {
    /// Begins to store the answer of a miss.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn new(miss: &Miss) -> Result<Self, OutOfMemory> {
        Ok(Self {
            columns: Rc::clone(&miss.columns),
            encoder: Encoder::new(&miss.columns)?,
            client_rows: ClientRows::default(),
            batches: Batches {
                fill: None,
                bytes: 0,
                limit: settings::max_entry_bytes(),
                began: Instant::now(),
                competes: !miss.terms.insisted,
            },
            rows: 0,
            watch: Watch::over(miss),
            passes: false,
            read_back: ReadBack::draw(&miss.columns),
        })
    }

    /// Returns true if it has been let go. Its rows may still pass.
    pub fn is_let_go(&self) -> bool {
        self.passes
    }

    /// Encodes a row that is not stored, in the place of those before it.
    fn pass(&mut self, row: Row<'_>) -> Result<(), Reason> {
        if !self.client_rows.need_no_functions() {
            return Err(Reason::QuickRows);
        }
        if self.encoder.pending_rows().is_multiple_of(BLOCK_ROWS) {
            self.encoder.discard();
        }
        // What the receiver takes instead is not why the result is not stored.
        self.encode(row, LARGEST_PASSING_ROW).map_err(|_| Reason::QuickRows)
    }

    /// Encodes a row of at most `limit` bytes.
    #[inline]
    fn encode(&mut self, row: Row<'_>, limit: usize) -> Result<(), Reason> {
        self.encoder.append(row, limit)?;
        self.encoder.unfit().map_or(Ok(()), Err)
    }

    /// Lets the result go if it is not worth storing before it is asked again. Not before it has run for
    /// `min_execution_time`. So many values of each row are encoded for storing.
    #[cold]
    fn judge(&mut self, values_per_row: usize) {
        if self.watch.is_none() {
            return;
        }
        let elapsed = self.batches.began.elapsed();
        if elapsed < settings::min_execution_time() {
            // It may end as one that is too quick, which says more.
            return;
        }
        let values = self.rows.saturating_mul(values_per_row as u64);
        let bytes = (self.batches.bytes + self.encoder.pending_bytes()) as u64;
        if self.watch.as_mut().is_some_and(|watch| watch.lets_go(values, bytes, elapsed)) {
            self.batches.free();
            self.watch = None;
            self.passes = true;
        }
    }

    /// Appends a batch that was encoded elsewhere.
    ///
    /// # Errors
    /// Why it was not stored. What was stored before is still there.
    pub fn add_chunk(&mut self, chunk: &[u8], rows: usize) -> Result<(), Reason> {
        // Exports deliver larger rows than are stored. Only such a row makes a batch that large.
        if chunk.len() > LARGEST_ROW {
            return Err(Reason::TooLarge);
        }
        self.rows += rows as u64;
        self.batches.add(chunk.len(), |target| target.copy_from_slice(chunk))?;
        // The export has encoded them for itself.
        self.judge(0);
        if self.passes { Err(Reason::QuickRows) } else { Ok(()) }
    }

    /// Moves the rows collected so far into the store, which have become a full batch.
    fn flush(&mut self) -> Result<(), Reason> {
        self.flush_rest()?;
        self.judge(self.columns.len());
        Ok(())
    }

    /// Moves the rows collected so far into the store.
    fn flush_rest(&mut self) -> Result<(), Reason> {
        let batch = self.encoder.take_batch()?;
        self.batches.add(batch.len(), |chunk| batch.write_to(chunk))
    }

    /// Publishes the result, if nothing that it depends on has changed since it began.
    ///
    /// # Errors
    /// Why it was not stored; nothing of it is left.
    pub fn publish(mut self, miss: &Miss, elapsed: Duration) -> Result<Pin, Reason> {
        let published = self.try_publish(miss, elapsed);
        if published.is_err() {
            self.abandon();
        }
        published
    }

    fn try_publish(&mut self, miss: &Miss, elapsed: Duration) -> Result<Pin, Reason> {
        if self.encoder.pending_rows() > 0 {
            self.flush_rest()?;
        }
        let store = shmem::store().ok_or(Reason::NoRoom)?;
        check_session(miss)?;
        if !miss.guarantees.probed.is_empty() {
            // It is not known on which rows it rests.
            return Err(Reason::IncompleteRead);
        }
        let Guarantees { dependencies, started, known_good, catalogs, stale_bound, .. } = &miss.guarantees;
        for changed in have_changed(&store, dependencies) {
            if stale_bound.is_none() || changed.relation == 0 {
                return Err(Reason::ChangedMeanwhile);
            }
            staleness::check_stored_late(&store, miss.key, *known_good, *catalogs)?;
        }
        let (now, database) = (backend::now(), backend::database());
        let mut fill = match self.batches.fill.take() {
            Some(fill) => fill,
            None => self.batches.begin(&store, now)?,
        };
        fill.note_time(micros(elapsed));
        let entry = NewEntry {
            kind: match miss.statement {
                Some(_) => NewKind::Answer,
                // One statement may need hundreds of fragments, which are not to evict the answers.
                None => NewKind::Fragment { most_bytes: settings::memory_bytes() as u64 / 2 },
            },
            database,
            role: started.role.to_u32(),
            text: &miss.text,
            dependencies,
            descriptor: &[column::describe(&miss.columns), miss.gaps.clone()].concat(),
            needs_plan: miss.statement.as_ref().is_none_or(|missed| missed.reads_foreign),
            plan_cost: miss.plan_cost,
            rows: self.rows,
            columns: miss.columns.len() as u32,
            execution_micros: micros(elapsed),
            created_at: now,
            known_good: *known_good,
            catalogs: *catalogs,
            keeps_outdated: stale_bound.is_some(),
            expires_at: miss.terms.ttl_micros().map_or(i64::MAX, |ttl| now.saturating_add(ttl)),
        };
        let pin = store.publish(fill, miss.key, entry, now).map_err(reason)?;
        let counter = if miss.statement.is_none() { Counter::FragmentsStored } else { Counter::Stores };
        store.counters().add(store.stripe(), counter, 1);
        Ok(pin)
    }

    /// Gives the result up and frees what was stored of it at once.
    pub fn abandon(mut self) {
        self.batches.free();
    }
}

impl Drop for Batches {
    /// An unfinished result is dropped by an error, or in the middle of error recovery: atomics only. A later store
    /// operation frees what was stored of it.
    fn drop(&mut self) {
        if let (Some(fill), Some(store)) = (&self.fill, shmem::store()) {
            store.abandon_unlocked(fill);
        }
    }
}

/// Returns true if this session may still store the answer.
///
/// # Errors
/// Why it may not.
fn check_session(miss: &Miss) -> Result<(), Reason> {
    // A cursor may be read to its end long after it began.
    if !settings::enabled() {
        return Err(Reason::Disabled);
    }
    if !settings::populate() {
        return Err(Reason::PopulateOff);
    }
    if own_writes::has_transaction_id() {
        // Foreign tables are read when their rows are asked for: the rows may show later changes of this transaction.
        let dependencies = &miss.guarantees.dependencies;
        let relations = dependencies.iter().map(|dependency| dependency.relation).filter(|relation| *relation != 0);
        let mut listed = Vec::with_room(dependencies.len()).map_err(|_| Reason::OutOfMemory)?;
        listed.extend(relations);
        // What was observed during the run comes behind the relations of the plan.
        listed.sort_unstable();
        own_writes::check_own_writes(&listed)?;
    }
    Ok(())
}

impl Batches {
    /// Frees what was stored so far.
    fn free(&mut self) {
        if let (Some(fill), Some(store)) = (self.fill.take(), shmem::store()) {
            store.abandon(fill);
        }
    }

    /// Bytes that may still be added.
    fn room(&self) -> usize {
        self.limit - self.bytes
    }

    /// Takes an entry to fill.
    fn begin(&self, store: &SharedStore, now: i64) -> Result<Fill, Reason> {
        let mut fill = store.reserve(now).map_err(reason)?;
        if self.competes {
            fill.compete();
        }
        Ok(fill)
    }

    /// Adds one batch of `length` bytes to the stored result.
    fn add(&mut self, length: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Reason> {
        if length > self.room() {
            return Err(Reason::TooLarge);
        }
        let store = shmem::store().ok_or(Reason::NoRoom)?;
        let now = backend::now();
        if self.fill.is_none() {
            self.fill = Some(self.begin(&store, now)?);
        }
        let fill = self.fill.as_mut().ok_or(Reason::NoRoom)?;
        fill.note_time(micros(self.began.elapsed()));
        store.append(fill, length, now).map(write).map_err(reason)?;
        self.bytes += length;
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn reason(error: StoreError) -> Reason {
    match error {
        StoreError::NoRoom => Reason::NoRoom,
        StoreError::Outweighed => Reason::Outweighed,
    }
}
