//! What is wrong with a configuration, all of it at once.

use std::{collections::BTreeSet, fmt};

use pdca_state::{When, WhenText};
use thiserror::Error;

use crate::{
    config::{LeafConfig, LeafMode, Leaves, PromptVia, Seconds},
    role::{ROLES, Role, RoleSpec},
    template::{Placeholder, Template, TemplateError},
};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {flaw}")]
pub struct LeafConfigProblem {
    /// The key, such as `leaves.builder.argv[1]`.
    pub key: String,
    /// What is wrong with it.
    pub flaw: ConfigFlaw,
}

/// What can be wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigFlaw {
    /// A command without a program.
    #[error("mode = \"command\" needs a program here")]
    NoProgram,
    /// A text with a wrong placeholder.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A placeholder whose value this configuration does not give.
    #[error("`{{{placeholder}}}` is used, but {missing}")]
    NoValue {
        /// The name between the braces.
        placeholder: &'static str,
        /// What would give it a value.
        missing: &'static str,
    },
    /// Two keys of which one is enough.
    #[error("{} and {} exclude each other", .0, .1)]
    Both(&'static str, &'static str),
    /// A span of no length.
    #[error("must be more than zero")]
    Zero,
    /// An exit code that means something else, or cannot be.
    #[error("{0} cannot mean throttled; use 1 to 255")]
    ExitCode(i32),
    /// A text that is empty.
    #[error("must not be empty")]
    Empty,
    /// An environment name that cannot be set, or is not for the configuration to set.
    #[error("cannot be set: {0}")]
    Env(&'static str),
    /// A transcript that is larger than makes sense.
    #[error("{0} KiB are too many; at most {max}", max = MAX_TRANSCRIPT_KB)]
    Transcript(u32),
    /// Prices of tokens that are not told.
    #[error("`protocol = \"text\"` tells no tokens; use `cost_per_call`")]
    PriceWithoutTokens,
    /// More retries than make sense.
    #[error("{0} retries are too many; at most {max}", max = MAX_RETRIES)]
    Retries(u32),
    /// An adviser's name that cannot be part of a file name, or is missing.
    #[error("an adviser needs a name of letters, digits, `-` and `_`, at most 50 of them")]
    AdviserName,
    /// Two advisers of one name.
    #[error("another adviser has this name")]
    AdviserTwice,
    /// A name on a leaf that is no adviser.
    #[error("only an adviser has a name")]
    NameWithoutAdviser,
    /// A prompt on an input that a person holds.
    #[error("an interactive leaf cannot get its prompt on stdin; use \"file\" or \"none\"")]
    PromptOnTerminal,
    /// A condition on a leaf that is no variant.
    #[error("only a [[leaves.builder_variant]] has a condition, and an adviser `when`")]
    Condition,
    /// Something to look for, of a leaf that is no adviser.
    #[error("only an adviser has a `role`")]
    RoleWithoutAdviser,
    /// A variant that would always be called.
    #[error("a variant needs `when`, or an `attempt` from 2 on")]
    Unconditional,
    /// A variant that is never called.
    #[error("never called: builder_variant[{first}] applies wherever it does, and comes first")]
    Unreachable {
        /// The place of the other.
        first: usize,
    },
    /// A session that may not be gone on in.
    #[error("a {0} begins a new session each time")]
    Resume(Role),
    /// An author that no commit would have.
    #[error("a variant has no author of its own")]
    Author,
    /// A role in which nobody may sit at the terminal.
    #[error("a {0} runs unattended")]
    Unattended(Role),
}

/// The most retries that are accepted.
// A leaf that fails that often needs a person; limits of a provider are for `throttled`.
const MAX_RETRIES: u32 = 100;

/// The longest transcript that is accepted.
const MAX_TRANSCRIPT_KB: u32 = 16 << 10;

