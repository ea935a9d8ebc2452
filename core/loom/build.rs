//! Says to the sources that they are compiled for the models.

fn main() {
    println!("cargo:rustc-cfg=modelled");
    println!("cargo:rerun-if-changed=build.rs");
}
