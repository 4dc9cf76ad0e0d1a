//! The files of a workspace that no child may write, whatever the configuration opens around them: the configuration
//! itself in every place where it is looked for, the programs and prompts that it names, and the records.
//!
//! The driver starts some of these programs outside of any sandbox, and a gate runs what a builder wrote.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_gates::words_in;
use serde_json::Value;

use crate::config::workspace::FILE;
use crate::config::{Environment, Workspace};

/// Keys whose values are openings and names, not programs.
const NO_PROGRAMS: [&str; 6] = ["may_write", "writable", "cache", "caches", "junit", "targets"];
/// Keys whose values are files that leaves are told to follow.
const PROMPTS: [&str; 1] = ["prompt_file"];
/// Endings of scripts that an interpreter is handed, which need not be executable.
const SCRIPTS: [&str; 13] =
    ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk"];
/// Trees of the system, which nobody opens to a gate.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc"];

/// Returns the paths that stay closed to every child. Some of them need not exist.
pub(crate) fn closed_paths(
    workspace: &Workspace,
    environment: Environment<'_>,
) -> Vec<Utf8PathBuf> {
    let root = &workspace.root;
    let mut closed: Vec<Utf8PathBuf> = Vec::new();
    closed.extend(environment.config_home().map(|home| home.join("pdca")));
    closed.extend([workspace.templates_dir.clone(), workspace.process_dir.clone()]);
    closed.push(root.join(FILE));
    // With `pdca.toml` there, a file in `.config` would not count.
    let dot_config = root.join(".config");
    if dot_config.join(FILE).symlink_metadata().is_ok() {
        closed.push(dot_config);
    }
    // The repository of the workspace, or of what it lies in: its hooks run when the user commits.
    let repositories = root.ancestors().map(|dir| dir.join(".git"));
    closed.extend(repositories.filter(|git| git.symlink_metadata().is_ok()));
    let config = serde_json::to_value(&workspace.config).unwrap_or_default();
    let mut named = Vec::new();
    collect(&config, "", &mut |key, text| named.extend(programs_in(key, text, root, environment)));
    closed.extend(named);
    closed.sort_unstable();
    closed.dedup();
    closed
}

/// Calls `found` for every text of a configuration, with its key.
fn collect(value: &Value, key: &str, found: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => found(key, text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, key, found)),
        Value::Object(table) => {
            for (key, value) in table.iter().filter(|(key, _)| !NO_PROGRAMS.contains(&key.as_str()))
            {
                collect(value, key, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns what has to be closed for the programs that a text names.
fn programs_in(
    key: &str,
    text: &str,
    root: &Utf8Path,
    environment: Environment<'_>,
) -> Vec<Utf8PathBuf> {
    let words = words_in(text).into_iter().filter(|word| !word.is_empty());
    let files = words.enumerate().filter_map(|(at, word)| {
        let file = resolved(word, root, environment);
        let is_wanted = at == 0 || PROMPTS.contains(&key) || is_program(&file);
        (file.is_file() && is_wanted).then_some(file)
    });
    files
        .filter(|file| !SYSTEM.iter().any(|tree| file.starts_with(tree)))
        .map(|file| around(&file, root))
        .collect()
}

fn resolved(word: &str, root: &Utf8Path, environment: Environment<'_>) -> Utf8PathBuf {
    let home = environment.text("HOME").unwrap_or_default();
    for (prefix, dir) in [
        ("~", home),
        ("HOME", home),
        ("{HOME}", home),
        ("PDCA_WORKSPACE", root.as_str()),
        ("{PDCA_WORKSPACE}", root.as_str()),
        ("{workspace}", root.as_str()),
    ] {
        if let Some(rest) = word.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) {
            return Utf8Path::new(dir).join(rest);
        }
    }
    root.join(word)
}

/// Returns the path to close for a file: of the workspace its outermost directory, because whoever may rename a
/// directory above a file can put another in its place.
fn around(file: &Utf8Path, root: &Utf8Path) -> Utf8PathBuf {
    let inner = file.strip_prefix(root).ok().and_then(|inner| inner.components().next());
    inner.map_or_else(|| file.to_owned(), |first| root.join(first.as_str()))
}

/// Returns true for an executable file, or a script.
fn is_program(file: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_script = file.extension().is_some_and(|end| SCRIPTS.contains(&end));
    is_script || file.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_names_is_closed_with_the_directory_that_could_be_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        for file in
            ["tools/deep/notify.sh", "tools/data.txt", "run.py", "leaves/review.md", "home/bin/x"]
        {
            fs_err::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs_err::write(root.join(file), "").unwrap();
        }
        let home = root.join("home");
        let variables = [("HOME".into(), home.as_str().into())].into();
        let environment = Environment { variables: &variables, cwd: root };
        let closed = |key: &str, text: &str| -> Vec<String> {
            let found = programs_in(key, text, root, environment);
            found.iter().map(|path| path.strip_prefix(root).unwrap().to_string()).collect()
        };
        assert_eq!(closed("cmd", "./tools/deep/notify.sh --all"), ["tools"]);
        assert_eq!(closed("cmd", "sh tools/deep/notify.sh > tools/data.txt"), ["tools"]);
        assert_eq!(closed("cmd", "diff a tools/data.txt"), Vec::<String>::new());
        assert_eq!(closed("cmd", "python3 run.py"), ["run.py"]);
        assert_eq!(closed("argv", "{workspace}/run.py"), ["run.py"]);
        assert_eq!(closed("cmd", "sh \"$PDCA_WORKSPACE/run.py\""), ["run.py"]);
        assert_eq!(closed("cmd", "~/bin/x"), ["home"]);
        assert_eq!(closed("cmd", "$HOME/bin/x"), ["home"]);
        assert_eq!(closed("prompt_file", "leaves/review.md"), ["leaves"]);
        assert_eq!(closed("cmd", "/bin/sh -c true"), Vec::<String>::new());
    }
}
