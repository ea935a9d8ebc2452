//! The files of answers that had to leave shared memory: one for each, in a folder of the server's temporary files.
//! Core says which answers (`core/src/cache/files.rs`), and what a file consists of (`core/src/cache/file_format.rs`).
//!
//! A file is written by the process that needs the room, and read by those that have pinned its entry, piece by piece.
//! It is opened for each piece, so no session keeps descriptors. No file outlives the shared memory that tells of it.
//! The server removes the folder when it starts, and base backups leave it out, by the names of both folders. No lock.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use arrow_cache_core::cache::file_format::{
    FILE_HEAD, FilePlace, FileTable, first_offset, next_offset, places, table_bytes,
};
use arrow_cache_core::{FileLimits, Hash128, OutOfMemory, RoomyVec};

use crate::arrow::chunk::ChunkBytes;
use crate::pg::{backend, server};
use crate::settings;

/// Below the data directory, which is the current one (PG_TEMP_FILES_DIR in storage/fd.h).
const SERVERS_FOLDER: &str = "base/pgsql_tmp";
/// Begins with what the names of temporary files begin with (PG_TEMP_FILE_PREFIX).
const FOLDER: &str = "base/pgsql_tmp/pgsql_tmp.arrow_cache";

/// Least bytes of a file: smaller answers are too many for a folder, and are sooner computed again.
const LEAST: u64 = 1 << 20;

/// Why something could not be read from a file.
#[derive(Debug)]
pub enum Unreadable {
    /// The system says so.
    Failed(io::Error),
    /// It is not what was written.
    Damaged,
    /// There is no memory for it.
    OutOfMemory,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Failed(error),
        }
    }
}

impl From<OutOfMemory> for Unreadable {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// The name of a file. Made in place, since memory may be short.
pub struct Name {
    bytes: [u8; 64],
    len: usize,
}

impl Name {
    /// That of the file of this number.
    pub fn of(number: u64) -> Self {
        let mut bytes = [0; 64];
        let mut rest = &mut bytes[..];
        // It is shorter than that.
        let _ = write!(rest, "{FOLDER}/{number:016x}");
        let len = 64 - rest.len();
        Self { bytes, len }
    }

    /// As a path below the data directory.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes[..self.len]))
    }
}

/// Which files there may be.
pub fn limits() -> FileLimits {
    FileLimits { least: LEAST, most: settings::disk_bytes() }
}

/// Removes all files. Called by the postmaster when no other process is left.
pub fn remove_all() {
    // What stays has a number that is used again: its writer then finds it, and leaves it.
    let _ = fs::remove_dir_all(FOLDER);
}

/// Removes a file.
pub fn remove(number: u64) {
    // What cannot be removed is never read again; emptied, it takes no room.
    let name = Name::of(number);
    let _ = fs::remove_file(name.path())
        .or_else(|_| OpenOptions::new().write(true).truncate(true).open(name.path()).map(drop));
}

/// Writes so many chunks to the file of this number. Returns true if it is whole; else none is left, unless somebody
/// else has written it. Gives up when an interrupt is to be served: raises nothing.
pub fn write(number: u64, count: usize, chunks: &mut dyn Iterator<Item = &[u8]>) -> bool {
    let name = Name::of(number);
    let file = match created(name.path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => make_folders().and_then(|()| created(name.path())),
        created => created,
    };
    let Ok(file) = file else { return false };
    let is_whole = write_chunks(&file, number, count, chunks).is_ok();
    if !is_whole {
        remove(number);
    }
    is_whole
}

fn created(path: &Path) -> io::Result<File> {
    // SAFETY: a global that does not change after the postmaster's start.
    let mode = unsafe { server::pg_file_create_mode }.unsigned_abs();
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

fn make_folders() -> io::Result<()> {
    // SAFETY: as in `created`.
    let mode = unsafe { server::pg_dir_create_mode }.unsigned_abs();
    for folder in [SERVERS_FOLDER, FOLDER] {
        match DirBuilder::new().mode(mode).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn write_chunks(file: &File, number: u64, count: usize, chunks: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
    let no_memory = |_| io::Error::from(ErrorKind::OutOfMemory);
    let mut table = FileTable::default();
    let mut offset = first_offset(count);
    for chunk in chunks {
        if backend::is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        table.add(chunk).map_err(no_memory)?;
        file.write_all_at(chunk, offset)?;
        offset = next_offset(offset, chunk.len());
    }
    file.write_all_at(&table.to_bytes(number).map_err(no_memory)?, 0)
}

/// The chunks of a pinned entry in its file, of which one at a time is in memory.
pub struct FileChunks {
    number: u64,
    places: Vec<FilePlace>,
    /// Has room for the longest chunk, and never moves.
    buffer: ChunkBytes,
    /// The chunk in it.
    read: Option<usize>,
}

impl FileChunks {
    /// Opens the file of this number, and reads its first chunk.
    ///
    /// # Errors
    /// It is not what was written, or cannot be read.
    pub fn open(number: u64) -> Result<Self, Unreadable> {
        let file = File::open(Name::of(number).path())?;
        let mut head = [0; FILE_HEAD];
        file.read_exact_at(&mut head, 0)?;
        let len = table_bytes(&head, number).ok_or(Unreadable::Damaged)?;
        // A table that is damaged may ask for any memory.
        if len as u64 > file.metadata()?.len() {
            return Err(Unreadable::Damaged);
        }
        let mut table = Vec::new();
        table.lengthen(len, 0)?;
        file.read_exact_at(&mut table, FILE_HEAD as u64)?;
        let places = places(&head, &table).ok_or(Unreadable::Damaged)?;
        let longest = places.iter().map(|place| place.len).max().unwrap_or(0);
        let mut chunks = Self { number, places, buffer: ChunkBytes::new(longest)?, read: None };
        chunks.read(0)?;
        Ok(chunks)
    }

    /// The number of the file.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.places.iter().map(|place| place.len).sum()
    }

    /// Reads a chunk, in the place of the one before, unless it is that one. `None` if there is none of this number.
    ///
    /// # Errors
    /// As `open`.
    pub fn read(&mut self, chunk: usize) -> Result<Option<&[u8]>, Unreadable> {
        let Some(FilePlace { offset, len, hash }) = self.places.get(chunk).copied() else { return Ok(None) };
        let bytes = &mut self.buffer.as_mut_slice()[..len];
        if self.read.take() != Some(chunk) {
            File::open(Name::of(self.number).path())?.read_exact_at(bytes, offset)?;
            if Hash128::of(bytes) != hash {
                return Err(Unreadable::Damaged);
            }
        }
        self.read = Some(chunk);
        Ok(Some(bytes))
    }
}
