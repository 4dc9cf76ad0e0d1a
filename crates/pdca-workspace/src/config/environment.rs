//! The parts of the process's environment that a configuration depends on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use camino::{Utf8Path, Utf8PathBuf};

/// Variables and current directory, read by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    pub variables: &'a BTreeMap<OsString, OsString>,
    /// Absolute.
    pub cwd: &'a Utf8Path,
}

impl<'a> Environment<'a> {
    pub fn get(self, name: &str) -> Option<&'a OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns a variable as text; empty counts as unset.
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(OsStr::to_str).filter(|value| !value.is_empty())
    }

    /// Returns the user's config directory by the XDG rules.
    pub fn config_home(self) -> Option<Utf8PathBuf> {
        self.text("XDG_CONFIG_HOME")
            .map(Utf8PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| self.text("HOME").map(|home| Utf8Path::new(home).join(".config")))
    }

    /// Looks up a program on `PATH`.
    pub fn find_program(self, name: &str) -> Option<Utf8PathBuf> {
        std::env::split_paths(self.get("PATH")?)
            .filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok())
            .map(|dir| dir.join(name))
            .find(|path| is_executable(path))
    }
}

fn is_executable(path: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_file_is_looked_for_by_the_xdg_rules() {
        let home = |env: &[(&str, &str)]| {
            let variables = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let environment = Environment { variables: &variables, cwd: "/".into() };
            environment.config_home().map(Utf8PathBuf::into_string)
        };
        assert_eq!(home(&[("HOME", "/h")]).as_deref(), Some("/h/.config"));
        assert_eq!(home(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]).as_deref(), Some("/x"));
        assert_eq!(
            home(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]).as_deref(),
            Some("/h/.config")
        );
        assert_eq!(home(&[]), None);
    }
}
