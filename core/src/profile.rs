//! What values become on delivery, as far as the client chooses. Pure data: nothing here is shared.

/// What a `numeric` becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumericAs {
    /// Its text, always exact.
    #[default]
    Text,
    /// A decimal of 128 bits, where it is exact.
    Decimal128,
    /// A float of 64 bits, where its shortest text is the same number.
    Float64,
}

/// What an `interval` becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalAs {
    /// Its text.
    #[default]
    Text,
    /// Months, days and nanoseconds.
    MonthDayNano,
}

/// Which extension types the fields of the schema name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExtensionTypes {
    /// None.
    #[default]
    None,
    /// Arrow's canonical ones.
    Canonical,
}

/// What becomes of columns whose type has values that Arrow cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnUnrepresentable {
    /// Such a value is an error.
    #[default]
    Error,
    /// The column is delivered as text.
    Text,
}

/// All of it. The schema of a result depends on this and its row type alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Of numerics.
    pub numeric: NumericAs,
    /// Of intervals.
    pub interval: IntervalAs,
    /// Of the schema's fields.
    pub extension_types: ExtensionTypes,
    /// Of values that cannot be delivered.
    pub on_unrepresentable: OnUnrepresentable,
}
