//! The inputs of a run of the gates: directories, change, bundle, limits.

use std::{collections::BTreeMap, error::Error, ffi::OsStr};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_dag::Pattern;
use pdca_process::{Env, OutputCap, Sandbox, Supervisor};
use pdca_state::{Brief, Bundle, GateResult};

use crate::{
    check::Check,
    config::{CheckScope, Cwd},
    home::GateHome,
    verdict::CheckFinding,
};

/// Variables whose values differ between a bundle and a combination with the same tree, or from one lane to another. A
/// verdict of a check that gets one of them counts only where it was given.
pub const CHANGING: [&str; 10] = [
    "PDCA_ISSUE",
    "PDCA_BUNDLE",
    "PDCA_BASE",
    "PDCA_BRIEF_BASE",
    "PDCA_RUN",
    "PDCA_LANE",
    "PDCA_PORT_BASE",
    "PDCA_TEST_DB_NAME",
    "COMPOSE_PROJECT_NAME",
    "PDCA_TMP",
];

/// The purpose of a run, which decides which checks take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The Check beat of one bundle: every check, and fixes if [`GateContext::may_fix`] is set.
    Bundle,
    /// A tree as it is, as in continuous integration: checks about the repository.
    WorkingTree,
    /// Several accepted changes together: checks about the repository.
    Combined,
}

impl Purpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::WorkingTree => "working-tree",
            Self::Combined => "combined",
        }
    }
}

/// All inputs of a run. [`GateContext::new`] sets the optional ones to none or a default.
#[derive(Debug, Clone)]
pub struct GateContext<'a> {
    pub purpose: Purpose,
    /// The directory of `pdca.toml`.
    pub workspace: &'a Utf8Path,
    /// The directory that contains the job directory of each run of a check.
    pub jobs: &'a Utf8Path,
    /// The bundle, whose directory checks may read. The run writes logs into it if [`GateContext::keep_logs`] is set,
    /// and the patch of an accepted fix if [`GateContext::may_fix`] is set, and nothing otherwise.
    pub bundle: Option<&'a Bundle>,
    /// The brief of the bundle, for `when`.
    pub brief: Option<&'a Brief>,
    /// The checkout with the patch applied.
    pub worktree: Option<&'a Utf8Path>,
    /// The git directory of the primary, from whose objects the checkout borrows.
    pub git_common_dir: Option<&'a Utf8Path>,
    /// The commit the patch applies to.
    pub base: Option<&'a str>,
    /// The branch that the brief names.
    pub brief_base: Option<&'a str>,
    /// The name of the target.
    pub target: Option<&'a str>,
    /// The id of the run.
    pub run: Option<&'a str>,
    /// The private names of the lane, if there are lanes.
    pub lane: Option<&'a LaneNames>,
    /// The digest of the patch, for runs without a [`Tree`] that knows it.
    pub patch_digest: Option<&'a str>,
    /// Puts logs into the bundle; must be false for a frozen bundle. Without it the output of a check is only in its
    /// job directory.
    pub keep_logs: bool,
    /// The directory for logs of failed and unverifiable checks in runs without a bundle.
    pub logs: Option<&'a Utf8Path>,
    /// Allows that the fix of a failed check becomes part of the bundle's patch. Only for [`Purpose::Bundle`].
    pub may_fix: bool,
    /// Names of variables of the driver that checks get.
    pub env_pass: Vec<String>,
    /// The home directory of the checks; without it they have the driver's.
    pub home: Option<GateHome>,
    /// What checks see of the target's own checkout, unless they say `reads_primary`.
    pub primary: PrimaryView,
    /// The sandbox of every check and every fix.
    pub sandbox: Option<Sandbox>,
    /// Further paths that one check may write, by its id.
    pub opened: BTreeMap<String, Vec<Utf8PathBuf>>,
    /// Files of the checkout that stay between checks: caches that the project trusts.
    pub caches: Vec<Pattern>,
    /// The lock that the supervisor of every check and every fix holds while any process of it is alive.
    pub hold: Option<&'a Utf8Path>,
    /// The memory cap of every check and every fix, in bytes.
    pub max_memory: Option<u64>,
    /// The search path for programs, to explain why a check could not be started.
    pub search_path: Option<&'a OsStr>,
    /// Checkouts of the change under check, whose files belong to the tree and not to the host.
    pub trees: Vec<Utf8PathBuf>,
    /// Facts about the host that decide what checks report; see [`GateHost::facts`](crate::GateHost::facts).
    pub facts: BTreeMap<&'static str, Vec<u8>>,
    /// A tree over which the checks that gate the repository passed before, in exactly this form: they are not run
    /// again over it.
    pub known_green: Option<&'a str>,
    /// The most checks that run at the same time.
    pub at_once: usize,
    /// The number of bytes of output that are kept per check.
    pub output: OutputCap,
    /// The program that supervises the checks.
    pub supervisor: Supervisor,
}

