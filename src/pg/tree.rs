//! Trees of nodes that the server made: queries, expressions, plans. Who enters a tree vouches for it once
//! (`Tree::enter`); whoever walks on from there through the fields of its nodes need not vouch again. Reading only;
//! nothing is kept.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use pgrx::pg_sys::{self, NodeTag, PgNode};

use super::lists::{integers, nodes, oids};

/// A node that the server made, with all that it points to. Valid, and changed by nobody, for `'t`.
pub struct Tree<'t, T> {
    node: NonNull<T>,
    valid: PhantomData<&'t T>,
}

impl<T> Clone for Tree<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tree<'_, T> {}

impl<T> Deref for Tree<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: whoever entered the tree vouched for all of its nodes.
        unsafe { self.node.as_ref() }
    }
}

impl<'t, T> Tree<'t, T> {
    /// Enters a tree at a node; `None` for null.
    ///
    /// # Safety
    /// The node must be null, or one of type `T` that is valid for `'t` with all that its fields point to. Nobody may
    /// change any of it meanwhile.
    pub unsafe fn enter(node: *const T) -> Option<Self> {
        NonNull::new(node.cast_mut()).map(|node| Self { node, valid: PhantomData })
    }

    /// The node, for calls of the server.
    pub fn as_ptr(self) -> *mut T {
        self.node.as_ptr()
    }

    /// A node below this one.
    ///
    /// # Safety
    /// `field` must be a field of this node, or of a part of it: `child!` sees to that.
    pub unsafe fn below<U>(self, field: *mut U) -> Option<Tree<'t, U>> {
        NonNull::new(field).map(|node| Tree { node, valid: PhantomData })
    }

    /// The nodes of a list below this one.
    ///
    /// # Safety
    /// `field` must be a field of this node, or of a part of it, that holds a list of such nodes: `children!` sees to
    /// the former.
    pub unsafe fn list_below<U: 't>(
        self,
        field: *const pg_sys::List,
    ) -> impl ExactSizeIterator<Item = Tree<'t, U>> + Clone {
        // SAFETY: a list of such nodes, part of a valid tree.
        unsafe { nodes::<U>(field) }.map(|node| {
            // SAFETY: of the lists in trees only those of columns of joins may hold null, and nobody walks these by
            // this function (`Tree::items`).
            Tree { node: unsafe { NonNull::new_unchecked(node) }, valid: PhantomData }
        })
    }

    /// The OIDs of a list below this one.
    ///
    /// # Safety
    /// `field` must be a field of this node, or of a part of it, that holds a list of OIDs: `child_oids!` sees to the
    /// former.
    pub unsafe fn oids_below(self, field: *const pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> + 't {
        // SAFETY: the list is part of a valid tree.
        unsafe { oids(field) }
    }

    /// The numbers of a list below this one.
    ///
    /// # Safety
    /// `field` must be a field of this node, or of a part of it, that holds a list of integers: `child_integers!` sees
    /// to the former.
    pub unsafe fn integers_below(self, field: *const pg_sys::List) -> impl Iterator<Item = i32> + 't {
        // SAFETY: the list is part of a valid tree.
        unsafe { integers(field) }
    }

    /// A text of this node; `None` for null.
    ///
    /// # Safety
    /// `field` must be a field of this node, or of a part of it, that holds a text: `child_text!` sees to the former.
    pub unsafe fn text_below(self, field: *const c_char) -> Option<&'t CStr> {
        // SAFETY: texts of nodes end with NUL, and are part of a valid tree.
        (!field.is_null()).then(|| unsafe { CStr::from_ptr(field) })
    }

    /// The node itself, for as long as the tree is valid.
    pub fn get(self) -> &'t T {
        // SAFETY: whoever entered the tree vouched for all of its nodes.
        unsafe { self.node.as_ref() }
    }
}

impl<'t, T: PgNode> Tree<'t, T> {
    /// The kind of the node.
    pub fn tag(self) -> NodeTag {
        // SAFETY: every node begins with its tag.
        unsafe { (*self.node.as_ptr().cast::<pg_sys::Node>()).type_ }
    }

    /// The node as one of any kind.
    pub fn as_node(self) -> Tree<'t, pg_sys::Node> {
        Tree { node: self.node.cast(), valid: PhantomData }
    }

    /// The node as one of this kind, if it is one.
    pub fn as_a<U: Tagged>(self) -> Option<Tree<'t, U>> {
        (self.tag() == U::TAG).then(|| Tree { node: self.node.cast(), valid: PhantomData })
    }

    /// The node as one of this kind.
    ///
    /// # Safety
    /// The node's tag must be one of that type: `match_node!` sees to that.
    pub unsafe fn cast<U: Tagged>(self) -> Tree<'t, U> {
        Tree { node: self.node.cast(), valid: PhantomData }
    }
}

