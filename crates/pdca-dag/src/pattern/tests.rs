use proptest::prelude::*;

use super::*;
use crate::testing::Dice;

fn glob(text: &str) -> Pattern {
    Pattern::parse(text, Case::Sensitive).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn witness(a: &str, b: &str) -> Option<String> {
    let (there, back) = (glob(a).meet(&glob(b)), glob(b).meet(&glob(a)));
    assert_eq!(there.is_some(), back.is_some(), "{a} {b}");
    assert_eq!(there.is_some(), decided(&glob(a), &glob(b)), "{a} {b}");
    there
}

/// The answer that comes without a path.
fn decided(a: &Pattern, b: &Pattern) -> bool {
    a.routes.iter().any(|a| b.routes.iter().any(|b| a.meets(b)))
}

#[test]
fn globs_that_meet_show_a_path_of_both() {
    for (a, b, path) in [
        ("a*", "*b", "ab"),
        ("src/{a,b}.py", "src/a.py", "src/a.py"),
        ("./x", "x", "x"),
        ("x//y/", "x/y", "x/y"),
        ("src/foo", "src/foo/bar", "src/foo/bar"),
        ("src/**", "src/a/b.rs", "src/a/b.rs"),
        ("**/*.rs", "src/[a-m]?.rs", "src/aa.rs"),
        ("src/**/x", "src/x", "src/x"),
        ("**/net", "src/net/tcp.rs", "src/net/tcp.rs"),
        ("src/*/", "src/a/b/c", "src/a/b/c"),
        ("[!a]x", "?x", "bx"),
        ("src/**.rs", "src/a/b.rs", "src/a/b.rs"),
        ("a**b/c", "ax/yb/c", "ax/yb/c"),
        (r"a\*", "a*", "a*"),
        ("{src,tests/{unit,e2e}}/x", "tests/e2e/*", "tests/e2e/x"),
        (".", "any/thing", "any/thing"),
        ("[]]", "?", "]"),
        ("[a-]", "-", "-"),
        (".*", "[.]?", ".a"),
        ("{,x/}y", "x/y", "x/y"),
        ("*{*,a}/z", "x/y/z", "x/y/z"),
    ] {
        assert_eq!(witness(a, b).as_deref(), Some(path), "{a} {b}");
    }
}

#[test]
fn globs_that_have_no_path_in_common_are_disjoint() {
    for (a, b) in [
        ("src/foo", "src/foobar"),
        ("src/*.py", "src/net/a.py"),
        ("src/*", "src/net/tcp.rs"),
        ("**/*.md", "**/*.rs"),
        ("src/**", "src"),
        ("src/?", "src/ab"),
        ("[!a-c]x", "[a-c]x"),
        ("{a,b}/x", "{c,d}/x"),
        (r"a\*", "ab"),
        ("a*a", "b*b"),
        ("*.rs", "src/lib.rs"),
        // No file is called `.` or `..`.
        ("[.]", "?"),
        ("[.][.]", "??"),
    ] {
        // `src` is a directory that owns what is below it, so only one way round is meant here.
        let expected = (b == "src").then(|| "src/a".to_owned());
        assert_eq!(witness(a, b), expected, "{a} {b}");
    }
}

#[test]
fn a_path_known_to_be_a_file_has_nothing_below_it() {
    let (file, deep) = (glob("src/lib.rs"), glob("**/x"));
    assert_eq!(file.meet(&deep).as_deref(), Some("src/lib.rs/x"));
    assert_eq!(file.clone().file().meet(&deep), None);
    assert!(file.file().meet(&glob("src/*")).is_some());
    assert!(glob("**/x").file().covers("x/y"), "only a plain path is a file");
}

#[test]
fn names_that_differ_in_case_meet_only_where_the_file_system_folds() {
    for (a, b) in [
        ("README.md", "readme.*"),
        ("[A-C]x", "bX"),
        ("[!a]", "A"),
        ("ÉTÉ", "été"),
        ("\u{212a}", "k"),
        ("[\u{400}-\u{42f}]", "\u{436}"),
    ] {
        let folded = |text| Pattern::parse(text, Case::Folded).unwrap();
        assert!(folded(a).meet(&folded(b)).is_some(), "{a} {b}");
        assert!(folded(a).covers(b) || folded(b).covers(a), "{a} {b}");
    }
    assert_eq!(witness("README", "readme"), None);
}

#[test]
fn what_is_no_glob_says_where_and_why() {
    use PatternFlaw::*;
    let long = "x".repeat(2000);
    let deep = format!("{}x{}", "{".repeat(20), "}".repeat(20));
    for (text, column, flaw) in [
        ("", 1, Empty),
        (long.as_str(), 1, TooLong(2000)),
        ("/etc/passwd", 1, LeavesTree),
        ("../x", 1, LeavesTree),
        ("src/../../x", 5, LeavesTree),
        ("{a,..}/x", 4, LeavesTree),
        ("{a,}/x", 5, LeavesTree),
        (r"\../x", 1, LeavesTree),
        ("src/[ab", 5, OpenClass),
        ("[!]", 1, OpenClass),
        ("[z-a]", 4, BackwardRange),
        ("[a/b]", 3, SlashInClass),
        ("[[:alpha:]]", 2, NamedClass),
        ("[!\u{1}-\u{10ffff}]", 3, Character('\u{1}')),
        ("a{b", 2, OpenBrace),
        ("ab}", 3, UnopenedBrace),
        ("v{1..3}", 2, BraceRange),
        (deep.as_str(), 17, TooNested),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", 41, TooManyAlternatives),
        ("a**b**c**d**e**f**g**h**i**j", 26, TooManyAlternatives),
        (r"x\", 2, LoneEscape),
        ("!src/x", 1, Negation),
    ] {
        let error = Pattern::parse(text, Case::Sensitive).expect_err(text);
        assert_eq!((error.column, error.flaw), (column, flaw), "{text}");
    }
}

#[test]
fn hostile_braces_are_refused_before_they_are_written_out() {
    let wide = format!("{{{}}}", (0..250).map(|n| format!("{n:03}")).collect::<Vec<_>>().join(","));
    assert_eq!(
        Pattern::parse(&format!("{wide}{}", "x".repeat(20)), Case::Sensitive).unwrap_err().flaw,
        PatternFlaw::TooLarge
    );
    let (stars, none) = (format!("{}*", "*a".repeat(200)), "[!a]".repeat(250));
    assert_eq!(glob(&stars).meet(&glob(&none)), None);
}

#[test]
fn drift_is_what_no_glob_stands_for() {
    let touches = [glob("src/net"), glob("*.md")];
    let footprint =
        ["src/net/a/b.rs", "README.md", "docs/README.md", "./src/net", "../src/net", "/x"];
    assert_eq!(drift(&touches, &footprint), ["docs/README.md", "../src/net", "/x"]);
    assert_eq!(drift(&[], &footprint), Vec::<&str>::new());
}

/// A second reading of globs, from the text and by trying everything.
mod naive {
    pub(super) fn stands_for(glob: &str, path: &str) -> bool {
        written_out(glob).iter().any(|flat| one(flat, path))
    }

    fn written_out(glob: &str) -> Vec<String> {
        let Some(open) = glob.find('{') else { return vec![glob.to_owned()] };
        let mut depth = 0;
        let mut parts = vec![String::new()];
        for (i, c) in glob[open..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            match (c, depth) {
                ('{', 1) => {}
                ('}', 0) => {
                    let (head, tail) = (&glob[..open], &glob[open + i + 1..]);
                    let whole = parts.iter().map(|part| format!("{head}{part}{tail}"));
                    return whole.flat_map(|glob| written_out(&glob)).collect();
                }
                (',', 1) => parts.push(String::new()),
                _ => parts.last_mut().unwrap().push(c),
            }
        }
        unreachable!("braces are balanced");
    }

    fn one(flat: &str, path: &str) -> bool {
        let parts: Vec<&str> = flat.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let is_directory =
            flat.is_empty() || flat.ends_with('/') || flat == "." || flat.ends_with("/.");
        let Some(last) = parts.last() else { return true };
        let glob: Vec<char> = parts.join("/").chars().collect();
        let owns_below = is_directory || !last.contains(['*', '?', '[']);
        let is_match = |path: &str| matches(&glob, &path.chars().collect::<Vec<_>>(), true);
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        is_match(path) || (owns_below && above.any(is_match))
    }

    fn matches(glob: &[char], path: &[char], at_start: bool) -> bool {
        let goes_on = |taken: usize| taken == 0 || path[taken - 1] == '/';
        match glob {
            [] => path.is_empty(),
            ['*', '*', '*', ..] => matches(&glob[1..], path, at_start),
            ['*', '*'] if at_start => !path.is_empty(),
            ['*', '*', '/', rest @ ..] if at_start => {
                // Whole components, or none.
                (0..=path.len()).any(|taken| goes_on(taken) && matches(rest, &path[taken..], true))
            }
            ['*', '*', rest @ ..] => {
                (0..=path.len()).any(|taken| matches(rest, &path[taken..], false))
            }
            ['*', rest @ ..] => {
                let name = path.iter().take_while(|c| **c != '/').count();
                (0..=name).any(|taken| matches(rest, &path[taken..], false))
            }
            ['[', rest @ ..] => {
                let close = rest.iter().position(|c| *c == ']').unwrap();
                let (members, rest) = (&rest[..close], &rest[close + 1..]);
                let Some((&c, after)) = path.split_first() else { return false };
                let (negated, members) = match members {
                    ['!', members @ ..] => (true, members),
                    members => (false, members),
                };
                let is_member = match members {
                    [low, '-', high] => (*low..=*high).contains(&c),
                    members => members.contains(&c),
                };
                c != '/' && is_member != negated && matches(rest, after, false)
            }
            ['?', rest @ ..] => {
                path.first().is_some_and(|c| *c != '/') && matches(rest, &path[1..], false)
            }
            [c, rest @ ..] => path.first() == Some(c) && matches(rest, &path[1..], *c == '/'),
        }
    }
}

fn random_glob(dice: &mut Dice) -> String {
    const PLAIN: [&str; 4] = ["a", "b", "a", "."];
    const WILD: [&str; 8] = ["*", "?", "[ab]", "[!a]", "[a-b]", "**", "{a,b}", "{a,*/b}"];
    let mut text = String::new();
    for part in 0..=dice.roll(3) {
        if part > 0 {
            text.push_str(["/", "/", "/", "//", "/./"][dice.roll(5)]);
        }
        match dice.roll(8) {
            0 => text.push_str("**"),
            1 => text.push('*'),
            2 => text.push_str(["{a,b/a}", "{,a}b", "{a{a,b},b}", "{*,a/**}"][dice.roll(4)]),
            _ => {
                for _ in 0..=dice.roll(2) {
                    text.push_str(match dice.roll(5) {
                        0 | 1 => WILD[dice.roll(8)],
                        _ => PLAIN[dice.roll(4)],
                    });
                }
            }
        }
    }
    if dice.roll(12) == 0 {
        text.push('/');
    }
    if dice.roll(12) == 0 {
        text.insert_str(0, "./");
    }
    text
}

/// All paths of up to three names over a few characters.
fn all_paths() -> Vec<String> {
    let names = ["a", "b", "c", "aa", "ab", "ba", "bb", "a.", ".a", "b.", ".b"];
    let mut paths: Vec<String> = names.map(str::to_owned).into();
    let mut longest = paths.clone();
    for _ in 0..2 {
        longest =
            longest.iter().flat_map(|head| names.map(|name| format!("{head}/{name}"))).collect();
        paths.extend(longest.clone());
    }
    paths
}

/// 200 globs make 20,100 pairs. Each glob is held against all paths by the naive reading, so a
/// pair has a path in common if any path is in both sets.
#[test]
fn no_two_globs_that_meet_are_called_disjoint_and_every_witness_is_a_path_of_both() {
    let paths = all_paths();
    let mut dice = Dice(7);
    let mut globs: Vec<(String, Pattern, Vec<bool>)> = Vec::new();
    while globs.len() < 200 {
        let text = random_glob(&mut dice);
        let Ok(pattern) = Pattern::parse(&text, Case::Sensitive) else { continue };
        let set: Vec<bool> = paths.iter().map(|path| naive::stands_for(&text, path)).collect();
        for (path, expected) in paths.iter().zip(&set) {
            assert_eq!(pattern.covers(path), *expected, "{text} {path}");
        }
        globs.push((text, pattern, set));
    }
    let (mut met, mut disjoint) = (0, 0);
    for (n, (a_text, a, a_set)) in globs.iter().enumerate() {
        for (b_text, b, b_set) in &globs[n..] {
            assert_eq!(decided(a, b), a.meet(b).is_some(), "{a_text} {b_text}");
            let common = a_set.iter().zip(b_set).position(|(a, b)| *a && *b);
            if let Some(path) = a.meet(b) {
                met += 1;
                assert!(naive::stands_for(a_text, &path), "{a_text} {b_text} {path}");
                assert!(naive::stands_for(b_text, &path), "{a_text} {b_text} {path}");
            } else {
                disjoint += 1;
                assert_eq!(common.map(|at| &paths[at]), None, "{a_text} {b_text}");
            }
        }
    }
    assert!(met > 4_000 && disjoint > 4_000, "{met} {disjoint}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_refused_or_stands_for_its_own_witness(
        a in r"[ab./*?{},!\\\[\]-]{0,12}",
        b in r"[ab./*?{},!\\\[\]-]{0,12}",
    ) {
        for case in [Case::Sensitive, Case::Folded] {
            let (Ok(a), Ok(b)) = (Pattern::parse(&a, case), Pattern::parse(&b, case)) else {
                continue;
            };
            let (there, back) = (a.meet(&b), b.meet(&a));
            prop_assert_eq!(there.is_some(), back.is_some());
            prop_assert_eq!(there.is_some(), decided(&a, &b));
            for path in there.iter().chain(&back) {
                prop_assert!(a.covers(path) && b.covers(path), "{}", path);
            }
        }
    }

    #[test]
    fn folding_case_never_parts_what_meets(a in "[abAB/*?]{1,8}", b in "[abAB/*?]{1,8}") {
        let parse = |text: &str, case| Pattern::parse(text, case).ok();
        let (Some(a1), Some(b1)) = (parse(&a, Case::Sensitive), parse(&b, Case::Sensitive)) else {
            return Ok(());
        };
        let (a2, b2) = (parse(&a, Case::Folded).unwrap(), parse(&b, Case::Folded).unwrap());
        prop_assert!(a1.meet(&b1).is_none() || a2.meet(&b2).is_some());
    }
}