/// What a sandboxed check sees of the checkouts of targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrimaryView {
    /// Checkouts that cannot be read.
    pub hidden: Vec<Utf8PathBuf>,
    /// Trees and files in them that can: objects that the lane borrows, the record, named programs.
    pub shown: Vec<Utf8PathBuf>,
    /// A hidden checkout, and the lane that is found in its place where the sandbox can do that.
    pub replaced: Option<(Utf8PathBuf, Utf8PathBuf)>,
}

impl PrimaryView {
    fn applied_to(&self, sandbox: Sandbox) -> Sandbox {
        let sandbox = sandbox.no_read(self.hidden.clone()).read(self.shown.clone());
        match self.replaced.clone() {
            Some((tree, with)) => sandbox.replace(tree, with),
            None => sandbox,
        }
    }

    /// Returns the hidden checkout that contains a path.
    pub(crate) fn checkout_of(&self, path: &Utf8Path) -> Option<&Utf8Path> {
        let is_shown = self.shown.iter().any(|tree| path.starts_with(tree));
        let around = self.hidden.iter().find(|tree| path.starts_with(tree));
        around.filter(|_| !is_shown).map(Utf8PathBuf::as_path)
    }
}

/// Names that are private to one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneNames {
    pub slot: u32,
    /// The first of the lane's ports.
    pub port_base: Option<u16>,
    pub test_db_name: Option<String>,
    /// The lane's project name for `docker compose`.
    pub compose_project: Option<String>,
    /// The lane's directory for temporary files.
    pub tmp: Option<Utf8PathBuf>,
}

