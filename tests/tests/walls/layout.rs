//! The layouts: where workspace, targets, lanes, bundles and configuration lie.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;
use pdca_testkit::{Repo, TestWorkspace, pdca_bin};

use crate::table::Wall;

/// A workspace in one of the layouts, below a home directory of its own.
#[derive(Debug)]
pub(crate) struct Place {
    /// Keeps the temporary directory.
    _kept: TestWorkspace,
    pub(crate) around: Utf8PathBuf,
    pub(crate) home: Utf8PathBuf,
    pub(crate) workspace: Utf8PathBuf,
    /// The directory that the user stands in when starting the driver.
    pub(crate) start: Utf8PathBuf,
    pub(crate) config: Utf8PathBuf,
    pub(crate) bundles: Utf8PathBuf,
    pub(crate) lanes: Utf8PathBuf,
    pub(crate) primary: Utf8PathBuf,
    pub(crate) main: Utf8PathBuf,
    pub(crate) second: Utf8PathBuf,
    /// The path by which the configuration names the target.
    pub(crate) named: Utf8PathBuf,
    /// The git directory of the repository that the workspace lies in.
    pub(crate) workspace_git: Option<Utf8PathBuf>,
}

/// How the configuration names what the layouts move.
struct Names {
    target: &'static str,
    second: &'static str,
    more: &'static str,
}

/// Files of the user's checkout that the attempts are about.
const TRACKED: [&str; 14] = [
    "kept.txt",
    "times.txt",
    "docs/deep/page.txt",
    "false.txt",
    "flag-leaf.txt",
    "flag-gate.txt",
    "mode-leaf.txt",
    "mode-gate.txt",
    "mode-reviewer.txt",
    "mode-workspace-row.txt",
    "mode-fix.txt",
    "mode-hydrate.txt",
    "greeting.txt",
    "module.txt",
];

/// Programs of the workspace that the driver starts.
const TOOLS: [&str; 9] = [
    "scan.sh",
    "notify.sh",
    "identity.sh",
    "doctor.sh",
    "select.sh",
    "notes.sh",
    "forge.sh",
    "comment.sh",
    "list.sh",
];

impl Place {
    /// Makes the layout of this name, with all leaves and gates behind this wall.
    pub(crate) fn new(layout: &str, wall: Wall) -> Self {
        let kept = TestWorkspace::new();
        let around = kept.around();
        let home = around.join("home");
        let source = home.join("src");
        let (workspace, primary, second) = match layout {
            "init" => ("app", "app", "lib"),
            "target-inside" => ("ws", "ws/app", "lib"),
            "workspace-inside" => ("app/cycle", "app", "lib"),
            "linked-worktree" => ("ws", "linked", "lib"),
            "nested-targets" => ("ws", "app", "app/vendor/lib"),
            _ => ("ws", "app", "lib"),
        };
        let (workspace, primary, second) =
            (source.join(workspace), source.join(primary), source.join(second));
        let main = if layout == "linked-worktree" { source.join("app") } else { primary.clone() };
        let repo = repository(&main);
        repository(&second);
        fs_err::create_dir_all(&workspace).expect("a directory can be made");
        let names = match layout {
            "init" => Names { target: ".", second: "../lib", more: "" },
            "target-inside" => Names { target: "app", second: "../lib", more: "" },
            // Lanes lie outside of every repository.
            "workspace-inside" => Names {
                target: "..",
                second: "../../lib",
                more: "[lanes]\nroot = \"../../cycle.lanes\"\n",
            },
            "linked-worktree" => Names { target: "../linked", second: "../lib", more: "" },
            "target-link" => Names { target: "../named", second: "../lib", more: "" },
            "nested-targets" => Names { target: "../app", second: "../app/vendor/lib", more: "" },
            "lanes-inside" => {
                Names { target: "../app", second: "../lib", more: "[lanes]\nroot = \"lanes\"\n" }
            }
            "worktree-lanes" => {
                Names { target: "../app", second: "../lib", more: "[lanes]\nkind = \"worktree\"\n" }
            }
            "bundles-outside" => Names {
                target: "../app",
                second: "../lib",
                more: "[paths]\nbundle_root = \"../bundles\"\n",
            },
            _ => Names { target: "../app", second: "../lib", more: "" },
        };
        let (mut start, mut reached) = (workspace.clone(), primary.clone());
        let link = |to: &str, name: &str| {
            fs_err::os::unix::fs::symlink(to, source.join(name)).expect("a link can be made");
            source.join(name)
        };
        match layout {
            "linked-worktree" => {
                repo.git(&["worktree", "add", "--quiet", "--detach", primary.as_str()]);
            }
            "workspace-link" => start = link("ws", "cycle"),
            "target-link" => reached = link("app", "named"),
            _ => {}
        }
        let config = match layout {
            "dot-config" => workspace.join(".config/pdca.toml"),
            _ => workspace.join("pdca.toml"),
        };
        let bundles = match layout {
            "bundles-outside" => source.join("bundles"),
            _ => workspace.join("results"),
        };
        let lanes = match layout {
            "lanes-inside" => workspace.join("lanes"),
            "workspace-inside" => source.join("cycle.lanes"),
            _ => Utf8PathBuf::from(format!("{workspace}.lanes")),
        };
        let mut place = Self {
            _kept: kept,
            around,
            home,
            start,
            config,
            bundles,
            lanes,
            primary,
            main,
            second,
            named: reached,
            workspace_git: None,
            workspace,
        };
        place.furnish(wall, layout, &names);
        place
    }

