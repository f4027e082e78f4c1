//! Links the released command without what it never uses: tables for unwinding, which a program that ends at a panic
//! does not look at (a fifteenth of it), functions that are the same code as others (a fortieth), and addresses to be
//! relocated one by one (a fortieth).
//!
//! Only where it is known how: with the linker that comes with rustc on the one target that has it by default, and
//! unless whoever builds has chosen another. Everywhere else the command is linked as usual, and larger.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Where rustc brings a linker that is used unless told otherwise.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const SCRIPT: &str = "link/no-unwinding.ld";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SCRIPT}");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    if !is("PROFILE", "release")
        || !is("TARGET", TARGET)
        || !is("HOST", TARGET)
        || linker_chosen()
        || !has_linker()
    {
        return;
    }
    let Some(here) = env::var_os("CARGO_MANIFEST_DIR") else { return };
    let script = PathBuf::from(here).join(SCRIPT);
    let script = script.to_string_lossy();
    let mut arguments = vec!["--icf=all", "-T", &*script];
    if reads_packed_relocations() {
        arguments.extend(["-z", "pack-relative-relocs"]);
    }
    // To the linker as they are: a path may hold anything.
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins=-Xlinker");
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// Whether another linker, or how it is called, is configured.
fn linker_chosen() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some() || flags.contains("link")
}

/// Whether this compiler brings its linker.
fn has_linker() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    fs::exists(sysroot.join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld")).unwrap_or(false)
}

/// Whether this system's loader reads relocations that are packed, as glibc's does from 2.36 on.
fn reads_packed_relocations() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let number = |digits: &str| digits.parse::<u32>().ok();
    version.and_then(|(major, minor)| Some((number(major)?, number(minor)?))).is_some_and(|v| v >= (2, 36))
}
