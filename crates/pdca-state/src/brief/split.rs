//! Splitting a bundle into several: the briefs of the new ones, and the references of others to the old one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Brief, Label, Part};
use crate::id::{BundleId, IdError};
use crate::lines::{folded, lines};
use crate::title::title_of;

/// The label that names the bundle from which another one was split off.
pub const SPLIT_FROM: &str = "Split from";
/// The label that names the bundles that a bundle was split into.
pub const SPLIT_INTO: &str = "Split into";
/// The end of the id of the bundle that keeps the parts that are not ready.
const REST: &str = "rest";

/// The labels that each new brief takes over from the old one.
const TAKEN_OVER: [Label; 12] = [
    Label::Invariant,
    Label::RepoTarget,
    Label::OntoBranch,
    Label::ConflictsWith,
    Label::OrderingNote,
    Label::Surfaces,
    Label::Difficulty,
    Label::DoModel,
    Label::DoEffort,
    Label::ExternalDependencies,
    Label::CitationsExpected,
    Label::PriorArt,
];

/// A bundle to be split off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitOff {
    /// The id: that of the old bundle, a hyphen, and that of the part.
    pub id: BundleId,
    /// The brief.
    pub brief: String,
    /// The ids of the parts in it.
    pub parts: Vec<String>,
    /// True if a person has to fill something in before it can be built.
    pub is_draft: bool,
}

/// A bundle that is split.
#[derive(Debug, Clone, Copy)]
pub struct Splitting<'a> {
    id: &'a BundleId,
    text: &'a str,
    brief: &'a Brief,
}

impl<'a> Splitting<'a> {
    /// Prepares the splitting of a bundle; `text` is its brief as written, and `brief` the same, parsed.
    pub fn of(id: &'a BundleId, text: &'a str, brief: &'a Brief) -> Self {
        Self { id, text, brief }
    }

    /// Returns one bundle for each part.
    pub fn into_parts(self, parts: &[Part]) -> Result<Vec<SplitOff>, IdError> {
        parts.iter().map(|part| self.part(part)).collect()
    }

    /// Returns one draft for each name; what belongs to which is for a person to fill in.
    pub fn into_names(self, names: &[String]) -> Result<Vec<SplitOff>, IdError> {
        let bare = |name: &String| Part {
            id: name.clone(),
            line: 1,
            what: String::new(),
            paths: Vec::new(),
            done_when: None,
            after: Vec::new(),
            waits_for: None,
            blockers: Vec::new(),
        };
        names.iter().map(|name| self.part(&bare(name))).collect()
    }

