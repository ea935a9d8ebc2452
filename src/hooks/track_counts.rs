//! The hook of the setting `track_counts`. Keeps nothing.

use std::ffi::c_void;

use super::previous::PREVIOUS;
use crate::invalidation::track_counts;

/// Called with each value of `track_counts` before the setting takes it, at any moment; must not raise.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn assign(on: bool, extra: *mut c_void) {
    // SAFETY: the server's own arguments, passed on unchanged.
    unsafe {
        if let Some(hook) = PREVIOUS.counting {
            direct!(hook(on, extra));
        }
    }
    track_counts::note(on);
}
