//! Position and remedy for each way in which a selection fails.

use pdca_forge::publish::ForgeError;
use pdca_forge::select::{FlawKind, PoolError};
use pdca_workspace::drafts::SelectError;

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};

pub(super) fn explain(error: &SelectError) -> Failure {
    let usage = || Failure::usage(error.to_string());
    match error {
        SelectError::NoExport => usage().hint(
            "`pdca select --from-csv FILE`, `--from-gh OWNER/REPO`, or set `cmd` in [select]",
        ),
        SelectError::NotARepository { .. } => usage().hint("write it as `--from-gh owner/repo`"),
        SelectError::NotASeparator { .. } => usage()
            .hint("write one character, such as `--separator ';'`, or `--separator tab`"),
        SelectError::NotABatchName { .. } => usage().hint("use letters, digits, `.`, `_` and `-`"),
        SelectError::Export { path, source } => Failure::from_error(Exit::Usage, source)
            .at(FilePosition::file(&**path))
            .hint("name a CSV file that can be read; `-` is standard input"),
        SelectError::Pool { place, source } => pool(source, place),
        SelectError::WrongExport { records, place, .. } => usage()
            .at(place.clone())
            .detail(format!("it has {records} records"))
            .hint("export all issues, or the right project, and repeat; `--expect` names what must be there"),
        SelectError::NotInExport { place, .. } => usage()
            .at(place.clone())
            .hint("`--only` takes ids of records; `--dry-run` shows what there is"),
        SelectError::NoBucket { known, .. } => {
            usage().hint(format!("the buckets are {}", known.join(", ")))
        }
        SelectError::Undecided { .. } => {
            usage().hint("choose with `--limit 12`, `--only IDS` or `--bucket NAME`")
        }
        SelectError::Busy { dir } => usage()
            .at(FilePosition::file(&**dir))
            .hint("repeat the command when that is done"),
        SelectError::Write { path, source } => Failure::from_error(Exit::Unexpected, source)
            .at(FilePosition::file(&**path))
            .hint("make room and make the directory writable, then repeat the command"),
        SelectError::IndexNotUtf8 { file } => usage()
            .at(FilePosition::file(&**file))
            .hint("save it as UTF-8, or name another batch with `--batch`"),
        SelectError::Forge(error) => forge(error),
        SelectError::Command { name, source } => Failure::from_error(Exit::Unexpected, source)
            .detail(format!("while {name} ran"))
            .hint("run the command by hand; then repeat"),
        SelectError::CommandFailed { last_line, .. } => {
            let failure = Failure::unexpected(error.to_string());
            let failure = match last_line {
                Some(line) => failure.detail(line.clone()),
                None => failure,
            };
            failure.hint("run the command by hand; then repeat, which goes on from here")
        }
        SelectError::NotAnObject { place, source, .. } => {
            let failure = usage()
                .cause(source)
                .hint("print one object, such as {\"title\": …, \"body\": …, \"comments\": […]}");
            match place {
                Some(place) => failure.at(place.clone()),
                None => failure,
            }
        }
        SelectError::NotANumber { .. } => Failure::unexpected(error.to_string()),
        SelectError::ThreadTooLarge { .. } => {
            usage().hint("`--no-notes` does without, or let `notes_cmd` in [tracker] print less")
        }
        SelectError::Interrupted => interrupted(),
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
        .hint("repeat the command: it goes on from here, and what is written stays")
}

fn pool(error: &PoolError, place: &FilePosition) -> Failure {
    let plain = |error: &PoolError| Failure::from_error(Exit::Usage, error).at(place.clone());
    let list = |there: &[String]| {
        let shown: Vec<&str> = there.iter().take(30).map(String::as_str).collect();
        let more = there.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("the columns are: {}{more}", shown.join(", "))
    };
    match error {
        PoolError::Io(_) => plain(error).hint("make the file readable"),
        PoolError::Utf16 => plain(error)
            .hint("save it as UTF-8, e.g. `iconv -f UTF-16 -t UTF-8 export.csv > utf8.csv`"),
        PoolError::Empty => {
            plain(error).hint("export again: there must be a header and at least one record")
        }
        PoolError::MissingColumn { field, configured, there, nearest } => {
            let failure = match configured {
                Some(name) => Failure::usage(format!(
                    "the export has no column `{name}`, which [select] columns names for {field}"
                ))
                .at(place.clone()),
                None => plain(error),
            };
            let set = |name: &str| format!("set `columns = {{ {field} = \"{name}\" }}` in [select]");
            let hint = match nearest {
                Some(near) => format!("did you mean `{near}`? Then {}", set(near)),
                None if there.len() < 2 => {
                    format!("name its separator, such as `--separator ';'`, or {}", set("…"))
                }
                None => set("…"),
            };
            failure.detail(list(there)).hint(hint)
        }
        PoolError::UnknownColumn { there, .. } => plain(error)
            .detail(list(there))
            .hint("mend `when` of the bucket in pdca.toml; fields are id, title, status, kind, severity, component, labels, age and idle"),
        PoolError::Flawed { flaws, total } => {
            let shown = u64::try_from(flaws.len()).unwrap_or(u64::MAX);
            let hints: Vec<&str> = flaws.iter().map(|flaw| remedy(&flaw.kind)).collect();
            let mut problems: Vec<Problem> = Vec::new();
            for (index, flaw) in flaws.iter().enumerate() {
                let line = usize::try_from(flaw.line).ok();
                let problem =
                    Problem::new(flaw.kind.to_string()).at(FilePosition { line, ..place.clone() });
                // Of several flaws with one remedy the last has it.
                let is_last = hints.get(index + 1) != Some(&hints[index]);
                problems.push(if is_last { problem.hint(hints[index]) } else { problem });
            }
            if *total > shown
                && let Some(last) = problems.pop()
            {
                problems.push(last.detail(format!("and {} more of {total}", total - shown)));
            }
            Failure::of(Exit::Usage, problems)
        }
        PoolError::Remainder { first, .. } => {
            let some: Vec<String> =
                first.iter().map(|(id, line)| format!("{id} (line {line})")).collect();
            plain(error)
                .detail(format!("such as {}", some.join(", ")))
                .hint("end [select] in pdca.toml with a bucket without `when`: `[[select.bucket]]` and `name = \"rest\"`")
        }
        PoolError::Setting(problem) => Failure::usage(problem.what.clone()).hint(problem.hint),
    }
}

fn remedy(kind: &FlawKind) -> &'static str {
    match kind {
        FlawKind::Unclosed { .. } | FlawKind::TooLong => {
            "close the quote, or export again: every record after it would be lost"
        }
        FlawKind::Fields { .. } => {
            "export again with quotes around texts, or name the separator with `--separator`"
        }
        FlawKind::NotUtf8 => {
            "save it as UTF-8, e.g. `iconv -f WINDOWS-1252 -t UTF-8 export.csv > utf8.csv`"
        }
        FlawKind::NoId => "every record needs an id; is this the export of one list?",
        FlawKind::Id(_) => "name the column of the ids: `columns = { id = \"…\" }` in [select]",
        FlawKind::Duplicate { .. } => "remove one of the two, or export again without joins",
        FlawKind::Json(_) => "the command must print one JSON object per line, or one array",
    }
}

fn forge(error: &ForgeError) -> Failure {
    let failure = |exit| Failure::from_error(exit, error);
    match error {
        ForgeError::Interrupted => interrupted(),
        ForgeError::Missing { .. } => {
            failure(Exit::Usage).hint("install gh, or set `gh` in [publish]; then repeat")
        }
        ForgeError::NotLoggedIn { .. } => failure(Exit::Usage).hint("`gh auth login`, then repeat"),
        ForgeError::Passing { .. } => {
            failure(Exit::Unexpected).hint("repeat the command later: it goes on from here")
        }
        ForgeError::Refused { .. } => failure(Exit::Usage)
            .hint("check the repository's name and that you can read its issues"),
        ForgeError::Run { .. } | ForgeError::Answer { .. } | ForgeError::Unseen { .. } => {
            failure(Exit::Unexpected).hint("`gh --version` must be 2.0 or newer; then repeat")
        }
    }
}
