//! What nodes add to a query's identity, by themselves, that do not stand in most queries: calls, other expressions,
//! clauses. A kind that a function here does not know stops the walk. Kept out of the function that recurses, so that
//! its frame stays small.

use pgrx::pg_sys;

use super::hasher::TreeHasher;
use crate::pg::compat::tree;
use crate::pg::tree::{Tree, child, child_integers, child_oids, child_text, children, match_node};
use crate::query::clock::has_dates;
use crate::query::constant_texts::{is_timestamp, tell_no_time};
use crate::query::node_table::{FORM_IS_KIND, FORM_IS_TYPE, in_query};

impl TreeHasher {
    /// Calls of aggregates and window functions, and operators other than plain ones.
    #[inline(never)]
    pub(super) fn add_call(&mut self, node: Tree<'_, pg_sys::Node>) {
        match_node! { node;
            Aggref(call) => {
                self.oids([call.aggfnoid, call.inputcollid]);
                self.form.u32(call.agglevelsup);
                self.form.u32(u32::from(call.aggstar) | u32::from(call.aggvariadic) << 1);
                self.form.u32(call.aggkind as u32);
                // The server's walker shows what is in these lists, one after the other.
                self.lengths([
                    child!(call.aggdirectargs),
                    child!(call.args),
                    child!(call.aggorder),
                    child!(call.aggdistinct),
                ]);
                self.type_of(node);
            },
            WindowFunc(call) => {
                self.oids([call.winfnoid, call.inputcollid]);
                self.form.u32(call.winref);
                self.form.u32(u32::from(call.winstar) | u32::from(call.winagg) << 1);
                self.lengths([child!(call.args)]);
                self.type_of(node);
            },
            GroupingFunc(call) => self.form.u32(call.agglevelsup),
            ScalarArrayOpExpr(operator) => {
                self.oids([operator.opno, operator.inputcollid]);
                self.form.u8(u8::from(operator.useOr));
            },
            RowCompareExpr(row) => {
                self.form.u32(tree::comparison_of_rows(&row));
                self.all_oids(child_oids!(row.opnos));
                self.all_oids(child_oids!(row.opfamilies));
                self.all_oids(child_oids!(row.inputcollids));
            },
            MinMaxExpr(expression) => {
                self.form.u32(expression.op);
                self.oids([expression.inputcollid]);
                self.type_of(node);
            },
            SQLValueFunction(call) => {
                self.form.u32(call.op);
                self.type_of(node);
            },
            _ => self.add_clause(node),
        }
    }

    /// Adds what a node says by itself. One of a kind that is not known stops the walk: it might ask for something that
    /// the identity would leave out. Here are expressions that call no function that they name.
    #[inline(never)]
    pub(super) fn add_expression(&mut self, node: Tree<'_, pg_sys::Node>) {
        match_node! { node;
            Param(param) => {
                self.form.u32(param.paramkind);
                self.form.u32(param.paramid as u32);
            },
            SubscriptingRef(subscript) => {
                self.oids([subscript.refcontainertype, subscript.refelemtype]);
                self.lengths([child!(subscript.refupperindexpr), child!(subscript.reflowerindexpr)]);
            },
            FieldSelect(field) => self.form.u32(field.fieldnum as u32),
            FieldStore(store) => self.integers(child_integers!(store.fieldnums)),
            RowExpr(row) => self.names(children!(row.colnames as String)),
            // Arguments stand in the order in which they were written, and the name decides which one it is.
            NamedArgExpr(argument) => self.form.u32(argument.argnumber.cast_unsigned()),
            SubLink(link) => {
                self.form.u32(link.subLinkType);
                self.form.u32(link.subLinkId as u32);
            },
            CaseExpr(case) => self.lengths([child!(case.args)]),
            CoerceViaIO(coercion) => {
                if let Some(texts) = child!(coercion.arg).filter(|_| is_timestamp(coercion.resulttype)) {
                    // Whether the query is eligible depends on these constants.
                    let queries = self.queries;
                    self.form.u8(u8::from(tell_no_time(texts.as_node(), &queries)));
                }
            },
            // These have no type that their parts or the clause around them would not show.
            CollateExpr(expression) => return self.oids([expression.collOid]),
            NullTest(test) => {
                self.form.u32(test.nulltesttype);
                return self.form.u8(u8::from(test.argisrow));
            },
            BooleanTest(test) => return self.form.u32(test.booltesttype),
            _ => if !in_query(node.tag()).has(FORM_IS_TYPE) {
                return self.add_call(node);
            }
        }
        self.type_of(node);
    }

    /// Parts of queries that are no expressions.
    #[inline(never)]
    pub(super) fn add_clause(&mut self, node: Tree<'_, pg_sys::Node>) {
        match_node! { node;
            JoinExpr(join) => {
                self.form.u32(join.jointype);
                self.form.u32(join.rtindex as u32);
            },
            SetOperationStmt(operation) => {
                self.form.u32(operation.op);
                self.form.u8(u8::from(operation.all));
                self.all_oids(child_oids!(operation.colTypes));
                self.all_oids(child_oids!(operation.colCollations));
            },
            WindowClause(window) => {
                self.form.u32(window.winref);
                self.form.u32(window.frameOptions as u32);
                self.oids([window.startInRangeFunc, window.endInRangeFunc, window.inRangeColl]);
                self.form.u8(u8::from(window.inRangeAsc) | u8::from(window.inRangeNullsFirst) << 1);
            },
            CommonTableExpr(cte) => {
                self.text(child_text!(cte.ctename));
                self.form.u32(cte.ctematerialized);
                self.form.u8(u8::from(cte.cterecursive));
                self.names(children!(cte.ctecolnames as String));
            },
            RangeTblFunction(function) => {
                self.form.u32(function.funccolcount as u32);
                self.all_oids(child_oids!(function.funccoltypes));
                self.all_oids(child_oids!(function.funccolcollations));
                self.integers(child_integers!(function.funccoltypmods));
                self.names(children!(function.funccolnames as String));
                if child_oids!(function.funccoltypes).any(has_dates) {
                    self.clock.note_day();
                }
            },
            GroupingSet(set) => self.form.u32(set.kind),
            _ => self.too_complex |= !in_query(node.tag()).has(FORM_IS_KIND),
        }
    }
}
