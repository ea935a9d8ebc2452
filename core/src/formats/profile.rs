//! The options that shape how a result's columns are delivered. With the row type they decide the schema of a
//! delivery; the data never does.

/// What becomes of numeric columns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum NumericAs {
    /// Text, which every value has.
    #[default]
    Text,
    /// Decimals of 128 bits, with the column's own precision and scale.
    Decimal128,
    /// Floats of 64 bits.
    Float64,
}

/// What becomes of interval columns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IntervalAs {
    /// Text, which every value has.
    #[default]
    Text,
    /// Months, days and nanoseconds.
    MonthDayNano,
}

/// Are columns marked with the extension types of the Arrow specification?
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ExtensionTypes {
    /// No.
    #[default]
    None,
    /// Those that Arrow itself names: `arrow.uuid` and `arrow.json`.
    Canonical,
}

/// What becomes of a value that its column's Arrow type cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnUnrepresentable {
    /// An error that names it.
    #[default]
    Error,
    /// It never arises: each column whose type has such values is delivered as text.
    Text,
}

/// How the columns of a result are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Profile {
    /// Form of numeric values.
    pub numeric: NumericAs,
    /// Form of intervals.
    pub interval: IntervalAs,
    /// Marks on the fields.
    pub extension_types: ExtensionTypes,
    /// Care for values without an Arrow form.
    pub on_unrepresentable: OnUnrepresentable,
}
