//! The rows of a hit straight to the client: from the stored columns into DataRow messages, without a slot, a receiver
//! or a call of the server per value.
//!
//! The scan does it when the first row of a run is asked of it: it sends all rows of the run, adds them to the
//! executor's count, and says that there are no more. So other libraries' hooks, the receiver's start and end, and the
//! portal see what they always see. A row that is too large for the block, or has a value that the encoder leaves to
//! the server, is handed to the executor, after those before it were sent; the scan goes on behind it.
//!
//! The number of rows wanted is what our hook was asked for: a library behind ours is taken to pass it on, as those
//! that count and time do.
//!
//! State lives in the hold, and is this backend's own; nothing is locked. Everything that may raise runs outside of
//! `edge`, in frames without destructors, so that its errors reach the client as they are.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::OnceLock;

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::wire;
use arrow_cache_core::formats::wire::{Encoder, MessageBuffer, Outcome, Span, Zone};
use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use super::columns::Look;
use super::hold::Hold;
use super::pieces::Pieces;
use super::rows::Rows;
use crate::error::or_raise;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::{edge, guarded, with_cleanup};
use crate::pg::{client, server};

/// Bytes of rows that are sent at once. A larger row is left to the executor.
const BLOCK: usize = 64 * 1024;

/// One run of the executor, as far as the scan has to know.
#[derive(Clone, Copy)]
pub struct Run {
    state: State,
    /// Where the rows go is looked up here, since a library behind ours may have put another receiver there.
    query_desc: *const pg_sys::QueryDesc,
    /// Rows still wanted.
    left: u64,
    /// Rows that went straight to the client.
    sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// Rows go to the executor, one by one. What a scan is set to when it is made, as zeroes.
    Stepwise = 0,
    /// Nobody has looked yet where rows go.
    Open,
    /// Rows go straight to the client.
    Straight,
}

impl Run {
    /// A run of a started query for `limit` rows (0: all).
    pub fn new(query_desc: *const pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, limit: u64) -> Self {
        let forward = direction == pg_sys::ScanDirection::ForwardScanDirection;
        let state = if forward { State::Open } else { State::Stepwise };
        Self { state, query_desc, left: if limit == 0 { u64::MAX } else { limit }, sent: 0 }
    }
}

/// What makes messages of an entry's rows.
pub struct Straight {
    encoder: Encoder,
    block: MessageBuffer,
    /// The time zone that the encoder was made for: the server keeps each one in its place.
    zone_of: usize,
    /// The columns of the chunk that is read, and its number.
    columns: Vec<ColumnBuffers<'static>>,
    chunk: Option<usize>,
    pieces: Pieces,
}

/// What is kept from one statement of this backend to the next.
struct Kept {
    block: MessageBuffer,
    zone: Zone,
    zone_of: usize,
}

static KEPT: Local<RefCell<Option<Kept>>> = Local::new(RefCell::new(None));

/// What to do next.
#[derive(Clone, Copy)]
enum Step {
    /// Have the server make the pieces of the next row.
    Pieces,
    /// Send the block.
    Send,
    /// Send the block; then the next row is the executor's.
    Leave,
    /// Send the block; then the run is over.
    End,
}

