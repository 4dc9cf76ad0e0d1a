//! Parser of `brief.md`, the Plan artifact: bullets with a label.
//!
//! A field is a bullet `- **Label:** value` (also `- **Label**: v`, `- Label: v`), at any indent
//! and anywhere in the document. Known labels count in further shapes, see `spelling.rs`. Labels are
//! case-insensitive, and the first occurrence of a label wins. The value continues over lines indented
//! deeper than the label, and over blank lines between them; any other line ends it. The value of a
//! field without a bullet also continues to the end of its paragraph, or over the list directly below it.
//!
//! Each field can be read in two ways: its *own line* (ids, targets, paths, routing) and its *whole*
//! value (text for people).

mod label;
mod parts;
mod size;
mod spelling;
mod split;
mod target;
mod touches;
mod widening;

use std::collections::HashMap;
use std::ops::Range;

use camino::{Utf8Component, Utf8PathBuf};

pub use label::Label;
pub use parts::{Part, PartsError, held_parts, may_have_parts, parts};
pub use size::{SizeLimit, size_limit};
pub use spelling::{BriefRemark, Unread};
pub use split::{SPLIT_FROM, SPLIT_INTO, SplitOff, Splitting, note_split, repoint};
pub use target::{OntoBranch, RepoTarget};
pub use widening::{Widening, WideningError, asked_digest};

use crate::id_list::{IdList, parse_id_list};
use crate::lines::{TextLine, folded, indent, lines, without_bom};
use spelling::{Mark, Shape};

/// The label of the field in which a person records the result of triage. A brief that has the field is a draft until it
/// is filled in; one without it is not asked for it.
pub const TRIAGE_VERDICT: &str = "Triage verdict";

/// A parsed brief.
///
/// ```
/// let brief = pdca_state::Brief::parse(
///     "- **Slug:** fast-parser\n- **Scope:**\n  - the parser\n  - its tests\n- **Depends on:** 12, #15 (both edit it)\n",
/// );
/// assert_eq!(brief.slug().as_deref(), Some("fast-parser"));
/// assert_eq!(brief.field("scope").unwrap().whole(), "- the parser\n- its tests");
/// assert_eq!(brief.depends_on().ids().len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Brief {
    fields: FieldIndex,
}

/// The fields of a text: the first of each label, and where it lies. Every span is one of the text.
#[derive(Debug, Clone, Default)]
struct FieldIndex {
    text: String,
    spans: Vec<Span>,
    by_label: HashMap<String, usize>,
    remarks: Vec<BriefRemark>,
}

/// The position of a field, in bytes of the text.
#[derive(Debug, Clone)]
struct Span {
    label: Range<usize>,
    own_line: Range<usize>,
    body: Range<usize>,
    line: usize,
    indent: usize,
    /// True if neither a bullet nor emphasis sets the label off.
    is_bare: bool,
}

/// The progress that a dependency must have made before its dependents may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Awaits {
    /// Built with passing gates; the sign-off may be open.
    Built,
    /// Accepted at sign-off.
    Accepted,
    /// Landed in the target branch.
    Landed,
}

/// One field of a brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefField<'a> {
    /// The label as written, without bullet, stars and colon.
    pub label: &'a str,
    /// The part of the value on the line of the label, trimmed.
    pub own_line: &'a str,
    /// The line number of the label, from 1.
    pub line: usize,
    body: &'a str,
}

/// The text around a line, which decides whether a label without a mark is a field.
#[derive(Debug, Default)]
struct Surroundings {
    /// True if the line above is not blank.
    follows: bool,
    /// True if the lines above are a paragraph of running text.
    prose: bool,
    /// True if the lines above are fields without bullets, each on a line of its own.
    fields: bool,
    /// A heading that is a label, until a line below it was seen.
    heading: Option<BriefRemark>,
}

