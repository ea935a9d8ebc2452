//! Two functions of the server that pgrx calls are led through `src/pg/error_memory.rs`, by the linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for function in ["errstart", "CopyErrorData"] {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={function}");
    }
}
