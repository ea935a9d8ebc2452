//! Which relations a transaction has changed, as far as its list of changes was looked at. What was seen at a level of
//! subtransactions is forgotten when that level ends: what is kept of it is then listed at the level around it. Of one
//! process; no lock.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::room::{OutOfMemory, Room, RoomyVec};

/// Relations for which memory is kept from one transaction to the next.
const KEPT: usize = 1024;

type Hasher = BuildHasherDefault<DefaultHasher>;

/// What has been seen of the list of changes.
pub struct ChangedRelations {
    /// Each once, those of outer levels first.
    relations: Vec<u32>,
    /// The same, to be found.
    index: HashMap<u32, (), Hasher>,
    /// The place of the first of them that is a catalog of definitions.
    definition: Option<usize>,
    /// The levels that were looked at, the outermost first.
    levels: Vec<Level>,
}

struct Level {
    depth: i32,
    /// The head of its list when it was looked at last.
    head: usize,
    /// How many relations were seen at this level and those around it.
    count: usize,
}

impl ChangedRelations {
    /// Nothing has been seen.
    #[must_use]
    pub const fn new() -> Self {
        Self { relations: Vec::new(), index: HashMap::with_hasher(Hasher::new()), definition: None, levels: Vec::new() }
    }

    /// Returns true if the relation was changed.
    #[must_use]
    pub fn holds(&self, relation: u32) -> bool {
        self.index.contains_key(&relation)
    }

    /// Returns true if a definition was changed.
    #[must_use]
    pub fn has_definition(&self) -> bool {
        self.definition.is_some()
    }

    /// The head of the list of a level when it was looked at last; `None` if it never was. No deeper level may have
    /// been looked at.
    #[must_use]
    pub fn head(&self, depth: i32) -> Option<usize> {
        self.levels.last().filter(|level| level.depth == depth).map(|level| level.head)
    }

    /// Adds a relation that is listed at the level that is looked at.
    ///
    /// # Errors
    /// There is not enough memory; what has been seen must be forgotten.
    pub fn add(&mut self, relation: u32, is_definition: bool) -> Result<(), OutOfMemory> {
        self.index.make_room(1)?;
        if self.index.insert(relation, ()).is_none() {
            if is_definition && self.definition.is_none() {
                self.definition = Some(self.relations.len());
            }
            self.relations.add(relation)?;
        }
        Ok(())
    }

    /// A level was looked at, and all levels around it before: its list begins with this head.
    ///
    /// # Errors
    /// There is not enough memory; what has been seen must be forgotten.
    pub fn note_level(&mut self, depth: i32, head: usize) -> Result<(), OutOfMemory> {
        let count = self.relations.len();
        match self.levels.last_mut().filter(|level| level.depth == depth) {
            Some(level) => (level.head, level.count) = (head, count),
            None => self.levels.add(Level { depth, head, count })?,
        }
        Ok(())
    }

    /// The level of this depth ends, and with it all deeper ones. Allocates nothing.
    pub fn end_level(&mut self, depth: i32) {
        while self.levels.pop_if(|level| level.depth >= depth).is_some() {}
        let count = self.levels.last().map_or(0, |level| level.count);
        for relation in self.relations.drain(count..) {
            self.index.remove(&relation);
        }
        self.definition = self.definition.filter(|place| *place < count);
    }

    /// Forgets everything, at the end of the transaction.
    pub fn forget(&mut self) {
        self.end_level(i32::MIN);
        if self.index.capacity() > 2 * KEPT {
            *self = Self::new();
        }
    }
}

impl Default for ChangedRelations {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CATALOG: u32 = 0;

    /// What a transaction does: the list of each open level, the newest first, as the server keeps it.
    #[derive(Clone, Debug)]
    enum Step {
        Change(u32),
        Begin,
        Commit,
        Abort,
        Look,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (CATALOG..6).prop_map(Step::Change),
            2 => Just(Step::Begin),
            1 => Just(Step::Commit),
            1 => Just(Step::Abort),
            3 => Just(Step::Look),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// Heads are told apart by how many elements stand below them: the same number comes again in another
    /// subtransaction, as addresses do.
    fn look(seen: &mut ChangedRelations, levels: &[Vec<u32>]) {
        let known = (0..levels.len()).rev().find(|depth| seen.head(*depth as i32).is_some());
        for (depth, listed) in levels.iter().enumerate().skip(known.unwrap_or(0)) {
            let from = seen.head(depth as i32).unwrap_or(0);
            for relation in &listed[from..] {
                seen.add(*relation, *relation == CATALOG).unwrap();
            }
            seen.note_level(depth as i32, listed.len()).unwrap();
        }
    }

    proptest! {
        #[test]
        fn what_is_seen_is_what_is_listed(steps in steps()) {
            let (mut seen, mut levels) = (ChangedRelations::new(), vec![Vec::new()]);
            for step in steps {
                let depth = levels.len() - 1;
                match step {
                    Step::Change(relation) if !levels[depth].contains(&relation) => levels[depth].push(relation),
                    Step::Begin => levels.push(Vec::new()),
                    Step::Commit if depth > 0 => {
                        seen.end_level(depth as i32);
                        let kept = levels.pop().unwrap();
                        let around = levels.last_mut().unwrap();
                        let new: Vec<u32> = kept.into_iter().filter(|relation| !around.contains(relation)).collect();
                        around.extend(new);
                    }
                    Step::Abort if depth > 0 => {
                        seen.end_level(depth as i32);
                        levels.pop();
                    }
                    Step::Look => {
                        look(&mut seen, &levels);
                        for relation in CATALOG..6 {
                            let is_listed = levels.iter().any(|level| level.contains(&relation));
                            prop_assert_eq!(seen.holds(relation), is_listed, "{}", relation);
                        }
                        prop_assert_eq!(seen.has_definition(), seen.holds(CATALOG));
                    }
                    _ => {}
                }
            }
            seen.forget();
            prop_assert!(!seen.has_definition() && (CATALOG..6).all(|relation| !seen.holds(relation)));
        }
    }

    #[test]
    fn a_level_is_not_looked_at_twice() {
        let mut seen = ChangedRelations::new();
        assert_eq!(seen.head(1), None);
        seen.note_level(1, 17).unwrap();
        assert_eq!((seen.head(1), seen.head(2)), (Some(17), None));
        seen.note_level(1, 18).unwrap();
        assert_eq!((seen.head(1), seen.levels.len()), (Some(18), 1));
    }

    #[test]
    fn memory_for_many_relations_is_given_back() {
        let mut seen = ChangedRelations::new();
        (0..100_000).for_each(|relation| seen.add(relation, false).unwrap());
        seen.note_level(1, 1).unwrap();
        seen.forget();
        assert_eq!((seen.index.capacity(), seen.relations.capacity()), (0, 0));
    }
}
