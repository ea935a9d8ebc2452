//! What nodes add to a query's identity that are not met in most queries.

use pgrx::pg_sys::{self, NodeTag};

use super::{END, Walk, visit};
use crate::pg::compat::tree;
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::direct;
use crate::pg::lists::{integers, nodes, oids};

impl Walk {
    /// A node of a kind that is not met in most queries: what it says by itself, then what the server's walker finds in it.
    ///
    /// # Safety
    /// As `node`, which must not be null.
    pub(super) unsafe fn other(&mut self, node: *mut pg_sys::Node) -> bool {
        // SAFETY: as the caller promises; each cast follows the node's tag.
        unsafe {
            match (*node).type_ {
                NodeTag::T_Param => {
                    let param = &*node.cast::<pg_sys::Param>();
                    self.form.u32(param.paramkind);
                    self.form.u32(param.paramid as u32);
                    self.type_of(node);
                }
                NodeTag::T_Aggref => {
                    let call = &*node.cast::<pg_sys::Aggref>();
                    self.oids([call.aggfnoid, call.inputcollid]);
                    self.form.u32(call.agglevelsup);
                    self.form.u32(u32::from(call.aggstar) | u32::from(call.aggvariadic) << 1);
                    self.form.u32(call.aggkind as u32);
                    // The server's walker shows what is in these lists, one after the other.
                    self.lengths([call.aggdirectargs, call.args, call.aggorder, call.aggdistinct]);
                    self.type_of(node);
                }
                NodeTag::T_WindowFunc => {
                    let call = &*node.cast::<pg_sys::WindowFunc>();
                    self.oids([call.winfnoid, call.inputcollid]);
                    self.form.u32(call.winref);
                    self.form.u32(u32::from(call.winstar) | u32::from(call.winagg) << 1);
                    self.lengths([call.args]);
                    self.type_of(node);
                }
                NodeTag::T_GroupingFunc => self.form.u32((*node.cast::<pg_sys::GroupingFunc>()).agglevelsup),
                NodeTag::T_GroupingSet => {
                    // Numbers, or sets inside this one; the server's walker does not know it.
                    let set = &*node.cast::<pg_sys::GroupingSet>();
                    self.form.u32(set.kind);
                    return self.node(set.content.cast());
                }
                // A bare list of numbers or OIDs has nothing below it.
                NodeTag::T_IntList | NodeTag::T_OidList => {
                    for number in integers(node.cast()) {
                        self.form.u32(number.cast_unsigned());
                    }
                    self.form.u32(END);
                    return false;
                }
                NodeTag::T_ScalarArrayOpExpr => {
                    let operator = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                    self.oids([operator.opno, operator.inputcollid]);
                    self.form.u8(u8::from(operator.useOr));
                }
                NodeTag::T_RowCompareExpr => {
                    let row = &*node.cast::<pg_sys::RowCompareExpr>();
                    self.form.u32(tree::comparison_of_rows(row));
                    for list in [row.opnos, row.opfamilies, row.inputcollids] {
                        for oid in oids(list) {
                            self.form.u32(oid.to_u32());
                        }
                    }
                }
                NodeTag::T_SubscriptingRef => {
                    let subscript = &*node.cast::<pg_sys::SubscriptingRef>();
                    self.oids([subscript.refcontainertype, subscript.refelemtype]);
                    self.lengths([subscript.refupperindexpr, subscript.reflowerindexpr]);
                    self.type_of(node);
                }
                NodeTag::T_FieldSelect => {
                    self.form.u32((*node.cast::<pg_sys::FieldSelect>()).fieldnum as u32);
                    self.type_of(node);
                }
                NodeTag::T_FieldStore => {
                    for number in integers((*node.cast::<pg_sys::FieldStore>()).fieldnums) {
                        self.form.u32(number as u32);
                    }
                    self.type_of(node);
                }
                NodeTag::T_RowExpr => {
                    self.names((*node.cast::<pg_sys::RowExpr>()).colnames);
                    self.type_of(node);
                }
                NodeTag::T_CollateExpr => self.oids([(*node.cast::<pg_sys::CollateExpr>()).collOid]),
                NodeTag::T_MinMaxExpr => {
                    let expression = &*node.cast::<pg_sys::MinMaxExpr>();
                    self.form.u32(expression.op);
                    self.oids([expression.inputcollid]);
                    self.type_of(node);
                }
                NodeTag::T_SQLValueFunction => {
                    self.form.u32((*node.cast::<pg_sys::SQLValueFunction>()).op);
                    self.type_of(node);
                }
                NodeTag::T_SubLink => {
                    let link = &*node.cast::<pg_sys::SubLink>();
                    self.form.u32(link.subLinkType);
                    self.form.u32(link.subLinkId as u32);
                    self.type_of(node);
                }
                NodeTag::T_NullTest => {
                    let test = &*node.cast::<pg_sys::NullTest>();
                    self.form.u32(test.nulltesttype);
                    self.form.u8(u8::from(test.argisrow));
                }
                NodeTag::T_BooleanTest => self.form.u32((*node.cast::<pg_sys::BooleanTest>()).booltesttype),
                NodeTag::T_JoinExpr => {
                    let join = &*node.cast::<pg_sys::JoinExpr>();
                    self.form.u32(join.jointype);
                    self.form.u32(join.rtindex as u32);
                }
                NodeTag::T_SetOperationStmt => {
                    let operation = &*node.cast::<pg_sys::SetOperationStmt>();
                    self.form.u32(operation.op);
                    self.form.u8(u8::from(operation.all));
                    for list in [operation.colTypes, operation.colCollations] {
                        for oid in oids(list) {
                            self.form.u32(oid.to_u32());
                        }
                    }
                    for clause in nodes::<pg_sys::Node>(operation.groupClauses) {
                        if self.node(clause) {
                            return true;
                        }
                    }
                }
                NodeTag::T_WindowClause => {
                    let window = &*node.cast::<pg_sys::WindowClause>();
                    self.form.u32(window.winref);
                    self.form.u32(window.frameOptions as u32);
                    self.oids([window.startInRangeFunc, window.endInRangeFunc, window.inRangeColl]);
                    self.form.u8(u8::from(window.inRangeAsc) | u8::from(window.inRangeNullsFirst) << 1);
                }
                NodeTag::T_CommonTableExpr => {
                    let cte = &*node.cast::<pg_sys::CommonTableExpr>();
                    self.text(cte.ctename);
                    self.form.u32(cte.ctematerialized);
                    self.form.u8(u8::from(cte.cterecursive));
                    self.names(cte.ctecolnames);
                }
                NodeTag::T_RangeTblFunction => {
                    let function = &*node.cast::<pg_sys::RangeTblFunction>();
                    self.form.u32(function.funccolcount as u32);
                    for oid in oids(function.funccoltypes).chain(oids(function.funccolcollations)) {
                        self.form.u32(oid.to_u32());
                    }
                    for modifier in integers(function.funccoltypmods) {
                        self.form.u32(modifier.cast_unsigned());
                    }
                }
                NodeTag::T_CaseExpr => {
                    self.lengths([(*node.cast::<pg_sys::CaseExpr>()).args]);
                    self.type_of(node);
                }
                NodeTag::T_RelabelType
                | NodeTag::T_CoerceViaIO
                | NodeTag::T_ArrayCoerceExpr
                | NodeTag::T_ConvertRowtypeExpr
                | NodeTag::T_CaseTestExpr
                | NodeTag::T_ArrayExpr
                | NodeTag::T_CoalesceExpr
                | NodeTag::T_CoerceToDomain => self.type_of(node),
                _ => {}
            }
            let context = (&raw mut *self).cast();
            if direct!(walkers::expression_tree_walker(node, Some(visit), context)) {
                return true;
            }
            self.form.u32(END);
            false
        }
    }
}
