//! Merges by git in the object store.
//!
//! `git merge-tree --write-tree --stdin -z` makes any number of merges without a working tree or an index. It
//! reads only the configuration given here, and its attributes from a tree that the caller names, never from
//! files on disk. A merge driver is a program; it runs only if the caller declared it.
//!
//! Most merges need no git: their result is [`certain`].
//!
//! A git before 2.45 accepts neither trees nor the attributes of one; [`stand_in`] and [`attributes`] ask it in
//! another way with the same result.
//!
//! One process answers a whole batch. It is not kept for the next one: git 2.47 buffers its answers until its
//! input ends, so asking, waiting and asking again would wait for ever.

pub(crate) mod answer;
mod attributes;
mod certain;
mod stand_in;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use gix::ObjectId;
use pdca_state::sha256_hex;
use thiserror::Error;

use self::{answer::MergeAnswer, attributes::AttributeFiles, certain::Certain, stand_in::StandIns};
use crate::{
    conflict::{self, Conflict},
    git::failure::StoreError,
    git::path::TreePath,
    git::store::{Store, Tooling},
};

/// The maximum number of merges per process.
const BATCH: usize = 512;

/// Reads merges from standard input, one per line.
const ARGS: [&str; 4] = ["merge-tree", "--write-tree", "--stdin", "-z"];

/// A declared merge driver, which `merge=<name>` in the attributes may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeDriver {
    /// The command, as in git's `merge.<name>.driver`.
    pub command: String,
    /// The driver for merges of common ancestors; `None` for the same.
    pub recursive: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drivers(BTreeMap<String, MergeDriver>);

/// Makes merges in a store, and counts them.
#[derive(Debug)]
pub struct MergeEngine<'a> {
    store: &'a Store,
    drivers: Drivers,
    /// The tree whose `.gitattributes` apply.
    attributes: Option<ObjectId>,
    /// The number of merges made.
    asked: u64,
    /// The number of merges made by git.
    asked_git: u64,
    /// Results that may be asked for next, by attributes and question.
    foreseen: BTreeMap<(Option<ObjectId>, Question), Merged>,
    /// The attribute files for a git that cannot read them from a tree.
    layout: AttributeFiles,
    /// Merges that need no git.
    certain: Option<Certain<'a>>,
}

/// A merge to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// Applies the difference of two trees, or of the trees of two commits, to a third: a pick.
    Trees { base: ObjectId, ours: ObjectId, theirs: ObjectId },
    /// Merges two commits from their merge base.
    Commits { ours: ObjectId, theirs: ObjectId },
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    Clean {
        tree: ObjectId,
    },
    Conflicted {
        /// The tree that git wrote, with markers in files whose lines both sides changed.
        tree: ObjectId,
        /// The files in conflict, sorted by name.
        conflicts: Vec<Conflict>,
    },
}

