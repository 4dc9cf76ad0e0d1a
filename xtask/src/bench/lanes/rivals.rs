//! Other ways to make checkouts.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Stopped, program};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Rival {
    /// `git clone --reference`, one after the other
    Clone,
    /// `git worktree add`, one after the other
    Worktree,
    /// The same with as many workers as git likes
    WorktreeWorkers,
    /// `git clone --reference`, two at a time
    TwoAtATime,
    /// `cp -a`
    Copy,
}

impl Rival {
    pub(super) const ALL: [Self; 5] =
        [Self::Clone, Self::Worktree, Self::WorktreeWorkers, Self::TwoAtATime, Self::Copy];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clone => "git clone --reference",
            Self::Worktree => "git worktree add",
            Self::WorktreeWorkers => "git worktree add, checkout.workers=0",
            Self::TwoAtATime => "git clone --reference, two at a time",
            Self::Copy => "cp -a",
        }
    }

    /// The aimed ratio to this rival's time, for a small or a large repository.
    pub(super) fn aim(self, lanes: u32, large: bool) -> Option<f64> {
        match (self, lanes, large) {
            (Self::Worktree, 1, _) | (Self::TwoAtATime, 8, false) => Some(0.5),
            (Self::Worktree, 4, true) => Some(1.0 / 2.8),
            (Self::TwoAtATime, 4, true) => Some(1.0 / 1.6),
            (Self::Worktree, 8, false) => Some(0.25),
            (
                Self::Clone
                | Self::Worktree
                | Self::WorktreeWorkers
                | Self::TwoAtATime
                | Self::Copy,
                _,
                _,
            ) => None,
        }
    }

    /// Makes this many checkouts of the primary in the directory.
    pub(super) fn run(self, primary: &Utf8Path, dir: &Utf8Path, count: u32) -> Result<(), Stopped> {
        let places: Vec<Utf8PathBuf> = (0..count).map(|at| dir.join(at.to_string())).collect();
        let at_once = if matches!(self, Self::TwoAtATime) { 2 } else { 1 };
        for places in places.chunks(at_once) {
            let mut running = Vec::new();
            for place in places {
                let (program, args) = self.command(primary, place);
                running.push(program::command(program, &args, primary).spawn()?);
            }
            for mut child in running {
                if !child.wait()?.success() {
                    return Err(format!("{} failed", self.name()).into());
                }
            }
        }
        Ok(())
    }

    fn command<'a>(
        self,
        primary: &'a Utf8Path,
        place: &'a Utf8Path,
    ) -> (&'static str, Vec<&'a str>) {
        let (primary, place) = (primary.as_str(), place.as_str());
        match self {
            // Not worktrees: two `git worktree add` at once conflict over their registration.
            Self::Clone | Self::TwoAtATime => {
                ("git", vec!["clone", "-q", "--reference", primary, primary, place])
            }
            Self::Worktree => ("git", vec!["worktree", "add", "-q", "--detach", place]),
            Self::WorktreeWorkers => (
                "git",
                vec!["-c", "checkout.workers=0", "worktree", "add", "-q", "--detach", place],
            ),
            Self::Copy => ("cp", vec!["-a", primary, place]),
        }
    }

    /// Prunes worktrees whose directory is gone.
    pub(super) fn clear(primary: &Utf8Path) -> Result<(), Stopped> {
        program::output("git", &["worktree", "prune"], primary)?;
        Ok(())
    }
}
