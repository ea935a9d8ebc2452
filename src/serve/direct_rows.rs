//! The rows of a hit directly to the client: from the stored columns into DataRow messages, without a slot, a receiver
//! or a call of the server per value.
//!
//! The scan does it when the first row of a run is asked of it: it sends all rows of the run, adds them to the
//! executor's count, and answers that there are no more. Hooks of other libraries, the receiver's start and end, and
//! the portal see what they always see. A row that has a value that the core does not write is handed to the executor,
//! after the rows before it were sent. The scan goes on behind that row.
//!
//! COPY wants messages of its own, with the same bytes in binary, or a line. Its receiver sends a header with the first
//! row, so that row is handed to the executor. It is told of the others (`copied_rows`).
//!
//! The number of rows wanted is what our hook was asked for. A library behind ours is taken to pass it on, as those
//! that count and time do.
//!
//! State lives in the hold and in this backend; nothing is locked. Everything that may raise runs outside of `edge`, in
//! frames without destructors, so that its errors reach the client as they are.

use arrow_cache_core::formats::wire::Outcome;
use arrow_cache_core::{BlockPlace, OutOfMemory, Pin};
use pgrx::pg_sys;

use super::client_formats::ClientFormats;
use super::column_formats::OutputSettings;
use super::copied_rows::CopiedRows;
use super::output_functions::OutputFunctions;
use super::rendition::{self, Draft};
use super::row_messages::RowMessages;
use super::rows::Rows;
use crate::error::or_raise;
use crate::pg::client;
use crate::pg::error_passing::{edge, with_cleanup};
use crate::pg::query_desc::QueryDesc;
use crate::shmem;

/// One run of the executor, as far as the scan has to know.
#[derive(Clone, Copy)]
pub struct Run {
    state: State,
    /// Where the rows go is read here, since a library behind ours may have put another receiver there.
    query: *const pg_sys::QueryDesc,
    /// Rows still wanted.
    left: u64,
    /// Rows that were sent directly to the client.
    sent: u64,
    /// The COPY that the rows are of, if there is one.
    copy: CopiedRows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// Rows go to the executor, one by one. A new scan has this state, since it is made of zeroes.
    Stepwise = 0,
    /// Nobody has checked yet where rows go.
    Undecided,
    /// Rows go directly to the client.
    Direct,
}

impl Run {
    /// A run of a query for `limit` rows (0: all).
    pub fn new(query: QueryDesc<'_>, direction: pg_sys::ScanDirection::Type, limit: u64) -> Self {
        let forward = direction == pg_sys::ScanDirection::ForwardScanDirection;
        let state = if forward { State::Undecided } else { State::Stepwise };
        Self {
            state,
            query: query.as_ptr(),
            left: if limit == 0 { u64::MAX } else { limit },
            sent: 0,
            copy: CopiedRows::NONE,
        }
    }

    /// Returns true if all rows of the run go to the executor.
    pub fn is_stepwise(&self) -> bool {
        self.state == State::Stepwise
    }
}

/// What to do next.
#[derive(Clone, Copy)]
enum Step {
    /// Have the server's output functions called for the next row.
    Call,
    /// Send the block.
    Send,
    /// Send the block; then the next row is the executor's.
    Leave,
    /// Send the block; then the run is over.
    End,
}

/// How the rows of a run go.
enum Way {
    /// As they lie in a rendition.
    Rendered(BlockPlace),
    /// As they are made into messages.
    Encoded,
    /// The next one to the executor.
    FirstRow,
    /// To the executor.
    Executor,
}

