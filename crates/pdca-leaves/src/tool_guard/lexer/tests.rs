use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Vec<String> {
    lex(text)
        .tokens
        .iter()
        .map(|token| match token {
            ShellToken::Word(word) => word
                .0
                .iter()
                .map(|piece| match piece {
                    Piece::Text { text, .. } => text.clone(),
                    Piece::Variable { name, .. } => format!("${name}"),
                    Piece::Command { script, .. } => format!("$({script})"),
                    Piece::Process { script } => format!("<({script})"),
                    Piece::Opaque(_) => "$(())".to_owned(),
                })
                .collect(),
            ShellToken::Operator(Operator::Then) => ";".to_owned(),
            ShellToken::Operator(Operator::Pipe) => "|".to_owned(),
            ShellToken::Operator(Operator::Open) => "(".to_owned(),
            ShellToken::Operator(Operator::Close) => ")".to_owned(),
            ShellToken::Redirect(redirect) => format!("{:?}", redirect.kind),
        })
        .collect()
}

#[test]
fn quotes_and_escapes_join_into_words() {
    assert_eq!(words(r#"g"i"t 'pu'sh\ x"#), ["git", "push x"]);
    assert_eq!(
        words(
            r"$'\x67it' pu\
sh"
        ),
        ["git", "push"]
    );
}

#[test]
fn a_substitution_ends_at_its_own_parenthesis() {
    assert_eq!(words("a $(b \")\" (c) ')') d"), ["a", "$(b \")\" (c) ')')", "d"]);
    assert_eq!(words("$(case x in a) b;; esac) y"), ["$(case x in a) b;; esac)", "y"]);
}

#[test]
fn a_here_document_is_no_command() {
    assert_eq!(words("cat <<E >f\ngit push\nE\nls"), ["cat", "Text", "Write", ";", "ls"]);
    assert_eq!(words("cat <<-'E'\n\tx\n\tE\nls"), ["cat", "Text", ";", "ls"]);
}

#[test]
fn a_substitution_does_not_end_in_a_here_document() {
    let document = "$(cat <<'E' <<-F <<<x\nDon't :)\nE\n\t\"(\n\tF\n)";
    assert_eq!(words(&format!("a \"{document}\" b")), ["a", document, "b"]);
    assert_eq!(words("$(cat <<E\nx\nE) b"), ["$(cat <<E\nx\nE)", "b"]);
    // A shift, and a pattern: nothing is hidden behind them.
    assert_eq!(words("$((1<<E\n)); b\nE\n))"), ["$(())", ";", "b", ";", "E", ";", ")", ")"]);
    assert_eq!(words("@(1<<E\n); b\nE\n)"), ["@(1<<E\n)", ";", "b", ";", "E", ";", ")"]);
}

#[test]
fn a_number_before_a_redirection_is_no_word() {
    assert_eq!(words("make 2>&1 >log 3< x"), ["make", "Duplicate", "Write", "Read"]);
    assert_eq!(words("echo 2 >log"), ["echo", "2", "Write"]);
}

#[test]
fn what_is_left_open_is_said() {
    for open in ["'a", "\"a", "$(a", "`a", "${a", "cat <(a"] {
        assert!(lex(open).flaw.is_some(), "{open}");
    }
    assert_eq!(lex("git status # it's").flaw, None);
}

#[test]
fn deep_nesting_is_a_flaw_and_not_a_crash() {
    for open in ["$(", "${a:-", "$((", "\"$(", "<("] {
        assert!(lex(&open.repeat(100_000)).flaw.is_some(), "{open}");
    }
    assert!(lex(&"`".repeat(100_001)).flaw.is_some());
}

proptest! {
    #[test]
    fn any_text_is_lexed_to_its_end(text in "[ -~\n]{0,80}") {
        let _tokens = lex(&text);
    }
}
