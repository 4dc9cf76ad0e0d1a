//! A workspace with one bundle and one checkout, and a run of the gates over them.

use std::{error::Error, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{
    Change, Cwd, GateContext, GateEvent, GatesConfig, GatesError, GatesOutcome, LaneNames, Purpose,
    RowCheckout, Tree, TreeFault, run_checks,
};
use pdca_process::Cancel;
use pdca_state::{Brief, Bundle, GateReport, GateRow, sha256_hex};
use pdca_testkit::{Repo, TestWorkspace};

/// All inputs of a run, in a temporary directory.
pub(crate) struct Stage {
    pub(crate) workspace: TestWorkspace,
    pub(crate) bundle: Bundle,
    pub(crate) checkout: Repo,
    pub(crate) events: Vec<GateEvent>,
    pub(crate) cancel: Cancel,
    /// The lock that is held while checks run.
    pub(crate) hold: Option<Utf8PathBuf>,
    /// The private names of the lane.
    pub(crate) lane: Option<LaneNames>,
}

impl Stage {
    /// Issue 7, with a checkout that holds `a.txt` and `b.txt`.
    pub(crate) fn new() -> Self {
        pdca_process::testing::use_harness();
        let workspace = TestWorkspace::new();
        let bundle = Bundle::at(workspace.brief("7", &[("Surfaces", "cli")]));
        let bundle = bundle.expect("the directory is named as bundles are");
        let checkout = workspace.target("checkout");
        checkout.write("a.txt", "one\n");
        checkout.write("b.txt", "two\n");
        checkout.write(".gitignore", "target/\n");
        checkout.commit("the change under check");
        Self {
            workspace,
            bundle,
            checkout,
            events: Vec::new(),
            cancel: Cancel::new(),
            hold: None,
            lane: None,
        }
    }

    /// Writes a program into the workspace.
    pub(crate) fn script(&self, name: &str, text: &str) {
        self.workspace.write(name, format!("#!/bin/sh\n{text}\n"));
        self.set_mode(name, 0o755);
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        let path = self.workspace.path().join(name);
        fs_err::set_permissions(path, mode).expect("a mode can be set");
    }

    pub(crate) fn jobs(&self) -> Utf8PathBuf {
        self.workspace.path().join(".pdca/jobs/issue_7")
    }

    /// Removes the stamps of all verdicts, as if the driver had died before it wrote them.
    pub(crate) fn doubt(&self) {
        for job in fs_err::read_dir(self.jobs()).expect("jobs can be listed") {
            let stamp = job.expect("jobs can be listed").path().join("settled");
            if stamp.exists() {
                fs_err::remove_file(stamp).expect("a stamp can be removed");
            }
        }
    }

    /// Runs the checks in a checkout that is as the last run left it.
    pub(crate) fn resume(&mut self, rows: &str) -> GatesOutcome {
        let mut tree = Checkout::of(&self.checkout);
        tree.as_left = true;
        self.run_with(rows, Some(&mut tree), |_| {}).expect("there is a report")
    }

    /// Returns how often a check wrote a line to this file of the workspace.
    pub(crate) fn count(&self, name: &str) -> usize {
        if self.workspace.has(name) { self.workspace.read(name).lines().count() } else { 0 }
    }

    /// Runs the checks for the bundle in its checkout.
    pub(crate) fn run(&mut self, rows: &str) -> GatesOutcome {
        self.try_run(rows).expect("there is a report")
    }

    pub(crate) fn try_run(&mut self, rows: &str) -> Result<GatesOutcome, GatesError> {
        let mut tree = Checkout::of(&self.checkout);
        self.run_with(rows, Some(&mut tree), |_| {})
    }

    /// Runs the checks in a context that `set` has changed.
    pub(crate) fn run_with(
        &mut self,
        rows: &str,
        tree: Option<&mut dyn Tree>,
        set: impl FnOnce(&mut GateContext<'_>),
    ) -> Result<GatesOutcome, GatesError> {
        let mut checks: GatesConfig =
            toml::from_str(rows).expect("the test's rows are well formed");
        // The files that the checks of a test write must outlive the next reset of the checkout.
        if checks.cwd == Cwd::Auto {
            checks.cwd = Cwd::Workspace;
        }
        let rows = checks.checks().expect("the test's rows are valid");
        let brief = Brief::parse(&self.workspace.read("results/issue_7/brief.md"));
        let jobs = self.jobs();
        let worktree = self.checkout.path().to_owned();
        let mut scene = GateContext::new(Purpose::Bundle, self.workspace.path(), &jobs);
        scene.bundle = Some(&self.bundle);
        scene.brief = Some(&brief);
        scene.worktree = Some(&worktree);
        scene.base = Some("0123abcd");
        scene.patch_digest = Some("digest");
        scene.keep_logs = true;
        scene.may_fix = true;
        scene.hold = self.hold.as_deref();
        scene.lane = self.lane.as_ref();
        scene.search_path = Some("/usr/local/bin:/usr/bin:/bin".as_ref());
        set(&mut scene);
        let events = &mut self.events;
        run_checks(&rows, &scene, tree, &self.cancel, &mut |event| {
            events.push(event);
        })
    }

    /// Runs one check and returns its row of the report.
    pub(crate) fn row(&mut self, row: &str) -> GateRow {
        let report = self.run(&format!("[[checks]]\nid = 'gate'\ntier = 'T1'\n{row}")).report;
        found(&report, "gate")
    }

    /// Returns the log of a check in the bundle.
    pub(crate) fn log(&self, rule_id: &str) -> Vec<u8> {
        let path = self.bundle.dir().join(format!("gate-logs/{rule_id}.log"));
        fs_err::read(path).expect("the row has a log")
    }
}

/// Returns the row of a report for a check.
pub(crate) fn found(report: &GateReport, rule_id: &str) -> GateRow {
    let mut rows = report.rows.iter().filter(|row| row.rule_id == rule_id);
    let row = rows.next().expect("a configured row is in the report");
    assert!(rows.next().is_none(), "a row is in the report once");
    row.clone()
}

/// Returns a result and its evidence.
pub(crate) fn said(row: &GateRow) -> String {
    format!("{}: {}", row.result, row.path_line)
}

/// A checkout whose last commit is the change under check.
pub(crate) struct Checkout {
    repo: Repo,
    expected: Change,
    /// The change before anything is proposed.
    accepted: String,
    pub(crate) prepared: usize,
    /// How often it was made anew, with what hydration brings.
    pub(crate) anew: usize,
    pub(crate) breaks: Option<&'static str>,
    pub(crate) as_left: bool,
    /// The tree whose patch is empty.
    pub(crate) base: Option<String>,
    /// Clones beside it, for checks that run at the same time.
    pub(crate) clones: Vec<Repo>,
}

impl Checkout {
    pub(crate) fn of(repo: &Repo) -> Self {
        let repo = Repo::existing(repo.path());
        Self {
            expected: change(&repo),
            accepted: repo.head(),
            repo,
            prepared: 0,
            anew: 0,
            breaks: None,
            as_left: false,
            base: None,
            clones: Vec::new(),
        }
    }

    /// Gives the checkout clones that it can lend.
    pub(crate) fn with_clones(mut self, clones: Vec<Repo>) -> Self {
        for clone in &clones {
            clone.git(&["pull", "--quiet", self.repo.path().as_str()]);
        }
        self.clones = clones;
        self
    }

    /// Expects a tree that `prepare` will not produce.
    pub(crate) fn expecting(mut self, tree: &str) -> Self {
        tree.clone_into(&mut self.expected.tree);
        self
    }

    fn works(&self, step: &'static str) -> Result<(), TreeFault> {
        match self.breaks {
            Some(broken) if broken == step => Err(Box::<dyn Error + Send + Sync>::from("no disk")),
            Some(_) | None => Ok(()),
        }
    }
}

fn change(repo: &Repo) -> Change {
    Change {
        tree: repo.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned(),
        patch_digest: Some(format!("digest of {}", repo.head())),
    }
}

impl Tree for Checkout {
    fn expected(&self) -> Change {
        self.expected.clone()
    }

    fn is_as_left(&self) -> bool {
        self.as_left
    }

    fn prepare(&mut self) -> Result<String, TreeFault> {
        self.works("prepare")?;
        self.prepared += 1;
        self.repo.git(&["reset", "--quiet", "--hard"]);
        self.repo.git(&["clean", "-fdq"]);
        Ok(self.repo.git(&["write-tree"]).trim().to_owned())
    }

    fn prepare_anew(&mut self) -> Result<String, TreeFault> {
        self.anew += 1;
        self.repo.git(&["clean", "-fdqx"]);
        self.repo.write("target/hydrated", "x\n");
        self.prepare()
    }

    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        self.works("changed")?;
        let names = self.repo.git(&["diff", "--name-only", "HEAD"]);
        Ok(names.lines().map(Utf8PathBuf::from).collect())
    }

    fn further(&mut self, number: usize) -> Vec<RowCheckout> {
        let lent = self.clones.iter().take(number).map(|clone| RowCheckout {
            path: clone.path().to_owned(),
            tree: change(clone).tree,
            lane: None,
            sandbox: None,
        });
        lent.collect()
    }

    fn changed_in(&mut self, further: usize) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        let names = self.clones[further].git(&["diff", "--name-only", "HEAD"]);
        Ok(names.lines().map(Utf8PathBuf::from).collect())
    }

    fn propose(&mut self) -> Result<Change, TreeFault> {
        self.works("propose")?;
        self.repo.git(&["add", "--all"]);
        self.repo.git(&["commit", "--quiet", "--allow-empty", "-m", "fixed"]);
        self.expected = change(&self.repo);
        if self.base.as_ref() == Some(&self.expected.tree) {
            self.expected.patch_digest = Some(sha256_hex(b""));
        }
        Ok(self.expected.clone())
    }

    fn accept(&mut self) -> Result<(), TreeFault> {
        self.works("accept")?;
        self.accepted = self.repo.head();
        Ok(())
    }

    fn withdraw(&mut self) -> Result<(), TreeFault> {
        self.works("withdraw")?;
        self.repo.git(&["reset", "--quiet", "--hard", &self.accepted]);
        self.expected = change(&self.repo);
        Ok(())
    }
}

/// Returns true if a living process has `path` open or as its working directory.
pub(crate) fn is_in_use(path: &Utf8Path) -> bool {
    let processes = fs_err::read_dir("/proc").expect("processes can be listed");
    processes.filter_map(Result::ok).any(|process| {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd == path.as_std_path())
    })
}
