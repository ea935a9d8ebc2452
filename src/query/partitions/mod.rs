//! stub
use pgrx::pg_sys;
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub clause: *mut pg_sys::Node,
    pub column: i16,
    pub operator: pg_sys::Oid,
    pub value: *mut pg_sys::Const,
}
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub relation: pg_sys::Oid,
    pub asked: u64,
}
pub struct Leaves {
    pub leaves: Vec<Leaf>,
    pub tables: Vec<pg_sys::Oid>,
    pub total: usize,
}
pub fn leaves(_relation: pg_sys::Oid, _bounds: &[Bound]) -> Result<Leaves, arrow_cache_core::Reason> {
    Err(arrow_cache_core::Reason::TooComplex)
}
