//! What agents print, as recorded shapes.

use std::time::Duration;

use pdca_leaves::{End, MAX_LINE, Protocol, ProtocolReader, Usage};
use proptest::prelude::*;

const CLAUDE: &str = include_str!("shapes/claude-done.jsonl");
const CODEX: &str = include_str!("shapes/codex-done.jsonl");
const GEMINI: &str = include_str!("shapes/gemini-done.jsonl");
const OPENCODE: &str = include_str!("shapes/opencode-done.jsonl");

const ALL: [(Protocol, &str); 4] = [
    (Protocol::Claude, CLAUDE),
    (Protocol::Codex, CODEX),
    (Protocol::Gemini, GEMINI),
    (Protocol::Opencode, OPENCODE),
];

#[test]
fn each_protocol_tells_message_session_usage_cost_and_tools() {
    let read = |protocol, text: &str| {
        let said = ProtocolReader::read(protocol, text.as_bytes());
        assert_eq!((said.end, said.complaints.len()), (Some(End::Success), 0), "{protocol:?}");
        (
            said.message.unwrap(),
            said.session.unwrap(),
            said.usage.unwrap(),
            said.cost.map(pdca_state::Money::micros),
            said.tool_calls,
        )
    };
    let usage = |input, cached, output| Usage { input, cached, output };
    assert_eq!(
        read(Protocol::Claude, CLAUDE),
        (
            "The rate limit is shown now.".into(),
            "6f1c0a8e-1111-4222-8333-444455556666".into(),
            usage(420, 300, 50),
            Some(42_100),
            1
        )
    );
    assert_eq!(
        read(Protocol::Codex, CODEX),
        (
            "It is done.".into(),
            "0199a213-81c0-7800-8aa1-bbab2a035a53".into(),
            usage(24763, 24448, 122),
            None,
            2
        )
    );
    assert_eq!(
        read(Protocol::Gemini, GEMINI),
        ("All done.".into(), "g-1".into(), usage(90, 30, 20), None, 1)
    );
    assert_eq!(
        read(Protocol::Opencode, OPENCODE),
        ("Finished.".into(), "ses_1".into(), usage(35, 4, 12), Some(30_000), 1)
    );
}

#[test]
fn a_failure_is_told_with_its_words_and_its_status() {
    let claude =
        ProtocolReader::read(Protocol::Claude, include_bytes!("shapes/claude-throttled.jsonl"));
    assert_eq!(claude.end, Some(End::Failure));
    let last = claude.complaints.last().unwrap();
    assert_eq!(
        (last.text.as_str(), last.status),
        ("API Error: Request rejected (429) · Rate limited", Some(429))
    );
    assert_eq!(claude.message, None, "a failure of the interface is no message of the agent");

    let codex = ProtocolReader::read(Protocol::Codex, include_bytes!("shapes/codex-limit.jsonl"));
    assert_eq!(codex.end, Some(End::Failure));
    assert!(codex.complaints.last().unwrap().text.ends_with("try again at 3:41 PM."));

    let gemini =
        ProtocolReader::read(Protocol::Gemini, include_bytes!("shapes/gemini-failed.jsonl"));
    assert_eq!(gemini.end, Some(End::Failure));
    assert!(gemini.complaints.last().unwrap().text.contains("RESOURCE_EXHAUSTED"));

    let opencode =
        ProtocolReader::read(Protocol::Opencode, include_bytes!("shapes/opencode-throttled.jsonl"));
    let last = opencode.complaints.last().unwrap();
    assert_eq!((opencode.end, last.status), (Some(End::Failure), Some(429)));
    assert_eq!(last.retry_after, Some(Duration::from_secs(20)));
}

#[test]
fn a_reconnect_is_no_step_and_an_announced_tool_call_is_open_until_it_ends() {
    let mut reader = ProtocolReader::new(Protocol::Codex);
    reader.feed(b"{\"type\":\"turn.started\"}\n");
    let before = reader.steps();
    reader.feed(b"{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\nany words\n{}\n");
    assert_eq!(reader.steps(), before);
    let item = r#"{"id":"item_1","type":"command_execution","command":"sleep 900"}"#;
    reader.feed(format!("{{\"type\":\"item.started\",\"item\":{item}}}\n").as_bytes());
    assert!(reader.is_in_tool() && reader.steps() > before);
    reader.feed(format!("{{\"type\":\"item.completed\",\"item\":{item}}}\n").as_bytes());
    assert!(!reader.is_in_tool());
}

