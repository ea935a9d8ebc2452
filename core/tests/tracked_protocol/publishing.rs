//! Publishing to a slot that is a part of the world, by the real code.

use arrow_cache_core::versions::slot::{Slot, SlotState};
use arrow_cache_core::versions::value_slot::ValueSlot;

/// What a slot comes to when a transaction publishes. `running` are the ids of those that run.
pub fn published(state: SlotState, is_of_value: bool, (xid, oldest): (u64, u64), running: &[u64]) -> SlotState {
    let is_running = |other| running.contains(&other);
    if is_of_value {
        let value = ValueSlot::from(state.version);
        value.publish(xid, oldest, is_running);
        return value.read();
    }
    let slot = Slot::from(state);
    slot.publish(xid, oldest, is_running, 0);
    slot.read()
}
