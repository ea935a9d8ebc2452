//! What a walk over a query tree has gathered so far, and how nodes that stand in most queries add to it. Nothing here
//! walks: what is below a node is left to `identity`.

use std::ffi::CStr;

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys::{self, NodeTag};

use crate::pg::backend::WalkDepth;
use crate::pg::compat::tree;
use crate::pg::compat::tree::walkers;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, child_integers, child_oids, child_text, children};
use crate::query::clock::ClockExpressions;
use crate::query::enclosing::Enclosing;
use crate::query::parameters;

/// current_setting(text) and current_setting(text, boolean).
pub const CURRENT_SETTING: &[u32] = &[2077, 3294];

/// Stands for a node that is not there, and for the end of a node's parts.
pub(super) const NOTHING: u32 = 0;
pub(super) const END: u32 = u32::MAX;

/// The buffers that a tree is written into.
pub(super) struct TreeHasher {
    pub(super) form: HashBuffer,
    /// Values of constants: in the tree alone.
    pub(super) constants: HashBuffer,
    /// Whether the query is eligible depends on constants.
    pub(super) reads_constants: bool,
    /// The tree nests too deeply, or has a node of a kind that is not known here.
    pub(super) too_complex: bool,
    /// It calls functions that are not the server's own.
    pub(super) calls_users: bool,
    /// A query without FROM hands times on to the one around it.
    pub(super) hands_times_on: bool,
    /// Clock expressions found so far.
    pub(super) clock: ClockExpressions,
    /// The queries that the walk is in. The tree outlives the walk.
    pub(super) queries: Enclosing<'static>,
    pub(super) depth: WalkDepth,
}

pub(super) fn bits(flags: &[bool]) -> u32 {
    flags.iter().fold(0, |bits, flag| bits << 1 | u32::from(*flag))
}

impl TreeHasher {
    /// A walk that has not begun.
    pub(super) fn new([form, constants]: [HashBuffer; 2], depth: WalkDepth) -> Self {
        Self {
            form,
            constants,
            reads_constants: false,
            too_complex: false,
            calls_users: false,
            hands_times_on: false,
            clock: ClockExpressions::NONE,
            queries: Enclosing::NONE,
            depth,
        }
    }

    /// Stops the walk: whoever calls this returns true.
    #[cold]
    pub(super) fn stop(&mut self) -> bool {
        self.too_complex = true;
        true
    }

    #[inline]
    pub(super) fn oids<const N: usize>(&mut self, oids: [pg_sys::Oid; N]) {
        self.form.words(oids.map(pg_sys::Oid::to_u32));
    }

    #[inline]
    pub(super) fn all_oids(&mut self, oids: impl Iterator<Item = pg_sys::Oid>) {
        for oid in oids {
            self.form.u32(oid.to_u32());
        }
        self.form.u32(END);
    }

    #[inline]
    pub(super) fn integers(&mut self, numbers: impl Iterator<Item = i32>) {
        for number in numbers {
            self.form.u32(number.cast_unsigned());
        }
    }

    #[inline]
    pub(super) fn lengths<const N: usize>(&mut self, lists: [Option<Tree<'_, pg_sys::List>>; N]) {
        self.form.words(lists.map(|list| list.map_or(0, |list| list.length() as u32)));
    }

    #[inline]
    pub(super) fn text(&mut self, text: Option<&CStr>) {
        match text {
            // No text is that long.
            None => self.form.u64(u64::MAX),
            Some(text) => self.form.part(text.to_bytes()),
        }
    }

    pub(super) fn names<'t>(&mut self, names: impl ExactSizeIterator<Item = Tree<'t, pg_sys::String>>) {
        self.form.u32(names.len() as u32);
        for name in names {
            self.text(child_text!(name.sval));
        }
    }

    #[inline]
    pub(super) fn type_of(&mut self, expression: Tree<'_, pg_sys::Node>) {
        // The modifier of these follows from those of their parts, and is sought in all of them: they may be nested.
        let follows = matches!(expression.tag(), NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr | NodeTag::T_MinMaxExpr);
        let expression = expression.as_ptr();
        // SAFETY: an expression of a valid tree.
        unsafe {
            self.form.words([
                walkers::exprType(expression).to_u32(),
                walkers::exprCollation(expression).to_u32(),
                if follows { 0 } else { walkers::exprTypmod(expression).cast_unsigned() },
            ]);
        }
    }

