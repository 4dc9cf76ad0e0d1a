//! `pdca guard`: the hook that an agent calls before a builder's tool call.

mod aliases;

use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdca_leaves::tool_guard::{
    Agent, GuardAnswer, GuardRefusal, GuardScope, ToolCall, decision, judge_shell, reason,
};

use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

/// The largest tool call, which contains whole files that an agent writes.
const LARGEST: u64 = 256 << 20;

/// Judge a builder's tool call, as a pre-tool hook of its agent
///
/// An agent's hook passes each tool call as JSON on standard input. Exit code 0 allows it, 2 refuses it, with the
/// reason and an alternative on standard error. Refused are pushes, changes on a forge or in a
/// registry, calls of pdca that run bundles, and writes outside the builder's directories. Outside a builder's environment
/// (`PDCA_WORKTREE` is not set, or `PDCA_ROLE` is another role's) everything is allowed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca guard builder                        # the hook; which agent it is, is seen from its JSON
  pdca guard builder --agent gemini
  pdca guard --explain 'make && git push'   # what a builder would be told, and why

`pdca init` writes the hook configuration of the agents it finds to process/guard/.
Input that is not a tool call is refused. The hook explains; the wall around a builder is the sandbox.")]
pub(crate) struct Args {
    /// The role whose calls are judged
    #[arg(value_enum, value_name = "ROLE", required_unless_present = "explain")]
    role: Option<Guarded>,

    /// The agent that asks
    #[arg(long, value_enum, value_name = "AGENT", default_value = "auto")]
    agent: AgentName,

    /// Explain the answer that a builder would get for this command line
    #[arg(long, value_name = "COMMAND")]
    explain: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Guarded {
    /// The builder, and the resolver, which builds as well
    Builder,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum AgentName {
    /// By the shape of its JSON
    Auto,
    Claude,
    Codex,
    Gemini,
    Opencode,
}

impl AgentName {
    fn agent(self) -> Option<Agent> {
        match self {
            Self::Auto => None,
            Self::Claude => Some(Agent::Claude),
            Self::Codex => Some(Agent::Codex),
            Self::Gemini => Some(Agent::Gemini),
            Self::Opencode => Some(Agent::Opencode),
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let env: BTreeMap<String, String> = cx
        .env
        .vars
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
        .collect();
    if let Some(line) = &args.explain {
        return explain(line, env, cx);
    }
    let Some(scope) = GuardScope::from_env(env) else {
        return Ok(Response::done(Judgement::default()));
    };
    let mut judgement = Judgement { is_builder: true, ..Judgement::default() };
    let mut input = Vec::new();
    // One byte more than is allowed tells a call that is too long from one that just fits.
    let read = std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut input);
    let refused = |part: &str, why: String| GuardRefusal {
        part: part.to_owned(),
        why,
        instead: "have the hook call `pdca guard builder` with the agent's JSON on standard input"
            .to_owned(),
    };
    // Agents take any exit code but 2 for a broken hook and continue, so every path ends in 0 or 2.
    let refusal = match (read, String::from_utf8(input)) {
        (Err(error), _) => Some(refused("standard input", error.to_string())),
        (Ok(_), Err(error)) => Some(refused("standard input", error.to_string())),
        (Ok(_), Ok(text)) if text.len() as u64 > LARGEST => {
            Some(refused("standard input", "the tool call is too long".to_owned()))
        }
        (Ok(_), Ok(text)) => match ToolCall::parse(&text, args.agent.agent()) {
            Err(error) => {
                Some(refused("standard input", format!("{error}, so it cannot be judged")))
            }
            Ok(call) => {
                let answer =
                    judged(|| call.judge(&scope, &|name| aliases::find(name, &scope, cx.env)));
                let said = |refusal: &GuardRefusal| decision(call.agent, refusal);
                judgement.decision = answer.refusal.as_ref().and_then(said);
                answer.refusal
            }
        },
    };
    let Some(refusal) = refusal else { return Ok(Response::done(judgement)) };
    // The exit code refuses, also where the reason cannot be written.
    drop(writeln!(err, "{}", reason(&refusal)));
    judgement.refusal = Some(refusal.into());
    Ok(Response::new(judgement, Exit::Usage))
}

/// The judgement of a tool call.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Judgement {
    refusal: Option<RefusalRow>,
    /// Parts of a command line that could not be analysed.
    unseen: Vec<String>,
    /// The environment is a builder's; elsewhere the hook allows everything.
    is_builder: bool,
    /// The answer in the format of the calling agent.
    #[serde(skip)]
    decision: Option<String>,
    /// A person asked with `--explain`.
    #[serde(skip)]
    is_explained: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RefusalRow {
    part: String,
    why: String,
    instead: String,
}

impl From<GuardRefusal> for RefusalRow {
    fn from(GuardRefusal { part, why, instead }: GuardRefusal) -> Self {
        Self { part, why, instead }
    }
}

impl Report for Judgement {
    const KIND: &'static str = "guard";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(decision) = &self.decision {
            writeln!(out, "{decision}")?;
        }
        if !self.is_explained {
            return Ok(());
        }
        match &self.refusal {
            None => writeln!(out, "{}", cx.out.good("allowed"))?,
            Some(refusal) => {
                writeln!(out, "{}", cx.out.bad("refused"))?;
                writeln!(out, "  part:     {}", refusal.part)?;
                writeln!(out, "  why:      {}", refusal.why)?;
                writeln!(out, "  instead:  {}", refusal.instead)?;
            }
        }
        for unseen in &self.unseen {
            writeln!(out, "  not seen: {unseen}")?;
        }
        if !self.is_builder {
            writeln!(
                out,
                "Here the hook allows everything: this is no builder's environment (PDCA_WORKTREE is not set, or PDCA_ROLE is another's)."
            )?;
        }
        Ok(())
    }
}

/// Runs the judgement; a panic of the guard itself is a refusal.
fn judged(judge: impl FnOnce() -> GuardAnswer) -> GuardAnswer {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| GuardAnswer {
        refusal: Some(GuardRefusal {
            part: "the tool call".to_owned(),
            why: "the guard failed to judge it, which is a defect of pdca".to_owned(),
            instead: "write it in a simpler way, or in several calls".to_owned(),
        }),
        unseen: Vec::new(),
    })
}

