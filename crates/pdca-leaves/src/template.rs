//! Placeholders in an argument: literal substitution, never a shell.
//!
//! `{name}` stands for a value of the call, `{{` for a brace. A name that is not known is an
//! error when the configuration is checked, so a typing mistake is not found in mid-run.

use std::collections::BTreeMap;

use thiserror::Error;

/// A name that may stand between braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placeholder {
    /// `{bundle}`: the staged view of the bundle.
    Bundle,
    /// `{inputs}`: the directory with the inputs; the same one.
    Inputs,
    /// `{brief}`: the staged `brief.md`.
    Brief,
    /// `{output}`: where the artifact is expected.
    Output,
    /// `{worktree}`: the checkout the leaf works in.
    Worktree,
    /// `{workspace}`: the directory of `pdca.toml`.
    Workspace,
    /// `{id}`: the bare id of the bundle.
    Id,
    /// `{role}`: the role's name.
    Role,
    /// `{base}`: the commit the change starts from.
    Base,
    /// `{target}`: the name of the target.
    Target,
    /// `{prompt}`: the text of the prompt, as one argument.
    Prompt,
    /// `{prompt_file}`: the file that holds the prompt.
    PromptFile,
    /// `{model}`: the key `model`, or what the brief asks for.
    Model,
    /// `{effort}`: the key `effort`.
    Effort,
    /// `{family}`: the key `family`.
    Family,
    /// `{agent}`: the key `agent`.
    Agent,
    /// `{pdca}`: the program that drives, for hooks that ask it.
    Pdca,
    /// `{guard}`: a directory with the files of the builder guard.
    Guard,
    /// `{attempt}`: the number of the attempt at the bundle, from 1.
    Attempt,
    /// `{session}`: the agent's session that is resumed; empty where a new one begins.
    Session,
    /// `{previous}`: the directory in the view with the attempt before this one.
    Previous,
    /// `{primary}`: the user's own checkout of the target; an independent role is not told of it.
    Primary,
    /// `{gates}`: the gates that judge the change, one line each with its command.
    Gates,
    /// `{lens}`: the key `role` of an adviser, what it looks for.
    Lens,
    /// `{push}`: the remote and the refspec that the leaf may push.
    Push,
}

impl Placeholder {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Bundle,
        Self::Inputs,
        Self::Brief,
        Self::Output,
        Self::Worktree,
        Self::Workspace,
        Self::Id,
        Self::Role,
        Self::Base,
        Self::Target,
        Self::Prompt,
        Self::PromptFile,
        Self::Model,
        Self::Effort,
        Self::Family,
        Self::Agent,
        Self::Pdca,
        Self::Guard,
        Self::Attempt,
        Self::Session,
        Self::Previous,
        Self::Primary,
        Self::Gates,
        Self::Lens,
        Self::Push,
    ];

    /// The name between the braces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Inputs => "inputs",
            Self::Brief => "brief",
            Self::Output => "output",
            Self::Worktree => "worktree",
            Self::Workspace => "workspace",
            Self::Id => "id",
            Self::Role => "role",
            Self::Base => "base",
            Self::Target => "target",
            Self::Prompt => "prompt",
            Self::PromptFile => "prompt_file",
            Self::Model => "model",
            Self::Effort => "effort",
            Self::Family => "family",
            Self::Agent => "agent",
            Self::Pdca => "pdca",
            Self::Guard => "guard",
            Self::Attempt => "attempt",
            Self::Session => "session",
            Self::Previous => "previous",
            Self::Primary => "primary",
            Self::Gates => "gates",
            Self::Lens => "lens",
            Self::Push => "push",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }
}

/// The values of one call. What is absent has no value there.
pub(crate) type Values = BTreeMap<Placeholder, String>;

/// A text with placeholders, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Placeholder),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Nothing of that name exists.
    #[error("unknown placeholder `{{{name}}}`{}", did_you_mean(*.suggestion))]
    Unknown {
        /// What stands between the braces.
        name: String,
        /// The known name that is nearest, where one is near.
        suggestion: Option<&'static str>,
    },
    /// An opening brace that opens no placeholder.
    #[error("a lone `{{` at byte {at}; write `{{{{` for a brace")]
    LoneBrace {
        /// Where it stands.
        at: usize,
    },
}

/// A placeholder that has no value in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("`{{{}}}` has no value in this call", .0.name())]
pub struct NoValue(pub Placeholder);

