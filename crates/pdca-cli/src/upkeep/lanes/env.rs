//! Prints the private names of a lane.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::json::write_json;
use crate::report::{Report, Response};
use crate::style::shell;
use pdca_workspace::lanes::WorkspaceLanes;

/// The syntax of the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    /// `export NAME='value'`, for sh, bash and zsh
    Sh,
    /// `set -gx NAME 'value'`
    Fish,
    /// An object
    Json,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaneEnvReport {
    slot: u32,
    target: String,
    env: BTreeMap<&'static str, String>,
    #[serde(skip)]
    shell: Shell,
}

/// Returns the private names of a lane.
pub(crate) fn env(
    slot: u32,
    target: Option<&str>,
    syntax: Shell,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx.workspace()?)?;
    let target = choose(&place, target)?;
    let names = place.names(&target, slot);
    if !place.lanes.slot_dir(slot).join(&target).exists() {
        let note = format!("lane {slot} of {target} is not there yet");
        cx.note(err, &format!("{} {note}", cx.err.accent("note:")))?;
    }
    let env = names.env().collect();
    Ok(Response::done(LaneEnvReport { slot, target, env, shell: syntax }))
}

impl Report for LaneEnvReport {
    const KIND: &'static str = "lane-env";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (name, value) in &self.env {
            match self.shell {
                Shell::Sh => writeln!(out, "export {name}={}", shell(value))?,
                Shell::Fish => {
                    let value = value.replace('\\', r"\\").replace('\'', r"\'");
                    writeln!(out, "set -gx {name} '{value}'")?;
                }
                Shell::Json => return Ok(write_json(out, Self::KIND, self, None)?),
            }
        }
        Ok(())
    }
}

/// Returns the named target, or the only one.
fn choose(place: &WorkspaceLanes<'_>, only: Option<&str>) -> Result<String, Failure> {
    let names: Vec<&str> = place.workspace.targets.iter().map(|target| &*target.name).collect();
    match (only, names.as_slice()) {
        (Some(name), known) if known.contains(&name) => Ok(name.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (None, known @ [_, _, ..]) => Err(Failure::usage("several targets are configured")
            .hint(format!("add `--target` with one of: {}", known.join(", ")))),
        (Some(_), _) | (None, []) => Err(place.no_target(only).into()),
    }
}