impl Leaves {
    /// Everything that is wrong, in the order of the file's tables.
    pub fn validate(&self) -> Vec<LeafConfigProblem> {
        let mut problems = Problems::default();
        if let Some(kib) = self.transcript_kb.filter(|kib| *kib > MAX_TRANSCRIPT_KB) {
            problems.add(format_args!("leaves.transcript_kb"), ConfigFlaw::Transcript(kib));
        }
        for RoleSpec { role, name, .. } in &ROLES {
            let Some(leaf) = self.of(*role) else { continue };
            problems.leaf(*role, &format!("leaves.{name}"), leaf);
            if leaf.id.is_some() {
                problems.add(format_args!("leaves.{name}.id"), ConfigFlaw::NameWithoutAdviser);
            }
            let table = format!("leaves.{name}");
            problems.no_condition(&table, leaf, &["when", "attempt"]);
            problems.no_role(&table, leaf);
        }
        for (place, leaf) in self.builder_variant.iter().enumerate() {
            let table = format!("leaves.builder_variant[{place}]");
            problems.leaf(Role::Builder, &table, leaf);
            if leaf.id.is_some() {
                problems.add(format_args!("{table}.id"), ConfigFlaw::NameWithoutAdviser);
            }
            problems.condition(&table, leaf, &self.builder_variant[..place]);
            problems.no_role(&table, leaf);
            // A variant inherits the author of the builder, so only another one is an error: the
            // driver makes all commits of builders under one author.
            if leaf.author.is_some() && leaf.author != self.builder.author {
                problems.add(format_args!("{table}.author"), ConfigFlaw::Author);
            }
        }
        let mut names = BTreeSet::new();
        for (spec, place, leaf) in self.all_listed() {
            let table = spec.table(place);
            match leaf.id.as_deref() {
                Some(name) if is_adviser_name(name) => {
                    if !names.insert((spec.list, name)) {
                        problems.add(format_args!("{table}.id"), ConfigFlaw::AdviserTwice);
                    }
                }
                Some(_) | None => problems.add(format_args!("{table}.id"), ConfigFlaw::AdviserName),
            }
            problems.leaf(spec.role, &table, leaf);
            problems.no_condition(&table, leaf, &["attempt"]);
            if leaf.when.as_ref().is_some_and(|when| when.read().is_incomplete()) {
                problems.add(format_args!("{table}.when"), ConfigFlaw::Empty);
            }
        }
        problems.0
    }
}

/// Whether an adviser may have this name: it becomes part of a file's name.
pub(crate) fn is_adviser_name(name: &str) -> bool {
    let allowed = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
    (1..=50).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(allowed)
}

#[derive(Default)]
struct Problems(Vec<LeafConfigProblem>);

impl Problems {
    fn add(&mut self, key: fmt::Arguments<'_>, flaw: ConfigFlaw) {
        self.0.push(LeafConfigProblem { key: key.to_string(), flaw });
    }

    fn leaf(&mut self, role: Role, table: &str, leaf: &LeafConfig) {
        if leaf.mode == LeafMode::Command && leaf.argv.first().is_none_or(String::is_empty) {
            self.add(format_args!("{table}.argv"), ConfigFlaw::NoProgram);
        }
        for (place, text) in leaf.argv.iter().enumerate() {
            self.text(&format!("{table}.argv[{place}]"), text, leaf);
        }
        for (key, args, given) in [
            ("model_args", &leaf.model_args, Placeholder::Model),
            ("effort_args", &leaf.effort_args, Placeholder::Effort),
            ("resume_args", &leaf.resume_args, Placeholder::Session),
        ] {
            for (place, text) in args.iter().enumerate() {
                // They are used only where it has a value.
                self.text_given(&format!("{table}.{key}[{place}]"), text, leaf, Some(given));
            }
        }
        for (place, text) in leaf.writable.iter().enumerate() {
            self.text(&format!("{table}.writable[{place}]"), text, leaf);
            if text.is_empty() {
                self.add(format_args!("{table}.writable[{place}]"), ConfigFlaw::Empty);
            }
        }
        for (name, text) in &leaf.env {
            self.text(&format!("{table}.env.{name}"), text, leaf);
            if let Some(why) = forbidden_name(name) {
                self.add(format_args!("{table}.env.{name}"), ConfigFlaw::Env(why));
            }
        }
        if leaf.resume == Some(true) && !role.may_resume() {
            self.add(format_args!("{table}.resume"), ConfigFlaw::Resume(role));
        }
        if leaf.price.is_some() && leaf.mode == LeafMode::Command && !leaf.protocol.tells_usage() {
            self.add(format_args!("{table}.price"), ConfigFlaw::PriceWithoutTokens);
        }
        self.terminal(role, table, leaf);
        self.spans(table, leaf);
        if leaf.retries > MAX_RETRIES {
            self.add(format_args!("{table}.retries"), ConfigFlaw::Retries(leaf.retries));
        }
    }

