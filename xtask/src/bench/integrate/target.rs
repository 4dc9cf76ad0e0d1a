//! A generated large repository with sealed changes.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use pdca_integrate::{Acceptance, Fence, ObjectId, RefNamespace, ReflogEntry, Sealed, Store, seal};

use crate::{Stopped, program};

/// The number of files per directory.
const PER_DIRECTORY: usize = 100;

pub(in crate::bench) struct BenchTarget {
    pub(in crate::bench) store: Store,
    pub(in crate::bench) base: ObjectId,
    pub(in crate::bench) sealed: Vec<Sealed>,
    /// The time to seal one change.
    pub(in crate::bench) seal_time: Duration,
}

impl BenchTarget {
    /// Makes a repository of so many files, and so many changes of three files each.
    pub(in crate::bench) fn new(
        home: &Utf8Path,
        files: usize,
        changes: usize,
    ) -> Result<Self, Stopped> {
        let repo = home.join("target.git");
        program::output("git", &["init", "--quiet", "--bare", repo.as_str()], home)?;
        import(&repo, &home.join("stream"), &history(files, changes))?;
        let store = Store::open(&repo, &home.join("room"))?;
        let base = store.commit_at("refs/heads/main")?.ok_or("there is no main")?;
        let run: RefNamespace = "bench".parse()?;
        let fence = Fence::take(&store, &run, 0)?;
        let start = Instant::now();
        let mut sealed = Vec::new();
        for number in 0..changes {
            let head = store.commit_at(&format!("refs/heads/c{number}"))?.ok_or("no change")?;
            let patch = patch(number);
            let digest = pdca_state::sha256_hex(patch.as_bytes());
            let accepted = Acceptance {
                run: &run,
                id: &format!("c{number}").parse()?,
                base,
                head,
                patch: patch.as_bytes(),
                reviewed_head: head,
                reviewed_patch: &digest,
                gate_digest: "none",
                completion_order: u64::try_from(number)?,
                tip: None,
                stands_on: &[],
                by: None,
                trailers: &[],
                brief: None,
                overrides: &[],
            };
            let log = ReflogEntry { message: "bench", seconds: 0 };
            sealed.push(seal(&store, &fence, &accepted, log)?.0);
        }
        let seal_time = start.elapsed() / u32::try_from(changes.max(1))?;
        Ok(Self { store, base, sealed, seal_time })
    }

    /// Lands the first changes on `main`: one commit each, which names the seal.
    pub(in crate::bench) fn land(&self, home: &Utf8Path, count: usize) -> Result<(), Stopped> {
        let mut parts = Vec::new();
        for sealed in self.sealed.iter().take(count) {
            let text = format!("{}\n\nPdca-Sealed: {0} {}\n", sealed.id(), sealed.digest());
            let from = if parts.is_empty() { "from refs/heads/main^0\n" } else { "" };
            parts.push(format!("commit refs/heads/main\n{WHO}\n{}{from}\n", data(&text)));
        }
        parts.push("done\n".to_owned());
        import(self.store.path(), &home.join("landings"), &parts.concat())
    }
}

/// Returns the `patch.diff` of a change, of a file that no other change has.
pub(in crate::bench) fn patch(number: usize) -> String {
    format!("--- a/part_{number}.rs\n+++ b/part_{number}.rs\n@@ -1 +1 @@\n-0\n+{number}\n")
}

const WHO: &str = "committer Bench <bench@localhost> 1000000000 +0000";

fn import(repo: &Utf8Path, stream: &Utf8Path, text: &str) -> Result<(), Stopped> {
    fs_err::write(stream, text)?;
    let status = program::command("git", &["fast-import", "--quiet"], repo)
        .stdin(Stdio::from(fs_err::File::open(stream)?.into_parts().0))
        .status()?;
    if status.success() { Ok(()) } else { Err("git fast-import failed".into()) }
}

fn name(file: usize) -> String {
    format!("src/d{:03}/f{:03}.txt", file / PER_DIRECTORY, file % PER_DIRECTORY)
}

/// Returns a file of thirty lines, one of them replaced by the change.
fn content(file: usize, change: Option<usize>) -> String {
    let mut text = String::new();
    for line in 0..30 {
        match change {
            Some(change) if change % 30 == line => {
                writeln!(text, "line {line} of {file}, changed by {change}")
            }
            Some(_) | None => writeln!(text, "line {line} of {file}"),
        }
        .expect("because a string takes any text");
    }
    text
}

fn data(text: &str) -> String {
    format!("data {}\n{text}\n", text.len())
}

/// Returns the input of `git fast-import`.
fn history(files: usize, changes: usize) -> String {
    let who = WHO;
    let file = |number: usize, change| {
        format!("M 100644 inline {}\n{}", name(number), data(&content(number, change)))
    };
    let mut parts = vec![format!("commit refs/heads/main\nmark :1\n{who}\n{}", data("base"))];
    parts.extend((0..files).map(|number| file(number, None)));
    for change in 0..changes {
        let message = data(&format!("change {change}"));
        parts.push(format!("\ncommit refs/heads/c{change}\n{who}\n{message}from :1\n"));
        let places = (0..3).map(|part| (change * 7919 + part * 101) % files.max(1));
        parts.extend(places.map(|place| file(place, Some(change))));
    }
    parts.push("\ndone\n".to_owned());
    parts.concat()
}
