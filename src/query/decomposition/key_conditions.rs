//! Conditions for which the planner may leave out leaves that `query::partitions` lists. Then the query is not combined: it would wait for
//! leaves that the server does not read.
//!
//! All conditions of a part are looked at in one space: columns of sub-queries are what these compute, and a relation has the number in which it was
//! found. They are simplified as the planner simplifies them. Reads only.

use pgrx::pg_sys;

use super::conditions::conjuncts;
use super::site::selection;
use crate::pg::row_type::RowType;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_making::{are_equal, copy, replaced};

/// May the planner leave out leaves for anything but the bounds? `is_filtered`: there are conditions around the site.
///
/// # Safety
/// The query of a part, its table, and its bounds with the levels of it that they stand in; all of it is valid.
pub(super) unsafe fn may_prune(
    query: *mut pg_sys::Query,
    table: pg_sys::Oid,
    bounds: &[(*mut pg_sys::Query, *mut pg_sys::Node)],
    key_columns: &[i16],
    is_filtered: bool,
) -> bool {
    // SAFETY: the caller's promise.
    let Some(query) = (unsafe { Tree::enter(query) }) else { return true };
    let mut found = Conditions { table, key_columns, ..Conditions::default() };
    found.add_query(query);
    for (level, bound) in bounds {
        // SAFETY: the caller's promise.
        let Some(level) = (unsafe { Tree::enter(*level) }) else { return true };
        let clause = found.flat(level, *bound);
        found.add_bound(clause);
    }
    if is_filtered {
        for target in children!(query.targetList as TargetEntry) {
            let expression = found.flat(query, target.expr.cast());
            found.add_shown(expression);
        }
    }
    found.may_prune || found.classes.iter().any(|class| found.is_pruning(class))
}

/// Are there conditions in a query outside of the site?
pub(super) fn are_around(query: Tree<'_, pg_sys::Query>, site: *const pg_sys::Query) -> bool {
    if query.as_ptr().cast_const() == site {
        return false;
    }
    let has_own =
        !query.havingQual.is_null() || child!(query.jointree).is_some_and(|from| has_conditions(from.as_node()));
    has_own
        || children!(query.rtable as RangeTblEntry)
            .any(|entry| child!(entry.subquery).is_some_and(|below| are_around(below, site)))
        || children!(query.cteList as CommonTableExpr).any(|common| {
            let below = child!(common.ctequery).and_then(Tree::as_a::<pg_sys::Query>);
            below.is_some_and(|below| are_around(below, site))
        })
}

fn has_conditions(from: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { from;
        FromExpr(from) => !from.quals.is_null() || children!(from.fromlist as Node).any(has_conditions),
        JoinExpr(join) => !join.quals.is_null() || [child!(join.larg), child!(join.rarg)].into_iter().flatten().any(has_conditions),
        _ => false,
    }
}

/// Expressions that are equal in all rows, because conditions say so.
#[derive(Default)]
struct Class {
    members: Vec<*mut pg_sys::Node>,
    /// How many constants they are compared with.
    constants: usize,
}

#[derive(Default)]
struct Conditions<'k> {
    table: pg_sys::Oid,
    key_columns: &'k [i16],
    /// The relations, whose place is their number less one.
    relations: Vec<(*const pg_sys::RangeTblEntry, pg_sys::Oid)>,
    classes: Vec<Class>,
    /// A condition was found for which leaves may be left out.
    may_prune: bool,
}