    /// Returns one bundle for each part that can be started, and one that keeps the others as its parts. That is a
    /// draft if one of them waits for a person.
    ///
    /// A part can be started if it waits for nothing and comes after none that does.
    pub fn into_ready(self, parts: &[Part]) -> Result<Vec<SplitOff>, IdError> {
        let mut held: BTreeSet<&str> = BTreeSet::new();
        // Parts are in order, so one pass finds everything behind a held one.
        for part in parts {
            if part.waits_for.is_some() || part.after.iter().any(|id| held.contains(id.as_str())) {
                held.insert(&part.id);
            }
        }
        let (rest, ready): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| held.contains(part.id.as_str()));
        let mut all = Vec::new();
        for part in ready {
            all.push(self.part(part)?);
        }
        if !rest.is_empty() {
            all.push(self.rest(&rest)?);
        }
        Ok(all)
    }

    fn part(self, part: &Part) -> Result<SplitOff, IdError> {
        let id = self.id_of(&part.id)?;
        let is_draft = !part.is_complete();
        let title = if part.what.is_empty() { &part.id } else { &part.what };
        let mut text = self.head(&id, title, &part.id, is_draft);
        let what = or_ask(&part.what, "what this part is to do");
        let goal = self.brief.known(Label::Defect).map(|field| field.whole());
        let goal = goal.map(|goal| format!("{what}\nThe whole was: {}", folded(&goal)));
        field(&mut text, "Defect (Goal)", goal.as_deref().unwrap_or(&what));
        let whole = self.brief.known(Label::SuccessCriterion).map(|field| folded(&field.whole()));
        let whole = whole.map_or_else(String::new, |whole| format!("; the whole was: {whole}"));
        let ask = format!("what can be observed when this part is done{whole}");
        field(
            &mut text,
            "Success criterion",
            &or_ask(part.done_when.as_deref().unwrap_or(""), &ask),
        );
        self.depends_on(&mut text, &part.after, &part.blockers)?;
        let paths = if part.paths.is_empty() {
            match self.brief.touches().join(", ") {
                all if all.is_empty() => or_ask("", "paths that this part will change"),
                all => or_ask("", &format!("which of: {all}")),
            }
        } else {
            listed(&part.paths)
        };
        field(&mut text, "Touches", &paths);
        self.take_over(&mut text);
        if let Some(why) = &part.waits_for {
            field(&mut text, "Waits for", why);
        }
        Ok(SplitOff { id, brief: text, parts: vec![part.id.clone()], is_draft })
    }

    /// Returns the bundle that keeps the parts that cannot be started yet.
    fn rest(self, parts: &[&Part]) -> Result<SplitOff, IdError> {
        let id = self.id_of(REST)?;
        let is_draft = !parts.iter().all(|part| part.is_complete());
        let mut text = self.head(&id, "the parts that were not ready", REST, is_draft);
        for label in [Label::Defect, Label::SuccessCriterion] {
            if let Some(found) = self.brief.known(label) {
                field(&mut text, label.as_str(), &found.whole());
            }
        }
        let is_here = |id: &&String| parts.iter().any(|part| part.id == **id);
        let mut before: Vec<String> = Vec::new();
        for after in parts.iter().flat_map(|part| &part.after).filter(|id| !is_here(id)) {
            if !before.contains(after) {
                before.push(after.clone());
            }
        }
        let blockers: Vec<BundleId> =
            parts.iter().flat_map(|part| part.blockers.iter().cloned()).collect();
        self.depends_on(&mut text, &before, &blockers)?;
        let paths: Vec<String> = parts.iter().flat_map(|part| part.paths.clone()).collect();
        if !paths.is_empty() {
            field(&mut text, "Touches", &listed(&paths));
        }
        self.take_over(&mut text);
        text.push_str("\n## Parts\n\n");
        for part in parts {
            field(&mut text, &format!("Part {}", part.id), &part.what);
            let after: Vec<&str> = part.after.iter().filter(is_here).map(String::as_str).collect();
            let lines = [
                ("Paths", listed(&part.paths)),
                ("Done when", part.done_when.clone().unwrap_or_default()),
                ("After", after.join(", ")),
                ("Waits for", part.waits_for.clone().unwrap_or_default()),
            ];
            for (label, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
                let _infallible = writeln!(text, "  - {label}: {value}");
            }
        }
        let parts = parts.iter().map(|part| part.id.clone()).collect();
        Ok(SplitOff { id, brief: text, parts, is_draft })
    }

    fn id_of(self, part: &str) -> Result<BundleId, IdError> {
        format!("{}-{part}", self.id).parse()
    }

    /// Writes the heading, the slug and the origin.
    fn head(self, id: &BundleId, title: &str, part: &str, is_draft: bool) -> String {
        let whole = title_of(self.text, self.id);
        let slug = self.brief.slug().map(|slug| folded(&slug)).unwrap_or_default();
        let slug = slug.trim_matches(['<', '>']);
        let slug = if slug.is_empty() { self.id.as_str() } else { slug };
        let slug = format!("{slug}-{part}");
        let slug = if is_draft { format!("<{slug}>") } else { slug };
        let mut text = format!("# Brief: issue {id} — {}\n\n", folded(title));
        let _infallible =
            writeln!(text, "Part `{part}` of issue {}: {}.\n", self.id, folded(&whole));
        field(&mut text, "Slug", &slug);
        field(&mut text, SPLIT_FROM, self.id.as_str());
        text
    }

    /// Writes what the old bundle depends on, the parts that come first, and the bundles that are waited for.
    fn depends_on(
        self,
        text: &mut String,
        after: &[String],
        blockers: &[BundleId],
    ) -> Result<(), IdError> {
        let landed = self.brief.depends_on_landed();
        let before = self.brief.depends_on();
        let mut ids: Vec<String> = before
            .ids()
            .iter()
            .filter(|id| !landed.ids().contains(id))
            .map(ToString::to_string)
            .collect();
        for part in after {
            ids.push(self.id_of(part)?.to_string());
        }
        for blocker in blockers.iter().filter(|id| !landed.ids().contains(id)) {
            let blocker = blocker.to_string();
            if !ids.contains(&blocker) {
                ids.push(blocker);
            }
        }
        let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        field(text, Label::DependsOn.as_str(), &ids);
        if !landed.ids().is_empty() {
            let ids: Vec<String> = landed.ids().iter().map(ToString::to_string).collect();
            field(text, "Depends on (merged)", &ids.join(", "));
        }
        Ok(())
    }

    fn take_over(self, text: &mut String) {
        for label in TAKEN_OVER {
            if let Some(found) = self.brief.known(label) {
                field(text, label.as_str(), &found.whole());
            }
        }
    }
}