impl FieldIndex {
    fn parse(text: &str) -> Self {
        let text = without_bom(text);
        let mut index = Self { text: text.to_owned(), ..Self::default() };
        let code = spelling::code_lines(text);
        // Stack of fields whose value may continue, each indented deeper than the one before.
        let mut open: Vec<usize> = Vec::new();
        let mut around = Surroundings::default();
        for (line, is_code) in lines(text).zip(code) {
            if line.is_blank() {
                (around.follows, around.prose, around.fields) = (false, false, false);
                continue;
            }
            let indent = line.indent();
            let known = spelling::known_field(line.text).filter(|_| !is_code);
            // Each field is pushed and popped at most once, so parsing is linear in the number of
            // lines.
            while let Some(&last) = open.last()
                && index.spans[last].indent >= indent
                && !(around.follows && known.is_none() && index.continues(last, line, is_code))
            {
                index.spans[last].body.end = line.start;
                open.pop();
            }
            let inside = open.last().is_some();
            let is_text = is_code || inside || around.prose || indent > 3;
            let shape = match known {
                Some(shape) if shape.mark == Mark::Bare && is_text => {
                    index.remark_in_text(shape, line, !is_code && around.prose);
                    None
                }
                Some(shape) => Some((shape.label, shape.value, shape.mark)),
                None => split_field(line.text)
                    .filter(|_| !index.is_list_below_label(open.last(), line))
                    .map(|(label, value)| (label, value, Mark::Set)),
            };
            if !is_code {
                index.look_around(&mut around, line, known, is_text);
            }
            if let Some(added) = shape.and_then(|shape| index.add(text, line, shape)) {
                open.push(added);
            }
        }
        index.forget_headings_with_fields();
        index
    }

    /// Notes near misses on a line, and how the next line is to be read.
    fn look_around(
        &mut self,
        around: &mut Surroundings,
        line: TextLine<'_>,
        known: Option<Shape<'_>>,
        is_text: bool,
    ) {
        let is_heading = spelling::is_heading(line.text);
        if let Some(mut heading) = around.heading.take() {
            let value = spelling::value_below(line.text);
            heading.is_lost =
                !is_heading && known.is_none() && spelling::loses(heading.label, value);
            self.remarks.push(heading);
        }
        around.heading = spelling::label_of_heading(line.text).map(|(label, written)| {
            let (line, written) = (line.number, written.to_owned());
            BriefRemark { line, written, label, why: Unread::Heading, is_lost: false }
        });
        let is_bullet = spelling::is_bullet(line.text);
        if known.is_none() && (is_bullet || !is_text) {
            self.remarks.extend(spelling::near_miss(line.text, line.number));
        }
        let is_field = known.is_some_and(|shape| shape.mark == Mark::Set || !is_text);
        let starts = is_bullet || is_heading || is_field || spelling::is_fence(line.text);
        // A paragraph is prose or a list of fields by its first line.
        if starts || !around.follows {
            around.prose = false;
            around.fields = known.is_some_and(|shape| shape.mark == Mark::Bare && !is_text);
        }
        if !starts && !around.fields && !around.prose {
            around.fields = spelling::is_label_like(line.text);
            around.prose = !around.fields;
        }
        around.follows = !is_heading;
    }

    /// Returns true if a line that is not indented deeper still belongs to a field without a bullet.
    fn continues(&self, field: usize, line: TextLine<'_>, is_code: bool) -> bool {
        let span = &self.spans[field];
        if !span.is_bare || span.indent != line.indent() || is_code {
            return false;
        }
        let is_other = spelling::is_heading(line.text) || line.text.trim_start().starts_with('|');
        if spelling::is_bullet(line.text) {
            return span.own_line.is_empty();
        }
        !is_other && !spelling::is_label_like(line.text)
    }

    /// Returns true for an item of the list that is the value of a field without a bullet.
    fn is_list_below_label(&self, open: Option<&usize>, line: TextLine<'_>) -> bool {
        open.is_some_and(|&open| {
            let span = &self.spans[open];
            span.is_bare && span.indent == line.indent() && span.own_line.is_empty()
        })
    }

    /// Notes a known label within a paragraph, if the driver would act on what follows it.
    fn remark_in_text(&mut self, shape: Shape<'_>, line: TextLine<'_>, is_prose: bool) {
        let Some(label) = Label::of(shape.label).filter(|label| label.is_acted_on()) else {
            return;
        };
        if is_prose && spelling::loses(label, shape.value) {
            let (line, written) = (line.number, shape.label.to_owned());
            let why = Unread::InText;
            self.remarks.push(BriefRemark { line, written, label, why, is_lost: false });
        }
    }

    /// A heading such as `## Touches` is no near miss if a field below it has the label.
    fn forget_headings_with_fields(&mut self) {
        let fields: Vec<Label> = self
            .spans
            .iter()
            .filter_map(|span| Label::of(&self.text[span.label.clone()]))
            .collect();
        self.remarks
            .retain(|remark| remark.why != Unread::Heading || !fields.contains(&remark.label));
    }

