//! What a script can do.

use std::{
    env,
    fs::Permissions,
    io::{self, Read as _, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio, exit},
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use fs_err as fs;
use signal_hook::low_level::emulate_default_handler;

use crate::daemon;

/// Why an action did not happen.
#[derive(Debug)]
pub(crate) enum Error {
    /// No action has this name and number of words.
    Unknown,
    /// It was tried.
    Failed(String),
}

impl<E: std::error::Error> From<E> for Error {
    fn from(err: E) -> Self {
        Self::Failed(err.to_string())
    }
}

/// Carries out one line; `call` is the number of this call once it was counted.
pub(crate) fn run(words: &[&str], call: &mut u32) -> Result<(), Error> {
    match words {
        ["write", file, text] => fs::write(made(file)?, text)?,
        ["append", file, text] => add(file, text)?,
        ["log", file, text] => add(file, &format!("{text}\n"))?,
        ["copy", from, to] => drop(fs::copy(path(from), made(to)?)?),
        ["remove", file] => remove(&path(file))?,
        ["link", target, file] => symlink(target, made(file)?)?,
        ["mode", file, octal] => mode(&path(file), octal)?,
        ["print", text] => say(&format!("{text}\n"))?,
        ["eprint", text] => eprintln!("{text}"),
        ["flood", bytes] => flood(bytes.parse()?)?,
        ["read", file, report @ ..] => {
            tell("read", file, fs::read(path(file)).map(drop), report)?;
        }
        ["try-write", file, report @ ..] => {
            let opened = fs::OpenOptions::new().append(true).create(true).open(path(file));
            tell("try-write", file, opened.map(drop), report)?;
        }
        ["ask", text, report @ ..] => ask(text, report)?,
        ["save-stdin", file] => save_stdin(file)?,
        ["save-env", file] => save_env(file)?,
        ["pwd", report @ ..] => note(&env::current_dir()?.display().to_string(), report)?,
        ["sleep", millis] => thread::sleep(Duration::from_millis(millis.parse()?)),
        ["wait-for", file] => wait_for(&path(file))?,
        ["exit", code] => exit(code.parse()?),
        ["count", file] => *call = count(file)?,
        ["fail-first", times, file, code @ ..] => {
            if count(file)? <= times.parse::<u32>()? {
                exit(code.first().map_or(Ok(1), |code| code.parse())?);
            }
        }
        ["git", args @ ..] => git(args)?,
        ["commit", message] => {
            git(&["add", "--all"])?;
            git(&["commit", "--quiet", "--message", message])?;
        }
        ["daemon", millis, file] => daemon::leave(millis, &shown(made(file)?), false)?,
        ["daemon-holding", millis, file] => daemon::leave(millis, &shown(made(file)?), true)?,
        ["ignore-term"] => ignore_term()?,
        ["kill-self", signal] => emulate_default_handler(signal.parse()?)?,
        _ => return Err(Error::Unknown),
    }
    Ok(())
}

/// Turns a word of the script into a path.
fn path(word: &str) -> PathBuf {
    let places = [
        ("worktree:", "PDCA_WORKTREE"),
        ("bundle:", "PDCA_BUNDLE"),
        ("workspace:", "PDCA_WORKSPACE"),
    ];
    for (place, name) in places {
        if let Some(rest) = word.strip_prefix(place) {
            return Path::new(&env::var_os(name).unwrap_or_default()).join(rest);
        }
    }
    word.into()
}

/// The path, with the directories above it made.
fn made(word: &str) -> io::Result<PathBuf> {
    let path = path(word);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(path)
}

fn shown(path: PathBuf) -> String {
    path.into_os_string().to_string_lossy().into_owned()
}

fn add(file: &str, text: &str) -> Result<(), Error> {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(made(file)?)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn remove(path: &Path) -> Result<(), Error> {
    let is_dir = fs::symlink_metadata(path)?.is_dir();
    if is_dir {
        fs::remove_dir_all(path)?;
    } else {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn mode(path: &Path, octal: &str) -> Result<(), Error> {
    let mode = u32::from_str_radix(octal, 8)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn say(text: &str) -> Result<(), Error> {
    print!("{text}");
    Ok(io::stdout().flush()?)
}

fn flood(mut bytes: usize) -> Result<(), Error> {
    let line = [b'x'; 8191].into_iter().chain([b'\n']).collect::<Vec<u8>>();
    let mut out = io::stdout().lock();
    while bytes > 0 {
        let part = bytes.min(line.len());
        out.write_all(&line[..part])?;
        bytes -= part;
    }
    Ok(out.flush()?)
}

/// Puts a line into the report, or prints it where none is named.
fn note(text: &str, report: &[&str]) -> Result<(), Error> {
    match report {
        [] => say(&format!("{text}\n")),
        [file] => add(file, &format!("{text}\n")),
        _ => Err(Error::Unknown),
    }
}

fn tell(verb: &str, file: &str, tried: io::Result<()>, report: &[&str]) -> Result<(), Error> {
    let outcome = match tried {
        Ok(()) => "yes".to_owned(),
        Err(err) => format!("no ({})", err.kind()),
    };
    note(&format!("{verb} {file}: {outcome}"), report)
}

fn ask(text: &str, report: &[&str]) -> Result<(), Error> {
    say(&format!("{text}\n"))?;
    let mut answer = String::new();
    let got = io::stdin().read_line(&mut answer)?;
    let answer = if got == 0 { "end of input" } else { answer.trim_end_matches('\n') };
    note(&format!("answer: {answer}"), report)
}

fn save_stdin(file: &str) -> Result<(), Error> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(fs::write(made(file)?, bytes)?)
}

fn save_env(file: &str) -> Result<(), Error> {
    let mut lines: Vec<String> = env::vars_os()
        .map(|(name, value)| format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    lines.sort();
    Ok(fs::write(made(file)?, lines.concat())?)
}

fn wait_for(path: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !path.exists() {
        if Instant::now() > deadline {
            return Err(Error::Failed("it did not come".to_owned()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Adds one to the number of calls and gives it.
fn count(file: &str) -> Result<u32, Error> {
    let path = made(file)?;
    let before = match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse()?,
        Err(err) if err.kind() == io::ErrorKind::NotFound => 0,
        Err(err) => return Err(err.into()),
    };
    let now: u32 = before + 1;
    fs::write(path, format!("{now}\n"))?;
    Ok(now)
}

fn git(args: &[&str]) -> Result<(), Error> {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=A Leaf",
            "-c",
            "user.email=leaf@example.com",
            "-c",
            "commit.gpgSign=false",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // Settings of an outer `git -c`, and those that a person has in the environment.
        .env_remove("GIT_CONFIG_PARAMETERS")
        .env_remove("GIT_CONFIG_COUNT")
        .stdin(Stdio::null())
        .output()?;
    io::stdout().write_all(&output.stdout)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn ignore_term() -> Result<(), Error> {
    for signal in
        [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP]
    {
        // A handler that only sets a flag nobody reads is as good as ignoring.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}
