//! The log for maintainers: `PDCA_LOG` prints it to standard error, `-vv` writes it to a file below `.pdca/log/`.
//!
//! The libraries use the facade of `tracing` alone. Where neither is asked for no subscriber is installed, and each of
//! their lines costs the comparison of one number.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_workspace::config::workspace;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::context::Globals;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env::{LOG_VARIABLE as VARIABLE, ProcessEnv};

/// How many files of `-vv` are kept.
const KEPT: usize = 20;

/// Installs the subscriber that was asked for, for the life of the process.
pub(crate) fn install(
    globals: &Globals,
    env: &ProcessEnv,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let filter = env.var_text(VARIABLE).map(parse).transpose()?;
    let file = if globals.verbose > 1 { open(globals, env, err)? } else { None };
    if filter.is_none() && file.is_none() {
        return Ok(());
    }
    let everything = Targets::new().with_target("pdca", LevelFilter::TRACE);
    tracing_subscriber::registry()
        .with(filter.map(|filter| lines(io::stderr).with_filter(filter)))
        .with(file.map(|file| lines(Arc::new(file)).with_filter(everything)))
        .try_init()
        .map_err(|error| Failure::from_error(Exit::Unexpected, &error))
}

fn lines<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    // A log that cannot be written is no reason to fail, and standard error may be what is closed.
    tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).log_internal_errors(false)
}

/// Reads a filter: levels, and crates or modules with a level, separated by commas.
fn parse(text: &str) -> Result<Targets, Failure> {
    let refused = || {
        Failure::usage(format!("{VARIABLE} is `{text}`, which is no filter")).hint(format!(
            "write a level (error, warn, info, debug, trace), or levels by crate such as \
             `{VARIABLE}=info,pdca_journal=debug,pdca_process=trace`, or unset it"
        ))
    };
    let filter: Targets = text.parse().map_err(|_| refused())?;
    // Nothing else writes lines, so such a name is a mistake, most often a misspelled level.
    if filter.iter().all(|(target, _)| target.starts_with("pdca")) {
        Ok(filter)
    } else {
        Err(refused())
    }
}

/// Opens a file for this command in the workspace, and says where it is.
fn open(globals: &Globals, env: &ProcessEnv, err: &mut dyn Write) -> Result<Option<File>, Failure> {
    let Some(found) = workspace::find(&globals.start_dir(env)?) else {
        writeln!(
            err,
            "note: no log is written: there is no workspace here; `{VARIABLE}=debug` prints it"
        )?;
        return Ok(None);
    };
    let dir = found.root.join(".pdca/log");
    fs_err::create_dir_all(&dir)?;
    prune(&dir)?;
    let time = jiff::Timestamp::from_second(env.now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let name = format!("{}-{}.log", time.strftime("%Y%m%dT%H%M%SZ"), std::process::id());
    let path = dir.join(name);
    let file = fs_err::OpenOptions::new().append(true).create(true).open(&path)?;
    writeln!(err, "log: {path}")?;
    Ok(Some(file.into_parts().0))
}

/// Removes the oldest files, so that one more is as many as are kept.
fn prune(dir: &Utf8Path) -> io::Result<()> {
    let mut logs: Vec<Utf8PathBuf> = Vec::new();
    for entry in dir.read_dir_utf8()? {
        let path = entry?.into_path();
        if path.extension() == Some("log") {
            logs.push(path);
        }
    }
    // The names begin with the time.
    logs.sort();
    for old in &logs[..logs.len().saturating_sub(KEPT - 1)] {
        // Another command may have removed it already.
        match fs_err::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_levels_and_crates_of_this_project() {
        for text in ["debug", "info,pdca_journal=debug", "pdca_process::run=trace", "off"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in ["loud", "pdca=loud", "tokio=debug", "pdca_journal=debug,dbug"] {
            let failure = parse(text).expect_err(text);
            assert_eq!(failure.exit, Exit::Usage, "{text}");
        }
    }

    #[test]
    fn the_oldest_logs_go_and_other_files_stay() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let dir = Utf8Path::from_path(dir.path()).expect("it has a UTF-8 name");
        for n in 10..35 {
            fs_err::write(dir.join(format!("{n}.log")), "").expect("it can be written");
        }
        fs_err::write(dir.join("00-notes.txt"), "").expect("it can be written");
        prune(dir).expect("they can be removed");
        let mut left: Vec<String> = dir
            .read_dir_utf8()
            .expect("it can be listed")
            .map(|entry| entry.expect("it can be listed").file_name().to_owned())
            .collect();
        left.sort();
        let mut expected: Vec<String> = (16..35).map(|n| format!("{n}.log")).collect();
        expected.insert(0, "00-notes.txt".to_owned());
        assert_eq!(left, expected);
    }
}
