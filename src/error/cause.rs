//! What can be wrong with a call of our SQL functions, or with the settings at the server's start.

use arrow_cache_core::{OptionError, OutOfMemory, Reason, Unrepresentable};

/// An error that a user can cause and correct. Text that a user has written comes from `shown`, which cuts it before it copies it.
#[derive(Debug)]
pub enum CacheError {
    /// The library was not loaded by `shared_preload_libraries`.
    NotPreloaded,
    /// `pg_arrow_cache.memory` cannot hold the index for `max_entries`; `needed` is the size in bytes that can.
    MemoryTooSmall { needed: usize },
    /// The text given to an export function is not exactly one SELECT.
    NotOneSelect { found: String },
    /// The number of parameters passed differs from the number the query uses.
    MissingParameter { number: i32, given: usize },
    /// The finished stream would be larger than a `bytea` can be.
    StreamTooLarge { bytes: usize },
    /// A column cannot be delivered as the options ask for it.
    UndeliverableColumn { column: String, digits: u32 },
    /// A value cannot be delivered; rows count from 1.
    UndeliverableValue { column: String, row: u64, problem: Unrepresentable },
    /// A result cannot be delivered as Arrow.
    Undeliverable { reason: Reason },
    /// An option of an export does not exist, or cannot have its value.
    BadOption { error: OptionError },
    /// The options of an export function are no JSON object.
    OptionsNotAnObject,
    /// A column was asked for that the result does not have, or has more than once (`repeated`). `columns` lists those that it has.
    NoSuchColumn { name: String, repeated: bool, columns: String },
    /// COPY cannot do with Arrow what the statement asks for.
    UnsupportedCopy { problem: &'static str, hint: &'static str },
    /// A C function of ours was called as another SQL function than it is made for. `function` has the arguments with it; `None` for a call
    /// that names no function.
    Misdeclared { symbol: &'static str, function: Option<String> },
    /// The type of an argument of `query` is not known. `number` is that of the parameter.
    UntypedParameter { number: usize },
    /// The trigger function was not called by a trigger.
    NotATrigger,
    /// An argument of the trigger function names no relation.
    UnknownRelation { name: String },
    /// An argument of the trigger function names a relation that neither the user nor the owner of the trigger's table may change.
    NotYoursToChange { name: String },
    /// An argument of the trigger function names a relation on which no result can rest.
    NothingRestsOn { name: String },
    /// A word that is no policy. `default` tells whether the word "default" is allowed here.
    UnknownPolicy { word: String, default: bool },
    /// A policy cannot be set for an object whose rows no query reads.
    NotARelation,
    /// A function was given a policy of this name.
    UnknownFunctionPolicy {
        /// The word.
        word: String,
    },
    /// A function was declared pure that is not written in PL/pgSQL.
    NotInPlpgsql,
    /// A placeholder was executed as if it were a plan.
    PlaceholderRun,
    /// There is no memory for what the user has asked for.
    OutOfMemory,
}

impl From<OutOfMemory> for CacheError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}