    /// Records the field on a line, unless its label was seen before.
    fn add(
        &mut self,
        text: &str,
        line: TextLine<'_>,
        (label, own_line, mark): (&str, &str, Mark),
    ) -> Option<usize> {
        let key = key_of(label);
        // A repeated label is not a field, so its lines stay part of the value above if they are
        // indented.
        if let Some(&first) = self.by_label.get(&key) {
            self.remark_repeated(first, label, own_line, line.number);
            return None;
        }
        let index = self.spans.len();
        self.by_label.insert(key, index);
        self.spans.push(Span {
            label: place(text, label),
            own_line: place(text, own_line),
            body: line.next..text.len(),
            line: line.number,
            indent: line.indent(),
            is_bare: mark == Mark::Bare,
        });
        Some(index)
    }

    /// Notes a second field of a label if it declares something that the first one does not.
    fn remark_repeated(&mut self, first: usize, label: &str, value: &str, line: usize) {
        let Some(known) = Label::of(label) else { return };
        let first = self.view(&self.spans[first]);
        let adds = if matches!(known, Label::DependsOn | Label::ConflictsWith) {
            let ids = |text: &str| parse_id_list(text).among(&|_| false).ids;
            let before = ids(first.own_line);
            ids(value).iter().any(|id| !before.contains(id))
        } else if known == Label::Touches {
            let before = touches::globs(&first.whole());
            touches::globs(value).iter().any(|glob| !before.contains(glob))
        } else {
            false
        };
        if adds && !is_placeholder(value) {
            let why = Unread::Repeated(first.line);
            let written = label.to_owned();
            self.remarks.push(BriefRemark { line, written, label: known, why, is_lost: true });
        }
    }

    fn written(&self, label: &str) -> Option<BriefField<'_>> {
        let index = self.by_label.get(&key_of(label))?;
        Some(self.view(&self.spans[*index]))
    }

    fn view(&self, span: &Span) -> BriefField<'_> {
        BriefField {
            label: &self.text[span.label.clone()],
            own_line: &self.text[span.own_line.clone()],
            line: span.line,
            body: &self.text[span.body.clone()],
        }
    }
}

impl Brief {
    /// Parses every field. Never fails: a text without fields is an empty brief. Takes time linear
    /// in the length of the text.
    pub fn parse(text: &str) -> Self {
        Self { fields: FieldIndex::parse(text) }
    }

