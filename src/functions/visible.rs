//! Which entries, and which of their relations, the views show to the current user.

use arrow_cache_core::EntryView;
use pgrx::pg_sys;

use crate::pg::privileges;

/// Whose results the current user may see: all, or only those of the user's own. Not even the number of the others is
/// shown.
pub struct Visible {
    user: u32,
    all: bool,
}

impl Visible {
    /// What the current user may see.
    pub fn to_current_user() -> Self {
        let user = privileges::current_role();
        // SAFETY: a search of memberships, in the role whose members may see the statements of all users.
        let all = unsafe { kept!(pg_sys::has_privs_of_role(user, pg_sys::ROLE_PG_READ_ALL_STATS.into())) };
        Self { user: user.to_u32(), all }
    }

    /// Returns true if the user may see this entry.
    pub fn includes(&self, entry: &EntryView<'_>) -> bool {
        self.includes_role(entry.role())
    }

    /// Returns true if the user may see what this role has asked.
    pub fn includes_role(&self, role: u32) -> bool {
        self.all || role == self.user
    }

    /// Returns true if the user may learn that results rest on this relation, and when it has changed. Not if only a
    /// view reads it for the user.
    pub fn names(&self, relation: pg_sys::Oid) -> bool {
        self.all || privileges::has(pg_sys::Oid::from(self.user), relation, pg_sys::ACL_SELECT)
    }
}
