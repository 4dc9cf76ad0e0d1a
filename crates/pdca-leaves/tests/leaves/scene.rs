//! A workspace with one bundle that is ready for every role, a lane, a copy and a primary checkout.

use std::cell::RefCell;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_leaves::{
    Call, CallPaths, Guard, Inputs, LeafConfig, LeafError, LeafEvent, LeafOutcome, Output, Role,
    call,
};
use pdca_process::{Cancel, SandboxKind};
use pdca_state::{Artifact, Bundle};
use pdca_testkit::{TestWorkspace, fake_leaf};

/// What nobody but the builder, the publisher and the person may read.
pub(crate) const SECRET: &str = "the builder doubts the empty case";

pub(crate) struct Scene {
    pub(crate) workspace: TestWorkspace,
    pub(crate) bundle: Bundle,
    pub(crate) bundle_root: Utf8PathBuf,
    /// The user's own checkout.
    pub(crate) primary: Utf8PathBuf,
    /// The lane's checkout: where the builder works, and what is reviewed.
    pub(crate) lane: Utf8PathBuf,
    /// Where a reviewer works.
    pub(crate) copy: Utf8PathBuf,
    /// Room for the notes of a script, out of everybody's way.
    pub(crate) desk: Utf8PathBuf,
    /// The job of the call.
    pub(crate) job: Utf8PathBuf,
    pub(crate) events: RefCell<Vec<LeafEvent>>,
    pub(crate) cancel: Cancel,
}

impl Scene {
    pub(crate) fn new() -> Self {
        pdca_process::testing::use_harness();
        let workspace = TestWorkspace::new();
        let dir = workspace.brief("7", &[("Test file", "tests/empty.rs")]);
        let bundle = Bundle::at(&dir).unwrap();
        bundle.publish(Artifact::Patch, b"diff --git a/a.txt b/a.txt\n").unwrap();
        bundle.publish(Artifact::BuildNotes, SECRET.as_bytes()).unwrap();
        bundle.publish(Artifact::GatesJson, b"{\"overall\": \"pass\", \"rows\": []}").unwrap();
        bundle.publish_file("tests/empty.rs".into(), b"#[test] fn empty() {}\n").unwrap();
        bundle.publish_file("iteration-v1/build-notes.md".into(), SECRET.as_bytes()).unwrap();
        let around = workspace.around();
        let scene = Self {
            bundle_root: workspace.path().join("results"),
            primary: around.join("primary"),
            lane: around.join("work.lanes/lane-0/target"),
            copy: workspace.path().join(".pdca/jobs/7/leaf-0123456789abcdef/copy"),
            desk: around.join("desk"),
            job: workspace.path().join(".pdca/jobs/7/leaf-0123456789abcdef"),
            events: RefCell::default(),
            cancel: Cancel::new(),
            bundle,
            workspace,
        };
        for tree in [&scene.primary, &scene.lane, &scene.copy, &scene.desk] {
            fs::create_dir_all(tree).unwrap();
            fs::write(tree.join("a.txt"), "one\n").unwrap();
        }
        scene
    }

    /// A command leaf that runs a script of the scripted leaf; `keys` are further keys in TOML.
    pub(crate) fn leaf(&self, keys: &str, script: &str) -> LeafConfig {
        let path = self.desk.join("script");
        fs::write(&path, script).unwrap();
        let mut config = program(keys, &[fake_leaf().as_str(), path.as_str()]);
        // A leaf writes what is listed, and its notes are for the test.
        config.writable.push(self.desk.to_string());
        config
    }

