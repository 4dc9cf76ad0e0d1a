use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// Every field as `line label = own line`, with the whole value below where it says more.
fn shown(text: &str) -> String {
    let brief = Brief::parse(text);
    let mut out: Vec<String> = Vec::new();
    for field in brief.fields() {
        out.push(format!("{} {} = {}", field.line, field.label, field.own_line));
        if field.whole() != field.own_line {
            out.extend(field.whole().split('\n').map(|line| format!("    |{line}")));
        }
    }
    out.join("\n")
}

#[test]
fn every_way_to_write_a_field_is_read() {
    let text = "\
# Brief

- **Slug:** a-slug
- **Defect**: it breaks
- Scope: the parser
- *Surfaces:* data
-**Difficulty:**low
- **Touches:**   `src/**`
* **Kind:** a star is no field
- no colon here
- **Bold** text: is no field
- :no label
- SLUG: second
";
    assert_snapshot!(shown(text), @r"
    3 Slug = a-slug
    4 Defect = it breaks
    5 Scope = the parser
    6 Surfaces = data
    7 Difficulty = low
    8 Touches = `src/**`
    ");
}

#[test]
fn a_value_goes_on_over_deeper_lines_and_the_blank_lines_between() {
    let text = "\
- **Scope:** first
  second
    deeper

  after a blank line
- **Next:** x
  - nested: y
      z
    w
  v
";
    assert_snapshot!(shown(text), @r"
    1 Scope = first
        |first
        |second
        |  deeper
        |
        |after a blank line
    6 Next = x
        |x
        |- nested: y
        |    z
        |  w
        |v
    7 nested = y
        |y
        |  z
        |w
    ");
}

#[test]
fn a_value_ends_at_a_field_a_heading_or_prose_that_is_not_deeper() {
    let text = "\
- **A:** a

  a2

## Heading
  - **B:** b
  prose at the same depth
- **C:** c
unindented prose
   deeper, but of nobody
";
    assert_snapshot!(shown(text), @r"
    1 A = a
        |a
        |
        |a2
    6 B = b
    8 C = c
    ");
}

#[test]
fn a_value_below_its_label_is_whole_but_not_its_own_line() {
    let brief = Brief::parse("- **Slug:**\n  the-slug\n- **Depends on:**\n  12\n");
    assert_eq!(brief.slug().as_deref(), Some("the-slug"));
    assert!(!brief.is_placeholder());
    let list = brief.depends_on();
    assert_eq!(list.ids(), []);
    assert_eq!(list.warnings, ["line 3: ids are read from the line of `Depends on` only"]);
}

#[test]
fn line_ends_of_windows_leave_no_trace() {
    let unix = "- **Slug:** a\n- **Scope:** b\n  c\n\n  d\n";
    assert_eq!(shown(&unix.replace('\n', "\r\n")), shown(unix));
}

#[test]
fn a_placeholder_is_absent() {
    for value in ["<kebab-case>", "<one line, then", "<a> and <b>"] {
        let brief =
            Brief::parse(&format!("- **Slug:** {value}\n  more>\n- **Do model:** {value}\n"));
        assert!(brief.field("slug").is_none(), "{value}");
        assert!(brief.do_model().is_none(), "{value}");
        assert!(brief.is_placeholder(), "{value}");
        assert_eq!(brief.fields().count(), 2, "{value}");
    }
    let brief = Brief::parse("- **Do model:** <x> is partly filled\n");
    assert_eq!(brief.do_model(), Some("<x> is partly filled"));
}

#[test]
fn a_draft_is_a_template_until_its_verdict_is_filled_in() {
    let missing = |slug: &str, verdict: &str| {
        let brief = Brief::parse(&format!(
            "- **Slug:** {slug}\n\n## Triage\n\n- **Triage verdict:** {verdict}\n"
        ));
        assert_eq!(brief.is_placeholder(), !brief.missing().is_empty());
        brief.missing()
    };
    assert_eq!(missing("<a>", "<fix or close>"), ["Slug", "Triage verdict"]);
    assert_eq!(missing("a", "<fix or close>"), ["Triage verdict"]);
    assert_eq!(missing("a", ""), ["Triage verdict"]);
    assert_eq!(missing("<a>", "fix"), ["Slug"]);
    assert_eq!(missing("a", "fix: seen on main"), [""; 0]);
    assert_eq!(Brief::parse("- **Slug:** a\n").missing(), [""; 0], "others are not asked for one");
}

#[test]
fn a_brief_without_a_slug_is_a_template() {
    for text in ["", "# Brief\n", "- **Slug:**\n- **Scope:** x\n", "- **Slug:** <slug\n"] {
        assert!(Brief::parse(text).is_placeholder(), "{text:?}");
    }
    assert!(!Brief::parse("- slug: x").is_placeholder());
}

#[test]
fn old_spellings_of_depends_on_mean_depends_on() {
    let text = "- **Depends on (merged):** 2, 1\n- **Stacks on:** 3\n- **Depends on:** 1\n";
    let ids: Vec<String> =
        Brief::parse(text).depends_on().ids().iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["1", "2", "3"]);
}

#[test]
fn only_depends_on_merged_waits_for_the_landing() {
    for (label, landed) in [
        ("Depends on (merged)", true),
        ("depends_on_merged", true),
        ("Depends on", false),
        ("Stacks on", false),
        ("stacks_on", false),
    ] {
        let brief = Brief::parse(&format!("- **{label}:** setup-db\n"));
        let ids = |list: IdList| list.among(&|_| true).ids.len();
        assert_eq!(
            (ids(brief.depends_on()), ids(brief.depends_on_landed())),
            (1, usize::from(landed)),
            "{label}"
        );
    }
}

#[test]
fn a_placeholder_gives_way_to_the_next_spelling() {
    let brief = Brief::parse("- **Defect:** <what>\n- **Goal:** a goal\n");
    assert_eq!(brief.known(Label::Defect).unwrap().own_line, "a goal");
}

#[test]
fn every_known_label_is_found_under_its_own_name() {
    for label in Label::ALL {
        let text = format!("- **{}:** x\n", label.as_str());
        assert!(Brief::parse(&text).known(*label).is_some(), "{label:?}");
    }
}

#[test]
fn a_target_is_read_from_what_people_write() {
    let target = |value: &str| {
        let brief = Brief::parse(&format!("- **Repo + branch target:** {value}\n"));
        brief.repo_target().map_or("-".to_owned(), |target| {
            format!("{} @ {}", target.repo, target.branch.as_deref().unwrap_or("-"))
        })
    };
    assert_snapshot!(target("owner/repo @ main"), @"owner/repo @ main");
    assert_snapshot!(target("`owner/repo` @ `main`"), @"owner/repo @ main");
    assert_snapshot!(target("`owner/repo @ main`"), @"owner/repo @ main");
    assert_snapshot!(target("owner/repo @ main (feature branch `feat/x`)"), @"owner/repo @ main");
    assert_snapshot!(target("owner/repo @ main, as always."), @"owner/repo @ main");
    assert_snapshot!(target("owner/repo"), @"owner/repo @ -");
    assert_snapshot!(target("owner/repo @ "), @"owner/repo @ -");
    assert_snapshot!(target("<owner/repo @ branch>"), @"-");
    assert_snapshot!(target("@ main"), @"-");
}

#[test]
fn a_branch_to_stack_onto_may_name_its_remote() {
    let onto = |value: &str| {
        let brief = Brief::parse(&format!("- **Onto branch:** {value}\n"));
        brief
            .onto_branch()
            .map_or("-".to_owned(), |onto| format!("{} {}", onto.remote, onto.branch))
    };
    assert_snapshot!(onto("fork/feat/x"), @"fork feat/x");
    assert_snapshot!(onto("`fork/feat`  (see the review)"), @"fork feat");
    assert_snapshot!(onto("feat"), @"origin feat");
    assert_snapshot!(onto("none"), @"-");
    assert_snapshot!(onto("—"), @"-");
}

#[test]
fn test_files_are_the_paths_on_the_line_of_the_label() {
    let files = |value: &str| {
        let brief = Brief::parse(&format!("- **Test file:** {value}\n  tests/below.py\n"));
        let join = |files: Vec<Utf8PathBuf>| {
            files.iter().map(|file| file.as_str()).collect::<Vec<_>>().join(" ")
        };
        format!("{} | {}", join(brief.test_files()), join(brief.local_test_files()))
    };
    assert_snapshot!(files("`tests/a.py` (new) and tests/b-c.test.ts."), @"tests/a.py tests/b-c.test.ts | tests/a.py tests/b-c.test.ts");
    assert_snapshot!(files("../outside/x.py, /etc/x.conf"), @"../outside/x.py /etc/x.conf | ");
    assert_snapshot!(files("none — this ships no test"), @" | ");
    assert_snapshot!(files("tests/*.py .hidden a."), @" | ");
}

#[test]
fn dependencies_are_the_words_in_backticks_that_something_can_check() {
    let dependencies = |value: &str| {
        Brief::parse(&format!("- **External dependencies:** {value}\n"))
            .external_dependencies()
            .join(" | ")
    };
    assert_snapshot!(dependencies("`protoc` (build), `a cluster` (topology: 3 nodes), `x` (no-check: y), `protoc`"), @"protoc");
    assert_snapshot!(dependencies("`a b (c)` (not closed"), @"a b (c)");
    assert_snapshot!(dependencies("none."), @"");
    assert_snapshot!(dependencies("plain prose"), @"");
    assert_snapshot!(dependencies("`a` and `open"), @"a");
}

#[test]
fn touches_accepts_lists_of_every_kind() {
    let touches =
        |value: &str| Brief::parse(&format!("- **Touches:** {value}\n")).touches().join(" | ");
    assert_snapshot!(touches("src/a.rs, `src/b/**` docs/*.md"), @"src/a.rs | src/b/** | docs/*.md");
    assert_snapshot!(touches("docs, src/{a,b}/*.rs"), @"docs | src/{a,b}/*.rs");
    assert_snapshot!(touches("\n  - `src/a.rs` (the parser, mostly)\n  - src/b.rs\n  src/c.rs,\n  src/a.rs"), @"src/a.rs | src/b.rs | src/c.rs");
    assert_snapshot!(touches("src/a.rs and the tests beside it"), @"src/a.rs");
    for nothing in ["none", "NONE", "n/a", "TBD", "—", "-", "", "<globs>"] {
        assert_eq!(touches(nothing), "", "{nothing}");
    }
}

#[test]
fn surfaces_are_words_between_commas_or_lines() {
    let surfaces = |value: &str| Brief::parse(&format!("- **Surfaces:** {value}\n")).surfaces();
    assert_eq!(surfaces("Main menu, `api`; API."), ["main menu", "api"]);
    assert_eq!(surfaces("main   Menu, `api.`, `API`."), ["main menu", "api"]);
    assert_eq!(surfaces("\n  - data\n  - menu"), ["data", "menu"]);
    assert_eq!(surfaces("none"), [""; 0]);
}

proptest! {
    #[test]
    fn any_text_is_a_brief(text in "(- |\\*\\*|:|\n|\r|  |`|<|>|#|,|@|/|\\PC|\\x00)*") {
        let brief = Brief::parse(&text);
        for field in brief.fields() {
            prop_assert!(!field.label.is_empty());
            let whole = field.whole();
            prop_assert!(whole.starts_with(field.own_line));
            prop_assert!(brief.fields.written(field.label) == Some(field));
        }
        brief.depends_on();
        brief.conflicts_with();
        brief.touches();
        brief.repo_target();
        brief.onto_branch();
        brief.test_files();
        brief.external_dependencies();
    }

    #[test]
    fn a_value_of_several_lines_comes_back(lines in prop::collection::vec("[a-z]([a-z ,.`:*-]*[a-z])?", 1..6)) {
        let text = format!("intro\n- **Scope:** {}\n- **Next:** x\n", lines.join("\n  "));
        let brief = Brief::parse(&text);
        prop_assert_eq!(brief.field("SCOPE").unwrap().whole(), lines.join("\n"));
        prop_assert_eq!(brief.field("next").unwrap().line, 2 + lines.len());
    }
}

#[test]
fn a_byte_order_mark_hides_no_field() {
    let brief = Brief::parse("\u{feff}- **Slug:** first\n  more\n- **Depends on:** 12\n");
    assert_eq!(brief.field("slug").unwrap().own_line, "first");
    assert_eq!(brief.field("slug").unwrap().whole(), "first\nmore");
    assert_eq!(brief.field("depends on").unwrap().line, 3);
}

#[test]
fn a_draft_keeps_every_word_and_is_planned_by_nobody() {
    for text in [
        "- **Slug:** fast-parser\n- **Scope:** x\n",
        "# B\n\n- Slug: a > b\n",
        "- **Slug:**\n  below\n- **Scope:** x\n",
        "\u{feff}- **slug**: x\r\n",
    ] {
        let draft = Brief::parse(text).as_draft();
        assert!(
            !Brief::parse(text).is_placeholder() && Brief::parse(&draft).is_placeholder(),
            "{draft}"
        );
        assert_eq!(
            draft.replace("<again>", "").replace(['<', '>'], ""),
            text.replace(['>', '\u{feff}'], "")
        );
    }
    let template = "- **Slug:** <name>\n";
    assert_eq!(Brief::parse(template).as_draft(), template);
    assert_eq!(Brief::parse("prose").as_draft(), "prose");
}
