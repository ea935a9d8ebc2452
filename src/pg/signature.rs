//! How a SQL function must be declared and called for a C function of ours: with which arguments, and for which result. What a superuser
//! has declared, an older or newer script, or another library that calls, may be anything else. Reading only.

use pgrx::pg_sys;

use super::catalog_row::{CatalogRow, DeclaredArgument};
use super::object_ids::C_LANGUAGE;
use super::returned::Returned;

/// How a SQL function must be declared and called. Names, defaults, volatility and costs do not matter.
pub struct Signature {
    arguments: &'static [pg_sys::Oid],
    /// May VARIADIC "any" follow the arguments?
    any_more: bool,
    /// May arguments be NULL?
    nulls: bool,
}

impl Signature {
    /// A function of these arguments.
    pub const fn of(arguments: &'static [pg_sys::Oid]) -> Self {
        Self { arguments, any_more: false, nulls: false }
    }

    /// The same, when it need not be STRICT.
    pub const fn with_nulls(self) -> Self {
        Self { nulls: true, ..self }
    }

    /// The same, with and without VARIADIC "any" after the arguments.
    pub const fn with_any_more(self) -> Self {
        Self { any_more: true, ..self }
    }

    /// Checks that this is a call of a function that is declared so, with such arguments, to return an `R`. For a
    /// function that returns a set, the first call for its rows is checked.
    ///
    /// # Safety
    /// The server or another library must have made the call, with as many arguments as it says.
    pub unsafe fn fits<R: Returned>(&self, call: pg_sys::FunctionCallInfo) -> bool {
        // SAFETY: the caller promises a call; the description of the called function is null or valid.
        unsafe {
            let Some(called) = (*call).flinfo.as_ref() else { return false };
            // It is null until our own first call, which has been checked, leaves its state there.
            if R::SET && !called.fn_extra.is_null() {
                return true;
            }
            let Some(row) = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, called.fn_oid) else { return false };
            self.is_declared::<R>(&row) && self.has_arguments(call) && (!R::SET || takes_rows_one_by_one(call))
        }
    }

    /// Does the row of pg_proc declare it so?
    fn is_declared<R: Returned>(&self, row: &CatalogRow) -> bool {
        let (Some(function), Some(declared)) = (row.function(), row.arguments()) else { return false };
        let is_any = |argument: &DeclaredArgument| argument.is_variadic && argument.type_oid == pg_sys::ANYOID;
        let inputs: Vec<_> = declared.iter().filter(|argument| argument.is_input).collect();
        let outputs: Vec<_> = declared.iter().filter(|argument| argument.is_output).collect();
        let inputs = match inputs.split_last() {
            Some((last, others)) if self.any_more && is_any(last) => others,
            _ => &inputs,
        };
        function.prolang.to_u32() == C_LANGUAGE
            && function.prokind == pg_sys::PROKIND_FUNCTION as std::ffi::c_char
            && function.proretset == R::SET
            && are(inputs, self.arguments)
            && match R::COLUMNS {
                [one] => function.prorettype == *one,
                columns => function.prorettype == pg_sys::RECORDOID && are(&outputs, columns),
            }
    }

    /// # Safety
    /// As `fits`.
    unsafe fn has_arguments(&self, call: pg_sys::FunctionCallInfo) -> bool {
        // SAFETY: the caller promises that there are as many arguments as the call says.
        let given: &[pg_sys::NullableDatum] =
            unsafe { std::slice::from_raw_parts((&raw const (*call).args).cast(), (*call).nargs.max(0) as usize) };
        let enough =
            if self.any_more { given.len() >= self.arguments.len() } else { given.len() == self.arguments.len() };
        enough && (self.nulls || given.iter().all(|argument| !argument.isnull))
    }
}

/// Are these arguments of these types?
fn are(declared: &[&DeclaredArgument], types: &[pg_sys::Oid]) -> bool {
    declared.iter().map(|argument| argument.type_oid).eq(types.iter().copied())
}

/// Does the caller of a function that returns a set take its rows one after the other? A caller that takes no set at all is left to the
/// server, which has an error of its own for it.
///
/// # Safety
/// As `Signature::fits`.
unsafe fn takes_rows_one_by_one(call: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: what a call says of its result is null or a node, whose tag tells its type.
    unsafe {
        let info = (*call).resultinfo;
        if info.is_null() || (*info).type_ != pg_sys::NodeTag::T_ReturnSetInfo {
            return true;
        }
        let info = info.cast::<pg_sys::ReturnSetInfo>();
        let one_by_one = pg_sys::SetFunctionReturnMode::SFRM_ValuePerCall as i32;
        !(*info).econtext.is_null() && (*info).allowedModes & one_by_one != 0
    }
}
