//! Which values the rows have that a plan reads of a relation: those that each of its scans compares a column with. The
//! plan's rows are then a function of the rows with these values. Values that only a run of the plan knows are keys of
//! its index scans: here is said where. Reads a finished plan; keeps nothing.

use arrow_cache_core::{EACH_ROW, ITS_VALUE, bit_of, pair, together};
use pgrx::pg_sys::{self, BoolExprType, NodeTag};

use super::bytewise::{equality_is_bytewise, is_equality};
use super::known_values::value_of;
use super::limited_rows::{LimitedRows, limited_rows};
use super::node_table::{OPENS_NOTHING, in_plan};
use super::opened_relations::plans_of;
use super::unread_columns::unread_columns;
use super::value_hash::{Form, form_of};
use crate::pg::array::{Array, ElementType};
use crate::pg::column_statistics::has_one_value;
use crate::pg::row::Value;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children, match_node};

/// Most values that one condition may name.
const MOST_VALUES: usize = 16;
/// Most values that the conditions on a relation may name together.
const MOST_TOGETHER: usize = 64;

/// A column, with the values that it may have in rows that a scan gives.
pub struct Condition {
    /// The number of the column.
    pub column: i16,
    /// The values.
    pub values: Values,
}

impl Condition {
    fn known(var: Tree<'_, pg_sys::Var>, hashes: Vec<u64>) -> Self {
        Self { column: var.varattno, values: Values::Known(hashes) }
    }

    /// This condition and one on another column, as one on both together; `None` if that names too many values.
    fn with(&self, other: &Self) -> Option<Self> {
        let column = pair(self.column, other.column)?;
        let values = match (&self.values, &other.values) {
            (Values::Known(own), Values::Known(others)) if own.len() * others.len() <= MOST_VALUES => {
                let all = own.iter().flat_map(|own| others.iter().map(|other| (*own, *other)));
                let both = all.filter_map(|(own, hash)| together((self.column, own), (other.column, hash)));
                Values::Known(both.map(|(_, hash)| hash).collect())
            }
            (Values::Probed(probe), Values::Known(hashes)) => Values::Probed(probe.beside(other.column, hashes)?),
            (Values::Known(hashes), Values::Probed(probe)) => Values::Probed(probe.beside(self.column, hashes)?),
            _ => return None,
        };
        Some(Self { column, values })
    }

    /// How many values it names, as far as that is known.
    fn count(&self) -> usize {
        match &self.values {
            Values::Known(_) if self.column == EACH_ROW => usize::MAX,
            Values::Known(hashes) => hashes.len(),
            Values::Probed(_) => MOST_VALUES + 1,
        }
    }
}

/// Values that a scan compares a column with.
pub enum Values {
    /// Their hashes.
    Known(Vec<u64>),
    /// One at a time, which the run evaluates and looks up in an index.
    Probed(Probe),
}

/// Where a node has a value that only the run knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Among the keys of an index scan.
    Key(usize),
    /// Among the columns of the rows that it gives.
    Row(usize),
}

/// A value that is known while the plan runs: a key of an index scan, or one in the rows of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The number of the node.
    pub node: i32,
    /// Where it has the value.
    pub at: Place,
    /// The number of the column.
    pub column: i16,
    /// How the key is hashed.
    pub form: Form,
    /// A value of another column, beside that the key counts: the rows have both.
    pub beside: Option<(i16, u64)>,
}

impl Probe {
    /// The same key, of the rows that have the one value of another column.
    fn beside(self, column: i16, hashes: &[u64]) -> Option<Self> {
        let [hash] = hashes else { return None };
        Some(Self { beside: Some((column, *hash)), ..self })
    }

    /// The column, or the two, that the answer rests on.
    pub fn tracked(&self) -> i16 {
        self.beside.and_then(|(other, _)| pair(self.column, other)).unwrap_or(self.column)
    }

    /// What stands for a key with this hash.
    pub fn value(&self, hash: u64) -> (i16, u64) {
        let own = (self.column, hash);
        self.beside.and_then(|beside| together(own, beside)).unwrap_or(own)
    }
}