impl Conditions<'_> {
    /// Adds the conditions of FROM and WHERE, and those of row security.
    fn add_query(&mut self, query: Tree<'_, pg_sys::Query>) {
        if let Some(from) = child!(query.jointree) {
            self.add_from(query, from.as_node());
        }
        for entry in children!(query.rtable as RangeTblEntry) {
            for condition in children!(entry.securityQuals as Node) {
                self.add(query, Some(condition));
            }
            if let Some(below) = selection(entry) {
                self.add_query(below);
            }
        }
    }

    fn add_from(&mut self, query: Tree<'_, pg_sys::Query>, from: Tree<'_, pg_sys::Node>) {
        match_node! { from;
            FromExpr(from) => {
                self.add(query, child!(from.quals));
                children!(from.fromlist as Node).for_each(|item| self.add_from(query, item));
            },
            JoinExpr(join) => {
                self.add(query, child!(join.quals));
                [child!(join.larg), child!(join.rarg)].into_iter().flatten().for_each(|side| self.add_from(query, side));
            },
            _ => (),
        }
    }

    /// Adds a condition of a query.
    fn add(&mut self, query: Tree<'_, pg_sys::Query>, condition: Option<Tree<'_, pg_sys::Node>>) {
        for one in conjuncts(condition) {
            let flat = self.flat(query, one.as_ptr());
            // SAFETY: a valid expression of its own, without sub-queries. The planner simplifies the same.
            let simple = unsafe {
                let simple = kept!(pg_sys::eval_const_expressions(std::ptr::null_mut(), flat));
                Tree::<pg_sys::Node>::enter(kept!(pg_sys::canonicalize_qual(simple.cast(), false)).cast())
            };
            conjuncts(simple).into_iter().for_each(|one| self.add_conjunct(one));
        }
    }

    fn add_conjunct(&mut self, one: Tree<'_, pg_sys::Node>) {
        if let Some(constant) = one.as_a::<pg_sys::Const>() {
            self.may_prune |= constant.constisnull || constant.constvalue.value() == 0;
            return;
        }
        let names_key = self.names_key(one.as_ptr());
        self.may_prune |= names_key && !self.is_join(one);
        self.may_prune |= self.is_never_null(one);
        match_node! { one;
            OpExpr(comparison) => self.add_equality(comparison),
            ScalarArrayOpExpr(comparison) => {
                if let Some(side) = children!(comparison.args as Node).next() {
                    self.add_constant(side.as_ptr());
                }
            },
            BoolExpr(negation) => {
                if let Some(argument) = children!(negation.args as Node).next() && negation.boolop == pg_sys::BoolExprType::NOT_EXPR {
                    self.add_constant(argument.as_ptr());
                }
            },
            BooleanTest(test) => self.add_constant(test.arg.cast()),
            Var(column) => self.add_constant(column.as_node().as_ptr()),
            _ => (),
        }
    }

    /// Adds a bound, which is compared with partition keys elsewhere.
    fn add_bound(&mut self, bound: *mut pg_sys::Node) {
        // SAFETY: a valid expression.
        let comparison = unsafe { Tree::enter(bound) }.and_then(Tree::as_a::<pg_sys::OpExpr>);
        match comparison {
            Some(comparison) => self.add_equality(comparison),
            None => self.may_prune = true,
        }
    }

    /// Adds a column that is shown to the conditions around: they may compare it with anything.
    fn add_shown(&mut self, expression: *mut pg_sys::Node) {
        // SAFETY: a valid expression.
        unsafe {
            if !kept!(pg_sys::contain_agg_clause(expression)) {
                self.may_prune |= self.names_key(expression) || !kept!(pg_sys::contain_var_clause(expression));
                self.add_constant(expression);
            }
        }
    }

    fn add_equality(&mut self, comparison: Tree<'_, pg_sys::OpExpr>) {
        let mut sides = children!(comparison.args as Node).map(|side| plain(side.as_ptr()));
        let (Some(left), Some(right), None) = (sides.next(), sides.next(), sides.next()) else { return };
        // SAFETY: valid expressions; reads a catalog about an operator of the query.
        unsafe {
            if !kept!(pg_sys::op_mergejoinable(comparison.opno, server::exprType(left))) {
                return;
            }
            match (kept!(pg_sys::contain_var_clause(left)), kept!(pg_sys::contain_var_clause(right))) {
                (true, true) => self.join(left, right),
                (true, false) => self.add_constant(left),
                (false, true) => self.add_constant(right),
                (false, false) => {}
            }
        }
    }

    fn add_constant(&mut self, expression: *mut pg_sys::Node) {
        let class = self.class_of(plain(expression));
        self.classes[class].constants += 1;
    }

    fn join(&mut self, one: *mut pg_sys::Node, other: *mut pg_sys::Node) {
        let (one, other) = (self.class_of(one), self.class_of(other));
        if one != other {
            let other = std::mem::take(&mut self.classes[other]);
            self.classes[one].members.extend(other.members);
            self.classes[one].constants += other.constants;
        }
    }

    fn class_of(&mut self, expression: *mut pg_sys::Node) -> usize {
        let known =
            self.classes.iter().position(|class| class.members.iter().any(|member| is_same(*member, expression)));
        known.unwrap_or_else(|| {
            self.classes.push(Class { members: vec![expression], constants: 0 });
            self.classes.len() - 1
        })
    }

    /// Does the planner conclude something about a partition key, or a contradiction, of what is equal?
    fn is_pruning(&self, class: &Class) -> bool {
        let has_key = class.members.iter().any(|member| self.names_key(*member));
        let is_computed = class.members.iter().any(|member| column(*member).is_none());
        let has_two = class.members.iter().filter(|member| self.names_key(**member)).count() > 1;
        class.constants > 1 || has_two || (has_key && class.members.len() > 1 && (class.constants > 0 || is_computed))
    }

    /// Does an expression name a column of a partition key?
    fn names_key(&self, expression: *mut pg_sys::Node) -> bool {
        let mut found = false;
        let mut examine = |node: Tree<'_, pg_sys::Node>, _: u32| {
            found |= node.as_a::<pg_sys::Var>().is_some_and(|column| self.is_key(&column));
            None
        };
        // SAFETY: a valid expression. Nothing is replaced.
        unsafe { replaced(expression, &mut examine) };
        found
    }

    fn is_key(&self, column: &pg_sys::Var) -> bool {
        self.relation_of(column) == Some(self.table)
            && (self.key_columns.contains(&0) || self.key_columns.contains(&column.varattno))
    }

    fn relation_of(&self, column: &pg_sys::Var) -> Option<pg_sys::Oid> {
        self.relations.get((column.varno as usize).checked_sub(1)?).map(|(_, relation)| *relation)
    }

    /// Is it a comparison of a column with one of another relation?
    fn is_join(&self, condition: Tree<'_, pg_sys::Node>) -> bool {
        let Some(comparison) = condition.as_a::<pg_sys::OpExpr>() else { return false };
        let mut sides = children!(comparison.args as Node).map(|side| column(side.as_ptr()));
        match (sides.next(), sides.next()) {
            (Some(Some(one)), Some(Some(other))) => one.0 != other.0,
            _ => false,
        }
    }

    /// Does it, or one side of it, ask whether a column is null that never is? Later versions know that it is false.
    fn is_never_null(&self, condition: Tree<'_, pg_sys::Node>) -> bool {
        let mut found = false;
        let mut examine = |node: Tree<'_, pg_sys::Node>, _: u32| {
            let test = node.as_a::<pg_sys::NullTest>()?;
            let (relation, number) = column(test.arg.cast())?;
            let relation = self.relations.get(usize::try_from(relation).ok()?.checked_sub(1)?)?.1;
            found |= test.nulltesttype == pg_sys::NullTestType::IS_NULL && is_not_null(relation, number);
            None
        };
        // SAFETY: a valid expression. Nothing is replaced.
        unsafe { replaced(condition.as_ptr(), &mut examine) };
        found
    }

    /// A copy of an expression in which columns are those of relations.
    fn flat(&mut self, query: Tree<'_, pg_sys::Query>, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
        let mut examine = |node: Tree<'_, pg_sys::Node>, depth: u32| {
            let column = node.as_a::<pg_sys::Var>()?;
            let found = self.column_below(query, column).filter(|_| depth == 0 && column.varlevelsup == 0);
            if found.is_none() {
                self.may_prune = true;
            }
            found
        };
        // SAFETY: a valid expression, of which the caller sees a copy.
        unsafe { replaced(copy(expression), &mut examine) }
    }

    fn column_below(
        &mut self,
        query: Tree<'_, pg_sys::Query>,
        column: Tree<'_, pg_sys::Var>,
    ) -> Option<*mut pg_sys::Node> {
        let entry = children!(query.rtable as RangeTblEntry).nth((column.varno as usize).checked_sub(1)?)?;
        if let Some(below) = selection(entry) {
            let target = children!(below.targetList as TargetEntry).find(|target| target.resno == column.varattno)?;
            return Some(self.flat(below, target.expr.cast()));
        }
        if entry.rtekind != pg_sys::RTEKind::RTE_RELATION {
            return None;
        }
        let place = self.relations.iter().position(|(known, _)| *known == entry.as_ptr().cast_const());
        let place = place.unwrap_or_else(|| {
            self.relations.push((entry.as_ptr(), entry.relid));
            self.relations.len() - 1
        });
        // SAFETY: a copy, which nobody else knows.
        unsafe {
            let flat = copy(column.as_ptr());
            (*flat).varno = (place + 1) as _;
            Some(flat.cast())
        }
    }
}