    /// Where things are for a role.
    pub(crate) fn places(&self, role: Role) -> CallPaths<'_> {
        let worktree = if role.is_independent() { &self.copy } else { &self.lane };
        CallPaths {
            workspace: self.workspace.path(),
            bundle_root: &self.bundle_root,
            worktree: Some(worktree),
            tmp: None,
            fix: Some(&self.lane),
            primary: Some(&self.primary),
            kept: &[],
            hidden: &[],
        }
    }

    /// Calls a leaf as the driver would.
    pub(crate) fn call(&self, role: Role, config: &LeafConfig) -> Result<LeafOutcome, LeafError> {
        self.call_with(role, config, |_| ())
    }

    /// Calls a leaf after a change to the call.
    pub(crate) fn call_with<'a>(
        &'a self,
        role: Role,
        config: &'a LeafConfig,
        change: impl FnOnce(&mut Call<'a>),
    ) -> Result<LeafOutcome, LeafError> {
        // The test program is short-lived, and what the caller lends lives longer than this call.
        let inputs = Box::leak(Box::new(Inputs::gather(role, &self.bundle).unwrap()));
        let fix = self.lane.join("a.txt");
        let fingerprint = Box::leak(Box::new(move || Ok(fs::read_to_string(&fix)?)));
        let mut described = Call::new(config, inputs, &self.job, self.places(role));
        described.fingerprint = Some(fingerprint);
        change(&mut described);
        call(&described, &mut |event| self.events.borrow_mut().push(event), &self.cancel)
    }

    /// The staged view.
    pub(crate) fn view(&self) -> Utf8PathBuf {
        self.job.join("bundle")
    }

    /// What a script noted on the desk.
    pub(crate) fn desk(&self, name: &str) -> String {
        fs::read_to_string(self.desk.join(name)).unwrap()
    }

    /// How often a script that counts in `desk/count` was started.
    pub(crate) fn starts(&self) -> u32 {
        self.desk("count").trim().parse().unwrap()
    }

    /// The number of throttled waits that were announced, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u128> {
        let events = self.events.borrow();
        let waits = events.iter().filter_map(|event| match event {
            LeafEvent::Throttled { wait } => Some(wait.as_millis()),
            LeafEvent::Attempt { .. }
            | LeafEvent::Started { .. }
            | LeafEvent::Output { .. }
            | LeafEvent::Diagnosed { .. }
            | LeafEvent::NotResumed { .. }
            | LeafEvent::Ended { .. } => None,
        });
        waits.collect()
    }
}

/// A command leaf that runs any program; `keys` are further keys in TOML.
pub(crate) fn program(keys: &str, argv: &[&str]) -> LeafConfig {
    let mut leaf: LeafConfig = toml::from_str(keys).unwrap();
    leaf.mode = pdca_leaves::LeafMode::Command;
    leaf.argv = argv.iter().map(ToString::to_string).collect();
    leaf
}

/// The text of the review that an outcome holds.
pub(crate) fn review(outcome: &LeafOutcome) -> String {
    let bytes = outcome.get(Output::Artifact(Artifact::Review)).expect("there is a review");
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Whether the kernel held the leaf; that the outcome tells the truth about it is checked.
pub(crate) fn was_enforced(outcome: &LeafOutcome) -> bool {
    let Guard::Sandbox(held) = &outcome.guard else { panic!("a command ran: {outcome:?}") };
    match (pdca_process::wall_support(), held) {
        (SandboxKind::Landlock { .. }, SandboxKind::Landlock { .. })
        | (SandboxKind::Bwrap { .. }, SandboxKind::Bwrap { .. }) => true,
        (SandboxKind::NotAvailable { .. }, SandboxKind::NotAvailable { .. }) => false,
        (support, held) => panic!("the host has {support}, the outcome says {held}"),
    }
}

/// Whether the kernel here can hold a leaf at all.
pub(crate) fn can_enforce() -> bool {
    matches!(pdca_process::wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })
}

/// Everything that lies below a directory, sorted.
pub(crate) fn listing(dir: &Utf8Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in at.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path().to_owned());
            } else {
                found.push(entry.path().strip_prefix(dir).unwrap().to_string());
            }
        }
    }
    found.sort();
    found
}
