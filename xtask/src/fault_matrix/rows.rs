//! The rows of the fault matrix: each fault, and the required behaviour.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its letter and number, as in test names.
    pub(crate) number: &'static str,
    /// The fault, and the required behaviour.
    pub(crate) title: &'static str,
    /// The reason why no test carries it.
    pub(crate) without: Option<&'static str>,
    /// The part of the row that is not fully met.
    pub(crate) note: Option<&'static str>,
}

pub(super) const fn row(number: &'static str, title: &'static str) -> Row {
    Row { number, title, without: None, note: None }
}

impl Row {
    /// Marks a row that no test carries, with the reason.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "every row has its test; one that is added may come before it")
    )]
    pub(super) const fn without(self, why: &'static str) -> Self {
        Self { without: Some(why), ..self }
    }

    /// Marks a row that is not fully met.
    const fn note(self, what: &'static str) -> Self {
        Self { note: Some(what), ..self }
    }
}

/// The groups, in order.
pub(crate) const GROUPS: &[(char, &str)] = &[
    ('a', "The driver is killed at each step"),
    ('b', "Processes"),
    ('c', "Several at once"),
    ('d', "Git"),
    ('e', "Storage"),
    ('f', "Time, limits, people"),
    ('g', "Changes that do not fit together"),
    ('h', "Other machines"),
];

