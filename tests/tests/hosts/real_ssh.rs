//! The same over real `sshd`s, one for each host, each in a network namespace of its own.
//!
//! Needs root and the programs that `.ci/install-test-hosts` installs; where they are missing, that is said.

use std::process::{Child, Command, Stdio};

use camino::Utf8PathBuf;
use pdca_process::Tool;

use crate::harness::{BUILDER, Hosts, PATIENT, not_shown, put_pdca, put_program, seals};

/// Hosts with an `sshd` each. Dropping it ends them and their networks.
struct Network {
    hosts: Hosts,
    /// Namespace and near end of the wire, by host.
    wires: Vec<(String, String)>,
    daemons: Vec<Child>,
}

fn ran(program: &str, args: &[&str]) -> bool {
    Tool::new(program).args(args).run().is_ok_and(|said| said.success())
}

impl Network {
    /// Makes the hosts; `None` where this machine does not allow it, which is said.
    fn new(names: &[&str], builder: &str, more: &str) -> Option<Self> {
        if !rustix::process::getuid().is_root()
            || !ran("sh", &["-c", "command -v sshd ssh ssh-keygen ip"])
        {
            not_shown("root, sshd and ip are needed; `.ci/install-test-hosts` installs them");
            return None;
        }
        let hosts = Hosts::new(names, builder, more);
        let mut network = Self { hosts, wires: Vec::new(), daemons: Vec::new() };
        let around = network.hosts.around();
        for key in ["user-key", "host-key"] {
            let file = around.join(key);
            assert!(ran("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", file.as_str()]));
        }
        let mut config = String::new();
        for (index, name) in names.iter().enumerate() {
            let Some(address) = network.wire(index) else {
                not_shown("`ip netns add` or `ip link add` is refused");
                return None;
            };
            network.listen(name, index, &address);
            let roots = network.hosts.root(name);
            config = format!(
                "{config}Host {name}\n  HostName {address}\n  User root\n  IdentityFile {around}/user-key\n  IdentitiesOnly yes\n  \
                 UserKnownHostsFile {around}/known-hosts\n  StrictHostKeyChecking accept-new\n"
            );
            // All hosts have one home here, so each gets an absolute root.
            let toml = network.hosts.scene.workspace.read("pdca.toml");
            let entry = format!("name = \"{name}\"\n");
            network
                .hosts
                .scene
                .workspace
                .write("pdca.toml", toml.replace(&entry, &format!("{entry}root = \"{roots}\"\n")));
        }
        fs_err::write(around.join("ssh-config"), config).unwrap();
        put_program(
            &around.join("stand-in/ssh"),
            &format!("#!/bin/sh\nexec /usr/bin/ssh -F '{around}/ssh-config' \"$@\"\n"),
        );
        Some(network)
    }

    /// Makes a namespace with a wire to it, and returns its address.
    fn wire(&mut self, index: usize) -> Option<String> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let process = std::process::id();
        let (space, near, far) = (
            format!("pdca{process}x{number}"),
            format!("pn{process}x{number}"),
            format!("pf{process}x{number}"),
        );
        let third = (process.wrapping_mul(8) + number) % 250;
        let fourth = index * 4;
        let address = |end: usize| format!("10.87.{third}.{}", fourth + end);
        let steps: [&[&str]; 6] = [
            &["netns", "add", &space],
            &["link", "add", &near, "type", "veth", "peer", "name", &far],
            &["link", "set", &far, "netns", &space],
            &["addr", "add", &format!("{}/30", address(1)), "dev", &near],
            &["link", "set", &near, "up"],
            &["-n", &space, "addr", "add", &format!("{}/30", address(2)), "dev", &far],
        ];
        let all = steps.iter().all(|step| ran("ip", step));
        self.wires.push((space.clone(), near));
        let up = all
            && ran("ip", &["-n", &space, "link", "set", &far, "up"])
            && ran("ip", &["-n", &space, "link", "set", "lo", "up"]);
        up.then(|| address(2))
    }

    #[expect(clippy::disallowed_methods, reason = "the test plays the machine that has a daemon")]
    fn listen(&mut self, name: &str, index: usize, address: &str) {
        let around = self.hosts.around();
        put_pdca_once(&self.hosts.root(name));
        let config = format!(
            "ListenAddress {address}\nHostKey {around}/host-key\nAuthorizedKeysFile {around}/user-key.pub\nPidFile none\n\
             StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nMaxSessions 100\nMaxStartups 100\n"
        );
        let file = around.join(format!("sshd-{name}"));
        fs_err::write(&file, config).unwrap();
        fs_err::create_dir_all("/run/sshd").unwrap();
        let space = &self.wires[index].0;
        let daemon = Command::new("ip")
            .args(["netns", "exec", space, "/usr/sbin/sshd", "-D", "-e", "-f", file.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ip can be started");
        self.daemons.push(daemon);
        let key = around.join("user-key");
        let scene = &self.hosts.scene;
        scene.wait_until("the daemon listens", |_| {
            ran(
                "ssh",
                &[
                    "-F",
                    "/dev/null",
                    "-o",
                    "BatchMode=yes",
                    "-o",
                    "StrictHostKeyChecking=accept-new",
                    "-o",
                    &format!("UserKnownHostsFile={around}/known-hosts"),
                    "-o",
                    "ConnectTimeout=2",
                    "-i",
                    key.as_str(),
                    &format!("root@{address}"),
                    "true",
                ],
            )
        });
    }

    /// Cuts or mends the wire of a host.
    fn set_link(&self, index: usize, state: &str) {
        assert!(ran("ip", &["link", "set", &self.wires[index].1, state]));
    }
}

fn put_pdca_once(root: &Utf8PathBuf) {
    if !root.join("bin/pdca").exists() {
        put_pdca(root);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            drop(daemon.kill());
            drop(daemon.wait());
        }
        for (space, near) in &self.wires {
            ran("ip", &["link", "del", near]);
            ran("ip", &["netns", "del", space]);
        }
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
    network.set_link(index, "down");
    hosts.scene.wait_until("it runs elsewhere", |_| {
        hosts.jobs(second).iter().any(|job| job.ends_with("-7-g2"))
    });
    assert_eq!(hosts.runners(first).len(), 1, "the process on the lost host lives on");
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    hosts.scene.wait_until("the lost one has ended", |_| hosts.runners(first).is_empty());
    network.set_link(index, "up");
    hosts.scene.pdca(&["hosts", "gc"]).expect(0);
    assert_eq!(hosts.jobs(first), Vec::<String>::new());
}

#[test]
fn h32_what_the_user_forwards_over_ssh_is_not_there_for_a_far_leaf() {
    let looks = r#"
env | cut -d= -f1 | grep -E '^(SSH_|GH_TOKEN)' > "file-$1.txt" || true
if grep -q ':464F ' /proc/net/tcp; then echo forwarded >> "file-$1.txt"; fi
echo done >> "file-$1.txt"
"#;
    let Some(network) = Network::new(&["a"], looks, "") else { return };
    let hosts = &network.hosts;
    let around = hosts.around();
    let file = around.join("ssh-config");
    let config = fs_err::read_to_string(&file).unwrap();
    let forwards = "  ForwardAgent yes\n  RemoteForward 17999 127.0.0.1:9\n";
    fs_err::write(&file, format!("{config}{forwards}")).unwrap();
    // Whoever logs in by hand has the port.
    let by_hand = "grep -q ':464F ' /proc/net/tcp";
    assert!(ran("ssh", &["-F", file.as_str(), "a", by_hand]));
    hosts.briefs(&["7"]);
    let env = [("GH_TOKEN", "secret-of-the-driver")];
    hosts.scene.pdca_with(&env, &["batch", "--lanes", "0"]).expect(0);
    let patch = hosts.scene.workspace.read("results/issue_7/patch.diff");
    let added = |line: &&str| line.starts_with('+') && !line.starts_with("+++");
    assert_eq!(patch.lines().filter(added).collect::<Vec<_>>(), ["+done"], "{patch}");
}
