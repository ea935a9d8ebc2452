//! stub
pub use super::partitions::Bound;
use crate::pg::tree::Tree;
use pgrx::pg_sys;
pub struct Decomposition {
    pub combined: *mut pg_sys::Query,
    pub part: Part,
}
pub struct Part {
    pub query: *mut pg_sys::Query,
    pub table: pg_sys::Index,
    pub relation: pg_sys::Oid,
    pub dimensions: Vec<pg_sys::Oid>,
    pub bounds: Vec<Bound>,
}
pub enum Obstacle {
    None,
}
pub const TUPLESTORE_NAME: &std::ffi::CStr = c"arrow_cache_fragments";
pub fn decompose(
    _query: Tree<'_, pg_sys::Query>,
    _params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Result<Decomposition, Obstacle> {
    Err(Obstacle::None)
}
pub const SCAN_NAME: &std::ffi::CStr = c"ArrowCacheFragments";
impl Part {
    pub fn of_leaf(&self, _leaf: pg_sys::Oid, _asked: u64) -> Result<*mut pg_sys::Query, Obstacle> {
        Err(Obstacle::None)
    }
}
