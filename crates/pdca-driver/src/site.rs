//! Everything a driver is given, read and checked before anything starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use pdca_gates::Rows;
use pdca_journal::Runs;
use pdca_lanes::{HydrateConfig, Kind, Lanes, Note, PortRange, Reset};
use pdca_leaves::Leaves;
use pdca_process::{SandboxMode, Supervisor, wait_until_free};
use pdca_state::{Brief, BundleId, BundleRoot, sha256_hex};

use crate::admission::{AdmissionError, Held, admit, holder};
use crate::attempt::{Attempts, Tenancy};
use crate::batch::Pace;
use crate::ground::CLEARING;
use crate::integrate::FIRST_SLOT;
use crate::job::Jobs;
use crate::schedule::Schedule;

/// How long what a killed driver left behind may take to die. Its supervisors give it less.
const PATIENCE: Duration = Duration::from_secs(20);

/// A workspace as the driver sees it.
#[derive(Clone, Debug)]
pub struct Site {
    /// The directory that holds `pdca.toml`.
    pub workspace: Utf8PathBuf,
    /// Where the bundles are.
    pub bundles: BundleRoot,
    /// The configured gates.
    pub rows: Rows,
    /// Whether the kernel keeps gates from the bundles, the lanes and the primary checkouts.
    pub gate_sandbox: SandboxMode,
    /// The configured leaves.
    pub leaves: Leaves,
    /// Whether stubs stand in for every leaf, whatever is configured.
    pub force_stubs: bool,
    /// The repositories under change.
    pub targets: Vec<TargetSpec>,
    /// The branch to build on where neither brief nor target names one.
    pub default_branch: Option<String>,
    /// The private checkouts.
    pub lanes: LaneSettings,
    /// The words of a disposition hint that mean "no fix".
    pub close_words: Vec<String>,
    /// How declarations become a plan.
    pub schedule: Schedule,
    /// How accepted changes come together, as configured.
    pub integrate: crate::integrate::Settings,
    /// Where programs are looked for.
    pub search_path: Option<OsString>,
    /// Which program supervises children.
    pub supervisor: Supervisor,
    /// The name of this run, for `PDCA_RUN`.
    pub run: String,
    /// A digest of the configuration, for the record.
    pub config_digest: String,
    /// What keeps a run within bounds.
    pub limits: RunLimits,
    /// Who drives, for the people who find a lock taken.
    pub holder: String,
}

/// What keeps a run within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// How long drivers may be at work on it.
    pub max_duration: Duration,
    /// How many leaves it may call; none is no limit.
    pub max_leaf_calls: Option<u64>,
    /// How many bytes have to stay free on the disk for another bundle to start; 0 is not looked at.
    pub min_free: u64,
    /// How many bytes of memory a lane is reckoned with; 0 is not looked at.
    pub lane_memory: u64,
    /// How many bytes of memory a leaf, a gate or a command of hydration may have; none is no cap.
    pub leaf_memory: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_duration: Duration::from_secs(4 * 60 * 60),
            max_leaf_calls: None,
            min_free: 1 << 30,
            lane_memory: 256 << 20,
            leaf_memory: None,
        }
    }
}

/// The private checkouts, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Where they are.
    pub root: Utf8PathBuf,
    /// What they are.
    pub kind: Kind,
    /// What is left in one when another bundle begins there.
    pub reset: Reset,
    /// What one needs beyond what git tracks.
    pub hydrate: HydrateConfig,
    /// The ports they may have.
    pub ports: PortRange,
}

impl LaneSettings {
    /// Lanes below `root`, all else as by default.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        Self {
            root: root.into(),
            kind: Kind::default(),
            reset: Reset::default(),
            hydrate: HydrateConfig::default(),
            ports: PortRange::default(),
        }
    }
}

/// What stands between a holder's name and its lane, in the text of a bundle's lock.
const IN_LANE: &str = ", lane ";

/// Somebody at work on a bundle, by their own word. That somebody is, the kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtWork {
    /// Who.
    pub holder: String,
    /// In which lane, where there are several.
    pub lane: Option<u32>,
    /// Since when, where the file system tells.
    pub since: Option<std::time::SystemTime>,
}

/// A repository under change, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSpec {
    /// Its name, which is also a directory name.
    pub name: String,
    /// Its primary checkout.
    pub path: Utf8PathBuf,
    /// How briefs name it, as `owner/repo`.
    pub repo: Option<String>,
    /// The branch to build on where the brief names none.
    pub branch: Option<String>,
}

