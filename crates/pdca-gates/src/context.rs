//! What a run of the gates is given: where it is, what it is about, what it may use.

use std::{collections::BTreeMap, error::Error, ffi::OsStr};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Env, OutputCap, Sandbox, Supervisor};
use pdca_state::{Brief, Bundle};

use crate::{
    check::Check,
    config::{Cwd, Scope},
};

/// What a run is for. Decides which rows take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The Check beat of one bundle: every row, and fixes where [`GateContext::may_fix`] says so.
    Bundle,
    /// A tree as it stands, as in continuous integration: rows about the repository.
    WorkingTree,
    /// Several accepted changes together: rows about the repository.
    Combined,
}

impl Purpose {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::WorkingTree => "working-tree",
            Self::Combined => "combined",
        }
    }
}

/// Everything a run needs to know. [`GateContext::new`] fills in "none" and defaults.
#[derive(Debug, Clone)]
pub struct GateContext<'a> {
    /// What the run is for.
    pub purpose: Purpose,
    /// The directory that holds `pdca.toml`.
    pub workspace: &'a Utf8Path,
    /// The directory below which each run of a row has its job directory.
    pub jobs: &'a Utf8Path,
    /// The bundle. Its directory is read by gates. Logs are written into it where
    /// [`GateContext::keep_logs`] says so, and its patch by an accepted fix where [`GateContext::may_fix`] does;
    /// with neither the run writes nothing there.
    pub bundle: Option<&'a Bundle>,
    /// The bundle's brief, for `when`.
    pub brief: Option<&'a Brief>,
    /// The checkout with the patch applied.
    pub worktree: Option<&'a Utf8Path>,
    /// The commit the patch applies to.
    pub base: Option<&'a str>,
    /// The branch the brief names.
    pub brief_base: Option<&'a str>,
    /// The name of the target.
    pub target: Option<&'a str>,
    /// The run.
    pub run: Option<&'a str>,
    /// The private names of the lane, where there are lanes.
    pub lane: Option<&'a LaneNames>,
    /// The digest of the patch, for runs without a [`Tree`] that knows it.
    pub patch_digest: Option<&'a str>,
    /// Whether logs are put into the bundle. Not where its record is frozen. Without it a row's
    /// output is found in its job directory alone.
    pub keep_logs: bool,
    /// Where the logs of rows that are red or could not be decided are put, in runs without a bundle.
    pub logs: Option<&'a Utf8Path>,
    /// Whether a red row's own fix may be tried and become part of the bundle's patch. It counts for
    /// [`Purpose::Bundle`] only.
    pub may_fix: bool,
    /// Credentials of the driver's environment that rows get all the same.
    pub env_pass: Vec<String>,
    /// What the kernel keeps every row and every fix from touching.
    pub sandbox: Option<Sandbox>,
    /// The lock that the supervisor of every row and every fix holds while anything of it is alive.
    pub hold: Option<&'a Utf8Path>,
    /// How many bytes of memory every row and every fix may have.
    pub max_memory: Option<u64>,
    /// Where programs are looked for when a row could not be started.
    pub search_path: Option<&'a OsStr>,
    /// Checkouts of what is judged, whose files are part of the tree.
    pub trees: Vec<Utf8PathBuf>,
    /// Facts about the surroundings that decide what rows say, as in
    /// [`Surroundings::facts`](crate::Surroundings::facts).
    pub facts: BTreeMap<&'static str, Vec<u8>>,
    /// A tree that the rows which gate a repository were green over before, in exactly this form: over this
    /// tree they are not run again.
    pub known_green: Option<&'a str>,
    /// How many rows run at the same time at most.
    pub at_once: usize,
    /// How much of each row's output is kept.
    pub output: OutputCap,
    /// What supervises the rows.
    pub supervisor: Supervisor,
}

/// Names that belong to one lane alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneNames {
    /// The slot.
    pub slot: u32,
    /// The first of the lane's ports.
    pub port_base: Option<u16>,
    /// The name of the lane's test database.
    pub test_db_name: Option<String>,
    /// The lane's project of `docker compose`.
    pub compose_project: Option<String>,
    /// The lane's directory for temporary files.
    pub tmp: Option<Utf8PathBuf>,
}