impl<'t> Tree<'t, pg_sys::Node> {
    /// The expression below conversions that leave a value as it is, such as that of a `varchar`, or of a domain over
    /// text, to a text.
    pub fn without_relabelling(self) -> Self {
        let mut node = self;
        while let Some(relabelled) = node.as_a::<pg_sys::RelabelType>()
            && let Some(below) = child!(relabelled.arg)
        {
            node = below.as_node();
        }
        node
    }

    /// The bytes of a constant that is a text, perhaps below such conversions; `None` for NULL, and for anything else.
    pub fn constant_text(self) -> Option<&'t [u8]> {
        let constant = self.without_relabelling().as_a::<pg_sys::Const>()?;
        if constant.constisnull || constant.constlen != -1 {
            return None;
        }
        // SAFETY: a constant of variable length that is not NULL. What the parser makes of a literal is returned as it
        // is; anything else is copied into the current memory context.
        unsafe {
            let flat = kept!(pg_sys::pg_detoast_datum_packed(constant.constvalue.cast_mut_ptr()));
            Some(pgrx::varlena_to_byte_slice(flat))
        }
    }
}

impl<'t> Tree<'t, pg_sys::List> {
    /// How many items the list has.
    pub fn length(self) -> usize {
        self.get().length as usize
    }

    /// The items of a list of nodes, some of which may be missing (columns of a join that were dropped); none for a
    /// list of something else.
    pub fn items(self) -> impl ExactSizeIterator<Item = Option<Tree<'t, pg_sys::Node>>> {
        let list = if self.tag() == NodeTag::T_List { self.as_ptr() } else { std::ptr::null_mut() };
        // SAFETY: a list with this tag holds nodes; whoever entered the tree vouched for all of them.
        unsafe { nodes::<pg_sys::Node>(list) }
            .map(|node| NonNull::new(node).map(|node| Tree { node, valid: PhantomData }))
    }

    /// The items of a list of numbers or OIDs.
    pub fn numbers(self) -> impl Iterator<Item = i32> + 't {
        let list = if self.tag() == NodeTag::T_List { std::ptr::null_mut() } else { self.as_ptr() };
        // SAFETY: a list that does not hold nodes holds integers, or OIDs, which are as wide.
        unsafe { integers(list) }
    }
}

/// Kinds of nodes that a tag stands for.
///
/// # Safety
/// A node with this tag, or with one of the aliases, must have this type, or begin with it.
pub unsafe trait Tagged: PgNode {
    /// The tag.
    const TAG: NodeTag;
    /// Tags of other nodes that have the same type.
    const ALIASES: &'static [NodeTag];
}

/// Returns true if a node with this tag has the type of another kind. Asked by `match_node!` while the program is
/// compiled.
pub const fn is_alias<T: Tagged>(tag: NodeTag) -> bool {
    let mut place = 0;
    while place < T::ALIASES.len() {
        if T::ALIASES[place] as u32 == tag as u32 {
            return true;
        }
        place += 1;
    }
    false
}

/// Each type with the tag of the same name, and the tags of others that share it.
macro_rules! tagged {
    ($($kind:ident = $tag:ident $(| $alias:ident)*),* $(,)?) => {
        $(
            // SAFETY: the server names the tag after the type (nodes/nodetags.h). Those that share one are declared so
            // (nodes/primnodes.h), or begin with all that it has (scans of tables, sorts, nodes/plannodes.h).
            unsafe impl Tagged for pg_sys::$kind {
                const TAG: NodeTag = NodeTag::$tag;
                const ALIASES: &'static [NodeTag] = &[$(NodeTag::$alias),*];
            }
        )*
    };
}

