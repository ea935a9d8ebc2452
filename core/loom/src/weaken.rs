//! Whether each place that asks for an order is needed.

use super::MODELS;
use super::search::{Model, run};
use crate::atomics::Place;
use std::collections::BTreeSet;

const FENCE_OF_HELD: &str = "a record passes the fence of `Store::held` before it is used again, which orders the same; the index does not rely on it";
const RECHECKED_BY_PIN: &str = "whatever a walk comes to, the key is compared again under the pin";
const BY_PIN: &str = "whoever pins loads `life` with Acquire next";
const ALONE: &str = "the models have no second process that takes the same seat";
const RECHECKED: &str = "whoever asks for an entry by its bit compares `life` in the step that pins";
const NO_RENDITIONS: &str = "the models have no renditions";
const FLOOR: &str = "the slots that move afterwards order it";

/// Places that no model needs: the file, a part of the line and the next one, and the reason why no model sees it.
const NOT_SEEN: &[(&str, &str, &str)] = &[
    (
        "claims.rs",
        "place.state.compare_exchange(",
        "the fence of the one who takes the place next orders what it writes",
    ),
    (
        "claims.rs",
        "fence(Acquire); (at.state.load(Relaxed) == state)",
        "`is_promising` asks again, behind a fence of its own",
    ),
    (
        "claims.rs",
        "at.state.compare_exchange(",
        "the fence that follows orders what is written; what was there before is not read",
    ),
    ("entry.rs", "CacheKey(Hash128 { hi: self.key_hi.load(Acquire)", RECHECKED_BY_PIN),
    ("entry.rs", "self.key_hi.store(", FENCE_OF_HELD),
    ("entry.rs", "self.key_lo.store(", FENCE_OF_HELD),
    ("entry.rs", "let life = Life::of(self.usage.life.fetch_add(1, AcqRel));", BY_PIN),
    ("entry.rs", "self.usage.life.fetch_add(1, AcqRel);", "it is called under the lock, or by one who has pinned it"),
    ("entry.rs", "self.usage.life.fetch_add(0, AcqRel) & PINS", "the fence of `Store::held` follows"),
    ("entry.rs", "self.usage.renditions.swap(", NO_RENDITIONS),
    ("entry.rs", "ArenaPtr(self.usage.renditions.load(Acquire))", NO_RENDITIONS),
    ("index.rs", "link = entry.next_in_bucket.load(Acquire)", RECHECKED_BY_PIN),
    ("index.rs", "entry.next_in_bucket.store(", FENCE_OF_HELD),
    ("index.rs", "link if link == index + 1 => return before.store(", FENCE_OF_HELD),
    ("occupancy.rs", "fetch_or(", RECHECKED),
    ("occupancy.rs", "fetch_and(", RECHECKED),
    ("occupancy.rs", "let ahead = ", RECHECKED),
    ("seat.rs", "self.pins.store(0, Release)", ALONE),
    ("seat.rs", "word.store(0, Release))", ALONE),
    ("seats.rs", "self.header().seated.fetch_add(", ALONE),
    ("seats.rs", "tally.uses.", ALONE),
    ("seats.rs", "let uses = Uses(tally.uses.load(Acquire))", ALONE),
    ("seats.rs", "seats_taken.fetch_max(", ALONE),
    ("store.rs", "seats_taken.load(Acquire)", ALONE),
    (
        "steps.rs",
        "let begun = self.begun.load(Acquire); (begun == ended)",
        "the load of `ended` orders what ended steps have written, and the fence of a later one tells of it",
    ),
    ("slots.rs", "self.base_floor.load(Acquire)", FLOOR),
    ("slots.rs", "self.base_floor.fetch_max(", FLOOR),
];

/// The line of a place, and the next one.
fn line_of((file, number): &Place) -> String {
    let text = ["cache", "versions", "replay"]
        .iter()
        .find_map(|room| std::fs::read_to_string(format!("{}/../src/{room}/{file}", env!("CARGO_MANIFEST_DIR"))).ok())
        .unwrap_or_else(|| panic!("{file} is in none of the rooms"));
    let two: Vec<&str> = text.lines().skip(*number as usize - 1).take(2).map(str::trim).collect();
    two.join(" ")
}

/// `MODELS_FILE=versions.rs` looks at the places of one file.
#[test]
fn each_place_is_needed() {
    let chosen = std::env::var("MODELS_FILE").ok();
    // A model that does not come by a place tells nothing about it.
    let models: Vec<(&Model, BTreeSet<Place>)> = MODELS.iter().map(|model| (model, run(model, None).places)).collect();
    let places: BTreeSet<&Place> = models.iter().flat_map(|(_, places)| places).collect();
    let mut wrong = Vec::new();
    for place in places.iter().copied().filter(|place| chosen.as_ref().is_none_or(|file| *file == place.0)) {
        let mut there = models.iter().filter(|(_, places)| places.contains(place)).map(|(model, _)| *model);
        let seen = there.find(|model| run(model, Some(place.clone())).is_wrong());
        let line = line_of(place);
        let reason = NOT_SEEN.iter().find(|(file, part, _)| *file == place.0 && line.contains(part));
        eprintln!("{}:{} {line}: {}", place.0, place.1, seen.map_or("seen by no model", |model| model.name));
        if seen.is_some() == reason.is_some() {
            wrong.push(format!("{}:{} {line}", place.0, place.1));
        }
    }
    assert!(!places.is_empty() && wrong.is_empty(), "not seen, or seen although it is in NOT_SEEN: {wrong:#?}");
}