#[test]
fn what_was_overcome_is_no_complaint_any_more() {
    let mut reader = ProtocolReader::new(Protocol::Codex);
    reader.feed(b"{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (429)\"}\n{\"type\":\"turn.started\"}\n");
    reader.feed(b"{\"type\":\"error\",\"message\":\"stream closed\"}\n");
    let left: Vec<String> = reader.finish().complaints.into_iter().map(|one| one.text).collect();
    assert_eq!(left, ["stream closed"]);
}

#[test]
fn a_log_that_lost_its_middle_still_tells_its_end() {
    for (protocol, text) in ALL {
        let (head, tail) = text.split_at(text.len() / 2);
        let torn = format!("{}\n… 900 bytes left out …\n{}", &head[..head.len() - 9], &tail[9..]);
        assert_eq!(
            ProtocolReader::read(protocol, torn.as_bytes()).end,
            Some(End::Success),
            "{protocol:?}"
        );
    }
}

#[test]
fn a_line_longer_than_any_record_is_passed_over() {
    let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "y".repeat(MAX_LINE));
    let said = ProtocolReader::read(Protocol::Claude, format!("{long}{CLAUDE}{long}").as_bytes());
    assert_eq!(said, ProtocolReader::read(Protocol::Claude, CLAUDE.as_bytes()));
}

#[test]
fn a_session_that_could_be_an_option_is_none() {
    let said =
        ProtocolReader::read(Protocol::Codex, br#"{"type":"thread.started","thread_id":"--yolo"}"#);
    assert_eq!(said.session, None);
}

#[test]
fn the_end_of_a_text_is_its_message() {
    let said =
        ProtocolReader::read(Protocol::Text, b"one\n\nlitellm.AuthenticationError: bad key\n");
    assert!(said.message.unwrap().ends_with("bad key"));
    assert_eq!(said.end, None);
    let long = ProtocolReader::read(Protocol::Text, &vec![b'x'; 1 << 20]);
    assert!(long.message.unwrap().len() <= 4096);
}

#[test]
fn aider_tells_tokens_and_cost_in_words() {
    let text = b"Applied edit to a.py\nTokens: 2.3k sent, 120 received. Cost: $0.01 message, $0.02 session.\n";
    let said = ProtocolReader::read(Protocol::Aider, text);
    assert_eq!(said.usage, Some(Usage { input: 2300, cached: 0, output: 120 }));
    assert_eq!(said.cost, Some(pdca_state::Money::from_micros(20_000)));
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        Just(Protocol::Text),
        Just(Protocol::Aider),
        Just(Protocol::Claude),
        Just(Protocol::Codex),
        Just(Protocol::Gemini),
        Just(Protocol::Opencode)
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(protocol in protocols(), bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        ProtocolReader::read(protocol, &bytes);
    }

    #[test]
    fn no_record_of_any_shape_makes_a_reader_panic(
        protocol in protocols(),
        kind in "(system|assistant|user|result|item\\.(started|completed)|turn\\.(completed|failed)|error|message|tool_use|text|step_finish|rate_limit_event)",
        key in "(message|item|part|error|usage|stats|result|content|rate_limit_info)",
        value in "(null|1|-1|1e300|\"x\"|\\[\\]|\\{\\}|\\[\\{\"type\":\"tool_use\",\"id\":7\\}\\]|\\{\"content\":\\[null,\\{\"text\":[0-9]\\}\\]\\})",
    ) {
        ProtocolReader::read(protocol, format!("{{\"type\":\"{kind}\",\"{key}\":{value}}}\n").as_bytes());
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(index in 0_usize..4, size in 1_usize..500) {
        let (protocol, text) = ALL[index];
        let mut reader = ProtocolReader::new(protocol);
        for piece in text.as_bytes().chunks(size) {
            reader.feed(piece);
        }
        prop_assert_eq!(reader.finish(), ProtocolReader::read(protocol, text.as_bytes()));
    }
}
