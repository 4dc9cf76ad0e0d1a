//! The git configuration of a private checkout.

use std::fmt::Write as _;

use camino::Utf8Path;
use gix::{bstr::ByteSlice as _, config::file::Metadata};

use crate::{failure::LaneError, target::Target};

/// The author of commits in a checkout that was claimed for no author, such as that of a gate. None of them lands.
const NOBODY: (&str, &str) = ("pdca lane", "lane@pdca.invalid");

/// Returns the configuration text of a private checkout, and whether it converts content.
pub(crate) fn of(target: &Target) -> gix::Result<(Vec<u8>, bool)> {
    let primary = &target.repository();
    let able = primary.filesystem_options()?;
    let sha256 = primary.object_hash() != gix::hash::Kind::Sha1;
    // Hooks and `fsmonitor` are programs that git would start. Excludes and attributes of the user
    // would make a commit depend on the person whose machine it is made on.
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {}\n\tbare = false\n\tlogallrefupdates = true\n\tfilemode = {}\n\tsymlinks = {}\n\
         \tignorecase = {}\n\tprecomposeunicode = {}\n\thooksPath = /dev/null\n\texcludesFile = /dev/null\n\
         \tattributesFile = /dev/null\n\tfsmonitor = false\n\tuntrackedCache = false\n\tsafecrlf = false\n",
        u8::from(sha256),
        able.executable_bit,
        able.symlink,
        able.ignore_case,
        able.precompose_unicode,
    );
    let local = primary.config_snapshot();
    let mut converts = false;
    for key in ["autocrlf", "eol"] {
        let value = local
            .string(format!("core.{key}").as_str())
            .map(|value| value.to_str_lossy().to_lowercase());
        if let Some(value) = value
            .filter(|value| matches!(value.as_str(), "true" | "input" | "lf" | "crlf" | "native"))
        {
            writeln!(text, "\t{key} = {value}").expect("a string takes any text");
            converts = true;
        }
    }
    // A commit must work without the user's own configuration, which a lane does not read. It is in the configuration and
    // not in variables, because those would win over an author that is named with `git -c`.
    let (name, email) = target.author().unwrap_or(NOBODY);
    writeln!(text, "[user]\n\tname = {}\n\temail = {}", quoted(name), quoted(email))
        .expect("a string takes any text");
    text.push_str("[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n");
    // The loose objects of a lane may be the only copy of a result, so nothing may prune or repack them.
    text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n");
    if sha256 {
        writeln!(text, "[extensions]\n\tobjectFormat = {}", primary.object_hash())
            .expect("a string takes any text");
    }
    Ok((text.into_bytes(), converts))
}

/// Returns the setting by which a repository finds its working tree elsewhere.
pub(crate) fn work_tree(checkout: &Utf8Path) -> Result<Vec<u8>, LaneError> {
    let odd = |letter: char| letter.is_control();
    if checkout.as_str().contains(odd) {
        return Err(LaneError::Path { path: checkout.to_owned() });
    }
    Ok(format!("[core]\n\tworktree = {}\n", quoted(checkout.as_str())).into_bytes())
}

/// Returns a value that git reads back unchanged. Control characters become spaces.
fn quoted(value: &str) -> String {
    let plain: String =
        value.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the sections of the primary that configure its remotes and rewrite their addresses, unchanged.
///
/// The raw sections are copied, because gix drops keys of a remote that it does not model. Only the repository's own
/// file is read, not the user's.
pub(crate) fn remotes(target: &Target) -> gix::Result<Vec<u8>> {
    let path = target.common_dir().join("config");
    let ours = gix::config::File::from_path_no_includes(
        path.into_std_path_buf(),
        gix::config::Source::Local,
    )?;
    let mut copy = gix::config::File::new(Metadata::from(gix::config::Source::Local));
    let repo = target.repository();
    let root = repo.workdir().unwrap_or(repo.git_dir()).to_owned();
    let root = Utf8Path::from_path(&root);
    for kind in ["remote", "url"] {
        for section in ours.sections_by_name(kind).into_iter().flatten() {
            let name = section.header().subsection_name().map(ToOwned::to_owned);
            let mut to = copy.new_section(kind, name)?;
            for (key, mut value) in section.body() {
                let is_address = kind == "remote" && key.to_lowercase().ends_with("url");
                if let Some(root) = root
                    && is_address
                    && is_relative(&value)
                {
                    // A lane lies in another directory than the primary.
                    value = root.join(value.to_str_lossy().as_ref()).into_string().into();
                }
                // A key without `=` means true; a key with `=` and no value means false.
                let implicit = section.value_implicit(&key) == Some(None);
                to.push(&key, if implicit { None } else { Some(value.as_bstr()) })?;
            }
        }
    }
    Ok(copy.to_bstring().into())
}

/// Returns true if an address is a path that depends on the location of the repository.
fn is_relative(address: &[u8]) -> bool {
    address.starts_with(b"./") || address.starts_with(b"../")
}

/// Returns settings that disable every content filter in the primary's configuration.
pub(crate) fn muted(primary: &gix::Repository) -> Vec<String> {
    let config = primary.config_snapshot();
    let filters = config.plumbing().sections_by_name("filter").into_iter().flatten();
    let names = filters.filter_map(|filter| Some(filter.header().subsection_name()?.to_string()));
    let quiet = |name: String| {
        // An empty command is none; a filter that is `required` would make git fail without it.
        ["clean=", "smudge=", "process=", "required=false"]
            .map(|setting| format!("filter.{name}.{setting}"))
    };
    names.flat_map(quiet).collect()
}
