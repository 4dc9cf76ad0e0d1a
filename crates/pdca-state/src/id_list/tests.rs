use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// The ids that other readers of the format see, and the warnings.
fn ids(text: &str) -> String {
    let list = parse_id_list(text);
    let named = list.among(&|_| false);
    shown(&list.ids(), &named.warnings)
}

fn shown(ids: &[BundleId], warnings: &[String]) -> String {
    let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
    let mut shown = ids.join(" ");
    for warning in warnings {
        shown.push_str(" ! ");
        shown.push_str(warning);
    }
    shown
}

/// The ids that count if these bundles exist; `?` marks a possible typing error.
fn among(there: &[&str], text: &str) -> String {
    let named = parse_id_list(text).among(&|id| there.contains(&id.as_str()));
    let mut said = shown(&named.ids, &named.warnings);
    for id in named.doubtful {
        said = format!("{said} ?{id}");
    }
    said
}

#[test]
fn every_spelling_of_an_id_names_the_same_bundle() {
    assert_snapshot!(ids("12, #15, issue_7, #issue_8 PROJ-9; AA"), @"12 15 7 8 PROJ-9 AA");
    let there = ["setup-db"];
    for text in
        ["setup-db", "#setup-db", "issue_setup-db", "`setup-db`", "`#setup-db`", "setup-db."]
    {
        assert_eq!(among(&there, text), "setup-db", "{text}");
    }
}

#[test]
fn any_legal_id_can_be_named() {
    let there = ["alpha", "Alpha", "a.b", "under_score", "c++", "none-of-these", "v", "e-"];
    assert_snapshot!(among(&there, "alpha"), @"alpha");
    assert_snapshot!(among(&there, "alpha, Alpha, a.b, under_score, c++, none-of-these, v"), @"alpha Alpha a.b under_score c++ none-of-these v");
    assert_snapshot!(among(&there, "alpha and Alpha"), @"alpha Alpha");
    assert_snapshot!(among(&there, "alpha / Alpha"), @"alpha Alpha");
    assert_snapshot!(among(&there, "(alpha, v)"), @"alpha v");
    assert_snapshot!(among(&there, "alpha # its table"), @"alpha");
    assert_snapshot!(among(&there, "alpha <!-- its table -->"), @"alpha");
    assert_snapshot!(among(&there, "alpha Alpha v"), @"alpha Alpha v");
    assert_snapshot!(among(&there, "12, alpha & 13"), @"12 alpha 13");
    assert_snapshot!(among(&there, "`e-`"), @"e-");
    assert_snapshot!(among(&there, "alpha,\n  v"), @"alpha v");
}

#[test]
fn a_word_alone_in_its_place_is_an_id_whether_or_not_it_is_a_bundle() {
    assert_snapshot!(among(&["alpha"], "alhpa"), @"alhpa");
    assert_snapshot!(among(&["alpha"], "alhpa, alpha (its table)"), @"alhpa alpha");
    assert_snapshot!(among(&["alpha"], "größe"), @" ! `größe` is not an id: the character 'ö' is not allowed");
}

#[test]
fn a_sentence_behind_an_id_is_not_part_of_the_list() {
    let there = ["setup-db", "beta", "first"];
    assert_snapshot!(among(&there, "setup-db because it creates the table"), @"setup-db");
    assert_snapshot!(among(&there, "setup-db — it creates the first table"), @"setup-db");
    assert_snapshot!(among(&there, "setup-db: it creates the table"), @"setup-db");
    assert_snapshot!(among(&there, "setup-db (it creates, first, the table), beta"), @"setup-db beta");
    assert_snapshot!(among(&there, "setup-db (it creates"), @"setup-db");
    assert_snapshot!(among(&there, "this comes first"), @"");
    assert_snapshot!(among(&there, "setup-bd must land before"), @" ?setup-bd");
}

#[test]
fn a_bundle_behind_a_sentence_is_said_and_not_dropped_in_silence() {
    assert_snapshot!(among(&["a", "b"], "a because of its table, b"), @"a ! `b` stands behind a sentence and is not read: name all ids first");
    assert_snapshot!(among(&["a", "b"], "a — its table, b"), @"a ! `b` stands behind a sentence and is not read: name all ids first");
}

#[test]
fn a_reason_after_the_ids_is_not_part_of_the_list() {
    assert_snapshot!(ids("12 (because of 15)"), @"12");
    assert_snapshot!(ids("12, 15 — both edit 99"), @"12 15");
    assert_snapshot!(ids("12, PR-order matters for 13"), @"12");
    assert_snapshot!(ids("12 (it has the table), 15"), @"12 15");
    assert_snapshot!(ids("12 and 15"), @"12 15");
}

