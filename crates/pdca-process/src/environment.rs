//! The variables of the driver that a child does not inherit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

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

/// Full names of variables that hold credentials.
const CREDENTIALS: [&str; 17] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "GIT_ASKPASS",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "DOCKER_AUTH_CONFIG",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "TWINE_USERNAME",
    "VAULT_ADDR",
    "GEM_HOST_API_KEY",
];
/// Suffixes of names that hold credentials.
const CREDENTIAL_ENDINGS: [&str; 9] = [
    "_TOKEN",
    "_PASSWORD",
    "_PASSWD",
    "_SECRET",
    "_SECRET_KEY",
    "_PRIVATE_KEY",
    "_CREDENTIALS",
    "_ACCESS_KEY",
    "_PAT",
];
/// Prefixes of the variables with which an agent signs in to its model; these are never credentials to withhold.
const MODEL_PROVIDERS: [&str; 14] = [
    "ANTHROPIC_",
    "CLAUDE_",
    "OPENAI_",
    "CODEX_",
    "GEMINI_",
    "GOOGLE_API_KEY",
    "OPENROUTER_",
    "MISTRAL_",
    "DEEPSEEK_",
    "GROQ_",
    "XAI_",
    "OPENCODE_",
    "AIDER_",
    "AZURE_OPENAI_",
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

/// Returns true for variables that [`Env::withhold_credentials`] withholds.
pub fn is_credential(name: impl AsRef<OsStr>) -> bool {
    let name = name.as_ref();
    let Some(name) = name.to_str() else { return false };
    let name = name.to_ascii_uppercase();
    if MODEL_PROVIDERS.iter().any(|provider| name.starts_with(provider)) {
        return false;
    }
    CREDENTIALS.contains(&name.as_str())
        || CREDENTIAL_ENDINGS.iter().any(|ending| name.ends_with(ending) || name == ending[1..])
        || name.starts_with("GITHUB_TOKEN")
        || name.contains("_TOKEN_")
}

/// Removes from `command` the variables that its child must not inherit. Only the names of this process's
/// environment are read, never the values.
pub(crate) fn cleanse(command: &mut Command, env: &Env) {
    for (name, _) in std::env::vars_os() {
        let is_secret =
            env.withhold_credentials && is_credential(&name) && !env.pass.contains(&name);
        let is_odd = env.usual_only && !is_usual(&name) && !env.pass.contains(&name);
        if is_withheld(&name) || is_secret || is_odd {
            command.env_remove(name);
        }
    }
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
    fn a_credential_is_known_by_its_name_and_a_models_key_is_let_through() {
        let names = [
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "GITLAB_TOKEN",
            "NPM_TOKEN",
            "CARGO_REGISTRIES_X_TOKEN",
            "SSH_AUTH_SOCK",
            "AWS_SECRET_ACCESS_KEY",
            "TWINE_PASSWORD",
            "POETRY_PYPI_TOKEN_PYPI",
            "MY_SECRET",
            "token",
        ];
        for name in names {
            assert!(is_credential(OsStr::new(name)), "{name}");
        }
        let names = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "PATH",
            "HOME",
            "TOKENIZERS_PARALLELISM",
            "CARGO_HOME",
            "HTTPS_PROXY",
            "PATTERN",
        ];
        for name in names {
            assert!(!is_credential(OsStr::new(name)), "{name}");
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
