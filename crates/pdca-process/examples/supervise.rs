//! Runs a command line under a timeout of five seconds and prints its ending.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use pdca_process::{Cancel, Spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Must come first: the supervisor of the child is this program itself.
    pdca_process::maybe_supervise();

    let mut argv: Vec<_> = std::env::args_os().skip(1).collect();
    if argv.is_empty() {
        argv = vec!["echo".into(), "hello".into()];
    }
    let job = tempfile::tempdir()?;
    let job = camino::Utf8Path::from_path(job.path()).ok_or("the path is not UTF-8")?;
    let mut spec = Spec::new(argv, ".", job);
    spec.timeout = Some(Duration::from_secs(5));
    let verdict = pdca_process::run(&spec, &Cancel::new(), &mut |_sign| {})?;
    println!("{} after {:?}, {} bytes", verdict.ending, verdict.duration, verdict.output.bytes);
    Ok(())
}