impl<'a> GateContext<'a> {
    /// Creates a context with nothing but the two directories that every run has.
    pub fn new(purpose: Purpose, workspace: &'a Utf8Path, jobs: &'a Utf8Path) -> Self {
        Self {
            purpose,
            workspace,
            jobs,
            bundle: None,
            brief: None,
            worktree: None,
            git_common_dir: None,
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
            home: None,
            primary: PrimaryView::default(),
            sandbox: None,
            opened: BTreeMap::new(),
            caches: Vec::new(),
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

    /// Returns true if a check takes part in runs of this purpose.
    pub fn includes(&self, check: &Check) -> bool {
        match (self.purpose, check.scope) {
            (Purpose::Bundle, CheckScope::Bundle | CheckScope::Repo)
            | (Purpose::WorkingTree | Purpose::Combined, CheckScope::Repo) => true,
            (Purpose::WorkingTree | Purpose::Combined, CheckScope::Bundle) => false,
        }
    }

    /// Returns the working directory of a check; `None` if it needs a checkout and there is none.
    pub fn cwd(&self, check: &Check) -> Option<&'a Utf8Path> {
        match check.cwd {
            Cwd::Auto => Some(self.worktree.unwrap_or(self.workspace)),
            Cwd::Workspace => Some(self.workspace),
            Cwd::Worktree => self.worktree,
        }
    }

    /// Returns the sandbox of a check, with the paths that it alone may write.
    pub(crate) fn sandbox_of(&self, check: &Check) -> Option<Sandbox> {
        let more = self.opened.get(&check.id).into_iter().flatten().cloned();
        let home = self.home.iter().map(|home| home.dir().to_owned());
        let mut sandbox = self.sandbox.clone()?.write(more).own(home);
        if !check.reads_primary {
            // What is opened in a checkout by name is open, though the checkout is hidden.
            let is_inside = |path: &Utf8PathBuf| self.primary.checkout_of(path).is_some();
            let opened: Vec<_> = sandbox.write.iter().filter(|it| is_inside(it)).cloned().collect();
            sandbox = self.primary.applied_to(sandbox).own(opened);
        }
        sandbox.mode = check.sandbox.unwrap_or(sandbox.mode);
        Some(sandbox)
    }

    /// Returns the result of a check that cannot run here at all.
    pub(crate) fn reason_not_to_run(&self, check: &Check) -> Option<CheckFinding> {
        if let Some(when) = &check.when
            && !check.applies_to(self.brief)
        {
            let why = format!("not for this brief, unless {when}");
            Some(CheckFinding::new(GateResult::None, &why))
        } else if check.needs_lane && self.lane.is_none() {
            Some(CheckFinding::unverifiable("not run: needs a lane, and this run has none"))
        } else if self.cwd(check).is_none() {
            Some(CheckFinding::unverifiable("not run: needs a checkout, and there is none"))
        } else {
            None
        }
    }

    /// Returns the name of the report.
    pub(crate) fn name(&self) -> String {
        match (self.bundle, self.purpose) {
            (Some(bundle), _) => bundle.id().dir_name(),
            (None, Purpose::Combined) => "combined".to_owned(),
            (None, Purpose::Bundle | Purpose::WorkingTree) => "working-tree".to_owned(),
        }
    }

    /// Returns the environment of a check: the documented variables that have a value here, what the configuration names,
    /// and nothing else of the driver's environment. This is the only place that names them.
    pub fn env_of(&self, check: &Check) -> Env {
        let mut set: BTreeMap<&str, String> = BTreeMap::from(
            [("LANG", "C.UTF-8"), ("TZ", "UTC")].map(|(name, value)| (name, value.to_owned())),
        );
        let mut say = |name, value: Option<String>| {
            if let Some(value) = value.filter(|_| !CHANGING.contains(&name) || check.gets(name)) {
                set.insert(name, value);
            }
        };
        say("HOME", self.home.as_ref().map(|home| home.dir().to_string()));
        say("PDCA_WORKSPACE", Some(self.workspace.to_string()));
        say("PDCA_WORKTREE", self.worktree.map(ToString::to_string));
        // The same at Check and in an integration, so no verdict depends on which of the two it is.
        say("PDCA_GIT_COMMON_DIR", self.git_common_dir.map(ToString::to_string));
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
        let mut env = Env::nothing().pass(&self.env_pass);
        env = match self.search_path {
            Some(path) => env.with("PATH", path),
            None => env.pass(["PATH"]),
        };
        if self.home.is_none() {
            env = env.pass(["HOME"]);
        }
        let own = set.iter().map(|(name, value)| (*name, value.as_str()));
        let named = check.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // What `env_pass` names replaces the fixed values, and what `env` sets replaces both.
        let own = own.filter(|(name, _)| !self.env_pass.iter().any(|passed| passed == name));
        own.chain(named).fold(env, |env, (name, value)| env.with(name, value))
    }

    /// Returns the variables that identify the subject of a check, and so decide what it reports. The others only name
    /// paths, which change from one run to the next.
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

/// The error of an operation on a checkout.
pub type TreeFault = Box<dyn Error + Send + Sync>;

/// A change in a checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The id of the tree of base plus patch.
    pub tree: String,
    pub patch_digest: Option<String>,
}

/// A further checkout of the change under check, for one check that runs beside others.
#[derive(Debug, Clone)]
pub struct RowCheckout {
    pub path: Utf8PathBuf,
    /// The id of its tree, computed from the files.
    pub tree: String,
    /// The private names of this checkout, if there are lanes.
    pub lane: Option<LaneNames>,
    /// The sandbox of a check that runs in it.
    pub sandbox: Option<Sandbox>,
}

/// The checkout that checks run against.
///
/// A check counts only for the tree it ran on. So before each check the checkout is made equal to the expected change
/// and verified by its tree id, and after each check no tracked file may differ. The run removes what a check left,
/// ignored files included, unless the check shares it.
pub trait Tree {
    /// Returns the change under check.
    fn expected(&self) -> Change;

