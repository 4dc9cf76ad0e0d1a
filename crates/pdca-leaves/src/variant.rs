//! Builders in place of the usual one: for some briefs, or from some attempt on.

use pdca_state::{Brief, Label, WhenText};

use crate::config::{LeafConfig, LeafMode, Leaves};

/// The builder of one attempt at one brief.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChosenBuilder<'a> {
    /// The leaf that is called.
    pub config: &'a LeafConfig,
    /// Its place in `builder_variant`; none for the usual builder.
    pub variant: Option<usize>,
    /// The model that the brief asks for, where that counts.
    pub model: Option<&'a str>,
    /// The effort that the brief asks for, where that counts.
    pub effort: Option<&'a str>,
}

impl Leaves {
    /// Chooses the builder of an attempt, counted from 1: the first variant that applies, else the usual one.
    ///
    /// `Do model` and `Do effort` of the brief replace the configured ones. A variant for a later attempt that has a
    /// program, a model or an effort of its own is there to do something else than before, so its own count. In a variant
    /// that is chosen by `Do model`, that is the name of the variant and not of a model.
    pub fn builder_for<'a>(&'a self, brief: Option<&'a Brief>, attempt: u32) -> ChosenBuilder<'a> {
        let applies = |leaf: &LeafConfig| leaf.applies_to(brief, attempt);
        let variant = self.builder_variant.iter().position(applies);
        let config = variant.map_or(&self.builder, |place| &self.builder_variant[place]);
        let usual = &self.builder;
        let is_other = config.agent != usual.agent || config.argv != usual.argv;
        let escalates = config.attempt.is_some();
        let when = config.when.as_ref().map(WhenText::read);
        let is_named = when.and_then(|when| when.known_label()) == Some(Label::DoModel);
        let model = brief.and_then(Brief::do_model).filter(|_| !is_named);
        let model = model.filter(|_| !escalates || !is_other && config.model == usual.model);
        let effort = brief.and_then(Brief::do_effort);
        let effort = effort.filter(|_| !escalates || !is_other && config.effort == usual.effort);
        ChosenBuilder { config, variant, model, effort }
    }

    /// Returns every variant with the name of its table.
    pub fn variants(&self) -> impl Iterator<Item = (String, &LeafConfig)> {
        let all = self.builder_variant.iter().enumerate();
        all.map(|(place, leaf)| (format!("builder_variant[{place}]"), leaf))
    }
}

