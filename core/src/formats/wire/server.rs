//! What the server does for the encoder. A trait only: nothing here is shared.

use super::format::LONGEST;

/// What only the server can do, or does quicker. `float` says which floats it prints.
pub trait Server {
    /// The bytes of the current row's value in a column of [`ByServer`](super::WireFormat::ByServer), where it is not
    /// NULL.
    fn value(&self, column: usize) -> &[u8];

    /// Writes the shortest text that reads back as the same float8, and returns its length.
    fn float8(&self, value: f64, out: &mut [u8; LONGEST]) -> usize;

    /// Writes the shortest text that reads back as the same float4, and returns its length.
    fn float4(&self, value: f32, out: &mut [u8; LONGEST]) -> usize;
}
