//! What the board shows at three sizes, with and without colours.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pdca_cli::board::{
    Board, BoardData, BoardEffect, BoardInput, BoardKey, ChangeRow, Combined, LaneRow, Theme, View,
    WorkRow, draw,
};
use pdca_state::{Awaits, Bundle, BundleId, BundleRoot, sha256_hex};
use pdca_testkit::TestWorkspace;
use pdca_workspace::review::{Card, CardSource, Decision};
use pdca_workspace::snapshot::{SnapshotSource, WorkspaceSnapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// A workspace with bundles that wait for sign-off, and its snapshot.
struct Scene {
    workspace: TestWorkspace,
    board: Board,
}

impl Scene {
    fn new(bundles: usize) -> Self {
        let workspace = TestWorkspace::new();
        for number in 1..=bundles {
            awaiting(&workspace, number);
        }
        let mut scene = Self { workspace, board: Board::new(pdca_workspace::review::UNDO_WINDOW) };
        let data = Arc::new(scene.data());
        scene.feed(BoardInput::Data(data));
        scene
    }

    fn snapshot(&self) -> WorkspaceSnapshot {
        let bundles = BundleRoot::new(self.workspace.path().join("results"));
        let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
        WorkspaceSnapshot::load(source).expect("the bundles can be listed")
    }

    fn data(&self) -> BoardData {
        let now = Timestamp::UNIX_EPOCH;
        let data = BoardData::load("greeter", &self.snapshot(), None, self.workspace.path(), now);
        with_work(data)
    }

    /// Takes an input and does what the board asks for, but records nothing.
    fn feed(&mut self, input: BoardInput) -> Vec<BoardEffect> {
        let mut left = Vec::new();
        for effect in self.board.update(input) {
            if let BoardEffect::LoadCard(id) = effect {
                let card = self.card(&id);
                left.extend(self.feed(BoardInput::Card(id, Ok(Arc::new(card)))));
            } else {
                left.push(effect);
            }
        }
        left
    }

    fn card(&self, id: &BundleId) -> Card {
        let bundle = Bundle::at(self.workspace.bundle(id.as_ref())).expect("its name has an id");
        let snapshot = self.snapshot();
        Card::load(CardSource { snapshot: &snapshot, config: None }, &bundle)
            .expect("it can be read")
    }

    fn keys(&mut self, keys: &str) -> Vec<BoardEffect> {
        keys.chars().flat_map(|key| self.feed(BoardInput::Key(BoardKey::Char(key)))).collect()
    }

    /// Draws without colours, and checks that colours add nothing but colours.
    fn shown(&mut self, (width, height): (u16, u16)) -> String {
        let plain = screen(&mut self.board, width, height, false);
        let coloured = screen(&mut self.board, width, height, true);
        assert_eq!(plain.0, coloured.0);
        assert!(!plain.1, "there are colours on a monochrome screen");
        plain.0
    }
}

/// Returns the text of a frame, and whether it has colours.
fn screen(board: &mut Board, width: u16, height: u16, colours: bool) -> (String, bool) {
    let mut terminal =
        Terminal::new(TestBackend::new(width, height)).expect("a test has a backend");
    terminal.draw(|frame| draw(frame, board, Theme { colours })).expect("a frame can be drawn");
    let buffer = terminal.backend().buffer();
    let is_coloured =
        buffer.content.iter().any(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset));
    let rows = buffer.content.chunks(usize::from(width));
    let rows: Vec<String> = rows
        .map(|row| {
            row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
        })
        .collect();
    (rows.join("\n"), is_coloured)
}

fn awaiting(workspace: &TestWorkspace, number: usize) {
    let id = number.to_string();
    let slug =
        format!("{}-{number}", ["say-goodbye", "greet-nobody", "print-the-version"][number % 3]);
    workspace.brief(&id, &[("Slug", &slug), ("Touches", "src/*.sh")]);
    let file = |name: &str| format!("results/issue_{id}/{name}");
    let patch = "diff --git a/src/x.sh b/src/x.sh\n--- a/src/x.sh\n+++ b/src/x.sh\n@@ -1 +1,2 @@\n-one\n+two\n+three\n";
    workspace.write(file("patch.diff"), patch);
    let digest = sha256_hex(patch.as_bytes());
    let result = if number.is_multiple_of(4) { "fail" } else { "pass" };
    let failing = if result == "fail" { "\"tests/issue-4.sh\"" } else { "" };
    let gates = format!(
        r#"{{"issue_dir": "issue_{id}", "overall": "{result}", "patch_digest": "{digest}", "rows": [
        {{"check": "C4 the issue's own test", "result": "pass", "oracle": "./verify.sh", "rule_id": "C4-verify", "path_line": "red before, green after", "gating": true, "element": "C4"}},
        {{"check": "T3 all tests", "result": "{result}", "oracle": "make test", "rule_id": "T3-tests", "path_line": "12 tests", "gating": true, "element": "T3", "failing": [{failing}]}}]}}"#
    );
    workspace.write(file("check-gates.json"), gates);
    workspace.write(
        file("check-review.md"),
        "| Item | Verdict | Basis |\n|---|---|---|\n| T5 Judgment | PASS | Read the whole change. |\n",
    );
    let more = if number.is_multiple_of(3) {
        "- [ ] C5 Does it treat the cause? The reviewer is not sure.\n"
    } else {
        ""
    };
    let summary = format!(
        "# Result — issue / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n{more}- [ ] V Validation — fitness-to-purpose — Is this what the people who use it want?\n\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome:\n- Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n"
    );
    workspace.write(file("SUMMARY.md"), summary);
}