fn explain(
    line: &str,
    mut env: BTreeMap<String, String>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let here = GuardScope::from_env(env.clone());
    let is_builder = here.is_some();
    let scope = here.or_else(|| {
        // Simulates a builder whose checkout is this directory.
        // A `PDCA_ROLE` of another role would make it no builder's environment again.
        env.retain(|name, _| !name.starts_with("PDCA_"));
        env.insert("PDCA_WORKTREE".to_owned(), cx.env.cwd.to_string());
        GuardScope::from_env(env)
    });
    let Some(scope) = scope else {
        return Err(
            Failure::usage("the current directory is not absolute").hint("cd to a directory")
        );
    };
    let answer = judged(|| {
        judge_shell(line, &scope, &cx.env.cwd, &|name| aliases::find(name, &scope, cx.env))
    });
    let unseen = answer.unseen.iter().map(|unseen| unseen.replace('\u{FFFC}', "…")).collect();
    let refusal = answer.refusal.map(Into::into);
    Ok(Response::done(Judgement {
        refusal,
        unseen,
        is_builder,
        is_explained: true,
        decision: None,
    }))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    #[test]
    fn it_explains_the_part_the_rule_and_the_way_out() {
        let desk = Desk::new()
            .with_env("PDCA_WORKTREE", "/w.lanes/lane-0/repo")
            .with_env("PDCA_ROLE", "builder");
        insta::assert_snapshot!(desk.run(&["guard", "--explain", "make && timeout 5 git push origin; bash x.sh"]), @"
        refused
          part:     git push origin
          why:      a builder does not push: `builder_pushes` in [publish] is off
          instead:  commit in this checkout and stop there; the driver takes the change, and a person publishes it
        ");
        insta::assert_snapshot!(desk.run(&["guard", "--explain", "bash x.sh"]), @"
        allowed
          not seen: the content of the script x.sh is not read
        ");
    }

    #[test]
    fn outside_a_builder_everything_is_allowed_and_that_is_said() {
        let desk = Desk::new()
            .with_env("PDCA_WORKTREE", "/w.lanes/lane-0/repo")
            .with_env("PDCA_ROLE", "reviewer");
        insta::assert_snapshot!(desk.run(&["guard", "--explain", "git push"]), @"
        refused
          part:     git push
          why:      a builder does not push: `builder_pushes` in [publish] is off
          instead:  commit in this checkout and stop there; the driver takes the change, and a person publishes it
        Here the hook allows everything: this is no builder's environment (PDCA_WORKTREE is not set, or PDCA_ROLE is another's).
        ");
        assert_eq!(desk.run(&["guard", "builder"]).exit, Exit::Done);
    }

    #[test]
    fn a_guard_of_nobody_is_a_mistake() {
        assert_eq!(Desk::new().run(&["guard"]).exit, Exit::Usage);
    }
}
