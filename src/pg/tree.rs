//! Trees of nodes that the server made: queries, expressions, plans. Who enters a tree vouches for it once (`Tree::enter`); whoever
//! walks on from there through the fields of its nodes need not vouch again. Reading only; nothing is kept.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use pgrx::pg_sys::{self, NodeTag, PgNode};

use super::lists::nodes;

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
    /// The node must be null, or one of type `T` that is valid for `'t` with all that its fields point to. Nobody may change any of it
    /// meanwhile.
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
    /// `field` must be a field of this node, or of a part of it, that holds a list of such nodes: `children!` sees to the former.
    pub unsafe fn list_below<U: 't>(
        self,
        field: *const pg_sys::List,
    ) -> impl ExactSizeIterator<Item = Tree<'t, U>> + Clone {
        // SAFETY: as the caller promises; the server puts no null into lists of nodes that it keeps in trees.
        unsafe { nodes::<U>(field) }
            .map(|node| Tree { node: unsafe { NonNull::new_unchecked(node) }, valid: PhantomData })
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
}

/// Kinds of nodes that a tag stands for.
///
/// # Safety
/// A node with this tag must have this type.
pub unsafe trait Tagged: PgNode {
    /// The tag.
    const TAG: NodeTag;
}

/// Each type with the tag of the same name.
macro_rules! tagged {
    ($($kind:ident = $tag:ident),* $(,)?) => {
        $(
            // SAFETY: the server names the tag after the type (nodes/nodetags.h).
            unsafe impl Tagged for pg_sys::$kind {
                const TAG: NodeTag = NodeTag::$tag;
            }
        )*
    };
}

tagged! {
    Query = T_Query,
    PlannedStmt = T_PlannedStmt,
    RangeTblEntry = T_RangeTblEntry,
    TargetEntry = T_TargetEntry,
    Var = T_Var,
    Const = T_Const,
    Param = T_Param,
    FuncExpr = T_FuncExpr,
    OpExpr = T_OpExpr,
    SubLink = T_SubLink,
    SubPlan = T_SubPlan,
    List = T_List,
    CopyStmt = T_CopyStmt,
    TruncateStmt = T_TruncateStmt,
    AlterTableStmt = T_AlterTableStmt,
    SecLabelStmt = T_SecLabelStmt,
    DropdbStmt = T_DropdbStmt,
    TransactionStmt = T_TransactionStmt,
}

/// The node that a field of a node points to: `child!(query.jointree)` is an `Option` of a `Tree`.
macro_rules! child {
    ($tree:ident . $field:ident $(. $more:ident)*) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is null, or points to a valid node of the field's type.
        unsafe { $crate::pg::tree::Tree::below($tree, node.$field $(. $more)*) }
    }};
}

/// The nodes of the list that a field of a node points to: `children!(query.rtable as RangeTblEntry)` iterates over `Tree`s.
macro_rules! children {
    ($tree:ident . $field:ident $(. $more:ident)* as $kind:ident) => {{
        let node = $crate::pg::tree::Tree::get($tree);
        // SAFETY: a field of a node in a valid tree is NIL, or a valid list of such nodes.
        unsafe { $crate::pg::tree::Tree::list_below::<pgrx::pg_sys::$kind>($tree, node.$field $(. $more)*) }
    }};
}

pub(crate) use {child, children};
