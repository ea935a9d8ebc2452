//! The text of a change token: which answer it is of, which slots that rests on, and the state that these had.
//!
//! ```text
//! token    = answer state [ "~" ] slot { slot }
//! answer   = 32 digits: the hash of what was asked, by whom and how
//! state    = 32 digits: the hash of the answer, of who made the token, and of the slots with their versions
//! "~"      : the answer depends on the clock, too
//! slot     = "." and 1 to 8 digits
//! ```
//!
//! Digits are hexadecimal, in lower case. Whoever has the text can compute the state anew with the versions of now. The
//! secret of the cache is in it, so that no text fits but those that were made here. Pure values.

use crate::cache::entry::Dependency;
use crate::hash::{Hash128, HashBuffer};
use crate::room::RoomyVec;
use crate::versions::slots::{SlotId, Versions};

/// Digits of a hash.
const HASH: usize = 32;
/// Most digits of a slot.
const SLOT: usize = 8;
const CLOCK: u8 = b'~';
const BEFORE_SLOT: u8 = b'.';

/// Who makes tokens: this start of the server, for sessions of one database.
#[derive(Clone, Copy, Debug)]
pub struct Issuer {
    /// The secret of the cache.
    pub seed: u64,
    /// When the server was started.
    pub start: i64,
    /// The database.
    pub database: u32,
}

impl Issuer {
    /// The token of an answer that rests on these versions; `None` without memory for it.
    #[must_use]
    pub fn token(&self, answer: Hash128, asks_for_time: bool, dependencies: &[Dependency]) -> Option<Vec<u8>> {
        let versions = dependencies.iter().map(|on| (on.slot, on.version));
        let state = self.state(answer, asks_for_time, versions)?;
        let mut text = Vec::new();
        let most = 2 * HASH + 1 + dependencies.len() * (1 + SLOT);
        text.make_exact_room(most).ok()?;
        for number in [answer.hi, answer.lo, state.hi, state.lo] {
            write(&mut text, number, HASH / 2);
        }
        text.extend(asks_for_time.then_some(CLOCK));
        for on in dependencies {
            text.push(BEFORE_SLOT);
            write(&mut text, on.slot.0.into(), 1);
        }
        Some(text)
    }

    /// The hash of an answer and the versions that it rests on; `None` without memory for it.
    fn state(
        &self,
        answer: Hash128,
        asks_for_time: bool,
        versions: impl Iterator<Item = (SlotId, u64)>,
    ) -> Option<Hash128> {
        let mut state = HashBuffer::new();
        state.seed(self.seed);
        state.part(b"change token");
        // The secret and the versions may outlive a restart, of several copies of a cluster as well.
        state.u64(self.start.cast_unsigned());
        state.u32(self.database);
        state.hash(answer);
        state.u8(asks_for_time.into());
        for (slot, version) in versions {
            state.u32(slot.0);
            state.u64(version);
        }
        state.is_complete().then(|| state.finish())
    }
}

/// A text that has the form of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeToken<'t> {
    answer: Hash128,
    state: Hash128,
    asks_for_time: bool,
    slots: &'t [u8],
}

impl<'t> ChangeToken<'t> {
    /// The token that a text is; `None` if it is none.
    #[must_use]
    pub fn of(text: &'t [u8]) -> Option<Self> {
        let (answer, rest) = text.split_at_checked(HASH)?;
        let (state, rest) = rest.split_at_checked(HASH)?;
        let (asks_for_time, slots) = rest.strip_prefix(&[CLOCK]).map_or((false, rest), |slots| (true, slots));
        let mut parts = slots.split(|byte| *byte == BEFORE_SLOT);
        let begins_with_slot = parts.next().is_some_and(<[u8]>::is_empty);
        let (mut count, mut are_slots) = (0_usize, begins_with_slot);
        for part in parts {
            are_slots &= (1..=SLOT).contains(&part.len()) && number(part).is_some();
            count += 1;
        }
        let token = Self { answer: hash(answer)?, state: hash(state)?, asks_for_time, slots };
        (are_slots && count > 0).then_some(token)
    }

    /// The slots that the answer rests on.
    pub fn slots(&self) -> impl Iterator<Item = SlotId> + use<'t> {
        self.slots.split(|byte| *byte == BEFORE_SLOT).skip(1).filter_map(number).map(|slot| SlotId(slot as u32))
    }

    /// Returns true if the answer depends on the clock, too.
    #[must_use]
    pub fn asks_for_time(&self) -> bool {
        self.asks_for_time
    }

    /// Returns true if this issuer has made the token, and none of its slots has moved since the answer was current.
    /// Says no if there is no memory to find that out.
    #[must_use]
    pub fn is_current(&self, issuer: &Issuer, versions: &Versions<'_>) -> bool {
        let now = self.slots().map(|slot| (slot, versions.version(slot)));
        issuer.state(self.answer, self.asks_for_time, now) == Some(self.state)
    }
}

