//! The key of a part: everything that its rows can depend on besides the data. Keeps nothing.

use arrow_cache_core::{CacheKey, HashBuffer, Reason};
use pgrx::pg_sys;

use crate::lookup::parts::PartKey;
use crate::pg::tree::Tree;
use crate::query::decomposition::AskedPart;
use crate::query::hashes::{EnvironmentHash, TreeHash};
use crate::query::identity;
use crate::query::partitions::Leaf;

/// What all parts of a statement have in common.
pub struct PartKeys {
    seed: u64,
    query: TreeHash,
    /// The bounds, with their places.
    clauses: Vec<(usize, TreeHash)>,
    environment: EnvironmentHash,
}

impl PartKeys {
    /// The keys of the parts of a statement that runs in this environment.
    ///
    /// # Errors
    /// As `identity::of`.
    pub fn of(part: &AskedPart, environment: EnvironmentHash, seed: u64) -> Result<Self, Reason> {
        let query = tree_of(part.query.cast(), seed)?;
        let clauses = part
            .places_of_bounds()
            .zip(part.bounds())
            .map(|(place, bound)| Ok((place, tree_of(bound.clause.cast(), seed)?)))
            .collect::<Result<_, Reason>>()?;
        Ok(Self { seed, query, clauses, environment })
    }

    /// The key of one leaf's part.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn of_leaf(&self, leaf: Leaf) -> Result<PartKey, Reason> {
        let mut key = HashBuffer::new();
        key.seed(self.seed);
        key.part(b"part");
        key.hash(self.query.0);
        key.hash(self.environment.0);
        key.u32(leaf.relation.to_u32());
        for (number, (place, clause)) in self.clauses.iter().enumerate() {
            if leaf.asked & (1 << number) != 0 {
                key.u64(*place as u64);
                key.hash(clause.0);
            }
        }
        if !key.is_complete() {
            return Err(Reason::OutOfMemory);
        }
        Ok(PartKey { key: CacheKey(key.finish()), relation: leaf.relation })
    }
}

fn tree_of(node: *mut pg_sys::Node, seed: u64) -> Result<TreeHash, Reason> {
    // SAFETY: a query of a part, or a clause of one, which are valid trees.
    let node = unsafe { Tree::enter(node) }.ok_or(Reason::TooComplex)?;
    identity::of(node, seed).map(|identity| identity.tree)
}