/// What the rows are that some scans give of a relation.
pub struct Asked {
    /// Columns and their values, by their hashes.
    pub values: Vec<(i16, u64)>,
    /// Keys whose values the run tells.
    pub probes: Vec<Probe>,
}

/// A scan of a relation.
pub struct Scan {
    /// The relation.
    pub relation: u32,
    /// Conditions that all rows fulfil which it gives: those of the index come first, then those that only the run
    /// knows, and that of `EACH_ROW` last.
    pub conditions: Vec<Condition>,
    /// The columns of the relation that no scan of the plan reads, by their bits, but for row security.
    pub unread: u64,
    /// The rows of the answer, if a LIMIT chooses them from those of this scan.
    pub limited: Option<LimitedRows>,
}

/// All scans of relations in a plan that is run with these parameters; `None` if something else may read rows.
pub fn scans_of(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<Vec<Scan>> {
    if !plan.rowMarks.is_null() {
        return None;
    }
    let relations = children!(plan.rtable as RangeTblEntry).map(|entry| entry.relid.to_u32()).collect();
    // Other processes do not tell by which keys they have read rows.
    let runs_alone = !plan.parallelModeNeeded;
    let mut collector = Collector { params, relations, runs_alone, scans: Vec::new() };
    collector.walk(child!(plan.planTree))?;
    collector.walk_all(child!(plan.subplans))?;
    let unread = unread_columns(plan);
    for scan in &mut collector.scans {
        let place = unread.binary_search_by_key(&scan.relation, |(relation, _)| *relation);
        scan.unread = place.map_or(0, |place| unread[place].1);
    }
    if let [scan] = &mut collector.scans[..] {
        scan.limited = limited_rows(plan, params).filter(|_| runs_alone);
    }
    Some(collector.scans)
}

impl Scan {
    /// The value of a column in each row of the answer, by which the run tells which these are; and the columns by
    /// which they are chosen, by their bits.
    pub fn told_by(&self, is_told: impl Fn(i16) -> bool) -> Option<(Probe, u64)> {
        let limited = self.limited.as_ref()?;
        let &(column, place, type_oid) = limited.columns.iter().find(|(column, ..)| is_told(*column))?;
        let form = form_of(type_oid)?;
        let probe = Probe { node: limited.node, at: Place::Row(place), column, form, beside: None };
        Some((probe, limited.chosen_by))
    }

    /// The condition that names the fewest values, of those on tracked columns.
    fn narrowest(&self, place_of: impl Fn(i16) -> Option<usize>) -> Option<&Condition> {
        let usable = self.conditions.iter().filter(|condition| place_of(condition.column).is_some());
        usable.min_by_key(|condition| condition.count())
    }

    /// That condition together with each one on another column, in their order.
    fn pairs_with(&self, narrowest: &Condition) -> impl Iterator<Item = Condition> {
        self.conditions.iter().filter_map(|other| narrowest.with(other))
    }
}

/// The columns and values that the rows have which these scans give of a relation; `None` if a scan has no condition on
/// a tracked column, or there is no scan. `place_of` gives the place of a column among those that are tracked: the last
/// pair of columns counts, as those before it were not enough.
pub fn values_of(scans: &[Scan], relation: u32, place_of: impl Fn(i16) -> Option<usize>) -> Option<Asked> {
    let (mut values, mut probes) = (Vec::new(), Vec::new());
    let mut is_scanned = false;
    for scan in scans.iter().filter(|scan| scan.relation == relation) {
        let narrowest = scan.narrowest(&place_of)?;
        let pairs = scan.pairs_with(narrowest).filter_map(|both| Some((place_of(both.column)?, both)));
        let last = pairs.max_by_key(|(place, _)| *place);
        let chosen = last.as_ref().map_or(narrowest, |(_, both)| both);
        match &chosen.values {
            Values::Known(hashes) => values.extend(hashes.iter().map(|hash| (chosen.column, *hash))),
            Values::Probed(probe) => probes.push(*probe),
        }
        is_scanned = true;
    }
    values.sort_unstable();
    values.dedup();
    (is_scanned && values.len() <= MOST_TOGETHER).then_some(Asked { values, probes })
}

/// The column that would have to be known, too, so that `values_of` names values, or better ones; `None` if one is not
/// enough. It is `EACH_ROW` if that is better than nothing, as columns are not read. A column that has one value in all
/// rows, as far as is known, tells nothing: that by which leaves are told apart.
pub fn missing_column(scans: &[Scan], relation: u32, place_of: impl Fn(i16) -> Option<usize>) -> Option<i16> {
    let has = |column| place_of(column).is_some();
    let mut own = scans.iter().filter(|scan| scan.relation == relation);
    let is_known = |condition: &Condition| condition.column != EACH_ROW && has(condition.column);
    let lacking = own.find(|scan| !scan.conditions.iter().any(is_known))?;
    let of_row = Some(EACH_ROW).filter(|_| lacking.unread != 0);
    let mut columns = lacking.conditions.iter().map(|condition| condition.column);
    let telling = columns.find(|column| *column != EACH_ROW && !has_one_value(relation, *column));
    let is_enough = |column: &i16| {
        values_of(scans, relation, |other| place_of(other).or((other == *column).then_some(0))).is_some()
    };
    telling.into_iter().chain(of_row).find(is_enough).filter(|column| !has(*column))
}

/// Two columns that would have to be known together so that `values_of` named better values than it does by one of
/// them; `None` if it names none, or there is no other condition. `is_key` tells whether a column has another value in
/// each row, so that another condition adds nothing.
pub fn missing_pair(
    scans: &[Scan],
    relation: u32,
    place_of: impl Fn(i16) -> Option<usize>,
    is_key: impl Fn(i16) -> bool,
) -> Option<i16> {
    let mut own = scans.iter().filter(|scan| scan.relation == relation);
    own.find_map(|scan| {
        let narrowest = scan.narrowest(&place_of).filter(|narrowest| !is_key(narrowest.column))?;
        let mut pairs = scan.pairs_with(narrowest).map(|both| both.column);
        pairs.find(|both| place_of(*both).is_none())
    })
}

struct Collector<'t> {
    params: Option<Tree<'t, pg_sys::ParamListInfoData>>,
    /// The relations of the range table.
    relations: Vec<u32>,
    /// No other process runs parts of the plan.
    runs_alone: bool,
    scans: Vec<Scan>,
}

