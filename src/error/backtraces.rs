//! What errors say about our own code.

/// Keeps the stack of our functions, with the paths of the machine they were built on, out of the DETAIL of errors, where pgrx puts it if the
/// server was started with RUST_BACKTRACE. Called first of all.
///
/// The standard library asks its environment once per process, and remembers; it is left as it was.
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
