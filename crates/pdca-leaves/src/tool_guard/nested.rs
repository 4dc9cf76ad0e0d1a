//! The commands that a program starts on behalf of its caller: those inside `env`, `timeout`, `xargs`, `sh -c` and
//! others.

use crate::tool_guard::rule::name_of;
use crate::tool_guard::walk::UNKNOWN;

/// A command, script or code that another command starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Nested {
    /// A program with its arguments.
    Command { cmdline: Vec<String>, env: Vec<(String, String)>, stdin: Option<String> },
    /// Text for a separate shell, with its parameters from `$0` on.
    Script { text: String, args: Vec<String>, stdin: Option<String> },
    /// Text for the current shell.
    SameShell(String),
    /// The path of a shell script.
    File(String),
    /// Code for another interpreter.
    Code(String),
}

/// A program that runs the command after its own options.
struct Wrapper {
    names: &'static [&'static str],
    /// Options that take their value as the next argument.
    with_value: &'static [&'static str],
    /// The number of further arguments before the command.
    skips: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &[
            "nohup",
            "setsid",
            "builtin",
            "fakeroot",
            "ltrace",
            "catchsegv",
            "rlwrap",
            "unbuffer",
            "chronic",
            "ts",
        ],
        with_value: &["-o", "-e"],
        skips: 0,
    },
    Wrapper { names: &["exec"], with_value: &["-a"], skips: 0 },
    Wrapper { names: &["time"], with_value: &["-f", "--format", "-o", "--output"], skips: 0 },
    Wrapper {
        names: &["timeout", "gtimeout"],
        with_value: &["-k", "--kill-after", "-s", "--signal"],
        skips: 1,
    },
    Wrapper { names: &["nice"], with_value: &["-n", "--adjustment"], skips: 0 },
    Wrapper { names: &["ionice"], with_value: &["-c", "--class", "-n", "--classdata"], skips: 0 },
    Wrapper { names: &["chrt"], with_value: &["-T", "-P", "-D"], skips: 1 },
    Wrapper { names: &["taskset"], with_value: &[], skips: 1 },
    Wrapper {
        names: &["stdbuf"],
        with_value: &["-i", "-o", "-e", "--input", "--output", "--error"],
        skips: 0,
    },
    Wrapper {
        names: &["sudo"],
        with_value: &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-r", "-t",
            "-T", "-U", "-D", "--chdir", "-R",
        ],
        skips: 0,
    },
    Wrapper { names: &["doas"], with_value: &["-u", "-C"], skips: 0 },
    Wrapper { names: &["runuser"], with_value: &["-u", "-g", "-G"], skips: 0 },
    Wrapper {
        names: &["strace"],
        with_value: &["-o", "-e", "-p", "-s", "-u", "-E", "-a", "-b", "-I", "-O", "-S", "-P"],
        skips: 0,
    },
    Wrapper { names: &["perf"], with_value: &["-e", "-o", "-F", "-c", "-r"], skips: 1 },
    Wrapper { names: &["valgrind", "gdb", "lldb", "rr"], with_value: &["-ex", "-x"], skips: 0 },
    Wrapper { names: &["chroot"], with_value: &[], skips: 1 },
    Wrapper {
        names: &["unshare", "nsenter", "setpriv", "prlimit", "systemd-inhibit"],
        with_value: &["-t", "--target", "-S", "-G"],
        skips: 0,
    },
    Wrapper {
        names: &["systemd-run"],
        with_value: &["-p", "--property", "-u", "--unit", "-E", "--setenv", "--slice"],
        skips: 0,
    },
    Wrapper {
        names: &["npx", "bunx", "pnpx", "uvx", "pipx"],
        with_value: &["-p", "--package", "--from", "--with", "--python"],
        skips: 0,
    },
    Wrapper { names: &["cross-env", "dotenv", "env-cmd"], with_value: &["-e", "-f"], skips: 0 },
    Wrapper { names: &["entr"], with_value: &[], skips: 0 },
    Wrapper {
        names: &["caffeinate", "arch", "torsocks", "proxychains", "proxychains4", "firejail"],
        with_value: &["-f", "-t"],
        skips: 0,
    },
];