fn hash(digits: &[u8]) -> Option<Hash128> {
    let (hi, lo) = digits.split_at(HASH / 2);
    Some(Hash128 { hi: number(hi)?, lo: number(lo)? })
}

/// Appends the digits of a number, at least so many.
fn write(text: &mut Vec<u8>, number: u64, least: usize) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(least as u32);
    text.extend((0..digits).rev().map(|place| b"0123456789abcdef"[(number >> (4 * place) & 15) as usize]));
}

/// The number of up to 16 digits.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomics::AtomicU64;
    use crate::versions::slot::{Slot, SlotState};
    use crate::versions::slots::LEAST_SLOTS;
    use crate::versions::value_slot::ValueSlot;

    const ISSUER: Issuer = Issuer { seed: 7, start: 11, database: 5 };
    const ANSWER: Hash128 = Hash128 { hi: 0xab, lo: 1 };

    #[test]
    fn a_token_is_current_until_one_of_its_slots_moves() {
        let slots: Vec<Slot> = (0..LEAST_SLOTS).map(|_| Slot::from(SlotState::default())).collect();
        let values = [ValueSlot::from(0)];
        let floor = AtomicU64::new(1);
        let versions = Versions::new(&slots, &values, &floor);
        let value = versions.value(5, 20_000, 1, 3);
        let rests_on = [versions.ddl(5), versions.relation(5, 20_000), value];
        for moved in rests_on {
            let dependencies = rests_on.map(|slot| Dependency { slot, relation: 0, version: versions.version(slot) });
            let text = ISSUER.token(ANSWER, false, &dependencies).unwrap();
            let token = ChangeToken::of(&text).unwrap();
            assert_eq!(token.slots().collect::<Vec<_>>(), rests_on);
            assert!(token.is_current(&ISSUER, &versions) && !token.asks_for_time());
            versions.publish(versions.enums(5), 9, 9, |_| false, 1);
            assert!(token.is_current(&ISSUER, &versions), "it does not rest on that slot");
            versions.publish(moved, 9 + u64::from(moved.0), 9, |_| false, 1);
            assert!(!token.is_current(&ISSUER, &versions), "{moved:?}");
        }
    }

    #[test]
    fn a_token_is_of_one_issuer_and_one_answer() {
        let slots: Vec<Slot> = (0..LEAST_SLOTS).map(|_| Slot::from(SlotState::default())).collect();
        let (values, floor) = ([ValueSlot::from(0)], AtomicU64::new(1));
        let versions = Versions::new(&slots, &values, &floor);
        let on = [Dependency { slot: versions.ddl(5), relation: 0, version: 0 }];
        let text = ISSUER.token(ANSWER, true, &on).unwrap();
        let token = ChangeToken::of(&text).unwrap();
        assert!(token.is_current(&ISSUER, &versions) && token.asks_for_time());
        let others = [Issuer { seed: 8, ..ISSUER }, Issuer { start: 12, ..ISSUER }, Issuer { database: 6, ..ISSUER }];
        others.iter().for_each(|other| assert!(!token.is_current(other, &versions), "{other:?}"));
        // Whoever changes a digit has no token any more.
        for place in 0..text.len() {
            let mut changed = text.clone();
            changed[place] = if changed[place] == b'1' { b'2' } else { b'1' };
            assert!(!ChangeToken::of(&changed).is_some_and(|token| token.is_current(&ISSUER, &versions)), "{place}");
        }
    }

    #[test]
    fn what_has_another_form_is_no_token() {
        let hashes = "0123456789abcdef".repeat(4);
        for right in [".0", "~.0", ".ffffffff.1"] {
            assert!(ChangeToken::of(format!("{hashes}{right}").as_bytes()).is_some(), "{right}");
        }
        for wrong in ["", "~", ".", "0", ".g", ".F", ".123456789", ".1.", "..1", "~~.1", " .1", ".1 "] {
            assert_eq!(ChangeToken::of(format!("{hashes}{wrong}").as_bytes()), None, "{wrong}");
        }
        for text in ["", "0", &hashes[1..], &format!("{}.1", &hashes[1..]), &format!("{}.1", hashes.to_uppercase())] {
            assert_eq!(ChangeToken::of(text.as_bytes()), None, "{text}");
        }
    }
}
