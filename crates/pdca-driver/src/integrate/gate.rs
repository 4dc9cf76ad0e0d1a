//! The gates over a combination, in a checkout that no bundle has.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{Change, GatesError, Purpose, Scene, Scope, Tree, TreeFault, run_checks};
use pdca_integrate::{Candidate, Light, Oracle};
use pdca_state::{Bundle, GateReport, GateResult, sha256_hex};

use crate::attempt::Tenancy;
use crate::drive::{DriveError, Driver};
use crate::event::What;
use crate::ground::Ground;
use crate::site::{COMBINED, Site};

use super::standing::Front;

/// The first slot that combinations are gated in: above those that bundles are worked on in.
pub const FIRST_SLOT: u32 = 256;

/// What the gates said about a combination.
#[derive(Debug)]
pub(super) struct Ruling {
    /// The verdict; none where a row that blocks could not be decided.
    pub(super) light: Option<Light>,
    /// The rows that block and are red, or could not be decided.
    pub(super) rows: Vec<String>,
    /// What changed in the user's checkout meanwhile, where nothing keeps gates from it.
    pub(super) written: Vec<String>,
}

/// What is gated, and where.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) slot: u32,
    pub(crate) commit: String,
    pub(crate) tree: String,
    /// Where the rows leave their verdicts. A run that is asked anew has another one.
    pub(crate) jobs: Utf8PathBuf,
}

impl Site {
    /// Which gates, in which form, in which environment.
    pub(super) fn oracle(&self) -> Oracle {
        let path = self.search_path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let parts = [
            std::env::consts::OS.to_owned(),
            std::env::consts::ARCH.to_owned(),
            path.unwrap_or_default(),
            format!("{:?}", self.gate_sandbox),
            format!("{:?}", self.lanes.hydrate),
        ];
        Oracle {
            gate_digest: self.rows.digest(),
            environment_digest: sha256_hex(parts.join("\0").as_bytes()),
        }
    }

    /// Whether any row says something about a combination.
    pub(super) fn has_combined_gate(&self) -> bool {
        self.rows.as_slice().iter().any(|row| row.gating && row.scope == Scope::Repo)
    }
}

impl Driver<'_> {
    /// Runs the rows about the repository over a combination. `told` stands for it in what is told.
    pub(super) fn gate_combination(
        &self,
        told: &Bundle,
        front: &Front,
        bench: &Bench,
    ) -> Result<Ruling, DriveError> {
        let ground = self.common_ground(&front.target, &front.branch, &bench.commit, bench.slot)?;
        let mut standing = Standing::stand(self, told, &ground, bench)?;
        let children = self.site.children();
        let mut scene = self.common_scene(Purpose::Combined, front, &ground, bench, &children);
        scene.base = Some(&bench.commit);
        let wire = if self.are_gates_confined() { None } else { Some(self.watch(&ground)?) };
        let mut tell = |event| self.follow_gate(told, event);
        let outcome =
            run_checks(&self.site.rows, &scene, Some(&mut standing), self.cancel, &mut tell);
        let outcome = outcome.map_err(|error| match error {
            GatesError::Cancelled => DriveError::Interrupted,
            other @ (GatesError::Fix { .. } | GatesError::Log { .. }) => DriveError::Gates(other),
        })?;
        let breaches = wire.iter().flat_map(pdca_lanes::Tripwire::breaches).collect();
        let written = self.written_by_gates(told, front, breaches);
        Ok(Ruling { written, ..Ruling::of(&outcome.report) })
    }

    /// Where gates run over what is in a checkout that no bundle has.
    pub(crate) fn common_scene<'s>(
        &'s self,
        purpose: Purpose,
        front: &'s Front,
        ground: &'s Ground,
        bench: &'s Bench,
        children: &'s Utf8Path,
    ) -> Scene<'s> {
        let mut scene = Scene::new(purpose, &self.site.workspace, &bench.jobs);
        scene.worktree = Some(ground.lane.path());
        scene.brief_base = Some(&front.branch);
        scene.target = Some(&front.target.name);
        scene.run = Some(&self.site.run);
        scene.lane = ground.seat.as_ref().map(|seat| &seat.names);
        scene.sandbox = Some(self.gate_sandbox(ground));
        scene.hold = Some(children);
        scene.max_memory = self.site.limits.leaf_memory;
        scene.search_path = self.site.search_path.as_deref();
        scene.supervisor = self.site.supervisor.clone();
        scene
    }

    /// What changed in the primary checkout that gates must not write. A branch that moved is told: that
    /// is what people do with branches, and what we land is ours.
    fn written_by_gates(&self, told: &Bundle, front: &Front, breaches: Vec<String>) -> Vec<String> {
        let own = [format!("ref {} ", front.reference), "ref refs/heads/pdca/".to_owned()];
        let (refs, files): (Vec<String>, Vec<String>) =
            breaches.into_iter().partition(|line| line.starts_with("ref "));
        for line in refs.iter().filter(|line| !own.iter().any(|own| line.starts_with(own))) {
            let text = format!("while the gates ran, a branch of the primary moved: {line}");
            self.tell(told, What::Warning { text });
        }
        files
    }
}

