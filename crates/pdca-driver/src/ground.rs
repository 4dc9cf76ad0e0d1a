//! Where a bundle is built and checked: a private checkout that stands at base, or at base + patch.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::{Change, Tree, TreeFault};
use pdca_integrate::StoreError;
use pdca_lanes::{
    ApplyError, ArmError, ClaimError, Hydrate, HydrateError, Hydrated, Lane, LaneError, Private,
    PrivateError, ResolveError, Signature, Target, TargetError, Tripwire, WorkspaceId,
};
use pdca_leaves::Role;
use pdca_process::Env;
use pdca_state::{Artifact, Bundle, Snapshot, sha256_hex};

use crate::attempt::{Attempt, Tenancy};
use crate::drive::{DriveError, Driver};
use crate::event::What;
use crate::job::Key;
use crate::seat::Seat;
use crate::site::TargetSpec;

/// The name of a checkout that is being reset: whatever lies there is nobody's, and rescued already.
pub(crate) const CLEARING: &str = "clearing";

/// Who commits in a checkout. Fixed, so that the same change is the same commit everywhere.
pub(crate) const COMMITTER: Signature<'static> =
    Signature { name: "pdca", email: "pdca@localhost", seconds: 0 };

/// A claimed checkout and what it is claimed for.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) target: Target,
    pub(crate) lane: Lane,
    pub(crate) attempt: Attempt,
    /// What goes by the lane's own names; none where there is one lane only.
    pub(crate) seat: Option<Seat>,
    /// The ports behind those names, held as long as the checkout is.
    _private: Option<Private>,
    /// Tells the work of this workspace from that of another with the same lanes.
    workspace: String,
}

