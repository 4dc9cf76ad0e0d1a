//! Parts of the machine for one command alone: mounts and clocks, in namespaces of its own.

use std::time::Duration;

use pdca_process::{Tool, ToolError};

use crate::{Ran, Scene};

impl Scene {
    /// Runs a shell script in the workspace, where it may mount what nobody else sees. `$PDCA` is the
    /// binary, `$AROUND` the directory around the workspace. None where the host does not allow that,
    /// which is said.
    pub fn with_mounts(&self, script: &str) -> Option<Ran> {
        self.unshared(&["--map-root-user", "--mount"], script)
    }

    /// Runs a shell script in the workspace with the clock that goes on in sleep so many seconds ahead,
    /// as after a sleep of that length. None where the host does not allow that, which is said.
    pub fn after_sleep(&self, seconds: u64, script: &str) -> Option<Ran> {
        let ahead = seconds.to_string();
        self.unshared(&["--map-root-user", "--time", "--boottime", &ahead, "--fork"], script)
    }

    fn unshared(&self, kinds: &[&str], script: &str) -> Option<Ran> {
        let tried = Tool::new("unshare").args(kinds).arg("true").run();
        if !matches!(&tried, Ok(said) if said.code == 0) {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            say(&format!("{test}: not shown here: `unshare {}` is refused", kinds.join(" ")));
            return None;
        }
        let mut tool = Tool::new("unshare").args(kinds).args(["sh", "-c", script]);
        let own = [
            ("PDCA", pdca_testkit::pdca_bin().to_string()),
            ("AROUND", self.workspace.around().to_string()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        for (name, value) in self.surroundings(&[]).into_iter().chain(own) {
            tool = tool.env(name, value);
        }
        let tool = tool.cwd(self.workspace.path()).timeout(Duration::from_secs(120));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match tool.run() {
            Ok(said) => {
                Some(Ran { code: said.code, out: text(said.stdout), err: text(said.stderr) })
            }
            Err(ToolError::Signaled { signal, .. }) => {
                Some(Ran { code: 128 + signal, out: String::new(), err: String::new() })
            }
            Err(error) => panic!("unshare cannot be run: {error}"),
        }
    }
}

#[expect(clippy::print_stdout, reason = "what a host does not allow is a result as well")]
fn say(text: &str) {
    println!("{text}");
}
