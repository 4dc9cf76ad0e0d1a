//! Files: a builder writes to its own checkout, its notes and temporary directories.

use super::{is_unknown, line};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::nested::option_value;
use crate::tool_guard::walk::ShellWalk;

const INSTEAD: &str =
    "write in your own checkout ($PDCA_WORKTREE), your notes ($PDCA_OUTPUT) or $TMPDIR";

/// The arguments of a program that name written files.
enum Written {
    /// All that are not options.
    All,
    /// All but the first.
    AllButFirst,
    /// The last, or the value of `-t`.
    Last,
}

const WRITING: &[(&[&str], Written)] = &[
    (
        &[
            "rm",
            "rmdir",
            "unlink",
            "shred",
            "touch",
            "mkdir",
            "mkfifo",
            "mknod",
            "tee",
            "truncate",
            // The source too: it is removed from where it was.
            "mv",
            "trash",
            "fallocate",
        ],
        Written::All,
    ),
    (&["chmod", "chown", "chgrp", "chattr", "setfacl", "setfattr"], Written::AllButFirst),
    (&["cp", "ln", "install", "rsync", "scp", "gcp", "gln", "rcp"], Written::Last),
];

pub(crate) fn judge(
    program: &str,
    args: &[String],
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let whole = line(program, args);
    if let Some((_, written)) = WRITING.iter().find(|(names, _)| names.contains(&program)) {
        for path in paths(written, args) {
            write(path, &whole, walk)?;
        }
        return Ok(());
    }
    match program {
        "sed" | "gsed" | "perl" => {
            let in_place = args.iter().any(|arg| {
                arg.starts_with("-i") || arg.starts_with("--in-place") || arg.starts_with("-pi")
            });
            if in_place {
                for path in args.iter().filter(|arg| !arg.starts_with('-') && arg.contains('/')) {
                    write(path, &whole, walk)?;
                }
            }
        }
        "dd" => {
            for path in args.iter().filter_map(|arg| arg.strip_prefix("of=")) {
                write(path, &whole, walk)?;
            }
        }
        "tar" | "bsdtar" | "unzip" | "patch" | "git-apply" => {
            if let Some(dir) = option_value(args, &["-C", "--directory", "-d"]) {
                write(dir, &whole, walk)?;
            }
        }
        "find" | "gfind" if args.iter().any(|arg| arg == "-delete") => {
            for root in args.iter().take_while(|arg| !arg.starts_with('-')) {
                write(root, &whole, walk)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn paths<'a>(written: &Written, args: &'a [String]) -> Vec<&'a str> {
    let mut plain: Vec<&str> =
        args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-')).collect();
    match written {
        Written::All => plain,
        Written::AllButFirst => {
            // A mode such as `-x` looks like an option.
            let is_mode = |arg: &String| {
                arg.len() > 1
                    && arg.starts_with('-')
                    && arg[1..].bytes().all(|b| b"rwxXst".contains(&b))
            };
            let named = args.iter().any(|arg| arg.starts_with("--reference") || is_mode(arg));
            if !plain.is_empty() && !named {
                plain.remove(0);
            }
            plain
        }
        Written::Last => match option_value(args, &["-t", "--target-directory"]) {
            Some(dir)
                if args.iter().any(|arg| arg.starts_with("-t") || arg.starts_with("--target")) =>
            {
                vec![dir]
            }
            _ => plain.pop().into_iter().collect(),
        },
    }
}

/// Judges a write to `path` by the command `whole`.
pub(crate) fn write(path: &str, whole: &str, walk: &mut ShellWalk<'_>) -> Result<(), GuardRefusal> {
    if is_unknown(path) {
        walk.not_seen(format!("which file `{whole}` writes is not known"));
        return Ok(());
    }
    // After `cd $(…)` the directory is unknown. Refusing every relative path from then on would
    // refuse ordinary work; the sandbox holds.
    let Some(path) = walk.resolve(path) else { return Ok(()) };
    match walk.scope.objection(&path) {
        Some(why) => Err(GuardRefusal::new(
            whole,
            format!("{path} is not the builder's to write: {why}"),
            INSTEAD,
        )),
        None => Ok(()),
    }
}
