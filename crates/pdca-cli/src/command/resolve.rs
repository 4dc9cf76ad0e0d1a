//! `pdca resolve`: runs the resolver on changes that conflict with their branch.

use std::io::Write;

use pdca_workspace::integration::resolve;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::process_env;
use crate::render;
use crate::report::Response;
use crate::session::fleet::HostChoice;
use crate::session::integration::IntegrationTerminal;

/// Run the resolver on accepted changes that conflict with their branch
///
/// The resolver gets a private checkout with the conflict in it. Its resolution is checked like any other attempt and
/// waits for a sign-off; the accepted attempt is archived. `pdca integrate` does the same at its end. Each call makes one
/// attempt, at most 5 per accepted change, with growing pauses between them; then the change is
/// `blocked_conflict` until `pdca unblock ID`. Meanwhile other commands are not locked out.
///
/// Exit codes: 0 nothing is left of the change, 3 resolved and waiting for a sign-off, 4 nothing conflicts, 102 a
/// conflict remains.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca resolve              # everything that conflicts with its branch
  pdca resolve 15           # only this one
  pdca resolve --dry-run    # what would be tried, and when the next attempt is due

[leaves.resolver] in pdca.toml says who resolves.")]
pub(crate) struct Args {
    /// The bundles; all that conflict if none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,

    #[command(flatten)]
    events: crate::globals::EventsArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let ids = args.ids.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>()?;
    let events = args.events.path(cx);
    let mut terminal = IntegrationTerminal {
        cx,
        err: &mut *err,
        events: events.as_deref(),
        lanes: None,
        hosts: HostChoice::Local,
    };
    let (report, failure) = resolve(&open, &ids, process_env::moment, &mut terminal)?;
    render::resolve::resolved(report, failure, cx, err)
}

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    #[test]
    fn where_nobody_resolves_it_says_what_to_configure() {
        insta::assert_snapshot!(Desk::new().run(&["resolve"]), @r#"
        --- stderr
        error: no resolver is configured
        hint: set `mode = "command"` and `argv` of [leaves.resolver] in pdca.toml
        --- exit 2
        "#);
    }

    #[test]
    fn where_nothing_is_accepted_nothing_conflicts() {
        let desk = Desk::new();
        desk.workspace.config("[leaves.resolver]\nmode = \"command\"\nargv = [\"{id}\"]\n");
        insta::assert_snapshot!(desk.run(&["resolve"]), @"
        --- stderr
        nothing that is accepted conflicts with its branch
        --- exit 4
        ");
        insta::assert_snapshot!(desk.run(&["resolve", "--json"]), @r#"
        {
          "schema": 1,
          "kind": "resolve",
          "dry_run": false,
          "conflicts": []
        }
        --- stderr
        nothing that is accepted conflicts with its branch
        --- exit 4
        "#);
    }
}
