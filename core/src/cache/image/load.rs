//! Reading an image into an empty store, which no other process uses yet.

use super::piece::{Broken, Kind, Label, Reader};
use super::save::{FIELDS, IS_FRAGMENT, KEEPS_OUTDATED, NEEDS_PLAN, WORDS};
use super::{Facts, Loaded, Origin, Unusable, words_at};
use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::Dependency;
use crate::cache::fill::{Fill, NewEntry, NewKind};
use crate::cache::key::CacheKey;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use crate::hash::Hash128;
use crate::room::RoomyVec;
use crate::versions::slots::SlotId;
use std::io::Read;

impl From<Broken> for Unusable {
    fn from(_: Broken) -> Self {
        Unusable::Damaged
    }
}

/// An entry as its description has it. What it borrows lies in a buffer.
struct Described<'a> {
    key: CacheKey,
    chunks: u64,
    new: NewEntry<'a>,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Loads an image that was saved under the same `origin`, `now` being the time in microseconds. A damaged piece
    /// costs the entry that it belongs to.
    ///
    /// # Errors
    /// The image is of no use to this store, which must be laid out anew: a part of it may have been loaded.
    pub fn load(&self, from: &mut impl Read, origin: &Origin, now: i64) -> Result<Loaded, Unusable> {
        let mut reader = Reader::new(from);
        let facts = read_facts(&mut reader)?;
        if facts.origin.data != origin.data {
            return Err(Unusable::OtherData);
        }
        if facts.origin.software != origin.software {
            return Err(Unusable::OtherSoftware);
        }
        if facts.saved_at > now {
            return Err(Unusable::ClockWentBack);
        }
        let label = self.load_parts(&mut reader, &facts)?;
        self.set_seed(facts.seed);
        let mut loaded = Loaded::default();
        loaded.is_cut = self.load_entries(&mut reader, label, &mut loaded, now).is_err();
        // Those that are there now: some may have had to make room for others that came later.
        self.for_each(|entry| (loaded.entries, loaded.bytes) = (loaded.entries + 1, loaded.bytes + entry.bytes()));
        loaded.lost = loaded.lost.saturating_sub(loaded.entries);
        Ok(loaded)
    }

    /// Loads all parts, and returns the label of the first piece behind them. It is whole, so no piece of a part is
    /// missing.
    fn load_parts(&self, reader: &mut Reader<'_, impl Read>, facts: &Facts) -> Result<Label, Unusable> {
        let parts = self.saved_parts();
        let has_size = |number: usize| facts.sizes[number] == parts[number].words as u64;
        if (0..parts.len()).any(|number| parts[number].is_needed && !has_size(number)) {
            return Err(Unusable::OtherSize);
        }
        loop {
            let label = reader.label()?;
            if label.kind != Kind::Words {
                return Ok(label);
            }
            if label.len > (WORDS as u64 + 2) * 8 {
                return Err(Unusable::Damaged);
            }
            let content = reader.content(&label)?.ok_or(Unusable::Damaged)?;
            let ([number, first], words) = words_at(content).ok_or(Unusable::Damaged)?;
            let (number, first) = (number as usize, first as usize);
            let part = parts.get(number).ok_or(Unusable::Damaged)?;
            if !has_size(number) {
                continue;
            }
            let (words, _) = words.as_chunks();
            let places = self.words_of(part).get(first..).unwrap_or_default();
            places.iter().zip(words).for_each(|(place, word)| place.store(u64::from_le_bytes(*word), Relaxed));
        }
    }

    /// Loads all entries, beginning with the piece of this label. Counts all of them as lost.
    fn load_entries(
        &self,
        reader: &mut Reader<'_, impl Read>,
        first: Label,
        loaded: &mut Loaded,
        now: i64,
    ) -> Result<(), Broken> {
        let mut label = first;
        let mut description = Vec::new();
        loop {
            match label.kind {
                Kind::End => return Ok(()),
                // Of an entry that could not be loaded.
                Kind::Chunk => reader.pass(&label)?,
                Kind::Facts | Kind::Words => return Err(Broken),
                Kind::Entry => {
                    description.clear();
                    let whole = reader.content(&label)?.filter(|content| description.add_all(content).is_ok());
                    loaded.lost += 1;
                    if whole.is_some() {
                        self.load_entry(reader, &description, now)?;
                    }
                }
            }
            label = reader.label()?;
        }
    }

    /// Loads one entry, whose chunks come next, unless it is damaged or finds no room.
    fn load_entry(&self, reader: &mut Reader<'_, impl Read>, description: &[u8], now: i64) -> Result<(), Broken> {
        let mut dependencies = Vec::new();
        let Some(Described { key, chunks, new }) = described(description, &mut dependencies) else { return Ok(()) };
        if !new.dependencies.iter().all(|on| self.versions().version(on.slot) == on.version) {
            return Ok(());
        }
        let Ok(mut fill) = self.reserve(now) else { return Ok(()) };
        // What is worth more stays if this store is smaller.
        fill.compete();
        fill.note_time(new.execution_micros);
        let are_whole = self.load_chunks(reader, &mut fill, chunks, now);
        if are_whole != Ok(true) {
            self.abandon(fill);
            return are_whole.map(drop);
        }
        if let Ok(pin) = self.publish(fill, key, new, now) {
            self.unpin(pin);
        }
        Ok(())
    }

    /// Loads the chunks of an entry. Returns true if all are whole and have room.
    fn load_chunks(
        &self,
        reader: &mut Reader<'_, impl Read>,
        fill: &mut Fill,
        chunks: u64,
        now: i64,
    ) -> Result<bool, Broken> {
        for _ in 0..chunks {
            let label = reader.label()?;
            if label.kind != Kind::Chunk {
                return Err(Broken);
            }
            let len = usize::try_from(label.len).map_err(|_| Broken)?;
            let Ok(place) = self.append(fill, len, now) else {
                reader.pass(&label)?;
                return Ok(false);
            };
            if !reader.content_to(&label, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn read_facts(reader: &mut Reader<'_, impl Read>) -> Result<Facts, Unusable> {
    let label = reader.label()?;
    if label.kind != Kind::Facts || label.len != (Facts::WORDS * 8) as u64 {
        return Err(Unusable::OtherFormat);
    }
    let content = reader.content(&label)?.ok_or(Unusable::Damaged)?;
    let (words, _) = words_at(content).ok_or(Unusable::Damaged)?;
    Facts::of_words(words)
}

/// Takes a description apart; `None` if it is none.
fn described<'a>(description: &'a [u8], dependencies: &'a mut Vec<Dependency>) -> Option<Described<'a>> {
    let (fields, rest) = words_at::<FIELDS>(description)?;
    let [
        hi,
        lo,
        flags,
        database,
        role,
        plan_cost,
        rows,
        columns,
        execution_micros,
        created_at,
        expires_at,
        known_good,
        catalogs,
        chunks,
        on_count,
        descriptor_len,
        text_len,
    ] = fields;
    let (on, rest) = rest.split_at_checked(usize::try_from(on_count).ok()?.checked_mul(16)?)?;
    let (descriptor, rest) = rest.split_at_checked(usize::try_from(descriptor_len).ok()?)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(text_len).ok()?)?;
    if !rest.is_empty() {
        return None;
    }
    for on in on.as_chunks::<16>().0 {
        let ([place, version], _) = words_at(on)?;
        let (slot, relation) = (SlotId((place >> 32) as u32), place as u32);
        dependencies.add_all(&[Dependency { slot, relation, version }]).ok()?;
    }
    // All fragments together had their share when they were saved.
    let is_fragment = flags & IS_FRAGMENT != 0;
    let kind = if is_fragment { NewKind::Fragment { most_bytes: u64::MAX } } else { NewKind::Answer };
    let new = NewEntry {
        kind,
        database: database as u32,
        role: role as u32,
        text,
        dependencies,
        descriptor,
        needs_plan: flags & NEEDS_PLAN != 0,
        plan_cost: f64::from_bits(plan_cost),
        rows,
        columns: columns as u32,
        execution_micros,
        created_at: created_at.cast_signed(),
        expires_at: expires_at.cast_signed(),
        known_good: known_good.cast_signed(),
        catalogs,
        keeps_outdated: flags & KEEPS_OUTDATED != 0,
    };
    Some(Described { key: CacheKey(Hash128 { hi, lo }), chunks, new })
}
