# pdca.toml: what this workspace does.
#
# `pdca config show` says which value is in force and where it came from; an unknown key is an
# error. A line such as `#lanes = 1` shows a key with its default, or an example of it.
# Later layers win: defaults, ~/.config/pdca/config.toml, this file, PDCA_* variables, flags.

[project]
# The name shown to people; the directory's name if unset.
name = {name}
# The branch changes are based on where neither the brief nor the target names one; the
# target's current branch if unset.
#default_branch = "main"
# Who signs off where `--by` is not given. PDCA_AUTHOR wins over it.
#author = "Your Name"

[paths]
# One directory per issue, `issue_<id>/`. PDCA_BUNDLE_ROOT wins over it.
#bundle_root = "results"
# The Act log.
#process_dir = "process"
# brief.md.tpl, which `pdca new` fills.
#templates_dir = "templates"

[driver]
# How many bundles may be in flight at once, each in a private checkout, or "auto" for what processors,
# memory and disk allow. PDCA_LANES and --lanes win over it.
#lanes = 1
# How long drivers may be at work on one run before it is stopped in an orderly way.
#max_duration_secs = 14400
# How many leaves one run may call; no limit if unset.
#max_leaf_calls = 200
# How many dollars the leaves of one run, and those for one issue, may cost.
#max_cost = 20
#max_cost_per_issue = 2.50
# How often a builder may fail on a bundle in a row before a batch leaves it alone; `pdca run <id>` tries again. 0 is no limit.
#max_attempts = 3
# How often in a row a red gate or a FAIL of the reviewer goes back to the builder without a person; 0 is never.
#max_auto_iters = 2
# Where the builder of a further attempt starts: "last", with its last patch applied, or "base".
#iterate_from = "last"
# Names of files and directories (with a `/`) that are left out of a change unless git has them, the builder adds them to git
# or `Touches` names them. The default is a list of what tools usually leave.
#products = ["__pycache__/", "*.py[co]", "node_modules/", "target/", ".aider.*.history*"]
# How much has to stay free on the disk for another bundle to start, in GiB; 0 is not looked at.
#min_free_gb = 1
# How much memory a lane is reckoned with, in MiB: with less there are fewer lanes. 0 is not looked at.
#lane_memory_mb = 256
# How much memory a leaf or a gate may have together with all it starts, in MiB; no cap if unset.
#leaf_memory_mb = 4096
# When the branch that bundles are built on is gated by itself: "before" anything starts, "beside" the
# first builders, or "off". A red one stops the run before anybody is paid.
#gate_base = "before"
# A brief whose `Disposition hint` contains one of these words (in any case) needs no builder and
# no reviewer: it goes straight to sign-off.
#close_dispositions = ["likely-close", "wontfix", "by-design", "duplicate", "not-reproducible", "manual-verification", "upstream", "external"]

[schedule]
# What a brief without `Touches` claims: "free" nothing, "exclusive" the whole tree: it runs alone.
#untouched = "free"
# What becomes of a change outside its `Touches`: a row that warns, one that blocks ("fail"), or "off".
#drift = "warn"
# How long a bundle is taken to last when the order is decided: "unit" each as long as any other,
# "history" as its last attempt here, else as its `Difficulty` says ("40 min").
#durations = "unit"
# How far what a bundle depends on must be before it may start: "accepted" (signed off), "landed" (in the target
# branch) or "built" (green, and not signed off yet).
#dependants = "accepted"
# How far a result must be before a bundle that conflicts or overlaps with it may start: "built", "accepted" or "landed".
#rivals = "built"

[lanes]
# The private checkouts work is done in; beside the workspace if unset.
#root = {lanes}
# What a lane is: "reference", a repository of its own that borrows the target's objects, or
# "worktree", a linked worktree, which is registered in the target's repository.
#kind = "reference"
# What a reset between bundles leaves beside the commit: "clean" the caches below, "tracked" everything
# that git ignores, "pristine" nothing.
#reset = "clean"
# Directories that stay from one change to the next, so that builds are warm. What one change leaves in
# them, the next one finds: name only what the tools themselves keep right.
{cache}
# Each lane in use has ten ports of this range, from PDCA_PORT_BASE on.
#ports = "20000-29999"
# `pdca sweep` removes lanes, oldest first, until this many GiB are free …
#min_free_gb = 10
# … and those that nobody used for this many days.
#max_age_days = 30

# What a lane needs beyond what git tracks. Paths are relative to the root of the target and name
# files that git ignores. A `.worktreeinclude` in the target's checkout adds to `copy`, by patterns.
[lanes.hydrate]
# Copied from your checkout of the target into every lane.
#copy = []
# Linked: files, and directories that nobody can write.
#symlink = []
# Build caches, copied where a lane has none yet: by reflink where the filesystem can.
#seed = []
# Run once in a new lane, and again when `key` changes; then `verify` must succeed. A text for
# `sh -c`, or a list of a program and its arguments.
#install = "npm ci"
#verify = "npm ls --silent"
# Files whose change makes a lane hydrate again; well-known lock files if unset.
#key = ["package-lock.json"]
# How long `install` and `verify` may take, each.
#timeout_secs = 3600

