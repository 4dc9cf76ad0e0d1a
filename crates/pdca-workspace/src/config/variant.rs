//! Variants of the builder get the builder's keys, below what they say themselves.

use toml::{Table, Value};

use super::preset::lay_under;

/// The keys that describe a program. A variant with a program of its own gets none of them.
const OF_THE_PROGRAM: [&str; 12] = [
    "agent",
    "argv",
    "model",
    "effort",
    "model_args",
    "effort_args",
    "resume_args",
    "protocol",
    "prompt_via",
    "family",
    "price",
    "cost_per_call",
];

/// The keys that say when a variant is called.
const OF_THE_VARIANT: [&str; 3] = ["id", "when", "attempt"];

/// Lays each variant over the builder. Returns the path of each value that was inherited, with the path it comes from.
pub(super) fn inherit(merged: &mut Table) -> Vec<(String, String)> {
    let mut inherited = Vec::new();
    let Some(Value::Table(leaves)) = merged.get_mut("leaves") else { return inherited };
    let builder = leaves.get("builder").and_then(Value::as_table).cloned().unwrap_or_default();
    let variants = leaves.get_mut("builder_variant").and_then(Value::as_array_mut);
    for (place, variant) in variants.into_iter().flatten().enumerate() {
        let Value::Table(variant) = variant else { continue };
        let has_argv =
            variant.get("argv").and_then(Value::as_array).is_some_and(|argv| !argv.is_empty());
        let is_other =
            variant.get("agent").is_some_and(|agent| builder.get("agent") != Some(agent));
        let mut under = builder.clone();
        under.retain(|key, _| {
            let is_of_program = OF_THE_PROGRAM.contains(&key) && (has_argv || is_other);
            !is_of_program && !OF_THE_VARIANT.contains(&key)
        });
        let prefix = format!("leaves.builder_variant[{place}]");
        lay_under(variant, under, &prefix, &mut |path| {
            let from = path.replacen(&prefix, "leaves.builder", 1);
            inherited.push((path, from));
        });
    }
    inherited
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(builder: &str, variant: &str) -> String {
        let text = format!("[leaves.builder]\n{builder}\n[[leaves.builder_variant]]\n{variant}\n");
        let mut table: Table = text.parse().unwrap();
        inherit(&mut table);
        let merged = &table["leaves"]["builder_variant"][0];
        merged.to_string()
    }

    #[test]
    fn a_variant_of_the_same_program_changes_what_it_says_and_keeps_the_rest() {
        let builder = "agent = \"claude\"\nmodel = \"small\"\ntimeout_secs = 9\nenv = { A = \"1\", B = \"2\" }";
        let merged = variant(builder, "attempt = 2\nmodel = \"large\"\nenv = { B = \"3\" }");
        let expected: Value =
            "x = { agent = \"claude\", attempt = 2, env = { A = \"1\", B = \"3\" }, \
             model = \"large\", timeout_secs = 9 }"
                .parse::<Table>()
                .unwrap()["x"]
                .clone();
        assert_eq!(merged, expected.to_string());
    }

    #[test]
    fn a_variant_of_another_program_keeps_nothing_that_belongs_to_the_program() {
        let builder = "agent = \"claude\"\nmodel = \"small\"\neffort = \"low\"\nretries = 2";
        let expected = "{ agent = \"codex\", attempt = 2, retries = 2 }";
        assert_eq!(variant(builder, "attempt = 2\nagent = \"codex\""), expected);
        let expected = "{ argv = [\"x\"], attempt = 2, retries = 2 }";
        assert_eq!(variant(builder, "attempt = 2\nargv = [\"x\"]"), expected);
    }

    #[test]
    fn what_a_program_costs_is_not_what_another_one_costs() {
        let builder = "agent = \"claude\"\ncost_per_call = 2\nprice = { input = 1, output = 2 }";
        let expected = "{ agent = \"codex\", attempt = 2 }";
        assert_eq!(variant(builder, "attempt = 2\nagent = \"codex\""), expected);
    }
}
