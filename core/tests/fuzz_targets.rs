//! The bodies of the fuzz targets, on a stable compiler and for as long as a test may take: with each seed, with parts
//! of seeds joined together, and with random bytes. `core/fuzz` runs the same bodies under a fuzzer.

// Thousands of cases that differ only in their data. Miri would take too long, and it reads no files.
#![cfg(not(miri))]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use targets::TARGETS;

const CASES: u32 = 4000;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The words of a dictionary as the fuzzer reads it: one to a line, in quotation marks, with `\\`, `\"` and `\xAB`.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let path = fuzz_dir().join("dictionaries").join(name).with_extension("dict");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    words.map(|line| unquote(line).unwrap_or_else(|| panic!("{name}: {line}"))).collect()
}

fn unquote(line: &str) -> Option<Vec<u8>> {
    let mut inside = line.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut word = Vec::new();
    while let [first, after @ ..] = inside {
        let (byte, rest) = match (first, after) {
            (b'\\', [b'x', high, low, rest @ ..]) => {
                (u8::from_str_radix(std::str::from_utf8(&[*high, *low]).ok()?, 16).ok()?, rest)
            }
            (b'\\', [escaped @ (b'\\' | b'"'), rest @ ..]) => (*escaped, rest),
            (b'\\' | b'"', _) => return None,
            _ => (*first, after),
        };
        word.push(byte);
        inside = rest;
    }
    Some(word)
}

/// What the fuzzer has found for a target: inputs one after the other, each behind its length in two bytes
/// (`core/fuzz/corpus.py`).
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let path = fuzz_dir().join("corpora").join(name).with_extension("corpus");
    let kept = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut inputs, mut rest) = (Vec::new(), kept.as_slice());
    while let [low, high, after @ ..] = rest {
        let (input, behind) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])));
        inputs.push(input.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty(), "{name}: a byte too many");
    inputs
}

/// Seeds, parts of them and single bytes, in any order.
fn mixtures(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let piece = (prop::sample::select(seeds), any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>())
        .prop_map(|(seed, from, to, byte)| {
            let (from, to) = (from.index(seed.len()), to.index(seed.len()));
            match byte % 4 {
                0 => vec![byte],
                1 => seed[from.min(to)..=from.max(to)].to_vec(),
                _ => seed,
            }
        });
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn run(strategy: &impl Strategy<Value = Vec<u8>>, check: fn(&[u8])) {
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(strategy, |data| {
        check(&data);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn every_target_has_its_files() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (directory, extension) in [("fuzz_targets", "rs"), ("dictionaries", "dict"), ("corpora", "corpus")] {
        let files = fs::read_dir(fuzz_dir().join(directory)).unwrap();
        let found: BTreeSet<String> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, names, "{directory}");
    }
    let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    for name in &names {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}

#[test]
fn seeds_as_they_are() {
    for (name, check) in TARGETS {
        let seeds = seeds(name);
        // The fuzzer ignores longer words without a warning.
        assert!(seeds.len() >= 10 && seeds.iter().all(|seed| (1..=64).contains(&seed.len())), "{name}");
        seeds.iter().for_each(|seed| check(seed));
    }
}

#[test]
fn what_the_fuzzer_has_found() {
    for (name, check) in TARGETS {
        let inputs = corpus(name);
        assert!(inputs.len() > 10, "{name}");
        inputs.iter().for_each(|input| check(input));
    }
}

#[test]
fn mixtures_of_seeds() {
    for (name, check) in TARGETS {
        run(&mixtures(seeds(name)), *check);
    }
}

#[test]
fn random_bytes() {
    for (_, check) in TARGETS {
        run(&prop::collection::vec(any::<u8>(), 0..200), *check);
    }
}
