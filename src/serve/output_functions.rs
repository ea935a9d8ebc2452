//! The values of a row whose bytes only the server can make: by the output or send function of their type, as its own
//! receiver does it (access/common/printtup.c). The bytes live in a memory context that is emptied for each row. State
//! of one run of this backend.

use std::ffi::{CStr, c_char};

use arrow_cache_core::formats::wire::{LONGEST, Server, WireFormat};
use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::arrow::decode::{Decoder, Reader};
use crate::pg::memory_context::context_below;
use crate::pg::row::Row;
use crate::pg::{float_text, varlena};

/// One column of such values.
struct OutputFunction {
    /// Its number in the result.
    column: usize,
    type_oid: pg_sys::Oid,
    /// It is the send function.
    binary: bool,
    function: pg_sys::FmgrInfo,
    /// The bytes of the current row's value.
    bytes: *const u8,
    length: usize,
}

/// How far the next row is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unread,
    /// Its values were read.
    Read,
    /// The functions have made bytes of its values.
    Made,
}

/// The output functions of the columns that have no wire format of the core.
pub struct OutputFunctions {
    functions: Vec<OutputFunction>,
    /// Where each column of the result is among the functions.
    places: Vec<usize>,
    /// The numbers of these columns in the result, ascending.
    columns: Vec<usize>,
    /// Reads their values; `None` if there are no such columns.
    decoder: Option<Decoder>,
    reader: Option<Reader<'static>>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    progress: Progress,
    /// Where the values and their bytes are made; null before the first row.
    context: pg_sys::MemoryContext,
    /// The functions were found.
    found: bool,
}

impl OutputFunctions {
    /// Those of no columns.
    pub fn none() -> Self {
        Self {
            functions: Vec::new(),
            places: Vec::new(),
            columns: Vec::new(),
            decoder: None,
            reader: None,
            values: Vec::new(),
            nulls: Vec::new(),
            progress: Progress::Unread,
            context: std::ptr::null_mut(),
            found: false,
        }
    }

    /// Those of the columns that have no other format.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(
        columns: &[Column],
        formats: &[WireFormat],
        binary: impl Fn(usize) -> bool,
    ) -> Result<Self, OutOfMemory> {
        let mut wanted = Vec::new();
        for index in (0..columns.len()).filter(|&index| formats[index] == WireFormat::ByServer) {
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
        let function = |&column: &usize| OutputFunction {
            column,
            type_oid: columns[column].type_oid,
            binary: binary(column),
            function: pg_sys::FmgrInfo::default(),
            bytes: std::ptr::null(),
            length: 0,
        };
        Ok(Self {
            functions: Vec::collected(wanted.iter().map(function))?,
            places,
            decoder: Some(Decoder::new(Vec::collected(wanted.iter().map(|&column| columns[column]))?.into())),
            values,
            nulls,
            columns: wanted,
            ..Self::none()
        })
    }

    /// Goes to another chunk of these columns.
    ///
    /// # Errors
    /// There is no memory for where they are in it.
    pub fn open(&mut self, columns: &[Column], chunk: Chunk<'static>) -> Result<(), OutOfMemory> {
        if !self.columns.is_empty() {
            self.reader = Some(Reader::of_some(columns, &self.columns, chunk)?);
        }
        Ok(())
    }

    /// Reads the values of a row of the chunk, unless that is done. True if `call` must make bytes of them.
    ///
    /// # Errors
    /// There is no memory for the values.
    pub fn read(&mut self, row: usize) -> Result<bool, OutOfMemory> {
        if self.progress != Progress::Unread {
            return Ok(false);
        }
        let (Some(reader), Some(decoder)) = (&self.reader, &mut self.decoder) else { return Ok(false) };
        let context = emptied(&mut self.context);
        // SAFETY: a context of its own, which is emptied before the next row.
        let filled = unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let filled = decoder.fill(reader, row, &mut self.values, &mut self.nulls);
            pg_sys::MemoryContextSwitchTo(caller);
            filled
        };
        self.progress = Progress::Read;
        filled.map(|()| true)
    }

    /// Takes the values of a row as the executor gives it, which `call` is to make bytes of.
    pub fn take(&mut self, row: Row<'_>) {
        emptied(&mut self.context);
        for ((value, null), &column) in self.values.iter_mut().zip(&mut self.nulls).zip(&self.columns) {
            (*value, *null) = (row.values()[column], row.nulls()[column]);
        }
        self.progress = Progress::Read;
    }

    /// The next row is another one.
    pub fn pass_row(&mut self) {
        self.progress = Progress::Unread;
    }

    /// Returns true if all functions have been called for the row.
    pub fn were_called(&self) -> bool {
        self.progress == Progress::Made
    }

    /// Gives the memory of the bytes back, and all else that belongs to the columns.
    pub fn end(&mut self) {
        if !self.context.is_null() {
            // SAFETY: made by `emptied`, and used no more.
            unsafe { kept!(pg_sys::MemoryContextDelete(self.context)) };
        }
        *self = Self::none();
    }

    /// Has the functions make bytes of the values that were read, and accepts interrupts. Raises what they raise.
    ///
    /// # Safety
    /// `read` or `take` must have been called, `this` be valid and stay in its place, and the current memory context
    /// outlive it. No frame between here and PostgreSQL may have pending destructors.
    pub unsafe fn call(this: *mut Self) {
        // SAFETY: the caller keeps `this` in its place. Values live until the next row is read; bytes in a context of
        // their own. On an error the server switches to a context of its own.
        unsafe {
            if pg_sys::InterruptPending != 0 {
                direct!(pg_sys::ProcessInterrupts());
            }
            if !(*this).found {
                Self::find(this);
            }
            let caller = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = (*this).context;
            let count = (*this).functions.len();
            let functions = (*this).functions.as_mut_ptr();
            let values = (*this).values.as_ptr();
            let nulls = (*this).nulls.as_ptr();
            for index in 0..count {
                if !*nulls.add(index) {
                    OutputFunction::call(functions.add(index), *values.add(index));
                }
            }
            pg_sys::CurrentMemoryContext = caller;
            (*this).progress = Progress::Made;
        }
    }

    /// Finds the functions. Raises as the server does when there is none, and at the same moment, when there is a row
    /// to send: a result without rows needs none.
    ///
    /// # Safety
    /// As `call`.
    unsafe fn find(this: *mut Self) {
        // SAFETY: the caller keeps `this` in its place: a FmgrInfo stays where it is as long as it is used.
        unsafe {
            let count = (*this).functions.len();
            let functions = (*this).functions.as_mut_ptr();
            for index in 0..count {
                let own = functions.add(index);
                let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
                let (oid, varlena) = (&raw mut function, &raw mut is_varlena);
                if (*own).binary {
                    direct!(pg_sys::getTypeBinaryOutputInfo((*own).type_oid, oid, varlena));
                } else {
                    direct!(pg_sys::getTypeOutputInfo((*own).type_oid, oid, varlena));
                }
                direct!(pg_sys::fmgr_info(function, &raw mut (*own).function));
            }
            (*this).found = true;
        }
    }
}

