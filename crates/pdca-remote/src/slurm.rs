//! Slurm as an engine: `sbatch` starts a runner, `squeue` and `sacct` tell of it, `scancel` ends it.
//!
//! The root of the host has to be on a file system that all nodes share. The job of Slurm has the name of our job, so a
//! driver that lost the answer to `sbatch` finds it by name. A node that is lost is Slurm's business: it requeues the
//! job, and the runner goes on from the files of its workspace.

use std::io;
use std::time::Duration;

use pdca_process::{Tool, ToolOutput};

use crate::agent::{AgentError, tail};
use crate::engine::Engine;
use crate::host_root::{JobDir, read_text};
use crate::verb::{JobState, SlurmOptions, VerbRefusal};

/// A controller that restarts answers after a while; asking longer would keep the driver's connection busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// What Slurm says about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlurmState {
    Queued,
    Running,
    /// Ended by a limit.
    Capped(&'static str),
    /// Ended in another way.
    Over,
    /// Slurm does not know the job.
    Unknown,
}

/// Reads a state as `squeue`, `sacct` and `scontrol` print it, such as `CANCELLED by 0`.
fn parse_state(text: &str) -> SlurmState {
    match text.split([' ', '+']).next().unwrap_or_default() {
        "" => SlurmState::Unknown,
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT"
        | "RESV_DEL_HOLD" => SlurmState::Queued,
        "RUNNING" | "COMPLETING" | "CONFIGURING" | "SUSPENDED" | "STOPPED" | "SIGNALING"
        | "STAGE_OUT" | "RESIZING" => SlurmState::Running,
        "TIMEOUT" | "DEADLINE" => SlurmState::Capped("time"),
        "OUT_OF_MEMORY" => SlurmState::Capped("memory"),
        _ => SlurmState::Over,
    }
}

fn call(args: &[&str]) -> Result<ToolOutput, AgentError> {
    let (program, args) = args.split_first().unwrap_or((&"false", &[]));
    Ok(Tool::new(*program).args(args).timeout(PATIENCE).run()?)
}

impl Engine for SlurmOptions {
    fn start(&self, job: &JobDir, argv: &[String]) -> Result<(), AgentError> {
        // The answer to an earlier `sbatch` may have been lost.
        if let Some(id) = find(job)? {
            return keep_id(job, &id);
        }
        let script = script(argv);
        let file = job.path().join("slurm.sh");
        fs_err::write(&file, script)?;
        let mut words = vec![
            "sbatch".to_owned(),
            "--parsable".to_owned(),
            // The runner goes on from its files after the loss of a node.
            "--requeue".to_owned(),
            // A requeued job would otherwise empty the output of its first run.
            "--open-mode=append".to_owned(),
            // Nothing of the driver's connection. `NONE` would also load the login environment on the
            // node.
            "--export=NIL".to_owned(),
            format!("--job-name={}", job.name()),
            format!("--output={}", job.output()),
            format!("--chdir={}", job.path()),
        ];
        words.extend(self.licenses.iter().map(|licenses| format!("--licenses={licenses}")));
        words.extend(self.partition.iter().map(|partition| format!("--partition={partition}")));
        words.extend(self.time_minutes.iter().map(|minutes| format!("--time={minutes}")));
        words.extend(self.memory_mb.iter().map(|mib| format!("--mem={mib}M")));
        words.push(file.to_string());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = call(&words)?;
        if !said.success() {
            let said = String::from_utf8_lossy(&said.stderr).trim().to_owned();
            return Err(VerbRefusal::NotStarted { said }.into());
        }
        let id = String::from_utf8_lossy(&said.stdout);
        // `--parsable` appends the name of the cluster on a federation.
        let id = id.trim().split(';').next().unwrap_or_default();
        if id.is_empty() {
            let said = "sbatch named no job".to_owned();
            return Err(VerbRefusal::NotStarted { said }.into());
        }
        keep_id(job, id)
    }

    fn is_alive(&self, job: &JobDir) -> Result<bool, AgentError> {
        Ok(matches!(ask(job)?, SlurmState::Queued | SlurmState::Running))
    }

    fn end(&self, job: &JobDir, _kill: bool) -> Result<(), AgentError> {
        let said = call(&["scancel", &of_user(), &format!("--name={}", job.name())])?;
        if said.success() { Ok(()) } else { Err(controller(&said)) }
    }

    fn state(&self, job: &JobDir) -> Result<JobState, AgentError> {
        let asked = ask(job)?;
        // It may have published while Slurm was asked.
        if job.is_published() {
            return Ok(JobState::Ended);
        }
        Ok(match asked {
            // A node that lost its daemon keeps its processes: Slurm gave the job up, and its runner works on.
            SlurmState::Over | SlurmState::Unknown if job.is_locked()? => JobState::Running,
            SlurmState::Queued => JobState::Queued,
            SlurmState::Running => JobState::Running,
            SlurmState::Capped(limit) => JobState::Capped { limit: limit.to_owned() },
            SlurmState::Over | SlurmState::Unknown if job.engine_id().exists() => {
                let said = tail(&job.output());
                if is_memory_limit(&said) {
                    JobState::Capped { limit: "memory".to_owned() }
                } else {
                    JobState::Died { said }
                }
            }
            SlurmState::Over | SlurmState::Unknown => JobState::Staged,
        })
    }

