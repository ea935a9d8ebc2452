//! What the kind of a node says by itself. A kind has one row, for where it stands: in queries, or in plans. Kinds with
//! the same row share it. A kind without one, of a later version of the server, say, has no property, and a query with
//! it is refused: what it computes may depend on anything. The tests `layers` name kinds of the server without a row.

use arrow_cache_core::Reason;
use pgrx::pg_sys::NodeTag as Tag;

use crate::pg::compat::tree;

/// A row.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Why a query with such a node is not cached; `None` for what the kind alone is no reason against.
    pub refusal: Option<Reason>,
    properties: u16,
}

// In queries.

/// An expression that may have a type that none of its parts has.
pub const TYPED: u16 = 1;
/// An expression where a collation comes in; all others have those of their parts.
pub const COLLATED: u16 = 1 << 1;
/// An expression that depends on rows: a column, an aggregate, a sub-query.
pub const OF_ROWS: u16 = 1 << 2;
/// An expression that adds its type to the form, and what is below it.
pub const FORM_IS_TYPE: u16 = 1 << 4;
/// Adds nothing but its kind to the form: no cacheable query has it, or other nodes say the same, as the query of a CTE
/// says what it searches for. Parts of queries that change data are among these: the queries with them are refused.
pub const FORM_IS_KIND: u16 = 1 << 5;

// In plans.

/// Opens no table and no index but through the nodes below it.
pub const OPENS_NOTHING: u16 = 1 << 6;
/// Gives no more rows than the node below it.
pub const ADDS_NO_ROWS: u16 = 1 << 7;
/// The server looks for the row of a cursor neither in it nor below it (search_plan_tree in execCurrent.c).
pub const HIDES_ROWS: u16 = 1 << 8;

impl Kind {
    /// Returns true if the kind has this property.
    pub fn has(self, property: u16) -> bool {
        self.properties & property != 0
    }
}

const fn known(properties: u16) -> Kind {
    Kind { refusal: None, properties }
}

const fn refused(reason: Reason, properties: u16) -> Kind {
    Kind { refusal: Some(reason), properties }
}

/// The row of a kind of nodes in queries.
pub fn in_query(tag: Tag) -> Kind {
    match tag {
        Tag::T_List | Tag::T_TargetEntry | Tag::T_FromExpr | Tag::T_JoinExpr | Tag::T_RangeTblRef => known(0),
        Tag::T_Query | Tag::T_RangeTblEntry | Tag::T_RangeTblFunction | Tag::T_CommonTableExpr => known(0),
        Tag::T_SetOperationStmt | Tag::T_SortGroupClause | Tag::T_WindowClause | Tag::T_NamedArgExpr => known(0),
        Tag::T_DistinctExpr | Tag::T_NullIfExpr | Tag::T_ScalarArrayOpExpr | Tag::T_RowCompareExpr => known(0),
        Tag::T_MinMaxExpr | Tag::T_CoerceViaIO | Tag::T_SQLValueFunction | Tag::T_FieldStore => known(0),
        // Its type is that of its columns, or one with a name (`eligibility::node_details`).
        Tag::T_RowExpr | Tag::T_BoolExpr | Tag::T_NullTest | Tag::T_BooleanTest => known(0),
        Tag::T_CTESearchClause | Tag::T_CTECycleClause => known(FORM_IS_KIND),
        Tag::T_Var => known(COLLATED | OF_ROWS),
        Tag::T_Const | Tag::T_Param | Tag::T_CollateExpr => known(COLLATED),
        Tag::T_Aggref | Tag::T_WindowFunc | Tag::T_SubLink => known(TYPED | OF_ROWS),
        Tag::T_GroupingFunc => known(OF_ROWS),
        Tag::T_FuncExpr | Tag::T_OpExpr | Tag::T_SubscriptingRef | Tag::T_CaseExpr | Tag::T_FieldSelect => known(TYPED),
        Tag::T_CoalesceExpr | Tag::T_ArrayExpr => known(TYPED | FORM_IS_TYPE),
        Tag::T_ArrayCoerceExpr | Tag::T_ConvertRowtypeExpr => known(TYPED | FORM_IS_TYPE),
        Tag::T_CaseTestExpr => known(FORM_IS_TYPE),
        Tag::T_RelabelType => known(COLLATED | FORM_IS_TYPE),
        Tag::T_CoerceToDomain => refused(Reason::DomainConstraint, FORM_IS_TYPE),
        Tag::T_NextValueExpr => refused(Reason::VolatileFunction, FORM_IS_KIND),
        Tag::T_CurrentOfExpr => refused(Reason::SystemColumn, FORM_IS_KIND),
        Tag::T_XmlExpr | Tag::T_TableFunc => refused(Reason::XmlExpression, FORM_IS_KIND),
        Tag::T_TableSampleClause | Tag::T_SetToDefault | Tag::T_WithCheckOption => {
            refused(Reason::TooComplex, FORM_IS_KIND)
        }
        Tag::T_OnConflictExpr | Tag::T_InferenceElem | Tag::T_MergeAction => refused(Reason::TooComplex, FORM_IS_KIND),
        tag if tree::is_refused_node(tag) => refused(Reason::StableFunction, FORM_IS_KIND),
        tag if tree::is_part_of_refused_node(tag) => refused(Reason::TooComplex, FORM_IS_KIND),
        _ => refused(Reason::TooComplex, 0),
    }
}

/// Returns true if a kind of nodes in plans has this property.
pub fn in_plan(tag: Tag, property: u16) -> bool {
    let properties = match tag {
        Tag::T_Result => OPENS_NOTHING | ADDS_NO_ROWS,
        Tag::T_Limit => OPENS_NOTHING,
        Tag::T_Sort | Tag::T_IncrementalSort | Tag::T_Unique => OPENS_NOTHING | ADDS_NO_ROWS | HIDES_ROWS,
        Tag::T_Material | Tag::T_Memoize | Tag::T_Group | Tag::T_WindowAgg => OPENS_NOTHING | ADDS_NO_ROWS | HIDES_ROWS,
        Tag::T_NestLoop | Tag::T_MergeJoin | Tag::T_HashJoin | Tag::T_Hash | Tag::T_Agg | Tag::T_SetOp => {
            OPENS_NOTHING | HIDES_ROWS
        }
        Tag::T_Gather | Tag::T_GatherMerge | Tag::T_LockRows | Tag::T_ProjectSet | Tag::T_RecursiveUnion => {
            OPENS_NOTHING | HIDES_ROWS
        }
        Tag::T_FunctionScan | Tag::T_ValuesScan | Tag::T_TableFuncScan | Tag::T_CteScan => OPENS_NOTHING | HIDES_ROWS,
        Tag::T_NamedTuplestoreScan | Tag::T_WorkTableScan => OPENS_NOTHING | HIDES_ROWS,
        Tag::T_MergeAppend | Tag::T_ModifyTable | Tag::T_BitmapAnd | Tag::T_BitmapOr | Tag::T_BitmapIndexScan => {
            HIDES_ROWS
        }
        _ => 0,
    };
    properties & property != 0
}
