//! Puts a hash of the sources into the module.  It lies in `src`, with which it is copied into
//! images.
//!
//! The hash is FNV-1a of 64 bits, over path and content of `Cargo.toml` and of all files in `src`;
//! `native/tests/sources.py` has the same in Python.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-env-changed=NIGHTWIRE_NATIVE_SOURCES");
    let hash = match env::var("NIGHTWIRE_NATIVE_SOURCES") {
        Ok(given) => given, // mutants are to pass for the source as it is
        Err(_) => hash_of(Path::new("."))?,
    };
    println!("cargo:rustc-env=NIGHTWIRE_NATIVE_SOURCES={hash}");
    Ok(())
}

fn hash_of(root: &Path) -> io::Result<String> {
    let mut paths = vec![PathBuf::from("Cargo.toml")];
    collect(root, Path::new("src"), &mut paths)?;
    paths.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for path in paths {
        let content = fs::read(root.join(&path))?;
        for byte in path.to_string_lossy().bytes().chain([0]).chain(content).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}

fn collect(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
