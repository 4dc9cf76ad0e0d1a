//! A new workspace as a value, and its writing.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::tool_guard::Agent;
use serde::Serialize;

use super::{
    AgentPair, AgentsFiles, Chosen, DetectedTools, NewFile, PdcaSource, ScaffoldError, detect,
    instructions, plan, settings, target_path,
};
use crate::config::Environment;
use crate::config::workspace::FILE;

/// A request for a new workspace.
#[derive(Debug, Clone, Copy)]
pub struct InitRequest<'a> {
    /// The directory that is to become a workspace.
    pub dir: &'a Utf8Path,
    /// The repository under change, if it is not the one around the directory.
    pub target: Option<&'a Utf8Path>,
    /// The first agent found builds if none is chosen.
    pub builder: Option<Chosen>,
    pub reviewer: Option<Chosen>,
    /// Further agents that get the guard's configuration.
    pub guard: &'a [Agent],
    /// Where CI builds pdca from.
    pub pdca_source: Option<&'a PdcaSource>,
    pub agents_files: AgentsFiles,
    pub dry_run: bool,
}

/// A workspace that was created, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewWorkspace {
    pub dry_run: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub workspace: Utf8PathBuf,
    /// The build tools found.
    pub tools: Vec<&'static str>,
    /// The proposed gate rows.
    pub gates: Vec<&'static str>,
    /// The agents found.
    pub agents: Vec<&'static str>,
    pub builder: Option<&'static str>,
    pub reviewer: Option<&'static str>,
    /// The configuration without its comments; `None` if the file exists.
    pub config: Option<String>,
    /// The repository proposed as target.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub target: Option<Utf8PathBuf>,
    /// The files that do not exist yet, relative to the workspace; none if it is a workspace already.
    pub files: Vec<NewFile>,
    pub written: bool,
    /// Remarks on agents and on the workflow.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Detects build tools, agents and the repository around a directory, and plans the files of a workspace.
pub fn plan_workspace(
    request: InitRequest<'_>,
    environment: Environment<'_>,
) -> Result<NewWorkspace, ScaffoldError> {
    let dir = request.dir;
    let found = match request.target {
        Some(target) => {
            let path = target_path(dir, target, environment.cwd)?;
            let of_target = detect(&dir.join(&path), environment);
            DetectedTools { repository: Some(path), ..of_target }
        }
        None => detect(dir, environment),
    };
    let pair = AgentPair::choose(&found.agents, request.builder, request.reviewer);
    let mut notes = pair.notes(environment);
    let guarded: BTreeSet<&str> = found
        .agents
        .iter()
        .copied()
        .chain(pair.names())
        .chain(request.guard.iter().map(|agent| agent.as_str()))
        .collect();
    let source = request.pdca_source.cloned().or_else(PdcaSource::built_in);
    let mut files = plan(dir, &found, pair, &guarded, source.as_ref(), &mut notes)?;
    files.extend(instructions(dir, request.agents_files, &pair.names().collect())?);
    for file in &mut files {
        file.path = file.path.strip_prefix(dir).unwrap_or(&file.path).to_owned();
    }
    let config = files.iter().find(|file| file.path.ends_with(FILE));
    Ok(NewWorkspace {
        dry_run: request.dry_run,
        workspace: dir.to_owned(),
        tools: found.tools,
        gates: found.gates.iter().map(|row| row.id).collect(),
        agents: found.agents,
        builder: pair.builder,
        reviewer: pair.reviewer,
        config: config.map(|file| settings(&file.text)),
        target: found.repository,
        files,
        written: false,
        notes,
    })
}

impl NewWorkspace {
    /// Writes the files.
    pub fn write(&mut self) -> Result<(), ScaffoldError> {
        for file in &self.files {
            file.write(&self.workspace)?;
        }
        self.written = true;
        Ok(())
    }
}