impl<'a> GateContext<'a> {
    /// A scene with nothing in it but the two directories every run has.
    pub fn new(purpose: Purpose, workspace: &'a Utf8Path, jobs: &'a Utf8Path) -> Self {
        Self {
            purpose,
            workspace,
            jobs,
            bundle: None,
            brief: None,
            worktree: None,
            base: None,
            brief_base: None,
            target: None,
            run: None,
            lane: None,
            patch_digest: None,
            keep_logs: false,
            logs: None,
            may_fix: false,
            env_pass: Vec::new(),
            sandbox: None,
            hold: None,
            max_memory: None,
            search_path: None,
            trees: Vec::new(),
            facts: BTreeMap::new(),
            known_green: None,
            at_once: 4,
            output: OutputCap::default(),
            supervisor: Supervisor::default(),
        }
    }

    /// Whether a row takes part in runs of this purpose.
    pub fn includes(&self, check: &Check) -> bool {
        match (self.purpose, check.scope) {
            (Purpose::Bundle, Scope::Bundle | Scope::Repo)
            | (Purpose::WorkingTree | Purpose::Combined, Scope::Repo) => true,
            (Purpose::WorkingTree | Purpose::Combined, Scope::Bundle) => false,
        }
    }

    /// Where a row runs; `None` where it wants a checkout and there is none.
    pub fn cwd(&self, check: &Check) -> Option<&'a Utf8Path> {
        match check.cwd {
            Cwd::Auto => Some(self.worktree.unwrap_or(self.workspace)),
            Cwd::Workspace => Some(self.workspace),
            Cwd::Worktree => self.worktree,
        }
    }

    /// The name of the report.
    pub(crate) fn name(&self) -> String {
        match (self.bundle, self.purpose) {
            (Some(bundle), _) => bundle.id().dir_name(),
            (None, Purpose::Combined) => "combined".to_owned(),
            (None, Purpose::Bundle | Purpose::WorkingTree) => "working-tree".to_owned(),
        }
    }

    /// The environment of every row: the documented variables that have a value here, and no
    /// other. This is the only place that names them; what the driver itself was given under
    /// such names does not reach a row, and neither do credentials, unless the row judges the user's own
    /// working tree: elsewhere it runs what a builder wrote.
    pub fn env(&self) -> Env {
        let mut set: BTreeMap<&str, String> = BTreeMap::new();
        let mut say = |name, value: Option<String>| {
            if let Some(value) = value {
                set.insert(name, value);
            }
        };
        say("PDCA_WORKSPACE", Some(self.workspace.to_string()));
        say("PDCA_WORKTREE", self.worktree.map(ToString::to_string));
        say("PDCA_RUN", self.run.map(ToOwned::to_owned));
        for (name, value) in self.subject() {
            say(name, Some(value));
        }
        say("PDCA_BUNDLE", self.bundle.map(|bundle| bundle.dir().to_string()));
        if let Some(lane) = self.lane {
            say("PDCA_LANE", Some(lane.slot.to_string()));
            say("PDCA_PORT_BASE", lane.port_base.map(|port| port.to_string()));
            say("PDCA_TEST_DB_NAME", lane.test_db_name.clone());
            say("COMPOSE_PROJECT_NAME", lane.compose_project.clone());
            say("PDCA_TMP", lane.tmp.as_ref().map(ToString::to_string));
        }
        let env = Env {
            withhold_credentials: match self.purpose {
                Purpose::Bundle | Purpose::Combined => true,
                Purpose::WorkingTree => false,
            },
            pass: self.env_pass.iter().map(Into::into).collect(),
            ..Env::default()
        };
        set.into_iter().fold(env, |env, (name, value)| env.with(name, value))
    }

    /// The variables that say what a row is about, and so decide what it says. The others only
    /// say where it is, and change from one run to the next.
    pub(crate) fn subject(&self) -> Vec<(&'static str, String)> {
        [
            ("PDCA_ISSUE", self.bundle.map(|bundle| bundle.id().to_string())),
            ("PDCA_BASE", self.base.map(ToOwned::to_owned)),
            ("PDCA_BRIEF_BASE", self.brief_base.map(ToOwned::to_owned)),
            ("PDCA_TARGET", self.target.map(ToOwned::to_owned)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// Why something could not be done to a checkout, or told about it.
pub type TreeFault = Box<dyn Error + Send + Sync>;

/// A change as it stands in a checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The id of the tree that base and patch make.
    pub tree: String,
    /// The digest of the patch.
    pub patch_digest: Option<String>,
}

/// The checkout that rows run against, in the hands of whoever owns it.
///
/// A row counts only for the tree it ran on. So before each row the checkout is made equal to
/// the expected change and proved so by its id, and after each row no tracked file may differ.
/// Files that git ignores stay, so that a build in the checkout stays warm.
pub trait Tree {
    /// The change that is being checked.
    fn expected(&self) -> Change;

    /// Whether the checkout is as the last row of an earlier run left it, because nobody has
    /// touched it since. Then that row's verdict can still be tied to it, and need not be paid for
    /// twice. Whoever cannot tell says no.
    fn is_as_left(&self) -> bool {
        false
    }

    /// Makes the checkout exactly the expected tree and gives the id of what is then there,
    /// read back from the files. For a tree that is nobody's to reset it only reads.
    fn prepare(&mut self) -> Result<String, TreeFault>;

    /// As [`Self::prepare`], with nothing left of what ran before: for a row that is asked once more.
    fn prepare_anew(&mut self) -> Result<String, TreeFault> {
        self.prepare()
    }

    /// Tracked files that differ from the expected tree.
    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault>;

    /// Makes what is in the checkout now the expected change, until it is accepted or withdrawn.
    /// The bundle's files stay as they are.
    fn propose(&mut self) -> Result<Change, TreeFault>;

    /// Keeps the proposed change for good: from now on it is the bundle's patch.
    fn accept(&mut self) -> Result<(), TreeFault>;

    /// Goes back to the change that was expected before the proposal.
    fn withdraw(&mut self) -> Result<(), TreeFault>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::check;

    fn names(env: &Env) -> Vec<String> {
        let names = env.set.keys().map(|name| name.to_string_lossy().into_owned());
        names.collect()
    }

    #[test]
    fn lesson_14_only_documented_variables_with_a_value_are_set() {
        let here = Utf8Path::new("/w");
        let mut context = GateContext::new(Purpose::WorkingTree, here, here);
        assert_eq!(names(&context.env()), ["PDCA_WORKSPACE"]);

        let bundle = Bundle::at("/w/results/issue_36").unwrap();
        let lane = LaneNames {
            slot: 2,
            port_base: Some(4020),
            test_db_name: Some("test_x_l2".to_owned()),
            compose_project: Some("pdca_x_l2".to_owned()),
            tmp: Some("/t".into()),
        };
        context.bundle = Some(&bundle);
        context.worktree = Some(Utf8Path::new("/lane"));
        (context.base, context.brief_base) = (Some("abc"), Some("main"));
        (context.target, context.run) = (Some("own/repo"), Some("01H"));
        context.lane = Some(&lane);
        let env = context.env();
        assert_eq!(
            names(&env),
            [
                "COMPOSE_PROJECT_NAME",
                "PDCA_BASE",
                "PDCA_BRIEF_BASE",
                "PDCA_BUNDLE",
                "PDCA_ISSUE",
                "PDCA_LANE",
                "PDCA_PORT_BASE",
                "PDCA_RUN",
                "PDCA_TARGET",
                "PDCA_TEST_DB_NAME",
                "PDCA_TMP",
                "PDCA_WORKSPACE",
                "PDCA_WORKTREE",
            ]
        );
        let value = |name: &str| env.set[OsStr::new(name)].to_string_lossy().into_owned();
        assert_eq!(value("PDCA_ISSUE"), "36");
        assert_eq!(value("PDCA_BUNDLE"), "/w/results/issue_36");
        assert_eq!(value("PDCA_LANE"), "2");
    }

    #[test]
    fn a_bundle_gets_all_rows_and_a_tree_those_about_the_repository() {
        let here = Utf8Path::new("/w");
        let (bundle, repo) = (check("scope = 'bundle'"), check("scope = 'repo'"));
        for (purpose, bundles) in
            [(Purpose::Bundle, true), (Purpose::WorkingTree, false), (Purpose::Combined, false)]
        {
            let context = GateContext::new(purpose, here, here);
            assert_eq!(context.includes(&bundle), bundles, "{purpose:?}");
            assert!(context.includes(&repo), "{purpose:?}");
        }
    }

    #[test]
    fn a_row_that_wants_a_checkout_never_runs_elsewhere() {
        let here = Utf8Path::new("/w");
        let mut context = GateContext::new(Purpose::Bundle, here, here);
        assert_eq!(context.cwd(&check("cwd = 'worktree'")), None);
        assert_eq!(context.cwd(&check("")), Some(here));
        context.worktree = Some(Utf8Path::new("/lane"));
        assert_eq!(context.cwd(&check("cwd = 'worktree'")), context.worktree);
        assert_eq!(context.cwd(&check("")), context.worktree);
        assert_eq!(context.cwd(&check("cwd = 'workspace'")), Some(here));
    }
}
