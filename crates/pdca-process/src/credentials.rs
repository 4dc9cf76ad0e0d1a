//! Credentials: the variables and the files of a user that a sandboxed child does not get.
//!
//! Variables are known by their names, and by values that hold a password. Files are known by their place in the home
//! directory. A file that honest builds read, such as `.npmrc`, is hidden only if it holds a credential.
//!
//! [`CREDENTIAL_FILES`] and [`CREDENTIAL_VARIABLES`] are what the reference page about the sandbox prints.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::sandbox::{home, variable};

/// The part of a file that is searched for a credential.
const SEARCHED: u64 = 256 << 10;

/// When a file that may hold credentials is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenWhen {
    /// Always.
    Always,
    /// If its text contains one of these words, in any case, or a URL with a password.
    Contains(&'static [&'static str]),
    /// Unless the child may write there: the sign-in of a coding agent, which agents need and gates do not.
    NotOpened,
}

/// A file or directory of the home directory that holds credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialFile {
    /// The path below the home directory.
    pub path: &'static str,
    /// The condition under which it is hidden.
    pub hidden: HiddenWhen,
}

/// A rule by which a variable is taken for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialVariable {
    /// The names, with `*` for any text. A part is what stands between two `_`.
    pub pattern: &'static str,
    /// What it catches.
    pub example: &'static str,
}

const fn always(path: &'static str) -> CredentialFile {
    CredentialFile { path, hidden: HiddenWhen::Always }
}