/// Returns the brief of a bundle that was split, with the ids of the new ones.
pub fn note_split(text: &str, into: &[BundleId]) -> String {
    if Brief::parse(text).field(SPLIT_INTO).is_some() {
        return text.to_owned();
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let ids: Vec<String> = into.iter().map(ToString::to_string).collect();
    format!("{text}{gap}\n- **{SPLIT_INTO}:** {}\n", ids.join(", "))
}

/// Returns a brief in which references to `old` are references to `new`; `None` if it has none.
///
/// Only `Depends on` and `Conflicts with` are read. `Err` has the line of a reference that cannot be replaced without
/// changing how the field is read.
pub fn repoint(text: &str, old: &BundleId, new: &[BundleId]) -> Result<Option<String>, usize> {
    let names: Vec<String> = new.iter().map(ToString::to_string).collect();
    let mut edited = text.to_owned();
    for label in [Label::DependsOn, Label::ConflictsWith] {
        for spelling in label.spellings() {
            let brief = Brief::parse(&edited);
            let Some(found) = brief.field(spelling) else { continue };
            if !found.ids().ids().contains(old) {
                continue;
            }
            let mut expected: BTreeSet<BundleId> = found.ids().ids().iter().cloned().collect();
            expected.remove(old);
            expected.extend(new.iter().cloned());
            let line = found.line;
            let next = replaced(&edited, line, old, &names.join(", ")).ok_or(line)?;
            let after = Brief::parse(&next).ids_of(spelling);
            // The text around an id can change how a list is read, so the edited brief is parsed
            // again and has to name exactly the expected ids.
            if after.ids().iter().cloned().collect::<BTreeSet<_>>() != expected {
                return Err(line);
            }
            edited = next;
        }
    }
    Ok((edited != text).then_some(edited))
}

/// Replaces the first spelling of an id at or below a line.
fn replaced(text: &str, line: usize, old: &BundleId, new: &str) -> Option<String> {
    let start = lines(text).find(|found| found.number == line)?.start;
    let rest = &text[start..];
    let colon = rest.find(':')?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/');
    for (at, _) in rest[colon..].match_indices(old.as_str()) {
        let at = at + colon;
        let (mut from, to) = (at, at + old.as_str().len());
        for prefix in ["issue_", "#"] {
            if rest[..from].ends_with(prefix) {
                from -= prefix.len();
                break;
            }
        }
        let is_open = !rest[..from].ends_with(is_part);
        // A full stop ends a sentence as well as it may be part of an id.
        let behind = rest[to..].trim_start_matches('.');
        if is_open && !behind.starts_with(is_part) {
            let (before, after) = (&text[..start + from], &text[start + to..]);
            return Some(format!("{before}{new}{after}"));
        }
    }
    None
}

/// Returns the text, or a placeholder that asks for it.
fn or_ask(text: &str, ask: &str) -> String {
    if text.is_empty() {
        format!("<{}>", folded(ask).replace(['<', '>'], ""))
    } else {
        text.to_owned()
    }
}

fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
}

