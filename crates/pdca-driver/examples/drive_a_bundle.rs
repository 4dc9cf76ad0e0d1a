//! Drives one bundle of a workspace until a person is due, in a lane of its own.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use camino::Utf8Path;
use pdca_driver::{BundleEnd, Driver, TargetSpec, WorkspaceConfig};
use pdca_journal::events::EventStream;
use pdca_process::Cancel;
use pdca_state::BundleId;

type Failure = Box<dyn std::error::Error>;

/// Builds a bundle with `builder` on the repository beside the workspace, and gates it.
pub(crate) fn drive(
    workspace: &Utf8Path,
    id: &BundleId,
    builder: &str,
) -> Result<BundleEnd, Failure> {
    let mut config = WorkspaceConfig::new(workspace, "embedded", || 1_700_000_000);
    config.rows = serde_json::from_str(
        r#"{"checks": [{"id": "T1-words", "tier": "T1", "cmd": "! grep -rn TODO ."}]}"#,
    )?;
    config.leaves.builder = serde_json::from_value(
        serde_json::json!({"mode": "command", "argv": ["sh", "-c", builder]}),
    )?;
    let path = workspace.with_file_name("app");
    config.targets = vec![TargetSpec { name: "app".to_owned(), path, repo: None, branch: None }];
    let (cancel, now) = (Cancel::new(), || jiff::Timestamp::UNIX_EPOCH);
    let events = EventStream::new(now, |event| println!("{event:?}"));
    let _admitted = config.locks().admit()?;
    Ok(Driver::new(&config, &events, &cancel).run_bundle(&config.dirs.bundles.bundle(id))?)
}

fn main() -> Result<(), Failure> {
    pdca_process::maybe_supervise();
    let mut words = std::env::args().skip(1);
    let (Some(workspace), Some(id), Some(builder)) = (words.next(), words.next(), words.next())
    else {
        return Err("usage: drive_a_bundle WORKSPACE ID COMMAND".into());
    };
    let end = drive(Utf8Path::new(&workspace), &id.parse()?, &builder)?;
    println!("{:?} after {} steps", end.halt, end.steps);
    Ok(())
}
