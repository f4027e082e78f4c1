//! Linker options that make the released command smaller. They omit unwinding tables, which a program compiled with
//! `panic = "abort"` does not use (a fifteenth of the size), merge identical functions (a fortieth), and pack
//! relocations (a fortieth).
//!
//! The options apply only to the linker that is distributed with rustc, on the one target that uses it by default, and
//! only if no other linker is configured. All other builds use default options.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// The target on which rustc uses its own linker by default.
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
    // The arguments are passed to the linker unchanged: a path may contain any character.
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins=-Xlinker");
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// Returns whether another linker, or other linker options, are configured.
fn linker_chosen() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some() || flags.contains("link")
}

/// Returns whether this compiler includes a linker.
fn has_linker() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    fs::exists(sysroot.join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld")).unwrap_or(false)
}

/// Returns whether this system's loader supports packed relocations, as glibc does since 2.36.
fn reads_packed_relocations() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let number = |digits: &str| digits.parse::<u32>().ok();
    version.and_then(|(major, minor)| Some((number(major)?, number(minor)?))).is_some_and(|v| v >= (2, 36))
}
