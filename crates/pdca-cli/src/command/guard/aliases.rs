//! Git aliases, read from git's configuration files.
//!
//! Git itself is not called: the hook runs before every tool call and has to answer in a few milliseconds. Included
//! files are not followed.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::tool_guard::GuardScope;

use crate::process_env::ProcessEnv;

/// Returns the expansion of the alias `name`, from the checkout's configuration or the user's.
pub(super) fn find(name: &str, scope: &GuardScope, env: &ProcessEnv) -> Option<String> {
    files(scope, env).into_iter().find_map(|file| {
        let text = fs_err::read_to_string(file).ok()?;
        alias(&text, name)
    })
}

/// Returns the files, in order of precedence.
fn files(scope: &GuardScope, env: &ProcessEnv) -> Vec<Utf8PathBuf> {
    let mut files: Vec<Utf8PathBuf> =
        git_dir(scope.lane()).map(|dir| dir.join("config")).into_iter().collect();
    if let Some(global) = env.var_text("GIT_CONFIG_GLOBAL") {
        // Git reads neither of the user's files then, and that of the system nevertheless.
        files.push(global.into());
    } else {
        let home = env.var_text("HOME").map(Utf8PathBuf::from);
        files.extend(home.as_ref().map(|home| home.join(".gitconfig")));
        let config = env.var_text("XDG_CONFIG_HOME").map(Utf8PathBuf::from);
        let config = config.or_else(|| home.map(|home| home.join(".config")));
        files.extend(config.map(|dir| dir.join("git/config")));
    }
    files.push("/etc/gitconfig".into());
    files
}

/// Returns the repository of a checkout; a linked worktree names it in a file.
fn git_dir(lane: &Utf8Path) -> Option<Utf8PathBuf> {
    let dir = lane.join(".git");
    if dir.is_dir() {
        return Some(dir);
    }
    let text = fs_err::read_to_string(&dir).ok()?;
    let linked = lane.join(text.strip_prefix("gitdir:")?.trim());
    // A linked worktree has the configuration of its main repository.
    let common = fs_err::read_to_string(linked.join("commondir")).ok()?;
    Some(linked.join(common.trim()))
}

/// Finds the value of the alias in the text of a configuration file.
fn alias(text: &str, name: &str) -> Option<String> {
    let joined = text.replace("\\\n", " ");
    let mut section = String::new();
    let mut found = None;
    for line in joined.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split(']').next().unwrap_or_default().trim().to_ascii_lowercase();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let is_alias = section == "alias" && key.trim().eq_ignore_ascii_case(name);
        let in_subsection =
            section == format!("alias \"{name}\"") && key.trim().eq_ignore_ascii_case("command");
        if is_alias || in_subsection {
            found = Some(unquoted(value.trim()));
        }
    }
    found
}

fn unquoted(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars();
    let mut in_quotes = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
            '"' => in_quotes = !in_quotes,
            '#' | ';' if !in_quotes => break,
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_user_does_not_hide_that_of_the_system() {
        let env = ProcessEnv::of_values("/", &[("GIT_CONFIG_GLOBAL", "/g"), ("HOME", "/h")]);
        let vars = [("PDCA_WORKTREE", "/w.lanes/lane-0/repo")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let scope = GuardScope::from_env(vars.into()).unwrap();
        assert_eq!(files(&scope, &env), ["/g", "/etc/gitconfig"]);
    }

    #[test]
    fn an_alias_is_read_as_git_reads_it() {
        let text = "[user]\n\tname = p\n[Alias]\n\tP = push # often\n\tall = \"!git push; \\\"x\\\"\"\n[core]\n\tst = no\n";
        assert_eq!(alias(text, "p").as_deref(), Some("push"));
        assert_eq!(alias(text, "all").as_deref(), Some("!git push; \"x\""));
        assert_eq!(alias(text, "st"), None);
    }
}
