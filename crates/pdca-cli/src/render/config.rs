//! The effective configuration, and a migrated one, as text.

use std::io::Write;

use pdca_workspace::config::{
    ConfigMigration, EffectiveConfig, EffectiveValue, Layer, MigratedKey, MigratedKind, TrustedFile,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// Makes the response of the effective values.
pub(crate) fn effective(config: EffectiveConfig, is_whole: bool) -> Response {
    Response::done(ConfigReport { config, is_whole })
}

/// The effective values, and which of them people are shown.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ConfigReport {
    #[serde(flatten)]
    config: EffectiveConfig,
    /// Includes values of unused leaves.
    #[serde(skip)]
    is_whole: bool,
}

impl Report for ConfigReport {
    const KIND: &'static str = "config";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let config = &self.config;
        let is_shown = |value: &&EffectiveValue| self.is_whole || config.is_significant(value);
        for EffectiveValue { key, value, source, place } in config.values.iter().filter(is_shown) {
            let source = match (source, place) {
                (Layer::Default, _) | (_, None) => "default",
                (
                    Layer::Preset | Layer::User | Layer::Workspace | Layer::Env | Layer::Flag,
                    Some(place),
                ) => place,
            };
            let value = value.to_string();
            let source = cx.out.faint(format!("# {source}"));
            writeln!(out, "{key} = {}  {source}", printable(&value))?;
        }
        Ok(())
    }
}

/// Makes the response of a file that is trusted from now on.
pub(crate) fn trusted(trusted: Option<TrustedFile>) -> Result<Response, Failure> {
    trusted.map(Response::done).ok_or_else(|| {
        Failure::new(Exit::NothingToDo, "there is no user's config file")
            .hint("`pdca help config` says where it is looked for")
    })
}

impl Report for TrustedFile {
    const KIND: &'static str = "trust";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let verb = if self.recorded { "trusted" } else { "would trust" };
        let file = printable(self.file.as_str());
        writeln!(out, "{verb} {file} ({:.12}) in this workspace", self.sha256)?;
        Ok(())
    }
}

/// A migration, and whether a person has seen its changes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MigrateReport {
    #[serde(flatten)]
    migration: ConfigMigration,
    /// The changes were already shown with the question.
    #[serde(skip)]
    is_proposed: bool,
}

/// Makes the response of a migration that was not shown yet.
pub(crate) fn migrated(migration: ConfigMigration) -> Response {
    let exit = if migration.is_current() { Exit::NothingToDo } else { Exit::Done };
    Response::new(MigrateReport { migration, is_proposed: false }, exit)
}

/// Makes the response of a migration that a person was asked about.
pub(crate) fn asked(migration: ConfigMigration) -> Response {
    Response::done(MigrateReport { migration, is_proposed: true })
}

/// Writes the changes for people, before they are asked.
pub(crate) fn proposal(
    migration: &ConfigMigration,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for (fate, title) in [
        (MigratedKind::Mapped, "read as"),
        (MigratedKind::Dropped, "not used"),
        (MigratedKind::Look, "to look at"),
    ] {
        let keys: Vec<&MigratedKey> =
            migration.keys.iter().filter(|key| key.fate == fate).collect();
        if keys.is_empty() {
            continue;
        }
        writeln!(out, "{} ({}):", cx.out.accent(title), keys.len())?;
        for MigratedKey { key, line, what, .. } in keys {
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            writeln!(out, "  {line}`{}`: {}", printable(key), printable(what))?;
        }
    }
    writeln!(out, "\n{}:\n", cx.show(&migration.file))?;
    for line in migration.text.lines() {
        writeln!(out, "  {}", printable(line))?;
    }
    Ok(())
}

impl Report for MigrateReport {
    const KIND: &'static str = "migrate";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let migration = &self.migration;
        let file = cx.show(&migration.file);
        if migration.keys.is_empty() && !migration.written && !migration.dry_run {
            writeln!(out, "{file} has no key of an older instance; nothing to write")?;
            return Ok(());
        }
        if !self.is_proposed {
            proposal(migration, cx, out)?;
        }
        match &migration.backup {
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