/// Sends the rows of a run, if they may go straight to the client. True when none is left for the executor; else the
/// next one is to be handed over. Raises what sending a row raises.
///
/// # Safety
/// `hold` must be the entry of the scan that is asked for a row, unguarded, and `node` its state.
pub unsafe fn deliver(run: *mut Run, hold: *mut Hold, node: *const pg_sys::PlanState) -> bool {
    // SAFETY: as the caller promises; no frame from here on down has destructors outside of `edge`. Rows, and what
    // sends them, stay in their places in the hold.
    unsafe {
        if (*run).state == State::Open {
            (*run).state = edge(|| begin(&*run, &mut *hold, node));
        }
        let (State::Straight, Some(straight), Some(rows)) = ((*run).state, (*hold).straight(), (*hold).rows()) else {
            return false;
        };
        let rows = std::ptr::from_mut(rows);
        let estate = (*node).state;
        loop {
            let left = (*run).left;
            let step = edge(|| (*straight).step(&mut *rows, &mut (*run).left));
            (*estate).es_processed += left - (*run).left;
            (*run).sent += left - (*run).left;
            let messages = (*straight).block.messages();
            let (messages, length) = (messages.as_ptr(), messages.len());
            if let Step::Pieces = step {
                let pieces = &raw mut (*straight).pieces;
                with_cleanup(
                    || Pieces::make(pieces),
                    || {
                        // An error comes behind the rows before it.
                        if !Pieces::are_made(pieces) {
                            client::hand_over(std::slice::from_raw_parts(messages, length));
                        }
                    },
                );
                continue;
            }
            client::send(std::slice::from_raw_parts(messages, length));
            (*straight).block.clear();
            match step {
                Step::Leave => {
                    (*run).left -= 1;
                    return false;
                }
                Step::End => {
                    edge(|| end(&mut *run, &mut *hold));
                    return true;
                }
                Step::Send | Step::Pieces => {}
            }
        }
    }
}

/// Decides how the rows of a run go, and gets ready.
///
/// # Safety
/// As `deliver`.
unsafe fn begin(run: &Run, hold: &mut Hold, node: *const pg_sys::PlanState) -> State {
    // SAFETY: as the caller promises; the query runs, so it has a receiver.
    unsafe {
        let Some(portal) = portal_of((*run.query_desc).dest) else { return State::Stepwise };
        // EXPLAIN and the like measure the steps of the executor.
        if !(*node).instrument.is_null() || !client::is_socket() {
            return State::Stepwise;
        }
        let Some(rows) = hold.rows() else { return State::Stepwise };
        let formats = (*portal).formats.cast_const();
        let columns = rows.columns().len();
        let formats = (!formats.is_null() && columns > 0).then(|| std::slice::from_raw_parts(formats, columns));
        if formats.is_some_and(|formats| formats.iter().any(|format| !matches!(format, 0 | 1))) {
            return State::Stepwise;
        }
        match Straight::new(rows, |index| formats.is_some_and(|formats| formats[index] == 1)) {
            Ok(straight) => hold.set_straight(straight),
            Err(_) => return State::Stepwise,
        }
        State::Straight
    }
}

impl Straight {
    fn new(rows: &Rows, binary: impl Fn(usize) -> bool) -> Result<Self, OutOfMemory> {
        let look = Look::current();
        let columns = rows.columns();
        let form = |(index, column)| look.form(column, binary(index));
        let forms = Vec::collected(columns.iter().enumerate().map(form))?;
        // SAFETY: a plain global of the backend.
        let zone_of = unsafe { pg_sys::session_timezone } as usize;
        let (block, zone) = match KEPT.take() {
            Some(kept) if kept.zone_of == zone_of => (kept.block, kept.zone),
            Some(kept) => (kept.block, Zone::new(ask_zone)),
            None => (MessageBuffer::new(BLOCK)?, Zone::new(ask_zone)),
        };
        let encoder = Encoder::new(forms, zone);
        let pieces = Pieces::new(columns, encoder.formats(), &binary)?;
        Ok(Self { encoder, block, zone_of, columns: Vec::with_room(columns.len())?, chunk: None, pieces })
    }

    /// Appends rows to the block, until something else has to be done.
    fn step(&mut self, rows: &mut Rows, left: &mut u64) -> Step {
        while *left > 0 {
            let Some(row) = or_raise(rows.upcoming()) else { return Step::End };
            let (number, chunk) = rows.chunk();
            if self.chunk != Some(number) {
                self.chunk = Some(number);
                or_raise(self.pieces.open(rows.columns(), chunk));
                self.columns.clear();
                self.columns.extend(rows.buffers());
            }
            if or_raise(self.pieces.want(row)) {
                return Step::Pieces;
            }
            match self.encoder.append(&self.columns, row, &self.pieces, &mut self.block) {
                Outcome::Appended => {
                    self.pieces.used();
                    rows.pass(1);
                    *left -= 1;
                }
                Outcome::Full if !self.block.messages().is_empty() => return Step::Send,
                Outcome::Full | Outcome::Refused => {
                    self.pieces.used();
                    return Step::Leave;
                }
            }
        }
        Step::End
    }
}