/// Sends the rows of a run, if they may go directly to the client. True when none is left for the executor; else the
/// next one is to be handed over. Raises what sending a row raises.
///
/// # Safety
/// `run` must be the run of the query under way whose scan has this state, unguarded; `pin`, `rows` and `direct` those
/// of its hold. No frame between here and PostgreSQL may have pending destructors.
pub unsafe fn deliver(
    run: *mut Run,
    pin: *const Pin,
    (rows, direct): (*mut Rows, *mut Option<Box<RowMessages>>),
    node: *const pg_sys::PlanState,
) -> bool {
    // SAFETY: the caller vouches for the query; no frame from here on down has destructors outside of `edge`. Rows, and
    // what sends them, stay in their places in the hold.
    unsafe {
        if (*run).state == State::Undecided {
            let (receiver, is_measured) = ((*(*run).query).dest, !(*node).instrument.is_null());
            let way = edge(|| {
                (*run).copy = CopiedRows::of(receiver);
                if (*run).copy.wants_first_row() {
                    return Way::FirstRow;
                }
                let formats =
                    ClientFormats::of(receiver, (*run).copy, (*rows).columns().len()).filter(|_| !is_measured);
                formats.map_or(Way::Executor, |formats| begin(&*run, &*pin, (&*rows, &mut *direct), &formats))
            });
            (*run).state = match way {
                Way::Rendered(first) => {
                    (*run).state = State::Direct;
                    deliver_rendition(run, pin, rows, first, (*node).state);
                    return true;
                }
                Way::Encoded => State::Direct,
                Way::FirstRow => {
                    (*run).left -= 1;
                    return false;
                }
                Way::Executor => State::Stepwise,
            };
        }
        (*run).state == State::Direct && deliver_encoded(run, rows, direct, (*node).state)
    }
}

/// Makes messages of rows and sends them. True when none is left for the executor. Raises what sending a row raises.
///
/// # Safety
/// As `deliver`.
unsafe fn deliver_encoded(
    run: *mut Run,
    rows: *mut Rows,
    direct: *mut Option<Box<RowMessages>>,
    estate: *mut pg_sys::EState,
) -> bool {
    // SAFETY: as in `deliver`.
    unsafe {
        // Without it, the last row of the run was the executor's, which may ask again for more than the run is to give.
        let Some(sender) = (*direct).as_deref_mut() else { return (*run).left == 0 };
        let sender = std::ptr::from_mut(sender);
        loop {
            let left = (*run).left;
            let step = edge(|| (*sender).step(&mut *rows, &mut (*run).left));
            (*estate).es_processed += left - (*run).left;
            (*run).sent += left - (*run).left;
            let messages = (*sender).block.messages();
            let (messages, length) = (messages.as_ptr(), messages.len());
            if let Step::Call = step {
                let functions = &raw mut (*sender).functions;
                with_cleanup(
                    || OutputFunctions::call(functions),
                    || {
                        // An error comes behind the rows before it.
                        if !(*functions).were_called() {
                            client::hand_over(&[std::slice::from_raw_parts(messages, length)]);
                        }
                    },
                );
                continue;
            }
            // Before they are sent: an error then gives it up.
            edge(|| (*sender).render(step, (*run).sent + (*run).copy.rows_before()));
            client::send(&[std::slice::from_raw_parts(messages, length)]);
            edge(|| (*run).copy.note_sent((*sender).block.messages()));
            (*sender).block.clear();
            match step {
                Step::Leave => {
                    (*run).left -= 1;
                    if (*run).left == 0 {
                        // The executor makes the bytes of this row anew. Whether it asks again depends on what it has
                        // counted itself.
                        edge(|| RowMessages::put_away(&mut *direct));
                    }
                    return false;
                }
                Step::End => {
                    edge(|| end(&mut *run, &mut *direct));
                    return true;
                }
                Step::Send | Step::Call => {}
            }
        }
    }
}