/// An empty context for what is made of a row: the one that was made before, or a new one below the current context.
fn emptied(context: &mut pg_sys::MemoryContext) -> pg_sys::MemoryContext {
    // SAFETY: the current context is a live one; a context that was made here is live until `OutputFunctions::end`.
    unsafe {
        if context.is_null() {
            *context = context_below(pg_sys::CurrentMemoryContext, c"pg_arrow_cache values");
        } else {
            kept!(pg_sys::MemoryContextReset(*context));
        }
        *context
    }
}

impl OutputFunction {
    /// Has the server make the bytes of a value.
    ///
    /// # Safety
    /// As `OutputFunctions::call`; the value must be one of the column's type.
    unsafe fn call(this: *mut Self, value: pg_sys::Datum) {
        // SAFETY: the function is that of the value's type, and the caller keeps it in its place. What a send function
        // gives is a plain varlena, what an output function gives and what is converted end with a NUL.
        unsafe {
            let function = &raw mut (*this).function;
            if (*this).binary {
                let sent: *mut pg_sys::varlena = direct!(pg_sys::SendFunctionCall(function, value));
                let word = sent.cast::<u32>().read_unaligned();
                (*this).bytes = sent.cast::<u8>().add(varlena::HEADER);
                (*this).length = (word >> 2) as usize - varlena::HEADER;
                return;
            }
            let text: *mut c_char = direct!(pg_sys::OutputFunctionCall(function, value));
            let length = CStr::from_ptr(text).count_bytes();
            let converted: *mut c_char = direct!(pg_sys::pg_server_to_client(text, length as i32));
            (*this).bytes = converted.cast();
            (*this).length =
                if std::ptr::eq(converted, text) { length } else { CStr::from_ptr(converted).count_bytes() };
        }
    }
}

impl Server for OutputFunctions {
    fn value(&self, column: usize) -> &[u8] {
        let function = &self.functions[self.places[column]];
        debug_assert_eq!(function.column, column);
        // SAFETY: `call` has set them for the current row, whose context is not emptied before the next.
        unsafe { std::slice::from_raw_parts(function.bytes, function.length) }
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