impl LeafConfig {
    /// Returns the family that both leaves are of, where both are programs that name one.
    pub fn shared_family<'a>(&'a self, other: &LeafConfig) -> Option<&'a str> {
        let family = |leaf: &'a LeafConfig| {
            leaf.family.as_deref().filter(|_| leaf.mode == LeafMode::Command)
        };
        let other = other.family.as_deref().filter(|_| other.mode == LeafMode::Command)?;
        family(self).filter(|own| own.eq_ignore_ascii_case(other))
    }

    /// Returns true if a variant is for this attempt at this brief.
    fn applies_to(&self, brief: Option<&Brief>, attempt: u32) -> bool {
        self.attempt.is_none_or(|from| from <= attempt) && self.is_for(brief)
    }

    /// Returns true if a variant or an adviser is for this brief.
    pub fn is_for(&self, brief: Option<&Brief>) -> bool {
        let when = self.when.as_ref().map(WhenText::read);
        when.is_none_or(|when| brief.is_some_and(|brief| when.holds_for(brief)))
    }

    /// Returns the condition of a variant, for people.
    pub fn condition(&self) -> String {
        let when = self.when.as_ref().map(|when| when.read().to_string());
        let attempt = self.attempt.map(|from| format!("from attempt {from} on"));
        when.into_iter().chain(attempt).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for ChosenBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let config = self.config;
        let program = config.agent.as_deref().or(config.argv.first().map(String::as_str));
        f.write_str(program.unwrap_or("stub"))?;
        if let Some(model) = self.model.or(config.model.as_deref()) {
            write!(f, ", model {model}")?;
        }
        if let Some(effort) = self.effort.or(config.effort.as_deref()) {
            write!(f, ", effort {effort}")?;
        }
        if let Some(place) = self.variant {
            write!(f, ", builder_variant[{place}] ({})", config.condition())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAVES: &str = r#"
        [builder]
        agent = "a"
        model = "small"
        [[builder_variant]]
        attempt = 3
        agent = "b"
        model = "huge"
        [[builder_variant]]
        when = "Difficulty: high"
        attempt = 2
        agent = "a"
        model = "large"
        effort = "max"
        [[builder_variant]]
        when = { field = "difficulty", substring = "HIGH" }
        agent = "a"
        model = "medium"
    "#;

    #[test]
    fn two_programs_that_name_one_family_share_it_whatever_the_case() {
        let leaf = |text: &str| -> LeafConfig { toml::from_str(text).unwrap() };
        let of = |family: &str| leaf(&format!("mode = 'command'\nfamily = '{family}'"));
        assert_eq!(of("Acme").shared_family(&of("acme")), Some("Acme"));
        assert_eq!(of("acme").shared_family(&of("other")), None);
        let (stub, unnamed) = (leaf("family = 'acme'"), leaf("mode = 'command'"));
        for other in [&stub, &unnamed] {
            assert_eq!(of("acme").shared_family(other), None);
            assert_eq!(other.shared_family(&of("acme")), None);
        }
    }

    fn chosen(difficulty: &str, more: &str, attempt: u32) -> String {
        let leaves: Leaves = toml::from_str(LEAVES).unwrap();
        assert_eq!(leaves.validate(), []);
        let brief = format!("- **Slug:** x\n- **Difficulty:** {difficulty}\n{more}");
        leaves.builder_for(Some(&Brief::parse(&brief)), attempt).to_string()
    }

    #[test]
    fn the_first_variant_whose_conditions_all_hold_builds() {
        let second = "builder_variant[1] (`Difficulty` has `high`, from attempt 2 on)";
        for (difficulty, attempt, expected) in [
            ("low", 1, "a, model small".to_owned()),
            ("low", 2, "a, model small".to_owned()),
            ("low", 3, "b, model huge, builder_variant[0] (from attempt 3 on)".to_owned()),
            ("high", 1, "a, model medium, builder_variant[2] (`difficulty` has `HIGH`)".to_owned()),
            ("very high", 2, format!("a, model large, effort max, {second}")),
            ("high", 9, "b, model huge, builder_variant[0] (from attempt 3 on)".to_owned()),
        ] {
            assert_eq!(chosen(difficulty, "", attempt), expected, "{difficulty} {attempt}");
        }
    }

    #[test]
    fn the_brief_chooses_the_model_until_an_attempt_escalates() {
        let asks = "- **Do model:** mine\n- **Do effort:** low\n";
        assert_eq!(chosen("low", asks, 1), "a, model mine, effort low");
        let first = "a, model mine, effort low, builder_variant[2] (`difficulty` has `HIGH`)";
        assert_eq!(chosen("high", asks, 1), first);
        assert!(chosen("high", asks, 2).starts_with("a, model large, effort max, "));
        assert!(chosen("low", asks, 3).starts_with("b, model huge, "));
    }

    #[test]
    fn a_variant_that_the_brief_names_keeps_its_own_model() {
        let text = "[builder]\nagent = 'a'\nmodel = 'small'\n\
             [[builder_variant]]\nwhen = { field = 'Do model', equals = 'mine-max' }\n\
             agent = 'a'\nmodel = 'mine'\neffort = 'max'\n";
        let leaves: Leaves = toml::from_str(text).unwrap();
        assert_eq!(leaves.validate(), []);
        let chosen = |model: &str| {
            let brief = format!("- **Slug:** x\n- **Do model:** {model}\n");
            leaves.builder_for(Some(&Brief::parse(&brief)), 1).to_string()
        };
        let named = "a, model mine, effort max, builder_variant[0] (`Do model` is `mine-max`)";
        assert_eq!(chosen("Mine-Max"), named);
        assert_eq!(chosen("mine"), "a, model mine");
    }

    #[test]
    fn without_a_brief_only_the_attempt_decides() {
        let leaves: Leaves = toml::from_str(LEAVES).unwrap();
        assert_eq!(leaves.builder_for(None, 2).variant, None);
        assert_eq!(leaves.builder_for(None, 3).variant, Some(0));
    }
}