    /// Returns the directory of the attempts.
    pub(crate) fn attempts(&self) -> Utf8PathBuf {
        self.around.join("attempts")
    }

    /// Returns the driver's program, where every user can start it.
    pub(crate) fn program(&self) -> Utf8PathBuf {
        self.around.join("bin/pdca")
    }

    /// Returns the directory of the user's `PATH` that is in a cache.
    pub(crate) fn cached_bin(&self) -> Utf8PathBuf {
        self.home.join(".cache/virtualenvs/app/bin")
    }

    /// Writes configuration, programs, briefs and what the user has at home.
    fn furnish(&mut self, wall: Wall, layout: &str, names: &Names) {
        fs_err::create_dir_all(self.around.join("bin")).expect("a directory can be made");
        fs_err::copy(pdca_bin(), self.program()).expect("a program can be copied");
        let written = if layout == "init" { self.initialized() } else { String::new() };
        let config = self.configuration(wall, names, &written);
        write(&self.config, &config);
        for tool in TOOLS {
            write(&self.workspace.join("tools").join(tool), "echo v1\n");
        }
        let attempts = self.attempts();
        let builder = format!(
            "case $PDCA_ISSUE in 7) r=leaf;; 8) r=next;; 9) r=last;; 10) r=worst;; *) r=swapped;; esac\n\
             TOP=$$ sh {attempts}/run.sh $r\n\
             [ $r != leaf ] || echo left > .git/left-for-the-reviewer\n\
             echo changed > \"$r.txt\"\necho notes > \"$PDCA_BUNDLE/build-notes.md\"\nexit 0\n"
        );
        write(&self.workspace.join("leaves/builder.sh"), &builder);
        let reviewer = format!(
            "[ \"$PDCA_ISSUE\" != 7 ] || TOP=$$ sh {attempts}/run.sh reviewer\n\
             printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | fine |\\n' > \"$PDCA_OUTPUT\"\n"
        );
        write(&self.workspace.join("leaves/reviewer.sh"), &reviewer);
        write(&self.workspace.join("leaves/review.md"), "review it\n");
        write(&self.lanes.join("lane-7/app/theirs.txt"), "theirs\n");
        write(&self.lanes.join("lane-7/app/.git/hooks/pre-commit"), "theirs\n");
        self.belongings();
        self.settle(layout);
        for id in [6, 7, 8, 9, 10, 11] {
            let brief = format!(
                "# Brief\n\n- **Slug:** slug-{id}\n- **Defect (Goal):** it is wrong\n- **Success criterion:** it is right\n\
                 - **Repo + branch target:** team/app @ main\n"
            );
            write(&self.bundles.join(format!("issue_{id}/brief.md")), &brief);
        }
    }

