//! `cargo xtask bench board`: the time of a frame, and of the reading behind it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use pdca_cli::board::{Board, BoardData, BoardEffect, BoardInput, BoardKey, Theme, draw};
use pdca_state::{Awaits, Bundle, BundleRoot};
use pdca_workspace::review::{Card, CardSource};
use pdca_workspace::snapshot::{SnapshotSource, WorkspaceSnapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::note_load;
use crate::Stopped;

/// Measure the frames of the board
///
/// Every frame follows a key that selects the next bundle, at 200 by 60, with the diff against the frame before. Asserts
/// nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of bundles that wait for sign-off
    #[arg(long, default_value_t = 500)]
    bundles: usize,
    /// The number of frames
    #[arg(long, default_value_t = 2_000)]
    frames: usize,
}

pub(super) fn measure(args: &Args) -> Result<(), Stopped> {
    note_load();
    let scratch = tempfile::tempdir()?;
    let root = Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    for number in 1..=args.bundles {
        lay_out(root, number)?;
    }
    let bundles = BundleRoot::new(root);
    let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
    let begun = Instant::now();
    let snapshot = WorkspaceSnapshot::load(source)?;
    let now = jiff::Timestamp::UNIX_EPOCH;
    let data = Arc::new(BoardData::load("bench", &snapshot, None, root, now));
    let reading = begun.elapsed();

    let mut board = Board::new(pdca_workspace::review::UNDO_WINDOW);
    let mut terminal = Terminal::new(TestBackend::new(200, 60))?;
    let mut inputs = vec![BoardInput::Data(Arc::clone(&data))];
    let (mut frames, mut cards) = (Vec::new(), Vec::new());
    for number in 0..args.frames {
        let key =
            if (number / args.bundles).is_multiple_of(2) { BoardKey::Down } else { BoardKey::Up };
        inputs.push(BoardInput::Key(key));
        let begun = Instant::now();
        let effects: Vec<BoardEffect> =
            inputs.drain(..).flat_map(|input| board.update(input)).collect();
        terminal.draw(|frame| draw(frame, &mut board, Theme { colours: true }))?;
        frames.push(begun.elapsed());
        // The worker reads the card meanwhile; a new reading of everything comes once a second.
        for effect in effects {
            if let BoardEffect::LoadCard(id) = effect {
                let begun = Instant::now();
                let bundle = Bundle::at(root.join(id.dir_name()))?;
                let card = Card::load(CardSource { snapshot: &snapshot, config: None }, &bundle)?;
                cards.push(begun.elapsed());
                inputs.push(BoardInput::Card(id, Ok(Arc::new(card))));
            }
        }
        if number % 30 == 0 {
            inputs.push(BoardInput::Data(Arc::clone(&data)));
        }
    }
    println!("{} bundles, {} frames at 200 by 60", args.bundles, args.frames);
    println!("frame:   {}", shown(frames));
    println!("card:    {} (on the worker's thread)", shown(cards));
    println!("reading: {:.1} ms (on the worker's thread, once a second)", ms(reading));
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len().saturating_sub(1) * share / 100).copied();
    let mut text = String::new();
    for (name, share) in [("median", 50), ("p95", 95), ("p99", 99), ("longest", 100)] {
        let time = at(share).unwrap_or_default();
        write!(text, "{name} {:.2} ms  ", ms(time)).expect("because a string takes any text");
    }
    text.trim_end().to_owned()
}

/// Makes a bundle that waits for sign-off.
fn lay_out(root: &Utf8Path, number: usize) -> Result<(), Stopped> {
    let dir = root.join(format!("issue_{number}"));
    fs_err::create_dir_all(&dir)?;
    let brief = format!(
        "# Brief: issue {number}\n\n- **Slug:** change-{number}\n- **Defect (Goal):** the thing is wrong in a way that takes a line to say\n\
         - **Success criterion:** the thing is right\n- **Disposition hint:** fix\n"
    );
    fs_err::write(dir.join("brief.md"), brief)?;
    let patch: Vec<String> = (0..200).map(|line| format!("+line {line}\n")).collect();
    let patch = patch.concat();
    let patch = format!("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,200 @@\n{patch}");
    let digest = pdca_state::sha256_hex(patch.as_bytes());
    fs_err::write(dir.join("patch.diff"), patch)?;
    let rows: Vec<String> = ["C2", "C4", "T1", "T2", "T3", "T4"].iter().map(|row| format!(
        r#"{{"check": "{row} a check", "result": "pass", "oracle": "make", "rule_id": "{row}-rule", "path_line": "all is well", "gating": true, "element": "{row}"}}"#
    )).collect();
    let gates = format!(
        r#"{{"issue_dir": "issue_{number}", "overall": "pass", "patch_digest": "{digest}", "rows": [{}]}}"#,
        rows.join(",")
    );
    fs_err::write(dir.join("check-gates.json"), gates)?;
    let rows: Vec<String> =
        (0..11).map(|row| format!("| T{row} Item | PASS | Looked at all of it. |\n")).collect();
    let rows = rows.concat();
    fs_err::write(
        dir.join("check-review.md"),
        format!("| Item | Verdict | Basis |\n|---|---|---|\n{rows}"),
    )?;
    let summary = "# Result — issue / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n- [ ] V Validation — fitness-to-purpose — Is this what they want?\n\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome:\n- Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n";
    Ok(fs_err::write(dir.join("SUMMARY.md"), summary)?)
}