[integrate]
# What moves when accepted changes are green together: "branch" leaves pdca/staging/<branch> for you
# to merge, "target" moves the branch itself where no checkout has it, "push" pushes.
#land = "branch"
# "rebase-ff" makes each commit again on the tip; "merge-commit" makes one merge per bundle.
#strategy = "rebase-ff"
# How many changes are gated together at most.
#max_batch = 64
# How many commits the branch may gain meanwhile before you are asked.
#max_base_drift_commits = 50
# In how many checkouts combinations are gated at once, or "auto".
#lanes = 1
# Where "push" pushes to.
#remote = "origin"
# Whether "branch" and "target" ask the remote of the branch first, and fold onto what it has.
#fetch = true
# The seals of what "push" landed go to the remote too, so that anybody can verify.
#push_seals = true
# How many seconds after a failed attempt to resolve a conflict the next may be; it doubles.
#resolve_pause_secs = 5
# Lines for the trailers of every commit that lands; {id} is the bundle.
#trailers = ["Fixes: #{id}"]
# A Signed-off-by of the person who accepted.
#signed_off_by = false
# What becomes of a change that is red or conflicts: "ask" holds it until you decide (`pdca reopen`),
# "auto" sends it back to Do by itself, twice at most.
#return_culprits = "ask"
# What of a landing is gated: "tip" what the branch comes to, "each" every commit that lands.
#gate = "tip"
# How old a verdict may be that is used in place of a gate run, such as "7d"; any age if unset.
#verdict_max_age = "7d"

[publish]
# How pull requests are opened: "gh", "command" by `forge_cmd`, or "none": only the branch is pushed.
#forge = "gh"
# Merge what is marked as ready, once its checks passed, with "merge", "squash" or "rebase".
#merge = false
#merge_method = "merge"
# `pdca publish` pushes accepted changes there, each to a branch of its own: {id}, {slug}, {run}.
#remote = "origin"
#branch = "pdca/{id}"
#feature_branch = "new/{id}-{slug}"         # for changes that add something
# A line for the end of commit messages and pull requests.
#issue_trailer = "Fixes #{id}"
# The program that opens draft pull requests, in the `repo` of the target.
#gh = "gh"
# Where people are told: "gh" on the forge's own issues (if unset), "command" by the two commands below,
# "off" nowhere.
#comments = "command"
# Posts its standard input to $PDCA_ISSUE, and prints the comments there are. Exit code 75: try again.
#comment_cmd = "tracker comment \"$PDCA_ISSUE\""
#list_cmd = "tracker show \"$PDCA_ISSUE\""
# How long one call of such a program may take.
#timeout_secs = 60

[tracker]
# The address of an issue, shown by `pdca status <id>`.
#issue_url_pattern = "https://github.com/owner/repo/issues/{id}"
# Prints the thread of $PDCA_ISSUE as a JSON object, which `pdca select` keeps as notes.json of a draft.
#notes_cmd = "tracker show --json \"$PDCA_ISSUE\""

# `pdca select` turns an export of the tracker into a batch of draft briefs.
[select]
# Prints the issues as JSON, one object per line, where neither --from-csv nor --from-gh is given.
#cmd = "tracker list --json"
#timeout_secs = 300
# The columns, where they are not the usual ones: id, title, status, kind, severity, component, labels, created,
# updated, description.
#columns = { id = "Ticket", title = "Headline" }
# The order in dates such as 03/04/2026, "dmy" or "mdy"; the severities, the gravest first.
#dates = "dmy"
#severities = ["Blocker", "Major", "Minor"]
# The first bucket that matches a record gets it, and every record must be in one. `when` has values, lists,
# { regex = "…" }, and limits for `age` and `idle` such as "> 90d".
#[[select.bucket]]
#name = "stale"
#when = { status = ["new", "open"], idle = "> 1y" }
#disposition = "likely-close"               # what the draft suggests
#[[select.bucket]]
#name = "rest"
#drop = "not in this batch"                 # its records are dropped, for this reason

