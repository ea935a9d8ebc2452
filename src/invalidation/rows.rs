//! Which rows of tracked relations the present transaction has changed. Keeps nothing.

/// Why it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coarse {
    /// The server has counted changes that were not noted.
    NotNoted,
    /// There are too many values.
    Overflow,
    /// Other columns were tracked when they were noted.
    Generation,
    /// The transaction has changed a definition, too.
    Definitions,
}

/// Calls `visit` with each column and value, by its hash, that changed rows of a relation have, or had.
///
/// # Errors
/// Nothing is visited if it is not known of every change.
pub fn for_each_noted(_relation: u32, _generation: u64, _visit: impl FnMut(i16, u64)) -> Result<(), Coarse> {
    Err(Coarse::NotNoted)
}
