//! `pdca config migrate`: writes the file of an older instance as one of ours.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{BundleRoot, files};
use pdca_workspace::config::workspace::{FILE, FoundFile, find, sibling_targets};
use pdca_workspace::config::{ConfigDocument, Migrated, MigratedKind, migrate};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// A migrated file, or one that would be.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct MigrateReport {
    dry_run: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    file: Utf8PathBuf,
    /// Where the old file is kept; `None` unless it was written.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    backup: Option<Utf8PathBuf>,
    /// What became of each key, in the order of the old file.
    keys: Vec<MigratedKey>,
    /// The new text.
    text: String,
    written: bool,
    /// The changes were already shown with the question.
    #[serde(skip)]
    is_proposed: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MigratedKey {
    key: String,
    /// The line in the old file.
    line: Option<usize>,
    fate: MigratedKind,
    /// The counterpart, or the reason.
    what: String,
}

impl From<Migrated> for MigratedKey {
    fn from(change: Migrated) -> Self {
        let Migrated { key, line, kind, what } = change;
        Self { key, line, fate: kind, what }
    }
}

pub(super) fn run(cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let start = cx.globals.start_dir(cx.env)?;
    let Some(FoundFile { root, file }) = find(&start) else {
        return Err(Failure::usage(format!("no {FILE} in {start} or in a directory above it"))
            .hint("`-C DIR` names the workspace"));
    };
    let document = ConfigDocument::load(&file)
        .map_err(|problem| Failure::from(pdca_workspace::config::ConfigError::from(*problem)))?;
    let document = document.unwrap_or_else(|| ConfigDocument::new(file.clone(), ""));
    let migration = migrate(&document, &sibling_targets(&root, &bundles(&root, &document)))?;
    let is_ours = migration.text == document.text;
    let mut report = MigrateReport {
        dry_run: cx.globals.dry_run,
        file,
        backup: None,
        keys: migration.changes.into_iter().map(MigratedKey::from).collect(),
        text: migration.text,
        written: false,
        is_proposed: false,
    };
    if is_ours {
        return Ok(Response::new(report, Exit::NothingToDo));
    }
    if cx.globals.dry_run {
        return Ok(Response::done(report));
    }
    if !cx.globals.yes {
        if !cx.may_ask() {
            let failure = Failure::usage("nothing was written: there is no terminal to ask on");
            let again = cx.typed("pdca config migrate --yes");
            return Ok(Response::done(report).failed(failure.hint(format!("`{again}`"))));
        }
        report.proposal(cx, err)?;
        report.is_proposed = true;
        if !cx.ask("Write it?", err)? {
            return Ok(Response::done(report));
        }
    }
    let backup = free_name(&report.file);
    // First the copy: a crash in between leaves the old file in force, and one file too many.
    files::replace(&backup, document.text.as_bytes())?;
    files::replace(&report.file, report.text.as_bytes())?;
    report.backup = Some(backup);
    report.written = true;
    Ok(Response::done(report))
}

/// Returns the bundles that the old file names.
fn bundles(root: &Utf8Path, document: &ConfigDocument) -> BundleRoot {
    let table: Option<toml::Table> = document.text.parse().ok();
    let named = table.as_ref().and_then(|table| table.get("paths")?.get("bundle_root")?.as_str());
    BundleRoot::new(root.join(named.unwrap_or("results")))
}

/// Returns a name beside the file that is not taken.
fn free_name(file: &Utf8Path) -> Utf8PathBuf {
    let name = |number: usize| match number {
        1 => Utf8PathBuf::from(format!("{file}.old")),
        _ => Utf8PathBuf::from(format!("{file}.old-{number}")),
    };
    let is_free = |path: &Utf8PathBuf| path.symlink_metadata().is_err();
    (1..=usize::MAX).map(name).find(is_free).unwrap_or_else(|| name(1))
}