/// Why there is no usable checkout. None of these is the bundle's fault.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// The target cannot be used.
    #[error("the target `{name}` cannot be used")]
    Target {
        /// Its name.
        name: String,
        /// Why not.
        source: TargetError,
    },
    /// The base is not known.
    #[error("the target `{name}` has no base to build on")]
    Base {
        /// Its name.
        name: String,
        /// Why not.
        source: ResolveError,
    },
    /// The checkout is not to be had.
    #[error("no private checkout of `{name}`")]
    Claim {
        /// The target's name.
        name: String,
        /// Why not.
        source: ClaimError,
    },
    /// The checkout has no names of its own.
    #[error("lane {slot} gets no names of its own")]
    Names {
        /// The slot.
        slot: u32,
        /// Why not.
        source: PrivateError,
    },
    /// The checkout lacks what it needs beyond what git tracks.
    #[error("the private checkout of `{name}` cannot be hydrated")]
    Hydrate {
        /// The target's name.
        name: String,
        /// Why not.
        source: Box<HydrateError>,
    },
    /// The checkout does not do as it is told.
    #[error("the private checkout fails")]
    Lane(#[from] LaneError),
    /// Somebody removed the checkout while it was worked in. What was in it and in no commit is gone.
    #[error("the private checkout {path} was removed while it was worked in")]
    Lost {
        /// Where it was.
        path: Utf8PathBuf,
    },
    /// The objects of the target cannot be written.
    #[error("the target's objects cannot be written")]
    Objects(#[source] StoreError),
    /// The merged tree of a conflict cannot be put into the checkout.
    #[error("the merged tree cannot be put into the checkout")]
    Conflicted(#[source] ApplyError),
    /// The primary checkout cannot be watched.
    #[error("the primary checkout cannot be watched")]
    Watch(#[from] ArmError),
    /// What is known of the checkout cannot be written down.
    #[error("the record of the checkout cannot be written")]
    Record(#[source] io::Error),
}

impl Driver<'_> {
    /// Claims the checkout for a bundle; `None` where no target is configured.
    ///
    /// `fresh` begins an attempt: unless one with the same brief is under way, the base is the
    /// branch's tip now. Otherwise the base of the attempt is taken as written down.
    pub(crate) fn ground(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
        fresh: bool,
    ) -> Result<Option<Ground>, DriveError> {
        let Some(brief) = snapshot.authored_brief() else {
            return Ok(None);
        };
        let Some(spec) = self.site.target_of(brief)? else {
            return Ok(None);
        };
        let name = || spec.name.clone();
        let target = Target::open(&spec.name, &spec.path)
            .map_err(|source| GroundError::Target { name: name(), source })?;
        let digest = sha256_hex(&bundle.read(Artifact::Brief)?.unwrap_or_default());
        let known = self.site.attempts().load(bundle.id()).map_err(GroundError::Record)?;
        let known = known.filter(|known| {
            known.iterations == snapshot.iterations
                && known.target == spec.name
                && (!fresh || known.brief == digest)
        });
        let attempt = if let Some(known) = known {
            known
        } else {
            let branch = self.site.branch_of(brief, &spec);
            let base = target
                .resolve(branch.as_deref())
                .map_err(|source| GroundError::Base { name: name(), source })?;
            let attempt = Attempt {
                iterations: snapshot.iterations,
                brief: digest,
                target: spec.name.clone(),
                branch: base.branch,
                base: base.commit,
            };
            let store = || self.site.attempts().store(bundle.id(), &attempt);
            self.effects.perform("attempt", store).map_err(GroundError::Record)?;
            attempt
        };
        let slot = self.slot_for(bundle);
        let lane = self
            .site
            .lent()
            .claim(slot, &target)
            .map_err(|source| GroundError::Claim { name: name(), source })?;
        if let Some(run) = self.run {
            let claim = || run.claim(bundle.id(), slot, &attempt.base);
            self.effects.perform("claim", claim)?;
        }
        if let Some(aside) = lane.moved_aside() {
            self.warn(
                bundle,
                format!("the checkout was no repository any more; it was kept as {aside}"),
            );
        }
        let private = self.slot().map(|slot| self.names(&lane, slot)).transpose()?;
        let seat = private.as_ref().map(|private| Seat::named(private.names()));
        let workspace = self.site.mark();
        self.tell(
            bundle,
            What::Checkout { path: lane.path().to_owned(), base: attempt.base.clone() },
        );
        Ok(Some(Ground { target, lane, attempt, seat, _private: private, workspace }))
    }

    /// Claims the checkout of a slot that no bundle has, for a commit that stands for several.
    pub(crate) fn common_ground(
        &self,
        spec: &TargetSpec,
        branch: &str,
        commit: &str,
        slot: u32,
    ) -> Result<Ground, GroundError> {
        let name = || spec.name.clone();
        let target = Target::open(&spec.name, &spec.path)
            .map_err(|source| GroundError::Target { name: name(), source })?;
        let lane = self
            .site
            .lent()
            .claim(slot, &target)
            .map_err(|source| GroundError::Claim { name: name(), source })?;
        let private = self.names(&lane, slot)?;
        let attempt = Attempt {
            iterations: 0,
            brief: String::new(),
            target: name(),
            branch: branch.to_owned(),
            base: commit.to_owned(),
        };
        let seat = Some(Seat::named(private.names()));
        let workspace = self.site.mark();
        Ok(Ground { target, lane, attempt, seat, _private: Some(private), workspace })
    }

    /// Takes the names that the lane goes by while it is held.
    fn names(&self, lane: &Lane, slot: u32) -> Result<Private, GroundError> {
        let real = self.site.workspace.canonicalize_utf8();
        let workspace = WorkspaceId::of(&real.unwrap_or_else(|_| self.site.workspace.clone()));
        lane.take_names(&workspace, self.site.lanes.ports)
            .map_err(|source| GroundError::Names { slot, source })
    }

    /// The slot a bundle is worked on in: the driver's own, or, where it has none, the one in which
    /// an earlier driver with several left the bundle's work, or the first.
    fn slot_for(&self, bundle: &Bundle) -> u32 {
        self.slot().unwrap_or_else(|| self.site.homes().get(bundle.id()).copied().unwrap_or(0))
    }

    /// Makes the checkout `job`'s, at the base. What an attempt before it left unfinished is kept
    /// under a ref first.
    pub(crate) fn clear(
        &self,
        bundle: &Bundle,
        ground: &Ground,
        job: &str,
    ) -> Result<(), GroundError> {
        let before = ground.tenancy()?;
        let settled =
            before.as_ref().is_some_and(|before| before.head.is_some() || before.job == CLEARING);
        if !settled {
            let name = before.map_or_else(|| "unknown".to_owned(), |before| before.job);
            let kept = self.effects.perform("rescue", || ground.lane.rescue(&name))?;
            if let Some(commit) = kept {
                self.tell(
                    bundle,
                    What::Rescued { commit, checkout: ground.lane.path().to_owned() },
                );
            }
        }
        // From here until it is whole again, what lies in the checkout is nobody's.
        self.occupy(ground, &Tenancy::unfinished(CLEARING))?;
        let reset = self.site.lanes.reset;
        self.effects.perform("reset", || ground.lane.reset_with(&ground.attempt.base, reset))?;
        self.hydrate(bundle, ground)?;
        self.occupy(ground, &Tenancy::unfinished(job))
    }

    /// Brings what the checkout needs beyond what git tracks, unless it is there. Until that has
    /// passed nothing runs in it.
    fn hydrate(&self, bundle: &Bundle, ground: &Ground) -> Result<(), GroundError> {
        let own = ground.seat.iter().flat_map(|seat| &seat.variables);
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let places = [
            ("PDCA_WORKSPACE", self.site.workspace.as_str()),
            ("PDCA_WORKTREE", ground.lane.path().as_str()),
            ("PDCA_TARGET", ground.attempt.target.as_str()),
        ];
        let set = own.chain(places).map(|(name, value)| (name.into(), value.into())).collect();
        let children = self.site.children();
        let how = Hydrate {
            env: Env { set, ..Env::default() },
            sandbox: Some(self.gate_sandbox(ground)),
            hold: Some(&children),
            max_memory: self.site.limits.leaf_memory,
            supervisor: self.site.supervisor.clone(),
            ..Hydrate::new(&ground.target, &self.site.lanes.hydrate)
        };
        let mut watch = |phase: pdca_lanes::Phase, sign: pdca_process::Sign| {
            if let pdca_process::Sign::Output { last_line, .. } = sign {
                self.tell(bundle, What::Alive { what: phase.to_string(), line: last_line });
            }
        };
        let hydrated = || ground.lane.hydrate(&how, self.cancel, &mut watch);
        let hydrated = self.effects.perform("hydrate", hydrated).map_err(|source| {
            let name = ground.attempt.target.clone();
            GroundError::Hydrate { name, source: Box::new(source) }
        })?;
        if let Hydrated::Fresh(placed) = hydrated {
            self.tell(bundle, What::Hydrated { files: placed.files });
        }
        Ok(())
    }

    /// Writes down whose work lies in the checkout now.
    pub(crate) fn occupy(&self, ground: &Ground, tenancy: &Tenancy) -> Result<(), GroundError> {
        let note = || ground.lane.occupy(&tenancy.to_note());
        self.effects.perform("occupy", note).map_err(GroundError::Record)
    }

    /// Watches the primary checkout of a ground while gates run.
    pub(crate) fn watch(&self, ground: &Ground) -> Result<Tripwire, GroundError> {
        Ok(Tripwire::arm(&ground.target, &self.site.own())?)
    }

    /// Watches the primary checkout while a leaf runs. How it was is kept in the leaf's job, so that a
    /// driver that takes over compares with what was before the leaf, not with what it did.
    pub(crate) fn watch_from(
        &self,
        ground: &Ground,
        job: &Utf8Path,
    ) -> Result<Tripwire, GroundError> {
        let file = job.join("primary.json");
        let own = self.site.own();
        if let Some(armed) =
            Tripwire::load(&ground.target, &own, &file).map_err(GroundError::Record)?
        {
            return Ok(armed);
        }
        let armed = Tripwire::arm(&ground.target, &own)?;
        fs_err::create_dir_all(job).map_err(GroundError::Record)?;
        armed.save(&file).map_err(GroundError::Record)?;
        Ok(armed)
    }
}

impl Ground {
    /// Whose work lies in the checkout, if anybody's does.
    pub(crate) fn tenancy(&self) -> Result<Option<Tenancy>, GroundError> {
        let note = self.lane.occupant().map_err(GroundError::Record)?;
        Ok(note.as_deref().and_then(Tenancy::from_note))
    }

    /// Whether the work of `job` lies in the checkout.
    pub(crate) fn is_of(&self, job: &str) -> Result<bool, GroundError> {
        Ok(self.tenancy()?.is_some_and(|tenancy| tenancy.job == job))
    }

    /// The name under which the work of a leaf lies in the checkout.
    pub(crate) fn work_name(&self, bundle: &Bundle, role: Role, key: &Key) -> String {
        format!("{}-{}-{role}-{key}", self.workspace, bundle.id())
    }

    /// Commits what is in the checkout on top of the base, and derives the patch and the commit.
    pub(crate) fn harvest(&self, message: &str) -> Result<(Vec<u8>, String), GroundError> {
        self.lane.commit_all(message, &COMMITTER)?;
        let head = self.head()?;
        Ok((self.lane.diff(&self.attempt.base, &head)?, head))
    }

    /// The commit the checkout stands at; the base where it has never been reset.
    pub(crate) fn head(&self) -> Result<String, GroundError> {
        Ok(self.lane.head()?.unwrap_or_else(|| self.attempt.base.clone()))
    }

    /// The name of a change: whoever finds it in the checkout need not build it again.
    pub(crate) fn change_name(&self, bundle: &Bundle, patch: &[u8]) -> String {
        let patch = &sha256_hex(patch)[..16];
        format!("{}-{}-{}-{patch}", self.workspace, bundle.id(), self.attempt.base)
    }
}

/// The checkout of a bundle at base + patch, as the gates want it.
pub(crate) struct Patched<'d> {
    driver: &'d Driver<'d>,
    bundle: &'d Bundle,
    ground: &'d Ground,
    /// The commit that base and the expected patch make.
    head: String,
    change: Change,
    patch: Vec<u8>,
    /// Nobody has touched the checkout since an earlier driver left it at this change.
    as_left: bool,
    /// The change that a fix proposed it in place of.
    before: Option<(String, Change, Vec<u8>)>,
}

impl<'d> Patched<'d> {
    /// Brings the checkout to base + patch, or finds it there.
    ///
    /// A checkout that already stands at the change is left as it is: a driver that was killed
    /// while a gate ran there must be able to see what that gate did to it.
    pub(crate) fn stand(
        driver: &'d Driver<'d>,
        bundle: &'d Bundle,
        ground: &'d Ground,
        patch: Vec<u8>,
    ) -> Result<Self, DriveError> {
        let name = ground.change_name(bundle, &patch);
        let stands = ground
            .tenancy()?
            .filter(|tenancy| tenancy.job == name)
            .and_then(|tenancy| tenancy.head);
        let (head, as_left) = match stands {
            Some(head) if ground.head()? == head => (head, true),
            Some(_) | None => (Self::build(driver, bundle, ground, &patch, &name)?, false),
        };
        let tree = ground.lane.tree_of(&head).map_err(GroundError::from)?;
        let change = Change { tree, patch_digest: Some(sha256_hex(&patch)) };
        Ok(Self { driver, bundle, ground, head, change, patch, as_left, before: None })
    }

    fn build(
        driver: &Driver<'_>,
        bundle: &Bundle,
        ground: &Ground,
        patch: &[u8],
        name: &str,
    ) -> Result<String, DriveError> {
        driver.clear(bundle, ground, name)?;
        if !patch.is_empty() {
            let stale = |source| match source {
                ApplyError::Lane(source) => DriveError::Ground(source.into()),
                ApplyError::Refused(_) | ApplyError::DoesNotApply { .. } => {
                    DriveError::Stale { base: ground.attempt.base.clone(), source }
                }
            };
            driver.effects.perform("apply", || ground.lane.apply(patch)).map_err(stale)?;
        }
        let message = message(bundle);
        let commit = || ground.lane.commit_all(&message, &COMMITTER);
        driver.effects.perform("commit", commit).map_err(GroundError::from)?;
        let head = ground.head()?;
        driver.occupy(ground, &Tenancy { job: name.to_owned(), head: Some(head.clone()) })?;
        Ok(head)
    }

    /// The patch as it is now, with the fixes that were accepted.
    pub(crate) fn into_patch(self) -> Vec<u8> {
        self.patch
    }

    /// The tree that the gates judge.
    pub(crate) fn tree(&self) -> &str {
        &self.change.tree
    }
}

/// The message of the one commit that an attempt is.
pub(crate) fn message(bundle: &Bundle) -> String {
    format!("pdca: {}\n", bundle.id().dir_name())
}

impl Tree for Patched<'_> {
    fn expected(&self) -> Change {
        self.change.clone()
    }

    fn is_as_left(&self) -> bool {
        self.as_left
    }

    fn prepare(&mut self) -> Result<String, TreeFault> {
        self.as_left = false;
        self.ground.lane.reset(&self.head)?;
        Ok(self.ground.lane.tree()?)
    }

    fn changed(&mut self) -> Result<Vec<Utf8PathBuf>, TreeFault> {
        Ok(self.ground.lane.changed_tracked()?)
    }

    fn propose(&mut self) -> Result<Change, TreeFault> {
        self.ground.lane.commit_all(&message(self.bundle), &COMMITTER)?;
        let head = self.ground.head()?;
        let patch = self.ground.lane.diff(&self.ground.attempt.base, &head)?;
        let change = Change {
            tree: self.ground.lane.tree_of(&head)?,
            patch_digest: Some(sha256_hex(&patch)),
        };
        self.before = Some((
            std::mem::replace(&mut self.head, head),
            std::mem::replace(&mut self.change, change.clone()),
            std::mem::replace(&mut self.patch, patch),
        ));
        Ok(change)
    }

    fn accept(&mut self) -> Result<(), TreeFault> {
        self.before = None;
        // The new patch is the driver's own doing, and the guard must know.
        let planted = self.driver.relieve_guard(self.bundle)?;
        if !planted.is_empty() {
            return Err(
                format!("written into the bundle while gates ran: {}", planted.join(", ")).into()
            );
        }
        self.driver.publish(self.bundle, Artifact::Patch, &self.patch)?;
        self.driver.stand_guard(self.bundle)?;
        let name = self.ground.change_name(self.bundle, &self.patch);
        let head = Some(self.head.clone());
        Ok(self.driver.occupy(self.ground, &Tenancy { job: name, head })?)
    }

    fn withdraw(&mut self) -> Result<(), TreeFault> {
        if let Some((head, change, patch)) = self.before.take() {
            (self.head, self.change, self.patch) = (head, change, patch);
        }
        Ok(self.ground.lane.reset(&self.head)?)
    }
}
