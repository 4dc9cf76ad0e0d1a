//! Machines that `ssh` reaches: a network namespace and a real `sshd` for each, on this machine.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Tool;

use crate::program::slow_link;

/// The longest time for a daemon to listen; it bounds a machine that hangs, and says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hosts with an `sshd` each. Dropping it ends them and their networks.
#[derive(Debug)]
pub struct SshHosts {
    /// Keys and configurations.
    dir: Utf8PathBuf,
    names: Vec<String>,
    /// Namespace, near end of the wire and address, by host.
    wires: Vec<Wire>,
    daemons: Vec<Child>,
}

#[derive(Debug)]
struct Wire {
    space: String,
    near: String,
    address: String,
}

fn ran(program: &str, args: &[&str]) -> bool {
    Tool::new(program).args(args).run().is_ok_and(|said| said.success())
}

fn make_key(file: &Utf8Path) {
    assert!(ran("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", file.as_str()]));
}

impl SshHosts {
    /// Starts a host for each name, with keys and configurations in `dir`. Returns what this machine lacks for it.
    pub fn start(dir: &Utf8Path, names: &[&str]) -> Result<Self, &'static str> {
        if !rustix::process::getuid().is_root()
            || !ran("sh", &["-c", "command -v sshd ssh ssh-keygen ip"])
        {
            return Err("root, sshd and ip are needed; `.ci/install-test-hosts` installs them");
        }
        for key in ["user-key", "host-key"] {
            make_key(&dir.join(key));
        }
        let mut hosts = Self {
            dir: dir.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            wires: Vec::new(),
            daemons: Vec::new(),
        };
        for index in 0..names.len() {
            if !hosts.wire(index) {
                return Err("`ip netns add` or `ip link add` is refused");
            }
        }
        hosts.configure("");
        for index in 0..names.len() {
            hosts.listen(index);
        }
        Ok(hosts)
    }

    /// The configuration of `ssh` that knows these hosts by their names, for `ssh -F`.
    pub fn config(&self) -> Utf8PathBuf {
        self.dir.join("ssh-config")
    }

    /// Writes the configuration anew, with further lines for each host.
    pub fn configure(&self, more: &str) {
        let dir = &self.dir;
        let hosts = self.names.iter().zip(&self.wires);
        let entry = |(name, Wire { address, .. }): (&String, &Wire)| {
            format!(
                "Host {name}\n  HostName {address}\n  User root\n  IdentityFile {dir}/user-key\n  IdentitiesOnly yes\n  \
                 UserKnownHostsFile {dir}/known-hosts\n  StrictHostKeyChecking accept-new\n{more}"
            )
        };
        fs_err::write(self.config(), hosts.map(entry).collect::<Vec<_>>().concat())
            .expect("a configuration can be written");
    }

    /// Has all further connections go over a link of so many bytes in a second, in each direction, and of this delay
    /// from end to end and back.
    pub fn slow_down(&self, bytes_per_second: u32, round_trip: Duration) {
        let delay = round_trip.as_millis() / 2;
        let program = slow_link();
        self.configure(&format!("  ProxyCommand {program} %h %p {bytes_per_second} {delay}\n"));
    }

    /// Cuts (`down`) or mends (`up`) the wire of a host.
    pub fn set_link(&self, index: usize, state: &str) {
        assert!(ran("ip", &["link", "set", &self.wires[index].near, state]));
    }

    /// Makes a namespace with a wire to it; false where that is refused.
    fn wire(&mut self, index: usize) -> bool {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let process = std::process::id();
        let space = format!("pdca{process}x{number}");
        // Short, because the name of a network interface has at most 15 bytes on Linux.
        let (near, far) = (format!("pn{process}x{number}"), format!("pf{process}x{number}"));
        // Test programs run side by side, and two networks must not have one address.
        let third = (process.wrapping_mul(8) + number) % 250;
        let end = |end: usize| format!("10.87.{third}.{}", index * 4 + end);
        let (here, there) = (format!("{}/30", end(1)), format!("{}/30", end(2)));
        let steps: [&[&str]; 8] = [
            &["netns", "add", &space],
            &["link", "add", &near, "type", "veth", "peer", "name", &far],
            &["link", "set", &far, "netns", &space],
            &["addr", "add", &here, "dev", &near],
            &["link", "set", &near, "up"],
            &["-n", &space, "addr", "add", &there, "dev", &far],
            &["-n", &space, "link", "set", &far, "up"],
            &["-n", &space, "link", "set", "lo", "up"],
        ];
        let is_made = steps.iter().all(|step| ran("ip", step));
        self.wires.push(Wire { space, near, address: end(2) });
        is_made
    }

    #[expect(clippy::disallowed_methods, reason = "this plays the machine that has a daemon")]
    fn listen(&mut self, index: usize) {
        let (dir, name) = (&self.dir, &self.names[index]);
        let Wire { space, address, .. } = &self.wires[index];
        // A home of its own, without what the shell of whoever runs the tests does at its start.
        let home = dir.join("hosts").join(name);
        fs_err::create_dir_all(&home).expect("a home can be made");
        let config = format!(
            "SetEnv HOME={home}\nListenAddress {address}\nHostKey {dir}/host-key\nAuthorizedKeysFile {dir}/user-key.pub\nPidFile none\n\
             StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nMaxSessions 100\nMaxStartups 100\n"
        );
        let file = dir.join(format!("sshd-{name}"));
        fs_err::write(&file, config).expect("a configuration can be written");
        fs_err::create_dir_all("/run/sshd").expect("root can make the directory of sshd");
        let daemon = Command::new("ip")
            .args(["netns", "exec", space, "/usr/sbin/sshd", "-D", "-e", "-f", file.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ip can be started");
        self.daemons.push(daemon);
        let config = self.config();
        let begun = Instant::now();
        let options = ["-F", config.as_str(), "-o", "BatchMode=yes", "-o", "ConnectTimeout=2"];
        while !ran("ssh", &[&options[..], &[name, "true"]].concat()) {
            assert!(begun.elapsed() < PATIENCE, "the sshd of {name} does not listen");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for SshHosts {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            drop(daemon.kill());
            drop(daemon.wait());
        }
        for Wire { space, near, .. } in &self.wires {
            ran("ip", &["link", "del", near]);
            ran("ip", &["netns", "del", space]);
        }
    }
}
