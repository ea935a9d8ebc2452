//! Hashes that stand for what a statement is and what it rests on, each with a type of its own, so that none is taken
//! for another. All are seeded with the secret of the cache. Plain values.

use arrow_cache_core::{Hash128, HashBuffer};

/// The form of a query: the rewritten tree without the values of its constants (`identity`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormHash(pub Hash128);

impl FormHash {
    /// What the form is called where half of the hash is enough.
    pub fn id(self) -> FormId {
        FormId(self.0.lo)
    }
}

/// The lower half of a form's hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormId(pub u64);

/// The rewritten tree with the values of its constants (`identity`): what name resolution made of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeHash(pub Hash128);

impl TreeHash {
    /// The tree under one version of all definitions, and one way of resolving names.
    #[must_use]
    pub fn under_definitions(self, catalogs: u64, resolution: ResolutionHash) -> Self {
        let mut all = HashBuffer::new();
        all.hash(self.0);
        all.u64(catalogs);
        all.hash(resolution.0);
        Self(all.finish())
    }
}

/// How names in functions are resolved (`name_resolution`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolutionHash(pub Hash128);

/// What a role is, and may do (`asker`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RightsHash(pub Hash128);

/// The settings that functions may read (`environment::settings`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingsHash(pub Hash128);

/// Who asks, where, and under which settings (`environment::hash`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnvironmentHash(pub Hash128);
