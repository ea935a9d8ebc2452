//! Writing an image. No other process is at work.

use super::piece::{Kind, Writer};
use super::{Facts, Origin, Part, bytes_of};
use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::EntryKind;
use crate::cache::memory::{Arena, Locks};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use crate::cache::view::EntryView;
use crate::room::RoomyVec;
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;

/// Words of one piece. Those in which all are zero are left out: memory is zero when it is loaded.
pub(super) const WORDS: usize = 8192;

/// Bits of the word that says of which kind an entry is.
pub(super) const IS_FRAGMENT: u64 = 1;
pub(super) const NEEDS_PLAN: u64 = 2;
pub(super) const KEEPS_OUTDATED: u64 = 4;

/// Words with which the description of an entry begins.
pub(super) const FIELDS: usize = 17;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Writes an image, with those of the current entries that `keeps` accepts. No other process is at work, or will be
    /// before the block is gone. `now` is in microseconds.
    ///
    /// # Errors
    /// It could not be written whole, or something is in the middle of a change.
    pub fn save(
        &self,
        to: &mut impl Write,
        origin: &Origin,
        keeps: impl Fn(&EntryView<'_>) -> bool,
        now: i64,
    ) -> io::Result<()> {
        if !self.versions().are_at_rest() || !self.registry().is_at_rest() {
            return Err(io::Error::other("a version is being changed"));
        }
        let mut writer = Writer::new(to);
        let parts = self.saved_parts();
        let facts = Facts {
            origin: *origin,
            saved_at: now,
            seed: self.seed(),
            sizes: parts.each_ref().map(|part| part.words as u64),
        };
        writer.piece(Kind::Facts, bytes_of(facts.to_words()).as_flattened())?;
        let mut buffer = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            self.save_part(&mut writer, number, part, &mut buffer)?;
        }
        let mut outcome = Ok(());
        self.visit(|pin| {
            if outcome.is_ok() && self.is_current(pin) && self.view(pin).file().is_none() && keeps(&self.view(pin)) {
                outcome = self.save_entry(&mut writer, pin, &mut buffer);
            }
        });
        outcome?;
        writer.piece(Kind::End, &[])
    }

    fn save_part(
        &self,
        writer: &mut Writer<'_, impl Write>,
        number: usize,
        part: &Part,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let is_zero = |words: &[AtomicU64]| words.iter().all(|word| word.load(Relaxed) == 0);
        for (place, words) in self.words_of(part).chunks(WORDS).enumerate().filter(|(_, words)| !is_zero(words)) {
            buffer.clear();
            add(buffer, bytes_of([number as u64, (place * WORDS) as u64]).as_flattened())?;
            for word in words {
                add(buffer, &word.load(Relaxed).to_le_bytes())?;
            }
            writer.piece(Kind::Words, buffer)?;
        }
        Ok(())
    }

    fn save_entry(&self, writer: &mut Writer<'_, impl Write>, pin: &Pin, buffer: &mut Vec<u8>) -> io::Result<()> {
        let (view, entry) = (self.view(pin), self.entry(pin.entry().0));
        let key = entry.key().0;
        let is = |condition: bool, bit: u64| if condition { bit } else { 0 };
        let (dependencies, descriptor, text) = (view.dependencies(), view.descriptor(), view.text());
        let fields: [u64; FIELDS] = [
            key.hi,
            key.lo,
            is(view.kind() == EntryKind::Fragment, IS_FRAGMENT)
                | is(view.needs_plan(), NEEDS_PLAN)
                | is(entry.keeps_outdated(), KEEPS_OUTDATED),
            view.database().into(),
            view.role().into(),
            view.plan_cost().to_bits(),
            view.rows(),
            view.columns().into(),
            view.execution_micros(),
            view.created_at().cast_unsigned(),
            view.expires_at().cast_unsigned(),
            view.known_good().cast_unsigned(),
            entry.catalogs(),
            view.chunk_count().into(),
            dependencies.len() as u64,
            descriptor.len() as u64,
            text.len() as u64,
        ];
        buffer.clear();
        add(buffer, bytes_of(fields).as_flattened())?;
        for on in dependencies {
            add(buffer, bytes_of([u64::from(on.slot.0) << 32 | u64::from(on.relation), on.version]).as_flattened())?;
        }
        add(buffer, descriptor)?;
        add(buffer, text)?;
        writer.piece(Kind::Entry, buffer)?;
        view.chunks().try_for_each(|chunk| writer.piece(Kind::Chunk, chunk))
    }
}

fn add(buffer: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    buffer.add_all(bytes).map_err(|_| io::ErrorKind::OutOfMemory.into())
}
