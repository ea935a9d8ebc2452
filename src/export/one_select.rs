//! A text that holds one SELECT: parsed, analyzed, rewritten and planned, in the steps that the server takes with a
//! client's query. All trees live in the current memory context.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::NonNull;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use super::parameters::Parameters;
use crate::error::or_raise;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, child};
use crate::session::PlanningExport;

/// Parses a text that should hold one statement.
///
/// # Errors
/// How many statements it holds, if not one.
pub fn parse_one(text: &CStr) -> Result<Tree<'_, pg_sys::RawStmt>, usize> {
    // SAFETY: the parser reads a C string. It returns a list of statements, which nobody else knows of.
    unsafe {
        let mut statements = nodes::<pg_sys::RawStmt>(kept!(pg_sys::pg_parse_query(text.as_ptr())));
        match (statements.len(), statements.next().and_then(|statement| Tree::enter(statement))) {
            (1, Some(statement)) => Ok(statement),
            (found, _) => Err(found),
        }
    }
}

/// The node of a statement that was parsed.
pub fn node_of(raw: Tree<'_, pg_sys::RawStmt>) -> Tree<'_, pg_sys::Node> {
    let Some(node) = child!(raw.stmt) else { unreachable!("a raw statement without a node") };
    node
}

/// What the server calls a statement: `INSERT`, `CREATE TABLE`.
pub fn command_name(statement: Tree<'_, pg_sys::Node>) -> String {
    // SAFETY: the statement is a valid node; tag names are literals of the server.
    unsafe { CStr::from_ptr(kept!(pg_sys::GetCommandTagName(kept!(pg_sys::CreateCommandTag(statement.as_ptr()))))) }
        .to_string_lossy()
        .into_owned()
}

/// A query that is ours alone, so that the server may change its tree while it rewrites and plans it.
pub struct OwnQuery<'t> {
    query: NonNull<pg_sys::Query>,
    text: &'t CStr,
    trees: PhantomData<&'t pg_sys::Query>,
}

impl<'t> OwnQuery<'t> {
    /// Analyzes a statement of `text`. The first parameters have the types that are given; those among them that are
    /// untyped literals, and all further ones, get the types that their context asks for. Returns the types of all
    /// parameters, too.
    pub fn analyze(
        raw: Tree<'t, pg_sys::RawStmt>,
        text: &'t CStr,
        given: impl ExactSizeIterator<Item = pg_sys::Oid>,
    ) -> (Self, Vec<pg_sys::Oid>) {
        let mut count = given.len() as i32;
        // SAFETY: the parser may replace the array of types by a longer one, so it must be palloc'd. It has room for
        // those that are given, and the parser returns how many it holds in the end. An analyzed query is never null.
        unsafe {
            let size = std::mem::size_of::<pg_sys::Oid>() * given.len().max(1);
            let mut types: *mut pg_sys::Oid = kept!(pg_sys::palloc(size)).cast();
            for (index, type_oid) in given.enumerate() {
                *types.add(index) = type_oid;
            }
            let (raw, source, all_types, all) = (raw.as_ptr(), text.as_ptr(), &raw mut types, &raw mut count);
            let query = kept!(pg_sys::parse_analyze_varparams(raw, source, all_types, all, std::ptr::null_mut()));
            let types = or_raise(Vec::copy_of(std::slice::from_raw_parts(types, count as usize)));
            (Self { query: NonNull::new_unchecked(query), text, trees: PhantomData }, types)
        }
    }

    /// As the server knows it.
    pub fn as_ptr(&self) -> *mut pg_sys::Query {
        self.query.as_ptr()
    }

    /// What it does.
    pub fn command(&self) -> pg_sys::CmdType::Type {
        // SAFETY: the tree is valid, and changed through this value alone.
        unsafe { self.query.as_ref() }.commandType
    }

    /// Returns true if it has a WITH clause that changes data.
    pub fn has_modifying_with(&self) -> bool {
        // SAFETY: the tree is valid, and changed through this value alone.
        unsafe { self.query.as_ref() }.hasModifyingCTE
    }

    /// Rewrites the query, which must be a SELECT.
    pub fn rewrite(self) -> Self {
        let query = self.as_ptr();
        // SAFETY: the rewriter takes an analyzed query and returns a list of such. A SELECT is rewritten to exactly
        // one.
        let query = unsafe { nodes::<pg_sys::Query>(kept!(pg_sys::QueryRewrite(query))).next().unwrap_or(query) };
        Self { query: NonNull::new(query).unwrap_or(self.query), ..self }
    }

    /// Another query in its place, which was made of it.
    ///
    /// # Safety
    /// A valid query that is rewritten, and lives as long as this one.
    pub unsafe fn replaced_by(self, query: *mut pg_sys::Query) -> Self {
        Self { query: NonNull::new(query).unwrap_or(self.query), ..self }
    }

    /// Plans the query under the active snapshot. `options` are those of the planner (`CURSOR_OPT_…`).
    pub fn plan(self, options: u32, parameters: Parameters<'_>) -> Tree<'t, pg_sys::PlannedStmt> {
        let (query, text, options, parameters) =
            (self.as_ptr(), self.text.as_ptr(), options as i32, parameters.as_ptr());
        let planning = PlanningExport::enter();
        // SAFETY: the query is rewritten, and the text is its own. A plan is never null, and nobody else knows of it.
        let plan = unsafe { Tree::enter(kept!(pg_sys::pg_plan_query(query, text, options, parameters))) };
        drop(planning);
        let Some(plan) = plan else { unreachable!("no plan") };
        plan
    }
}