/// Where the columns of a scan's conditions come from.
#[derive(Clone, Copy)]
enum Columns<'t> {
    /// The relation at this place of the range table.
    Of(u32),
    /// What is stored in the index: columns of that relation.
    InIndex(u32, Tree<'t, pg_sys::IndexOnlyScan>),
}

impl<'t> Collector<'t> {
    /// Walks a plan; `None` if it has a node that may read rows in a way that is not known here.
    fn walk(&mut self, plan: Option<Tree<'t, pg_sys::Plan>>) -> Option<()> {
        let Some(plan) = plan else { return Some(()) };
        let node = plan.as_node();
        let qual = child!(plan.qual);
        match_node! { node;
            SeqScan | T_SampleScan | T_TidScan | T_TidRangeScan | T_ForeignScan (scan) => {
                // The other scans may choose rows by more than their conditions.
                if node.tag() == NodeTag::T_SeqScan {
                    self.add(Columns::Of(scan.scan.scanrelid), None, [None, qual]);
                } else {
                    let relation = self.relation(scan.scan.scanrelid);
                    self.scans.push(Scan { relation, conditions: Vec::new(), unread: 0, limited: None });
                }
            },
            IndexScan(scan) => {
                let by_index = child!(scan.indexqualorig);
                let keys = by_index.map(|quals| (plan.plan_node_id, quals));
                self.add(Columns::Of(scan.scan.scanrelid), keys, [by_index, qual]);
            },
            IndexOnlyScan(scan) => {
                let by_index = child!(scan.recheckqual);
                let keys = by_index.map(|quals| (plan.plan_node_id, quals));
                self.add(Columns::InIndex(scan.scan.scanrelid, scan), keys, [by_index, qual]);
            },
            // The nodes below it read indexes.
            BitmapHeapScan(scan) => {
                let below = child!(plan.lefttree).and_then(|below| below.as_node().as_a::<pg_sys::BitmapIndexScan>());
                let keys = below.and_then(|index| Some((plan.plan_node_id, child!(index.indexqualorig)?)));
                self.add(Columns::Of(scan.scan.scanrelid), keys, [child!(scan.bitmapqualorig), qual]);
                return Some(());
            },
            Append(append) => self.walk_all(child!(append.appendplans))?,
            MergeAppend(append) => self.walk_all(child!(append.mergeplans))?,
            SubqueryScan(scan) => self.walk(child!(scan.subplan))?,
            _ => if !in_plan(node.tag(), OPENS_NOTHING) {
                return None;
            },
        }
        self.walk(child!(plan.lefttree))?;
        self.walk(child!(plan.righttree))
    }