    /// Returns true if the checkout is certainly as the last check of an earlier run left it. Then that check's verdict
    /// can still be assigned to the tree and the check need not run again.
    fn is_as_left(&self) -> bool {
        false
    }

    /// Makes the checkout exactly the expected tree and returns the id of the resulting tree, computed from the files.
    /// A tree that must not be reset is only read.
    fn prepare(&mut self) -> Result<String, TreeFault>;

    /// Like [`Self::prepare`], but also removes everything that earlier checks left: for a second run of a check.
    fn prepare_anew(&mut self) -> Result<String, TreeFault> {
        self.prepare()
    }

    /// Returns the tracked files that differ from the expected tree.
    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault>;

    /// Makes up to `number` further checkouts of the expected change. A check for which there is none runs after the
    /// others. They stay as they are until the next call.
    fn further(&mut self, _number: usize) -> Vec<RowCheckout> {
        Vec::new()
    }

    /// Returns the tracked files that differ from the expected tree in a further checkout, by its place in the list.
    fn changed_in(&mut self, further: usize) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        Err(format!("there is no further checkout {further}").into())
    }

    /// Makes the content of the checkout the expected change, until it is accepted or withdrawn. The bundle is not
    /// changed.
    fn propose(&mut self) -> Result<Change, TreeFault>;

    /// Makes the proposed change the bundle's patch.
    fn accept(&mut self) -> Result<(), TreeFault>;

    /// Returns to the change that was expected before the proposal.
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
        assert_eq!(names(&context.env_of(&check(""))), ["LANG", "PDCA_WORKSPACE", "TZ"]);

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
        context.git_common_dir = Some(Utf8Path::new("/app/.git"));
        (context.base, context.brief_base) = (Some("abc"), Some("main"));
        (context.target, context.run) = (Some("own/repo"), Some("01H"));
        context.lane = Some(&lane);
        let env = context.env_of(&check(""));
        assert_eq!(
            names(&env),
            [
                "COMPOSE_PROJECT_NAME",
                "LANG",
                "PDCA_BASE",
                "PDCA_BRIEF_BASE",
                "PDCA_BUNDLE",
                "PDCA_GIT_COMMON_DIR",
                "PDCA_ISSUE",
                "PDCA_LANE",
                "PDCA_PORT_BASE",
                "PDCA_RUN",
                "PDCA_TARGET",
                "PDCA_TEST_DB_NAME",
                "PDCA_TMP",
                "PDCA_WORKSPACE",
                "PDCA_WORKTREE",
                "TZ",
            ]
        );
        assert!(env.nothing, "nothing else is inherited");
        let without = names(&context.env_of(&check("needs = []")));
        let left =
            ["LANG", "PDCA_GIT_COMMON_DIR", "PDCA_TARGET", "PDCA_WORKSPACE", "PDCA_WORKTREE", "TZ"];
        assert_eq!(without, left);
        let one = context.env_of(&check("needs = ['PDCA_BASE']\nenv = { LANG = 'C', X = '1' }"));
        assert_eq!(one.set[OsStr::new("LANG")], "C");
        assert!(
            one.set.contains_key(OsStr::new("PDCA_BASE")) && one.set.contains_key(OsStr::new("X"))
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
