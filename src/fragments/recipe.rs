//! What a plan knows of the parts that it is combined of: nodes in the private list of its scan, so that the server can copy the plan. Made
//! once by `planning`; read when the plan starts.

use pgrx::pg_sys;

use crate::pg::lists::{integers, node_at, nodes, oids};
use crate::query::Versions;
use crate::query::decomposition::{Bound, Part};
use crate::query::partitions::Leaf;

/// The parts of one plan.
pub struct Recipe {
    /// What is asked of each leaf.
    pub part: Part,
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// Relations to hold open while the plan runs, as the executor of an undivided plan would.
    pub relations: *mut pg_sys::List,
    /// The definitions that were current when the plan was made.
    pub versions: Versions,
    /// The answer may have labels of enums.
    pub rests_on_enums: bool,
}

/// Places in the list.
const QUERY: usize = 0;
const CLAUSES: usize = 1;
const LEAVES: usize = 2;
const ASKED: usize = 3;
const RELATIONS: usize = 4;
const NUMBERS: usize = 5;

/// A number as two of a list of integers.
fn halves(number: u64) -> [i32; 2] {
    [(number >> 32) as u32 as i32, number as u32 as i32]
}

fn whole(hi: i32, lo: i32) -> u64 {
    u64::from(hi as u32) << 32 | u64::from(lo as u32)
}

impl Recipe {
    /// The recipe as a list of nodes, in the current memory context.
    pub fn to_list(&self) -> *mut pg_sys::List {
        let null = std::ptr::null_mut();
        // SAFETY: lists of nodes, OIDs and integers, each of one kind.
        unsafe {
            let clauses = self.part.bounds.iter().fold(null, |list, bound| pg_sys::lappend(list, bound.clause.cast()));
            let leaves = self.leaves.iter().fold(null, |list, leaf| pg_sys::lappend_oid(list, leaf.relation));
            let asked = (self.leaves.iter().flat_map(|leaf| halves(leaf.asked)))
                .fold(null, |list, half| pg_sys::lappend_int(list, half));
            let Versions { catalogs, ddl } = self.versions;
            let numbers = [self.part.table as i32, i32::from(self.rests_on_enums), self.part.relation.to_u32() as i32]
                .into_iter()
                .chain(halves(catalogs))
                .chain(halves(ddl))
                .fold(null, |list, number| pg_sys::lappend_int(list, number));
            [self.part.query.cast(), clauses.cast(), leaves.cast(), asked.cast(), self.relations.cast(), numbers.cast()]
                .into_iter()
                .fold(null, |list, item| pg_sys::lappend(list, item))
        }
    }

    /// The recipe that `to_list` has made a list of, or the server a copy of that.
    ///
    /// # Safety
    /// `list` must be such a list, and outlive what is read.
    pub unsafe fn of_list(list: *const pg_sys::List) -> Option<Self> {
        // SAFETY: the caller's promise: the places hold what `to_list` puts there.
        unsafe {
            let numbers: Vec<i32> = integers(node_at(list, NUMBERS)?).collect();
            let &[table, rests_on_enums, relation, catalogs_hi, catalogs_lo, ddl_hi, ddl_lo] = numbers.as_slice()
            else {
                return None;
            };
            let bounds = nodes::<pg_sys::Node>(node_at(list, CLAUSES)?)
                .map(|clause| Bound { clause, column: 0, operator: pg_sys::InvalidOid, value: std::ptr::null_mut() })
                .collect();
            let asked: Vec<i32> = integers(node_at(list, ASKED)?).collect();
            let leaves = oids(node_at(list, LEAVES)?)
                .zip(asked.chunks_exact(2))
                .map(|(relation, asked)| Leaf { relation, asked: whole(asked[0], asked[1]) })
                .collect();
            Some(Self {
                part: Part {
                    query: node_at(list, QUERY)?,
                    table: table as u32,
                    relation: pg_sys::Oid::from(relation as u32),
                    dimensions: Vec::new(),
                    bounds,
                },
                leaves,
                relations: node_at(list, RELATIONS)?,
                versions: Versions { catalogs: whole(catalogs_hi, catalogs_lo), ddl: whole(ddl_hi, ddl_lo) },
                rests_on_enums: rests_on_enums != 0,
            })
        }
    }
}