/// Adds lanes, waiting bundles and an integration, as a running batch has them.
fn with_work(data: BoardData) -> BoardData {
    let id = |text: &str| text.parse::<BundleId>().expect("it is an id");
    let lane = |lane, name: &str, doing: &str, seconds| LaneRow {
        id: id(name),
        title: "shout".to_owned(),
        lane: Some(lane),
        holder: "pdca batch (pid 4242 on build-1)".to_owned(),
        doing: doing.to_owned(),
        elapsed: Some(Duration::from_secs(seconds)),
        usual: Some(Duration::from_secs(30)),
        silent: Some(Duration::from_secs(2)),
        last: "T1-syntax pass".to_owned(),
    };
    let change = |name: &str, word, text: &str, next: &str| ChangeRow {
        id: id(name),
        title: "same-every-day".to_owned(),
        word,
        text: text.to_owned(),
        next: Some(next.to_owned()),
    };
    let row = |depth, word, text: &str| Combined { depth, word, text: text.to_owned() };
    BoardData {
        lanes: vec![
            lane(0, "101", "gate 2/3 T3-tests", 75),
            lane(1, "102", "builder, attempt 2", 4000),
        ],
        rest: vec![WorkRow {
            id: id("103"),
            title: "needs the other one".to_owned(),
            state: "PLANNED",
            why: "waits for 101".to_owned(),
            next: None,
        }],
        combined: vec![
            row(0, "base", "app at 4f2a8c11d9e0, with 12 + 15 + 20"),
            row(0, "red", "12 + 15 + 20: T3-tests"),
            row(1, "green", "12 + 20"),
            row(1, "red", "15: T3-tests"),
            row(0, "held", "15 breaks T3-tests only together with 20: tests/issue-20.sh"),
            row(0, "landed", "12 on pdca/staging/main as e1044e31ee9e"),
        ],
        changes: vec![
            change("15", "held", "15 breaks T3-tests only together with 20", "pdca reopen 15"),
            change(
                "12",
                "staged",
                "pdca/staging/main",
                "git -C app merge --ff-only pdca/staging/main",
            ),
        ],
        next: ("pdca review".to_owned(), "6 bundles wait for your sign-off".to_owned()),
        ..data
    }
}

#[test]
fn every_view_fits_every_size_and_needs_no_colour() {
    for (width, height) in SIZES {
        let mut scene = Scene::new(6);
        for (key, words) in [
            ('1', "waits for you 6"),
            ('2', "waits for 101"),
            ('3', "only together with 20"),
            ('?', "Everywhere"),
        ] {
            scene.keys(&key.to_string());
            let shown = scene.shown((width, height));
            let view = scene.board.navigation().view().title().to_lowercase();
            let name = if key == '?' { "help".to_owned() } else { view };
            insta::assert_snapshot!(format!("{name}-{width}x{height}"), shown);
            assert!(shown.contains(words), "{shown}");
            assert!(shown.lines().count() <= usize::from(height), "{shown}");
        }
    }
}

#[test]
fn a_tiny_terminal_says_what_it_needs_and_a_huge_one_draws() {
    let mut scene = Scene::new(2);
    assert!(scene.shown((30, 8)).contains("80 by 24 is enough"));
    for size in [(40, 10), (1, 1), (500, 200)] {
        scene.shown(size);
    }
}

