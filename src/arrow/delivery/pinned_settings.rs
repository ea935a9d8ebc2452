//! The settings under which values become text on delivery.

use std::ffi::CStr;

use arrow_cache_core::OutOfMemory;
use pgrx::pg_sys;

/// The level at which a setting reports what is wrong with its value: nobody logs it.
const QUIET: i32 = pg_sys::DEBUG5 as i32;

/// The settings under which text is delivered, for as long as the value lives: those that
/// postgres_fdw pins for its own transfers, and all others that an output function reads.
pub struct PinnedSettings {
    nest_level: i32,
}

impl PinnedSettings {
    /// Pins them. After an error the transaction's abort restores them.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn enter() -> Result<Self, OutOfMemory> {
        const SETTINGS: [(&CStr, &CStr); 8] = [
            (c"datestyle", c"ISO"),
            (c"intervalstyle", c"postgres"),
            (c"extra_float_digits", c"3"),
            (c"search_path", c"pg_catalog"),
            (c"timezone", c"UTC"),
            (c"bytea_output", c"hex"),
            (c"lc_monetary", c"C"),
            (c"quote_all_identifiers", c"off"),
        ];
        // SAFETY: names and values are C strings; the settings are saved in a nest level of their own.
        unsafe {
            let nest_level = kept!(pg_sys::NewGUCNestLevel());
            for (name, value) in SETTINGS {
                let set = kept!(pg_sys::set_config_option(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_USERSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                    pg_sys::GucAction::GUC_ACTION_SAVE,
                    true,
                    QUIET,
                    false,
                ));
                // The values are legal. All that can go wrong is a lack of memory, which some settings report as an
                // invalid value.
                if set <= 0 {
                    return Err(OutOfMemory);
                }
            }
            Ok(Self { nest_level })
        }
    }

    /// Puts the session's own settings back.
    pub fn leave(self) {
        // SAFETY: the nest level that `enter` opened.
        unsafe { kept!(pg_sys::AtEOXact_GUC(true, self.nest_level)) };
    }
}
