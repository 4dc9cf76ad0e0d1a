//! Claims lane 0 of a repository, resets it to HEAD and prints its path.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use camino::Utf8PathBuf;
use pdca_lanes::{Lanes, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(Utf8PathBuf::from);
    let (Some(repository), Some(root)) = (arguments.next(), arguments.next()) else {
        return Err("usage: checkout REPOSITORY LANES_ROOT".into());
    };
    let target = Target::open("app", &repository)?;
    let base = target.resolve(None)?;
    let lane = Lanes::new(root).claim(0, &target)?;
    // The lane may hold work of an earlier claim, which a reset would delete.
    lane.rescue("left-over")?;
    lane.reset(&base.commit)?;
    println!("{} at {}", lane.path(), base.commit);
    Ok(())
}
