//! The key of a part: everything that its rows can depend on besides the data. Keeps nothing.
//!
//! A part has no text of its own. The server's own serialization of its query stands in for it: that has every field of
//! every node, so two parts with the same are the same question. Where the nodes stood in a text is left out.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Hash128, HashBuffer, OutOfMemory};
use pgrx::pg_sys;

use crate::query::decomposition::AskedPart;
use crate::query::hashes::EnvironmentHash;
use crate::query::partitions::Leaf;

/// Fields that say where in a text a node stood.
const PLACES: [&[u8]; 3] = [b":location ", b":stmt_location ", b":stmt_len "];

/// The keys of the parts of a statement.
pub struct PartKeys<'a> {
    seed: u64,
    asked: &'a AskedPart,
    environment: EnvironmentHash,
    /// What is asked of leaves, by the bounds that must be asked in them.
    questions: BTreeMap<u64, Hash128>,
}

impl<'a> PartKeys<'a> {
    /// The keys of the parts of a statement that runs in this environment.
    pub fn of(asked: &'a AskedPart, environment: EnvironmentHash, seed: u64) -> Self {
        Self { seed, asked, environment, questions: BTreeMap::new() }
    }

    /// The key of one leaf's part, and the text that is stored with it, which tells it from parts with the same key.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn of_leaf(&mut self, Leaf { relation, asked }: Leaf) -> Result<(CacheKey, Rc<[u8]>), OutOfMemory> {
        let question = match self.questions.get(&asked) {
            Some(known) => *known,
            None => hash_of_node(self.asked.with_bounds(asked).cast(), self.seed)?,
        };
        self.questions.insert(asked, question);
        let mut key = HashBuffer::new();
        key.u64(self.seed);
        key.part(b"part");
        key.hash(question);
        key.hash(self.environment.0);
        key.u32(relation.to_u32());
        if !key.is_complete() {
            return Err(OutOfMemory);
        }
        let Hash128 { hi, lo } = question;
        let text = format!("part {hi:016x}{lo:016x} of relation {}", relation.to_u32());
        Ok((CacheKey(key.finish()), Rc::from(text.as_bytes())))
    }
}

/// The hash of a node and all below it, wherever they stood in a text.
fn hash_of_node(node: *const pg_sys::Node, seed: u64) -> Result<Hash128, OutOfMemory> {
    let mut hash = HashBuffer::new();
    hash.u64(seed);
    // SAFETY: a valid node; the text ends with NUL, and is freed once, when nobody uses it any more.
    unsafe {
        let text = kept!(pg_sys::nodeToString(node.cast()));
        add_without_places(&mut hash, CStr::from_ptr(text).to_bytes());
        kept!(pg_sys::pfree(text.cast()));
    }
    if hash.is_complete() { Ok(hash.finish()) } else { Err(OutOfMemory) }
}

/// Adds a serialized node without the numbers of `PLACES`. No name or constant can look like such a field: the server
/// writes spaces in names with a backslash, and constants as numbers.
fn add_without_places(hash: &mut HashBuffer, mut rest: &[u8]) {
    while let Some(start) = rest.iter().position(|byte| *byte == b':') {
        let (before, field) = rest.split_at(start);
        hash.part(before);
        let name = PLACES.iter().find(|name| field.starts_with(name)).map_or(1, |name| name.len());
        hash.part(&field[..name]);
        rest = &field[name..];
        if name > 1 {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
            rest = &rest[digits..];
        }
    }
    hash.part(rest);
}
