//! What a plan knows of the parts that it is combined of: nodes in the private list of its scan, so that the server can copy the plan. Made
//! once by `planning`; read when the plan starts.

use pgrx::pg_sys;

use crate::pg::lists::{integers, node_at, oids};
use crate::pg::tree_making::{list_of, list_of_numbers, list_of_oids};
use crate::query::Versions;
use crate::query::decomposition::Part;
use crate::query::partitions::Leaf;

/// The parts of one plan.
pub struct Recipe {
    /// What is asked of each leaf.
    pub part: Part,
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// Relations to hold open while the plan runs, as the executor of an undivided plan would: a list of OIDs.
    pub relations: *mut pg_sys::List,
    /// The definitions that were current when the plan was made.
    pub versions: Versions,
    /// What runs instead if no part may be planned any more (`way_back`): a plan of the whole query, or the query; null if whoever starts the plan sees to it.
    pub instead: *mut pg_sys::Node,
}

/// Places in the list.
const QUERY: usize = 0;
const CONDITIONS: [usize; 3] = [1, 2, 3];
const LEAVES: usize = 4;
const ASKED: usize = 5;
const RELATIONS: usize = 6;
const NUMBERS: usize = 7;
const INSTEAD: usize = 8;

/// How many parts the recipe of a list has.
///
/// # Safety
/// As `Recipe::of_list`.
pub unsafe fn count_parts(list: *const pg_sys::List) -> usize {
    // SAFETY: the caller's promise: the place holds a list of leaves.
    unsafe { node_at::<pg_sys::List>(list, LEAVES).map_or(0, |leaves| oids(leaves).count()) }
}

/// A number as two of a list of integers.
fn halves(number: u64) -> [i32; 2] {
    [((number >> 32) as u32).cast_signed(), (number as u32).cast_signed()]
}

fn whole(hi: i32, lo: i32) -> u64 {
    u64::from(hi.cast_unsigned()) << 32 | u64::from(lo.cast_unsigned())
}

impl Recipe {
    /// The relations that every part reads, beside its leaf.
    pub fn dimensions(&self) -> impl Iterator<Item = u32> {
        let is_leaf = |relation: &pg_sys::Oid| self.leaves.iter().any(|leaf| leaf.relation == *relation);
        // SAFETY: a list of OIDs.
        unsafe { oids(self.relations) }.filter(move |relation| !is_leaf(relation)).map(pg_sys::Oid::to_u32)
    }

    /// The recipe as a list of nodes, in the current memory context.
    pub fn to_list(&self) -> *mut pg_sys::List {
        let [bounds, places, others] = self.part.to_lists();
        let leaves = list_of_oids(self.leaves.iter().map(|leaf| leaf.relation));
        let asked = list_of_numbers(self.leaves.iter().flat_map(|leaf| {
            let [hi, lo] = halves(leaf.asked);
            [hi, lo, leaf.is_at_end.into()]
        }));
        let Versions { catalogs, ddl } = self.versions;
        let relation = self.part.relation.to_u32().cast_signed();
        let numbers = list_of_numbers([relation].into_iter().chain(halves(catalogs)).chain(halves(ddl)));
        let query = self.part.query.cast();
        list_of([query, bounds, places, others, leaves, asked, self.relations, numbers, self.instead.cast()])
    }

    /// The recipe that `to_list` has made a list of, or the server a copy of that.
    ///
    /// # Safety
    /// `list` must be such a list, and outlive what is read.
    pub unsafe fn of_list(list: *const pg_sys::List) -> Option<Self> {
        // SAFETY: the caller's promise: the places hold what `to_list` puts there.
        unsafe {
            let list_at = |place| node_at::<pg_sys::List>(list, place);
            let numbers: Vec<i32> = integers(list_at(NUMBERS)?).collect();
            let &[relation, catalogs_hi, catalogs_lo, ddl_hi, ddl_lo] = numbers.as_slice() else {
                return None;
            };
            let asked: Vec<i32> = integers(list_at(ASKED)?).collect();
            let leaves = oids(list_at(LEAVES)?)
                .zip(asked.chunks_exact(3))
                .map(|(relation, asked)| Leaf { relation, asked: whole(asked[0], asked[1]), is_at_end: asked[2] != 0 })
                .collect();
            let [bounds, places, others] = CONDITIONS.map(list_at);
            let lists = [bounds?.cast_const(), places?.cast_const(), others?.cast_const()];
            let relation = pg_sys::Oid::from(relation.cast_unsigned());
            Some(Self {
                part: Part::of_lists(node_at(list, QUERY)?, relation, lists),
                leaves,
                relations: list_at(RELATIONS)?,
                versions: Versions { catalogs: whole(catalogs_hi, catalogs_lo), ddl: whole(ddl_hi, ddl_lo) },
                instead: node_at(list, INSTEAD)?,
            })
        }
    }
}