/// The reasons why a merge was not made. They say nothing about the two sides.
#[derive(Debug, Error)]
pub enum EngineError {
    /// Git ended without an answer, twice for the same merge.
    #[error("git did not merge {ours} and {theirs}: {said}")]
    NoAnswer { ours: ObjectId, theirs: ObjectId, said: String },
    #[error("the merge driver {name:?} cannot be declared: {why}")]
    Driver { name: String, why: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Drivers {
    /// Declares a driver.
    pub fn declare(&mut self, name: &str, driver: MergeDriver) -> Result<(), EngineError> {
        let bad = |why| Err(EngineError::Driver { name: name.to_owned(), why });
        // The name becomes part of a key of git's configuration, in which a dot separates sections.
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(legal) {
            return bad("its name may have letters, digits, `-` and `_` only");
        }
        let commands = [Some(&driver.command), driver.recursive.as_ref()];
        if commands.into_iter().flatten().any(|text| text.contains(['\n', '\0']) || text.is_empty())
        {
            return bad("its command is empty or has a line break in it");
        }
        self.0.insert(name.to_owned(), driver);
        Ok(())
    }

    /// Returns a digest for the key of a verdict, because another driver may yield another tree.
    pub fn digest(&self) -> String {
        let text: Vec<String> = self.settings();
        sha256_hex(text.join("\n").as_bytes())
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = Vec::new();
        for (name, driver) in &self.0 {
            settings.push(format!("merge.{name}.driver={}", driver.command));
            if let Some(recursive) = &driver.recursive {
                settings.push(format!("merge.{name}.recursive={recursive}"));
            }
        }
        settings
    }
}

impl<'a> MergeEngine<'a> {
    pub fn new(store: &'a Store, drivers: Drivers) -> Self {
        Self {
            store,
            drivers,
            attributes: None,
            asked: 0,
            asked_git: 0,
            foreseen: BTreeMap::new(),
            layout: AttributeFiles::default(),
            certain: None,
        }
    }

    pub fn store(&self) -> &'a Store {
        self.store
    }

    pub fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// Returns the number of merges made.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns the number of merges made by git, because their result was not certain without it.
    pub fn asked_git(&self) -> u64 {
        self.asked_git
    }

    /// Sets the tree whose `.gitattributes` apply from now on.
    pub(crate) fn set_attributes(&mut self, tree: ObjectId) {
        self.attributes = Some(tree);
    }

    /// Merges two commits from their merge base, with the attributes of the first.
    pub fn merge(&mut self, ours: ObjectId, theirs: ObjectId) -> Result<Merged, EngineError> {
        self.set_attributes(self.store.tree_of(ours)?);
        self.ask(Question::Commits { ours, theirs })
    }

    /// Applies the change of one commit to another, with the attributes of the latter.
    pub fn pick(&mut self, commit: ObjectId, onto: ObjectId) -> Result<Merged, EngineError> {
        let ours = self.store.tree_of(onto)?;
        let Some(parent) = self.store.parents_of(commit)?.first().copied() else {
            return Err(StoreError::NoSuchCommit { commit }.into());
        };
        let base = self.store.tree_of(parent)?;
        self.set_attributes(ours);
        self.ask(Question::Trees { base, ours, theirs: self.store.tree_of(commit)? })
    }

    /// Applies a change of several commits to another commit as one, with the attributes of the latter.
    ///
    /// Conflict markers carry the ids of `onto` and `head`.
    pub fn bring(
        &mut self,
        (base, head): (ObjectId, ObjectId),
        onto: ObjectId,
    ) -> Result<Merged, EngineError> {
        for commit in [base, head] {
            self.store.require_commit(commit)?;
        }
        self.set_attributes(self.store.tree_of(onto)?);
        self.ask(Question::Trees { base, ours: onto, theirs: head })
    }

    pub(crate) fn ask(&mut self, question: Question) -> Result<Merged, EngineError> {
        if let Some(merged) = self.foreseen.remove(&(self.attributes, question)) {
            return Ok(merged);
        }
        if let Some(tree) = self.certain(question) {
            return Ok(Merged::Clean { tree });
        }
        self.ask_git(&[question]).pop().expect("because there is an answer to every question")
    }

    /// Returns the tree of a merge, if it is certain without git.
    pub(crate) fn certain(&mut self, question: Question) -> Option<ObjectId> {
        let store = self.store;
        let certain = self.certain.get_or_insert_with(|| Certain::new(store));
        // If something cannot be read here, git is asked, and reports the error if there is one.
        // An unwritable object store also ends here, and git then reports it.
        let tree = certain_tree(store, certain, question).ok().flatten();
        self.asked += u64::from(tree.is_some());
        tree
    }

    /// Returns true if the result is known already.
    pub(crate) fn foresees(&self, question: Question) -> bool {
        self.foreseen.contains_key(&(self.attributes, question))
    }

    /// Makes merges that may be asked for next, and forgets earlier ones.
    pub(crate) fn foresee(&mut self, questions: &[Question]) {
        let answers = self.ask_all(questions);
        let keys = questions.iter().map(|question| (self.attributes, *question));
        // A failed one is made again when it is asked for.
        self.foreseen =
            keys.zip(answers).filter_map(|(key, answer)| Some((key, answer.ok()?))).collect();
    }

    /// Makes independent merges. A failure of one does not affect the others.
    pub(crate) fn ask_all(&mut self, questions: &[Question]) -> Vec<Result<Merged, EngineError>> {
        let certain: Vec<_> = questions.iter().map(|question| self.certain(*question)).collect();
        let open = questions.iter().zip(&certain).filter(|(_, tree)| tree.is_none());
        let open: Vec<Question> = open.map(|(question, _)| *question).collect();
        let mut from_git = self.ask_git(&open).into_iter();
        let answer = |tree: Option<ObjectId>| match tree {
            Some(tree) => Ok(Merged::Clean { tree }),
            None => from_git.next().expect("because there is an answer to every question"),
        };
        certain.into_iter().map(answer).collect()
    }

    fn ask_git(&mut self, questions: &[Question]) -> Vec<Result<Merged, EngineError>> {
        let mut answers = Vec::with_capacity(questions.len());
        while answers.len() < questions.len() {
            let left = &questions[answers.len()..];
            let batch = &left[..left.len().min(BATCH)];
            let (heard, said) = self.run(batch);
            let whole = heard.len() == batch.len();
            answers.extend(self.understand(batch, heard));
            if whole {
                continue;
            }
            // Git ended at the next merge. It may have been killed, so it is tried once more by itself.
            let stuck = &questions[answers.len()];
            let (heard, again) = self.run(std::slice::from_ref(stuck));
            if heard.is_empty() {
                let (ours, theirs) = stuck.sides();
                let said = if again.is_empty() { said } else { again };
                answers.push(Err(EngineError::NoAnswer { ours, theirs, said }));
            } else {
                answers.extend(self.understand(std::slice::from_ref(stuck), heard));
            }
        }
        answers
    }

    /// Runs git, and returns the answers that arrived and its standard error.
    fn run(&mut self, questions: &[Question]) -> (Vec<MergeAnswer>, String) {
        let count = u64::try_from(questions.len()).unwrap_or(u64::MAX);
        self.asked += count;
        self.asked_git += count;
        let said = match self.store.tooling().map(Tooling::merges_trees) {
            Ok(true) => self.run_trees(questions),
            Ok(false) => self.run_commits(questions),
            Err(error) => Err(error),
        };
        // No answer is no conflict: the caller asks once more and then reports `NoAnswer`, which blames no
        // change.
        said.unwrap_or_else(|error| (Vec::new(), pdca_state::chain(&error)))
    }

    fn run_trees(&self, questions: &[Question]) -> Result<(Vec<MergeAnswer>, String), StoreError> {
        let lines: String = questions.iter().map(Question::line).collect();
        let mut call = self.store.git()?.call(&ARGS).settings(self.drivers.settings()).stdin(lines);
        if let Some(tree) = self.attributes {
            // Git reads this variable since 2.41 (decision 020).
            call = call.env("GIT_ATTR_SOURCE", tree.to_string());
        }
        let said = call.run()?;
        Ok((answer::parse_all(&said.stdout), said.stderr))
    }

    /// Does the same as [`run_trees`](Self::run_trees) with a git that accepts neither trees nor their attributes.
    fn run_commits(
        &mut self,
        questions: &[Question],
    ) -> Result<(Vec<MergeAnswer>, String), StoreError> {
        let store = self.store;
        let stand_ins = StandIns::write(store, questions)?;
        let lines: String = (0..).zip(questions).map(|(at, q)| stand_ins.line(at, q)).collect();
        let mut call = store
            .git()?
            .call(&ARGS)
            .settings(self.drivers.settings())
            .stdin(lines)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", stand_ins.alternates());
        if let Some(tree) = self.attributes
            && let Some(dir) = self.layout.of(store, tree)?
        {
            call = call.work_tree(&dir);
        }
        let said = call.run()?;
        let answers = answer::parse_all(&said.stdout);
        let answers = (0..).zip(answers).map(|(at, answer)| stand_ins.relabel(store, at, answer));
        Ok((answers.collect::<Result<_, _>>()?, said.stderr))
    }

    fn understand(
        &self,
        questions: &[Question],
        answers: Vec<MergeAnswer>,
    ) -> Vec<Result<Merged, EngineError>> {
        let each = questions.iter().zip(answers);
        each.map(|(question, answer)| {
            if answer.clean {
                return Ok(Merged::Clean { tree: answer.tree });
            }
            let conflicts = conflict::describe(self.store, &answer, question.sides())?;
            Ok(Merged::Conflicted { tree: answer.tree, conflicts })
        })
        .collect()
    }
}

fn certain_tree(
    store: &Store,
    certain: &mut Certain<'_>,
    question: Question,
) -> Result<Option<ObjectId>, StoreError> {
    let tree = |id| store.tree_at(id);
    match question {
        Question::Trees { base, ours, theirs } => {
            certain.merge(tree(base)?, tree(ours)?, tree(theirs)?)
        }
        Question::Commits { ours, theirs } => {
            let Some(newer) = certain.newer(ours, theirs)? else { return Ok(None) };
            let older = tree(if newer == ours { theirs } else { ours })?;
            // If one commit has the other as an ancestor, that one is their merge base.
            certain.merge(older, older, tree(newer)?)
        }
    }
}

impl Question {
    fn line(&self) -> String {
        match self {
            Self::Trees { base, ours, theirs } => format!("{base} -- {ours} {theirs}\n"),
            Self::Commits { ours, theirs } => format!("{ours} {theirs}\n"),
        }
    }

    fn sides(&self) -> (ObjectId, ObjectId) {
        match *self {
            Self::Trees { ours, theirs, .. } | Self::Commits { ours, theirs } => (ours, theirs),
        }
    }
}

/// Returns true if a change of this path changes the attributes of others.
pub(crate) fn is_attributes(path: &TreePath) -> bool {
    path.file_name() == b".gitattributes"
}
