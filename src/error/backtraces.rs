//! Keeping stack traces of our code out of error messages.

/// Keeps stack traces of our functions, with paths of the machine that they were built on, out of the DETAIL of errors.
/// pgrx puts them there if the server was started with RUST_BACKTRACE. To be called before anything else.
///
/// The standard library reads the environment once in each process and remembers the answer. The environment is left as
/// it was.
pub fn keep_stacks_private() {
    const SWITCH: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(SWITCH);
    // SAFETY: the postmaster and its children have one thread.
    unsafe {
        std::env::set_var(SWITCH, "0");
        drop(std::backtrace::Backtrace::capture());
        match before {
            Some(value) => std::env::set_var(SWITCH, value),
            None => std::env::remove_var(SWITCH),
        }
    }
}