/// Programs with a subcommand that runs another program, as in `poetry run …`.
const RUNNERS: &[(&str, &[&str])] = &[
    ("poetry", &["run"]),
    ("uv", &["run"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("npm", &["exec", "x"]),
    ("bun", &["x"]),
    ("mise", &["exec", "x"]),
    ("rtx", &["exec"]),
    ("asdf", &["exec"]),
    ("rustup", &["run"]),
    ("direnv", &["exec"]),
    ("pipx", &["run"]),
    ("nix", &["develop", "shell"]),
    ("devbox", &["run"]),
    ("doppler", &["run"]),
    ("op", &["run"]),
    ("busybox", &[]),
    ("toybox", &[]),
];

const SHELLS: [&str; 11] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "yash", "pwsh"];

pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Returns the commands that `cmdline` starts, given its standard input if that is known.
pub(crate) fn nested(cmdline: &[String], stdin: Option<&str>) -> Vec<Nested> {
    let Some((program, args)) = cmdline.split_first() else { return Vec::new() };
    let name = name_of(program);
    if is_shell(name) {
        return shell(args, stdin);
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
        let behind = behind_options(args, wrapper.with_value);
        // `runuser` and `npx` also accept a command line as text.
        let mut found = option_value(args, &["-c", "--command", "--call"])
            .filter(|_| matches!(name, "runuser" | "npx"))
            .map(script)
            .into_iter()
            .collect::<Vec<_>>();
        found.extend(command(behind.get(wrapper.skips..).unwrap_or_default(), stdin));
        return found;
    }
    if let Some((_, subcommands)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        return runner(name, args, subcommands, stdin);
    }
    match name {
        "env" => env(args, stdin),
        // `command -v git` asks where git is and runs nothing.
        "command" if args.first().is_some_and(|arg| matches!(arg.as_str(), "-v" | "-V")) => {
            Vec::new()
        }
        "command" => command(behind_options(args, &[]), stdin),
        "eval" => vec![Nested::SameShell(args.join(" "))],
        "source" | "." => args.first().map(|file| Nested::File(file.clone())).into_iter().collect(),
        "trap" => args
            .first()
            .filter(|text| text.len() > 1)
            .map(|text| script(text))
            .into_iter()
            .collect(),
        "su" | "script" | "nix-shell" | "hyperfine" => texts(name, args),
        "flock" => flock(args, stdin),
        "xargs" | "gxargs" => xargs(args, stdin),
        "parallel" => parallel(args, stdin),
        "watch" => {
            let behind = behind_options(args, &["-n", "--interval", "-q", "--equexit"]);
            (!behind.is_empty()).then(|| script(&behind.join(" "))).into_iter().collect()
        }
        "find" | "gfind" => after_flags(args, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => after_flags(args, &["-x", "-X", "--exec", "--exec-batch"]),
        // The other machine may be this one, and `ssh localhost git push` uses the user's keys.
        "ssh" => {
            let behind = behind_options(
                args,
                &[
                    "-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-W", "-b", "-c", "-E",
                    "-e", "-m", "-O", "-Q", "-S", "-w",
                ],
            );
            (behind.len() > 1).then(|| script(&behind[1..].join(" "))).into_iter().collect()
        }
        "tmux" => tmux(args),
        "screen" => command(
            behind_options(
                args,
                &["-S", "-dmS", "-DmS", "-LdmS", "-c", "-e", "-h", "-p", "-s", "-t", "-T"],
            ),
            stdin,
        ),
        // What runs later, outside of the builder's process tree, counts as run.
        "at" | "batch" | "crontab" => stdin.map(script).into_iter().collect(),
        "git" => git(args),
        _ => interpreter(name, args, stdin),
    }
}

fn script(text: &str) -> Nested {
    Nested::Script { text: text.to_owned(), args: Vec::new(), stdin: None }
}

fn command(cmdline: &[String], stdin: Option<&str>) -> Vec<Nested> {
    // `env` and `sudo` take assignments before the command; the other wrappers do not, and no
    // program is called `a=b`.
    let assigns = |arg: &&String| arg.split_once('=').is_some_and(|(name, _)| is_name(name));
    let count = cmdline.iter().take_while(assigns).count();
    let env = cmdline[..count].iter().filter_map(|arg| arg.split_once('='));
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let cmdline = cmdline[count..].to_vec();
    if cmdline.is_empty() {
        return Vec::new();
    }
    vec![Nested::Command { cmdline, env, stdin: stdin.map(str::to_owned) }]
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the arguments after leading options; `--` ends them.
pub(crate) fn behind_options<'a>(args: &'a [String], with_value: &[&str]) -> &'a [String] {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if arg == "--" {
            return &args[at + 1..];
        }
        if !arg.starts_with('-') || arg == "-" {
            break;
        }
        at += if with_value.contains(&arg.as_str()) { 2 } else { 1 };
    }
    args.get(at..).unwrap_or_default()
}

