//! Reads a report from a workspace: the snapshot, the bundles, the recorded events, the certificates.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use pdca_dag::{ItemState, Options, Plan};
use pdca_driver::{Batch, WorkspaceConfig};
use pdca_integrate::Certificate;
use pdca_journal::events::{Event, IntegrationStep, LogLine, LogReader, Scope};
use pdca_journal::{RunId, Runs};
use pdca_state::{BundleId, CostTotal, chain, files};

use crate::batch_report::history::{Recorder, RunHistory, RunKind};
use crate::batch_report::model::{
    BundlePage, CertificateView, PlanView, ReportGroup, WorkspaceReport,
};
use crate::batch_report::text::{Budget, Text};
use crate::snapshot::{SnapshotEntry, SnapshotSource, WorkspaceSnapshot};
use crate::{OpenWorkspace, OperationError};

/// The bytes of texts in a page, for all bundles together. Markup comes on top.
const TEXTS: usize = 200 << 10;

/// The least and the most that one bundle gets of them.
const PER_BUNDLE: (usize, usize) = (1 << 10, 40 << 10);

/// The largest certificate that is read, in bytes.
const LARGEST_CERTIFICATE: u64 = 64 << 20;

/// The parts of a workspace that a report is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportSource<'a> {
    pub(super) project: &'a str,
    pub(super) config: &'a WorkspaceConfig,
    pub(super) snapshot: &'a WorkspaceSnapshot,
    /// The directory with the certificates.
    pub(super) certificates: &'a Utf8Path,
    /// The run to report on, `latest`, or all of them.
    pub(super) run: Option<&'a str>,
    /// The directory that commands are typed in.
    pub(super) cwd: &'a Utf8Path,
    pub(super) now: Timestamp,
}

/// The reasons why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("no run or integration is called `{wanted}`")]
    NoSuchRun { wanted: String },
    #[error("the recorded runs cannot be listed")]
    Runs(#[source] io::Error),
}

/// Reads the report of a workspace, or of one `run` or integration of it; `latest` is the newest.
pub fn workspace_report(
    open: &OpenWorkspace<'_>,
    run: Option<&str>,
) -> Result<WorkspaceReport, OperationError> {
    let workspace = open.workspace;
    let config = open.driver_config()?;
    let snapshot = WorkspaceSnapshot::load_at_work(SnapshotSource {
        bundles: &workspace.bundle_root,
        awaits: workspace.config.schedule.dependants.into(),
        config: Some(&config),
    })?;
    let name = workspace.config.project.name.as_deref();
    let source = ReportSource {
        project: name.or(workspace.root.file_name()).unwrap_or("pdca"),
        config: &config,
        snapshot: &snapshot,
        certificates: &workspace.process_dir.join("certificates"),
        run,
        cwd: open.environment.cwd,
        now: Timestamp::from_second(open.machine.now).unwrap_or_default(),
    };
    Ok(WorkspaceReport::load(source)?)
}