    fn no_condition(&mut self, table: &str, leaf: &LeafConfig, keys: &[&str]) {
        for (key, is_set) in [("when", leaf.when.is_some()), ("attempt", leaf.attempt.is_some())] {
            if is_set && keys.contains(&key) {
                self.add(format_args!("{table}.{key}"), ConfigFlaw::Condition);
            }
        }
    }

    fn no_role(&mut self, table: &str, leaf: &LeafConfig) {
        if leaf.role.is_some() {
            self.add(format_args!("{table}.role"), ConfigFlaw::RoleWithoutAdviser);
        }
    }

    /// The condition of a variant that stands behind others.
    fn condition(&mut self, table: &str, leaf: &LeafConfig, before: &[LeafConfig]) {
        let when = |leaf: &LeafConfig| leaf.when.as_ref().map(WhenText::read);
        let from = |leaf: &LeafConfig| leaf.attempt.unwrap_or(1);
        let own = when(leaf);
        if own.as_ref().is_some_and(When::is_incomplete) {
            self.add(format_args!("{table}.when"), ConfigFlaw::Empty);
        }
        if leaf.attempt == Some(0) {
            self.add(format_args!("{table}.attempt"), ConfigFlaw::Zero);
        } else if own.is_none() && from(leaf) < 2 {
            self.add(format_args!("{table}"), ConfigFlaw::Unconditional);
        }
        let covers = |other: &LeafConfig| {
            let when = when(other);
            from(other) <= from(leaf) && (when.is_none() || when == own)
        };
        if let Some(first) = before.iter().position(covers) {
            self.add(format_args!("{table}"), ConfigFlaw::Unreachable { first });
        }
    }

    /// The prompt, and the person who may be in its way.
    fn terminal(&mut self, role: Role, table: &str, leaf: &LeafConfig) {
        if leaf.prompt.is_some() && leaf.prompt_file.is_some() {
            self.add(format_args!("{table}.prompt"), ConfigFlaw::Both("prompt", "prompt_file"));
        }
        if leaf.prompt_file.as_ref().is_some_and(|path| path.as_str().is_empty()) {
            self.add(format_args!("{table}.prompt_file"), ConfigFlaw::Empty);
        }
        if leaf.interactive && leaf.prompt_via() == PromptVia::Stdin {
            self.add(format_args!("{table}.prompt_via"), ConfigFlaw::PromptOnTerminal);
        }
        if leaf.interactive && (role.is_independent() || role.spec().list.is_some()) {
            self.add(format_args!("{table}.interactive"), ConfigFlaw::Unattended(role));
        }
    }

    fn spans(&mut self, table: &str, leaf: &LeafConfig) {
        let throttled = &leaf.throttled;
        let spans = [
            ("timeout_secs", leaf.timeout_secs),
            ("stall_secs", leaf.stall_secs),
            // A pause of no length would be asked for without end.
            ("throttled.backoff_secs", Some(throttled.backoff_secs)),
        ];
        for (key, span) in spans {
            if span.map(Seconds::get).is_some_and(|span| span.is_zero()) {
                self.add(format_args!("{table}.{key}"), ConfigFlaw::Zero);
            }
        }
        for code in throttled.exit_codes.iter().filter(|code| !(1..=255).contains(*code)) {
            self.add(format_args!("{table}.throttled.exit_codes"), ConfigFlaw::ExitCode(*code));
        }
        if throttled.pattern.as_deref() == Some("") {
            self.add(format_args!("{table}.throttled.pattern"), ConfigFlaw::Empty);
        }
    }