/// Why it is not known where a bundle is to be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetChoiceError {
    /// The brief names a repository that is not configured.
    #[error("no target is configured for `{repo}`, which the brief names in line {line}")]
    Unknown {
        /// What the brief says.
        repo: String,
        /// Where it says so.
        line: usize,
        /// The targets there are.
        configured: Vec<String>,
    },
    /// The brief names none, and there are several.
    #[error("the brief names no target, and several are configured")]
    Ambiguous {
        /// The targets there are.
        configured: Vec<String>,
    },
}

impl Site {
    /// Where jobs are.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.private().join("jobs"))
    }

    /// The runs of the workspace.
    pub fn runs(&self) -> Runs {
        Runs::new(self.private().join("runs"))
    }

    /// The integrations of the workspace, each recorded as a run of its own.
    pub fn integrations(&self) -> Runs {
        Runs::new(self.private().join("integrations"))
    }

    /// How long bundles took here.
    pub(crate) fn pace(&self) -> Pace {
        Pace::new(self.private().join("pace"))
    }

    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::new(self.private().join("attempts"))
    }

    /// The lanes, to be lent.
    pub(crate) fn lent(&self) -> Lanes {
        Lanes::new(&self.lanes.root).of_kind(self.lanes.kind)
    }

    /// The slot in which each bundle's latest work lies, for those that have any in a lane.
    ///
    /// A lane that says nothing readable is nobody's: what is lost by that is a shortcut.
    pub(crate) fn homes(&self) -> BTreeMap<BundleId, u32> {
        let workspace = self.mark();
        let mut notes = self.lent().notes().unwrap_or_default();
        notes.sort_by_key(|note| note.written);
        let home = |note: Note| {
            if note.slot >= FIRST_SLOT {
                return None;
            }
            let job = Tenancy::from_note(&note.text)?.job;
            Some((owner(&job, &workspace)?, note.slot))
        };
        notes.into_iter().filter_map(home).collect()
    }

    /// Work in lanes that no commit of ours holds, of the bundles of this workspace.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let workspace = self.mark();
        let of = |note: Note| {
            let tenancy = Tenancy::from_note(&note.text)?;
            // The slots above are those of integrations and resolvers, which keep their own.
            let is_unfinished =
                tenancy.head.is_none() && tenancy.job != CLEARING && note.slot < FIRST_SLOT;
            let bundle = owner(&tenancy.job, &workspace).filter(|_| is_unfinished)?;
            let (slot, target) = (note.slot, note.target);
            Some(Unfinished { bundle, slot, target, job: tenancy.job })
        };
        self.lent().notes().unwrap_or_default().into_iter().filter_map(of).collect()
    }

    /// Whose work lies in a lane, by the note beside it.
    pub fn tenant(&self, slot: u32, target: &str) -> Tenant {
        let notes = self.lent().notes().unwrap_or_default();
        let note = notes.into_iter().find(|note| note.slot == slot && note.target == target);
        match note.and_then(|note| Tenancy::from_note(&note.text)) {
            None => Tenant::Nobody,
            Some(tenancy) if tenancy.job == CLEARING => Tenant::Nobody,
            Some(tenancy) if tenancy.job.starts_with(&format!("{COMBINED}{}-", self.mark())) => {
                Tenant::Combination
            }
            Some(tenancy) => {
                owner(&tenancy.job, &self.mark()).map_or(Tenant::Stranger, Tenant::Bundle)
            }
        }
    }

    /// Tells the work of this workspace from that of another with the same lanes.
    pub(crate) fn mark(&self) -> String {
        sha256_hex(self.workspace.as_str().as_bytes())[..8].to_owned()
    }

    /// Trees that no leaf writes, whatever its role: every primary checkout and all lanes. A leaf's
    /// own checkout lies among the lanes and is opened again for it.
    pub(crate) fn kept(&self) -> Vec<Utf8PathBuf> {
        let primaries = self.targets.iter().map(|target| target.path.clone());
        primaries.chain([self.lanes.root.clone()]).collect()
    }

    /// What the driver itself writes where a primary checkout might be.
    pub(crate) fn own(&self) -> Vec<Utf8PathBuf> {
        vec![self.private(), self.bundles.path().to_owned()]
    }

    /// The lock that every supervisor holds while anything of its child is alive.
    pub fn children(&self) -> Utf8PathBuf {
        self.private().join("children.lock")
    }

    /// The driver's own directory, which no leaf may touch.
    pub fn private(&self) -> Utf8PathBuf {
        self.workspace.join(".pdca")
    }

    /// Admits one driver to the workspace, for as long as the guard lives.
    ///
    /// What an earlier driver started and left behind is waited for: it may still be writing.
    pub fn admit(&self) -> Result<Held, AdmissionError> {
        let held = admit(&self.private().join("driver.lock"), "the workspace", &self.holder)?;
        wait_until_free(&self.children(), PATIENCE)?;
        Ok(held)
    }

    /// Waits, for a while, until nothing that an earlier driver started is alive. Takes no lock.
    pub fn wait_for_children(&self) -> Result<(), AdmissionError> {
        Ok(wait_until_free(&self.children(), PATIENCE)?)
    }

    /// Whether a driver is at work, without disturbing it: its own word, if so.
    pub fn driver_at_work(&self) -> Result<Option<String>, AdmissionError> {
        holder(&self.private().join("driver.lock"))
    }

    /// Takes one bundle, so that nobody else writes it meanwhile.
    pub fn take(&self, id: &BundleId) -> Result<Held, AdmissionError> {
        self.take_for(id, None)
    }

    /// As [`Self::take`], for a person: one who decides about a bundle the moment it is ready finds
    /// the driver still putting its things away, and need not try again by hand.
    pub fn take_within(&self, id: &BundleId, patience: Duration) -> Result<Held, AdmissionError> {
        let begun = Instant::now();
        loop {
            match self.take(id) {
                Err(AdmissionError::Taken { .. }) if begun.elapsed() < patience => {
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                answer => return answer,
            }
        }
    }

    /// As [`Self::take`], saying in which lane it is worked on.
    pub(crate) fn take_for(
        &self,
        id: &BundleId,
        lane: Option<u32>,
    ) -> Result<Held, AdmissionError> {
        let holder = match lane {
            Some(lane) => format!("{}{IN_LANE}{lane}", self.holder),
            None => self.holder.clone(),
        };
        admit(&self.lock_of(id), &id.dir_name(), &holder)
    }

    /// Who has a bundle right now, without disturbing them.
    pub fn at_work_on(&self, id: &BundleId) -> Result<Option<AtWork>, AdmissionError> {
        let path = self.lock_of(id);
        let Some(holder) = holder(&path)? else { return Ok(None) };
        // Whoever took the lock wrote its file then.
        let since = fs_err::metadata(&path).and_then(|found| found.modified()).ok();
        let lane = holder.rsplit_once(IN_LANE).and_then(|(_, lane)| lane.parse().ok());
        Ok(Some(AtWork { holder, lane, since }))
    }

    fn lock_of(&self, id: &BundleId) -> Utf8PathBuf {
        self.private().join("locks").join(format!("{}.lock", id.dir_name()))
    }

    /// The target a brief is about; `None` where no target is configured at all.
    pub fn target_of(&self, brief: &Brief) -> Result<Option<TargetSpec>, TargetChoiceError> {
        let configured = || self.targets.iter().map(|target| target.name.clone()).collect();
        let Some(named) = brief.repo_target() else {
            return match self.targets.as_slice() {
                [] => Ok(None),
                [only] => Ok(Some(only.clone())),
                [..] => Err(TargetChoiceError::Ambiguous { configured: configured() }),
            };
        };
        let found = self.targets.iter().find(|target| target.answers_to(&named.repo)).cloned();
        match (found, self.targets.as_slice()) {
            (Some(found), _) => Ok(Some(found)),
            (None, []) => Ok(None),
            (None, [..]) => Err(TargetChoiceError::Unknown {
                line: brief.field("repo + branch target").map_or(0, |field| field.line),
                repo: named.repo,
                configured: configured(),
            }),
        }
    }

    /// The branch of a target that a brief is about; `None` where nobody names one.
    pub(crate) fn branch_of(&self, brief: &Brief, target: &TargetSpec) -> Option<String> {
        let onto = brief.onto_branch().map(|onto| format!("{}/{}", onto.remote, onto.branch));
        let named = || brief.repo_target().and_then(|named| named.branch);
        onto.or_else(named)
            .or_else(|| target.branch.clone())
            .or_else(|| self.default_branch.clone())
    }
}

