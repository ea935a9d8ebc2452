//! Who asks: the role, and all that the server goes by when it asks what this role is and may do. The rights are a hash
//! of the *content* of catalogs, as this backend knows them: a role that is what it was before gets its answers of
//! before, and what happens to other roles changes nothing. They are in the key of each answer (`environment`).
//!
//! What is remembered is dropped when this backend learns that something about roles has changed. State of this
//! backend; no lock.

use std::cell::Cell;
use std::collections::BTreeSet;

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys;

use super::hashes::RightsHash;
use crate::pg::backend_local::Local;
use crate::pg::{backend, roles};

/// Roles remembered. A power of two.
const PLACES: usize = 16;

/// A role, and its rights at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// The role.
    pub role: pg_sys::Oid,
    /// What it is, and may do.
    pub rights: RightsHash,
}

static KNOWN: Local<[Cell<Option<Asker>>; PLACES]> = Local::new([const { Cell::new(None) }; PLACES]);
/// How many messages about roles have come.
static HEARD: Local<Cell<u64>> = Local::new(Cell::new(0));

impl Asker {
    /// The role that the present code runs as.
    #[inline]
    pub fn present(seed: u64) -> Self {
        let role = backend::user_id();
        let place = &KNOWN[role.to_u32() as usize % PLACES];
        match place.get() {
            Some(known) if known.role == role => known,
            _ => Self::look_up(role, seed, place),
        }
    }

    /// Returns true if it is the same role as another, and has other rights.
    #[inline]
    pub fn has_changed(self, other: Self) -> bool {
        self.role == other.role && self.rights != other.rights
    }

    #[cold]
    fn look_up(role: pg_sys::Oid, seed: u64, place: &Cell<Option<Self>>) -> Self {
        roles::listen(changed);
        let before = heard();
        let found = Self { role, rights: rights(role, seed) };
        // What has changed while it was read may be in it or not.
        if heard() == before {
            place.set(Some(found));
        }
        found
    }
}

/// How many messages about roles, memberships and databases this backend has received. Whatever changes and changes
/// back sends two at least.
pub fn heard() -> u64 {
    HEARD.get()
}

fn changed() {
    HEARD.set(HEARD.get() + 1);
    KNOWN.iter().for_each(|place| place.set(None));
}

/// What a role is and may do: its own row, and those of all roles that it is a member of, directly or by way of others.
/// The owner of the database is a member of one more.
fn rights(role: pg_sys::Oid, seed: u64) -> RightsHash {
    let mut all = HashBuffer::new();
    all.seed(seed);
    all.u32(roles::database_owner().unwrap_or(pg_sys::InvalidOid).to_u32());
    let mut reached = BTreeSet::from([role.to_u32()]);
    let mut left = vec![role.to_u32()];
    while let Some(next) = left.pop() {
        // A role that is gone has nothing but its number.
        all.u32(next);
        all.part(&roles::attributes(next.into()).unwrap_or_default());
        let mut memberships = Vec::new();
        roles::for_each_membership(next.into(), |of, row| memberships.push((of.to_u32(), row.to_vec())));
        // The server does not say in which order it lists them.
        memberships.sort_unstable();
        all.u64(memberships.len() as u64);
        for (of, row) in memberships {
            all.part(&row);
            if reached.insert(of) {
                left.push(of);
            }
        }
    }
    RightsHash(all.finish())
}
