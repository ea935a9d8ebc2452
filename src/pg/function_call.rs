//! The call of a SQL function, with its arguments, which are read as those that the script of the extension declares.
//! Reading only.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

use super::row::Value;

/// The call of a SQL function, valid for `'c`.
#[derive(Clone, Copy)]
pub struct FunctionCall<'c> {
    call: NonNull<pg_sys::FunctionCallInfoBaseData>,
    valid: PhantomData<&'c pg_sys::FunctionCallInfoBaseData>,
}

impl<'c> FunctionCall<'c> {
    /// The call that the server makes.
    ///
    /// # Safety
    /// `call` must be the argument of a function that the server calls, used for as long as that function runs. The
    /// function must be declared with the types as which its arguments are read.
    pub unsafe fn of(call: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: the caller promises that it is valid, so it is not null.
        Self { call: unsafe { NonNull::new_unchecked(call) }, valid: PhantomData }
    }

    fn arguments(self) -> &'c [pg_sys::NullableDatum] {
        // SAFETY: `of` was promised that the call is valid; `args` is the flexible array at the end of the struct.
        unsafe {
            let call = self.call.as_ptr();
            std::slice::from_raw_parts((&raw const (*call).args).cast(), (*call).nargs as usize)
        }
    }

    /// How many arguments there are.
    pub fn count(self) -> usize {
        self.arguments().len()
    }

    /// An argument, by its number from 0; `None` for NULL.
    pub fn argument(self, index: usize) -> Option<Value<'c>> {
        let argument = &self.arguments()[index];
        // SAFETY: an argument that is not NULL is valid as long as the call, and of the type that the function is
        // declared with.
        (!argument.isnull).then(|| unsafe { Value::of(argument.value) })
    }

    /// An argument that is an OID, by its number from 0; `InvalidOid` for NULL.
    pub fn oid(self, index: usize) -> pg_sys::Oid {
        self.argument(index).map_or(pg_sys::InvalidOid, |value| pg_sys::Oid::from(value.word() as u32))
    }

    /// What a trigger is called for; `None` if the caller is no trigger.
    pub fn trigger(self) -> Option<&'c pg_sys::TriggerData> {
        // SAFETY: `of` was promised that the call is valid. Its context is null or a node, whose tag tells its type.
        unsafe {
            let context = (*self.call.as_ptr()).context;
            let is_trigger = !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_TriggerData;
            is_trigger.then(|| &*context.cast())
        }
    }

    /// Returns true if a procedure is called by a CALL that may end transactions: outside of transaction blocks, and
    /// not from within a function.
    pub fn may_end_transactions(self) -> bool {
        // SAFETY: as in `trigger`.
        unsafe {
            let context = (*self.call.as_ptr()).context;
            let is_call = !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_CallContext;
            is_call && !(*context.cast::<pg_sys::CallContext>()).atomic
        }
    }

    /// The type of an argument of a function that takes any; `InvalidOid` if the caller does not tell.
    pub fn argument_type(self, index: usize) -> pg_sys::Oid {
        // SAFETY: `of` was promised that the call is valid.
        unsafe { kept!(pg_sys::get_fn_expr_argtype((*self.call.as_ptr()).flinfo, index as i32)) }
    }

    /// Returns true if the last argument is an array that was marked VARIADIC.
    pub fn is_variadic(self) -> bool {
        // SAFETY: `of` was promised that the call is valid.
        unsafe { kept!(pg_sys::get_fn_expr_variadic((*self.call.as_ptr()).flinfo)) }
    }

    /// The expression context of the call of a set-returning function, which tells when the rows are not asked for any
    /// more.
    pub fn expression_context(self) -> Option<*mut pg_sys::ExprContext> {
        // SAFETY: `of` was promised that the call is valid. What it says of the result is null or a node, whose tag
        // tells its type.
        unsafe {
            let info = (*self.call.as_ptr()).resultinfo;
            let returns_set = !info.is_null() && (*info).type_ == pg_sys::NodeTag::T_ReturnSetInfo;
            returns_set.then(|| (*info.cast::<pg_sys::ReturnSetInfo>()).econtext)
        }
    }
}
