//! Hosts that are not fit: refused before anything starts, with the remedy.

use super::harness::{BUILDER, Hosts, put_program};

/// The refusals of a host, as `hosts check` tells them.
fn refusals(hosts: &Hosts) -> Vec<(String, String)> {
    let said = hosts.scene.pdca(&["hosts", "check", "--json"]).expect(2).json();
    let rows = said["hosts"][0]["refusals"].as_array().unwrap().clone();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "reason"), text(row, "remedy"))).collect()
}

#[test]
fn h21_a_host_without_pdca_is_refused_and_hosts_add_mends_it() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    fs_err::remove_dir_all(hosts.root("a")).unwrap();
    hosts.briefs(&["7"]);
    let ran = hosts.scene.pdca(&["batch", "--hosts", "a"]).expect(2);
    assert!(
        ran.err.contains("no pdca is installed") && ran.err.contains("pdca hosts add a"),
        "{}",
        ran.err
    );
    assert_eq!(hosts.calls(), Vec::<String>::new());
    hosts.scene.pdca(&["hosts", "add", "a"]).expect(0);
    hosts.scene.pdca(&["batch", "--hosts", "a"]).expect(0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn h22_another_binary_an_old_git_a_full_disk_and_a_missing_program_are_refused_by_name() {
    let hosts = Hosts::new(
        &["a"],
        BUILDER,
        "[[gates.checks]]\nid = \"T1-tool\"\ntier = \"T1\"\nargv = [\"a-tool-of-its-own\"]\n",
    );
    put_program(&hosts.around().join("stand-in/a-tool-of-its-own"), "#!/bin/sh\n");
    let pdca = hosts.root("a").join("bin/pdca");
    fs_err::remove_file(&pdca).unwrap();
    // The host's own PATH leads to an old git and to no tool.
    let real = pdca_testkit::pdca_bin();
    let old = hosts.around().join("old");
    put_program(&old.join("git"), "#!/bin/sh\necho git version 2.20.1\n");
    put_program(&pdca, &format!("#!/bin/sh\nPATH='{old}:/usr/bin:/bin' exec '{real}' \"$@\"\n"));
    let found = refusals(&hosts);
    let reasons: Vec<&str> = found.iter().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["old-git", "no-tool"], "{found:?}");
    let full = hosts.scene.pdca(&[
        "hosts",
        "check",
        "--json",
        "--config",
        "driver.min_free_gb=1000000000",
    ]);
    assert!(
        full.out.contains("\"disk-full\"") && full.out.contains("pdca hosts gc a"),
        "{}",
        full.out
    );
    // Another program of the same version: its bytes decide.
    let copy = hosts.around().join("other-pdca");
    fs_err::copy(real, &copy).unwrap();
    let mut bytes = fs_err::OpenOptions::new().append(true).open(&copy).unwrap();
    std::io::Write::write_all(&mut bytes, b"another").unwrap();
    drop(bytes);
    put_program(&pdca, &format!("#!/bin/sh\nexec '{copy}' \"$@\"\n"));
    let found = refusals(&hosts);
    assert_eq!(found[0].0, "other-program", "{found:?}");
    assert!(found[0].1.contains("pdca hosts add a"), "{found:?}");
}

/// Starts a program in a world without walls: no Landlock, and no mounts for `bwrap`.
const NO_WALLS: &str = r"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define REFUSE(call, error) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)
int main(int argc, char **argv) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(444 /* landlock_create_ruleset */, ENOSYS),
        REFUSE(SYS_mount, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
    execv(argv[1], argv + 1);
    return 98;
}
";

#[test]
fn h22_a_host_without_walls_is_refused_unless_nothing_has_to_be_confined() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    let (source, wrapper) = (hosts.around().join("no-walls.c"), hosts.around().join("no-walls"));
    fs_err::write(&source, NO_WALLS).unwrap();
    let built = pdca_process::Tool::new("cc").args(["-o", wrapper.as_str(), source.as_str()]).run();
    assert!(built.is_ok_and(|said| said.success()));
    let (pdca, real) = (hosts.root("a").join("bin/pdca"), pdca_testkit::pdca_bin());
    fs_err::remove_file(&pdca).unwrap();
    put_program(&pdca, &format!("#!/bin/sh\nexec '{wrapper}' '{real}' \"$@\"\n"));
    // Leaves that are not confined need no wall, and gates are.
    let found = refusals(&hosts);
    assert_eq!(found.iter().map(|(reason, _)| reason.as_str()).collect::<Vec<_>>(), ["no-sandbox"]);
    assert!(found[0].1.contains("install bubblewrap on a"), "{found:?}");
    hosts.briefs(&["7"]);
    hosts.scene.pdca(&["batch", "--hosts", "a"]).expect(2);
    assert_eq!(hosts.calls(), Vec::<String>::new());
    let toml = hosts.scene.workspace.read("pdca.toml");
    hosts.scene.workspace.write("pdca.toml", format!("{toml}\n[gates]\nsandbox = \"off\"\n"));
    hosts.scene.pdca(&["hosts", "check"]).expect(0);
}

#[test]
fn h23_a_host_that_is_not_reached_is_left_out_with_a_warning_and_refused_if_it_was_named() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.briefs(&["7"]);
    hosts.cut("down-a");
    let named = hosts.scene.pdca(&["batch", "--hosts", "a"]).expect(2);
    assert!(
        named.err.contains("cannot be reached") && named.err.contains("ssh a true"),
        "{}",
        named.err
    );
    let ran = hosts.scene.pdca(&["batch"]).expect(0);
    assert!(ran.err.contains("warning: host `a` is not used: cannot be reached"), "{}", ran.err);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn h24_what_cannot_travel_is_refused_before_anything_starts() {
    let table = [
        ("[lanes.hydrate]\ncopy = [\".env\"]\n", "which a host does not have"),
        (
            "[leaves.planner]\nmode = \"command\"\nargv = [\"true\"]\nenv = { GH_TOKEN = \"x\" }\n",
            "credentials do not travel",
        ),
    ];
    for (more, said) in table {
        let hosts = Hosts::new(&["a"], BUILDER, more);
        hosts.briefs(&["7"]);
        let ran = hosts.scene.pdca(&["batch", "--hosts", "a"]);
        assert_eq!(ran.code, 2, "{more}: {}", ran.err);
        assert!(ran.err.contains(said) && ran.err.contains("hint:"), "{}", ran.err);
        assert_eq!(hosts.calls(), Vec::<String>::new());
    }
}

#[test]
fn a_clean_up_that_a_host_does_not_confirm_is_not_done() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.cut("reap-before");
    let ran = hosts.scene.pdca(&["hosts", "gc"]);
    assert!(!hosts.is_cut("reap-before"), "{}", ran.err);
    assert_ne!(ran.code, 0, "{}{}", ran.out, ran.err);
    hosts.scene.pdca(&["hosts", "gc"]).expect(0);
}

#[test]
fn a_host_that_is_added_again_keeps_its_entry_and_this_is_said() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    let before = hosts.scene.workspace.read("pdca.toml");
    let ran = hosts.scene.pdca(&["hosts", "add", "a", "--slots", "8", "--json"]);
    assert_eq!(ran.json()["hosts"][0]["slots"], 2, "{}", ran.out);
    assert!(ran.err.contains("edit it there"), "{}", ran.err);
    assert_eq!(hosts.scene.workspace.read("pdca.toml"), before);
}