impl Template {
    /// Takes a configured text apart; strict.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if from.starts_with("{{") || from.starts_with("}}") {
                plain.push_str(&from[..1]);
                rest = &from[2..];
            } else if let Some(tail) = from.strip_prefix('}') {
                // Unlike a lone opening brace, it cannot be a mistyped placeholder.
                plain.push('}');
                rest = tail;
            } else {
                let name = word(&from[1..])
                    .ok_or(TemplateError::LoneBrace { at: text.len() - from.len() })?;
                let known = Placeholder::named(name).ok_or_else(|| unknown(name))?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Value(known));
                rest = &from[name.len() + 2..];
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self(pieces))
    }

    /// The placeholders in it.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(name) => Some(*name),
        })
    }

    /// Puts the values in, each as it is.
    pub(crate) fn expand(&self, values: &Values) -> Result<String, NoValue> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Value(name) => text.push_str(values.get(name).ok_or(NoValue(*name))?),
            }
        }
        Ok(text)
    }
}

/// Puts values into a prompt. Braces that name nothing here are text: prompts quote code.
pub(crate) fn fill(prompt: &str, values: &Values) -> String {
    let mut text = String::with_capacity(prompt.len());
    let mut rest = prompt;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let value =
            word(&from[1..]).and_then(|name| Some((name, values.get(&Placeholder::named(name)?)?)));
        if let Some((name, value)) = value {
            text.push_str(value);
            rest = &from[name.len() + 2..];
        } else {
            text.push('{');
            rest = &from[1..];
        }
    }
    text.push_str(rest);
    text
}

/// The name at the start of a text that closes right after it.
fn word(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('}')?;
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    (!name.is_empty() && name.chars().all(letters)).then_some(name)
}

fn unknown(name: &str) -> TemplateError {
    let suggestion = Placeholder::ALL
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known.name()), known.name()))
        .filter(|(distance, _)| *distance <= (name.len() / 3).max(1))
        .min()
        .map(|(_, name)| name);
    TemplateError::Unknown { name: name.to_owned(), suggestion }
}

fn did_you_mean(suggestion: Option<&'static str>) -> String {
    suggestion.map(|name| format!("; did you mean `{{{name}}}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> Values {
        Values::from([
            (Placeholder::Id, "36".to_owned()),
            (Placeholder::Bundle, "/w/{id}/$(touch x)".to_owned()),
        ])
    }

    fn expand(text: &str) -> String {
        Template::parse(text).unwrap().expand(&values()).unwrap()
    }

    #[test]
    fn a_value_is_put_in_literally_and_not_looked_at_again() {
        assert_eq!(expand("--dir={bundle}/x"), "--dir=/w/{id}/$(touch x)/x");
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(expand(r#"{{"id":{id}}}"#), r#"{"id":36}"#);
        assert_eq!(expand("{{id}}"), "{id}");
        assert_eq!(expand("a } b"), "a } b");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_known_one() {
        let error = Template::parse("x {worktre} y").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown placeholder `{worktre}`; did you mean `{worktree}`?"
        );
        let error = Template::parse("{zzzzzzzz}").unwrap_err();
        assert_eq!(error.to_string(), "unknown placeholder `{zzzzzzzz}`");
    }

    #[test]
    fn a_lone_brace_is_refused_with_its_place() {
        assert_eq!(Template::parse("ab {").unwrap_err(), TemplateError::LoneBrace { at: 3 });
        assert_eq!(Template::parse("{{{").unwrap_err(), TemplateError::LoneBrace { at: 2 });
        assert_eq!(Template::parse("{}").unwrap_err(), TemplateError::LoneBrace { at: 0 });
    }

    #[test]
    fn a_placeholder_without_a_value_is_named() {
        let error = Template::parse("{model}").unwrap().expand(&values()).unwrap_err();
        assert_eq!(error.to_string(), "`{model}` has no value in this call");
    }

    #[test]
    fn a_prompt_keeps_the_braces_it_quotes() {
        let prompt = "fn main() { {id} } {unknown} {model} {{id}}";
        assert_eq!(fill(prompt, &values()), "fn main() { 36 } {unknown} {model} {36}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_once_its_braces_are_doubled(text in ".*") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(Template::parse(&doubled).unwrap().expand(&Values::new()).unwrap(), text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[{}a-z_é ]*") {
            if let Ok(template) = Template::parse(&text) {
                let names = template.placeholders().map(|name| (name, String::new())).collect();
                template.expand(&names).unwrap();
            }
            fill(&text, &values());
        }
    }
}
