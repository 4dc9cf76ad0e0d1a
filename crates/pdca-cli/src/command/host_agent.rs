//! `pdca host-agent`: the far side of a host, called by a driver and not by people.

use std::io::{Read as _, Write};

use camino::Utf8PathBuf;
use pdca_driver::leg::LegName;
use pdca_process::Cancel;
use pdca_remote::{
    HostAgent, HostMachine, HostRoot, OfferContext, RunJobError, RunningJob, VerbRefusal,
    VerbRequest, VerbResponse as Answer, WireMessage, decode, encode, run_job,
};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env;
use crate::report::{Response, TextPage};
use crate::session::Interrupts;

/// The largest request: a pack of a whole history.
const LARGEST: u64 = 4 << 30;

/// Answer one request of a driver, as a host
///
/// A driver calls this over `ssh` with a request on standard input, or starts it for a job. It is of no use by hand.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The one directory that is used here
    #[arg(long, value_name = "DIR")]
    root: Utf8PathBuf,

    /// Run this job to its end
    #[arg(long, value_name = "JOB")]
    run: Option<LegName>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, out: &mut dyn Write) -> Result<Response, Failure> {
    let root = HostRoot::new(cx.env.cwd.join(&args.root));
    match &args.run {
        Some(name) => work(root, name, cx)?,
        None => answer(&root, cx, out)?,
    }
    Ok(Response::done(TextPage::of(|_| Ok(()))?))
}

fn answer(root: &HostRoot, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    // A longer request is cut, and what is cut does not decode: it is refused, not obeyed in part.
    std::io::stdin().take(LARGEST).read_to_end(&mut bytes)?;
    let about = OfferContext { search_path: cx.env.var("PATH"), clock: cx.env.now() };
    let program = cx.env.program.as_ref().map_or("pdca", |program| program.as_str());
    let runner = [program, "host-agent", "--root", root.path().as_str(), "--run"];
    let agent = HostAgent::new(root.clone(), about, runner.map(str::to_owned).to_vec());
    let (head, parts) = match decode::<VerbRequest>(&bytes) {
        Ok(WireMessage { head, parts }) => agent.answer(WireMessage { head, parts }),
        Err(error) => {
            let said = pdca_state::chain(&error);
            (Answer::Refused(VerbRefusal::Unusable { said }), Vec::new())
        }
    };
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let bytes = encode(&head, &parts).map_err(|error| Failure::unexpected(error.to_string()))?;
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

fn work(root: HostRoot, name: &LegName, cx: &Context<'_>) -> Result<(), Failure> {
    let job = match RunningJob::take(root, name) {
        Ok(job) => job,
        // Whoever has it does the work, and what is over needs none.
        Err(RunJobError::Taken | RunJobError::Over) => return Ok(()),
        Err(error @ (RunJobError::Unknown | RunJobError::Io(_))) => {
            return Err(Failure::from_error(Exit::Unexpected, &error));
        }
    };
    let cancel = Cancel::new();
    let signals = Interrupts::listen(&cancel)?;
    let user = cx.env.environment().config_home().map(|home| home.join("pdca"));
    let machine = HostMachine {
        search_path: cx.env.var("PATH").map(ToOwned::to_owned),
        clock: || process_env::moment().wall.as_second(),
        utc_offset: process_env::utc_offset,
        timestamp: || process_env::moment().wall,
        program: cx.env.program.clone(),
        configuration: user.into_iter().collect(),
    };
    let ran = run_job(job, &machine, &cancel);
    signals.close();
    ran?;
    Ok(())
}
