//! Git's lock files in the user's repository, as `doctor` reports them.

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
