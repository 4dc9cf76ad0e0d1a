//! `pdca lanes env`: prints the private names of a lane.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::{Place, TargetArg, sh_word};
use crate::context::Context;
use crate::failure::Failure;
use crate::json::write_json;
use crate::report::{Report, Response};

/// Print the private names of a lane: ports, database, temporary directory, compose project
///
/// The variables that builders and gates get in that lane. They are derived from the workspace, the target and
/// the slot; the ports are those that the lane had last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(pdca lanes env 0)\"
  pdca lanes env 0 --shell fish | source
  pdca lanes env 0 --json | jq -r .env.PDCA_PORT_BASE")]
pub(crate) struct Args {
    /// The lane
    #[arg(value_name = "SLOT")]
    slot: u32,

    /// The shell to print for, or `json`
    #[arg(long, value_name = "SHELL", value_enum, default_value_t)]
    shell: Shell,

    #[command(flatten)]
    target: TargetArg,
}

/// The syntax of the variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    /// `export NAME='value'`, for sh, bash and zsh
    #[default]
    Sh,
    /// `set -gx NAME 'value'`
    Fish,
    /// An object
    Json,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct LaneEnv {
    slot: u32,
    target: String,
    env: BTreeMap<&'static str, String>,
    #[serde(skip)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let place = Place::of(cx)?;
    let target = choose(&place, &args.target)?;
    let names = place.names(&target, args.slot);
    if !place.lanes.slot_dir(args.slot).join(&target).exists() {
        let note = format!("lane {} of {target} is not there yet", args.slot);
        cx.note(err, &format!("{} {note}", cx.err.accent("note:")))?;
    }
    let env = names.env().collect();
    Ok(Response::done(LaneEnv { slot: args.slot, target, env, shell: args.shell }))
}

impl Report for LaneEnv {
    const KIND: &'static str = "lane-env";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (name, value) in &self.env {
            match self.shell {
                Shell::Sh => writeln!(out, "export {name}={}", sh_word(value))?,
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
fn choose(place: &Place<'_>, only: &TargetArg) -> Result<String, Failure> {
    let names: Vec<&str> = place.workspace.targets.iter().map(|target| &*target.name).collect();
    match (only.target.as_deref(), names.as_slice()) {
        (Some(name), known) if known.contains(&name) => Ok(name.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (None, known @ [_, _, ..]) => Err(Failure::usage("several targets are configured")
            .hint(format!("add `--target` with one of: {}", known.join(", ")))),
        (Some(_), _) | (None, []) => Err(place.no_target(only)),
    }
}