    fn ask_every(&self) -> Duration {
        // `squeue` asks the one controller that serves the whole cluster.
        Duration::from_secs(1)
    }

    fn has_queue(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [&'static str] {
        &["sbatch", "squeue", "sacct", "scancel"]
    }
}

/// Returns the script of a job. It sets the variables that `--export=NIL` leaves out and every
/// program needs.
fn script(argv: &[String]) -> String {
    let quoted = argv.iter().map(|arg| format!("'{}'", arg.replace('\'', "'\\''")));
    let line = quoted.collect::<Vec<_>>().join(" ");
    format!(
        "#!/bin/sh\nHOME=${{HOME:-$(getent passwd \"$(id -u)\" | cut -d: -f6)}}\nexport HOME\n\
         PATH=${{PATH:-/usr/local/bin:/usr/bin:/bin}}\nexport PATH\nexec {line}\n"
    )
}

/// Keeps the id of the Slurm job. Replaced whole: half an id would name the job of somebody else.
fn keep_id(job: &JobDir, id: &str) -> Result<(), AgentError> {
    Ok(pdca_state::files::replace(job.engine_id(), id.as_bytes())?)
}

/// Returns the option that leaves out the jobs of other users, who may give theirs any name. By number, because `--me`
/// is younger than some clusters.
fn of_user() -> String {
    format!("--user={}", rustix::process::getuid().as_raw())
}

/// Returns the id of the live Slurm job that has the name of ours.
fn find(job: &JobDir) -> Result<Option<String>, AgentError> {
    let name = format!("--name={}", job.name());
    let said = call(&["squeue", "--noheader", "--format=%i", &of_user(), &name])?;
    if !said.success() {
        return Err(controller(&said));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    Ok(text.lines().next().map(|line| line.trim().to_owned()).filter(|id| !id.is_empty()))
}

/// A controller that does not answer is no answer about the job.
fn controller(said: &ToolOutput) -> AgentError {
    let said = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    AgentError::Io(io::Error::other(format!("Slurm does not answer: {said}")))
}

fn ask(job: &JobDir) -> Result<SlurmState, AgentError> {
    let Some(id) = read_text(&job.engine_id())? else {
        return Ok(find(job)?.map_or(SlurmState::Unknown, |_| SlurmState::Queued));
    };
    let of = format!("--jobs={}", id.trim());
    // `squeue` shows only live jobs unless it is told otherwise.
    let said = call(&["squeue", "--noheader", "--states=all", "--format=%T", &of])?;
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if said.success() && !text.is_empty() {
        return Ok(parse_state(&text));
    }
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    // Slurm forgets ended jobs after a while, and says so in these words.
    if !said.success() && !error.contains("Invalid job id") {
        return Err(controller(&said));
    }
    // The accounting remembers longer, where there is one.
    let said =
        call(&["sacct", "--noheader", "--parsable2", "--allocations", "--format=State", &of])?;
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if said.success() && !text.is_empty() {
        return Ok(parse_state(text.lines().last().unwrap_or_default()));
    }
    Ok(SlurmState::Unknown)
}

/// Returns whether Slurm ended a job for its memory. Where it samples memory instead of having the kernel bound it, the
/// state of the job is `CANCELLED`, and only the words in the job's output tell of the limit. No leaf and no gate writes
/// there.
fn is_memory_limit(output: &str) -> bool {
    let words = ["exceeded memory limit", "exceeded job memory limit", "oom_kill", "oom-kill"];
    let of_slurm = output.lines().filter(|line| line.starts_with("slurmstepd"));
    of_slurm.map(str::to_lowercase).any(|line| words.iter().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_from_a_failure_and_from_a_requeue() {
        let table = [
            ("PENDING", SlurmState::Queued),
            ("REQUEUED", SlurmState::Queued),
            ("RUNNING", SlurmState::Running),
            ("COMPLETING", SlurmState::Running),
            ("TIMEOUT", SlurmState::Capped("time")),
            ("OUT_OF_MEMORY", SlurmState::Capped("memory")),
            ("CANCELLED by 1000", SlurmState::Over),
            ("CANCELLED+", SlurmState::Over),
            ("FAILED", SlurmState::Over),
            ("NODE_FAIL", SlurmState::Over),
            ("", SlurmState::Unknown),
        ];
        for (text, expected) in table {
            assert_eq!(parse_state(text), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_on_memory_is_read_from_the_words_of_slurm_alone() {
        for (said, is_limit) in [
            (
                "slurmstepd-n1: error: StepId=4.batch exceeded memory limit (732151808 > 314572800), being killed",
                true,
            ),
            ("slurmstepd: error: Exceeded job memory limit", true),
            ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.", true),
            ("slurmstepd-n1: error: *** JOB 4 ON n1 CANCELLED AT 2026-11-17T20:54:53 ***", false),
            ("thread 'main' panicked: exceeded memory limit", false),
        ] {
            assert_eq!(is_memory_limit(said), is_limit, "{said}");
        }
    }

    #[test]
    fn a_name_with_a_quote_is_one_word_of_the_script() {
        let script = script(&["/a b/pdca".to_owned(), "it's".to_owned()]);
        assert!(script.ends_with("exec '/a b/pdca' 'it'\\''s'\n"), "{script}");
    }
}
