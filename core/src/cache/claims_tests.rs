//! Tests of claims, by themselves.

use super::*;
use crate::atomics::{AtomicU32, AtomicU64};
use crate::hash::Hash128;
use crate::versions::slot::Slot;
use crate::versions::slots::{SlotId, slot_count};
use crate::versions::value_slot::ValueSlot;

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

/// Slots of versions, one of a value, and where their floor lies.
fn slots() -> (Vec<Slot>, [ValueSlot; 1], AtomicU64) {
    // SAFETY: zeroed memory is valid: all fields are atomics.
    let slots = (0..slot_count(0)).map(|_| unsafe { std::mem::zeroed() }).collect();
    (slots, [ValueSlot::from(0)], AtomicU64::new(0))
}

/// Asks for the claim of an answer that rests on nothing.
fn take(claims: &Claims<'_>, key: CacheKey, owner: u32) -> Taking {
    let (slots, values, floor) = slots();
    claims.take(key, &[], &Versions::new(&slots, &values, &floor), owner, Wanted::Current)
}

fn found(claims: &Claims<'_>, key: CacheKey) -> Option<Claimed> {
    let (slots, values, floor) = slots();
    claims.find(key, &Versions::new(&slots, &values, &floor), Wanted::Current)
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
    let (slots, values, floor) = slots();
    let versions = Versions::new(&slots, &values, &floor);
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
fn who_computes_in_vain_makes_room() {
    let places = places();
    let claims = Claims::new(&places);
    let (slots, values, floor) = slots();
    let versions = Versions::new(&slots, &values, &floor);
    let rows = versions.relation(1, 5);
    let on = |version| [Dependency { slot: rows, relation: 5, version }];
    let exact: Vec<Claim> = (0..PROBES as u32)
        .map(|owner| {
            let Taking::Taken(claim) = claims.take(key(1), &on(owner.into()), &versions, owner, Wanted::Current) else {
                panic!("nobody else computes it for this version")
            };
            versions.slot(rows).bump(1);
            claim
        })
        .collect();
    let late = Wanted::Late { as_of: 100, earliest: 50, catalogs: (versions.catalogs(1), 0) };
    let Taking::Taken(mine) = claims.take(key(1), &on(PROBES as u64), &versions, 77, late) else {
        panic!("one makes room")
    };
    versions.slot(rows).bump(1);
    let seen = claims.find(key(1), &versions, late).unwrap();
    assert_eq!((seen.owner(), claims.held()), (77, PROBES));
    // The one whose place it was gives nothing back.
    exact.into_iter().for_each(|claim| claims.release(claim, Ending::Hopeless));
    assert!(claims.is_held(&seen) && claims.held() == 1);
    claims.release(mine, Ending::Open);
    assert_eq!(claims.held(), 0);
}

#[test]
fn a_stored_answer_takes_back_that_it_is_in_vain() {
    let places = places();
    let claims = Claims::new(&places);
    claims.release(taken(&claims, key(9), 1), Ending::Hopeless);
    claims.note_stored(key(9 + CLAIMS as u64));
    assert_eq!(take(&claims, key(9), 2), Taking::Refused, "another key was stored");
    claims.note_stored(key(9));
    claims.release(taken(&claims, key(9), 2), Ending::Open);
}

#[test]
fn a_change_makes_it_unpromising() {
    let places = places();
    let claims = Claims::new(&places);
    let (slots, values, floor) = slots();
    let versions = Versions::new(&slots, &values, &floor);
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
    let late = Wanted::Late { as_of: 0, earliest: i64::MIN + 1, catalogs: (versions.catalogs(1), 0) };
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
    let (slots, values, floor) = slots();
    let versions = Versions::new(&slots, &values, &floor);
    let [rows, definitions] = [versions.relation(1, 5), versions.ddl(1)];
    let dependencies = [(rows, 5), (definitions, 0)].map(|(slot, relation)| Dependency {
        slot,
        relation,
        version: versions.slot(slot).version(),
    });
    let late = |earliest| Wanted::Late { as_of: 100, earliest, catalogs: (versions.catalogs(1), 0) };
    let Taking::Taken(mine) = claims.take(key(1), &dependencies, &versions, 3, late(0)) else { panic!("it is free") };
    let owner = |wanted| claims.find(key(1), &versions, wanted).map(|claimed| claimed.owner());
    assert_eq!([owner(Wanted::Current), owner(late(101))], [Some(3); 2], "nothing has changed yet");
    versions.slot(rows).bump(1);
    assert_eq!([owner(Wanted::Current), owner(late(101))], [None; 2]);
    assert_eq!(owner(late(100)), Some(3));
    versions.slot(definitions).bump(1);
    assert_eq!(owner(late(100)), None);
    claims.release(mine, Ending::Open);
    // Nor is it stored when some other definition of the database has changed.
    let dependencies = dependencies.map(|on| Dependency { version: versions.slot(on.slot).version(), ..on });
    let Taking::Taken(mine) = claims.take(key(1), &dependencies, &versions, 3, late(0)) else { panic!("it is free") };
    versions.slot(versions.catalogs(1)).bump(1);
    assert_eq!(claims.find(key(1), &versions, Wanted::Current).map(|claimed| claimed.owner()), Some(3));
    versions.slot(rows).bump(1);
    assert_eq!(claims.find(key(1), &versions, late(0)), None);
    claims.release(mine, Ending::Open);
}

#[test]
fn of_many_who_ask_at_once_one_computes() {
    let places = places();
    let claims = Claims::new(&places);
    let (slots, values, floor) = slots();
    let versions = Versions::new(&slots, &values, &floor);
    let computing = [(); 3].map(|()| AtomicU32::new(0));
    let [taken, together] = [(); 2].map(|()| AtomicU32::new(0));
    std::thread::scope(|scope| {
        for owner in 0..4 {
            let (computing, taken, together, versions) = (&computing, &taken, &together, &versions);
            scope.spawn(move || {
                for n in 0..if cfg!(miri) { 50 } else { 20_000 } {
                    let which = n % 3;
                    if let Taking::Taken(claim) = claims.take(key(which as u64), &[], versions, owner, Wanted::Current)
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
    let (taken, together) = (taken.into_inner(), together.into_inner());
    assert!(taken > 0 && together == 0, "{together} of {taken} were not alone");
    assert_eq!(claims.held(), 0);
}