    #[inline]
    pub(super) fn var(&mut self, var: &pg_sys::Var) {
        self.form.words([
            var.varno as u32,
            var.varattno as u32,
            var.varlevelsup,
            var.vartypmod.cast_unsigned(),
            var.vartype.to_u32(),
            var.varcollid.to_u32(),
        ]);
    }

    /// `'today'::date` is a constant too, and another one each day.
    #[inline]
    pub(super) fn constant(&mut self, constant: Tree<'_, pg_sys::Const>) {
        self.form.words([
            constant.consttype.to_u32(),
            constant.constcollid.to_u32(),
            constant.consttypmod.cast_unsigned(),
            u32::from(constant.constisnull),
        ]);
        if !constant.constisnull {
            // SAFETY: a non-null constant of a valid tree holds a value of its declared length and passing.
            unsafe {
                let length = constant.constlen as i16;
                parameters::add_datum(&mut self.constants, constant.constvalue, constant.constbyval, length);
            }
        }
    }

    #[inline]
    pub(super) fn call(&mut self, call: Tree<'_, pg_sys::FuncExpr>) {
        self.reads_constants |= CURRENT_SETTING.contains(&call.funcid.to_u32());
        self.calls_users |= call.funcid.to_u32() >= FIRST_UNPINNED_OID;
        self.oids([call.funcid, call.funcresulttype, call.funccollid, call.inputcollid]);
        self.form.u32(u32::from(call.funcretset) | u32::from(call.funcvariadic) << 1);
        // The modifier of a length coercion is one of its arguments, a constant.
        // SAFETY: an expression of a valid tree.
        self.form.u32(unsafe { walkers::exprTypmod(call.as_node().as_ptr()) }.cast_unsigned());
    }

    #[inline]
    pub(super) fn sorting(&mut self, clause: &pg_sys::SortGroupClause) {
        self.form.u32(clause.tleSortGroupRef);
        self.oids([clause.eqop, clause.sortop]);
        self.form.u32(u32::from(clause.nulls_first) | u32::from(clause.hashable) << 1);
    }

    #[inline]
    pub(super) fn target(&mut self, target: Tree<'_, pg_sys::TargetEntry>) {
        self.form.words([
            target.resno as u32,
            target.ressortgroupref,
            u32::from(target.resjunk),
            target.resorigtbl.to_u32(),
            target.resorigcol as u32,
        ]);
        self.text(child_text!(target.resname));
        if let Some(expression) = child!(target.expr) {
            self.type_of(expression.as_node());
        }
    }

    #[inline(never)]
    pub(super) fn range_table_entry(&mut self, entry: Tree<'_, pg_sys::RangeTblEntry>) {
        let flags = [
            entry.inh,
            entry.lateral,
            entry.funcordinality,
            entry.self_reference,
            entry.tablesample.is_null(),
            entry.securityQuals.is_null(),
            entry.security_barrier,
        ];
        self.form.words([
            entry.rtekind,
            entry.relid.to_u32(),
            entry.relkind as u32,
            entry.jointype,
            entry.ctelevelsup,
            bits(&flags),
        ]);
        self.text(child_text!(entry.ctename));
        // Relations are protected by their locks, so of the names of their columns those count that the query gives
        // them.
        let is_relation = entry.rtekind == pg_sys::RTEKind::RTE_RELATION;
        match if is_relation { child!(entry.alias) } else { child!(entry.eref) } {
            Some(alias) => self.names(children!(alias.colnames as String)),
            None => self.form.u32(0),
        }
        self.all_oids(child_oids!(entry.coltypes));
        self.all_oids(child_oids!(entry.colcollations));
        self.integers(child_integers!(entry.coltypmods));
        tree::for_each_permission_word(entry, |word| self.form.u64(word));
    }

    #[inline(never)]
    pub(super) fn query(&mut self, query: Tree<'_, pg_sys::Query>) {
        let flags = [
            query.hasModifyingCTE,
            query.hasForUpdate,
            query.hasDistinctOn,
            query.hasRecursive,
            query.hasRowSecurity,
            query.groupDistinct,
            query.rowMarks.is_null(),
            query.utilityStmt.is_null(),
            query.groupingSets.is_null(),
        ];
        self.form.words([query.commandType, query.limitOption, bits(&flags)]);
        tree::for_each_permission_word_of_query(query, |word| self.form.u64(word));
    }
}
