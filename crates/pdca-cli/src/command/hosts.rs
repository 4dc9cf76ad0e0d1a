//! `pdca hosts`: other machines that bands run on.

use std::io::Write;

use pdca_workspace::config::HostEngine;
use pdca_workspace::hosts::{NewHost, add_host, check_hosts, clean_up_hosts, list_hosts};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{hosts, with_progress};
use crate::report::Response;

/// Add, check, list and clean up the hosts that bands run on
///
/// A host is another machine that `ssh` reaches by the name in `[[hosts]]`; addresses and keys are those of
/// `~/.ssh/config`. Nothing is installed there but this program, below one directory. `pdca batch` uses all hosts
/// that are fit, `--hosts a,b` these, `--local` none.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca hosts add build1 --slots 4   # put this pdca there, check the host, write [[hosts]]
  pdca hosts check                  # facts of every host, and why one is not used
  pdca hosts list
  pdca hosts gc build1              # remove what ended runs left there")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Ask hosts for their facts, and explain each refusal
    Check(Named),
    /// List the configured hosts; nothing is asked
    List,
    /// Put this pdca on a host, check it, and add it to pdca.toml
    Add(AddArgs),
    /// Remove what ended runs left on hosts
    Gc(GcArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct Named {
    /// The hosts; all of [[hosts]] if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
struct AddArgs {
    /// The name of the host in ~/.ssh/config
    name: String,

    /// The number of bands that run there at once [default: 1]
    #[arg(long, value_name = "N")]
    slots: Option<u32>,

    /// The one directory that is used there [default: ~/.pdca-host]
    #[arg(long, value_name = "DIR")]
    root: Option<String>,

    /// Submit bands to Slurm there
    #[arg(long)]
    slurm: bool,
}

#[derive(Debug, Clone, clap::Args)]
struct GcArgs {
    #[command(flatten)]
    named: Named,

    /// Remove contents that no job used for this many days as well
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    Ok(match &args.action {
        Action::Check(named) => hosts::checked(check_hosts(&open, &named.names)?),
        Action::List => hosts::listed(list_hosts(&open)),
        Action::Add(args) => {
            let show = |progress| hosts::show(progress, cx, err);
            let new = args.host();
            hosts::added(with_progress(show, |progress| add_host(&open, &new, progress))?)
        }
        Action::Gc(args) => {
            hosts::cleaned_up(clean_up_hosts(&open, &args.named.names, args.older_than)?)
        }
    })
}

impl AddArgs {
    fn host(&self) -> NewHost {
        let Self { name, slots, root, slurm } = self.clone();
        NewHost { name, slots, root, engine: slurm.then_some(HostEngine::Slurm) }
    }
}
