//! What the owner of a relation says about caching it: a security label of the extension's provider. It belongs to the
//! relation as a comment does: it follows renames, goes with a drop, and pg_dump writes it down.
//!
//! The policy is asked for each relation of a query when that is planned, so labels are kept in a table of this
//! backend. A change of a label sends a relcache invalidation (`functions/policy.rs`), which takes the relation's line
//! out of the table.

use std::ffi::CStr;

use arrow_cache_core::KnownRelations;
use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::relcache_listener;

/// Name of the extension's provider of security labels.
pub const PROVIDER: &CStr = c"pg_arrow_cache";

/// How a relation may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// No label: cached if its changes can be seen.
    Default,
    /// Results that rest on it are not cached.
    Never,
    /// Cached although its changes cannot be seen.
    Trusted,
}

impl Policy {
    /// The policy that a label stands for.
    pub fn labelled(label: &[u8]) -> Option<Self> {
        [Self::Never, Self::Trusted].into_iter().find(|policy| policy.name().as_bytes() == label)
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Never => "never",
            Self::Trusted => "trusted",
        }
    }
}

static KNOWN: Local<KnownRelations<Policy>> = Local::new(KnownRelations::new());

/// The policy of a relation. The first question of a backend about a relation reads a catalog.
pub fn of(relation: pg_sys::Oid) -> Policy {
    relcache_listener::listen(relation_changed);
    KNOWN.get_or_find(relation.to_u32(), || labelled(relation))
}

/// The policy that the relation's label stands for.
fn labelled(relation: pg_sys::Oid) -> Policy {
    // SAFETY: reads a catalog by address; the label is a C string in the current context, or null.
    let label = unsafe {
        let address = pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: relation, objectSubId: 0 };
        let label = kept!(pg_sys::GetSecurityLabel(&address, PROVIDER.as_ptr()));
        if label.is_null() { None } else { Some(CStr::from_ptr(label)) }
    };
    // A label that nobody could have set through the extension comes from a catalog that was edited by hand: the
    // relation is not cached.
    label.map_or(Policy::Default, |label| Policy::labelled(label.to_bytes()).unwrap_or(Policy::Never))
}

/// The description of a relation may have changed.
fn relation_changed(relation: pg_sys::Oid) {
    if relation == pg_sys::InvalidOid {
        KNOWN.clear();
    } else {
        KNOWN.forget(relation.to_u32());
    }
}