/// Ends a run. What can be used again is kept for the backend's next.
fn end(run: &mut Run, hold: &mut Hold) {
    run.left = 0;
    if let Some(straight) = hold.take_straight() {
        let Straight { encoder, block, zone_of, pieces, .. } = *straight;
        pieces.end();
        KEPT.replace(Some(Kept { block, zone: encoder.into_zone(), zone_of }));
    }
    if server::message_level_is_interesting(pg_sys::DEBUG2 as c_int) {
        pgrx::debug2!("{} rows went straight to the client", run.sent);
    }
}

/// The server's receiver of rows for the client (access/common/printtup.c, `DR_printtup`), as far as it is looked at.
#[repr(C)]
struct ClientReceiver {
    public: pg_sys::DestReceiver,
    portal: pg_sys::Portal,
}

/// The function that takes rows in the server's own receiver; `None` if that is not built as expected.
fn client_receiver() -> Option<usize> {
    // SAFETY: a receiver of its own, told of a portal that it never looks at, and destroyed again.
    unsafe {
        let receiver = guarded!(server::printtup_create_DR(pg_sys::CommandDest::DestRemote));
        let mark = receiver.cast::<pg_sys::PortalData>();
        guarded!(server::SetRemoteDestReceiverParams(receiver, mark));
        let expected = std::ptr::eq((*receiver.cast::<ClientReceiver>()).portal, mark);
        let function = (*receiver).receiveSlot.map(|function| function as usize);
        if let Some(destroy) = (*receiver).rDestroy {
            guarded!(destroy(receiver));
        }
        function.filter(|_| expected)
    }
}

/// The portal that a receiver sends rows for, if it is the server's own for the client.
///
/// # Safety
/// `receiver` must be valid.
unsafe fn portal_of(receiver: *mut pg_sys::DestReceiver) -> Option<pg_sys::Portal> {
    static FUNCTION: OnceLock<Option<usize>> = OnceLock::new();
    // SAFETY: as the caller promises; a receiver with this function has the layout that was checked.
    unsafe {
        let to_client =
            matches!((*receiver).mydest, pg_sys::CommandDest::DestRemote | pg_sys::CommandDest::DestRemoteExecute);
        let function = (*receiver).receiveSlot.map(|function| function as usize);
        if !to_client || function.is_none() || function != *FUNCTION.get_or_init(client_receiver) {
            return None;
        }
        let portal = (*receiver.cast::<ClientReceiver>()).portal;
        (!portal.is_null()).then_some(portal)
    }
}

/// Asks the server for the offset of the session's time zone at a second, and how long it holds.
fn ask_zone(second: i64) -> Span {
    let mut start = wire::stretch(second);
    loop {
        let (mut before, mut after) = (0, 0);
        let (mut before_is_dst, mut after_is_dst) = (0, 0);
        let mut end = 0;
        // SAFETY: plain reads of the zone's tables; the result of pg_localtime is read before the next call.
        unsafe {
            let zone = pg_sys::session_timezone;
            let found = server::pg_next_dst_boundary(
                &raw const start,
                &raw mut before,
                &raw mut before_is_dst,
                &raw mut end,
                &raw mut after,
                &raw mut after_is_dst,
                zone,
            );
            match found {
                1 if end <= second && end > start => start = end,
                _ => {
                    let local = server::pg_localtime(&raw const second, zone);
                    let offset = if local.is_null() { 0 } else { (*local).tm_gmtoff as i32 };
                    return match found {
                        0 => Span { start, end: i64::MAX, offset },
                        1 if end > second => Span { start, end, offset },
                        _ => Span { start: second, end: second + 1, offset },
                    };
                }
            }
        }
    }
}
