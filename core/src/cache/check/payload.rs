//! What entries own in the arena: the pieces of memory of each record add up to its bytes, lie in the arena, and no two
//! of them share a byte. Read without a lock and without pins: it counts if nobody was in a step meanwhile.

use super::finding::Finding;
use super::look::{Look, Processes};
use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::Entry;
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::payload::{CHUNK_OVERHEAD, ChunkHeader, HeadShape, chunk_header};
use crate::cache::rendition::{HEAD, RenditionHead, head_at};
use crate::room::OutOfMemory;

const PART: &str = "arena";
/// Most renditions of an entry that are walked: it never has as many.
const MOST_RENDITIONS: u32 = 100;

/// What a chain of pieces comes to.
struct Chain {
    pieces: u32,
    bytes: u64,
    last: ArenaPtr,
}

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Returns true if a record owns what it says, or nothing if it is free.
    pub(super) fn check_payload(&mut self, index: u32, may_own: bool) -> Result<(), OutOfMemory> {
        let entry = self.store.entry(index);
        let bytes = entry.bytes.load(Relaxed);
        let (head, first) = (ArenaPtr(entry.head.load(Relaxed)), ArenaPtr(entry.first_chunk.load(Relaxed)));
        if !may_own {
            if bytes != 0 || entry.is_in_file() || !head.is_null() || !first.is_null() || !entry.renditions().is_null()
            {
                self.findings.add(Finding::of(PART, "a free record owns memory").at("entry", index).not(bytes, 0u32));
            }
            return Ok(());
        }
        let of_head = self.head_bytes(index, entry, head)?;
        let chunks = self.walk_pieces(index, first, entry.chunk_count.load(Relaxed))?;
        let of_renditions = self.rendition_bytes(index, entry)?;
        let (Some(of_head), Some(chunks), Some(of_renditions)) = (of_head, chunks, of_renditions) else {
            return Ok(());
        };
        let mut compare = |what, found: u64, expected: u64| {
            self.findings.compare(Finding::of(PART, what).at("entry", index), found, expected);
        };
        compare("the bytes of an entry are wrong", bytes, of_head + chunks.bytes + of_renditions);
        let in_arena = if entry.is_in_file() { 0 } else { entry.chunk_count.load(Relaxed) };
        compare("the number of chunks is wrong", in_arena.into(), chunks.pieces.into());
        compare("the last chunk is another one", entry.last_chunk.load(Relaxed), chunks.last.0);
        Ok(())
    }

    /// Bytes of the head; `None` if it cannot be there.
    fn head_bytes(&mut self, index: u32, entry: &Entry, head: ArenaPtr) -> Result<Option<u64>, OutOfMemory> {
        if head.is_null() {
            if entry.life().is_published() {
                self.findings.add(Finding::of(PART, "a published entry has no head").at("entry", index));
            }
            return Ok(Some(0));
        }
        let count = |field: &crate::atomics::AtomicU32| field.load(Relaxed) as usize;
        let shape =
            HeadShape::new(count(&entry.dependency_count), count(&entry.descriptor_len), count(&entry.text_len));
        Ok(self.claim(index, head, shape.total)?.then_some(shape.total as u64))
    }

    /// Bytes of all renditions; `None` if one of them cannot be there.
    fn rendition_bytes(&mut self, index: u32, entry: &Entry) -> Result<Option<u64>, OutOfMemory> {
        let (mut place, mut count, mut sum) = (entry.renditions(), 0, 0);
        while !place.is_null() {
            if count == MOST_RENDITIONS {
                self.findings.add(Finding::of(PART, "the renditions of an entry have no end").at("entry", index));
                return Ok(None);
            }
            count += 1;
            if !self.claim(index, place, HEAD)? {
                return Ok(None);
            }
            // SAFETY: `claim` has seen that as many bytes of the arena lie there as a head has, and aligned. Its fields
            // are atomics of any value.
            let head: &RenditionHead = unsafe { head_at(&self.store.arena, place) };
            let Some(blocks) = self.walk_pieces(index, head.first(), u32::MAX)? else { return Ok(None) };
            let finding = Finding::of("renditions", "the bytes of a rendition are wrong").at("entry", index);
            self.findings.compare(finding, head.bytes(), HEAD as u64 + blocks.bytes);
            let finding = Finding::of("renditions", "the last block is another one").at("entry", index);
            self.findings.compare(finding, head.last().0, blocks.last.0);
            sum += head.bytes();
            place = head.next();
        }
        Ok(Some(sum))
    }

    /// Walks a chain of chunks, or of blocks of messages; `None` if it leads astray. `most` pieces and one more are
    /// walked.
    fn walk_pieces(&mut self, index: u32, first: ArenaPtr, most: u32) -> Result<Option<Chain>, OutOfMemory> {
        let mut chain = Chain { pieces: 0, bytes: 0, last: ArenaPtr::NULL };
        let mut place = first;
        while !place.is_null() {
            // No chain has more pieces than have room in the arena.
            let too_many = chain.pieces > most || chain.bytes > self.store.layout.arena_len as u64;
            if too_many || !self.is_in_arena(place, size_of::<ChunkHeader>()) {
                self.findings.add(Finding::of(PART, "a chain of memory leads astray").at("entry", index));
                return Ok(None);
            }
            // SAFETY: as many bytes of the arena lie there as a header has, and aligned. Its fields are atomics of any
            // value.
            let header = unsafe { chunk_header(self.store.arena.address(place)) };
            let bytes = header.len().saturating_add(CHUNK_OVERHEAD);
            if !self.claim(index, place, bytes)? {
                return Ok(None);
            }
            chain = Chain { pieces: chain.pieces + 1, bytes: chain.bytes + bytes as u64, last: place };
            place = header.next();
            self.pause_at(chain.pieces);
        }
        Ok(Some(chain))
    }

    /// Notes a piece of memory of an entry; false if it cannot lie there.
    fn claim(&mut self, index: u32, place: ArenaPtr, bytes: usize) -> Result<bool, OutOfMemory> {
        if !self.is_in_arena(place, bytes) {
            let finding = Finding::of(PART, "an entry owns memory that does not lie in the arena");
            self.findings.add(finding.at("entry", index));
            return Ok(false);
        }
        self.blocks.add(self.store.arena.address(place).addr() - self.store.arena_range().0, bytes)?;
        Ok(true)
    }

    fn is_in_arena(&self, place: ArenaPtr, bytes: usize) -> bool {
        let (start, len) = self.store.arena_range();
        let at = self.store.arena.address(place).addr().wrapping_sub(start);
        at < len && bytes <= len - at && at.is_multiple_of(8)
    }
}