tagged! {
    Agg = T_Agg,
    Aggref = T_Aggref,
    Append = T_Append,
    BitmapAnd = T_BitmapAnd,
    BitmapHeapScan = T_BitmapHeapScan,
    BitmapIndexScan = T_BitmapIndexScan,
    BitmapOr = T_BitmapOr,
    BoolExpr = T_BoolExpr,
    BooleanTest = T_BooleanTest,
    CaseExpr = T_CaseExpr,
    CaseTestExpr = T_CaseTestExpr,
    CaseWhen = T_CaseWhen,
    CoalesceExpr = T_CoalesceExpr,
    CoerceViaIO = T_CoerceViaIO,
    ArrayExpr = T_ArrayExpr,
    CollateExpr = T_CollateExpr,
    CommonTableExpr = T_CommonTableExpr,
    Const = T_Const,
    CopyStmt = T_CopyStmt,
    CustomScan = T_CustomScan,
    DeclareCursorStmt = T_DeclareCursorStmt,
    DefElem = T_DefElem,
    ExplainStmt = T_ExplainStmt,
    FieldSelect = T_FieldSelect,
    FieldStore = T_FieldStore,
    Float = T_Float,
    FromExpr = T_FromExpr,
    FuncExpr = T_FuncExpr,
    GroupingFunc = T_GroupingFunc,
    GroupingSet = T_GroupingSet,
    IndexOnlyScan = T_IndexOnlyScan,
    IndexScan = T_IndexScan,
    Integer = T_Integer,
    JoinExpr = T_JoinExpr,
    Limit = T_Limit,
    List = T_List | T_IntList | T_OidList,
    MergeAppend = T_MergeAppend,
    MinMaxExpr = T_MinMaxExpr,
    NamedArgExpr = T_NamedArgExpr,
    NullTest = T_NullTest,
    OpExpr = T_OpExpr | T_DistinctExpr | T_NullIfExpr,
    Param = T_Param,
    PartitionedRelPruneInfo = T_PartitionedRelPruneInfo,
    PlanInvalItem = T_PlanInvalItem,
    PlannedStmt = T_PlannedStmt,
    Query = T_Query,
    RangeTblEntry = T_RangeTblEntry,
    RangeTblFunction = T_RangeTblFunction,
    RangeTblRef = T_RangeTblRef,
    RelOptInfo = T_RelOptInfo,
    RelabelType = T_RelabelType,
    RowCompareExpr = T_RowCompareExpr,
    RowExpr = T_RowExpr,
    SQLValueFunction = T_SQLValueFunction,
    ScalarArrayOpExpr = T_ScalarArrayOpExpr,
    SecLabelStmt = T_SecLabelStmt,
    SeqScan = T_SeqScan | T_SampleScan | T_BitmapHeapScan | T_TidScan | T_TidRangeScan | T_ForeignScan | T_IndexScan
        | T_IndexOnlyScan,
    SetOperationStmt = T_SetOperationStmt,
    PlannerGlobal = T_PlannerGlobal,
    PlannerInfo = T_PlannerInfo,
    Result = T_Result,
    Sort = T_Sort | T_IncrementalSort,
    SortGroupClause = T_SortGroupClause,
    String = T_String,
    SubLink = T_SubLink,
    SubqueryScan = T_SubqueryScan,
    SubscriptingRef = T_SubscriptingRef,
    TargetEntry = T_TargetEntry,
    TransactionStmt = T_TransactionStmt,
    TruncateStmt = T_TruncateStmt,
    Var = T_Var,
    WindowClause = T_WindowClause,
    WindowFunc = T_WindowFunc,
}

/// The node that a field of a node points to: `child!(query.jointree)` is an `Option` of a `Tree`.
macro_rules! child {
    ($tree:ident . $field:ident $(. $more:ident)*) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is null, or points to a valid node of the field's type.
        unsafe { $crate::pg::tree::Tree::below($tree, node.$field $(. $more)*) }
    }};
}

/// The nodes of the list that a field of a node points to: `children!(query.rtable as RangeTblEntry)` iterates over
/// `Tree`s.
macro_rules! children {
    ($tree:ident . $field:ident $(. $more:ident)* as $kind:ident) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is NIL, or a valid list of such nodes.
        unsafe { $crate::pg::tree::Tree::list_below::<pgrx::pg_sys::$kind>($tree, node.$field $(. $more)*) }
    }};
}

/// The OIDs of the list that a field of a node points to.
macro_rules! child_oids {
    ($tree:ident . $field:ident) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is NIL, or a valid list of OIDs.
        unsafe { $crate::pg::tree::Tree::oids_below($tree, node.$field) }
    }};
}

/// The numbers of the list that a field of a node points to.
macro_rules! child_integers {
    ($tree:ident . $field:ident) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is NIL, or a valid list of integers.
        unsafe { $crate::pg::tree::Tree::integers_below($tree, node.$field) }
    }};
}

/// The text that a field of a node points to: an `Option` of a `CStr`.
macro_rules! child_text {
    ($tree:ident . $field:ident) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is null, or a text that ends with NUL.
        unsafe { $crate::pg::tree::Tree::text_below($tree, node.$field) }
    }};
}

/// Does one thing for each kind of node: `match_node!(node; OpExpr | T_DistinctExpr (operator) => …, _ => …)`. A jump
/// table, as a match on the tag is.
macro_rules! match_node {
    ($node:expr; $($kind:ident $(| $alias:ident)* ($name:ident) => $body:expr,)* _ => $other:expr $(,)?) => {{
        let node: $crate::pg::tree::Tree<'_, pgrx::pg_sys::Node> = $node;
        match node.tag() {
            $(
                <pgrx::pg_sys::$kind as $crate::pg::tree::Tagged>::TAG $(| pgrx::pg_sys::NodeTag::$alias)* => {
                    $(const { assert!($crate::pg::tree::is_alias::<pgrx::pg_sys::$kind>(pgrx::pg_sys::NodeTag::$alias)) })*
                    // SAFETY: the tag is that of the type, or an alias of it.
                    let $name = unsafe { node.cast::<pgrx::pg_sys::$kind>() };
                    $body
                })*
            _ => $other,
        }
    }};
}

pub(crate) use {child, child_integers, child_oids, child_text, children, match_node};