#[test]
fn twenty_bundles_are_decided_by_two_keys_each_and_recorded_when_they_are_due() {
    let mut scene = Scene::new(20);
    let mut recorded = Vec::new();
    for second in 0..60 {
        let effects = scene.feed(BoardInput::Tick(Duration::from_secs(second)));
        recorded.extend(effects);
        if scene.board.current().is_some() {
            // Items are ticked one by one, and a red gate asks for the reason of an override.
            for key in ['a', 'y', 'y'] {
                recorded.extend(scene.keys(&key.to_string()));
                if scene.board.overlay().is_some() {
                    scene.keys("flaky machine");
                    recorded.extend(scene.feed(BoardInput::Key(BoardKey::Enter)));
                    break;
                }
                if *scene.board.deciding().session().mode() == pdca_workspace::review::KeyMode::Card
                {
                    break;
                }
            }
        }
    }
    let decisions: Vec<String> = recorded
        .iter()
        .flat_map(|effect| {
            let BoardEffect::Record(decisions) = effect else { panic!("{effect:?}") };
            decisions.iter().map(pdca_workspace::review::Decision::command_line).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(decisions.len(), 20, "{decisions:#?}");
    assert!(decisions.contains(&"pdca signoff 1 accept --clear=1".to_owned()), "{decisions:#?}");
    let overridden = "pdca signoff 4 accept --clear=1 --override T3-tests --reason 'flaky machine'";
    assert!(decisions.contains(&overridden.to_owned()), "{decisions:#?}");
}

#[test]
fn an_undone_decision_comes_back_selected_and_is_not_recorded() {
    let mut scene = Scene::new(3);
    scene.keys("ay");
    assert_eq!(scene.board.waiting().len(), 2);
    scene.keys("u");
    assert_eq!(scene.board.waiting().len(), 3);
    assert_eq!(scene.board.current().map(BundleId::as_str), Some("1"));
    assert_eq!(scene.feed(BoardInput::Tick(Duration::from_secs(60))), []);
}

#[test]
fn leaving_with_a_pending_decision_asks_first() {
    let mut scene = Scene::new(2);
    scene.keys("ay");
    assert_eq!(scene.keys("q"), []);
    assert!(scene.shown((80, 24)).contains("pdca signoff 1 accept --clear=1"));
    let effects = scene.feed(BoardInput::Key(BoardKey::Enter));
    assert!(
        matches!(&effects[..], [BoardEffect::Record(all), BoardEffect::Quit] if all.len() == 1),
        "{effects:?}"
    );
    assert_eq!(Scene::new(2).keys("q"), [BoardEffect::Quit]);
}

#[test]
fn a_filter_narrows_the_list_and_escape_widens_it() {
    let mut scene = Scene::new(9);
    scene.keys("/version");
    assert_eq!(scene.board.waiting().len(), 3);
    scene.feed(BoardInput::Key(BoardKey::Enter));
    // Keys are commands again.
    scene.keys("j");
    assert_eq!(scene.board.navigation().selected(), 1);
    scene.feed(BoardInput::Key(BoardKey::Escape));
    assert_eq!(scene.board.waiting().len(), 9);
}

#[test]
fn the_mouse_selects_rows_and_views_and_scrolls() {
    let mut scene = Scene::new(9);
    scene.shown((80, 24));
    scene.feed(BoardInput::Click(5, 4));
    assert_eq!(scene.board.navigation().selected(), 2);
    scene.feed(BoardInput::Scroll(5, 4, 1));
    assert_eq!(scene.board.navigation().selected(), 5);
    scene.feed(BoardInput::Scroll(60, 10, 1));
    scene.shown((80, 24));
    assert!(scene.board.navigation().scroll() > 0);
    scene.feed(BoardInput::Click(13, 0));
    assert_eq!(scene.board.navigation().view(), View::Work);
}

#[test]
fn the_wheel_selects_no_other_bundle_while_a_note_is_typed() {
    let mut scene = Scene::new(9);
    scene.shown((80, 24));
    scene.keys("imind the gap");
    scene.feed(BoardInput::Scroll(5, 4, 1));
    assert_eq!(scene.board.current().map(BundleId::as_str), Some("1"));
    scene.feed(BoardInput::Key(BoardKey::Enter));
    let pending: Vec<String> =
        scene.board.deciding().session().pending().map(Decision::command_line).collect();
    assert_eq!(pending, ["pdca signoff 1 iterate-do --note 'mind the gap'"]);
}

#[test]
fn a_card_asks_for_what_its_keys_say() {
    let mut scene = Scene::new(1);
    let id: BundleId = "1".parse().expect("it is an id");
    assert_eq!(scene.keys("d"), [BoardEffect::Diff(id.clone())]);
    assert_eq!(scene.keys("l"), [BoardEffect::Log(id.clone())]);
    assert_eq!(scene.keys("t"), [BoardEffect::Shell(id.clone())]);
    assert_eq!(scene.keys("e"), [BoardEffect::EditNote(id, String::new())]);
    assert_eq!(scene.feed(BoardInput::Key(BoardKey::Suspend)), [BoardEffect::Suspend]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    /// Whatever is typed, at whatever size, a frame is drawn, and no bundle is recorded twice.
    #[test]
    fn no_keys_break_the_board(keys in "[aipxudltevynbjkgGq123/? zZ]{0,40}", width in 1u16..130, height in 1u16..45) {
        let mut scene = Scene::new(3);
        let mut recorded = Vec::new();
        for (second, key) in (0u64..).zip(keys.chars()) {
            let mut effects = scene.feed(BoardInput::Tick(Duration::from_secs(2 * second)));
            effects.extend(match key {
                'z' => scene.feed(BoardInput::Key(BoardKey::Enter)),
                'Z' => scene.feed(BoardInput::Key(BoardKey::Escape)),
                key => scene.keys(&key.to_string()),
            });
            for effect in effects {
                if let BoardEffect::Record(decisions) = effect {
                    recorded.extend(decisions.into_iter().map(|one| one.id));
                }
            }
            screen(&mut scene.board, width, height, true);
        }
        let count = recorded.len();
        recorded.sort();
        recorded.dedup();
        proptest::prop_assert_eq!(recorded.len(), count);
    }
}
