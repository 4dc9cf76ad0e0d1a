//! Each effective value with its origin, and the trust in the user's file.

use camino::Utf8PathBuf;
use serde::Serialize;

use crate::config::{ConfigError, FilePosition, FileTrust, Layer, Origin, Problem};
use crate::{OpenWorkspace, OperationError};

/// The effective configuration, or the part of it below a key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectiveConfig {
    pub workspace: String,
    pub values: Vec<EffectiveValue>,
}

/// A value and its origin.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectiveValue {
    pub key: String,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub value: toml::Value,
    pub source: Layer,
    /// The place of a value that is no default, relative to the current directory.
    #[serde(rename = "where")]
    pub place: Option<String>,
}

impl EffectiveConfig {
    /// Returns whether a value says something. For a leaf that is not configured, its mode is enough.
    pub fn is_significant(&self, value: &EffectiveValue) -> bool {
        let rest = value.key.strip_prefix("leaves.");
        let Some(role) = rest.and_then(|rest| rest.split('.').next()) else { return true };
        let table = format!("leaves.{role}");
        let is_configured =
            |other: &EffectiveValue| is_below(&other.key, &table) && other.source != Layer::Default;
        value.key == format!("{table}.mode") || self.values.iter().any(is_configured)
    }
}

/// Returns each effective value whose key begins with `prefix`, of which there must be one.
pub fn effective_config(
    open: &OpenWorkspace<'_>,
    prefix: &str,
) -> Result<EffectiveConfig, OperationError> {
    let workspace = open.workspace;
    let flat = workspace.config.flat().map_err(std::io::Error::other)?;
    let values: Vec<EffectiveValue> = flat
        .into_iter()
        .filter(|(key, _)| is_below(key, prefix))
        .map(|(key, value)| {
            let Origin { layer, place } = workspace.sources.of(&key);
            let place = place
                .map(|place| FilePosition { column: None, ..place }.show(open.environment.cwd));
            EffectiveValue { key, value, source: layer, place }
        })
        .collect();
    if values.is_empty() {
        let problem = Problem::new(format!("no key begins with `{prefix}`"));
        return Err(ConfigError::from(problem.hint("`pdca config show` lists all")).into());
    }
    Ok(EffectiveConfig { workspace: workspace.root.to_string(), values })
}

fn is_below(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|rest| {
        prefix.is_empty() || rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
    })
}

/// The user's file as it is trusted in a workspace.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustedFile {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    pub sha256: String,
    /// False in a dry run.
    pub recorded: bool,
}

/// Records that a person trusts the present text of the user's file; `None` if there is no such file.
pub fn trust_user_file(open: &OpenWorkspace<'_>) -> Result<Option<TrustedFile>, OperationError> {
    let workspace = open.workspace;
    let Some(file) = &workspace.user_file else { return Ok(None) };
    let text = fs_err::read_to_string(file)?;
    if !open.dry_run {
        FileTrust::record(&workspace.root, &text)?;
    }
    let sha256 = pdca_state::sha256_hex(text.as_bytes());
    Ok(Some(TrustedFile { file: file.clone(), sha256, recorded: !open.dry_run }))
}
