//! Object identifiers (OIDs) that the server gives a meaning. Numbers stand here where pgrx binds no name.

use pgrx::pg_sys;

/// First OID that the server gives to objects of users.
pub const FIRST_USER_OID: u32 = pg_sys::FirstNormalObjectId;
/// First OID that initdb gives to objects without a fixed one.
pub const FIRST_UNPINNED_OID: u32 = pg_sys::FirstGenbkiObjectId;

/// The server's own languages of functions (catalog/pg_language.dat).
pub const INTERNAL_LANGUAGE: u32 = 12;
/// See above.
pub const C_LANGUAGE: u32 = 13;
/// See above.
pub const SQL_LANGUAGE: u32 = 14;

/// The heap table access method; relations of any other are not cached.
pub const HEAP_TABLE_AM_OID: u32 = pg_sys::HEAP_TABLE_AM_OID.to_u32();

/// The operator family in which dates and timestamps are ordered by B-trees (catalog/pg_opfamily.dat, `datetime_ops`).
pub const DATETIME_FAMILY_OID: u32 = 434;

/// The same for floats (`float_ops`), and for integers (`integer_ops`).
pub const FLOAT_FAMILY_OID: u32 = 1970;
/// See above.
pub const INTEGER_FAMILY_OID: u32 = pg_sys::INTEGER_BTREE_FAM_OID.to_u32();

/// Catalogs that describe relations (catalog/pg_*.h).
pub const PG_ATTRIBUTE: u32 = pg_sys::AttributeRelationId.to_u32();
/// See above.
pub const PG_CLASS: u32 = pg_sys::RelationRelationId.to_u32();
/// See above.
pub const PG_ATTRDEF: u32 = 2604;
/// See above.
pub const PG_CONSTRAINT: u32 = 2606;
/// See above.
pub const PG_INDEX: u32 = pg_sys::IndexRelationId.to_u32();
/// See above.
pub const PG_INHERITS: u32 = 2611;
/// See above.
pub const PG_REWRITE: u32 = 2618;
/// See above.
pub const PG_POLICY: u32 = 3256;
/// See above.
pub const PG_PARTITIONED_TABLE: u32 = 3350;
