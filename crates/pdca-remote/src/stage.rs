//! The near side of `stage`: what a leg on a host needs, collected from this machine.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::leg::{
    ClaimedLeg, FileEntry, GatesLeg, LegBase, LegFile, LegName, LegResult, LegWork, SentLeg,
    files_below,
};
use pdca_driver::{Author, BeatError, Dates, Driver, Run, Schedule, WorkspaceConfig, cost_of_run};
use pdca_leaves::Instructions;
use pdca_process::GitCallError;
use pdca_state::{Money, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::fit_host::FitHost;
use crate::host::Fetched;
use crate::objects::{pack, shallow_commits};
use crate::runner::entries;
use crate::verb::{Assignment, Objects};

/// The largest file that is sent to a host.
const LARGEST: u64 = 64 << 20;

/// The part of the driver's configuration that a leg on a host needs beside its terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LegSettings {
    /// Distinguishes the driver's workspace from others on the host.
    pub(crate) workspace: String,
    pub(crate) run: String,
    pub(crate) target: Option<LegTarget>,
    pub(crate) default_branch: Option<String>,
    pub(crate) author: Option<Author>,
    /// The date of commits, where it does not come from a clock.
    pub(crate) fixed_date: Option<i64>,
    /// The driver's clock when the leg was staged, in seconds since 1970.
    pub(crate) sent_at: i64,
    pub(crate) schedule: Schedule,
    /// The number of leaf calls that the leg may make.
    pub(crate) calls: Option<u64>,
    /// Those that the run made before.
    pub(crate) called: u64,
    /// The instructions of the roles that the leg may call.
    #[serde(default)]
    pub(crate) instructions: BTreeMap<String, Instructions>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LegTarget {
    pub(crate) name: String,
    pub(crate) repo: Option<String>,
    pub(crate) branch: Option<String>,
    /// The repository on the host.
    pub(crate) repository: String,
}

/// A leg with everything that is sent for it.
pub(crate) struct Staging {
    pub(crate) assignment: Assignment,
    /// The contents of its files, by digest.
    pub(crate) contents: Contents,
    /// The repository that commits come from.
    common_dir: Option<Utf8PathBuf>,
}

impl Staging {
    pub(crate) fn name(&self) -> &LegName {
        &self.assignment.job.name
    }

    /// Returns the pack of the commits that a host lacks.
    pub(crate) fn pack(&self, have: &[String]) -> Result<Vec<u8>, GitCallError> {
        match (&self.common_dir, &self.assignment.objects) {
            (Some(dir), Some(objects)) => pack(dir, &objects.commits, have),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the digests of what the host was sent.
    pub(crate) fn known(&self) -> Vec<String> {
        self.contents.keys().cloned().collect()
    }

    /// Returns the files that were sent, and the result with their contents, which did not travel back.
    pub(crate) fn result(self, fetched: Fetched) -> (Vec<FileEntry>, LegResult) {
        let (collected, mut contents, pack) = fetched;
        for (digest, bytes) in self.contents {
            contents.entry(digest).or_insert(bytes);
        }
        let published = collected.published;
        let result = LegResult {
            name: published.name,
            outcome: published.outcome,
            files: published.files,
            contents,
            head: published.head,
            pack,
        };
        (self.assignment.files, result)
    }
}

/// Returns the name of a target's repository on hosts.
pub fn repository_name(name: &str, common_dir: &Utf8Path) -> String {
    let tame: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    format!("{tame}-{:.12}", sha256_hex(common_dir.as_str().as_bytes()))
}

/// Describes a leg of a bundle.
pub(crate) fn stage_attempt(
    cx: &Driver<'_>,
    host: &FitHost,
    claimed: &ClaimedLeg<'_>,
) -> Result<Staging, BeatError> {
    let (bundle, name) = (claimed.bundle(), claimed.name().clone());
    let mut terms = cx.config.terms();
    // A host sees one bundle, so what is left for the run bounds what the bundle may spend.
    if let (Some(limit), Some(run)) = (terms.limits.max_cost, cx.run) {
        let spent = cost_of_run(cx.config, &cx.config.run, &run.batch()).cost;
        let own = bundle.calls().cost().map(|total| total.cost).unwrap_or_default();
        // The host compares the sum of the bundle's ledger, which has earlier costs in it, so they
        // are added to what the run has left.
        let left = own.plus(Money::from_micros(limit.micros().saturating_sub(spent.micros())));
        let issue = terms.limits.max_cost_per_issue;
        terms.limits.max_cost_per_issue = Some(issue.map_or(left, |issue| issue.min(left)));
    }
    let job = SentLeg { name, work: LegWork::Attempt { bundle: bundle.id().clone() }, terms };
    let files = claimed.files(cx.config).map_err(BeatError::Own)?;
    // Read here, from the commit that this driver fixed: the host's copy of the workspace has none of its places.
    let instructions = claimed.instructions(cx.config).map_err(BeatError::Own)?;
    let own = Own { calls: claimed.calls(), instructions: instructions.unwrap_or_default() };
    stage(cx, host, job, files, claimed.base(), own)
}

/// Describes the gating of a combination.
pub(crate) fn stage_gates(
    cx: &Driver<'_>,
    host: &FitHost,
    leg: &GatesLeg<'_>,
) -> Result<Staging, BeatError> {
    let base = LegBase::of_commit(leg.target, leg.commit)?;
    let work = LegWork::Gates {
        target: leg.target.name.clone(),
        branch: leg.branch.to_owned(),
        commit: leg.commit.to_owned(),
        tree: leg.tree.to_owned(),
    };
    let job = SentLeg { name: leg.name.clone(), work, terms: cx.config.terms() };
    stage(cx, host, job, Vec::new(), Some(&base), Own::default())
}

/// The settings that only a leg of a bundle has.
#[derive(Default)]
struct Own {
    calls: Option<u64>,
    instructions: BTreeMap<String, Instructions>,
}

fn stage(
    cx: &Driver<'_>,
    host: &FitHost,
    job: SentLeg,
    mut sent: Vec<LegFile>,
    base: Option<&LegBase>,
    own: Own,
) -> Result<Staging, BeatError> {
    let root = &cx.config.dirs.root;
    for path in host.host.spec.send.iter().cloned().chain(prompt_files(cx.config)) {
        let from = root.join(&path);
        if from.is_dir() {
            let files = files_below(&from).map_err(BeatError::Own)?;
            sent.extend(
                files
                    .into_iter()
                    .map(|file| LegFile { from: from.join(&file), to: path.join(file) }),
            );
        } else {
            sent.push(LegFile { from, to: path });
        }
    }
    let (files, contents) = read_all(&sent).map_err(BeatError::Own)?;
    let objects = base.map(|base| {
        // A SHA-1 id has 40 digits and a SHA-256 id 64.
        let is_long = base.commits.iter().any(|commit| commit.len() > 40);
        Objects {
            repository: repository_name(base.target.name(), base.common_dir()),
            format: if is_long { "sha256" } else { "sha1" }.to_owned(),
            commits: base.commits.clone(),
            shallow: shallow_commits(base.common_dir()),
        }
    });
    let settings = settings(cx, base, objects.as_ref(), own);
    let settings = serde_json::to_value(&settings).map_err(|error| BeatError::Own(error.into()))?;
    Ok(Staging {
        assignment: Assignment { job, objects, files, slot: cx.place.slot, settings },
        contents,
        common_dir: base.map(|base| base.common_dir().to_owned()),
    })
}

fn settings(
    cx: &Driver<'_>,
    base: Option<&LegBase>,
    objects: Option<&Objects>,
    own: Own,
) -> LegSettings {
    let config = cx.config;
    let target = base.zip(objects).map(|(base, objects)| LegTarget {
        name: base.spec.name.clone(),
        repo: base.spec.repo.clone(),
        branch: base.spec.branch.clone(),
        repository: objects.repository.clone(),
    });
    LegSettings {
        workspace: config.dirs.mark(),
        run: config.run.clone(),
        target,
        default_branch: config.default_branch.clone(),
        // The user of this machine's git, who is not known to the host's.
        author: base.map(|base| base.author(config)).or_else(|| config.author.clone()),
        fixed_date: match config.dates {
            Dates::Fixed(seconds) => Some(seconds),
            Dates::Clock(_) | Dates::Behind(..) => None,
        },
        sent_at: (config.clock)(),
        schedule: config.schedule,
        calls: own.calls,
        called: cx.run.map_or(0, Run::leaf_calls),
        instructions: own.instructions,
    }
}

/// Returns the prompts that leaves read from files of the workspace.
fn prompt_files(config: &WorkspaceConfig) -> Vec<Utf8PathBuf> {
    let all = config.leaves.all().map(|(_, _, leaf)| leaf);
    let all = all.chain(config.leaves.variants().map(|(_, leaf)| leaf));
    let files = all.filter_map(|leaf| leaf.prompt_file.clone());
    files.filter(|file| file.is_relative()).collect()
}

/// Contents by digest.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

fn read_all(sent: &[LegFile]) -> io::Result<(Vec<FileEntry>, Contents)> {
    let (mut files, mut contents) = (BTreeMap::new(), BTreeMap::new());
    for LegFile { from, to } in sent {
        let about = match fs_err::metadata(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.len() > LARGEST {
            let said = format!("{from} has {} bytes, too many to send to a host", about.len());
            return Err(io::Error::other(said));
        }
        let dir = from.parent().unwrap_or(from);
        let name = Utf8PathBuf::from(from.file_name().unwrap_or_default());
        for entry in entries(dir, &[name])? {
            contents.insert(entry.digest.clone(), fs_err::read(from)?);
            files.insert(to.clone(), FileEntry { path: to.clone(), ..entry });
        }
    }
    Ok((files.into_values().collect(), contents))
}