/// Returns the value of the first of these options, given as `-x value`, `-xvalue` or `--long=value`.
pub(crate) fn option_value<'a>(args: &'a [String], names: &[&str]) -> Option<&'a str> {
    for (at, arg) in args.iter().enumerate() {
        for name in names {
            if arg == name {
                return args.get(at + 1).map(String::as_str);
            }
            let Some(rest) = arg.strip_prefix(name) else { continue };
            if name.starts_with("--") {
                if let Some(value) = rest.strip_prefix('=') {
                    return Some(value);
                }
            } else if name.len() == 2 {
                return Some(rest.strip_prefix('=').unwrap_or(rest));
            }
        }
    }
    None
}

fn shell(args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    let mut at = 0;
    let mut takes_text = false;
    let mut from_stdin = false;
    while let Some(arg) = args.get(at) {
        match arg.as_str() {
            "--" | "-" => {
                at += 1;
                break;
            }
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => at += 2,
            "--command" | "-Command" => {
                takes_text = true;
                at += 1;
            }
            _ if arg.starts_with("--") => at += 1,
            _ if arg.starts_with('-') || arg.starts_with('+') => {
                // Bundled flags: `-lc`, `-xec`. A long option with a `c` was taken above.
                takes_text |= arg.starts_with('-') && arg.contains('c');
                from_stdin |= arg.starts_with('-') && arg.contains('s');
                at += 1;
            }
            _ => break,
        }
    }
    let rest = args.get(at..).unwrap_or_default();
    match (takes_text, rest) {
        (true, [text, args @ ..]) => {
            let args = args.to_vec();
            vec![Nested::Script { text: text.clone(), args, stdin: stdin.map(str::to_owned) }]
        }
        (false, [file, ..]) if !from_stdin => vec![Nested::File(file.clone())],
        _ => stdin.map(script).into_iter().collect(),
    }
}

fn env(args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    for (at, arg) in args.iter().enumerate() {
        let text = arg
            .strip_prefix("--split-string=")
            .or_else(|| arg.strip_prefix("-S").filter(|rest| !rest.is_empty()));
        let text = match (text, arg.as_str()) {
            (Some(text), _) => Some(text),
            (None, "-S" | "--split-string" | "-vS") => args.get(at + 1).map(String::as_str),
            (None, _) => None,
        };
        if let Some(text) = text {
            return vec![script(text)];
        }
        if !arg.starts_with('-') {
            break;
        }
    }
    command(behind_options(args, &["-u", "--unset", "-C", "--chdir"]), stdin)
}

/// Reads the arguments of programs that take shell text.
fn texts(name: &str, args: &[String]) -> Vec<Nested> {
    if name == "hyperfine" {
        return args.iter().filter(|arg| !arg.starts_with('-')).map(|text| script(text)).collect();
    }
    let bundled = args.iter().position(|arg| {
        arg.starts_with('-') && !arg.starts_with("--") && arg.ends_with('c') && name == "script"
    });
    let text = bundled.and_then(|at| args.get(at + 1)).map(String::as_str);
    let text = text.or_else(|| option_value(args, &["-c", "--command", "--run"]));
    text.map(script).into_iter().collect()
}

