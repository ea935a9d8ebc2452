//! The values of a row whose bytes only the server can make: by the output or send function of their type, as its own
//! receiver does it (access/common/printtup.c). They live in a memory context that is emptied for each row.

use std::ffi::{CStr, c_char};

use arrow_cache_core::formats::wire::{LONGEST, Server, WireFormat};
use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::arrow::decode::{Decoder, Reader};
use crate::arrow::varlena;
use crate::pg::error_passing::direct;
use crate::pg::{float_text, server};

/// One column of such values.
struct Source {
    /// Its number in the result.
    column: usize,
    type_oid: pg_sys::Oid,
    binary: bool,
    function: pg_sys::FmgrInfo,
    /// The bytes of the current row's value.
    bytes: *const u8,
    length: usize,
}

/// How far the pieces of a row are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unread,
    Read,
    Made,
}

/// The columns of such values.
pub struct Pieces {
    sources: Vec<Source>,
    /// Where each column of the result is among the sources.
    places: Vec<usize>,
    wanted: Vec<usize>,
    decoder: Decoder,
    reader: Option<Reader<'static>>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    /// How far the next row is.
    progress: Progress,
    /// Where they are made; null if there are none.
    context: pg_sys::MemoryContext,
}

impl Pieces {
    /// Those columns that have no other form.
    ///
    /// # Errors
    /// There is no memory for what there is to know of them.
    pub fn new(columns: &[Column], forms: &[WireFormat], binary: impl Fn(usize) -> bool) -> Result<Self, OutOfMemory> {
        let mut wanted = Vec::new();
        for index in (0..columns.len()).filter(|&index| forms[index] == WireFormat::ByServer) {
            wanted.add(index)?;
        }
        let mut places = Vec::new();
        if let Some(&last) = wanted.last() {
            places.lengthen(last + 1, usize::MAX)?;
        }
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        values.lengthen(wanted.len(), pg_sys::Datum::from(0))?;
        nulls.lengthen(wanted.len(), true)?;
        for (place, &column) in wanted.iter().enumerate() {
            places[column] = place;
        }
        let source = |&column: &usize| Source {
            column,
            type_oid: columns[column].type_oid,
            binary: binary(column),
            function: pg_sys::FmgrInfo::default(),
            bytes: std::ptr::null(),
            length: 0,
        };
        Ok(Self {
            sources: Vec::collected(wanted.iter().map(source))?,
            places,
            decoder: Decoder::new(Vec::collected(wanted.iter().map(|&column| columns[column]))?),
            reader: None,
            values,
            nulls,
            wanted,
            progress: Progress::Unread,
            context: std::ptr::null_mut(),
        })
    }

