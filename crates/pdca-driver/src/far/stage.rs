//! The near side of `stage`: what a job on a host needs, collected from this machine.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_exec::{Job, JobName, Work};
use pdca_lanes::Target;
use pdca_remote::{Assignment, FileEntry, Objects, entries, files_below, shallow_commits};
use pdca_state::{Bundle, Money, sha256_hex};

use super::{FarSettings, FarTarget, FleetHost};
use crate::attempt::Attempt;
use crate::authorship::Dates;
use crate::calls::cost_of_run;
use crate::commits::author_for;
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::instructions::instructions_to_send;
use crate::run_bundle::{BeatError, Driver};

/// The largest file that is sent to a host.
const LARGEST: u64 = 64 << 20;

/// A job for a host with everything that is sent for it.
pub(super) struct Leg {
    pub(super) name: JobName,
    pub(super) assignment: Assignment,
    /// The contents of its files, by digest.
    pub(super) contents: Contents,
    /// The repository that commits come from and go to.
    pub(super) common_dir: Option<Utf8PathBuf>,
}

impl Leg {
    /// Returns the pack of the commits that a host lacks.
    pub(super) fn pack(&self, have: &[String]) -> Result<Vec<u8>, pdca_process::GitCallError> {
        match (&self.common_dir, &self.assignment.objects) {
            (Some(dir), Some(objects)) => pdca_remote::pack(dir, &objects.commits, have),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the digests of what the host was sent.
    pub(super) fn known(&self) -> Vec<String> {
        self.contents.keys().cloned().collect()
    }
}

/// The commits of a target that a job needs.
pub(super) struct Wanted<'w> {
    pub(super) target: &'w Target,
    pub(super) spec: &'w TargetSpec,
    pub(super) commits: Vec<String>,
}

/// Returns the name of a target's repository on hosts.
pub fn repository_name(name: &str, common_dir: &Utf8Path) -> String {
    let tame: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    format!("{tame}-{:.12}", sha256_hex(common_dir.as_str().as_bytes()))
}

/// Returns the commits that an attempt needs: its base, and the head of its change.
pub(super) fn commits_of(attempt: &Attempt) -> Vec<String> {
    let head = attempt.changes.last().map(|change| change.head.clone());
    std::iter::once(attempt.base.clone()).chain(head).collect()
}

/// Describes a leg of a bundle.
pub(super) fn band(
    cx: &Driver<'_>,
    to: (&FleetHost, u32),
    bundle: &Bundle,
    name: &JobName,
    wanted: Option<&Wanted<'_>>,
    calls: Option<u64>,
) -> Result<Leg, BeatError> {
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
    let job = Job { name: name.clone(), work: Work::Band { bundle: bundle.id().clone() }, terms };
    let here = |path: Utf8PathBuf| Sent { from: path.clone(), to: path };
    let dirs = &cx.config.dirs;
    let below = |dir: &Utf8Path, to: &Utf8Path| -> io::Result<Vec<Sent>> {
        let files = files_below(dir)?;
        Ok(files
            .into_iter()
            .map(|path| Sent { from: dir.join(&path), to: to.join(path) })
            .collect())
    };
    let into = Utf8Path::new("results").join(bundle.id().dir_name());
    let mut sent = below(bundle.dir(), &into).map_err(BeatError::Own)?;
    let record = format!("{}.json", bundle.id().dir_name());
    for path in [
        Utf8Path::new(".pdca/attempts").join(&record),
        Utf8Path::new(".pdca/attempt-notes").join(&record),
        // Rows in quarantine must not block on a host either.
        Utf8PathBuf::from(".pdca/flakes.json"),
    ] {
        sent.push(Sent { from: dirs.root.join(&path), ..here(path) });
    }
    let mut leg = leg(cx, to, job, sent, wanted, calls)?;
    // Read here, from the commit that this driver fixed: the host's copy of the workspace has none of its places.
    if let Some(wanted) = wanted
        && let Some(attempt) = cx.config.attempts().load(bundle.id()).map_err(BeatError::Own)?
    {
        let found = instructions_to_send(cx.config, wanted.target, &attempt);
        let found = found.map_err(|error| BeatError::Own(io::Error::other(error)))?;
        let found = serde_json::to_value(&found).map_err(|error| BeatError::Own(error.into()))?;
        leg.assignment.settings["instructions"] = found;
    }
    Ok(leg)
}

/// Describes the gating of a combination.
pub(super) fn combination(
    cx: &Driver<'_>,
    to: (&FleetHost, u32),
    job: Job,
    wanted: &Wanted<'_>,
) -> Result<Leg, BeatError> {
    leg(cx, to, job, Vec::new(), Some(wanted), None)
}

/// A file here, and its path in the workspace of the job.
struct Sent {
    from: Utf8PathBuf,
    to: Utf8PathBuf,
}

fn leg(
    cx: &Driver<'_>,
    (host, slot): (&FleetHost, u32),
    job: Job,
    mut sent: Vec<Sent>,
    wanted: Option<&Wanted<'_>>,
    calls: Option<u64>,
) -> Result<Leg, BeatError> {
    let root = &cx.config.dirs.root;
    for path in host.host.spec.send.iter().cloned().chain(prompt_files(cx.config)) {
        let from = root.join(&path);
        if from.is_dir() {
            let files = files_below(&from).map_err(BeatError::Own)?;
            sent.extend(
                files.into_iter().map(|file| Sent { from: from.join(&file), to: path.join(file) }),
            );
        } else {
            sent.push(Sent { from, to: path });
        }
    }
    let (files, contents) = read_all(&sent).map_err(BeatError::Own)?;
    let objects = wanted.map(|wanted| {
        let common_dir = wanted.target.common_dir();
        let format =
            // A SHA-1 id has 40 digits and a SHA-256 id 64.
            if wanted.commits.iter().any(|commit| commit.len() > 40) { "sha256" } else { "sha1" };
        Objects {
            repository: repository_name(wanted.target.name(), common_dir),
            format: format.to_owned(),
            commits: wanted.commits.clone(),
            shallow: shallow_commits(common_dir),
        }
    });
    let settings = settings(cx, wanted, objects.as_ref(), calls);
    let settings = serde_json::to_value(&settings).map_err(|error| BeatError::Own(error.into()))?;
    Ok(Leg {
        name: job.name.clone(),
        assignment: Assignment { job, objects, files, slot, settings },
        contents,
        common_dir: wanted.map(|wanted| wanted.target.common_dir().to_owned()),
    })
}

fn settings(
    cx: &Driver<'_>,
    wanted: Option<&Wanted<'_>>,
    objects: Option<&Objects>,
    calls: Option<u64>,
) -> FarSettings {
    let config = cx.config;
    let target = wanted.zip(objects).map(|(wanted, objects)| FarTarget {
        name: wanted.spec.name.clone(),
        repo: wanted.spec.repo.clone(),
        branch: wanted.spec.branch.clone(),
        repository: objects.repository.clone(),
    });
    FarSettings {
        workspace: config.dirs.mark(),
        run: config.run.clone(),
        target,
        default_branch: config.default_branch.clone(),
        // The user of this machine's git, who is not known to the host's.
        author: wanted
            .map(|wanted| author_for(config, wanted.target))
            .or_else(|| config.author.clone()),
        fixed_date: match config.dates {
            Dates::Fixed(seconds) => Some(seconds),
            Dates::Clock(_) | Dates::Behind(..) => None,
        },
        sent_at: (config.clock)(),
        schedule: config.schedule,
        calls,
        called: cx.run.map_or(0, crate::run::Run::leaf_calls),
        instructions: BTreeMap::new(),
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
type Contents = BTreeMap<String, Vec<u8>>;

fn read_all(sent: &[Sent]) -> io::Result<(Vec<FileEntry>, Contents)> {
    let (mut files, mut contents) = (BTreeMap::new(), BTreeMap::new());
    for Sent { from, to } in sent {
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