fn flock(args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    let behind = behind_options(args, &["-w", "--timeout", "-E", "--conflict-exit-code"]);
    match behind {
        [_, flag, text, ..] if matches!(flag.as_str(), "-c" | "--command") => vec![script(text)],
        [_, rest @ ..] => command(rest, stdin),
        [] => Vec::new(),
    }
}

fn runner(name: &str, args: &[String], subcommands: &[&str], stdin: Option<&str>) -> Vec<Nested> {
    let behind =
        behind_options(args, &["-C", "--prefix", "--filter", "-w", "--directory", "--project"]);
    let behind = if subcommands.is_empty() {
        behind
    } else {
        match behind {
            [subcommand, rest @ ..] if subcommands.contains(&subcommand.as_str()) => rest,
            _ => return Vec::new(),
        }
    };
    let text = option_value(behind, &["-c", "--command"]).map(script);
    let behind =
        behind_options(behind, &["--with", "--python", "-p", "--package", "--env-file", "-e"]);
    // In `mise exec node@20 -- npm …` and `rustup run nightly cargo …` a version comes first.
    let split = behind.iter().position(|arg| arg == "--").map_or(0, |at| at + 1);
    let mut found: Vec<Nested> = text.into_iter().collect();
    found.extend(command(&behind[split..], stdin));
    if split == 0 && behind.len() > 1 && matches!(name, "rustup" | "direnv" | "mise" | "rtx") {
        found.extend(command(&behind[1..], stdin));
    }
    found
}

fn xargs(args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    const WITH_VALUE: [&str; 16] = [
        "-I",
        "-n",
        "-P",
        "-d",
        "-E",
        "-L",
        "-s",
        "-a",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--replace",
        "--max-lines",
        "--max-chars",
        "--arg-file",
        "--process-slot-var",
    ];
    let mut cmdline = behind_options(args, &WITH_VALUE).to_vec();
    if cmdline.is_empty() {
        return Vec::new();
    }
    let unknown = UNKNOWN.to_string();
    let replaced = option_value(args, &["-I", "--replace"])
        .or_else(|| args.iter().any(|arg| arg == "-i").then_some("{}"));
    match replaced.filter(|mark| !mark.is_empty()) {
        Some(mark) => {
            let input = stdin.map_or(unknown, |text| text.trim_end().to_owned());
            for arg in &mut cmdline {
                *arg = arg.replace(mark, &input);
            }
        }
        None => match stdin {
            Some(text) => cmdline.extend(text.split_whitespace().map(str::to_owned)),
            None => cmdline.push(unknown),
        },
    }
    command(&cmdline, None)
}

fn parallel(args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    const WITH_VALUE: [&str; 8] =
        ["-j", "--jobs", "-P", "-n", "-N", "--timeout", "--retries", "-I"];
    let split = args.iter().position(|arg| arg.starts_with(":::")).unwrap_or(args.len());
    let template = behind_options(&args[..split], &WITH_VALUE);
    let lines = stdin.into_iter().flat_map(str::lines).map(str::to_owned);
    let values: Vec<String> =
        args[split..].iter().filter(|arg| !arg.starts_with(":::")).cloned().chain(lines).collect();
    let template = template.join(" ");
    if values.is_empty() {
        return vec![script(&template)];
    }
    let fill = |value: &String| {
        if template.contains("{}") {
            script(&template.replace("{}", value))
        } else {
            script(&format!("{template} {value}"))
        }
    };
    // As many as a loop tries; values beyond are not seen.
    values.iter().take(16).map(fill).collect()
}

/// Returns the commands after these flags, each up to `;` or `+`.
fn after_flags(args: &[String], flags: &[&str]) -> Vec<Nested> {
    let mut found = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        if flags.contains(&arg.as_str()) {
            let behind = args[at + 1..].iter().take_while(|arg| !matches!(arg.as_str(), ";" | "+"));
            // `{}` stands for an unknown file name.
            let cmdline: Vec<String> =
                behind.map(|arg| arg.replace("{}", &UNKNOWN.to_string())).collect();
            found.extend(command(&cmdline, None));
        }
    }
    found
}