    /// Looks the functions up. Raises as the server does when there is none, and like the server when there is a row to
    /// send: a result without rows needs none.
    ///
    /// # Safety
    /// As `make`.
    unsafe fn look_up(pieces: *mut Self) {
        // SAFETY: as the caller promises; a FmgrInfo stays in its place as long as it is used.
        unsafe {
            let context = direct!(server::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"pg_arrow_cache values".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            ));
            let count = (*pieces).sources.len();
            let sources = (*pieces).sources.as_mut_ptr();
            for index in 0..count {
                let source = sources.add(index);
                let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
                let (oid, varlena) = (&raw mut function, &raw mut is_varlena);
                if (*source).binary {
                    direct!(server::getTypeBinaryOutputInfo((*source).type_oid, oid, varlena));
                } else {
                    direct!(server::getTypeOutputInfo((*source).type_oid, oid, varlena));
                }
                direct!(server::fmgr_info(function, &raw mut (*source).function));
            }
            (*pieces).context = context;
        }
    }

    /// Goes to another chunk of these columns.
    ///
    /// # Errors
    /// There is no memory for where they are in it.
    pub fn open(&mut self, columns: &[Column], chunk: Chunk<'static>) -> Result<(), OutOfMemory> {
        if !self.wanted.is_empty() {
            self.reader = Some(Reader::of_some(columns, &self.wanted, chunk)?);
        }
        Ok(())
    }

    /// Reads the values of a row of the chunk, unless that is done. True if `make` must make pieces of them.
    ///
    /// # Errors
    /// There is no memory for the values.
    pub fn want(&mut self, row: usize) -> Result<bool, OutOfMemory> {
        match &self.reader {
            Some(reader) if self.progress == Progress::Unread => {
                self.decoder.fill(reader, row, &mut self.values, &mut self.nulls)?;
                self.progress = Progress::Read;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The current row needs its pieces no more.
    pub fn used(&mut self) {
        self.progress = Progress::Unread;
    }

    /// Have all pieces of the row been made?
    ///
    /// # Safety
    /// `pieces` must be valid.
    pub unsafe fn are_made(pieces: *const Self) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (*pieces).progress == Progress::Made }
    }

    /// Gives back where the pieces are.
    pub fn end(self) {
        if !self.context.is_null() {
            // SAFETY: made by `look_up`, and used no more.
            unsafe { pg_sys::MemoryContextDelete(self.context) };
        }
    }

    /// Makes the pieces of the values that were read, and accepts interrupts. Raises what their functions raise.
    ///
    /// # Safety
    /// `want` must have been called, `pieces` be valid and stay in its place, and the current memory context outlive it. No
    /// destructors may be pending.
    pub unsafe fn make(pieces: *mut Self) {
        // SAFETY: as the caller promises. Values live until the next row is read; pieces in a context of their own. On
        // an error the server switches to a context of its own.
        unsafe {
            if pg_sys::InterruptPending != 0 {
                direct!(server::ProcessInterrupts());
            }
            if (*pieces).context.is_null() {
                Self::look_up(pieces);
            }
            let caller = pg_sys::CurrentMemoryContext;
            direct!(server::MemoryContextReset((*pieces).context));
            pg_sys::CurrentMemoryContext = (*pieces).context;
            let count = (*pieces).sources.len();
            let sources = (*pieces).sources.as_mut_ptr();
            let values = (*pieces).values.as_ptr();
            let nulls = (*pieces).nulls.as_ptr();
            for index in 0..count {
                if !*nulls.add(index) {
                    print(sources.add(index), *values.add(index));
                }
            }
            pg_sys::CurrentMemoryContext = caller;
            (*pieces).progress = Progress::Made;
        }
    }
}

/// Has the server make the bytes of a value.
///
/// # Safety
/// As `Pieces::make`.
unsafe fn print(source: *mut Source, value: pg_sys::Datum) {
    // SAFETY: as the caller promises: the function is that of the value's type. What a send function gives is a plain
    // varlena, what an output function gives and what is converted end with a NUL.
    unsafe {
        let function = &raw mut (*source).function;
        if (*source).binary {
            let sent: *mut pg_sys::varlena = direct!(server::SendFunctionCall(function, value));
            let word = sent.cast::<u32>().read_unaligned();
            (*source).bytes = sent.cast::<u8>().add(varlena::HEADER);
            (*source).length = (word >> 2) as usize - varlena::HEADER;
            return;
        }
        let text: *mut c_char = direct!(server::OutputFunctionCall(function, value));
        let length = CStr::from_ptr(text).count_bytes();
        let shown: *mut c_char = direct!(server::pg_server_to_client(text, length as i32));
        (*source).bytes = shown.cast();
        (*source).length = if std::ptr::eq(shown, text) { length } else { CStr::from_ptr(shown).count_bytes() };
    }
}

impl Server for Pieces {
    fn value(&self, column: usize) -> &[u8] {
        let source = &self.sources[self.places[column]];
        debug_assert_eq!(source.column, column);
        // SAFETY: `make` has set them for the current row, whose context is not emptied before the next.
        unsafe { std::slice::from_raw_parts(source.bytes, source.length) }
    }

    #[inline]
    fn float8(&self, value: f64, out: &mut [u8; LONGEST]) -> usize {
        float_text::float8(value, out)
    }

    #[inline]
    fn float4(&self, value: f32, out: &mut [u8; LONGEST]) -> usize {
        float_text::float4(value, out)
    }
}
