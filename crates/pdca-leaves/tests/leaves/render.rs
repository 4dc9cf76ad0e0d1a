//! Transcripts for people, from the shapes of each protocol.

use insta::assert_snapshot;
use pdca_leaves::{Protocol, Renderer, TranscriptEntry};
use proptest::prelude::*;

fn shape(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/leaves/shapes/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    fs_err::read(path).unwrap()
}

fn rendered(protocol: Protocol, bytes: &[u8]) -> Vec<TranscriptEntry> {
    let mut renderer = Renderer::new(protocol);
    let mut entries = renderer.feed(bytes);
    entries.extend(renderer.finish());
    entries
}

fn shown(protocol: Protocol, name: &str) -> String {
    let line = |entry: TranscriptEntry| {
        let tool = entry.tool.map(|tool| format!(" {tool}")).unwrap_or_default();
        format!("{:?}{tool}: {}", entry.kind, entry.text)
    };
    let entries = rendered(protocol, &shape(name));
    entries.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_are_whole_and_a_tool_call_is_one_line() {
    assert_snapshot!(shown(Protocol::Claude, "claude-done"), @r"
    Message: I read the brief first.
    Tool Bash: cat brief.md
    Message: a helper speaks
    Message: The rate limit is shown now.
    ");
    assert_snapshot!(shown(Protocol::Codex, "codex-done"), @r"
    Tool command_execution: bash -lc ls
    Tool file_change: a
    Message: It is done.
    ");
    assert_snapshot!(shown(Protocol::Gemini, "gemini-done"), @r"
    Message: First
    Tool write_file: a
    Message: All done.
    ");
    assert_snapshot!(shown(Protocol::Opencode, "opencode-done"), @r"
    Tool bash: ls
    Message: Finished.
    ");
}

#[test]
fn what_is_no_record_is_shown_as_it_is() {
    let text = b"npm warn deprecated\n{\"type\":\"turn.started\"}\n{torn\n";
    let texts: Vec<String> =
        rendered(Protocol::Codex, text).into_iter().map(|entry| entry.text).collect();
    assert_eq!(texts, ["npm warn deprecated", "{torn"]);
    let plain = rendered(Protocol::Text, b"one\n\n{\"type\":\"x\"}\n");
    let plain: Vec<String> = plain.into_iter().map(|entry| entry.text).collect();
    assert_eq!(plain, ["one", "", "{\"type\":\"x\"}"]);
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same(cuts in prop::collection::vec(1_usize..40, 1..60)) {
        for (protocol, name) in [
            (Protocol::Claude, "claude-done"),
            (Protocol::Codex, "codex-limit"),
            (Protocol::Gemini, "gemini-done"),
            (Protocol::Opencode, "opencode-throttled"),
        ] {
            let bytes = shape(name);
            let mut renderer = Renderer::new(protocol);
            let (mut rest, mut entries) = (bytes.as_slice(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (piece, more) = rest.split_at((*cut).min(rest.len()));
                entries.extend(renderer.feed(piece));
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
            entries.extend(renderer.finish());
            prop_assert_eq!(entries, rendered(protocol, &bytes));
        }
    }
}