/// What begins the name of a combination that lies in a lane.
pub(crate) const COMBINED: &str = "combined-";

/// Whose work lies in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenant {
    /// Nobody's.
    Nobody,
    /// That of a bundle of this workspace.
    Bundle(BundleId),
    /// A combination of accepted changes, which an integration of this workspace gated.
    Combination,
    /// That of another workspace, or nobody knows whose.
    Stranger,
}

/// Work in a lane that no commit of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) bundle: BundleId,
    pub(crate) slot: u32,
    pub(crate) target: String,
    /// The job that did it.
    pub(crate) job: String,
}

/// The bundle whose work a note of a lane names: `<workspace>-<id>-<kind>-<digest>`.
pub(crate) fn owner(job: &str, workspace: &str) -> Option<BundleId> {
    let rest = job.strip_prefix(workspace)?.strip_prefix('-')?;
    let mut parts = rest.rsplitn(3, '-');
    let (_digest, _kind) = (parts.next()?, parts.next()?);
    parts.next()?.parse().ok()
}

impl TargetSpec {
    /// Whether a brief that says `repo` means this target.
    fn answers_to(&self, repo: &str) -> bool {
        self.repo.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(repo))
            || self.name.eq_ignore_ascii_case(repo)
            || self.repo.is_none() && repo.rsplit('/').next() == Some(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, repo: Option<&str>) -> TargetSpec {
        TargetSpec {
            name: name.into(),
            path: format!("/{name}").into(),
            repo: repo.map(Into::into),
            branch: None,
        }
    }

