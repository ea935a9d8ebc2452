//! Who computes which answer at this moment, so that others who ask the same may wait for it instead of computing it
//! again.
//!
//! A fixed table of places. A process that misses an answer takes a place, and gives it back when its run has ended;
//! until then the place is its claim. Only the owner changes a place that is taken; any process may read it, and take
//! one that is free, or whose claim nobody would wait for any more. Atomics; no lock. A claim is a hint: who overlooks
//! one computes the answer as well, which costs time and nothing else.

use crate::atomics::{
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence, spin_loop,
};
use crate::cache::claim_place::{ClaimPlace, MOST_DEPENDENCIES, Wanted};
use crate::cache::entry::Dependency;
use crate::cache::key::CacheKey;
use crate::versions::slots::Versions;

/// Number of places.
pub const CLAIMS: usize = 64;
/// Places where the claim of one key may be.
const PROBES: usize = 8;
/// How often a place is tried that others take first.
const ATTEMPTS: usize = 64;
/// Set while the owner writes what it claims.
const WRITING: u64 = 1 << 31;
const OWNER: u64 = WRITING - 1;
const GENERATION: u64 = 1 << 32;

/// A claim that was taken. Whoever has it must give it back with [`Claims::release`], even if another one has taken the
/// place meanwhile.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub struct Claim {
    place: u32,
    state: u64,
}

impl Claim {
    /// The number of the place, below [`CLAIMS`].
    #[must_use]
    pub fn place(&self) -> usize {
        self.place as usize
    }
}

/// The claim of another process, as it was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimed {
    place: u32,
    state: u64,
}

impl Claimed {
    /// The number of the place, below [`CLAIMS`].
    #[must_use]
    pub fn place(&self) -> usize {
        self.place as usize
    }

    /// The number of the process that computes the answer, as it was given to [`Claims::take`].
    #[must_use]
    pub fn owner(&self) -> u32 {
        (self.state & OWNER) as u32 - 1
    }
}

/// What there was when a claim was asked for.
#[derive(PartialEq, Eq, Debug)]
pub enum Taking {
    /// It is ours now.
    Taken(Claim),
    /// Somebody else has it.
    Claimed(Claimed),
    /// Nobody has it, and it cannot be had: there is no free place, the answer rests on too much, or waiting for it was
    /// in vain before.
    Refused,
}

/// What came of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The answer is stored, or the run failed: the next one may do better.
    Open,
    /// The answer was computed, and is none that is stored: the next one will not be either.
    Hopeless,
}

/// View over all places of the block.
#[derive(Clone, Copy)]
pub struct Claims<'a> {
    places: &'a [ClaimPlace; CLAIMS],
}

impl<'a> Claims<'a> {
    /// A view over places.
    #[must_use]
    pub fn new(places: &'a [ClaimPlace; CLAIMS]) -> Self {
        Self { places }
    }

    /// Asks for the claim of an answer that rests on `dependencies`, for the process with the number `owner` (below
    /// 2^31 - 1).
    pub fn take(
        &self,
        key: CacheKey,
        dependencies: &[Dependency],
        versions: &Versions<'_>,
        owner: u32,
        wanted: Wanted,
    ) -> Taking {
        for _ in 0..ATTEMPTS {
            if let Some(claimed) = self.find(key, versions, wanted) {
                return Taking::Claimed(claimed);
            }
            if dependencies.len() > MOST_DEPENDENCIES || self.is_hopeless(key) {
                break;
            }
            let Some((place, state)) = self.place_for(key, versions) else { break };
            if let Some(claim) = self.try_take(place, state, owner, |place| place.write(key, dependencies, wanted)) {
                // Of two who have taken places for one key at once, one or both see the other's.
                fence(SeqCst);
                let Some(other) = self.find_beside(&claim, key, versions, wanted) else { return Taking::Taken(claim) };
                self.release(claim, Ending::Open);
                return Taking::Claimed(other);
            }
            spin_loop();
        }
        Taking::Refused
    }

    /// Gives a claim back, unless another one has taken its place.
    pub fn release(&self, claim: Claim, ending: Ending) {
        let place = self.at(claim.place);
        // A hint: if the place is taken at this moment, it says something wrong of another key.
        if place.state.load(Relaxed) == claim.state {
            place.hopeless.store(u32::from(ending == Ending::Hopeless), Relaxed);
            // If it fails, nothing is left to give back.
            let _ = place.state.compare_exchange(claim.state, claim.state & !(GENERATION - 1), Release, Relaxed);
        }
    }

    /// The answer of this key was stored: what was in vain before may not be any more.
    pub fn note_stored(&self, key: CacheKey) {
        for place in probes(key) {
            let at = self.at(place);
            if at.hopeless.load(Relaxed) != 0 && at.is_of(key) {
                at.hopeless.store(0, Relaxed);
            }
        }
    }

