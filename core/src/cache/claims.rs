//! Who computes which answer at this moment, so that others who ask the same may wait for it instead of computing it again.
//!
//! A fixed table of places. A process that misses an answer takes a place, and gives it back when its run has ended; until then the place is its
//! claim. Only the owner changes a place that is taken; any process may read it and take one that is free. Atomics; no lock. A claim is
//! a hint: who overlooks one computes the answer as well, which costs time and nothing else.

use crate::atomics::{
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence, spin_loop,
};
use crate::cache::claim_place::{ClaimPlace, MOST_DEPENDENCIES, Wanted};
use crate::cache::entry::Dependency;
use crate::cache::key::CacheKey;
use crate::cache::versions::Versions;

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

/// A claim that was taken. Whoever has it must give it back with [`Claims::release`].
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub struct Claim {
    place: u32,
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
    /// Nobody has it, and it cannot be had: there is no free place, the answer rests on too much, or waiting for it was in vain before.
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

    /// Asks for the claim of an answer that rests on `dependencies`, for the process with the number `owner` (below 2^31 - 1).
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
            let Some(place) = self.place_for(key) else { break };
            if let Some(claim) = self.try_take(place, owner, |place| place.write(key, dependencies, wanted)) {
                return Taking::Taken(claim);
            }
            spin_loop();
        }
        Taking::Refused
    }

    /// Gives a claim back.
    pub fn release(&self, claim: Claim, ending: Ending) {
        let place = self.at(claim.place);
        place.hopeless.store(u32::from(ending == Ending::Hopeless), Relaxed);
        place.state.fetch_and(!(GENERATION - 1), Release);
    }

    /// The claim of an answer, if somebody computes one that will do and can still be stored.
    #[must_use]
    pub fn find(&self, key: CacheKey, versions: &Versions<'_>, wanted: Wanted) -> Option<Claimed> {
        let mut claims = probes(key).filter_map(|place| self.claimed(place, key));
        claims.find(|claimed| self.is_promising(claimed, versions, wanted))
    }

    /// Is it still the same claim?
    #[must_use]
    pub fn is_held(&self, claimed: &Claimed) -> bool {
        self.at(claimed.place).state.load(Acquire) == claimed.state
    }

    /// Can the answer still be stored, and will it do? It cannot if something has changed since its run began that it rests on: rows, too, if
    /// it is to be current. Says no if the claim is over.
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

    /// A free place. All who ask for the same key choose the same one. One that had the key before goes first: what it says of the key would be
    /// outdated.
    fn place_for(&self, key: CacheKey) -> Option<u32> {
        let is_free = |place: &u32| self.at(*place).state.load(Relaxed) & OWNER == 0;
        let had_key = |place: &u32| is_free(place) && self.at(*place).is_of(key);
        probes(key).find(had_key).or_else(|| probes(key).find(is_free))
    }

    /// Takes a place, unless somebody else was quicker.
    fn try_take(&self, place: u32, owner: u32, write: impl FnOnce(&ClaimPlace)) -> Option<Claim> {
        let at = self.at(place);
        let state = at.state.load(Relaxed);
        let taken = (state & !(GENERATION - 1)).wrapping_add(GENERATION) | u64::from(owner + 1) & OWNER;
        if state & OWNER != 0 || at.state.compare_exchange(state, taken | WRITING, AcqRel, Relaxed).is_err() {
            return None;
        }
        // Pairs with the fences of `claimed` and `is_promising`: who reads something of what follows sees that the place was taken.
        fence(Release);
        write(at);
        at.state.store(taken, Release);
        Some(Claim { place })
    }
}

