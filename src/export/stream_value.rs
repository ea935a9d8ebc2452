//! The value of `arrow_cache.query`: a bytea that is not put together before somebody asks for its bytes. It is an expanded object of the
//! server (utils/expandeddatum.h), read-only: whoever keeps it or computes with it gets a plain copy by the server's own functions, and
//! `client_value` sends its pieces from where they lie.
//!
//! A value belongs to the memory context in which it was made, and to one process. Nothing is locked: what lies in shared memory is pinned by
//! a hold in that same context.

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use super::ipc_stream::{END_OF_STREAM, LARGEST_BYTEA, Output};
use crate::error::{CacheError, or_raise};
use crate::pg::memory_context::leak;
use crate::pg::returned::Column;
use crate::pg::varlena;

/// A stream that is gathered in pieces.
#[derive(Default)]
pub struct GatheredStream {
    pieces: Vec<Piece>,
    /// What had to be made for this stream.
    own: Vec<u8>,
    /// Bytes of all pieces.
    length: usize,
}

/// A part of a stream.
enum Piece {
    /// That many of the bytes in `own`, behind those of the pieces before.
    Own(usize),
    /// A stored message.
    Stored(&'static [u8]),
}

impl GatheredStream {
    fn grow(&mut self, bytes: usize) {
        self.length += bytes;
        if self.length > LARGEST_BYTEA {
            CacheError::stream_too_large(self.length).raise();
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.grow(bytes.len());
        or_raise(self.own.add_all(bytes));
        if let Some(Piece::Own(length)) = self.pieces.last_mut() {
            *length += bytes.len();
        } else {
            or_raise(self.pieces.add(Piece::Own(bytes.len())));
        }
    }

    /// Does a part of it lie in an entry?
    pub fn reads_entry(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Stored(_)))
    }

    /// The pieces in their order.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut own = self.own.as_slice();
        self.pieces.iter().map(move |piece| match *piece {
            Piece::Stored(message) => message,
            Piece::Own(length) => {
                let (now, later) = own.split_at(length);
                own = later;
                now
            }
        })
    }
}

impl Output for GatheredStream {
    fn schema(&mut self, message: &[u8]) {
        self.add(message);
    }

    fn batch(&mut self, _rows: usize, parts: &[&[u8]]) {
        for part in parts {
            self.add(part);
        }
    }

    fn stored(&mut self, _rows: usize, message: &'static [u8]) {
        self.grow(message.len());
        or_raise(self.pieces.add(Piece::Stored(message)));
    }

    fn end(&mut self) {
        self.add(&END_OF_STREAM);
    }
}

/// A value as the server sees it.
#[repr(C)]
pub struct StreamValue {
    header: pg_sys::ExpandedObjectHeader,
    stream: GatheredStream,
}

/// Methods of the server's kind of object. The server only reads them.
struct Methods(pg_sys::ExpandedObjectMethods);

// SAFETY: addresses of functions, never written.
unsafe impl Sync for Methods {}

static METHODS: Methods =
    Methods(pg_sys::ExpandedObjectMethods { get_flat_size: Some(flat_size), flatten_into: Some(flatten) });

/// The size of the plain value.
unsafe extern "C-unwind" fn flat_size(object: *mut pg_sys::ExpandedObjectHeader) -> usize {
    // SAFETY: an object with these methods is the head of a StreamValue.
    unsafe { varlena::HEADER + (*object.cast::<StreamValue>()).stream.length }
}

/// Writes the plain value, for which there is as much room as `flat_size` says.
unsafe extern "C-unwind" fn flatten(
    object: *mut pg_sys::ExpandedObjectHeader,
    result: *mut std::ffi::c_void,
    _size: usize,
) {
    // SAFETY: as in `flat_size`; the server has made room for all pieces behind the header.
    unsafe {
        let stream = &(*object.cast::<StreamValue>()).stream;
        let mut place = result.cast::<u8>();
        place.cast::<u32>().write_unaligned(varlena::header(stream.length));
        place = place.add(varlena::HEADER);
        for piece in stream.pieces() {
            std::ptr::copy_nonoverlapping(piece.as_ptr(), place, piece.len());
            place = place.add(piece.len());
        }
    }
}

impl StreamValue {
    /// The value that a datum of type bytea is, if it is one of these.
    ///
    /// # Safety
    /// The datum must be a valid bytea, and stay valid for `'v`.
    pub unsafe fn of<'v>(datum: pg_sys::Datum) -> Option<&'v Self> {
        let start = datum.cast_mut_ptr::<u8>();
        // SAFETY: a valid bytea. The first byte tells of a pointer, the second one of which kind (varatt.h, VARATT_IS_EXTERNAL_EXPANDED_RO).
        unsafe {
            if *start != EXTERNAL || u32::from(*start.add(1)) != pg_sys::vartag_external::VARTAG_EXPANDED_RO {
                return None;
            }
            let object = kept!(pg_sys::DatumGetEOHP(datum));
            std::ptr::eq((*object).eoh_methods, &raw const METHODS.0).then(|| &*object.cast::<Self>())
        }
    }

    /// Bytes of the value, without a header.
    pub fn length(&self) -> usize {
        self.stream.length
    }

    /// The bytes, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.stream.pieces()
    }
}

/// The first byte of a value that is a pointer (varatt.h, VARATT_IS_1B_E on little-endian machines).
const EXTERNAL: u8 = 0x01;

impl Column for GatheredStream {
    const TYPE: pg_sys::Oid = pg_sys::BYTEAOID;

    fn datum(self) -> Option<pg_sys::Datum> {
        let value = StreamValue { header: pg_sys::ExpandedObjectHeader::default(), stream: self };
        // SAFETY: the object does not move, and is dropped with the context in which the server wants the value. Nobody knows it before its
        // header is complete.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            let value = leak(context, value);
            kept!(pg_sys::EOH_init_header(&raw mut (*value).header, &raw const METHODS.0, context));
            let read_only = (&raw mut (*value).header.eoh_ro_ptr).cast::<std::ffi::c_void>();
            Some(pg_sys::Datum::from(read_only))
        }
    }
}
