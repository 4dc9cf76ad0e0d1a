//! `pdca help`: the help of a command or of a topic.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Response, TextPage};

/// Print help for a command or a topic
///
/// Topics: `exit-codes`, `config`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca help signoff
  pdca help exit-codes")]
pub(crate) struct Args {
    /// A command, or `exit-codes`, or `config`
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

const CONFIG: &str = "\
Config, later layers win:
  1. the defaults
  2. $XDG_CONFIG_HOME/pdca/config.toml (or ~/.config/pdca/config.toml)
  3. pdca.toml, or .config/pdca.toml, in this directory or one above: the workspace
  4. PDCA_* variables, see below
  5. --config KEY=VALUE and the flags of a command

`pdca config show` prints each value and where it came from. `pdca init` writes a pdca.toml in which every
key is explained. Unknown keys are errors; with --compat they are warnings.

Variables that are read:
  PDCA_BUNDLE_ROOT    [paths] bundle_root, relative to the current directory
  PDCA_AUTHOR         [project] author
  PDCA_LANES          [driver] lanes: a number, or auto
  PDCA_LEAVES_MODE    `stub` lets stubs stand in for every leaf
  PDCA_LOG            print a log of each effect, such as debug or info,pdca_process=trace
  NO_COLOR, CLICOLOR_FORCE, XDG_CONFIG_HOME, HOME, USER

Variables that gates and leaves are given:
  PDCA_BUNDLE, PDCA_ISSUE, PDCA_WORKSPACE, PDCA_WORKTREE, PDCA_BASE, PDCA_BRIEF_BASE, PDCA_TARGET, PDCA_RUN,
  PDCA_GIT_COMMON_DIR
In a lane also its private names, which `pdca lanes env <slot>` prints:
  PDCA_LANE, PDCA_PORT_BASE, PDCA_TEST_DB_NAME, PDCA_TMP, COMPOSE_PROJECT_NAME
";

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let mut tree = super::tree(cx.env);
    tree.build();
    let text = match args.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["exit-codes"] => {
            let line = |exit: Exit| format!("{:>3}  {}\n", exit.code(), exit.meaning());
            Exit::ALL.map(line).concat()
        }
        ["config"] => CONFIG.to_owned(),
        words => {
            let command =
                words.iter().try_fold(&mut tree, |command, word| command.find_subcommand_mut(word));
            let Some(command) = command else {
                return Err(Failure::usage(format!(
                    "there is no command or topic `{}`",
                    words.join(" ")
                ))
                .hint("`pdca --help` lists the commands; topics are `exit-codes` and `config`"));
            };
            let text = command.render_long_help();
            if cx.out.has_colours() { text.ansi().to_string() } else { text.to_string() }
        }
    };
    Ok(Response::done(TextPage { text }))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    #[test]
    fn the_exit_codes_are_a_topic() {
        insta::assert_snapshot!(Desk::new().run(&["help", "exit-codes"]), @"
          0  done
          1  unexpected: a leaf failed for good, an I/O error, or a defect in pdca
          2  usage or config: the command line, pdca.toml or a bundle file is wrong; nothing changed
          3  waiting for a person: a plan, a decision or a sign-off is due
          4  nothing to do
        100  a gating check failed
        101  green alone, red together
        102  merge conflict
        103  a budget or a time cap ended the run
        104  recovery is blocked: facts contradict the record, nothing was touched
        130  interrupted; the same command goes on from here
        ");
    }

    #[test]
    fn the_help_of_a_command_is_the_same_both_ways() {
        let desk = Desk::new();
        let (one, other) = (desk.run(&["help", "signoff"]), desk.run(&["signoff", "--help"]));
        assert_eq!(one.out, other.out);
        assert!(one.out.contains("Examples:"), "{one}");
    }

    #[test]
    fn an_unknown_topic_is_refused() {
        assert_eq!(Desk::new().run(&["help", "everything"]).exit, Exit::Usage);
    }
}
