//! The options that shape how a result's columns are delivered. They and the row type decide the schema of a delivery;
//! the data never does. Pure values: nothing here is shared.

/// How numeric columns are delivered. Numbers are never rounded unless that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum NumericAs {
    /// Text, which every value has.
    #[default]
    Text,
    /// Decimals of 128 bits, with the column's own precision and scale.
    Decimal128,
    /// Decimals of 128 bits, rounded as a cast to numeric of this precision and scale does.
    RoundedDecimal128 {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Floats of 64 bits.
    Float64,
    /// The nearest floats of 64 bits.
    NearestFloat64,
}

/// How interval columns are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IntervalAs {
    /// Text, which every value has.
    #[default]
    Text,
    /// Months, days and nanoseconds.
    MonthDayNano,
}

/// True if columns are marked with the extension types of the Arrow specification.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ExtensionTypes {
    /// No.
    #[default]
    None,
    /// Those that Arrow itself names: `arrow.uuid` and `arrow.json`.
    Canonical,
}

/// What happens with a value that its column's Arrow type cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnUnrepresentable {
    /// An error that names it.
    #[default]
    Error,
    /// No such value can occur, because each column whose type has such values is delivered as text.
    Text,
}

/// What happens with the infinities of dates and timestamps, and with the time 24:00, which some readers refuse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum SpecialTimes {
    /// They are numbers at the ends of the range, and behind the end of the day.
    #[default]
    Keep,
    /// They are NULL.
    Null,
    /// An error that names the first.
    Error,
}

/// How the columns of a result are delivered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Profile {
    /// Of numeric values.
    pub numeric: NumericAs,
    /// Of intervals.
    pub interval: IntervalAs,
    /// Of the fields.
    pub extension_types: ExtensionTypes,
    /// Of values that their Arrow type cannot hold.
    pub on_unrepresentable: OnUnrepresentable,
    /// Of dates, times and timestamps.
    pub special_times: SpecialTimes,
}
