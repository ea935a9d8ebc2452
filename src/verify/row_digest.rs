//! Rows, executed or stored, as a digest. Pure computation over the values of one row after the other.
//!
//! Both kinds of rows are hashed alike, value by value. The type of the column decides what is hashed:
//!
//! | type | what is hashed |
//! |---|---|
//! | passed by value | the bytes of its length: the datum's other bytes mean nothing |
//! | float4, float8 | the same, with one pattern for every NaN: which one arithmetic yields depends on the machine |
//! | numeric, jsonb | its text, since one number can be laid out in several ways |
//! | name, cstring | the characters up to the first NUL |
//! | built-in, of variable length | the body, detoasted |
//! | other types of variable length | its text: a composite value carries traces of the tuple it was copied from |
//! | other types of fixed length | its bytes |

use std::ffi::CStr;

use arrow_cache_core::formats::numeric;
use arrow_cache_core::{Digest, HashBuffer, OutOfMemory, Room, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::column::{Column, Kind};
use crate::pg::backend;
use crate::pg::memory_context::context_below;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::row::Value;
use crate::pg::type_catalog::output_function;
use crate::pg::varlena::Varlena;
use crate::serve::Rows;
use crate::shmem;

/// After this many stored rows interrupts are accepted and memory is given back.
const ROWS_PER_PAUSE: u64 = 1024;

/// How the values of a column are hashed.
#[derive(Clone, Copy)]
enum HashedAs {
    /// That many bytes of the datum.
    Word(u32),
    Float32,
    Float64,
    /// That many bytes behind the datum.
    Fixed(usize),
    /// Characters up to a NUL.
    CString,
    Numeric,
    /// The body of a varlena.
    Body,
    /// What this output function gives.
    Text(pg_sys::Oid),
}

impl HashedAs {
    fn of(column: &Column) -> Self {
        match column.kind {
            Kind::Float32 => return Self::Float32,
            Kind::Float64 => return Self::Float64,
            Kind::Numeric => return Self::Numeric,
            Kind::Name | Kind::FlatCString => return Self::CString,
            _ if column.base_type == pg_sys::NAMEOID => return Self::CString,
            _ if column.base_type == pg_sys::JSONBOID => return Self::Text(pg_sys::Oid::from(pg_sys::F_JSONB_OUT)),
            _ if column.by_value => return Self::Word(column.length as u32),
            _ if column.length > 0 => return Self::Fixed(column.length as usize),
            _ => {}
        }
        // SAFETY: reads the catalog entry of a type that a running query has.
        let is_row = || unsafe { kept!(pg_sys::type_is_rowtype(column.type_oid)) };
        if column.type_oid.to_u32() < FIRST_UNPINNED_OID && !is_row() {
            return Self::Body;
        }
        Self::Text(output_function(column.type_oid))
    }

    /// Hashes one value.
    ///
    /// # Errors
    /// There is no memory for its text.
    ///
    /// # Safety
    /// `datum` must be a value of the column, not NULL.
    unsafe fn hash(self, datum: pg_sys::Datum, hasher: &mut HashBuffer, text: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        let word = datum.value() as u64;
        // SAFETY: the caller gives a value of the column, which `of` has chosen the branch for. What a function makes
        // of the value lives in the current memory context. A varlena is detoasted without a limit, so only memory can
        // be missing.
        unsafe {
            let body = || Varlena::of(Value::of(datum)).whole_body();
            match self {
                Self::Word(length) => hasher.u64(word & u64::MAX >> (64 - 8 * length)),
                Self::Float32 => {
                    let number = f32::from_bits(word as u32);
                    hasher.u32(if number.is_nan() { f32::NAN } else { number }.to_bits());
                }
                Self::Float64 => {
                    let number = f64::from_bits(word);
                    hasher.u64(if number.is_nan() { f64::NAN } else { number }.to_bits());
                }
                Self::Fixed(length) => hasher.part(std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), length)),
                Self::CString => hasher.part(CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()),
                Self::Numeric => {
                    text.clear();
                    let body = body()?;
                    text.make_room(numeric::text_bound(body))?;
                    // A number without a text cannot come from the cache, so its bytes will do.
                    hasher.part(if numeric::to_text(body, text) { text } else { body });
                }
                Self::Body => hasher.part(body()?),
                Self::Text(function) => {
                    let output = kept!(pg_sys::OidOutputFunctionCall(function, datum));
                    hasher.part(CStr::from_ptr(output).to_bytes());
                    kept!(pg_sys::pfree(output.cast()));
                }
            }
        }
        Ok(())
    }
}

/// A digest of rows in the making.
pub struct RowDigest {
    /// One per column.
    hashed_as: Vec<HashedAs>,
    /// Reused for the text of numerics.
    text: Vec<u8>,
    /// Reused for the values of a row.
    row: HashBuffer,
    digest: Digest,
}

impl RowDigest {
    /// A digest for rows of these columns.
    pub fn new(columns: &[Column]) -> Self {
        let hashed_as = columns.iter().map(HashedAs::of).collect();
        Self { hashed_as, text: Vec::new(), row: HashBuffer::new(), digest: Digest::default() }
    }

    /// The digest of the rows so far.
    pub fn finish(&self) -> Digest {
        self.digest
    }

    /// The digest of all rows of an entry that were not read yet. Accepts interrupts.
    ///
    /// # Errors
    /// There is no memory for reading them.
    pub fn of_stored(rows: &mut Rows) -> Result<Digest, OutOfMemory> {
        let mut digest = Self::new(rows.columns());
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        values.lengthen(digest.hashed_as.len(), pg_sys::Datum::from(0))?;
        nulls.lengthen(digest.hashed_as.len(), false)?;
        // SAFETY: the values are those of the columns that the digest was made for. What output functions leave behind
        // goes with the context; after an error, with its parent.
        unsafe {
            let scratch = context_below(pg_sys::CurrentMemoryContext, c"pg_arrow_cache verify");
            let caller = pg_sys::MemoryContextSwitchTo(scratch);
            let mut added = Ok(());
            while added.is_ok() {
                match rows.next(&mut values, &mut nulls) {
                    Ok(true) => added = digest.add(&values, &nulls),
                    Ok(false) => break,
                    Err(OutOfMemory) => added = Err(OutOfMemory),
                }
                if digest.digest.rows().is_multiple_of(ROWS_PER_PAUSE) {
                    backend::accept_interrupts();
                    kept!(pg_sys::MemoryContextReset(scratch));
                }
            }
            pg_sys::MemoryContextSwitchTo(caller);
            kept!(pg_sys::MemoryContextDelete(scratch));
            added.map(|()| digest.digest)
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There is no memory for the values.
    ///
    /// # Safety
    /// `values` and `nulls` must hold one value per column.
    pub unsafe fn add(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Result<(), OutOfMemory> {
        let hasher = &mut self.row;
        hasher.clear();
        hasher.seed(shmem::seed().unwrap_or(0));
        for ((column, value), is_null) in self.hashed_as.iter().zip(values).zip(nulls) {
            hasher.u8(u8::from(*is_null));
            if !is_null {
                // SAFETY: the value is one of this column, and is not NULL.
                unsafe { column.hash(*value, hasher, &mut self.text)? };
            }
        }
        if !hasher.is_complete() {
            return Err(OutOfMemory);
        }
        self.digest.add(hasher.finish());
        Ok(())
    }
}
