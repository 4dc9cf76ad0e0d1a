//! `cargo xtask properties`: runs every property with many cases of a fresh seed.
//!
//! The suite itself draws the same cases each time (`PROPTEST_RNG_SEED` in `.cargo/config.toml`), so that a
//! red test is due to the change under test and not to chance. Chance
//! has its place here, with the seed shown, so that a finding can be reproduced.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Outcome, Stopped, program};

/// Run every property with many cases of a fresh draw
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The number of cases of each property
    #[arg(long, default_value_t = 2_000)]
    cases: u32,
    /// The seed to draw from; without it, another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the properties with this in their name (may be repeated)
    #[arg(value_name = "NAME")]
    only: Vec<String>,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let mut names = BTreeSet::new();
    for path in sources(root)? {
        names.extend(properties(&fs_err::read_to_string(root.join(&path))?));
    }
    names.retain(|name| args.only.is_empty() || args.only.iter().any(|only| name.contains(only)));
    if names.is_empty() {
        return Err("no property has that in its name".into());
    }
    let seed = args.seed.unwrap_or_else(fresh_seed).to_string();
    let cases = args.cases.to_string();
    println!("{} properties, {cases} cases each; again with --seed {seed}", names.len());
    let mut words = vec!["test", "--workspace", "--lib", "--bins", "--tests", "--"];
    words.extend(names.iter().map(String::as_str));
    let env = [("PROPTEST_CASES", cases.as_str()), ("PROPTEST_RNG_SEED", seed.as_str())];
    let passed = program::succeeds("cargo", &words, &env, root)?;
    Ok(if passed { Outcome::Passed } else { Outcome::Failed })
}

/// Returns every Rust file of the workspace, relative to its root.
fn sources(root: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Stopped> {
    let mut files = Vec::new();
    let mut pending: Vec<_> = ["crates", "xtask", "tests"].map(|top| root.join(top)).into();
    while let Some(dir) = pending.pop() {
        for entry in dir.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path().to_owned());
            } else if entry.path().extension() == Some("rs") {
                files.push(entry.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns a number that the standard library draws for each hash map.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the names of the tests inside `proptest! { … }`.
fn properties(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for block in source.split("proptest! {").skip(1) {
        // As formatted by rustfmt, the block ends at the first brace that is not indented further.
        let lines = || block.lines().skip(1);
        let indent = |line: &str| line.len() - line.trim_start().len();
        let inner = lines().find(|line| !line.trim().is_empty()).map_or(0, indent);
        let inside = lines().take_while(|line| line.trim().is_empty() || indent(line) >= inner);
        let functions = inside.filter_map(|line| line.trim_start().strip_prefix("fn "));
        names.extend(functions.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_the_tests_inside_of_the_macro() {
        let source = "#[test]\nfn plain() {}\nmod tests {\n    proptest! {\n        #![proptest_config(x)]\n\n        #[test]\n        fn one(a in 0..3) {\n            f();\n        }\n\n        #[test]\n        fn two(\n            b in 1..2,\n        ) {\n        }\n    }\n\n    fn helper() {}\n}\n";
        assert_eq!(properties(source), ["one", "two"]);
        assert_eq!(properties("fn nothing() {}"), Vec::<String>::new());
    }
}
