//! What processes may see of each other's writes, in every order that the processor and the compiler may give them:
//! loom runs the code of the cache itself through all executions of small configurations. Then one place after the
//! other that asks for an order is made weaker (`weaken`): some model must see that, or the place stands in `NOT_SEEN`
//! with the reason.

#[path = "claims.rs"]
mod claims;
#[path = "entries.rs"]
mod entries;
#[path = "search.rs"]
mod search;
#[path = "slots.rs"]
mod slots;
#[path = "steps.rs"]
mod steps;
#[path = "tracked.rs"]
mod tracked;
#[path = "weaken.rs"]
mod weaken;

use search::Model;

/// All models.
const MODELS: &[Model] = &[
    Model { name: "a slot is read as a whole", body: slots::read_as_a_whole },
    Model { name: "two who publish to one slot", body: slots::two_publishers },
    Model { name: "two who publish beside a third", body: slots::two_beside_a_third },
    Model { name: "a slot moves before what was changed is seen", body: slots::before_visible },
    Model { name: "two who publish to the slot of a value", body: slots::two_publishers_of_a_value },
    Model { name: "the slot of a value moves before what was changed is seen", body: slots::before_a_value },
    Model { name: "the floor rises before slots move", body: slots::floor },
    Model { name: "a relation is taken in", body: tracked::taken_in },
    Model { name: "a relation is taken out", body: tracked::taken_out },
    Model { name: "a claim is found as a whole", body: claims::found_as_a_whole },
    Model { name: "a claim is of one process", body: claims::of_one },
    Model { name: "what lies between two steps belongs together", body: steps::belongs_together },
    Model { name: "what a seat holds is not freed", body: entries::held_by_a_seat },
    Model { name: "what is pinned at the entry is not freed", body: entries::pinned_at_the_entry },
    Model { name: "a record is used again", body: entries::used_again },
    Model { name: "what is replaced is always found", body: entries::replaced },
    Model { name: "what is published is seen whole", body: entries::published },
    Model { name: "what a seat holds does not move", body: entries::held_while_it_moves },
    Model { name: "what is pinned at the entry does not move", body: entries::pinned_while_it_moves },
];

#[test]
fn every_execution_is_right() {
    for model in MODELS {
        let began = std::time::Instant::now();
        let ran = search::run(model, None);
        eprintln!("{}: {} executions, {:?}", model.name, ran.executions, began.elapsed());
        assert!(ran.failure.is_none(), "{}: {}", model.name, ran.failure.unwrap_or_default());
        assert!(ran.executions > 1, "{}: nothing was tried", model.name);
    }
}