const fn holding(path: &'static str, words: &'static [&'static str]) -> CredentialFile {
    CredentialFile { path, hidden: HiddenWhen::Contains(words) }
}

const fn agent(path: &'static str) -> CredentialFile {
    CredentialFile { path, hidden: HiddenWhen::NotOpened }
}

/// Files and directories below the home directory that hold credentials.
///
/// Paths below `.config`, `.local/share` and `.cargo` are looked for below `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and
/// `CARGO_HOME` too.
pub const CREDENTIAL_FILES: &[CredentialFile] = &[
    // Keys, and stores of passwords.
    always(".ssh"),
    always(".gnupg"),
    always(".netrc"),
    always(".authinfo"),
    always(".authinfo.gpg"),
    always(".password-store"),
    always(".local/share/password-store"),
    always(".local/share/gopass"),
    always(".config/gopass"),
    always(".local/share/keyrings"),
    always(".local/share/kwalletd"),
    always(".config/op"),
    always(".config/Bitwarden CLI"),
    always(".config/sops/age"),
    always(".config/age"),
    always(".vault-token"),
    // git and forges.
    always(".git-credentials"),
    always(".config/git/credentials"),
    holding(".gitconfig", &["extraheader"]),
    holding(".config/git/config", &["extraheader"]),
    always(".config/gh"),
    always(".config/glab-cli"),
    always(".config/hub"),
    always(".config/tea"),
    always(".circleci/cli.yml"),
    // Package managers.
    holding(".npmrc", &["_authtoken", "_password", "_auth=", "_auth ="]),
    holding(".config/pnpm/rc", &["_authtoken", "_password", "_auth=", "_auth ="]),
    holding(".yarnrc", &["_authtoken", "_password"]),
    holding(".yarnrc.yml", &["npmauthtoken", "npmauthident"]),
    holding(".bunfig.toml", &["token", "password"]),
    always(".pypirc"),
    holding(".config/pip/pip.conf", &["password"]),
    holding(".pip/pip.conf", &["password"]),
    holding(".condarc", &["password", "token"]),
    always(".config/pypoetry/auth.toml"),
    always(".local/share/uv/credentials"),
    always(".cargo/credentials"),
    always(".cargo/credentials.toml"),
    always(".gem/credentials"),
    always(".local/share/gem/credentials"),
    holding(".bundle/config", &["__com:", "__org:", "__net:", "__io:"]),
    holding(".m2/settings.xml", &["<password>", "<passphrase>", "<privatekey>"]),
    always(".m2/settings-security.xml"),
    holding(".gradle/gradle.properties", &["password", "token", "secret", "apikey", "signing."]),
    always(".ivy2/.credentials"),
    always(".sbt/.credentials"),
    always(".config/coursier/credentials.properties"),
    holding(".nuget/NuGet/NuGet.Config", &["packagesourcecredentials", "apikeys"]),
    holding(".config/NuGet/NuGet.Config", &["packagesourcecredentials", "apikeys"]),
    always(".composer/auth.json"),
    always(".config/composer/auth.json"),
    always(".hex/hex.config"),
    // Containers and clusters.
    always(".docker/config.json"),
    always(".dockercfg"),
    always(".config/containers/auth.json"),
    always(".kube"),
    always(".config/helm/registry"),
    holding(".config/helm/repositories.yaml", &["password:"]),
    // Clouds and their tools.
    always(".aws"),
    always(".azure"),
    always(".config/gcloud"),
    always(".boto"),
    always(".s3cfg"),
    always(".oci"),
    always(".config/rclone"),
    always(".rclone.conf"),
    always(".config/doctl"),
    always(".config/hcloud"),
    always(".config/scw"),
    always(".config/openstack"),
    always(".config/configstore"),
    always(".config/netlify"),
    always(".config/.wrangler"),
    always(".wrangler"),
    always(".local/share/com.vercel.cli"),
    always(".fly/config.yml"),
    always(".terraform.d/credentials.tfrc.json"),
    holding(".terraformrc", &["token"]),
    always(".pulumi/credentials.json"),
    always(".databrickscfg"),
    always(".snowflake"),
    holding(".sentryclirc", &["token"]),
    always(".kaggle/kaggle.json"),
    always(".huggingface/token"),
    always(".cache/huggingface/token"),
    // Databases.
    always(".pgpass"),
    holding(".my.cnf", &["password"]),
    always(".mylogin.cnf"),
    // Browsers and mail: sessions of the user.
    always(".mozilla"),
    always(".thunderbird"),
    always(".config/google-chrome"),
    always(".config/chromium"),
    always(".config/BraveSoftware"),
    always(".config/microsoft-edge"),
    always(".config/vivaldi"),
    always(".config/opera"),
    always("snap/firefox"),
    always(".var/app/org.mozilla.firefox"),
    // Sign-ins of coding agents.
    agent(".claude/.credentials.json"),
    agent(".claude.json"),
    agent(".codex/auth.json"),
    agent(".gemini/oauth_creds.json"),
    agent(".qwen/oauth_creds.json"),
    agent(".local/share/opencode/auth.json"),
    agent(".config/github-copilot"),
    agent(".aider.conf.yml"),
];

/// Variables that name a file or directory with credentials, or several with `:` between them.
const FILE_VARIABLES: [&str; 9] = [
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "PGPASSFILE",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "GNUPGHOME",
];

/// Variables that move a directory of the home directory.
const MOVED: [(&str, &str); 3] =
    [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("CARGO_HOME", ".cargo")];

/// The rules by which a variable is taken for a credential.
pub const CREDENTIAL_VARIABLES: &[CredentialVariable] = &[
    CredentialVariable { pattern: "*PASS*, *_PWD, *_PASSWD", example: "PGPASSWORD, MYSQL_PWD" },
    CredentialVariable { pattern: "a part with TOKEN", example: "GH_TOKEN, POETRY_PYPI_TOKEN_X" },
    CredentialVariable { pattern: "*SECRET*, *CREDENTIAL*", example: "CLIENT_SECRET" },
    CredentialVariable { pattern: "a part KEY, APIKEY or the like", example: "STRIPE_API_KEY" },
    CredentialVariable {
        pattern: "a part AUTH, AUTHORIZATION, OAUTH",
        example: "NPM_CONFIG__AUTH",
    },
    CredentialVariable { pattern: "a part PAT, JWT, COOKIE, DSN, BEARER", example: "SENTRY_DSN" },
    CredentialVariable { pattern: "BW_SESSION, OP_SESSION*", example: "OP_SESSION_my" },
    CredentialVariable {
        pattern: "GIT_CONFIG_COUNT, _KEY_*, _VALUE_*, _PARAMETERS",
        example: "http.extraheader",
    },
    CredentialVariable {
        pattern: "addresses of agents and of the session's bus",
        example: "SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS",
    },
    CredentialVariable {
        pattern: "any name, if the value has a URL with a password",
        example: "DATABASE_URL=postgres://me:…@db/x",
    },
    CredentialVariable {
        pattern: "any name, if the value has an Authorization header or a private key",
        example: "EXTRA=Authorization: Bearer …",
    },
];

/// Full names of further variables that hold or name credentials.
const NAMES: [&str; 17] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "AWS_SHARED_CREDENTIALS_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "TWINE_USERNAME",
    "VAULT_ADDR",
    "BW_SESSION",
    "GNUPGHOME",
    "GPG_AGENT_INFO",
    "XAUTHORITY",
    "KRB5CCNAME",
    // The bus of the user's session starts programs and hands out passwords.
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_CONFIG_COUNT",
];
/// Beginnings of further names.
const BEGINNINGS: [&str; 4] =
    ["OP_SESSION", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAMETERS"];
/// Parts of a name, each by itself a sign of a credential.
const PARTS: [&str; 19] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "AUTHKEY",
    "SSHKEY",
    "AUTH",
    "OAUTH",
    "OAUTH2",
    "AUTHORIZATION",
    "BEARER",
    "PAT",
    "JWT",
    "COOKIE",
    "COOKIES",
    "DSN",
    "PWD",
];