    /// Has `pdca init` write its configuration, and returns it.
    fn initialized(&self) -> String {
        let ran = Tool::new(pdca_bin().as_std_path())
            .cwd(&self.workspace)
            .args(["init", "--yes", "--builder", "none", "--reviewer", "none"])
            .env("HOME", self.home.as_str())
            .run()
            .expect("pdca can be run");
        assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
        fs_err::read_to_string(&self.config).expect("init writes the configuration")
    }

    /// Returns the configuration. What `pdca init` wrote is kept, with its target named for the briefs.
    fn configuration(&self, wall: Wall, names: &Names, written: &str) -> String {
        let wall = wall.name();
        let Names { target, second, more } = names;
        let attempts = self.attempts();
        let row = |id: &str, tier: &str, rest: &str| {
            format!(
                "[[gates.checks]]\nid = \"{id}\"\ntier = \"{tier}\"\nscope = \"bundle\"\n{rest}\n"
            )
        };
        let only = |id: u32, role: &str| {
            format!("cmd = '[ \"$PDCA_ISSUE\" != {id} ] || TOP=$$ sh {attempts}/run.sh {role}'\n")
        };
        let rows = [
            row("T1-hostile", "T1", &format!("{}identity = [\"sh tools/identity.sh\"]\n", only(7, "gate"))),
            row("T2-next", "T2", &only(7, "row")),
            row("T3-workspace", "T3", &format!("{}cwd = \"workspace\"\n", only(8, "workspace-row"))),
            row("T3-scan", "T3", "cmd = 'sh \"$PDCA_WORKSPACE/tools/scan.sh\"'\n"),
            row(
                "T4-fixed",
                "T4",
                &format!(
                    "cmd = '[ \"$PDCA_ISSUE\" != 7 ]'\nfix = 'TOP=$$ sh {attempts}/run.sh fix'\ngating = false\n"
                ),
            ),
        ]
        .concat();
        let leaf = |role: &str, more: &str| {
            format!(
                "[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\"]\n\
                 sandbox = \"{wall}\"\n{more}\n"
            )
        };
        let targets = format!(
            "[[targets]]\npath = \"{target}\"\nname = \"app\"\nrepo = \"team/app\"\nbranch = \"main\"\n\
             [[targets]]\npath = \"{second}\"\nname = \"lib\"\nrepo = \"team/lib\"\nbranch = \"main\"\n"
        );
        let sections = [
            ("[driver]\n", "min_free_gb = 0\nlane_memory_mb = 0\ngate_base = \"off\"\n".to_owned()),
            ("[lanes.hydrate]\n", format!("install = 'TOP=$$ sh {attempts}/run.sh hydrate'\n")),
            ("[tracker]\n", "notes_cmd = \"sh tools/notes.sh\"\n".to_owned()),
            ("[select]\n", "cmd = \"sh tools/select.sh\"\n".to_owned()),
            (
                "[publish]\n",
                "forge = \"command\"\nforge_cmd = \"sh tools/forge.sh\"\ncomments = \"command\"\n\
                 comment_cmd = \"sh tools/comment.sh\"\nlist_cmd = \"sh tools/list.sh\"\n"
                    .to_owned(),
            ),
            ("[gates]\n", format!("sandbox = \"{wall}\"\n")),
        ];
        let mut text = written.to_owned();
        if text.is_empty() {
            text = format!("{more}{targets}");
            text.extend(sections.iter().map(|(head, _)| *head));
        } else {
            assert!(
                text.contains("\n[[targets]]\npath = \".\"\n"),
                "init names its target: {text}"
            );
            text = text.replace("\n[[targets]]\npath = \".\"\n", &format!("\n{targets}"));
        }
        for (head, keys) in sections {
            let at = format!("\n{head}");
            assert!(text.contains(&at), "{head} is in what init writes");
            text = text.replacen(&at, &format!("{at}{keys}"), 1);
        }
        text.push_str("[notify]\ncmd = \"sh tools/notify.sh\"\n");
        text.push_str("[[doctor.checks]]\nid = \"mine\"\ncmd = \"sh tools/doctor.sh\"\n");
        text.push_str(&rows);
        text.push_str(&leaf("builder", "prompt_via = \"none\"\n"));
        text.push_str(&leaf("reviewer", "prompt_file = \"leaves/review.md\"\n"));
        text
    }

