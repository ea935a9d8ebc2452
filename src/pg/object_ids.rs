//! Object identifiers (OIDs) that the server gives a meaning.

/// First OID that the server gives to objects of users (access/transam.h).
pub const FIRST_USER_OID: u32 = 16384;
/// First OID that initdb gives to objects without a fixed one (access/transam.h).
pub const FIRST_UNPINNED_OID: u32 = 10000;

/// The server's own languages of functions (catalog/pg_language.dat).
pub const INTERNAL_LANGUAGE: u32 = 12;
/// See above.
pub const C_LANGUAGE: u32 = 13;
/// See above.
pub const SQL_LANGUAGE: u32 = 14;

/// The heap table access method; relations of any other are not cached.
pub const HEAP_TABLE_AM_OID: u32 = 2;

/// The operator family in which dates and timestamps are ordered by B-trees (catalog/pg_opfamily.dat, `datetime_ops`).
pub const DATETIME_FAMILY_OID: u32 = 434;

/// The same for floats (`float_ops`), and for integers (`integer_ops`).
pub const FLOAT_FAMILY_OID: u32 = 1970;
/// See above.
pub const INTEGER_FAMILY_OID: u32 = 1976;
