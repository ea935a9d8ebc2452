//! Claims.

use super::search::{both, zeroed};
use crate::atomics::AtomicU64;
use crate::cache::Dependency;
use crate::cache::claim_place::{ClaimPlace, Wanted};
use crate::cache::claims::{CLAIMS, Claims, Ending, Taking};
use crate::cache::key::CacheKey;
use crate::hash::Hash128;
use crate::versions::slot::Slot;
use crate::versions::slots::{LEAST_SLOTS, Versions};
use crate::versions::value_slot::ValueSlot;

struct Places([ClaimPlace; CLAIMS]);
struct Slots([Slot; LEAST_SLOTS], [ValueSlot; 1]);

const FIRST: CacheKey = CacheKey(Hash128 { hi: 1, lo: 5 });
const SECOND: CacheKey = CacheKey(Hash128 { hi: 2, lo: 5 });

fn parts() -> (Claims<'static>, Versions<'static>) {
    let slots = zeroed::<Slots>();
    (Claims::new(&zeroed::<Places>().0), Versions::new(&slots.0, &slots.1, zeroed::<AtomicU64>()))
}

/// A place has a claim that is in vain, and then one of another key that is not. Neither is taken for the other.
pub fn found_as_a_whole() {
    let (claims, versions) = parts();
    let on = move |version| [Dependency { slot: versions.ddl(1), relation: 0, version }];
    let Taking::Taken(first) = claims.take(FIRST, &on(1), &versions, 3, Wanted::Current) else { panic!("it is free") };
    let claim = move || {
        claims.release(first, Ending::Open);
        let Taking::Taken(_) = claims.take(SECOND, &on(0), &versions, 4, Wanted::Current) else { panic!("it is free") };
    };
    let find = move || {
        assert!(claims.find(FIRST, &versions, Wanted::Current).is_none(), "its dependency has another version");
        assert!(
            claims.find(SECOND, &versions, Wanted::Current).is_none_or(|claimed| claimed.owner() == 4),
            "another one's"
        );
    };
    both(claim, find);
}

/// Two who ask at once never both have it.
pub fn of_one() {
    let (claims, versions) = parts();
    let place = move |owner| match claims.take(FIRST, &[], &versions, owner, Wanted::Current) {
        Taking::Taken(claim) => Some(claim.place()),
        Taking::Claimed(_) => None,
        Taking::Refused => panic!("there is room"),
    };
    let (one, other) = both(move || place(3), move || place(4));
    assert!(one.is_none() || other.is_none(), "{one:?} {other:?}");
}
