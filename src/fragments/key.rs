//! The key of a part: everything that its rows can depend on besides the data. Keeps nothing.

use std::collections::BTreeMap;

use arrow_cache_core::versions::zones::Zones;
use arrow_cache_core::{CacheKey, HashBuffer, Reason};
use pgrx::pg_sys;

use crate::lookup::stored_parts::PartKey;
use crate::pg::tree::Tree;
use crate::query::decomposition::AskedPart;
use crate::query::hashes::{EnvironmentHash, TreeHash};
use crate::query::identity;
use crate::query::partitions::Leaf;

/// The keys of the parts of a statement.
pub struct PartKeys<'a> {
    seed: u64,
    asked: &'a AskedPart,
    environment: EnvironmentHash,
    /// What is asked of leaves, by the bounds that must be asked in them.
    questions: BTreeMap<u64, TreeHash>,
}

impl<'a> PartKeys<'a> {
    /// The keys of the parts of a statement that runs in this environment.
    pub fn of(asked: &'a AskedPart, environment: EnvironmentHash, seed: u64) -> Self {
        Self { seed, asked, environment, questions: BTreeMap::new() }
    }

    /// The key of one leaf's part.
    ///
    /// # Errors
    /// As `identity::of`.
    pub fn of_leaf(&mut self, leaf: Leaf) -> Result<PartKey, Reason> {
        self.of_part(leaf, None)
    }

    /// The key of the part of some zones of a table.
    ///
    /// # Errors
    /// As `identity::of`.
    pub fn of_zones(&mut self, relation: pg_sys::Oid, zones: Zones) -> Result<PartKey, Reason> {
        // Nothing says which bounds its rows fulfil.
        self.of_part(Leaf { relation, asked: u64::MAX }, Some(zones))
    }

    fn of_part(&mut self, Leaf { relation, asked }: Leaf, zones: Option<Zones>) -> Result<PartKey, Reason> {
        let question = match self.questions.get(&asked) {
            Some(known) => *known,
            None => self.question(asked)?,
        };
        self.questions.insert(asked, question);
        let mut key = HashBuffer::new();
        key.seed(self.seed);
        key.part(b"part");
        key.hash(question.0);
        key.hash(self.environment.0);
        key.u32(relation.to_u32());
        if let Some(Zones { column, first, count }) = zones {
            key.u32(u32::from(column.cast_unsigned()));
            key.u64(first);
            key.u64(count);
        }
        if !key.is_complete() {
            return Err(Reason::OutOfMemory);
        }
        Ok(PartKey { key: CacheKey(key.finish()), relation, zones })
    }

    /// What is asked of leaves in which these bounds must be asked.
    fn question(&self, asked: u64) -> Result<TreeHash, Reason> {
        // SAFETY: the query of a part, which is a valid tree.
        let query = unsafe { Tree::enter(self.asked.with_bounds(asked)) }.ok_or(Reason::TooComplex)?;
        identity::of(query.as_node(), self.seed).map(|identity| identity.tree)
    }
}