impl Ruling {
    fn of(report: &GateReport) -> Self {
        let red: Vec<String> = report.failed_gating().map(|row| row.rule_id.clone()).collect();
        if !red.is_empty() {
            return Self { light: Some(Light::Red), rows: red, written: Vec::new() };
        }
        let undecided =
            |row: &&pdca_state::GateRow| row.gating && row.result == GateResult::Unverifiable;
        let rows: Vec<String> = report
            .rows
            .iter()
            .filter(undecided)
            .map(|row| format!("{}: {}", row.rule_id, row.reason()))
            .collect();
        let light = rows.is_empty().then_some(Light::Green);
        Self { light, rows, written: Vec::new() }
    }
}

/// The checkout of a combination, or of another commit that is not to be changed.
pub(crate) struct Standing<'g> {
    ground: &'g Ground,
    commit: String,
    tree: String,
    as_left: bool,
}

impl<'g> Standing<'g> {
    /// Brings the checkout to the commit, or finds it as a driver that was killed there left it.
    pub(crate) fn stand(
        driver: &Driver<'_>,
        told: &Bundle,
        ground: &'g Ground,
        bench: &Bench,
    ) -> Result<Self, DriveError> {
        let digest = sha256_hex(bench.jobs.as_str().as_bytes());
        let name = format!("{COMBINED}{}-{digest}", driver.site.mark());
        let left = ground.tenancy()?.filter(|left| left.job == name);
        let as_left = left.is_some_and(|left| left.head.as_ref() == Some(&bench.commit))
            && ground.head()? == bench.commit;
        if !as_left {
            driver.clear(told, ground, &name)?;
            let head = Some(bench.commit.clone());
            driver.occupy(ground, &Tenancy { job: name, head })?;
        }
        let (commit, tree) = (bench.commit.clone(), bench.tree.clone());
        Ok(Self { ground, commit, tree, as_left })
    }
}

impl Tree for Standing<'_> {
    fn expected(&self) -> Change {
        Change { tree: self.tree.clone(), patch_digest: None }
    }

    fn is_as_left(&self) -> bool {
        self.as_left
    }

    fn prepare(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        self.ground.lane.reset(&self.commit)?;
        Ok(self.ground.lane.tree()?)
    }

    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        Ok(self.ground.lane.changed_tracked()?)
    }

    fn propose(&mut self) -> Result<Change, TreeFault> {
        Err("a combination is not fixed".into())
    }

    fn accept(&mut self) -> Result<(), TreeFault> {
        Err("a combination is not fixed".into())
    }

    fn withdraw(&mut self) -> Result<(), TreeFault> {
        Ok(self.ground.lane.reset(&self.commit)?)
    }
}

/// Where a combination is gated.
pub(super) fn bench(candidate: &Candidate, slot: u32, jobs: Utf8PathBuf) -> Bench {
    let (commit, tree) = (candidate.commit().to_string(), candidate.tree().to_string());
    Bench { slot, commit, tree, jobs }
}