    /// A text with placeholders, each of which has a value or may have one in some call.
    fn text(&mut self, key: &str, text: &str, leaf: &LeafConfig) {
        self.text_given(key, text, leaf, None);
    }

    /// The same where one of them is known to have a value.
    fn text_given(&mut self, key: &str, text: &str, leaf: &LeafConfig, given: Option<Placeholder>) {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => return self.add(format_args!("{key}"), error.into()),
        };
        for placeholder in template.placeholders().filter(|one| Some(*one) != given) {
            if let Some(missing) = missing(placeholder, leaf) {
                let flaw = ConfigFlaw::NoValue { placeholder: placeholder.name(), missing };
                self.add(format_args!("{key}"), flaw);
            }
        }
    }
}

/// Why a placeholder can have no value with this leaf.
fn missing(placeholder: Placeholder, leaf: &LeafConfig) -> Option<&'static str> {
    match placeholder {
        Placeholder::Prompt | Placeholder::PromptFile => {
            (leaf.prompt_via() == PromptVia::None).then_some("prompt_via is \"none\"")
        }
        Placeholder::Model => leaf.model.is_none().then_some("model is not set"),
        Placeholder::Effort => leaf.effort.is_none().then_some("effort is not set"),
        Placeholder::Family => leaf.family.is_none().then_some("family is not set"),
        Placeholder::Agent => leaf.agent.is_none().then_some("agent is not set"),
        Placeholder::Lens => leaf.role.is_none().then_some("role is not set"),
        Placeholder::Session => {
            (!leaf.protocol.tells_session()).then_some("its protocol tells no session")
        }
        Placeholder::Bundle
        | Placeholder::Inputs
        | Placeholder::Brief
        | Placeholder::Output
        | Placeholder::Worktree
        | Placeholder::Workspace
        | Placeholder::Id
        | Placeholder::Role
        | Placeholder::Base
        | Placeholder::Target
        | Placeholder::Pdca
        | Placeholder::Guard
        | Placeholder::Attempt
        | Placeholder::Previous
        | Placeholder::Primary
        | Placeholder::Gates
        | Placeholder::Push => None,
    }
}

