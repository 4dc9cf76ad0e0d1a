//! `pdca lanes env`: the private names of a lane, for a shell or a script.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use pdca_lanes::PrivateNames;
use serde::Serialize;

use super::{Place, TargetArg, sh_word};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Print the private names of a lane: ports, database, temporary directory, compose project
///
/// The same variables that builders and gates are given in that lane. They follow from the workspace, the target and
/// the slot; the ports are those the lane last had.
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

    /// For which shell, or `json`
    #[arg(long, value_name = "SHELL", value_enum, default_value_t)]
    shell: Shell,

    #[command(flatten)]
    target: TargetArg,
}

/// How variables are written.
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
struct Document {
    slot: u32,
    target: String,
    env: BTreeMap<&'static str, String>,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let place = Place::of(cx)?;
    let target = choose(&place, &args.target)?;
    let names = place.names(&target, args.slot);
    if !place.lanes.slot_dir(args.slot).join(&target).exists() {
        let note = format!("lane {} of {target} is not there yet", args.slot);
        cx.note(err, &format!("{} {note}", cx.err.accent("note:")))?;
    }
    if cx.globals.json || args.shell == Shell::Json {
        let env = names.env().collect();
        cx.emit_json(out, "lane-env", &Document { slot: args.slot, target, env })?;
    } else {
        out.write_all(script(&names, args.shell).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// The target whose names are meant: the one that was named, or the only one.
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

fn script(names: &PrivateNames, shell: Shell) -> String {
    let mut text = String::new();
    for (name, value) in names.env() {
        let line = match shell {
            Shell::Sh | Shell::Json => format!("export {name}={}", sh_word(&value)),
            Shell::Fish => {
                format!("set -gx {name} '{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
            }
        };
        writeln!(text, "{line}").expect("a string takes any text");
    }
    text
}