    /// The claim of an answer, if somebody computes one that will do and can still be stored.
    #[must_use]
    pub fn find(&self, key: CacheKey, versions: &Versions<'_>, wanted: Wanted) -> Option<Claimed> {
        let mut claims = probes(key).filter_map(|place| self.claimed(place, key));
        claims.find(|claimed| self.is_promising(claimed, versions, wanted))
    }

    /// The same, beside a claim of our own.
    fn find_beside(&self, own: &Claim, key: CacheKey, versions: &Versions<'_>, wanted: Wanted) -> Option<Claimed> {
        let others = probes(key).filter(|place| *place != own.place);
        let mut claims = others.filter_map(|place| self.claimed(place, key));
        claims.find(|claimed| self.is_promising(claimed, versions, wanted))
    }

    /// Returns true if it is still the same claim.
    #[must_use]
    pub fn is_held(&self, claimed: &Claimed) -> bool {
        self.at(claimed.place).state.load(Acquire) == claimed.state
    }

    /// Returns true if the answer can still be stored, and will do. It cannot if something has changed since its run
    /// began that it rests on: rows, too, if it is to be current. Says no if the claim is over.
    #[must_use]
    pub fn is_promising(&self, claimed: &Claimed, versions: &Versions<'_>, wanted: Wanted) -> bool {
        let place = self.at(claimed.place);
        let is_promising = place.is_promising(versions, wanted);
        fence(Acquire);
        is_promising && place.state.load(Relaxed) == claimed.state
    }

    /// All claims that are held, as each of them is when it is looked at.
    pub fn all(&self) -> impl Iterator<Item = Claimed> + '_ {
        (0..CLAIMS as u32).filter_map(|place| {
            let state = self.at(place).state.load(Acquire);
            (state & OWNER != 0).then_some(Claimed { place, state })
        })
    }

    /// Number of claims that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.places.iter().filter(|place| place.state.load(Relaxed) & OWNER != 0).count()
    }

    fn at(&self, place: u32) -> &'a ClaimPlace {
        &self.places[place as usize % CLAIMS]
    }

    /// The claim in a place, if it is of this key.
    fn claimed(&self, place: u32, key: CacheKey) -> Option<Claimed> {
        let at = self.at(place);
        let state = at.state.load(Acquire);
        if state & OWNER == 0 || state & WRITING != 0 || !at.is_of(key) {
            return None;
        }
        // The key may have been that of a later claim.
        fence(Acquire);
        (at.state.load(Relaxed) == state).then_some(Claimed { place, state })
    }

    fn is_hopeless(&self, key: CacheKey) -> bool {
        probes(key).any(|place| {
            let at = self.at(place);
            at.hopeless.load(Relaxed) != 0 && at.is_of(key)
        })
    }

    /// A place to be taken, and its state. All who ask for the same key choose the same one. Of free ones, one that had
    /// the key before goes first: what it says of the key would be outdated. If there is no free one, one whose owner
    /// nobody would wait for.
    fn place_for(&self, key: CacheKey, versions: &Versions<'_>) -> Option<(u32, u64)> {
        let states = |order| probes(key).map(move |place| (place, self.at(place).state.load(order)));
        let free = || states(Relaxed).filter(|(_, state)| state & OWNER == 0);
        let had_key = free().find(|(place, _)| self.at(*place).is_of(key));
        // What is read here is of the claim of this state, or the state is another one when the place is taken.
        let in_vain = |(place, state): &(u32, u64)| state & WRITING == 0 && self.at(*place).is_in_vain(versions);
        had_key.or_else(|| free().next()).or_else(|| states(Acquire).find(in_vain))
    }

    /// Takes a place that is in this state, unless somebody else was quicker.
    fn try_take(&self, place: u32, state: u64, owner: u32, write: impl FnOnce(&ClaimPlace)) -> Option<Claim> {
        let at = self.at(place);
        let taken = (state & !(GENERATION - 1)).wrapping_add(GENERATION) | u64::from(owner + 1) & OWNER;
        if at.state.compare_exchange(state, taken | WRITING, AcqRel, Relaxed).is_err() {
            return None;
        }
        // Pairs with the fences of `claimed` and `is_promising`: who reads something of what follows sees that the
        // place was taken.
        fence(Release);
        write(at);
        at.state.store(taken, Release);
        Some(Claim { place, state: taken })
    }
}

/// The places where the claim of a key may be.
fn probes(key: CacheKey) -> impl Iterator<Item = u32> {
    (0..PROBES as u64).map(move |n| (key.0.lo.wrapping_add(n) % CLAIMS as u64) as u32)
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