impl WorkspaceReport {
    /// Reads everything. A part that cannot be read is named in the report and never hides the rest.
    fn load(source: ReportSource<'_>) -> Result<Self, ReportError> {
        let mut unread: Vec<Text> =
            source.snapshot.unread.iter().map(|why| Text::line(why, 400)).collect();
        let recorded = recorded(source.config).map_err(ReportError::Runs)?;
        let chosen = choose(recorded, source.run)?;
        let mut named = BTreeSet::new();
        let mut runs = Vec::new();
        for (kind, all, id) in chosen {
            match history(kind, &all, &id, &mut named) {
                Ok(Some(run)) => runs.push(run),
                Ok(None) => {}
                Err(error) => unread.push(Text::line(&format!("events of {id}: {error}"), 400)),
            }
        }
        let limited = source.run.is_some();
        let put_away = put_away(source.config, &mut unread);
        let is_wanted = |entry: &&SnapshotEntry| !limited || named.contains(&entry.id);
        let active: BTreeSet<BundleId> = source
            .snapshot
            .entries
            .iter()
            .filter(is_wanted)
            .map(|entry| entry.id.clone())
            .collect();
        let entries: Vec<&SnapshotEntry> =
            source.snapshot.entries.iter().chain(&put_away).filter(is_wanted).collect();
        // A part for each, so that one large patch does not take the room of all others (decision 061).
        let share = (TEXTS / entries.len().max(1)).clamp(PER_BUNDLE.0, PER_BUNDLE.1);
        let mut bundles: Vec<BundlePage> = entries
            .iter()
            .map(|entry| crate::batch_report::bundle::page(source, entry, Budget::new(share)))
            .collect();
        bundles.sort_by(|a, b| {
            (a.group, a.open_items.len(), &a.id).cmp(&(b.group, b.open_items.len(), &b.id))
        });
        let shown: BTreeSet<BundleId> = bundles.iter().map(|bundle| bundle.id.clone()).collect();
        let cost =
            bundles.iter().map(|bundle| bundle.cost).fold(CostTotal::default(), CostTotal::plus);
        let certificates = certificates(source, limited.then_some(&shown), &mut unread);
        Ok(Self {
            project: Text::line(source.project, 80),
            made: source.now,
            run: source.run.and_then(|_| runs.first().map(|run| run.id.clone())),
            plan: plan(source.config, &active),
            bundles,
            runs,
            certificates,
            cost,
            unread,
        })
    }

    /// Returns whether something failed or waits for a person.
    pub fn needs_a_person(&self) -> bool {
        self.count(ReportGroup::Failed) + self.count(ReportGroup::NeedsYou) > 0
    }
}

/// Lists the bundles in `completed/`, which the snapshot leaves out.
fn put_away(config: &WorkspaceConfig, unread: &mut Vec<Text>) -> Vec<SnapshotEntry> {
    let bundles = config.dirs.bundles.list_completed().unwrap_or_else(|error| {
        unread.push(Text::line(&chain(&error), 400));
        Vec::new()
    });
    let entry = |bundle: &pdca_state::Bundle| SnapshotEntry {
        id: bundle.id().clone(),
        dir: bundle.dir().to_owned(),
        glance: bundle.glance(),
        blocked_by: Vec::new(),
        conflicts_with: Vec::new(),
        warnings: Vec::new(),
        failed: None,
    };
    bundles.iter().map(entry).collect()
}

type Recorded = Vec<(RunKind, Runs, RunId)>;

/// Lists every recorded run and integration, the newest first: ids begin with the time.
fn recorded(config: &WorkspaceConfig) -> io::Result<Recorded> {
    let mut all = Vec::new();
    let kinds =
        [(RunKind::Batch, config.dirs.runs()), (RunKind::Integration, config.dirs.integrations())];
    for (kind, runs) in kinds {
        all.extend(runs.list()?.into_iter().map(|id| (kind, runs.clone(), id)));
    }
    all.sort_by(|(_, _, a), (_, _, b)| b.cmp(a));
    Ok(all)
}

fn choose(mut recorded: Recorded, wanted: Option<&str>) -> Result<Recorded, ReportError> {
    let missing = |wanted: &str| ReportError::NoSuchRun { wanted: wanted.to_owned() };
    match wanted {
        None => Ok(recorded),
        Some("latest") if recorded.is_empty() => Err(missing("latest")),
        Some("latest") => {
            recorded.truncate(1);
            Ok(recorded)
        }
        Some(wanted) => {
            recorded.retain(|(_, _, id)| id.as_str().eq_ignore_ascii_case(wanted));
            if recorded.is_empty() { Err(missing(wanted)) } else { Ok(recorded) }
        }
    }
}

/// Reads the events of a run; `None` if it has no log. `named` gets the bundles that it is about.
fn history(
    kind: RunKind,
    runs: &Runs,
    id: &RunId,
    named: &mut BTreeSet<BundleId>,
) -> io::Result<Option<RunHistory>> {
    let Some(mut reader) = LogReader::open(&runs.dir(id))? else { return Ok(None) };
    let (mut recorder, mut unreadable) = (Recorder::default(), 0);
    for line in reader.read()? {
        match line {
            LogLine::Event(event, _) => {
                name_bundles(&event, named);
                recorder.take(&event);
            }
            LogLine::Unreadable { .. } => unreadable += 1,
        }
    }
    let (spans, steps) = recorder.finish();
    let host = runs.find(id).found.ok().map(|found| found.state.driver.place.host);
    Ok(Some(RunHistory { id: id.to_string(), kind, host, spans, steps, unreadable }))
}