fn tmux(args: &[String]) -> Vec<Nested> {
    const STARTING: [&str; 11] = [
        "new",
        "new-session",
        "neww",
        "new-window",
        "splitw",
        "split-window",
        "respawn-pane",
        "respawn-window",
        "run",
        "run-shell",
        "popup",
    ];
    const WITH_VALUE: [&str; 12] =
        ["-s", "-n", "-c", "-t", "-x", "-y", "-F", "-e", "-f", "-l", "-p", "-L"];
    let behind = behind_options(args, &["-L", "-S", "-f", "-c", "-T"]);
    let Some((subcommand, rest)) = behind.split_first() else { return Vec::new() };
    let rest = behind_options(rest, &WITH_VALUE);
    if STARTING.contains(&subcommand.as_str()) {
        return (!rest.is_empty()).then(|| script(&rest.join(" "))).into_iter().collect();
    }
    if matches!(subcommand.as_str(), "send" | "send-keys") {
        let keys = rest.iter().filter(|key| !matches!(key.as_str(), "Enter" | "C-m" | "C-j"));
        return vec![script(&keys.cloned().collect::<Vec<_>>().join(" "))];
    }
    Vec::new()
}

/// Returns the commands that git itself runs: `bisect run`, `rebase --exec`, `submodule foreach`, filters.
fn git(args: &[String]) -> Vec<Nested> {
    let behind = behind_options(args, &crate::tool_guard::rule::git::WITH_VALUE);
    let Some((subcommand, rest)) = behind.split_first() else { return Vec::new() };
    match (subcommand.as_str(), rest) {
        ("bisect", [run, cmdline @ ..]) if run == "run" => command(cmdline, None),
        ("submodule", rest) => {
            let behind =
                rest.iter().position(|arg| arg == "foreach").map_or(&[][..], |at| &rest[at + 1..]);
            let behind = behind_options(behind, &[]);
            (!behind.is_empty()).then(|| script(&behind.join(" "))).into_iter().collect()
        }
        ("rebase", rest) => option_value(rest, &["-x", "--exec"]).map(script).into_iter().collect(),
        ("filter-branch", rest) => {
            let filters = rest.iter().enumerate().filter(|(_, arg)| arg.ends_with("-filter"));
            filters.filter_map(|(at, _)| rest.get(at + 1)).map(|text| script(text)).collect()
        }
        ("for-each-repo", rest) => {
            let mut cmdline = vec!["git".to_owned()];
            cmdline.extend(behind_options(rest, &["--config"]).iter().cloned());
            command(&cmdline, None)
        }
        _ => Vec::new(),
    }
}

/// Reads code for another interpreter, from its command line or its standard input.
fn interpreter(name: &str, args: &[String], stdin: Option<&str>) -> Vec<Nested> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let flags: &[&str] = match bare {
        "python" | "pypy" => &["-c"],
        "node" | "nodejs" | "bun" | "deno" => &["-e", "--eval", "-p", "--print", "eval"],
        "perl" | "ruby" | "lua" | "luajit" | "Rscript" | "julia" | "osascript" => {
            &["-e", "-E", "-ne", "-pe", "-le", "-lne"]
        }
        "php" => &["-r"],
        "awk" | "gawk" | "mawk" | "nawk" => {
            let program = behind_options(args, &["-F", "-v", "-f"]).first();
            return program.map(|text| Nested::Code(text.clone())).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    let code =
        args.iter().position(|arg| flags.contains(&arg.as_str())).and_then(|at| args.get(at + 1));
    match (code, stdin) {
        (Some(code), _) => vec![Nested::Code(code.clone())],
        (None, Some(text)) if args.iter().all(|arg| arg.starts_with('-')) => {
            vec![Nested::Code(text.to_owned())]
        }
        // In `python -m twine upload` the module is the program.
        (None, _) => match args {
            [flag, module, rest @ ..] if flag == "-m" && bare == "python" => {
                let cmdline: Vec<String> = std::iter::once(module).chain(rest).cloned().collect();
                command(&cmdline, None)
            }
            _ => Vec::new(),
        },
    }
}
