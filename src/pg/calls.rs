//! The two ways to call the server: `direct!` and `kept!` (docs/architecture/serving.md, "Errors and the way out").
//! Both take `pg_sys::function(arguments)` and call that function itself, with the signature that pgrx knows, and not
//! pgrx's wrapper: that makes a new ERROR from parts of the one that was raised, and needs memory of the present
//! context for it. Both also take a call of a function pointer, or of one of the few functions that pgrx does not bind
//! (`server`). Keeps nothing.

use super::error_passing::keeping;

/// Calls a function of the server: what it raises jumps over our frame, which must have no destructors.
macro_rules! direct {
    (pg_sys::$function:ident($($argument:expr),* $(,)?)) => {
        direct!(unguarded!($function $($argument)*)($($argument),*))
    };
    ($call:expr) => {{
        #[expect(ffi_unwind_calls, reason = "the frames it may jump over have no destructors")]
        let result = $call;
        result
    }};
}

/// Calls a function of the server: what it raises unwinds our frames as a panic, and the `edge` around them raises it
/// again as it was. Other expressions than calls of `pg_sys` must be that call alone.
macro_rules! kept {
    (pg_sys::$function:ident($($argument:expr),* $(,)?)) => {{
        #[allow(unused_imports, reason = "one of the traits has the method for so many arguments")]
        use $crate::pg::calls::*;
        unguarded!($function $($argument)*).kept($($argument),*)
    }};
    ($call:expr) => {
        $crate::pg::error_passing::keeping(|| direct!($call))
    };
}

/// The server's function of this name, which pgrx binds, for so many arguments.
macro_rules! unguarded {
    ($function:ident $($argument:expr)*) => {{
        unsafe extern "C-unwind" {
            fn $function();
        }
        let wrapper: unsafe fn($(inferred!($argument)),*) -> _ = pgrx::pg_sys::$function;
        $crate::pg::calls::with_signature(wrapper, $function as *const ())
    }};
}

/// The type of an argument, which the compiler finds out.
macro_rules! inferred {
    ($argument:expr) => {
        _
    };
}

/// The type of pgrx's wrapper of a function.
pub trait Wrapper {
    /// The type of the function itself.
    type Function: Copy;
}

/// A function of the server with the signature that its wrapper has.
///
/// # Safety
/// The address must be that of the function that the wrapper calls.
#[inline(always)]
pub unsafe fn with_signature<W: Wrapper>(_wrapper: W, function: *const ()) -> W::Function {
    // SAFETY: the caller's promise; a pointer to a function is as wide as an address.
    unsafe { std::mem::transmute_copy(&function) }
}

macro_rules! arities {
    ($($arity:ident($($argument:ident: $type:ident),*);)*) => {$(
        impl<R, $($type),*> Wrapper for unsafe fn($($type),*) -> R {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> R;
        }

        /// A function of the server with so many arguments.
        pub trait $arity {
            /// What it returns.
            type R;
            $(
                /// The type of an argument.
                type $type;
            )*

            /// Does what `kept!` promises.
            ///
            /// # Safety
            /// That of the function.
            #[allow(clippy::too_many_arguments, reason = "as many as the function has")]
            unsafe fn kept(self, $($argument: Self::$type),*) -> Self::R;
        }

        impl<R: Copy, $($type: Copy),*> $arity for unsafe extern "C-unwind" fn($($type),*) -> R {
            type R = R;
            $(type $type = $type;)*

            #[inline]
            unsafe fn kept(self, $($argument: $type),*) -> R {
                // SAFETY: the closure does nothing but the call, which the caller vouches for; plain data is captured.
                unsafe { keeping(|| direct!(self($($argument),*))) }
            }
        }
    )*};
}

arities! {
    Arity0();
    Arity1(a: A);
    Arity2(a: A, b: B);
    Arity3(a: A, b: B, c: C);
    Arity4(a: A, b: B, c: C, d: D);
    Arity5(a: A, b: B, c: C, d: D, e: E);
    Arity6(a: A, b: B, c: C, d: D, e: E, f: F);
    Arity7(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
    Arity8(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);
}
