//! The variables of the driver that a child does not inherit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use crate::credentials::{
    MODEL_PROVIDERS, is_credential, is_credential_value, is_foreign_model_key, is_model_key,
};
use crate::spec::Env;

/// The variable that carries the tokens of all supervisors above a process, newest last.
pub(crate) const TOKENS: &str = "PDCA_SUPERVISED";

/// Variables that tie git to a repository other than the one it is started in.
const GIT: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Full names of the variables that programs commonly need.
const USUAL: [&str; 45] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TERM_PROGRAM",
    "TERMINFO",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "EDITOR",
    "PAGER",
    "TMPDIR",
    "TMP",
    "TEMP",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "FTP_PROXY",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "SOURCE_DATE_EPOCH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "JAVA_HOME",
    "VIRTUAL_ENV",
];
/// Prefixes of the variables that programs commonly need: locale, directories, certificates, toolchains.
const USUAL_BEGINNINGS: [&str; 24] = [
    "LC_",
    "XDG_",
    "SSL_CERT_",
    "GIT_SSL_",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "CARGO_",
    "RUSTUP_",
    "RUST_",
    "RUSTC_",
    "RUSTFLAGS",
    "GO",
    "NODE_",
    "NPM_CONFIG_",
    "NVM_",
    "PNPM_",
    "PYTHON",
    "PYENV_",
    "PIP_",
    "UV_",
    "CONDA_",
    "RBENV_",
    "MISE_",
    "NIX_",
];

/// Returns true for variables that [`Env::usual_only`] passes.
fn is_usual(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    if name == TOKENS {
        return true;
    }
    // Proxy variables are usually written in lower case.
    let name = name.to_ascii_uppercase();
    let begins =
        |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    USUAL.contains(&name.as_str()) || begins(&USUAL_BEGINNINGS) || begins(&MODEL_PROVIDERS)
}

/// Removes from `command` the variables that its child must not inherit.
pub(crate) fn cleanse(command: &mut Command, env: &Env) {
    for (name, value) in std::env::vars_os() {
        let is_passed = env.pass.contains(&name);
        let is_secret = env.withhold_credentials && is_secret(&name, &value, env.model_keys);
        let is_odd = env.usual_only && !is_usual(&name);
        let is_foreign = is_foreign_model_key(&name, &env.model_vendors);
        if is_withheld(&name) || ((is_secret || is_odd || is_foreign) && !is_passed) {
            command.env_remove(name);
        }
    }
}

/// Returns true for variables that [`Env::withhold_credentials`] withholds. With `model_keys`, an agent keeps what it
/// needs to reach its model: its keys and the proxy, which often has a password.
fn is_secret(name: &OsStr, value: &OsStr, model_keys: bool) -> bool {
    if model_keys && (is_model_key(name) || is_proxy(name)) {
        return false;
    }
    is_credential(name) || is_credential_value(value)
}

fn is_proxy(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.to_ascii_uppercase().ends_with("_PROXY"))
}

fn is_withheld(name: &OsStr) -> bool {
    // Kept, so that a supervisor below another one is found through the tokens of both.
    if name == TOKENS {
        return false;
    }
    // Started from a hook or an alias of git, this process has variables that lead every git below
    // it to that repository. The settings of this driver are not those of a `pdca` that a child
    // runs.
    name.as_bytes().starts_with(b"PDCA_") || GIT.iter().any(|withheld| name == *withheld)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_keeps_the_keys_of_its_model_and_its_proxy_and_a_gate_does_not() {
        let secret = |name: &str, value: &str, keys| is_secret(name.as_ref(), value.as_ref(), keys);
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "x"),
            ("ANTHROPIC_AUTH_TOKEN", "x"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "x"),
            ("OPENAI_API_KEY", "x"),
            ("GEMINI_API_KEY", "x"),
            ("OPENAI_BASE_URL", "https://me:word@models.example"),
            ("https_proxy", "http://me:word@proxy.example:3128"),
        ] {
            assert!(!secret(name, value, true), "{name}");
            assert!(secret(name, value, false), "{name}");
        }
        for keys in [true, false] {
            assert!(secret("GH_TOKEN", "x", keys));
            assert!(secret("GOPROXY", "https://me:word@go.example.org", keys));
            assert!(!secret("GOPROXY", "https://proxy.golang.org,direct", keys));
            assert!(!secret("HTTPS_PROXY", "http://proxy.example:3128", keys));
        }
    }

    #[test]
    fn what_programs_commonly_need_is_a_list() {
        let usual = |name: &&str| is_usual(OsStr::new(name));
        let names = [
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "TERM",
            "TMPDIR",
            "https_proxy",
            "CARGO_HOME",
            "GOPATH",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "SOURCE_DATE_EPOCH",
            "GIT_AUTHOR_DATE",
            TOKENS,
        ];
        assert_eq!(names.iter().find(|name| !usual(name)), None);
        let names = [
            "DATABASE_URL",
            "STRIPE_KEY",
            "SENTRY_DSN",
            "MY_APP_CONFIG",
            "SSH_AUTH_SOCK",
            "GH_TOKEN",
            "DBUS_SESSION_BUS_ADDRESS",
            "DOCKER_HOST",
            "KUBECONFIG",
            "BASH_ENV",
            "LD_PRELOAD",
        ];
        assert_eq!(names.iter().find(|name| usual(name)), None);
    }

    #[test]
    fn only_what_binds_to_another_place_is_withheld() {
        let names = ["GIT_DIR", "GIT_EDITOR", "PDCA_BASE", TOKENS, "PATH"];
        let withheld: Vec<_> =
            names.into_iter().filter(|name| is_withheld(OsStr::new(name))).collect();
        assert_eq!(withheld, ["GIT_DIR", "PDCA_BASE"]);
    }
}