    /// Returns the field with this label, in any case; `None` if it is absent, empty or still the
    /// placeholder of the template.
    pub fn field(&self, label: &str) -> Option<BriefField<'_>> {
        self.fields.written(label).filter(BriefField::is_filled)
    }

    /// Returns the field of a known label under any of its [spellings](Label::spellings).
    pub fn known(&self, label: Label) -> Option<BriefField<'_>> {
        label.spellings().iter().find_map(|spelling| self.field(spelling))
    }

    /// Iterates over the first field of each label in file order, placeholders included.
    pub fn fields(&self) -> impl Iterator<Item = BriefField<'_>> {
        self.fields.spans.iter().map(|span| self.fields.view(span))
    }

    /// Returns the lines that look like a field and are not read as one, sorted.
    pub fn remarks(&self) -> Vec<BriefRemark> {
        let mut remarks = self.fields.remarks.clone();
        for label in [Label::DependsOn, Label::ConflictsWith] {
            let fields = label.spellings().iter().filter_map(|spelling| self.field(spelling));
            for field in fields.filter(|field| field.own_line.is_empty()) {
                let is_id = |line: TextLine<'_>| {
                    !parse_id_list(spelling::value_below(line.text)).ids().is_empty()
                };
                let (line, written, why) = (field.line, field.label.to_owned(), Unread::Below);
                let is_lost = lines(field.body).any(is_id);
                remarks.push(BriefRemark { line, written, label, why, is_lost });
            }
        }
        remarks.sort_by_key(|remark| remark.line);
        remarks
    }

    fn own_line(&self, label: Label) -> Option<&str> {
        label.spellings().iter().find_map(|spelling| {
            let field = self.field(spelling)?;
            (!field.own_line.is_empty()).then_some(field.own_line)
        })
    }

    /// The short name of the work.
    pub fn slug(&self) -> Option<String> {
        self.known(Label::Slug).map(|field| field.whole())
    }

    /// Returns true for an unfilled template: the slug is missing, empty or starts with `<`, or there is a field
    /// [`TRIAGE_VERDICT`] that is not filled in.
    pub fn is_placeholder(&self) -> bool {
        !self.missing().is_empty()
    }

    /// Returns true for a brief with the field [`TRIAGE_VERDICT`], filled in or not.
    pub fn has_triage(&self) -> bool {
        self.fields.written(TRIAGE_VERDICT).is_some()
    }

    /// Returns the labels that a person has to fill in before the brief counts.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        // `written` and not `field`: a placeholder must be seen as one.
        let slug = self.fields.written("slug").map(|field| field.whole());
        if slug.is_none_or(|slug| slug.trim().is_empty() || slug.trim_start().starts_with('<')) {
            missing.push("Slug");
        }
        if self.fields.written(TRIAGE_VERDICT).is_some_and(|field| !field.is_filled()) {
            missing.push(TRIAGE_VERDICT);
        }
        missing
    }

    /// The text as a draft for the next attempt: the slug is put in `<…>`, which makes it a
    /// placeholder, so that nothing is built before a person has edited it.
    pub(crate) fn as_draft(&self) -> String {
        let FieldIndex { text, spans, by_label, .. } = &self.fields;
        let span = by_label.get("slug").map(|index| &spans[*index]);
        let Some(span) = span.filter(|_| !self.is_placeholder()) else { return text.clone() };
        let (before, slug) = (&text[..span.own_line.start], &text[span.own_line.clone()]);
        let slug = if slug.is_empty() { "again" } else { slug };
        format!("{before}<{slug}>{}", &text[span.own_line.end..])
    }

    /// The bundles that must be done before this one, from every spelling of `Depends on`.
    pub fn depends_on(&self) -> IdList {
        self.ids(Label::DependsOn)
    }

    /// The subset of [`Self::depends_on`] that must have landed: named under `Depends on (merged)`.
    pub fn depends_on_landed(&self) -> IdList {
        let mut list = IdList::default();
        for spelling in Label::DependsOn.spellings() {
            if Label::awaits(spelling) == Awaits::Landed {
                list.extend(self.ids_of(spelling));
            }
        }
        list
    }

    /// The bundles that must not run at the same time as this one.
    pub fn conflicts_with(&self) -> IdList {
        self.ids(Label::ConflictsWith)
    }

    /// The ids of one field, under exactly this spelling of its label.
    pub fn ids_of(&self, label: &str) -> IdList {
        self.field(label).map(|field| field.ids()).unwrap_or_default()
    }

    fn ids(&self, label: Label) -> IdList {
        let mut list = IdList::default();
        for spelling in label.spellings() {
            list.extend(self.ids_of(spelling));
        }
        list
    }

    /// The globs of the files that the work is expected to change.
    ///
    /// Accepts a list separated by commas, spaces or lines, also as nested bullets, each glob bare or
    /// in backticks, with reasons in parentheses. A word without path characters is taken for prose,
    /// unless it is alone between commas (`docs` is a directory) or in backticks. `none`, `N/A`,
    /// `TBD` and dashes yield nothing. Commas inside `{…}` belong to the glob.
    pub fn touches(&self) -> Vec<String> {
        self.known(Label::Touches).map(|field| touches::globs(&field.whole())).unwrap_or_default()
    }

    /// The parts of the product that the work shows on: names, in lower case, with single spaces and without duplicates.
    pub fn surfaces(&self) -> Vec<String> {
        let value = self.known(Label::Surfaces).map(|field| field.whole()).unwrap_or_default();
        let mut surfaces: Vec<String> = Vec::new();
        for line in lines(&value) {
            for word in spelling::value_below(line.text).split([',', ';']) {
                let word = word.trim().trim_end_matches('.').trim_matches('`').to_lowercase();
                let word = folded(word.trim_end_matches('.'));
                if !word.is_empty() && !target::is_nothing(&word) && !surfaces.contains(&word) {
                    surfaces.push(word);
                }
            }
        }
        surfaces
    }

    /// The target of the work, `owner/repo @ branch`; tolerates backticks and trailing prose.
    pub fn repo_target(&self) -> Option<RepoTarget> {
        target::repo_target(self.own_line(Label::RepoTarget)?)
    }

    /// The existing branch that the work is stacked onto, `remote/branch`.
    pub fn onto_branch(&self) -> Option<OntoBranch> {
        target::onto_branch(self.own_line(Label::OntoBranch)?)
    }

    /// The paths on the label's line, as written. They may be absolute or contain `..`; use
    /// [`Self::local_test_files`] for paths that are safe to join to a directory.
    pub fn test_files(&self) -> Vec<Utf8PathBuf> {
        self.own_line(Label::TestFile).map(target::paths).unwrap_or_default()
    }

    /// The [`Self::test_files`] that stay inside any directory they are joined to.
    pub fn local_test_files(&self) -> Vec<Utf8PathBuf> {
        let mut files = self.test_files();
        files.retain(|path| {
            path.components()
                .all(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir))
        });
        files
    }

    /// The outcome that Plan expects, such as `likely-fix` or `likely-close`.
    pub fn disposition_hint(&self) -> Option<&str> {
        self.own_line(Label::DispositionHint)
    }

    /// The name of the builder that the brief asks for.
    pub fn do_model(&self) -> Option<&str> {
        self.own_line(Label::DoModel)
    }

    /// The effort that the brief asks the builder for.
    pub fn do_effort(&self) -> Option<&str> {
        self.own_line(Label::DoEffort)
    }

    /// The tools that a person must provide: the words in backticks on the label's line, without
    /// those annotated `(no-check: why)` or `(topology …)`, which cannot be checked.
    pub fn external_dependencies(&self) -> Vec<String> {
        self.own_line(Label::ExternalDependencies)
            .map(target::dependency_tokens)
            .unwrap_or_default()
    }
}

