//! Where relations have their places. Pure.

/// Number of lines of tracked relations. The models of `core/loom` have one.
pub const LINES: usize = if cfg!(modelled) { 1 } else { 4096 };

/// The two ids in one word; 0 for no relation.
pub(crate) fn key_of(database: u32, relation: u32) -> u64 {
    u64::from(database) << 32 | u64::from(relation)
}

/// The number of the line of a relation if it is tracked, which others have, too.
pub(crate) fn line_of(database: u32, relation: u32) -> usize {
    near(database, relation) as usize % LINES
}

/// Numbers of which ids that follow each other have some that do: relations of one database share a place only if their
/// ids lie far apart.
pub(crate) fn near(database: u32, relation: u32) -> u32 {
    (scatter(u64::from(database)) as u32 >> 1).wrapping_add(relation)
}

/// Finaliser of splitmix64: neighbouring object ids land far apart.
#[inline]
pub(crate) fn scatter(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of a column of a relation, of which the places of its values are made.
#[must_use]
pub fn number_of_column(database: u32, relation: u32, column: i16) -> u64 {
    scatter(scatter(key_of(database, relation)) ^ u64::from(column.cast_unsigned()))
}

/// The place of a value among the slots of values: by the number of its column, and its hash.
#[inline]
#[must_use]
pub fn place_of_value(column: u64, hash: u64) -> u64 {
    scatter(column ^ hash)
}

/// The hash of a value for changes of the quiet column in this place (`tracked`). It names another slot than the
/// value's own, or one that is shared: then more is outdated.
#[must_use]
pub fn quietly(hash: u64, place: u8) -> u64 {
    scatter(scatter(!hash) ^ u64::from(place))
}