# The repositories under change. Your own checkout is read and never written: work happens in a
# private clone of it. `repo` is how briefs name it in `Repo + branch target`.
{targets}
# The gates: deterministic commands, told apart by exit status alone: 0 pass, 77 unverifiable,
# anything else fail. They run over each patch, and in CI by `pdca gates --working-tree`.
# With no row at all every gate element passes as a stub, and every report says so.
[gates]
# Where commands run: "worktree" (the checkout with the patch), "workspace" (this directory), or
# "auto": the checkout where there is a target, this directory where there is none.
#cwd = "auto"
# Whether rows may run at the same time.
#parallel = false
# How long a row may take.
#default_timeout_secs = 3600
# What the `subcmd` of a row is handed to.
#runner = "cargo xtask"
# Rows run what the builder wrote: where the kernel can, it keeps them from writing the bundles, the
# lanes and your own checkout. "require" insists, "off" does not ask.
#sandbox = "auto"
# What confined gates may write beyond the checkout, temporary files and their own home: paths relative to the workspace,
# absolute, or below `~`, that exist. `refs/heads/verify-*` are refs of the target that a row without a sandbox makes.
#may_write = []
# Gates inherit nothing of your environment but PATH. Of your variables they get those named here (proxies, CC,
# JAVA_HOME …), and of `env` the values that are written there.
#env_pass = []
#env = { LC_ALL = "C.UTF-8" }
# Gates have a home directory of their own, with your tools and without caches, which builders write. Those named
# here they can read, and builders cannot write them.
#caches = ["~/.cargo/registry"]
# What the red of a row means that may be flaky: "confirm" asks again; "quarantine" does not let a row
# block that is known to be flaky, and says so; "fail" believes it at once.
#flaky = "confirm"
{gates}
# All a row may say. `tier` is the element of the check matrix it fills: C1 … C5, T1 … T5, V.
#[[gates.checks]]
#id = "C4-verify"
#tier = "C4"
#label = "the bundle's test is red without the change and green with it"
#cmd = "./scripts/verify.sh"                # for `sh -c`; or argv = ["program", "argument"]
#scope = "bundle"                           # about one bundle; "repo" rows run in CI too
#gating = true                              # red blocks
#timeout_secs = 600
#when = { field = "Surfaces", substring = "api" }   # only where the brief says so
#fix = "./scripts/format.sh"                # on red: run this once, then the row again
#confirm = false                            # on red: once more; green then is flaky, and recorded
#at_publish = false                         # publish runs it again, so it may defer to that
#needs_lane = false                         # uses the private names of a lane
#identity = ["rustc -V"]                    # another answer means that earlier verdicts do not count
#flaky = "confirm"                          # as in [gates], for this row
#junit = "target/junit.xml"                 # names of failing tests are read from this report
#shares = false                             # later rows see the files it leaves in the checkout: build products
#may_write = []                             # as in [gates], for this row alone
#sandbox = "auto"                           # as in [gates], for this row
#env = { LC_ALL = "C.UTF-8" }               # as in [gates], for this row
#needs = []                                 # of PDCA_ISSUE, PDCA_BUNDLE, PDCA_BASE …; with none, Check's verdict counts at landing
#reads_primary = false                      # it may read the target's own checkout, and its verdict says so
#parallel = false                           # as in [gates], for this row; such rows run at once if they say shares
#cwd = "workspace"                          # as in [gates], for this row

# The leaves: outside commands that fill one artifact each. Without one a stub stands in, so
# everything here works with no model; PDCA_LEAVES_MODE=stub forces that.
# Roles: {roles}, and any number of [[leaves.advisory]] and [[leaves.plan_advisory]].
{leaves}
# All a leaf may say, and its defaults.
#[leaves]
#transcript_kb = 1024                       # how much of what each call prints is kept in the bundle

#[leaves.reviewer]
#mode = "command"                           # "stub" starts nothing
#interactive = false                        # hands over the terminal
#argv = ["./leaves/review.sh", "{inputs}", "{worktree}"]
#prompt_file = "leaves/review.md"           # or prompt = "…"; the built-in one if unset
#prompt_via = "stdin"                       # "file" ({prompt_file}) or "none"
#timeout_secs = 3600                        # an attempt
#stall_secs = 900                           # without output or a changed file; unset: for ever
#retries = 0
#throttled = { exit_codes = [75], pattern = "rate limit", backoff_secs = 30, max_wait_secs = 3600 }
#sandbox = "auto"                           # "require", "landlock", "bwrap" or "off": what confines it
#network = "on"                             # "off" needs sandbox = "bwrap"
#writable = ["/var/cache/tool"]             # places it may write besides its own
#env = { TOOL_HOME = "/opt/tool" }
#env_pass = ["NPM_TOKEN"]                   # credentials it gets all the same
#price = { input = 1.25, output = 10 }      # dollars for a million tokens, where the agent tells no cost
#cost_per_call = 0.30                       # dollars for a call, where it tells no tokens either
#family = "vendor"                          # these four are handed on as {family}, {model}, …
#model = "large"
#effort = "high"
#agent = "reviewer"                         # "claude", "codex", "gemini", "opencode" or "aider" alone is a whole leaf
#model_args = ["--model", "{model}"]        # follows on argv where there is a model
#effort_args = ["--effort", "{effort}"]     # the same for an effort
#protocol = "codex"                         # what it prints: "claude", "codex", "gemini", "opencode" are read; default: "text"
# Another builder for some briefs, or from some attempt on; what it does not say is as in [leaves.builder]. The first that
# applies is called.
#[[leaves.builder_variant]]
#when = "Difficulty: high"                  # a field of the brief and what it contains
#attempt = 2                                # from the second attempt on
#agent = "claude"
#model = "opus"
#resume = false                             # true: go on in the last session, wherever that was
#resume_args = ["--resume", "{session}"]

#[[leaves.advisory]]
#id = "security"
#role = "find the input that breaks it"     # what it looks for, for its prompt
#when = { field = "Difficulty", substring = ["high", "hard"] }   # only for such briefs
#mode = "stub"

# Who judges a brief once it is complete, before anything is built from it; otherwise like an adviser.
#[[leaves.plan_advisory]]
#id = "scope"
#mode = "stub"