    fn chosen(targets: &[TargetSpec], brief: &str) -> Result<Option<String>, TargetChoiceError> {
        let site = Site {
            workspace: "/w".into(),
            bundles: BundleRoot::new("/w/results"),
            rows: Rows::default(),
            gate_sandbox: SandboxMode::Auto,
            leaves: Leaves::default(),
            force_stubs: false,
            targets: targets.to_vec(),
            default_branch: None,
            lanes: LaneSettings::at("/w.lanes"),
            close_words: Vec::new(),
            schedule: Schedule::default(),
            integrate: crate::integrate::Settings::default(),
            search_path: None,
            supervisor: Supervisor::default(),
            run: "r".into(),
            config_digest: String::new(),
            limits: RunLimits::default(),
            holder: "h".into(),
        };
        Ok(site.target_of(&Brief::parse(brief))?.map(|target| target.name))
    }

    #[test]
    fn whose_work_lies_in_a_lane_is_read_from_its_note() {
        let of = |job: &str| owner(job, "0a1b2c3d").map(|id| id.to_string());
        assert_eq!(of("0a1b2c3d-7-builder-00ff").as_deref(), Some("7"));
        assert_eq!(of("0a1b2c3d-PROJ-12-builder-00ff").as_deref(), Some("PROJ-12"));
        assert_eq!(of("0a1b2c3d-PROJ-12-abc123-00ff").as_deref(), Some("PROJ-12"));
        assert_eq!(of("99999999-7-builder-00ff"), None, "another workspace");
        assert_eq!(of("clearing"), None);
    }

    #[test]
    fn a_brief_finds_its_target() {
        let (a, b) = (target("a", Some("team/a")), target("b", None));
        let both = [a.clone(), b.clone()];
        let says =
            |repo: &str| format!("- **Slug:** x\n- **Repo + branch target:** {repo} @ main\n");
        let silent = "- **Slug:** x\n";
        assert_eq!(chosen(&[], &says("team/a")), Ok(None));
        assert_eq!(chosen(&both, &says("Team/A")), Ok(Some("a".into())));
        assert_eq!(chosen(&both, &says("b")), Ok(Some("b".into())));
        assert_eq!(chosen(&both, &says("team/b")), Ok(Some("b".into())));
        assert!(
            chosen(&[b], &says("team/c")).is_err(),
            "another repository is not built in this one"
        );
        assert_eq!(chosen(std::slice::from_ref(&a), silent), Ok(Some("a".into())));
        let configured = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            chosen(&both, silent),
            Err(TargetChoiceError::Ambiguous { configured: configured.clone() })
        );
        assert_eq!(
            chosen(&both, &says("team/c")),
            Err(TargetChoiceError::Unknown { repo: "team/c".into(), line: 2, configured })
        );
        assert!(chosen(&[a], &says("team/c")).is_err());
    }
}