#[test]
fn words_for_nothing_yield_nothing() {
    for text in [
        "",
        " ",
        "none",
        "None",
        "none — 315 is merged",
        "none yet, this comes first",
        "(none)",
        "—",
        "–",
        "-",
        "--",
        "NONE",
        "NONE — 315 is merged",
        "N/A",
        "N/A 12",
        "n/a",
    ] {
        assert_eq!(parse_id_list(text).among(&|_| true), Named::default(), "{text:?}");
    }
    for text in [
        "nothing",
        "nil",
        "Nothing.",
        "no",
        "nothing before 12",
        "(this comes first)",
        "(independent)",
        "[standalone, self-contained]",
    ] {
        assert_eq!(parse_id_list(text).among(&|_| false), Named::default(), "{text:?}");
        assert_eq!(parse_id_list(text).ids(), [], "{text:?}");
    }
}

#[test]
fn a_bundle_with_the_name_of_nothing_is_named_with_a_mark() {
    assert_snapshot!(among(&["none"], "none"), @"");
    assert_snapshot!(among(&["none"], "issue_none"), @"none");
    assert_snapshot!(among(&["none"], "`none`, #and"), @"none and");
    assert_snapshot!(among(&["nothing"], "nothing"), @"nothing");
}

#[test]
fn an_id_still_to_be_decided_is_a_warning() {
    assert_snapshot!(ids("TBD"), @" ! TBD names no bundle: nothing waits for it");
    assert_snapshot!(ids("12, TBD"), @"12 ! TBD names no bundle: nothing waits for it");
}

#[test]
fn trailing_punctuation_is_not_part_of_an_id() {
    assert_snapshot!(ids("12."), @"12");
    assert_snapshot!(ids("#12, 13; 14: 15-"), @"12 13 14 15");
}

#[test]
fn a_list_goes_on_to_the_next_line_only_after_a_comma() {
    assert_snapshot!(ids("12,\n13,\r\n 14\n15"), @"12 13 14");
    assert_snapshot!(ids("12\n13"), @"12");
    assert_snapshot!(ids("\n13"), @"");
}

#[test]
fn an_id_named_twice_is_listed_once() {
    assert_snapshot!(ids("12, #12, issue_12"), @"12");
}

#[test]
fn a_word_that_no_bundle_can_be_called_is_a_warning() {
    assert_snapshot!(ids("a/7, 12"), @"12 ! `a/7` is not an id: the character '/' is not allowed");
}

#[test]
fn two_lists_of_one_brief_end_each_for_itself() {
    let mut list = parse_id_list("none of these");
    list.extend(parse_id_list("the first, if any"));
    list.extend(parse_id_list("12"));
    assert_eq!(list.ids(), ["12".parse().unwrap()]);
    assert_eq!(list.among(&|_| false).ids, ["12".parse().unwrap()]);
}

#[test]
fn a_hostile_list_is_cut_with_a_warning() {
    let numbers: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let list = parse_id_list(&numbers.join(", "));
    assert_eq!((list.ids().len(), list.warnings.len()), (MAX_IDS, 1));
    assert_eq!(parse_id_list(&",".repeat(1_000_000)), IdList::default());
}

proptest! {
    #[test]
    fn any_text_gives_a_list(text in any::<String>()) {
        let list = parse_id_list(&text);
        list.among(&|id| id.as_str().len() > 3);
    }

    #[test]
    fn ids_joined_by_commas_come_back(
        ids in prop::collection::vec("[A-Za-z0-9_][A-Za-z0-9_.+-]{0,8}[A-Za-z0-9_]", 0..8),
        mark in prop::sample::select(vec!["", "#", "issue_"]),
    ) {
        let plain = |id: &String| {
            let lower = id.to_lowercase();
            id.parse::<BundleId>().is_ok() && !id.starts_with("issue_")
                && !["na", "none", "and", "tbd"].contains(&lower.as_str())
                && !NOTHING.contains(&lower.as_str())
        };
        let mut expected: Vec<String> = Vec::new();
        for id in ids.iter().filter(|id| plain(id)) {
            if !expected.contains(id) {
                expected.push(id.clone());
            }
        }
        let text: Vec<String> = expected.iter().map(|id| format!("{mark}{id}")).collect();
        let named = parse_id_list(&text.join(", ")).among(&|_| true);
        let found: Vec<String> = named.ids.iter().map(ToString::to_string).collect();
        prop_assert_eq!(found, expected);
    }
}
