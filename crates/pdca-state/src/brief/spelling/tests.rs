use proptest::prelude::*;
use proptest::sample::select;

use super::super::Brief;
use super::*;

const HEAD: &str = "# Brief\n\n- **Slug:** s\n- **Defect (Goal):** g\n";

/// A label and a value in one of the shapes that people use.
fn written(label: &str, value: &str, bullet: &str, emphasis: &str, colon: usize) -> String {
    let close: String = emphasis.chars().rev().collect();
    match colon {
        0 => format!("{bullet}{emphasis}{label}:{close} {value}"),
        1 => format!("{bullet}{emphasis}{label}{close}: {value}"),
        _ => format!("{bullet}{emphasis}{label}{close} : {value}"),
    }
}

fn cased(label: &str, case: usize) -> String {
    match case {
        0 => label.to_owned(),
        1 => label.to_uppercase(),
        2 => label.replace(' ', "_"),
        3 => label.replace(' ', "-"),
        _ => {
            let mut letters = label.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

fn remarks(text: &str) -> Vec<String> {
    let show = |remark: &BriefRemark| {
        let weight = if remark.is_lost { "error" } else { "warning" };
        format!("{} {weight} {} -> {}", remark.line, remark.written, remark.label.as_str())
    };
    Brief::parse(text).remarks().iter().map(show).collect()
}

proptest! {
    #[test]
    fn a_known_label_has_the_same_value_in_every_spelling(
        row in select(TABLE),
        spelling in 0_usize..8,
        case in 0_usize..5,
        bullet in select(vec!["- ", "* ", "+ ", "• ", "1. ", "12) ", "- [ ] ", "* [x] ", "", "  - ", "-"]),
        emphasis in select(vec!["", "*", "**", "***", "__", "`"]),
        colon in 0_usize..3,
        value in "[a-z][a-z0-9/]{0,8}",
        above in select(vec!["", "\n", "## Notes\n", "- a bullet\n", "Owner: Ada\n", "text\n\n"]),
    ) {
        let spelling = row.2[spelling % row.2.len()];
        let is_bare = bullet.is_empty() && emphasis.is_empty();
        prop_assume!(!(is_bare && spelling == "target"));
        let line = written(&cased(spelling, case), &value, bullet, emphasis, colon);
        let text = format!("# Brief\n\n{above}{line}\n\ntext below\n");
        let brief = Brief::parse(&text);
        let field = brief.known(row.0);
        prop_assert!(field.is_some(), "{line:?}");
        prop_assert_eq!(field.unwrap().whole(), value, "{:?}", line);
        prop_assert_eq!(brief.remarks(), [], "{:?}", line);
    }

    #[test]
    fn a_paragraph_has_no_fields(
        row in select(TABLE),
        before in "[a-z]{2,9}( [a-z]{2,9}){1,6}",
        after in "[a-z]{2,9}( [a-z]{2,9}){1,6}",
        colon in select(vec![" ", ": "]),
        breaks in select(vec!["\n", " "]),
    ) {
        prop_assume!(before.split(' ').all(|word| !is_label(word)));
        let text = format!("{before}{breaks}{}{colon}{after}.\n", row.2[0]);
        let brief = Brief::parse(&text);
        prop_assert_eq!(brief.fields().count(), 0, "{:?}", text);
        prop_assert!(brief.remarks().iter().all(|remark| !remark.is_lost), "{:?}", brief.remarks());
    }

    #[test]
    fn one_wrong_letter_in_a_label_that_is_acted_on_is_never_silent(
        label in select(vec!["depends on", "conflicts with", "touches", "onto branch", "do model"]),
        at in 1_usize..14,
        letter in "[a-z]",
        bullet in select(vec!["- ", "* ", ""]),
    ) {
        let mut wrong: Vec<char> = label.chars().collect();
        let at = 1 + at % (wrong.len() - 1);
        wrong[at] = letter.chars().next().unwrap();
        let wrong: String = wrong.into_iter().collect();
        let text = format!("{HEAD}{bullet}{wrong}: 12\n");
        let brief = Brief::parse(&text);
        let counts = Label::of(&wrong).is_some_and(|label| brief.known(label).is_some());
        prop_assert!(counts || brief.remarks().iter().any(|remark| remark.is_lost), "{text}");
    }
}

#[test]
fn a_near_miss_names_line_and_label_and_is_an_error_where_it_would_be_acted_on() {
    for (line, expected) in [
        ("Dependson: 1", "5 error Dependson -> Depends on"),
        ("- **Depend on:** #1", "5 error Depend on -> Depends on"),
        ("* Dpends on: 1", "5 error Dpends on -> Depends on"),
        ("- **Depends on (optional):** 1", "5 error Depends on (optional) -> Depends on"),
        ("- **Depends on** 1", "5 error Depends on -> Depends on"),
        ("Depends on #1 and #2", "5 error Depends on -> Depends on"),
        ("Depends on = 1", "5 error Depends on -> Depends on"),
        ("Conflict with: 1", "5 error Conflict with -> Conflicts with"),
        ("- Touch: docs/x.txt", "5 error Touch -> Touches"),
        ("| Touches | docs/x.txt |", "5 error Touches -> Touches"),
        ("## Depends on\n\n- 1", "5 error Depends on -> Depends on"),
        ("- **Depends on:**\n  - 12", "5 error Depends on -> Depends on"),
        ("Depends on:\n- 12\n- 13", "5 error Depends on -> Depends on"),
        ("- **Depends on:** 1\n- **Depends on:** 2", "6 error Depends on -> Depends on"),
        ("- **Touches:** a/b\n* touches: c/d", "6 error touches -> Touches"),
        ("- Blocked by: 12", "5 warning Blocked by -> Depends on"),
        ("- Touch: the file and its test", "5 warning Touch -> Touches"),
        ("- Surface: the menu", "5 warning Surface -> Surfaces"),
        ("- **Depends on** nothing at all", "5 warning Depends on -> Depends on"),
    ] {
        assert_eq!(remarks(&format!("{HEAD}{line}\n")), [expected], "{line}");
    }
}

#[test]
fn text_that_is_no_field_gets_no_remark() {
    for text in [
        "What it prints depends on the locale; 1 of 2 tests touches the file.",
        "- depends on the locale\n- touches nothing",
        "Note: see below\nSteps: run it",
        "Depends on 1 of 2 things",
        "> Depends on: 1",
        "```yaml\nservices:\n  web:\n    depends_on: [db]\ntouches: x\n```",
        "<!--\nDepends on: ids of bundles\n-->",
        "- **Scope:** one\n  Touches: not a field here",
        "- **Depends on:** 1, 2\n\n## Depends on\n\n2 has the parser.",
        "- **Depends on:** 1\n- **Depends on:** 1",
        "- Dependencies: serde, tokio",
        "    Depends on: 1",
    ] {
        assert_eq!(remarks(&format!("{HEAD}\n{text}\n")), [""; 0], "{text}");
    }
}

#[test]
fn a_fence_that_is_not_closed_hides_nothing() {
    let brief = Brief::parse(&format!("{HEAD}```\nDepends on: 1\n"));
    assert_eq!(brief.depends_on().ids().len(), 1);
}

#[test]
fn a_field_without_a_bullet_goes_on_in_its_paragraph_and_in_the_list_below() {
    let brief = Brief::parse(
        "Slug: s\nScope: first\nsecond\n\nnot of it\n\nTouches:\n- `src/a.rs`: the parser\n- docs/\n\nDo model: m\n",
    );
    assert_eq!(brief.known(Label::Scope).unwrap().whole(), "first\nsecond");
    assert_eq!(brief.touches(), ["src/a.rs", "docs/"]);
    assert_eq!(brief.do_model(), Some("m"));
    assert!(!brief.is_placeholder());
}

#[test]
fn a_label_that_continues_a_paragraph_is_text_and_told() {
    let text = format!("{HEAD}\nThe result, which\ndepends on: 12, is wrong\n");
    assert_eq!(remarks(&text), ["7 warning depends on -> Depends on"]);
    assert_eq!(Brief::parse(&text).depends_on().ids(), []);
    let lazy = format!("{HEAD}Which of both\ndepends on: 12, is open\n");
    assert_eq!(remarks(&lazy), ["6 warning depends on -> Depends on"]);
    assert_eq!(Brief::parse(&lazy).depends_on().ids(), []);
}