impl MigrateReport {
    fn proposal(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (fate, title) in [
            (MigratedKind::Mapped, "read as"),
            (MigratedKind::Dropped, "not used"),
            (MigratedKind::Look, "to look at"),
        ] {
            let keys: Vec<&MigratedKey> = self.keys.iter().filter(|key| key.fate == fate).collect();
            if keys.is_empty() {
                continue;
            }
            writeln!(out, "{} ({}):", cx.out.accent(title), keys.len())?;
            for MigratedKey { key, line, what, .. } in keys {
                let line = line.map_or_else(String::new, |line| format!("line {line}: "));
                writeln!(out, "  {line}`{}`: {}", printable(key), printable(what))?;
            }
        }
        writeln!(out, "\n{}:\n", cx.show(&self.file))?;
        for line in self.text.lines() {
            writeln!(out, "  {}", printable(line))?;
        }
        Ok(())
    }
}

impl Report for MigrateReport {
    const KIND: &'static str = "migrate";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let file = cx.show(&self.file);
        if self.keys.is_empty() && !self.written && !self.dry_run {
            writeln!(out, "{file} has no key of an older instance; nothing to write")?;
            return Ok(());
        }
        if !self.is_proposed {
            self.proposal(cx, out)?;
        }
        match &self.backup {
            Some(backup) => {
                writeln!(out)?;
                writeln!(
                    out,
                    "{} {file}; the old file is {}",
                    cx.out.good("wrote"),
                    cx.show(backup)
                )?;
                writeln!(out, "next: {}", cx.out.accent("pdca doctor"))?;
            }
            None if self.is_proposed => writeln!(out, "nothing was written")?,
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    const OLDER: &str = "# ours\n[driver]\n# how many\nlanes = 2\nworktree = true\n# a cap\nleaf_memory_max = \"1G\"\n\n\
        [gates]\nchecks = [\n  # the row\n  { id = \"a\", tier = \"T1\", cmd = \"true\" },\n]\nhost_ci = [\"typos\"]\n";

    #[test]
    fn the_text_is_shown_and_nothing_is_written_in_a_dry_run() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate", "--dry-run"]);
        assert_eq!(run.exit, Exit::Done, "{run}");
        for line in [
            "read as (2):\n",
            "  line 7: `driver.leaf_memory_max`: leaf_memory_mb = 1024\n",
            "not used (1):\n",
            "  line 5: `driver.worktree`: work is always done in private checkouts\n",
            "  # a cap\n  leaf_memory_mb = 1024\n",
            "  # the row\n",
        ] {
            assert!(run.out.contains(line), "{line:?} is not in\n{run}");
        }
        assert_eq!(fs_err::read_to_string(desk.workspace.path().join("pdca.toml")).unwrap(), OLDER);
    }

    #[test]
    fn the_old_file_is_kept_and_the_new_one_needs_no_compat() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate", "--yes"]);
        assert_eq!(run.exit, Exit::Done, "{run}");
        let kept = desk.workspace.path().join("pdca.toml.old");
        assert_eq!(fs_err::read_to_string(&kept).unwrap(), OLDER);
        assert_eq!(desk.run(&["status"]).to_string(), "no bundles in results\n");
        let again = desk.run(&["config", "migrate", "--yes"]);
        assert_eq!(again.exit, Exit::NothingToDo, "{again}");
        assert!(!desk.workspace.path().join("pdca.toml.old-2").exists());
    }

    #[test]
    fn without_a_terminal_nothing_is_written_and_the_command_is_named() {
        let desk = Desk::new();
        desk.workspace.config(OLDER);
        let run = desk.run(&["config", "migrate"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("`pdca config migrate --yes`"), "{run}");
    }

    #[test]
    fn what_gates_and_is_not_known_stops_it() {
        let desk = Desk::new();
        desk.workspace.config("[driver]\nworktree = true\n[gates]\nsecond_opinion = true\n");
        for args in [["config", "migrate", "--yes"], ["--compat", "-q", "status"]] {
            let run = desk.run(&args);
            assert_eq!(run.exit, Exit::Usage, "{run}");
            assert!(run.err.contains("unknown key `second_opinion` in [gates]"), "{run}");
        }
    }
}