/// Every row, in order.
pub(crate) const ROWS: &[Row] = &[
    row("a1", "a lock was taken and no run recorded: the next start is a normal one"),
    row("a2", "a run was recorded and no checkout made: the checkout is made"),
    row("a3", "a checkout was half made: the same one is completed"),
    row("a4", "hydration was cut short: it runs again from a clean tree, and nothing before it"),
    row("a5", "a claim was recorded and nothing started: claimed again with the next generation"),
    row("a6", "a leaf was starting: it is dead before the next one starts"),
    row("a7", "a leaf was in mid-edit: what it left is kept, then the bundle is claimed again"),
    row("a8", "a leaf had committed and no artifact was written: its commits are kept"),
    row("a9", "the patch was being written: it is absent or whole"),
    row("a10", "a gate was running: its tree is dead in a second, and it runs again"),
    row("a11", "a gate had ended unheard: its verdict is used, and it does not run again"),
    row("a12", "the gates were written and the review was not: only the review is made"),
    row("a13", "the summary was being assembled: it is absent or whole"),
    row("a14", "an attempt was half archived: it is completed under the same number, over nothing"),
    row("a15", "a seal was intended and not made: sealed again with the same content"),
    row("a16", "a seal was made and not recorded: recognised"),
    row("a17", "a merge was written and no ref set: the same ids again"),
    row("a18", "the integration ref was set and not recorded: recognised"),
    row("a19", "between two sealed commits: it goes on with the next"),
    row("a20", "the combined gate was running: killed and run again"),
    row("a21", "the combined gate was green and unrecorded: its verdict is used"),
    row("a22", "git died with the ref transaction prepared: its lock is known as ours"),
    row("a23", "the target was moved and not recorded: recognised as landed"),
    row("a24", "landed and not pushed: pushed against the expected value"),
    row("a25", "pushed, and the answer lost: the remote is read"),
    row("a26", "a draft was opened, and the answer lost: found by its key"),
    row("a27", "a comment was posted, and the answer lost: found by its key"),
    row("a28", "a checkout was half removed: its removal is completed"),
    row("a29", "everything was done and the run not marked: it is marked"),
    row("a30", "killed again while recovering: the same end"),
    row("a31", "a sign-off was being captured: it is absent or whole, and asked for again"),
    row("a32", "a file for people was being written: it is made again"),
    row("b1", "a gate hangs silently: its time runs out, its tree is ended"),
    row("b2", "a gate ignores the request to end: it is killed after the grace"),
    row("b3", "a gate leaves a daemon: it is ended too"),
    row("b4", "a daemon that closed everything is ended too"),
    row("b5", "a fork bomb is capped, and its neighbours live"),
    row("b6", "output without end costs neither memory nor disk, and no verdict"),
    row("b7", "output that is no text is kept as bytes and shown escaped"),
    row("b8", "a gate ends while somebody holds its pipe: the verdict is taken at its exit"),
    row("b9", "the supervisor is killed: the driver ends the tree, and the host is at fault"),
    row("b10", "the driver is killed: everything it started dies"),
    row("b11", "a leaf asks a question: it meets the end of input"),
    row("b12", "a leaf writes the user's checkout or moves the target: refused, or found and void")
        .note("where the kernel offers no Landlock it is found afterwards, not prevented"),
    row("b13", "one interrupt: an orderly stop, and the same command goes on"),
    row("b14", "two interrupts: at once, as a crash"),
    row("b15", "two requests to end: the same"),
    row("b16", "the terminal is closed: an orderly stop"),
    row("b17", "the driver is stopped and continued: nobody else is admitted, and it goes on"),
    row("b18", "a leaf or gate is stopped: its time runs out"),
    row("b19", "a recorded number is a stranger's now: never signalled"),
    row("b20", "a reboot: all are dead"),
    row("b21", "seen from another namespace, host or user: not known, so nothing is touched"),
    row("b22", "a child cannot be started: the host or the config is at fault, and says so"),
    row("b23", "a gate changes what it judges: its verdict is void"),
    row("b24", "a gate kills its own group: only itself"),
    row("c1", "a second driver in the same checkout: refused, and told who is at work"),
    row("c2", "a second driver through a link, a mount or another worktree: refused"),
    row("c3", "a second driver in another clone: the later push loses"),
    row("c4", "the run is taken over, and the old driver wakes: nothing it writes counts"),
    row("c5", "a runner without a valid claim: ended, then interrupted"),
    row("c6", "a claim whose runner is dead: interrupted, and claimed again"),
    row("c7", "the user commits to the target while it is judged: judged again"),
    row("c8", "the user rewinds the target: blocked"),
    row("c9", "the user collects garbage while a run works: nothing is lost"),
    row("c10", "the user prunes worktrees: those of lanes stay"),
    row("c11", "the user switches branches: nothing of the run is affected"),
    row("c12", "the checkout of a running bundle goes: it stops and is blocked, and nothing else is"),
    row("c13", "the branches of a running lane go: nothing hangs on them, and it goes on").note(
        "a lane stands on a commit and on no branch, so there is nothing to block for",
    ),
    row("c14", "a commit on top of a sealed branch: reported, never merged"),
    row("c15", "a sealed branch is deleted: the seal's own ref has it"),
    row("c16", "the repository is moved: found again"),
    row("c17", "a person writes the summary while it is due: that person's text stays"),
    row("c18", "status in a tight loop: it never fails and disturbs nobody"),
    row("c19", "bundles that conflict are never in flight together"),
    row("c20", "one lane cannot be used: it says so, and the others go on"),
    row("c21", "unblocked while a driver is at work: taken from the inbox, once"),
    row("d1", "a stale lock of git in a lane: removed by whoever holds the lane"),
    row("d2", "a stale lock of git in the user's repository: reported, with its owner where known"),
    row("d3", "the same while a git process has it open: waited for a while, then reported as that"),
    row("d4", "a dirty checkout of the user: allowed, and never touched"),
    row("d5", "a dirty lane when it is claimed: kept, then cleaned"),
    row("d6", "no branch, or one without a commit: named, or refused"),
    row("d7", "a shallow or partial clone: refused with the remedy"),
    row("d8", "submodules, filters, sparse checkouts: supported or refused, never silent"),
    row("d9", "the user's repository lost what a lane borrowed: found out before it is used"),
    row("d10", "changes conflict: a task of its own, no lock held"),
    row("d11", "a resolution leaves nothing: recorded as skipped"),
    row("d12", "the same change twice: the second is already there"),
    row("d13", "renames, case and modes: the same result again"),
    row("d14", "a repository with reftables")
        .note("refused by name with the remedy, not supported"),
    row("d15", "git is upgraded between seal and merge"),
    row("d16", "hooks, signing or prompts are configured: none is run or waited for"),
    row("d17", "a merge driver of one's own: only where declared"),
    row("d18", "the base moved too far: blocked"),
    row("d19", "a leaf changed nothing: neither success nor tried again unasked"),
    row("d20", "the remote lacks the branch: refused before any work"),
    row("d21", "a push is rejected: judged again, repeated or blocked"),
    row("d22", "an object is missing or damaged: told, and nothing is deleted"),
    row("e1", "no room for a record: the step is not done, and done when there is"),
    row("e2", "no room in a lane: the lane fails, not the bundle")
        .note("shown with a limit on the size of files, not with a full disk"),
    row("e3", "no room for git's objects: no ref moves, and it is completed later")
        .note("shown with a limit on the size of files, not with a full disk"),
    row("e4", "a sync fails: the process ends"),
    row("e5", "the disk becomes read-only: refused before anything is done, or ended in words")
        .note("shown in a mount namespace, where the host lets a user have one"),
    row("e6", "a torn last record: cut, kept, and the run goes on"),
    row("e7", "a flipped bit in the middle: everything stops, nothing is cut"),
    row("e8", "the journal is deleted: its driver ends, and the next start says so"),
    row("e9", "a journal of a newer version: refused"),
    row("e10", "a loss of power: what was synced is there, the rest is a prefix")
        .note("simulated by dropping writes that were not synced"),
    row("e11", "too many open files: told, and the same works afterwards"),
    row("e12", "a very slow disk: slower, and nobody is taken for dead")
        .note("the driver stands still before a write; there is no disk here that can be slowed down"),
    row("e13", "a filesystem without locks: refused"),
    row("e14", "a file for people is wrong or gone: made again"),
    row("e15", "a kept verdict is damaged: dropped, and the gate runs again"),
    row("f1", "the clock goes a day ahead: nothing fires"),
    row("f2", "the clock goes a day back: nothing waits longer than the longest pause"),
    row("f3", "the machine sleeps: only running time counts").note(
        "the machine is not put to sleep; the clock that goes on then is hours ahead, in a time namespace",
    ),
    row("f4", "another time zone: no effect"),
    row("f5", "equal times: ordered by sequence"),
    row("f6", "the run's time is up during a gate: an orderly stop, and the same command goes on"),
    row("f7", "conflicts up to the cap: blocked once"),
    row("f8", "recoveries up to the cap: blocked"),
    row("f9", "success in one phase leaves the counters of others alone"),
    row("f10", "a leaf is throttled: asked again later, no attempt spent"),
    row("f11", "little memory at the start: fewer lanes, said aloud"),
    row("f12", "the disk runs short in the run: no new lanes, running ones finish"),
    row("f13", "room cannot be measured: said aloud"),
    row("f14", "a run is given up: lanes stopped, work kept, nothing landed"),
    row("f15", "the gates change between seal and landing: judged again"),
    row("f16", "unblocked after a manual fix: it goes on from the blocked step only"),
    row("g1", "green alone and red together: the pair is named, the earlier lands"),
    row("g2", "red on the moved base: out, and the rest lands"),
    row("g3", "the base itself is red: nobody is blamed"),
    row("g4", "a flaky red: confirmed before anybody is out"),
    row("g5", "three that do not fit: the smallest set is named"),
    row("g6", "one that mends what two break: what lands was judged"),
    row("g7", "what others depend on is out: they are held, not failed"),
    row("g8", "what landed is not what was judged: put back, blocked"),
    row("g9", "a path outside what was declared: caught"),
    row("g10", "groups of 1, 2, 3 and 8, by every way to merge"),
    row("h1", "bands run on several hosts: the bundles and seals of a local run, bit for bit"),
    row("h2", "a leaf on a host tries to write and to reach back: it has the walls of a local one, and no credential"),
    row("h3", "the link is cut around `offer`: the host is not used yet, and the same command goes on"),
    row("h4", "the link is cut around `stage`: staged again, once"),
    row("h5", "a host lacks what a band needs: refused in `offer`, with the remedy"),
    row("h6", "the link is cut around `start`: the job is found running, and not started twice"),
    row("h7", "the link is cut around `watch`: its log goes on from the last offset"),
    row("h8", "the link is cut around `collect`: fetched again, and published once"),
    row("h9", "the link is cut around `reap`: what is left goes with the run"),
    row("h10", "a driver is interrupted, and the answer to `cancel` is lost: nothing is left on the host"),
    row("h11", "a host is lost: no attempt is charged, the band goes elsewhere under a new generation"),
    row("h12", "every host is lost: said, and the same command goes on"),
    row("h13", "the driver is killed: the next one finds its bands by name, and starts nothing again"),
    row("h14", "the driver is killed while a result is published: it ends as an undisturbed one"),
    row("h15", "a host is frozen until its band went elsewhere: what it has when it thaws counts for nothing"),
    row("h16", "a runner is killed: it is started again, and what ended there does not run again"),
    row("h17", "two drivers on one host: they share its slots and wait for each other"),
    row("h18", "the next driver does not use the host: the bundle is claimed here with the next generation"),
    row("h19", "what a host keeps is damaged: it is asked for again"),
    row("h20", "the clock of a host is wrong: commits have the driver's time"),
    row("h21", "a host without the program: refused, and `pdca hosts add` mends it"),
    row("h22", "another binary, an old git, a full disk, a missing program: refused by name"),
    row("h23", "a host that is not reached: left out with a warning, refused if it was named"),
    row("h24", "a configuration that cannot travel, or a credential in it: refused before anything starts"),
    row("h25", "bands as jobs of Slurm: under their names, bounded by its licenses"),
    row("h26", "a node of Slurm dies in Do, the controller is down meanwhile: requeued, and no attempt is charged"),
    row("h27", "a driver of Slurm's jobs is interrupted: no job is left in the queue, no process on a node"),
    row("h28", "Slurm ends a job for a limit: a cap, and no red gate"),
];