    /// Puts keys, logins and other directories into the home.
    fn belongings(&self) {
        let files = [
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".azure/msal_token_cache.json",
            ".config/gcloud/credentials.db",
            ".kube/config",
            ".config/containers/auth.json",
            ".netrc",
            ".git-credentials",
            ".config/git/credentials",
            ".config/gh/hosts.yml",
            ".config/glab-cli/config.yml",
            ".gnupg/key",
            ".cargo/credentials.toml",
            ".cargo/credentials",
            ".gem/credentials",
            ".terraform.d/credentials.tfrc.json",
            ".config/rclone/rclone.conf",
            ".pgpass",
            ".vault-token",
            ".config/sops/age/keys.txt",
            ".password-store/bank.gpg",
            ".local/share/keyrings/login.keyring",
            ".mozilla/firefox/x.default/logins.json",
            ".config/google-chrome/Default/Login Data",
            ".bashrc",
            "open-in-the-shell",
            "other/mine.txt",
        ];
        for file in files {
            write(&self.home.join(file), "s3cr3t\n");
        }
        let forms = [
            (".docker/config.json", "{\"auths\":{\"r.example.org\":{\"auth\":\"s3cr3t\"}}}\n"),
            (".npmrc", "//registry.example.org/:_authToken=s3cr3t\n"),
            (".yarnrc.yml", "npmAuthToken: s3cr3t\n"),
            (".pypirc", "[pypi]\nusername = me\npassword = s3cr3t\n"),
            (
                ".m2/settings.xml",
                "<settings><servers><server><id>x</id><password>s3cr3t</password></server></servers></settings>\n",
            ),
            (".gradle/gradle.properties", "repoUser=me\nrepoPassword=s3cr3t\n"),
            (".my.cnf", "[client]\npassword=s3cr3t\n"),
            (".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n"),
            (".config/pdca/config.toml", "[project]\nauthor = \"Ada\"\n"),
        ];
        for (file, text) in forms {
            write(&self.home.join(file), text);
        }
        fs_err::create_dir_all(self.cached_bin()).expect("a directory can be made");
    }

    /// Commits what the user would have committed, and remembers which repository is around the workspace.
    fn settle(&mut self, layout: &str) {
        let exclude = |repo: &Repo, names: &str| {
            repo.write(".git/info/exclude", names);
        };
        match layout {
            "init" => {
                let repo = Repo::existing(&self.primary);
                exclude(&repo, "results/\n");
                repo.commit("a workspace");
                self.workspace_git = Some(self.main.join(".git"));
            }
            "workspace-inside" => {
                exclude(&Repo::existing(&self.primary), "cycle/\n");
                self.workspace_git = Some(self.main.join(".git"));
            }
            "nested-targets" => exclude(&Repo::existing(&self.primary), "vendor/\n"),
            "workspace-repository" => {
                let repo = Repo::at(&self.workspace);
                exclude(&repo, ".pdca/\nresults/\n");
                repo.commit("a workspace");
                self.workspace_git = Some(self.workspace.join(".git"));
            }
            _ => {}
        }
    }
}

/// Makes the repository of a target.
fn repository(path: &Utf8Path) -> Repo {
    let repo = Repo::at(path);
    repo.write(".gitignore", "*.ign\ncache/\n");
    repo.commit("first");
    for file in TRACKED {
        let text = if file == "kept.txt" { "kept\n".to_owned() } else { format!("{file}\n") };
        repo.write(file, text);
    }
    repo.commit("second");
    repo
}

fn write(path: &Utf8Path, text: &str) {
    fs_err::create_dir_all(path.parent().expect("a file lies in a directory"))
        .expect("a directory can be made");
    fs_err::write(path, text).expect("a file can be written");
}
