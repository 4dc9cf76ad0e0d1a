//! The cost of a sandbox per child.

use std::time::Instant;

use camino::Utf8Path;
use pdca_process::{
    Cancel, Sandbox, SandboxKind, SandboxMode, Spec, bwrap_support, sandbox_support,
};

use super::measure::median;
use super::report::{Against, BenchLine, BenchUnit};
use crate::Stopped;

/// The aims for the additional time of a child, in milliseconds.
const AIMS: [(&str, SandboxMode, f64); 2] =
    [("Landlock", SandboxMode::Landlock, 2.0), ("bwrap", SandboxMode::Bwrap, 12.0)];

/// Measures `true` under a supervisor, unconfined and in each sandbox that this host has. The closed tree has
/// others beside it, as in a workspace.
pub(super) fn measure(repeat: usize, scratch: &Utf8Path) -> Result<Vec<BenchLine>, Stopped> {
    eprintln!("confinement");
    let dir = scratch.join("confine");
    for name in ["closed", "open", "job"] {
        fs_err::create_dir_all(dir.join(name))?;
    }
    let has_landlock = matches!(sandbox_support(), SandboxKind::Landlock { .. });
    let has =
        |mode| if mode == SandboxMode::Bwrap { bwrap_support().is_ok() } else { has_landlock };
    let mut lines = Vec::new();
    for (name, mode, aim) in AIMS.into_iter().filter(|(_, mode, _)| has(*mode)) {
        let (mut free, mut confined) = (Vec::new(), Vec::new());
        for _ in 0..repeat {
            free.push(once(&dir, SandboxMode::Off)?);
            confined.push(once(&dir, mode)?);
        }
        let free = super::ms(median(&free));
        lines.push(BenchLine {
            what: format!("a child behind {name}"),
            unit: BenchUnit::Milliseconds,
            measured: super::ms(median(&confined)),
            against: Some(Against { what: "the same, free".to_owned(), measured: free }),
            aim: Some(free + aim),
        });
    }
    Ok(lines)
}

fn once(dir: &Utf8Path, mode: SandboxMode) -> Result<std::time::Duration, Stopped> {
    let mut spec = Spec::new(["true"], dir.join("open"), dir.join("job"));
    let sandbox = Sandbox::new(mode).no_write([dir.join("closed")]);
    spec.sandbox = Some(sandbox.write([dir.join("open")]));
    let begun = Instant::now();
    pdca_process::run(&spec, &Cancel::new(), &mut |_| {})?;
    Ok(begun.elapsed())
}
