//! What must hold for any bytes that reach a parser of the core: one module for each parser, each with a function
//! `check` that panics when a promise is broken.
//!
//! The fuzzer calls these functions through `fuzz_targets/`; `core/tests/fuzz_targets.rs` calls the same ones on the
//! stable compiler.

pub mod change_token;
pub mod decimal;
pub mod hint;
pub mod numeric_body;
pub mod numeric_text;
pub mod options;

/// The name of a target, which is also that of its files in `fuzz_targets/` and `dictionaries/`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("change_token", change_token::check),
    ("decimal", decimal::check),
    ("hint", hint::check),
    ("numeric_body", numeric_body::check),
    ("numeric_text", numeric_text::check),
    ("options", options::check),
];