/// Gets ready to send rows in these formats. Returns how the rows go.
fn begin(
    run: &Run,
    pin: &Pin,
    (rows, direct): (&Rows, &mut Option<Box<RowMessages>>),
    formats: &ClientFormats<'_>,
) -> Way {
    // A run whose rows went to the executor to the last may have left it there.
    RowMessages::put_away(direct);
    if !client::is_socket() {
        return Way::Executor;
    }
    let settings = OutputSettings::current();
    let is_whole = rows.is_at_start() || run.copy.is_any();
    let key = (is_whole && rendition::are_wanted(pin, run.left))
        .then(|| rendition::key(&settings, rows.columns().len(), formats))
        .flatten();
    if let Some(first) = key.and_then(|key| rendition::find(pin, key)) {
        return Way::Rendered(first);
    }
    let draft =
        key.filter(|_| rendition::are_determined(&settings, rows.columns())).and_then(|key| Draft::begin(pin, key));
    match RowMessages::ready(rows.columns(), &settings, formats, draft) {
        Ok(sender) => {
            *direct = Some(sender);
            Way::Encoded
        }
        Err(OutOfMemory) => Way::Executor,
    }
}

/// Sends all rows of an entry as a rendition has them. Raises what sending a row raises.
///
/// # Safety
/// As `deliver`; `first` is the first block of a rendition of the entry.
unsafe fn deliver_rendition(
    run: *mut Run,
    pin: *const Pin,
    rows: *mut Rows,
    first: BlockPlace,
    estate: *mut pg_sys::EState,
) {
    // SAFETY: the caller vouches for the query. The blocks stay in their places while the entry is pinned, which it is
    // until the scan ends.
    unsafe {
        let count = edge(|| {
            (*rows).pass_all();
            let all = shmem::store().map_or(0, |store| store.view(&*pin).rows());
            all.saturating_sub((*run).copy.rows_before())
        });
        (*estate).es_processed += count;
        ((*run).left, (*run).sent) = (0, count);
        let mut next = Some(first);
        while let Some(place) = next {
            let (messages, length, after) = edge(|| rendition::block(&*pin, place));
            client::send(&[std::slice::from_raw_parts(messages, length)]);
            edge(|| (*run).copy.note_sent(std::slice::from_raw_parts(messages, length)));
            next = after;
        }
        edge(|| client::note_sent("to the client as they lay", count));
    }
}

impl RowMessages {
    /// Adds the block that is about to be sent to the rendition. `sent` rows were made into messages so far.
    fn render(&mut self, step: Step, sent: u64) {
        let Some(mut draft) = self.draft.take() else { return };
        match step {
            Step::Call => self.draft = Some(draft),
            Step::Send if draft.append(&[self.block.messages()]) => self.draft = Some(draft),
            Step::End if draft.append(&[self.block.messages()]) => draft.publish(sent),
            // A row that another way takes is missing, or there is no room.
            Step::Send | Step::End | Step::Leave => {}
        }
    }

    /// Appends rows to the block, until something else has to be done.
    fn step(&mut self, rows: &mut Rows, left: &mut u64) -> Step {
        while *left > 0 {
            let Some(row) = or_raise(rows.upcoming()) else { return Step::End };
            if self.has_functions {
                let (number, chunk) = rows.chunk();
                if self.chunk != Some(number) {
                    self.chunk = Some(number);
                    or_raise(self.functions.open(rows.columns(), chunk));
                }
                if or_raise(self.functions.read(row)) {
                    return Step::Call;
                }
            }
            let Self { encoder, functions, block, .. } = self;
            match encoder.append(rows.buffers(), row, functions, block) {
                Outcome::Appended => {
                    self.functions.pass_row();
                    rows.pass(1);
                    *left -= 1;
                }
                Outcome::Full if !block.messages().is_empty() => return Step::Send,
                Outcome::Full if block.grow(encoder.size(rows.buffers(), row, functions)).is_ok() => {}
                Outcome::Full | Outcome::Refused => {
                    self.functions.pass_row();
                    return Step::Leave;
                }
            }
        }
        Step::End
    }
}

/// Ends a run.
fn end(run: &mut Run, direct: &mut Option<Box<RowMessages>>) {
    run.left = 0;
    RowMessages::put_away(direct);
    client::note_sent("straight to the client", run.sent);
}
