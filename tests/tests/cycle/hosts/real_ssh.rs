//! The same over real `sshd`s, one for each host, each in a network namespace of its own.
//!
//! Needs root and the programs that `.ci/install-test-hosts` installs; where they are missing, that is said.

use camino::Utf8PathBuf;
use pdca_process::Tool;
use pdca_testkit::SshHosts;

use super::harness::{BUILDER, Hosts, PATIENT, not_shown, put_pdca, put_program, seals};

/// Hosts with an `sshd` each. Dropping it ends them and their networks.
struct Network {
    hosts: Hosts,
    ssh: SshHosts,
}

impl Network {
    /// Makes the hosts; `None` where this machine does not allow it, which is said.
    fn new(names: &[&str], builder: &str, more: &str) -> Option<Self> {
        let hosts = Hosts::new(names, builder, more);
        let around = hosts.around();
        let ssh = match SshHosts::start(&around, names) {
            Ok(ssh) => ssh,
            Err(why) => {
                not_shown(why);
                return None;
            }
        };
        for name in names {
            put_pdca_once(&hosts.root(name));
            // All hosts have one home here, so each gets an absolute root.
            let (entry, root) = (format!("name = \"{name}\"\n"), hosts.root(name));
            hosts.edit(&entry, &format!("{entry}root = \"{root}\"\n"));
        }
        let config = ssh.config();
        put_program(
            &around.join("stand-in/ssh"),
            &format!("#!/bin/sh\nexec /usr/bin/ssh -F '{config}' \"$@\"\n"),
        );
        Some(Self { hosts, ssh })
    }
}

fn put_pdca_once(root: &Utf8PathBuf) {
    if !root.join("bin/pdca").exists() {
        put_pdca(root);
    }
}

#[test]
fn h1_twenty_bands_over_three_real_hosts_give_the_seals_of_a_local_run_bit_for_bit() {
    let ids: Vec<String> = (1..=20).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let Some(network) = Network::new(&["a", "b", "c"], BUILDER, "") else { return };
    let hosts = &network.hosts;
    hosts.briefs(&ids);
    let before = hosts.keep();
    hosts.batch(&["--hosts", "a,b,c"]).expect(0);
    let bundles = hosts.scene.results();
    hosts.accept(&ids);
    let sealed = seals(&hosts.scene, &ids);
    hosts.go_back(&before);
    hosts.scene.pdca(&["batch", "--local"]).expect(0);
    assert_eq!(hosts.scene.results(), bundles);
    hosts.accept(&ids);
    assert_eq!(seals(&hosts.scene, &ids), sealed);
}

#[test]
fn h11_a_real_link_that_is_cut_loses_the_host_and_what_lives_on_there_counts_for_nothing() {
    let Some(network) = Network::new(&["a", "b"], PATIENT, "") else { return };
    let hosts = &network.hosts;
    let toml = hosts
        .scene
        .workspace
        .read("pdca.toml")
        .replace("lost_after_secs = 20", "lost_after_secs = 6");
    hosts.scene.workspace.write("pdca.toml", toml.replace("slots = 2", "slots = 1"));
    hosts.briefs(&["7"]);
    let driver = hosts.start(&["--events", "events"]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    let (index, first, second) =
        if hosts.jobs("a").is_empty() { (1, "b", "a") } else { (0, "a", "b") };
    network.ssh.set_link(index, "down");
    hosts.scene.wait_until("it runs elsewhere", |_| {
        hosts.jobs(second).iter().any(|job| job.ends_with("-7-g2"))
    });
    assert_eq!(hosts.runners(first).len(), 1, "the process on the lost host lives on");
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    hosts.scene.wait_until("the lost one has ended", |_| hosts.runners(first).is_empty());
    network.ssh.set_link(index, "up");
    hosts.scene.pdca(&["hosts", "gc"]).expect(0);
    assert_eq!(hosts.jobs(first), Vec::<String>::new());
}

/// An agent with a key, which ends with this value.
struct SshAgent {
    socket: Utf8PathBuf,
    daemon: std::process::Child,
}

impl SshAgent {
    #[expect(clippy::disallowed_methods, reason = "the test plays the user who has an agent")]
    fn start(hosts: &Hosts) -> Self {
        let socket = hosts.around().join("agent");
        let daemon = std::process::Command::new("ssh-agent")
            .args(["-D", "-a", socket.as_str()])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let agent = Self { socket, daemon };
        let key = hosts.around().join("user-key");
        hosts.scene.wait_until("the agent has the key", |_| {
            let add = Tool::new("ssh-add").args(["-q", key.as_str()]);
            add.env("SSH_AUTH_SOCK", agent.socket.as_str()).run().is_ok_and(|said| said.success())
        });
        agent
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}

#[test]
fn h33_over_a_slow_link_a_band_is_as_over_a_fast_one_and_its_host_is_not_lost() {
    let Some(network) = Network::new(&["a"], BUILDER, "") else { return };
    let hosts = &network.hosts;
    hosts.edit("lost_after_secs = 20", "lost_after_secs = 5");
    let ids = ["7", "8"];
    hosts.briefs(&ids);
    let before = hosts.keep();
    let run = || {
        hosts.batch(&["--events", "events"]).expect(0);
        let events = hosts.scene.workspace.read("events");
        assert!(!events.contains("\"code\":\"host_lost\""), "{events}");
        (hosts.scene.results(), hosts.calls())
    };
    let fast = run();
    hosts.go_back(&before);
    network.ssh.slow_down(50_000, std::time::Duration::from_millis(200));
    assert_eq!(run(), fast);
}

#[test]
fn h32_what_the_user_forwards_over_ssh_is_not_there_for_a_far_leaf() {
    let looks = r#"
env | cut -d= -f1 | grep -E '^(SSH_|GH_TOKEN)' > "file-$1.txt" || true
for socket in /tmp/ssh-*/agent.*; do
  if SSH_AUTH_SOCK=$socket ssh-add -l >/dev/null 2>&1; then echo "signed with $socket" >> "file-$1.txt"; fi
done
if grep -q ':464F ' /proc/net/tcp; then echo forwarded >> "file-$1.txt"; fi
echo done >> "file-$1.txt"
"#;
    let Some(network) = Network::new(&["a"], looks, "") else { return };
    let hosts = &network.hosts;
    network.ssh.configure("  ForwardAgent yes\n  RemoteForward 17999 127.0.0.1:9\n");
    let agent = SshAgent::start(hosts);
    // Whoever logs in by hand has the port, and can sign with the keys of the agent.
    let file = network.ssh.config();
    let by_hand = "grep -q ':464F ' /proc/net/tcp && ssh-add -l";
    let login = Tool::new("ssh").args(["-F", file.as_str(), "a", by_hand]);
    let login = login.env("SSH_AUTH_SOCK", agent.socket.as_str()).run().unwrap();
    assert!(login.success(), "{}", String::from_utf8_lossy(&login.stderr));
    hosts.briefs(&["7"]);
    let env = [("GH_TOKEN", "secret-of-the-driver"), ("SSH_AUTH_SOCK", agent.socket.as_str())];
    hosts.scene.pdca_with(&env, &["batch", "--lanes", "0"]).expect(0);
    let patch = hosts.scene.workspace.read("results/issue_7/patch.diff");
    let added = |line: &&str| line.starts_with('+') && !line.starts_with("+++");
    assert_eq!(patch.lines().filter(added).collect::<Vec<_>>(), ["+done"], "{patch}");
}