    fn walk_all(&mut self, list: Option<Tree<'t, pg_sys::List>>) -> Option<()> {
        plans_of(list).try_for_each(|plan| self.walk(Some(plan)))
    }

    /// Adds a scan whose rows fulfil the conditions of these lists, those of the index first. `keys` are the number of
    /// the node and the conditions that its keys stand for, in the order of the keys.
    fn add(
        &mut self,
        columns: Columns<'t>,
        keys: Option<(i32, Tree<'t, pg_sys::List>)>,
        [by_index, others]: [Option<Tree<'t, pg_sys::List>>; 2],
    ) {
        let (Columns::Of(place) | Columns::InIndex(place, _)) = columns;
        let relation = self.relation(place);
        let items = |list: Option<Tree<'t, pg_sys::List>>| list.into_iter().flat_map(Tree::items);
        let known = |list| items(list).flatten().filter_map(|condition| self.condition(condition, columns));
        let (node, quals) = keys.filter(|_| self.runs_alone).unzip();
        let probed = items(quals).zip(0..).filter_map(|(qual, key)| self.probe(qual?, columns, (node?, key)));
        let each_row = Condition { column: EACH_ROW, values: Values::Known(vec![ITS_VALUE]) };
        let conditions = known(by_index).chain(probed).chain(known(others)).chain([each_row]).collect();
        self.scans.push(Scan { relation, conditions, unread: 0, limited: None });
    }

    fn relation(&self, place: u32) -> u32 {
        self.relations.get((place as usize).wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// The condition that a column is equal to a key of an index scan, whose value only the run knows.
    fn probe(
        &self,
        condition: Tree<'t, pg_sys::Node>,
        columns: Columns<'t>,
        (node, key): (i32, usize),
    ) -> Option<Condition> {
        let call = condition.as_a::<pg_sys::OpExpr>()?;
        let mut sides = children!(call.args as Node);
        let (left, right) = (sides.next()?, sides.next()?);
        let var = column_of(left, columns)?;
        let of_column = compared(var, call.opno, call.inputcollid)?;
        // SAFETY: an expression of the plan.
        let type_oid = unsafe { server::exprType(right.as_ptr()) };
        let form =
            form_of(type_oid).filter(|form| form.goes_with(of_column) && value_of(right, self.params).is_none())?;
        let column = var.varattno;
        Some(Condition {
            column,
            values: Values::Probed(Probe { node, at: Place::Key(key), column, form, beside: None }),
        })
    }

    fn condition(&self, condition: Tree<'t, pg_sys::Node>, columns: Columns<'t>) -> Option<Condition> {
        match_node! { condition;
            OpExpr(call) => {
                let mut sides = children!(call.args as Node);
                let (left, right) = (sides.next()?, sides.next()?);
                let (var, other) = match (column_of(left, columns), column_of(right, columns)) {
                    (Some(var), None) => (var, right),
                    (None, Some(var)) => (var, left),
                    _ => return None,
                };
                let form = compared(var, call.opno, call.inputcollid)?;
                let (type_oid, value) = value_of(other, self.params)?;
                Some(Condition::known(var, vec![hash_of(type_oid, value, form)?]))
            },
            ScalarArrayOpExpr(call) => {
                let mut sides = children!(call.args as Node);
                let (left, right) = (sides.next()?, sides.next()?);
                let var = column_of(left, columns).filter(|_| call.useOr)?;
                let form = compared(var, call.opno, call.inputcollid)?;
                Some(Condition::known(var, self.hashes_of_list(right, form)?))
            },
            // The planner has made `column = true` a column, and `column = false` its negation.
            Var(_column) => truth(column_of(condition, columns)?, true),
            BoolExpr(call) => {
                let negated = children!(call.args as Node).next().filter(|_| call.boolop == BoolExprType::NOT_EXPR)?;
                truth(column_of(negated, columns)?, false)
            },
            _ => None,
        }
    }

    /// The hashes of the elements of a constant array that are not NULL, or of a list of constants.
    fn hashes_of_list(&self, list: Tree<'t, pg_sys::Node>, form: Form) -> Option<Vec<u64>> {
        let list = list.without_relabelling();
        if let Some(array) = list.as_a::<pg_sys::ArrayExpr>() {
            let mut elements = children!(array.elements as Node);
            if array.multidims || elements.len() > MOST_VALUES {
                return None;
            }
            return elements.try_fold(Vec::new(), |mut hashes, element| {
                let (type_oid, value) = value_of(element, self.params)?;
                hashes.push(hash_of(type_oid, value, form)?);
                Some(hashes)
            });
        }
        let (_, value) = value_of(list, self.params)?;
        // SAFETY: what stands on this side of such a comparison is an array, and it has elements of the type that it
        // names.
        let (element_type, elements) = unsafe {
            let array = Array::of(Value::of(value));
            let count: i32 = array.dimensions().map(|(size, _)| size).product();
            if count as usize > MOST_VALUES {
                return None;
            }
            (array.element_type(), array.elements(ElementType::of(array.element_type())))
        };
        let mut hashes = Vec::new();
        for element in elements.flatten() {
            hashes.push(hash_of(element_type, element.datum(), form)?);
        }
        Some(hashes)
    }
}

/// The condition that a column is true, or is not.
fn truth(var: Tree<'_, pg_sys::Var>, value: bool) -> Option<Condition> {
    let hash = hash_of(pg_sys::BOOLOID, pg_sys::Datum::from(value), Form::Bool)?;
    (var.vartype == pg_sys::BOOLOID).then(|| Condition::known(var, vec![hash]))
}

/// The form in which an operator compares the values of a column, if it tells that they are equal byte for byte.
fn compared(var: Tree<'_, pg_sys::Var>, operator: pg_sys::Oid, collation: pg_sys::Oid) -> Option<Form> {
    let form = form_of(var.vartype).filter(|_| is_equality(operator))?;
    // The operator of another type, as which the column is taken, may find more values equal: that of `char(n)`.
    // SAFETY: reads catalogs about a type and an operator of the plan.
    let is_own = unsafe {
        let column = kept!(pg_sys::lookup_type_cache(var.vartype, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32));
        kept!(pg_sys::get_op_opfamily_strategy(operator, (*column).btree_opf)) == pg_sys::BTEqualStrategyNumber as i32
    };
    if !is_own {
        return None;
    }
    (form != Form::Text || equality_is_bytewise(pg_sys::TEXTOID, collation)).then_some(form)
}

/// The hash of a value that is compared with one of this form.
fn hash_of(type_oid: pg_sys::Oid, value: pg_sys::Datum, column: Form) -> Option<u64> {
    let form = form_of(type_oid).filter(|form| form.goes_with(column))?;
    // SAFETY: a value of this type, which is not NULL.
    unsafe { form.hash(value) }
}

/// A column of the relation that is scanned. One behind many others is none that could be tracked: a writer would walk
/// through all of these in each row that it deletes, which may take longer than to delete it.
fn column_of<'t>(node: Tree<'t, pg_sys::Node>, columns: Columns<'t>) -> Option<Tree<'t, pg_sys::Var>> {
    let var = node.without_relabelling().as_a::<pg_sys::Var>()?;
    let is_of = |var: &Tree<'_, pg_sys::Var>, place: u32| var.varno as u32 == place && bit_of(var.varattno) != 1;
    match columns {
        Columns::Of(place) => Some(var).filter(|var| is_of(var, place)),
        Columns::InIndex(place, scan) if var.varno == pg_sys::INDEX_VAR => {
            let stored = children!(scan.indextlist as TargetEntry).find(|target| target.resno == var.varattno)?;
            child!(stored.expr)?.as_a::<pg_sys::Var>().filter(|var| is_of(var, place))
        }
        Columns::InIndex(..) => None,
    }
}