/// Why an environment name is not for the configuration to set.
fn forbidden_name(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        Some("no program could read a variable of that name")
    } else if name.starts_with("PDCA_") {
        Some("names that start with PDCA_ belong to the driver")
    } else if matches!(name, "TMPDIR" | "GIT_DIR" | "GIT_WORK_TREE" | "GIT_INDEX_FILE") {
        Some("it would lead the leaf out of its checkout or its temporary directory")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn problems(text: &str) -> String {
        let leaves: Leaves = toml::from_str(text).unwrap();
        let all = leaves.validate();
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let text = r#"
            transcript_kb = 20000
            [planner]
            interactive = true
            prompt_via = "stdin"
            [builder]
            mode = "command"
            price = { input = 1, output = 2 }
            timeout_secs = 0
            retries = 101
            env = { PDCA_RUN = "x", "A=B" = "", OK = "{nope}" }
            [reviewer]
            mode = "command"
            argv = ["r", "{bundel}", "{", "{model}", "{prompt}"]
            prompt = "p"
            prompt_file = "p.md"
            prompt_via = "none"
            interactive = true
            writable = [""]
            throttled = { exit_codes = [0, 75, 256], pattern = "", backoff_secs = 0 }
            [act]
            id = "x"
            [[advisory]]
            [[advisory]]
            id = "a"
            [[advisory]]
            id = "a"
            [[advisory]]
            id = "../x"
        "#;
        assert_snapshot!(problems(text), @r#"
        leaves.transcript_kb: 20000 KiB are too many; at most 16384
        leaves.planner.prompt_via: an interactive leaf cannot get its prompt on stdin; use "file" or "none"
        leaves.builder.argv: mode = "command" needs a program here
        leaves.builder.env.A=B: cannot be set: no program could read a variable of that name
        leaves.builder.env.OK: unknown placeholder `{nope}`
        leaves.builder.env.PDCA_RUN: cannot be set: names that start with PDCA_ belong to the driver
        leaves.builder.price: `protocol = "text"` tells no tokens; use `cost_per_call`
        leaves.builder.timeout_secs: must be more than zero
        leaves.builder.retries: 101 retries are too many; at most 100
        leaves.reviewer.argv[1]: unknown placeholder `{bundel}`; did you mean `{bundle}`?
        leaves.reviewer.argv[2]: a lone `{` at byte 0; write `{{` for a brace
        leaves.reviewer.argv[3]: `{model}` is used, but model is not set
        leaves.reviewer.argv[4]: `{prompt}` is used, but prompt_via is "none"
        leaves.reviewer.writable[0]: must not be empty
        leaves.reviewer.prompt: prompt and prompt_file exclude each other
        leaves.reviewer.interactive: a reviewer runs unattended
        leaves.reviewer.throttled.backoff_secs: must be more than zero
        leaves.reviewer.throttled.exit_codes: 0 cannot mean throttled; use 1 to 255
        leaves.reviewer.throttled.exit_codes: 256 cannot mean throttled; use 1 to 255
        leaves.reviewer.throttled.pattern: must not be empty
        leaves.act.id: only an adviser has a name
        leaves.advisory[0].id: an adviser needs a name of letters, digits, `-` and `_`, at most 50 of them
        leaves.advisory[2].id: another adviser has this name
        leaves.advisory[3].id: an adviser needs a name of letters, digits, `-` and `_`, at most 50 of them
        "#);
    }

    #[test]
    fn a_variant_has_a_condition_under_which_it_is_called_and_no_other_leaf_has_one() {
        let text = r#"
            [builder]
            attempt = 2
            [reviewer]
            resume = true
            [[builder_variant]]
            when = "Difficulty: low"
            attempt = 0
            [[builder_variant]]
            attempt = 2
            [[builder_variant]]
            when = "Difficulty: high"
            attempt = 3
            mode = "command"
            argv = ["a", "{session}", "{attempt}", "{atempt}"]
            [[builder_variant]]
            when = "Difficulty"
            id = "x"
            [[builder_variant]]
        "#;
        assert_snapshot!(problems(text), @r"
        leaves.builder.attempt: only a [[leaves.builder_variant]] has a condition, and an adviser `when`
        leaves.reviewer.resume: a reviewer begins a new session each time
        leaves.builder_variant[0].attempt: must be more than zero
        leaves.builder_variant[2].argv[1]: `{session}` is used, but its protocol tells no session
        leaves.builder_variant[2].argv[3]: unknown placeholder `{atempt}`; did you mean `{attempt}`?
        leaves.builder_variant[2]: never called: builder_variant[1] applies wherever it does, and comes first
        leaves.builder_variant[3].id: only an adviser has a name
        leaves.builder_variant[3].when: must not be empty
        leaves.builder_variant[4]: a variant needs `when`, or an `attempt` from 2 on
        ");
    }

    #[test]
    fn a_stub_may_keep_the_program_it_had() {
        assert_eq!(problems("[builder]\nmode = \"stub\"\nargv = [\"agent\", \"{id}\"]\n"), "");
    }

    #[test]
    fn the_name_of_an_adviser_cannot_lead_anywhere() {
        for good in ["a", "Sec-1", "x_y"] {
            assert!(is_adviser_name(good), "{good}");
        }
        for bad in ["", "a/b", "..", ".", "-a", "a b", "é", "a\0", &"x".repeat(51)] {
            assert!(!is_adviser_name(bad), "{bad:?}");
        }
    }
}