impl BriefField<'_> {
    /// The complete value: the own line and the lines below it, without their common indentation.
    pub fn whole(&self) -> String {
        let body = || lines(self.body).map(|line| line.text);
        let common = body().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
        let mut whole = self.own_line.to_owned();
        for line in body() {
            whole.push('\n');
            if !line.trim().is_empty() {
                whole.push_str(without_indent(line, common));
            }
        }
        whole.trim_start_matches('\n').trim_end().to_owned()
    }

    /// Returns true if the value is still the `<…>` of the template, or the first line of one.
    pub fn is_placeholder(&self) -> bool {
        if !self.own_line.is_empty() {
            return is_placeholder(self.own_line);
        }
        let first = lines(self.body).find(|line| !line.is_blank());
        first.is_some_and(|line| is_placeholder(line.text.trim()))
    }

    /// Parses the ids that the value starts with. They must start on the line of the label;
    /// otherwise the list is empty and has a warning.
    pub fn ids(&self) -> IdList {
        if self.own_line.is_empty() {
            let mut list = IdList::default();
            if !self.body.trim().is_empty() {
                list.warnings.push(format!(
                    "line {}: ids are read from the line of `{}` only",
                    self.line, self.label
                ));
            }
            return list;
        }
        parse_id_list(&self.whole())
    }

    fn is_filled(&self) -> bool {
        let is_empty = self.own_line.is_empty() && self.body.trim().is_empty();
        !is_empty && !self.is_placeholder()
    }
}

/// Returns the key of a label: spellings of a known label that differ only in case and separators are one.
fn key_of(label: &str) -> String {
    let label = label.trim();
    if Label::of(label).is_some() { label::normal(label) } else { label.to_lowercase() }
}

/// Splits a dash bullet with the shape of a field, whatever its label, into label and value.
fn split_field(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix('-')?;
    let rest = without_stars(rest.trim_start());
    let (label, rest) = rest.split_at(rest.find([':', '*'])?);
    let value = without_stars(without_stars(rest).strip_prefix(':')?);
    let label = label.trim();
    (!label.is_empty()).then_some((label, value.trim()))
}

/// Strips up to two leading stars of Markdown bold.
fn without_stars(text: &str) -> &str {
    let once = text.strip_prefix('*').unwrap_or(text);
    once.strip_prefix('*').unwrap_or(once)
}

fn without_indent(line: &str, characters: usize) -> &str {
    let mut rest = line.chars();
    for _ in 0..characters {
        rest.next();
    }
    rest.as_str()
}

/// Returns true for `<…>`, and for a `<…` that is not closed on its line.
fn is_placeholder(value: &str) -> bool {
    value.starts_with('<') && (value.ends_with('>') || !value.contains('>'))
}

/// The byte range of `part` in `text`; `part` must be a slice of it.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests;
