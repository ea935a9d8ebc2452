//! Renditions of entries: the messages of all rows as a client with certain formats and settings gets them, made once
//! and then sent as they lie in shared memory (core, `cache/renditions.rs`). A rendition belongs to its entry, so it
//! holds for as long as that does: what else decides on its bytes is in its key, below for rows, in
//! `export/ipc_stream.rs` for batches. State of one run of this backend.

use arrow_cache_core::formats::wire::WireFormat;
use arrow_cache_core::{BlockPlace, Hash128, Pin};
use pgrx::pg_sys;

use super::client_formats::ClientFormats;
use super::column_formats::OutputSettings;
use crate::arrow::column::Column;
use crate::pg::plain_output::is_plain;
use crate::pg::{backend, session_zone};
use crate::shmem;

/// Fewer values than these are made into messages more quickly than a rendition is found.
const FEWEST_VALUES: u64 = 16;
/// A result with more bytes gets a rendition when it has been served once before.
const SMALL: u64 = 64 * 1024;
/// Most columns of a result that gets one: the formats of all of them are in its key.
const MOST_COLUMNS: usize = 256;
/// Longest name of a time zone.
const LONGEST_ZONE: usize = pg_sys::TZ_STRLEN_MAX as usize;

/// Returns true if a rendition may serve a run that wants so many rows from the first on, or be made of it.
pub fn are_wanted(pin: &Pin, wanted: u64) -> bool {
    let Some(store) = shmem::store() else { return false };
    let view = store.view(pin);
    wanted >= view.rows() && view.rows().saturating_mul(u64::from(view.columns())) >= FEWEST_VALUES
}

/// The key of the rendition for a client with these formats, under the present settings: all that decides on the bytes
/// of an entry's values beside the entry. It is hashed from the number of the client's encoding on; the keys of exports
/// begin with another number. `None` if the result has too many columns.
pub fn key(settings: &OutputSettings, columns: usize, formats: &ClientFormats<'_>) -> Option<Hash128> {
    const WORDS: usize = size_of::<[i32; 6]>();
    let mut bytes = [0u8; WORDS + MOST_COLUMNS + LONGEST_ZONE];
    let zone = session_zone::name();
    if columns > MOST_COLUMNS || zone.len() > LONGEST_ZONE {
        return None;
    }
    bytes[..WORDS].copy_from_slice(settings.set().map(i32::to_le_bytes).as_flattened());
    for (column, byte) in bytes[WORDS..WORDS + columns].iter_mut().enumerate() {
        *byte = u8::from(formats.is_binary(column)) + 2 * formats.shape as u8;
    }
    // The number of columns is that of the entry, so the name begins where all keys of the entry have it.
    let end = WORDS + columns + zone.len();
    bytes[WORDS + columns..end].copy_from_slice(zone);
    Some(Hash128::of(&bytes[..end]))
}

/// Returns true if the entry and the key above determine the messages of these columns, in text and in binary.
pub fn are_determined(settings: &OutputSettings, columns: &[Column]) -> bool {
    let is_ours =
        |column| [false, true].iter().all(|binary| settings.wire_format(column, *binary) != WireFormat::ByServer);
    settings.keeps_text() && columns.iter().all(|column| is_ours(column) || is_plain(column.base_type))
}

/// The first block of the rendition of this key, if there is one.
pub fn find(pin: &Pin, key: Hash128) -> Option<BlockPlace> {
    shmem::store()?.rendition(pin, key)
}

/// A block as start and length, and the next one.
pub fn block(pin: &Pin, place: BlockPlace) -> (*const u8, usize, Option<BlockPlace>) {
    let Some(store) = shmem::store() else { return (std::ptr::null(), 0, None) };
    let (messages, next) = store.block(pin, place);
    (messages.as_ptr(), messages.len(), next)
}

/// A rendition that is being made of what is sent. Given up when it is dropped, which is before the entry is let go.
pub struct Draft {
    draft: Option<arrow_cache_core::Draft>,
    rows: u64,
}

impl Draft {
    /// Begins one, if the entry earns it, and not in a transaction that may have written. Whatever decides on the
    /// messages beside the entry must be in the key.
    pub fn begin(pin: &Pin, key: Hash128) -> Option<Self> {
        let store = shmem::store()?;
        let view = store.view(pin);
        let is_earned = view.bytes() <= SMALL || view.hits() > 1;
        if !is_earned || may_have_written() {
            return None;
        }
        // Output functions of enums take labels from the caches of this backend. Whoever renames one has told of it
        // before an answer rests on the new name (`definers`), and outdates the answers before.
        // SAFETY: called inside a transaction.
        unsafe { kept!(pg_sys::AcceptInvalidationMessages()) };
        let rows = view.rows();
        store.begin_rendition(pin, key).map(|draft| Self { draft: Some(draft), rows })
    }

    /// Adds whole messages, given in parts, as a block. False if there is no room for them: there will be no rendition.
    pub fn append(&mut self, parts: &[&[u8]]) -> bool {
        let (Some(store), Some(draft)) = (shmem::store(), &self.draft) else { return false };
        let is_added = parts.iter().all(|part| part.is_empty()) || store.append_block(draft, parts);
        if !is_added && let Some(draft) = self.draft.take() {
            store.refuse_rendition(draft);
        }
        is_added
    }

    /// Lets others use it, if so many rows are all of the entry. Not in a transaction that may have written: what it
    /// has seen of definitions may be undone.
    pub fn publish(mut self, rows: u64) {
        if rows == self.rows
            && !may_have_written()
            && let (Some(store), Some(draft)) = (shmem::store(), self.draft.take())
        {
            store.publish_rendition(draft);
        }
    }
}

/// Returns true if the transaction has an id, without which it cannot have changed a definition.
fn may_have_written() -> bool {
    backend::top_transaction_id() != 0
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let (Some(store), Some(draft)) = (shmem::store(), self.draft.take()) {
            store.give_up_rendition(draft);
        }
    }
}
