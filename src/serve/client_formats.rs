//! Where the rows of a run go: to the server's own receiver for clients, and in which formats, or elsewhere. Reads the
//! server's state; what is kept is the same for the life of the backend.

use std::sync::OnceLock;

use arrow_cache_core::formats::wire::RowShape;
use pgrx::pg_sys;

use super::copied_rows::CopiedRows;
use crate::pg::server;

/// The server's receiver of rows for the client (access/common/printtup.c, `DR_printtup`), as far as it is read here.
#[repr(C)]
struct ClientReceiver {
    public: pg_sys::DestReceiver,
    portal: pg_sys::Portal,
}

/// The formats in which a client gets the columns of its rows.
pub struct ClientFormats<'q> {
    /// One per column: 0 for text, 1 for binary; without them all are binary in a COPY in binary, else text.
    formats: Option<&'q [i16]>,
    /// What a row becomes.
    pub shape: RowShape,
}

impl ClientFormats<'_> {
    /// The formats of rows with `columns` columns that go to this receiver. `None` if that is not the server's own
    /// receiver for clients, or there is a format that we do not know. The receiver may be
    /// that of a `copy`.
    ///
    /// # Safety
    /// The receiver must be that of a query under way, whose rows have as many columns.
    pub unsafe fn of(receiver: *mut pg_sys::DestReceiver, copy: CopiedRows, columns: usize) -> Option<Self> {
        if let Some(shape) = copy.shape() {
            return Some(Self { formats: None, shape });
        }
        // SAFETY: the caller vouches for the receiver. Its portal is that of the query, with a format for each column,
        // or none.
        unsafe {
            let formats = (*portal_of(receiver)?).formats.cast_const();
            let formats = (!formats.is_null() && columns > 0).then(|| std::slice::from_raw_parts(formats, columns));
            let known = formats.is_none_or(|formats| formats.iter().all(|format| matches!(format, 0 | 1)));
            known.then_some(Self { formats, shape: RowShape::DataRow })
        }
    }

    /// Returns true if a column is sent in binary.
    pub fn is_binary(&self, column: usize) -> bool {
        self.formats.map_or(self.shape == RowShape::CopyBinary, |formats| formats[column] == 1)
    }
}

/// The function that takes rows in the server's own receiver; `None` if that is not built as expected.
static FUNCTION: OnceLock<Option<usize>> = OnceLock::new();

/// Looks how the server's own receiver is built. Called once, in the postmaster: its children inherit the answer.
/// Returns false if it is not built as expected.
pub fn look_at_receiver() -> bool {
    FUNCTION.get_or_init(client_receiver).is_some()
}

/// The portal that a receiver sends rows for, if it is the server's own for the client.
///
/// # Safety
/// `receiver` must be valid.
unsafe fn portal_of(receiver: *mut pg_sys::DestReceiver) -> Option<pg_sys::Portal> {
    // SAFETY: the caller vouches for the receiver; one with this function has the layout that was checked.
    unsafe {
        let to_client =
            matches!((*receiver).mydest, pg_sys::CommandDest::DestRemote | pg_sys::CommandDest::DestRemoteExecute);
        let function = (*receiver).receiveSlot.map(|function| function as usize);
        if !to_client || function.is_none() || function != FUNCTION.get().copied().flatten() {
            return None;
        }
        let portal = (*receiver.cast::<ClientReceiver>()).portal;
        (!portal.is_null()).then_some(portal)
    }
}

/// That function.
fn client_receiver() -> Option<usize> {
    // SAFETY: a receiver of its own, told of a portal that it never reads, and destroyed again.
    unsafe {
        let receiver = kept!(server::printtup_create_DR(pg_sys::CommandDest::DestRemote));
        let mark = receiver.cast::<pg_sys::PortalData>();
        kept!(server::SetRemoteDestReceiverParams(receiver, mark));
        let expected = std::ptr::eq((*receiver.cast::<ClientReceiver>()).portal, mark);
        let function = (*receiver).receiveSlot.map(|function| function as usize);
        if let Some(destroy) = (*receiver).rDestroy {
            kept!(destroy(receiver));
        }
        function.filter(|_| expected)
    }
}
