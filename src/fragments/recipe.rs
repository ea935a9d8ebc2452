//! What a plan knows of the parts that it is combined of: nodes in the private list of its scan, so that the server can
//! copy the plan. Made once by `planning`; read when the plan starts.

use arrow_cache_core::Hash128;
use pgrx::pg_sys;

use crate::arrow::column::{self, Column, Records};
use crate::lookup::stored_parts::MadeUnder;
use crate::pg::lists::{integers, node_at, nodes, oids};
use crate::pg::row_type::RowType;
use crate::pg::tree_making::{list_of, list_of_numbers, list_of_oids};
use crate::query::asker::Asker;
use crate::query::decomposition::Part;
use crate::query::hashes::{RightsHash, SettingsHash};
use crate::query::{Under, Versions};

/// The part of one leaf.
#[derive(Clone, Copy)]
pub struct LeafPart {
    /// The leaf.
    pub relation: pg_sys::Oid,
    /// How it is computed; null if it was stored when the statement was planned, which is executed once, and at once.
    pub plan: *mut pg_sys::PlannedStmt,
}

/// How the parts of the zones of a table are computed.
#[derive(Clone, Copy)]
pub struct ZoneParts {
    /// The column that stands for zones of their size.
    pub column: i16,
    /// How many zones have a part together that is read from the table.
    pub unit: u64,
    /// The plan for all parts at once. Its last column is the number of the part, by which its rows are sorted.
    pub all: *mut pg_sys::PlannedStmt,
    /// The same for groups of them.
    pub groups: *mut pg_sys::PlannedStmt,
    /// The plan of one part.
    pub one: *mut pg_sys::PlannedStmt,
    /// The plan that makes one part of several.
    pub merging: *mut pg_sys::PlannedStmt,
}

/// The parts of one plan.
pub struct Recipe {
    /// What is asked of each leaf.
    pub part: Part,
    /// The leaves; none if there are zones.
    pub leaves: Vec<LeafPart>,
    /// The zones of the table, if it has no partitions.
    pub zones: Option<ZoneParts>,
    /// Under what the plan was made.
    pub made: MadeUnder,
    /// What is planned in the place of the combined query if a part is gone that has no plan; null if all have one.
    pub question: *mut pg_sys::Query,
    /// The cursor options of the statement.
    pub options: i32,
    /// What is known of the grain of the parts is found by this; 0 if they are in none.
    pub grain: u64,
}

/// The columns of the rows of a part.
pub fn columns_of(part: &Part) -> Option<Vec<Column>> {
    // SAFETY: the query of a part is valid, and the row type is made here.
    let row_type = unsafe { RowType::of(kept!(pg_sys::ExecTypeFromTL((*part.query).targetList))) };
    column::columns_of(row_type, Records::Stored).ok()
}

/// Places in the list.
const LEAVES: usize = 0;
const QUERY: usize = 1;
const PLANS: usize = 2;
const DIMENSIONS: usize = 3;
const NUMBERS: usize = 4;
const QUESTION: usize = 5;
const ZONES: usize = 6;

/// A number as two of a list of integers.
fn halves(number: u64) -> [i32; 2] {
    [((number >> 32) as u32).cast_signed(), (number as u32).cast_signed()]
}

fn whole(halves: &[i32]) -> u64 {
    u64::from(halves[0].cast_unsigned()) << 32 | u64::from(halves[1].cast_unsigned())
}

impl Recipe {
    /// The plans of the parts.
    pub fn plans(&self) -> impl Iterator<Item = *mut pg_sys::PlannedStmt> {
        let of_zones = self.zones.into_iter().flat_map(|zones| [zones.all, zones.groups, zones.one, zones.merging]);
        self.leaves.iter().map(|leaf| leaf.plan).chain(of_zones)
    }

    /// The relations that the parts read, beside the dimensions.
    pub fn relations(&self) -> impl Iterator<Item = pg_sys::Oid> {
        let zoned = self.zones.map(|_| self.part.relation);
        self.leaves.iter().map(|leaf| leaf.relation).chain(zoned)
    }

    /// The recipe as a list of nodes, in the current memory context.
    pub fn to_list(&self) -> *mut pg_sys::List {
        let leaves = list_of_oids(self.leaves.iter().map(|leaf| leaf.relation));
        let plans = list_of(self.leaves.iter().map(|leaf| leaf.plan));
        let MadeUnder { versions: Versions { catalogs, ddl }, under } = self.made;
        let Under { settings: SettingsHash(settings), asker: Asker { role, rights: RightsHash(rights) } } = under;
        let long =
            [catalogs, ddl, settings.hi, settings.lo, rights.hi, rights.lo, self.grain].into_iter().flat_map(halves);
        let oids = [role, self.part.relation].map(|oid| oid.to_u32().cast_signed());
        let zones = self.zones.map_or([0, 0], |zones| [zones.column.into(), zones.unit as i32]);
        let short = oids.into_iter().chain([self.options]).chain(zones);
        let dimensions = list_of_oids(self.part.dimensions.iter().copied());
        let numbers = list_of_numbers(long.chain(short));
        let question = self.question.cast();
        let zones = list_of(self.zones.iter().flat_map(|zones| [zones.all, zones.groups, zones.one, zones.merging]));
        list_of([leaves, self.part.query.cast(), plans, dimensions, numbers, question, zones])
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
            let (long, short) = numbers.split_first_chunk::<14>()?;
            let long: Vec<u64> = long.chunks_exact(2).map(whole).collect();
            let &[role, relation, options, column, unit] = short else { return None };
            let plans = nodes(list_at(PLANS)?);
            let leaves =
                oids(list_at(LEAVES)?).zip(plans).map(|(relation, plan)| LeafPart { relation, plan }).collect();
            let zones = (column != 0).then_some(column as i16).and_then(|column| {
                let plan =
                    |place| node_at(list_at(ZONES)?, place).filter(|plan: &*mut pg_sys::PlannedStmt| !plan.is_null());
                let unit = unit as u64;
                Some(ZoneParts { column, unit, all: plan(0)?, groups: plan(1)?, one: plan(2)?, merging: plan(3)? })
            });
            Some(Self {
                part: Part {
                    query: node_at(list, QUERY)?,
                    relation: pg_sys::Oid::from(relation.cast_unsigned()),
                    dimensions: oids(list_at(DIMENSIONS)?).collect(),
                    is_zoned: zones.is_some(),
                },
                leaves,
                zones,
                made: MadeUnder {
                    versions: Versions { catalogs: long[0], ddl: long[1] },
                    under: Under {
                        settings: SettingsHash(Hash128 { hi: long[2], lo: long[3] }),
                        asker: Asker {
                            role: pg_sys::Oid::from(role.cast_unsigned()),
                            rights: RightsHash(Hash128 { hi: long[4], lo: long[5] }),
                        },
                    },
                },
                question: node_at(list, QUESTION)?,
                options,
                grain: long[6],
            })
        }
    }
}