fn name_bundles(event: &Event, named: &mut BTreeSet<BundleId>) {
    if let Scope::Bundle(id) = &event.scope {
        named.insert(id.clone());
    }
    if let pdca_journal::events::EventKind::Integration { step: Some(step), .. } = &event.kind {
        match step {
            IntegrationStep::Gating { bundles, .. } => named.extend(bundles.iter().cloned()),
            IntegrationStep::Held { bundle, .. } | IntegrationStep::Landed { bundle, .. } => {
                named.insert(bundle.clone());
            }
            IntegrationStep::BaseMoved { .. }
            | IntegrationStep::Green { .. }
            | IntegrationStep::Red { .. }
            | IntegrationStep::NoVerdict { .. }
            | IntegrationStep::Flaky { .. }
            | IntegrationStep::Mended { .. } => {}
        }
    }
}

/// Plans all these bundles as if none was built, so that the picture stays the same from the first day to the last.
fn plan(config: &WorkspaceConfig, shown: &BTreeSet<BundleId>) -> Result<PlanView, Text> {
    let text = |error: &dyn std::error::Error| Text::line(&chain(error), 400);
    let batch = Batch::of(config, shown).map_err(|error| text(&error))?;
    let mut items = batch.items;
    for item in &mut items {
        item.standing = ItemState::Active;
    }
    let options = Options {
        untouched: config.schedule.untouched,
        dependants: config.schedule.dependants.into(),
        leave_alone: true,
        ..Options::default()
    };
    let plan = Plan::new(items, &batch.outside, options)
        .map_err(|rejection| Text::line(&rejection.to_string(), 400))?;
    let waves = plan.waves().into_iter().map(|wave| wave.into_iter().cloned().collect()).collect();
    let edges = plan.edges().into_iter().map(|edge| (edge.prerequisite, edge.dependant)).collect();
    let left_out = plan
        .left_alone()
        .iter()
        .map(|one| (one.id().clone(), Text::line(&one.to_string(), 200)))
        .collect::<BTreeMap<_, _>>();
    Ok(PlanView { waves, edges, left_out: left_out.into_iter().collect() })
}

/// Lists the certificates, of these bundles if only some are asked for.
fn certificates(
    source: ReportSource<'_>,
    only: Option<&BTreeSet<BundleId>>,
    unread: &mut Vec<Text>,
) -> Vec<CertificateView> {
    let mut views = Vec::new();
    for path in certificate_paths(source.certificates) {
        let shown = path.strip_prefix(source.cwd).unwrap_or(&path).to_owned();
        let read = files::read_bounded(&path, LARGEST_CERTIFICATE).map_err(|error| chain(&error));
        let parsed = read.and_then(|text| {
            let text = text.ok_or_else(|| "not found".to_owned())?;
            Certificate::parse(&text).map_err(|error| chain(&error))
        });
        match parsed {
            Ok(certificate) => views.push(view(shown, &certificate)),
            Err(why) => unread.push(Text::line(&format!("{shown}: {why}"), 400)),
        }
    }
    views.retain(|view| {
        only.is_none_or(|only| view.bundles.iter().any(|bundle| only.contains(bundle)))
    });
    views
}

/// Lists the files, the newest first: names begin with the run, which begins with the time.
fn certificate_paths(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut paths: Vec<Utf8PathBuf> = dir
        .read_dir_utf8()
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path().to_owned())
        .filter(|path| path.extension() == Some("json"))
        .collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

fn view(path: Utf8PathBuf, certificate: &Certificate) -> CertificateView {
    CertificateView {
        bundles: certificate.results.iter().map(|result| result.id.clone()).collect(),
        base: certificate.base.to_string(),
        commit: certificate.commit.to_string(),
        tree: certificate.tree.to_string(),
        reference: Text::line(&certificate.reference, 200),
        command: format!("pdca verify {}", pdca_state::text::shell(path.as_str())),
        path,
    }
}