/// The places where the claim of a key may be.
fn probes(key: CacheKey) -> impl Iterator<Item = u32> {
    (0..PROBES as u64).map(move |n| (key.0.lo.wrapping_add(n) % CLAIMS as u64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomics::{AtomicU32, AtomicU64};
    use crate::cache::slot::Slot;
    use crate::cache::versions::{FIXED_SLOTS, SlotId};
    use crate::hash::Hash128;

    fn places() -> Box<[ClaimPlace; CLAIMS]> {
        // SAFETY: zeroed memory is valid: all fields are atomics.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    fn key(n: u64) -> CacheKey {
        CacheKey(Hash128 { hi: n.wrapping_mul(77), lo: n })
    }

    fn taken(claims: &Claims<'_>, key: CacheKey, owner: u32) -> Claim {
        match take(claims, key, owner) {
            Taking::Taken(claim) => claim,
            other => panic!("expected a claim, got {other:?}"),
        }
    }

    /// Slots of versions, and where their floor lies.
    fn slots() -> (Vec<Slot>, AtomicU64) {
        // SAFETY: zeroed memory is valid: all fields are atomics.
        ((0..FIXED_SLOTS + 8).map(|_| unsafe { std::mem::zeroed() }).collect(), AtomicU64::new(0))
    }

    /// Asks for the claim of an answer that rests on nothing.
    fn take(claims: &Claims<'_>, key: CacheKey, owner: u32) -> Taking {
        let (slots, floor) = slots();
        claims.take(key, &[], &Versions::new(&slots, &floor), owner, Wanted::Current)
    }

    fn found(claims: &Claims<'_>, key: CacheKey) -> Option<Claimed> {
        let (slots, floor) = slots();
        claims.find(key, &Versions::new(&slots, &floor), Wanted::Current)
    }

    #[test]
    fn one_has_it_until_it_gives_it_back() {
        let places = places();
        let claims = Claims::new(&places);
        assert_eq!(found(&claims, key(1)), None);
        let mine = taken(&claims, key(1), 7);
        let Taking::Claimed(seen) = take(&claims, key(1), 8) else { panic!("it is claimed") };
        assert_eq!((seen.owner(), found(&claims, key(1)), claims.held()), (7, Some(seen), 1));
        assert!(claims.is_held(&seen));
        let other = taken(&claims, key(1 + CLAIMS as u64), 8);
        assert_eq!(found(&claims, key(1)).map(|claimed| claimed.owner()), Some(7), "keys of one place are told apart");
        claims.release(mine, Ending::Open);
        assert!(!claims.is_held(&seen));
        let again = taken(&claims, key(1), 7);
        assert!(!claims.is_held(&seen), "a later claim of the same process is another one");
        claims.release(again, Ending::Open);
        claims.release(other, Ending::Open);
        assert_eq!(claims.held(), 0);
    }

    #[test]
    fn places_are_bounded() {
        let places = places();
        let claims = Claims::new(&places);
        let same_place = |n: u64| key(5 + n * CLAIMS as u64);
        let held: Vec<Claim> = (0..PROBES as u64).map(|n| taken(&claims, same_place(n), n as u32)).collect();
        assert_eq!(take(&claims, same_place(100), 1), Taking::Refused);
        held.into_iter().for_each(|claim| claims.release(claim, Ending::Open));
        claims.release(taken(&claims, same_place(100), 1), Ending::Open);
        let (slots, floor) = slots();
        let versions = Versions::new(&slots, &floor);
        let many = vec![Dependency { slot: SlotId(1), relation: 0, version: 0 }; MOST_DEPENDENCIES + 1];
        assert_eq!(claims.take(key(3), &many, &versions, 1, Wanted::Current), Taking::Refused);
    }

    #[test]
    fn what_was_in_vain_is_not_claimed_again() {
        let places = places();
        let claims = Claims::new(&places);
        claims.release(taken(&claims, key(9), 1), Ending::Hopeless);
        assert_eq!(take(&claims, key(9), 2), Taking::Refused);
        // Until the place was needed for others.
        let others: Vec<Claim> =
            (1..=PROBES as u64).map(|n| taken(&claims, key(9 + n * CLAIMS as u64), n as u32)).collect();
        others.into_iter().for_each(|claim| claims.release(claim, Ending::Open));
        claims.release(taken(&claims, key(9), 2), Ending::Open);
    }

    #[test]
    fn a_change_makes_it_unpromising() {
        let places = places();
        let claims = Claims::new(&places);
        let (slots, floor) = slots();
        let versions = Versions::new(&slots, &floor);
        let [first, second] = [versions.relation(1, 5), versions.relation(1, 6)];
        let dependencies =
            [first, second].map(|slot| Dependency { slot, relation: 1, version: versions.slot(slot).version() });
        let Taking::Taken(mine) = claims.take(key(1), &dependencies, &versions, 3, Wanted::Current) else {
            panic!("it is free")
        };
        let seen = claims.find(key(1), &versions, Wanted::Current).unwrap();
        assert!(claims.is_promising(&seen, &versions, Wanted::Current));
        versions.slot(second).bump(1);
        assert!(!claims.is_promising(&seen, &versions, Wanted::Current) && claims.is_held(&seen));
        let late = Wanted::Late { as_of: 0, earliest: i64::MIN + 1 };
        assert_eq!(claims.find(key(1), &versions, late), None, "it will not be stored");
        assert_eq!(claims.find(key(1), &versions, Wanted::Current), None);
        let Taking::Taken(later) = claims.take(key(1), &[], &versions, 4, Wanted::Current) else {
            panic!("another one may be taken")
        };
        assert_eq!(claims.find(key(1), &versions, Wanted::Current).map(|claimed| claimed.owner()), Some(4));
        claims.release(later, Ending::Open);
        claims.release(mine, Ending::Open);
    }

    #[test]
    fn rows_may_change_under_an_answer_that_is_stored_late() {
        let places = places();
        let claims = Claims::new(&places);
        let (slots, floor) = slots();
        let versions = Versions::new(&slots, &floor);
        let [rows, definitions] = [versions.relation(1, 5), versions.ddl(1)];
        let dependencies = [(rows, 5), (definitions, 0)].map(|(slot, relation)| Dependency {
            slot,
            relation,
            version: versions.slot(slot).version(),
        });
        let late = |earliest| Wanted::Late { as_of: 100, earliest };
        let Taking::Taken(mine) = claims.take(key(1), &dependencies, &versions, 3, late(0)) else {
            panic!("it is free")
        };
        let owner = |wanted| claims.find(key(1), &versions, wanted).map(|claimed| claimed.owner());
        assert_eq!([owner(Wanted::Current), owner(late(101))], [Some(3); 2], "nothing has changed yet");
        versions.slot(rows).bump(1);
        assert_eq!([owner(Wanted::Current), owner(late(101))], [None; 2]);
        assert_eq!(owner(late(100)), Some(3));
        versions.slot(definitions).bump(1);
        assert_eq!(owner(late(100)), None);
        claims.release(mine, Ending::Open);
    }

    #[test]
    fn of_many_who_ask_at_once_one_computes() {
        let places = places();
        let claims = Claims::new(&places);
        let (slots, floor) = slots();
        let versions = Versions::new(&slots, &floor);
        let computing = [(); 3].map(|()| AtomicU32::new(0));
        let [taken, together] = [(); 2].map(|()| AtomicU32::new(0));
        std::thread::scope(|scope| {
            for owner in 0..4 {
                let (computing, taken, together, versions) = (&computing, &taken, &together, &versions);
                scope.spawn(move || {
                    for n in 0..if cfg!(miri) { 50 } else { 20_000 } {
                        let which = n % 3;
                        if let Taking::Taken(claim) =
                            claims.take(key(which as u64), &[], versions, owner, Wanted::Current)
                        {
                            taken.fetch_add(1, Relaxed);
                            together.fetch_add(computing[which].fetch_add(1, Relaxed), Relaxed);
                            computing[which].fetch_sub(1, Relaxed);
                            claims.release(claim, Ending::Open);
                        }
                    }
                });
            }
        });
        // A place may be given back between the look for a claim and the choice of a place.
        let (taken, together) = (taken.into_inner(), together.into_inner());
        assert!(together <= taken / 20, "{together} of {taken} were not alone");
        assert_eq!(claims.held(), 0);
    }
}
