//! `pdca select`: turns an export of the tracker into a profile, buckets and a batch of draft briefs.

#[cfg(test)]
mod tests;

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_forge::select::Character;
use pdca_process::Cancel;
use pdca_workspace::drafts::{DraftRequest, ExportSource, open_export};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::render;
use crate::report::Response;
use crate::session::Interrupts;

/// Turn an export of the tracker into a batch of draft briefs
///
/// Reads a CSV export, the open issues of a GitHub repository, or the output of `[select] cmd`. Shows the pool by status,
/// severity, component and age, puts every record into one bucket, and writes a draft bundle for each record that is not
/// dropped: a brief with a triage scaffold, and the thread as `notes.json`. The batch is listed in
/// `process/batches/<date>.md`. A draft is not built before a person has filled in its triage verdict and its slug. Existing
/// bundles are left alone; a selection that was interrupted is finished by repeating it.
#[derive(Debug, Clone, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca select --from-csv export.csv --dry-run               # profile and buckets, nothing written
  pdca select --from-csv export.csv --character fix --limit 12
  pdca select --from-csv export.csv --only 12,15,PROJ-7
  pdca select --from-csv - --expect 12,15 < export.csv      # stop if these are not in it
  pdca select --from-gh owner/repo --character hygiene --limit 20

[select] in pdca.toml names columns and buckets, [tracker] notes_cmd prints a thread. Without --limit and --only at most 50
drafts are written. Exit codes: 0 drafts were written, 2 the export is wrong and nothing was written, 4 nothing to write.")]
pub(crate) struct Args {
    /// Read this CSV export; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    from_csv: Option<Utf8PathBuf>,

    /// Read the open issues of this repository through `gh`
    #[arg(long, value_name = "OWNER/REPO", conflicts_with = "from_csv")]
    from_gh: Option<String>,

    /// The separator of the export, a character or `tab` [default: found in the header]
    #[arg(long, value_name = "CHAR", requires = "from_csv")]
    separator: Option<String>,

    /// Ids that must be in the export; otherwise it is the wrong one
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    expect: Vec<IdArg>,

    /// Order the batch: fix (the gravest first) or hygiene (the oldest first)
    #[arg(long, value_name = "CHARACTER", value_enum, hide_possible_values = true)]
    character: Option<CharacterArg>,

    /// Take records of this bucket only; can be repeated
    #[arg(long, value_name = "NAME")]
    bucket: Vec<String>,

    /// The number of drafts in the batch
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Take exactly these records
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with_all = ["limit", "bucket"])]
    only: Vec<IdArg>,

    /// The name of the batch [default: today's date]
    #[arg(long, value_name = "NAME")]
    batch: Option<String>,

    /// Do not fetch threads
    #[arg(long)]
    no_notes: bool,
}

/// The character of a batch, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CharacterArg {
    Fix,
    Hygiene,
}

impl Args {
    /// Returns true if an export is named.
    pub(super) fn has_source(&self) -> bool {
        self.from_csv.is_some() || self.from_gh.is_some()
    }

    /// Returns the option that chooses records, if one was typed.
    pub(super) fn choice(&self) -> Option<&'static str> {
        let only = (!self.only.is_empty()).then_some("--only");
        let bucket = (!self.bucket.is_empty()).then_some("--bucket");
        only.or(bucket).or(self.limit.is_some().then_some("--limit"))
    }

    /// Takes exactly these records.
    pub(super) fn of_only(&self, ids: Vec<IdArg>) -> Self {
        Self { only: ids, ..self.clone() }
    }
}

impl CharacterArg {
    fn character(self) -> Character {
        match self {
            Self::Fix => Character::Fix,
            Self::Hygiene => Character::Hygiene,
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let ids = |given: &[IdArg]| given.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>();
    let (expected, only) = (ids(&args.expect)?, ids(&args.only)?);
    let separator = args.separator.as_deref();
    let mut input = std::io::stdin().lock();
    let source = match (&args.from_csv, &args.from_gh) {
        (Some(path), _) if path == "-" => {
            ExportSource::StandardInput { input: &mut input, separator }
        }
        (Some(path), _) => ExportSource::Csv { path, separator },
        (None, Some(repo)) => ExportSource::Gh(repo),
        (None, None) => ExportSource::Configured,
    };
    // Standard input is read before signals are caught: until then nothing is written, and Ctrl-C ends it at once.
    let opened = open_export(&open, source, args.batch.as_deref())?;
    let request = DraftRequest {
        character: args.character.map(CharacterArg::character),
        buckets: &args.bucket,
        limit: args.limit,
        only: &only,
        notes: !args.no_notes,
    };
    let cancel = Cancel::new();
    let signals = Interrupts::listen(&cancel)?;
    let selected = (|| {
        let export = opened.read(&expected, &cancel)?;
        render::select::note_limit(&export, cx, err)?;
        render::select::selected(export.write_drafts(request, &cancel)?, cx, err)
    })();
    signals.close();
    selected
}
