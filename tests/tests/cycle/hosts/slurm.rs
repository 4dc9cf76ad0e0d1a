//! Bands as jobs of a real Slurm: one controller and two nodes on this machine.
//!
//! Needs root and Debian's slurm-wlm, which `.ci/install-test-hosts` installs; where they are missing, the tests say that
//! they are skipped. Each node is a daemon in a PID namespace of its own, so that killing it is a power cut: nothing that
//! ran there goes on, and nothing tells the controller.

use std::process::{Child, Command, Stdio};

use camino::Utf8PathBuf;
use pdca_process::Tool;

use super::harness::{BUILDER, Hosts, PATIENT, not_shown, put_program, seals};

/// A Slurm of its own, ended when it is dropped.
struct Cluster {
    /// Short, because Slurm's sockets have names of limited length.
    dir: tempfile::TempDir,
    controller: Option<Child>,
    nodes: Vec<Option<Child>>,
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Cluster {
    fn new() -> Option<Self> {
        let needed = "command -v slurmctld && command -v slurmd && command -v sbatch && unshare --pid --fork true";
        let there = Tool::new("sh").args(["-c", needed]).run();
        if !rustix::process::getuid().is_root() || !there.is_ok_and(|said| said.success()) {
            not_shown("root and slurm-wlm are needed; `.ci/install-test-hosts` installs it");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("pdca-slurm-").tempdir_in("/tmp").unwrap();
        let mut cluster = Self { dir, controller: None, nodes: vec![None, None] };
        let path = cluster.path();
        for name in ["state", "spool-n1", "spool-n2"] {
            fs_err::create_dir_all(path.join(name)).unwrap();
        }
        let host = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
        let (control, one, two) = (free_port(), free_port(), free_port());
        let config = format!(
            "ClusterName=pdca\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\nCredType=cred/none\n\
             SlurmctldPort={control}\nStateSaveLocation={path}/state\nSlurmdSpoolDir={path}/spool-%n\nSlurmctldPidFile={path}/ctld.pid\n\
             SlurmdPidFile={path}/%n.pid\nSlurmctldLogFile={path}/ctld.log\nSlurmdLogFile={path}/%n.log\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nReturnToService=2\nSlurmdTimeout=300\n\
             SlurmctldTimeout=30\nMinJobAge=300\nKillWait=2\nMpiDefault=none\nSwitchType=switch/none\nAccountingStorageType=accounting_storage/none\n\
             JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=1\nJobAcctGatherParams=OverMemoryKill\nLicenses=model_api:2\n\
             SchedulerType=sched/builtin\nDefMemPerCPU=1000\nSlurmdParameters=config_overrides\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={one} CPUs=4 RealMemory=8000 State=UNKNOWN\n\
             NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={two} CPUs=4 RealMemory=8000 State=UNKNOWN\n\
             PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
        );
        fs_err::write(cluster.conf(), config).unwrap();
        cluster.start_controller();
        for index in 0..2 {
            cluster.start_node(index);
        }
        Some(cluster)
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.dir.path().to_owned()).unwrap()
    }

    fn conf(&self) -> Utf8PathBuf {
        self.path().join("slurm.conf")
    }

    #[expect(clippy::disallowed_methods, reason = "the test plays the machine that has daemons")]
    fn daemon(&self, argv: &[&str]) -> Child {
        Command::new(argv[0])
            .args(&argv[1..])
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the daemon can be started")
    }

    fn start_controller(&mut self) {
        self.controller = Some(self.daemon(&["slurmctld", "-D"]));
    }

    fn stop_controller(&mut self) {
        end(&mut self.controller);
    }

    fn start_node(&mut self, index: usize) {
        let name = format!("n{}", index + 1);
        let space = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let daemon = ["slurmd", "-D", "-N", name.as_str()];
        self.nodes[index] = Some(self.daemon(&[&space[..], &daemon].concat()));
    }

    fn ask(&self, args: &[&str]) -> String {
        let said =
            Tool::new(args[0]).args(&args[1..]).env("SLURM_CONF", self.conf().as_str()).run();
        said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
    }

    /// The only job there is: its number and its node.
    fn job(&self) -> (String, String) {
        let said = self.ask(&["squeue", "-h", "-o", "%i %N"]);
        let (id, node) = said.trim().split_once(' ').expect("one job runs");
        (id.to_owned(), node.to_owned())
    }

    /// Kills a node with everything that runs on it.
    fn kill_node(&mut self, name: &str) {
        end(&mut self.nodes[usize::from(name == "n2")]);
    }

    /// Does what a person in charge of the cluster does about a node that is gone: says so, and lets its job begin at
    /// once. By itself Slurm waits for minutes.
    fn give_up(&self, node: &str, job: &str) {
        self.ask(&["scontrol", "update", &format!("nodename={node}"), "state=down", "reason=gone"]);
        self.ask(&["scontrol", "update", &format!("jobid={job}"), "starttime=now"]);
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        drop(child.kill());
        drop(child.wait());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(end);
        end(&mut self.controller);
    }
}

fn cluster(builder: &str, more: &str, keys: &str) -> Option<(Cluster, Hosts)> {
    let cluster = Cluster::new()?;
    let keys = format!("engine = \"slurm\"\n{keys}");
    let hosts = Hosts::with_host_keys(&["cluster"], builder, more, &keys);
    hosts.edit("lost_after_secs = 20", "lost_after_secs = 300");
    let around = hosts.around();
    let script = fs_err::read_to_string(around.join("stand-in/ssh")).unwrap();
    let conf = cluster.conf();
    put_program(
        &around.join("stand-in/ssh"),
        &script.replacen('\n', &format!("\nSLURM_CONF='{conf}'; export SLURM_CONF\n"), 1),
    );
    hosts.scene.wait_until("both nodes are idle", |_| {
        cluster.ask(&["sinfo", "-h", "-o", "%T %D"]).contains("idle 2")
    });
    Some((cluster, hosts))
}

/// The number of times that a builder was called.
fn builders(hosts: &Hosts) -> usize {
    hosts.calls().into_iter().filter(|call| call.starts_with("builder")).count()
}

#[test]
fn h25_bands_run_as_jobs_of_slurm_under_their_names_and_a_license_bounds_them() {
    let Some((cluster, hosts)) = cluster(PATIENT, "", "licenses = \"model_api:1\"") else { return };
    let ids = ["7", "8", "9"];
    hosts.edit("slots = 2", "slots = 3");
    hosts.briefs(&ids);
    let driver = hosts.start(&[]);
    let names = || cluster.ask(&["squeue", "-h", "-o", "%j %T"]);
    hosts.scene.wait_until("all are in the queue", |_| names().lines().count() == 3);
    hosts.scene.wait_until("two run", |_| names().matches("RUNNING").count() == 2);
    assert!(names().lines().all(|line| line.starts_with("pdca-")), "{}", names());
    assert_eq!(names().matches("PENDING").count(), 1, "two licenses: {}", names());
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    for id in ids {
        assert_eq!(hosts.scene.state(id), "AWAITING_SIGNOFF");
    }
    assert_eq!(builders(&hosts), 3);
}

#[test]
fn h25_twenty_bands_over_the_nodes_give_the_bundles_and_seals_of_a_local_run() {
    let Some((_cluster, hosts)) = cluster(BUILDER, "", "") else { return };
    let ids: Vec<String> = (1..=20).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    hosts.edit("slots = 2", "slots = 6");
    hosts.briefs(&ids);
    let before = hosts.keep();
    hosts.batch(&[]).expect(0);
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
fn h26_a_node_that_dies_in_do_and_a_controller_that_is_down_meanwhile_cost_no_attempt() {
    let Some((mut cluster, hosts)) = cluster(PATIENT, "", "") else { return };
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    let (job, node) = cluster.job();
    cluster.kill_node(&node);
    cluster.stop_controller();
    let so_far = hosts.verbs().len();
    hosts.scene.wait_until("the driver asks on", |_| hosts.verbs().len() > so_far + 2);
    cluster.start_controller();
    hosts.scene.wait_until("the controller is back", |_| {
        cluster.ask(&["scontrol", "ping"]).contains("UP")
    });
    cluster.give_up(&node, &job);
    hosts.scene.wait_until("it runs on the other node", |_| builders(&hosts) == 2);
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    assert!(!hosts.scene.workspace.path().join(".pdca/failures/issue_7.json").exists());
}

#[test]
fn h26_a_node_that_dies_in_a_gate_costs_no_second_build() {
    let gate = "[gates]\nsandbox = \"off\"\n[[gates.checks]]\nid = \"T1-wait\"\ntier = \"T1\"\nscope = \"bundle\"\ncmd = 'sh \"$PDCA_WORKSPACE/leaves/wait.sh\"'\n";
    let Some((mut cluster, hosts)) = cluster(BUILDER, gate, "") else { return };
    let count = hosts.around().join("count");
    let wait =
        format!("touch '{count}/at-gate'\nwhile [ ! -e '{count}/go' ]; do sleep 0.02; done\n");
    hosts.scene.workspace.write("leaves/wait.sh", wait);
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("the gate runs", |_| hosts.has("at-gate"));
    let (job, node) = cluster.job();
    cluster.kill_node(&node);
    fs_err::remove_file(count.join("at-gate")).unwrap();
    cluster.give_up(&node, &job);
    hosts.scene.wait_until("the gate runs on the other node", |_| hosts.has("at-gate"));
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    assert_eq!(builders(&hosts), 1, "{:?}", hosts.calls());
}

#[test]
fn h26_a_node_that_dies_while_its_result_is_collected_loses_nothing() {
    let Some((mut cluster, hosts)) = cluster(PATIENT, "", "") else { return };
    hosts.briefs(&["7"]);
    hosts.cut("collect-after");
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    let (_, node) = cluster.job();
    hosts.let_go("go");
    hosts.scene.wait_until("the first answer is lost", |_| !hosts.is_cut("collect-after"));
    cluster.kill_node(&node);
    assert_eq!(driver.wait(), 0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    assert_eq!(builders(&hosts), 1, "{:?}", hosts.calls());
}

#[test]
fn h27_an_interrupted_driver_leaves_no_job_in_the_queue_and_no_process_on_a_node() {
    let Some((cluster, hosts)) = cluster(PATIENT, "", "") else { return };
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    driver.signal(rustix::process::Signal::INT);
    assert_eq!(driver.wait(), 130);
    assert_eq!(cluster.ask(&["squeue", "-h", "-o", "%j"]), "");
    assert_eq!(hosts.runners("cluster"), Vec::<i32>::new());
}

#[test]
fn h28_a_limit_on_time_or_memory_of_a_real_slurm_is_a_cap_and_no_red_gate() {
    let hungry = r#"
touch "$COUNT/at-$1"
if [ "$1" = 8 ]; then { head -c 900000000 /dev/zero; sleep 600; } | tail -n 1 > /dev/null; fi
sleep 600
"#;
    let keys = "time_minutes = 1\nmemory_mb = 300";
    let Some((cluster, hosts)) = cluster(hungry, "", keys) else { return };
    hosts.briefs(&["7", "8"]);
    let driver = hosts.start(&["--events", "events"]);
    hosts.scene.wait_until("both are at work", |_| hosts.has("at-7") && hosts.has("at-8"));
    let jobs = cluster.ask(&["squeue", "-h", "-o", "%i %j"]);
    let (id, _) =
        jobs.lines().find(|line| line.contains("-7-g1")).unwrap().split_once(' ').unwrap();
    // Its minute is over now.
    cluster.ask(&["scontrol", "update", &format!("jobid={id}"), "endtime=now"]);
    let code = driver.wait();
    let events = hosts.scene.workspace.read("events");
    assert_eq!(code, 103, "{events}");
    for limit in ["time", "memory"] {
        assert!(events.contains(&format!("its limit on {limit}")), "{limit}: {events}");
    }
    for id in ["7", "8"] {
        assert_eq!(hosts.scene.state(id), "PLANNED");
    }
}

#[test]
fn h28_a_limit_that_slurm_tells_of_is_a_cap_and_no_red_gate() {
    let hosts =
        Hosts::with_host_keys(&["cluster"], BUILDER, "", "engine = \"slurm\"\ntime_minutes = 1");
    // A Slurm that takes a job and then says that its time is up.
    let bin = hosts.around().join("stand-in");
    put_program(&bin.join("sbatch"), "#!/bin/sh\necho 41\n");
    put_program(
        &bin.join("squeue"),
        "#!/bin/sh\ncase \"$*\" in *--states=all*) echo TIMEOUT;; esac\n",
    );
    put_program(&bin.join("sacct"), "#!/bin/sh\necho TIMEOUT\n");
    put_program(&bin.join("scancel"), "#!/bin/sh\n");
    hosts.briefs(&["7"]);
    let ran = hosts.batch(&[]);
    assert_eq!(ran.code, 103, "{}", ran.err);
    assert!(ran.err.contains("limit on time") && ran.err.contains("time_minutes"), "{}", ran.err);
    assert_eq!(hosts.scene.state("7"), "PLANNED");
}

#[test]
fn slurm_is_asked_for_the_jobs_of_this_user_alone() {
    let hosts = Hosts::with_host_keys(&["cluster"], BUILDER, "", "engine = \"slurm\"");
    // Another user may have a job of the same name, so a Slurm that is asked for all users does not answer here.
    let bin = hosts.around().join("stand-in");
    let submitted = hosts.around().join("submitted");
    put_program(&bin.join("sbatch"), &format!("#!/bin/sh\ntouch {submitted}\necho 41\n"));
    put_program(
        &bin.join("squeue"),
        "#!/bin/sh\ncase \"$*\" in *--states=all*) echo TIMEOUT;; *--user=*) ;; *) exit 1;; esac\n",
    );
    put_program(&bin.join("sacct"), "#!/bin/sh\necho TIMEOUT\n");
    put_program(&bin.join("scancel"), "#!/bin/sh\n");
    hosts.briefs(&["7"]);
    let ran = hosts.batch(&[]);
    assert!(submitted.exists(), "{}", ran.err);
}
