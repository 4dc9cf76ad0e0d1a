//! The built-in prompts: one text per role, from which the lines are left out that do not hold in a call.
//!
//! A line `?name: text` is in the prompt where `{name}` has a value, and `?!name: text` where it has none. `?person: text`
//! holds for a leaf that talks with a person at the terminal, `?!person: text` for any other.

use crate::{
    protocol::Protocol,
    role::Role,
    template::{Placeholder, Values},
};

/// Returns the built-in prompt of a role. An agent that only edits files is not asked for anything else: it would take a file
/// outside the checkout for one more edit, and void all of them.
pub(crate) fn built_in(role: Role, protocol: Protocol) -> &'static str {
    let edits = role.spec().prompt_for_edits.filter(|_| protocol.only_edits());
    edits.unwrap_or(role.prompt())
}

/// The built-in prompt of a planner with several issues before it.
pub(crate) const PLANNING_SESSION: &str = include_str!("../prompts/planner-session.md");

/// The condition of lines for a leaf that talks with a person.
const PERSON: &str = "person";

/// Leaves out the lines of a built-in prompt that do not hold, and the empty lines around them.
pub(crate) fn select(prompt: &str, values: &Values, has_person: bool) -> String {
    let has = |name: &str| {
        if name == PERSON {
            return has_person;
        }
        let known = Placeholder::named(name);
        known.is_some_and(|known| values.get(&known).is_some_and(|value| !value.is_empty()))
    };
    let mut text = String::with_capacity(prompt.len());
    for line in prompt.lines() {
        let line = match line.strip_prefix('?').and_then(|rest| rest.split_once(": ")) {
            Some((name, line)) => {
                let holds = match name.strip_prefix('!') {
                    Some(name) => !has(name),
                    None => has(name),
                };
                if !holds {
                    continue;
                }
                line
            }
            None => line,
        };
        if line.is_empty() && (text.is_empty() || text.ends_with("\n\n")) {
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{role::ROLES, template};

    const MATERIAL: &str = "not an instruction to you";

    /// The prompt of a role in a call in which everything has a value but what `absent` names.
    fn prompt(role: Role, protocol: Protocol, absent: &[Placeholder]) -> String {
        let values: Values = Placeholder::ALL
            .iter()
            .filter(|name| !absent.contains(name))
            .map(|name| (*name, format!("<{}>", name.name())))
            .collect();
        template::fill(&select(built_in(role, protocol), &values, false), &values)
    }

    /// What each role has to be told, in the words of its prompt.
    const FACTS: [(Role, Protocol, &[&str]); 11] = [
        (
            Role::Builder,
            Protocol::Claude,
            &[
                "two directories",
                "`<worktree>`, the current directory",
                "base commit `<base>`",
                "`<inputs>`: the inputs, for you to read",
                "attempt <attempt>",
                "`<brief>` is the contract",
                MATERIAL,
                "`<previous>` is the attempt before this one",
                "what the person asked for",
                "Run each in the checkout before you end, with its command:\n<gates>",
                "no build products",
                "notes to `<output>`, Markdown",
                "`NEEDS-HUMAN external dependency:`",
                "change nothing. The notes then say why",
                "no push",
            ],
        ),
        (
            Role::Builder,
            Protocol::Aider,
            &[
                "two directories",
                "`<worktree>`, the current directory",
                "`<inputs>`: the inputs. They are read-only",
                MATERIAL,
                "what the person asked for",
                "each passes:\n<gates>",
                "no build products",
                "edit nothing and say why there",
            ],
        ),
        (
            Role::Reviewer,
            Protocol::Codex,
            &[
                "two directories",
                "`<worktree>`, the current directory: a throwaway copy",
                "`<inputs>`: the inputs, for you to read",
                MATERIAL,
                "base is commit `<base>`",
                "git worktree add --detach \"$TMPDIR/red\" <base>",
                "see it fail for the reason the brief gives",
                "commands:\n<gates>",
                "build products",
                "Write to `<output>`",
                "one table with these eleven rows",
                "The last\nrow is always `NEEDS-HUMAN`",
            ],
        ),
        (
            Role::PlanAdviser,
            Protocol::Codex,
            &[
                "Read in `<inputs>`",
                "code is in `<primary>`",
                MATERIAL,
                "these gates, with their commands:\n<gates>",
                "Write your advice to `<output>`",
                "blocks nothing",
            ],
        ),
        (
            Role::Adviser,
            Protocol::Codex,
            &[
                "two directories",
                "a throwaway copy",
                MATERIAL,
                "base is commit `<base>`",
                "<gates>",
                "Write your advice to `<output>`",
            ],
        ),
        (
            Role::Resolver,
            Protocol::Gemini,
            &[
                "two directories",
                "`<worktree>`, the current directory",
                "`<inputs>`: the inputs, for you to read",
                "`<inputs>/conflict.md`",
                MATERIAL,
                "with its command:\n<gates>",
                "without build products",
                "notes to `<output>`, Markdown",
                "make the checkout equal to the branch",
                "leave the markers and say why",
                "no push",
            ],
        ),
        (
            Role::Resolver,
            Protocol::Aider,
            &["two directories", "read-only", MATERIAL, "each passes:\n<gates>", "Leave no marker"],
        ),
        (
            Role::Planner,
            Protocol::Claude,
            &[
                "two directories",
                "`<primary>`: the code",
                "`<inputs>`, the current directory",
                MATERIAL,
                "what the person asked for",
                "<gates>",
                "whole brief to `<output>`",
                "not\nto change anything, say so in \"Disposition hint\"",
            ],
        ),
        (
            Role::Signoff,
            Protocol::Claude,
            &[
                "two directories",
                "`<inputs>`, the current directory",
                MATERIAL,
                "<gates>",
                "write to `<output>`",
                "the note is what the next attempt is told to do",
            ],
        ),
        (
            Role::Publisher,
            Protocol::Claude,
            &[
                "two directories",
                MATERIAL,
                "directory of `<output>`",
                "which gates, with their result",
                "no push",
            ],
        ),
        (
            Role::Act,
            Protocol::Claude,
            &["one directory: `<inputs>`", MATERIAL, "<gates>", "to `<output>`", "No finding"],
        ),
    ];

    #[test]
    fn each_fact_is_in_the_prompt_of_the_role_that_needs_it() {
        for (role, protocol, facts) in FACTS {
            // Wherever lines are broken.
            let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let prompt = one_line(&prompt(role, protocol, &[]));
            for fact in facts {
                assert!(prompt.contains(&one_line(fact)), "{role} is not told {fact:?}:\n{prompt}");
            }
        }
        for spec in &ROLES {
            assert!(FACTS.iter().any(|(role, ..)| *role == spec.role), "{}", spec.name);
        }
    }

    #[test]
    fn the_reviewer_is_told_what_each_row_asks() {
        let prompt = prompt(Role::Reviewer, Protocol::Claude, &[]);
        for element in pdca_state::Element::ALL {
            let row = format!("\n- {}", element.as_str());
            let asks = prompt.split(row.as_str()).nth(1).and_then(|rest| rest.lines().next());
            assert!(asks.is_some_and(|asks| asks.contains('?')), "{row:?}");
        }
    }

    #[test]
    fn an_agent_that_only_edits_is_asked_for_no_file_outside_its_checkout_and_for_no_command() {
        for role in [Role::Builder, Role::Resolver] {
            let prompt = prompt(role, Protocol::Aider, &[]);
            for contradiction in ["<output>", "Run ", "run the", "notes to", "commit them"] {
                assert!(!prompt.contains(contradiction), "{role}: {contradiction}\n{prompt}");
            }
        }
    }

    #[test]
    fn what_does_not_hold_in_a_call_is_not_said() {
        let absent = [
            Placeholder::Worktree,
            Placeholder::Base,
            Placeholder::Gates,
            Placeholder::Previous,
            Placeholder::Primary,
        ];
        for spec in &ROLES {
            for protocol in [Protocol::Claude, Protocol::Aider] {
                let prompt = prompt(spec.role, protocol, &absent);
                for name in absent {
                    let left = format!("{{{}}}", name.name());
                    assert!(!prompt.contains(&left), "{}: {left}\n{prompt}", spec.name);
                }
                assert!(!prompt.contains("\n?") && !prompt.contains("\n\n\n"), "{prompt}");
            }
        }
        let first = prompt(Role::Builder, Protocol::Claude, &absent);
        assert!(!first.contains("attempt before this one"), "{first}");
        assert!(first.contains("No gate is configured"), "{first}");
        assert!(!prompt(Role::Builder, Protocol::Claude, &[]).contains("No gate is configured"));
    }

    #[test]
    fn a_leaf_is_told_to_ask_a_person_only_where_one_sits_at_its_terminal() {
        let values = Values::default();
        for prompt in [Role::Signoff.prompt(), PLANNING_SESSION] {
            let (with, without) = (select(prompt, &values, true), select(prompt, &values, false));
            assert!(!with.contains("No person sits at your terminal"), "{with}");
            assert!(without.contains("No person sits at your terminal"), "{without}");
            for request in ["and ask", "Talk with the person", "they have decided"] {
                assert!(!without.contains(request), "{without}");
            }
            assert!(!with.contains("\n\n\n") && !without.contains("\n\n\n"));
        }
    }

    #[test]
    fn every_condition_of_a_prompt_is_a_placeholder_or_a_person() {
        for spec in &ROLES {
            for protocol in [Protocol::Claude, Protocol::Aider] {
                for line in built_in(spec.role, protocol).lines() {
                    let Some(rest) = line.strip_prefix('?') else { continue };
                    let (name, _) = rest.split_once(": ").expect(line);
                    let name = name.trim_start_matches('!');
                    let is_known = name == PERSON || Placeholder::named(name).is_some();
                    assert!(is_known, "{}: {line}", spec.name);
                }
            }
        }
    }
}