/// Prefixes of the variables with which an agent signs in to its model.
pub(crate) const MODEL_PROVIDERS: [&str; 14] = [
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

/// Returns true if an agent signs in to its model with this variable.
pub(crate) fn is_model_key(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.to_ascii_uppercase();
    MODEL_PROVIDERS.iter().any(|provider| name.starts_with(provider))
}

/// Returns true if an agent signs in to its model with this variable, and its vendors do not include that of the variable.
pub(crate) fn is_foreign_model_key(name: &OsStr, vendors: &BTreeSet<String>) -> bool {
    let Some(upper) = name.to_str().map(str::to_ascii_uppercase) else { return false };
    !vendors.is_empty()
        && is_model_key(name)
        && !vendors.iter().any(|vendor| upper.starts_with(vendor.as_str()))
}

/// Returns true for variables that [`Env::withhold_credentials`](crate::Env::withhold_credentials) withholds for their
/// name, the keys of model providers among them.
pub fn is_credential(name: impl AsRef<OsStr>) -> bool {
    let Some(name) = name.as_ref().to_str() else { return false };
    let name = name.to_ascii_uppercase();
    if ["PWD", "OLDPWD"].contains(&name.as_str()) {
        return false;
    }
    let mut parts = name.split(['_', '-', '.']);
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ["SECRET", "CREDENTIAL"].iter().any(|word| name.contains(word))
        || parts.any(|part| {
            PARTS.contains(&part)
                || (part.contains("PASS") && !["BYPASS", "COMPASS"].contains(&part))
                // `TOKENIZERS_PARALLELISM` is about words.
                || (part.contains("TOKEN") && !part.contains("TOKENIZ"))
        })
}

/// Returns true for values that hold a password whatever their variable is called.
pub fn is_credential_value(value: impl AsRef<OsStr>) -> bool {
    let value = value.as_ref().to_string_lossy();
    let lower = value.to_ascii_lowercase();
    has_url_password(&value)
        || lower.contains("authorization:")
        || lower.contains("private key-----")
        || ["password=", "pwd=", "accountkey="].iter().any(|word| {
            // A connection string: `Server=db;User=me;Password=…`.
            lower.split(';').skip(1).any(|part| part.trim_start().starts_with(word))
        })
}

/// Returns true if the text has `scheme://user:password@`.
fn has_url_password(text: &str) -> bool {
    let after_schemes = text.match_indices("://").map(|(at, mark)| &text[at + mark.len()..]);
    after_schemes.into_iter().any(|rest| {
        // A password may contain any of these but not unescaped, so the authority ends before them.
        let end = rest.find(|c: char| c.is_whitespace() || "/?#,\"'<>".contains(c));
        let authority = &rest[..end.unwrap_or(rest.len())];
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Returns the credential files that exist now, with the condition under which each is hidden.
pub(crate) fn credential_files() -> Vec<(PathBuf, HiddenWhen)> {
    let home = home();
    let in_home = |file: &CredentialFile| home.as_ref().map(|home| home.join(file.path));
    let moved = |file: &CredentialFile| {
        let mut moved = MOVED.iter().filter_map(|(name, dir)| {
            let rest = Path::new(file.path).strip_prefix(dir).ok()?;
            let to = variable(name).map(PathBuf::from).filter(|to| to.is_absolute())?;
            Some(to.join(rest))
        });
        moved.next()
    };
    let listed = CREDENTIAL_FILES.iter().flat_map(|file| {
        in_home(file).into_iter().chain(moved(file)).map(|path| (path, file.hidden))
    });
    let named = FILE_VARIABLES.iter().filter_map(|name| variable(name));
    let named = named.flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    let named = named.filter(|path| path.is_absolute() && path.parent().is_some());
    let all = listed.chain(named.map(|path| (path, HiddenWhen::Always)));
    all.filter(|(path, hidden)| path.exists() && holds(path, *hidden)).collect()
}

/// Returns true if the file holds what it has to hold in order to be hidden.
fn holds(path: &Path, hidden: HiddenWhen) -> bool {
    let HiddenWhen::Contains(words) = hidden else { return true };
    let mut text = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(SEARCHED).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lower = text.to_ascii_lowercase();
    // One that cannot be read may hold anything.
    read.is_err() || words.iter().any(|word| lower.contains(word)) || has_url_password(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_known_by_its_name() {
        for name in [
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "CARGO_REGISTRIES_X_TOKEN",
            "POETRY_PYPI_TOKEN_PYPI",
            "token",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "TWINE_PASSWORD",
            "MY_SECRET",
            "PGPASSWORD",
            "MYSQL_PWD",
            "SSHPASS",
            "BORG_PASSPHRASE",
            "ARTIFACTORY_PASS",
            "BW_SESSION",
            "OP_SESSION_my",
            "STRIPE_API_KEY",
            "STRIPE_KEY",
            "SIGNING_KEY",
            "NPM_CONFIG__AUTH",
            "npm_config__authToken",
            "PROXY_AUTHORIZATION",
            "SENTRY_DSN",
            "AZURE_DEVOPS_EXT_PAT",
            "DBUS_SESSION_BUS_ADDRESS",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "GIT_CONFIG_VALUE_12",
            "GIT_CONFIG_PARAMETERS",
            "ANTHROPIC_API_KEY",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "TOKENIZERS_PARALLELISM",
            "CARGO_HOME",
            "HTTPS_PROXY",
            "PATTERN",
            "GIT_AUTHOR_NAME",
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_NOSYSTEM",
            "KEYBOARD_LAYOUT",
            "XDG_SESSION_ID",
            "BYPASS_CACHE",
            "PYTHONPATH",
            "PDCA_SUPERVISED",
            "SOURCE_DATE_EPOCH",
            "DATABASE_URL",
            "MAKEFLAGS",
            "CI",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn a_password_is_known_by_the_form_of_its_value() {
        for value in [
            "postgres://me:word@db/x",
            "https://me:word@example.org/simple",
            "one,https://:word@example.org",
            "https://a.example https://me:wo%40rd@b.example",
            "amqp://me:word@[::1]:5672",
            "Authorization: Bearer x",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nx",
            "Server=db;User Id=me;Password=word",
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=abc",
        ] {
            assert!(is_credential_value(value), "{value}");
        }
        for value in [
            "",
            "https://example.org:8080/a@b:c",
            "https://me@example.org/simple",
            "ssh://git@example.org:22/x",
            "http://localhost:3128",
            "https://proxy.golang.org,direct",
            "/usr/bin:/bin",
            "a:b@c",
        ] {
            assert!(!is_credential_value(value), "{value}");
        }
    }

    #[test]
    fn a_file_that_builds_read_is_hidden_only_if_it_holds_a_credential() {
        let dir = tempfile::tempdir().unwrap();
        let holds = |path: &str, text: &str| {
            let file = CREDENTIAL_FILES.iter().find(|file| file.path == path).unwrap();
            let path = dir.path().join("file");
            std::fs::write(&path, text).unwrap();
            super::holds(&path, file.hidden)
        };
        for (path, text, expected) in [
            (".npmrc", "registry=https://r.example\nsave-exact=true\n", false),
            (".npmrc", "//r.example/:_authToken=abc\n", true),
            (".npmrc", "registry=https://me:word@r.example\n", true),
            (".m2/settings.xml", "<settings><mirrors/></settings>", false),
            (".m2/settings.xml", "<server><password>x</password></server>", true),
            (".config/pip/pip.conf", "[global]\nindex-url = https://p.example/simple\n", false),
            (".config/pip/pip.conf", "[global]\nindex-url = https://me:w@p.example/\n", true),
            (".gitconfig", "[user]\n\tname = Ada\n", false),
            (".gitconfig", "[http]\n\textraHeader = \"Authorization: x\"\n", true),
            (".gradle/gradle.properties", "org.gradle.daemon=false\n", false),
            (".gradle/gradle.properties", "repoPassword=x\n", true),
            (".ssh", "", true),
        ] {
            assert_eq!(holds(path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn every_word_is_in_lower_case_and_every_path_is_below_the_home_directory() {
        for file in CREDENTIAL_FILES {
            assert!(Path::new(file.path).is_relative() && !file.path.contains(".."));
            if let HiddenWhen::Contains(words) = file.hidden {
                assert!(words.iter().all(|word| *word == word.to_ascii_lowercase()), "{file:?}");
            }
        }
    }
}
