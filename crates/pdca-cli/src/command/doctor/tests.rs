//! Git's lock files in the user's repository and the independence of the reviewer, as `doctor` reports them.

use crate::testing::Desk;

fn desk() -> (Desk, camino::Utf8PathBuf) {
    let desk = Desk::new();
    let repo = desk.workspace.target("app");
    repo.write("a", "a\n");
    repo.commit("first");
    desk.workspace.config("[[targets]]\nname = \"app\"\npath = \"../app\"\nbranch = \"main\"\n");
    let git = repo.path().canonicalize_utf8().unwrap().join(".git");
    (desk, git)
}

#[test]
fn d2_a_stale_lock_of_git_in_the_users_repository_is_told_with_its_owner_and_stays() {
    let (desk, git) = desk();
    for name in ["packed-refs.lock", "refs/heads/main.lock"] {
        fs_err::write(git.join(name), "").unwrap();
    }
    let told = desk.run(&["doctor"]);
    let user = rustix::process::geteuid().as_raw();
    for name in ["packed-refs.lock", "refs/heads/main.lock"] {
        let lock = format!(".git/{name} of user {user} is there");
        assert!(told.out.contains(&lock), "{told}");
        assert!(git.join(name).exists());
    }
    assert!(told.out.contains("no process that can be seen has it open"), "{told}");
}

#[test]
fn d3_a_lock_of_git_that_a_process_has_open_is_told_with_that_process() {
    let (desk, git) = desk();
    let held = fs_err::File::create(git.join("packed-refs.lock")).unwrap();
    let told = desk.run(&["doctor"]);
    let me = format!("process {} (", std::process::id());
    assert!(told.out.contains(&me) && told.out.contains("a git command is at work"), "{told}");
    drop(held);
}

#[test]
fn a_variable_that_no_run_can_start_with_is_a_row_and_hides_no_other() {
    let told = Desk::new().with_env("PDCA_LEAVES_MODE", "what").run(&["doctor"]);
    assert_eq!(told.exit, crate::exit::Exit::Usage, "{told}");
    assert!(told.out.contains("config             PDCA_LEAVES_MODE is `what`"), "{told}");
    assert!(told.out.contains("  sandbox "), "{told}");
}

#[test]
fn a_reviewer_of_the_builders_family_is_told_and_breaks_nothing() {
    let desk = Desk::new();
    let leaf = |role: &str, family: &str| {
        format!("[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\"]\nfamily = \"{family}\"\n")
    };
    let said = |reviewer: &str| {
        desk.workspace.config(&(leaf("builder", "acme") + &leaf("reviewer", reviewer)));
        desk.run(&["doctor"]).to_string()
    };
    let told = said("acme");
    assert!(told.contains("! warning  independence"), "{told}");
    assert!(told.contains("builder and reviewer are both of family acme"), "{told}");
    assert!(told.contains("hint: an agent of another family judges more independently"), "{told}");
    assert!(!said("other").contains("independence"));
}