/// An expression without what takes it as one of a type with the same values.
fn plain(mut expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a valid expression.
    while let Some(relabelled) = unsafe { Tree::enter(expression) }.and_then(Tree::as_a::<pg_sys::RelabelType>) {
        expression = relabelled.arg.cast();
    }
    expression
}

/// The relation and number of a column.
fn column(expression: *mut pg_sys::Node) -> Option<(i32, i16)> {
    // SAFETY: a valid expression.
    let column = unsafe { Tree::enter(plain(expression)) }?.as_a::<pg_sys::Var>()?;
    Some((column.varno, column.varattno))
}

fn is_same(one: *mut pg_sys::Node, other: *mut pg_sys::Node) -> bool {
    match (column(one), column(other)) {
        (Some(one), Some(other)) => one == other,
        // SAFETY: valid expressions.
        (None, None) => unsafe { are_equal(one, other) },
        _ => false,
    }
}

fn is_not_null(relation: pg_sys::Oid, number: i16) -> bool {
    // SAFETY: the reference keeps the description; an error leaves it to the resource owner.
    unsafe {
        let open = kept!(pg_sys::RelationIdGetRelation(relation));
        if open.is_null() {
            return true;
        }
        let attribute = usize::try_from(number - 1).ok().and_then(|place| RowType::of((*open).rd_att).attribute(place));
        let result = attribute.is_none_or(|attribute| attribute.attnotnull);
        kept!(pg_sys::RelationClose(open));
        result
    }
}