/// Writes a field; further lines of the value are indented below it.
fn field(text: &mut String, label: &str, value: &str) {
    let mut all = lines(value.trim_end());
    let first = all.next().map_or("", |line| line.text);
    let _infallible = writeln!(text, "- **{label}:** {first}");
    for line in all {
        let _infallible = writeln!(text, "  {}", line.text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;

    const BRIEF: &str = "# Brief: issue 36 — two formats\n\n- **Slug:** two-formats\n\
        - **Defect (Goal):** the header has\n  one line only\n- **Success criterion:** both are read\n\
        - **Repo + branch target:** team/app @ main\n- **Depends on:** 12\n- **Touches:** `src/**`\n\
        - **Part parser:** read it\n  - Paths: `src/parser.rs`\n  - Done when: two lines are read\n\
        - **Part writer:** write it\n  - Paths: `src/writer.rs`\n  - After: parser\n  - Waits for: the format of 41\n\
        - **Part docs:** describe it\n  - Paths: `docs/`\n  - Done when: it is there\n  - After: writer\n";

    fn id(text: &str) -> BundleId {
        text.parse().unwrap()
    }

    fn split(how: impl Fn(Splitting<'_>, &[Part]) -> Vec<SplitOff>) -> Vec<SplitOff> {
        let (old, brief) = (id("36"), Brief::parse(BRIEF));
        how(Splitting::of(&old, BRIEF, &brief), &parts(&brief).unwrap())
    }

    #[test]
    fn each_part_becomes_a_brief_that_says_where_it_comes_from() {
        let all = split(|splitting, parts| splitting.into_parts(parts).unwrap());
        insta::assert_snapshot!(all[0].brief, @r"
        # Brief: issue 36-parser — read it

        Part `parser` of issue 36: two formats.

        - **Slug:** two-formats-parser
        - **Split from:** 36
        - **Defect (Goal):** read it
          The whole was: the header has one line only
        - **Success criterion:** two lines are read
        - **Depends on:** 12
        - **Touches:** `src/parser.rs`
        - **Repo + branch target:** team/app @ main
        ");
        let facts = |one: &SplitOff| {
            let brief = Brief::parse(&one.brief);
            let before: Vec<String> =
                brief.depends_on().ids().iter().map(ToString::to_string).collect();
            (one.id.to_string(), one.is_draft, brief.is_placeholder(), before, brief.touches())
        };
        let table: Vec<_> = all.iter().map(facts).collect();
        let row = |id: &str, draft, before: &[&str], touches: &str| {
            let before = before.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
            (id.to_owned(), draft, draft, before, vec![touches.to_owned()])
        };
        assert_eq!(
            table,
            [
                row("36-parser", false, &["12"], "src/parser.rs"),
                row("36-writer", true, &["12", "36-parser"], "src/writer.rs"),
                row("36-docs", false, &["12", "36-writer"], "docs/"),
            ]
        );
    }

    #[test]
    fn what_is_not_ready_and_what_comes_after_it_stays_together_and_can_be_split_later() {
        let all = split(|splitting, parts| splitting.into_ready(parts).unwrap());
        let ids: Vec<String> = all.iter().map(|one| one.id.to_string()).collect();
        assert_eq!(ids, ["36-parser", "36-rest"]);
        let rest = Brief::parse(&all[1].brief);
        assert!(rest.is_placeholder());
        assert_eq!(rest.depends_on().ids(), [id("12"), id("36-parser")]);
        assert_eq!(rest.touches(), ["src/writer.rs", "docs/"]);
        let again = parts(&rest).unwrap();
        let found: Vec<_> = again.iter().map(|part| (part.id.as_str(), part.after.len())).collect();
        assert_eq!(found, [("writer", 0), ("docs", 1)]);
        assert_eq!(again[0].waits_for.as_deref(), Some("the format of 41"));
    }

    #[test]
    fn without_parts_there_are_drafts_to_fill_in() {
        let names = ["one".to_owned(), "two".to_owned()];
        let all = split(|splitting, _| splitting.into_names(&names).unwrap());
        for one in &all {
            let brief = Brief::parse(&one.brief);
            assert!(one.is_draft && brief.is_placeholder(), "{}", one.brief);
            assert!(brief.touches().is_empty() && brief.known(Label::SuccessCriterion).is_none());
            assert!(one.brief.contains("<which of: src/**>"), "{}", one.brief);
        }
    }

    #[test]
    fn references_of_others_are_replaced_wherever_the_list_stands() {
        let new = [id("36-a"), id("36-b")];
        let to = |text: &str| repoint(text, &id("36"), &new);
        let line = |value: &str| format!("- **Slug:** s\n- **Depends on:** {value}\n- 36 more\n");
        for (before, after) in [
            ("36", "36-a, 36-b"),
            ("12, #36, 7 (they edit 36)", "12, 36-a, 36-b, 7 (they edit 36)"),
            ("issue_36 (because)", "36-a, 36-b (because)"),
            ("136, 36.", "136, 36-a, 36-b."),
        ] {
            assert_eq!(to(&line(before)), Ok(Some(line(after))), "{before}");
        }
        for other in ["12", "none", "136", "36-x"] {
            assert_eq!(to(&line(other)), Ok(None), "{other}");
        }
        let both = "- **Conflicts with:** 36\n- **Depends on (merged):** 36\n";
        let edited = to(both).unwrap().unwrap();
        assert_eq!(Brief::parse(&edited).conflicts_with().ids(), new);
        assert_eq!(Brief::parse(&edited).depends_on_landed().ids(), new);
    }

    #[test]
    fn the_old_brief_says_once_what_it_became() {
        let new = [id("36-a"), id("36-b")];
        let noted = note_split("- **Slug:** s", &new);
        assert_eq!(Brief::parse(&noted).ids_of(SPLIT_INTO).ids(), new);
        assert_eq!(note_split(&noted, &new), noted);
    }
}
