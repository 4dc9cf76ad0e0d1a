//! Room on the disk and in memory: looked at before lanes are taken, and before each start.
//!
//! What cannot be measured is said, and then the careful answer counts: no more lanes than there are
//! processors, and no floor under the disk that nobody can see.

use std::io;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};

use pdca_process::memory_support;

use crate::site::Site;

/// What is free, in bytes; an error where that cannot be told.
#[derive(Debug)]
pub struct Room {
    /// On the fullest of the disks that a run writes to.
    pub disk: io::Result<u64>,
    /// Of the machine's memory, as the kernel estimates it.
    pub memory: io::Result<u64>,
}

/// How many lanes there is room for, and what a person should know about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Fit {
    /// How many.
    pub lanes: NonZeroU32,
    /// Why there are fewer, or what could not be measured.
    pub remarks: Vec<String>,
    /// Whether the disk is short already, so that nothing may start.
    pub short: Option<Short>,
}

/// A disk with less room than a run has to leave free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// What is free, in bytes.
    pub free: u64,
    /// What has to stay free, in bytes.
    pub floor: u64,
}

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(
            f,
            "{} MiB are free on the disk, and {} MiB have to stay free",
            mib(self.free),
            mib(self.floor)
        )
    }
}

impl Site {
    /// What is free now.
    pub fn room(&self) -> Room {
        Room { disk: self.free_disk(), memory: available(Utf8Path::new("/proc/meminfo")) }
    }

    /// What is free on the fullest of the disks that a run writes to.
    fn free_disk(&self) -> io::Result<u64> {
        let mut least = u64::MAX;
        for place in [&self.workspace, &self.lanes.root] {
            least = least.min(free(place)?);
        }
        Ok(least)
    }

    /// Whether the disk is short of what has to stay free; not where that cannot be measured.
    pub(crate) fn short(&self) -> Option<Short> {
        if self.limits.min_free == 0 {
            return None;
        }
        self.free_disk().ok().and_then(|free| below(free, self.limits.min_free))
    }

    /// How many of the lanes that were asked for there is room for.
    pub fn fit(&self, lanes: NonZeroU32) -> Fit {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let processors = u32::try_from(processors).ok().and_then(NonZeroU32::new);
        let limits = (self.limits.min_free, self.limits.lane_memory);
        let mut fit = fit(lanes, &self.room(), limits, processors.unwrap_or(NonZeroU32::MIN));
        fit.remarks.extend(uncapped(self.limits.leaf_memory, memory_support()));
        fit
    }
}

/// What a person should know who asked for a cap on the memory of a leaf that cannot be held here.
fn uncapped(cap: Option<u64>, support: Result<(), String>) -> Option<String> {
    let (cap, why) = (cap?, support.err()?);
    Some(format!(
        "the memory of leaves and gates is to be capped at {} MiB, and cannot be seen here ({why}): nothing holds it",
        cap >> 20
    ))
}

fn below(free: u64, floor: u64) -> Option<Short> {
    (free < floor).then_some(Short { free, floor })
}

/// How many lanes fit. `limits` are what has to stay free on the disk, and what a lane needs of the
/// memory; 0 is not looked at.
fn fit(wanted: NonZeroU32, room: &Room, limits: (u64, u64), processors: NonZeroU32) -> Fit {
    let (min_free, lane_memory) = limits;
    let mut fit = Fit { lanes: wanted, remarks: Vec::new(), short: None };
    match &room.disk {
        _ if min_free == 0 => {}
        Ok(free) => fit.short = below(*free, min_free),
        Err(error) => fit.remarks.push(format!(
            "how much is free on the disk cannot be measured ({error}): nothing watches it"
        )),
    }
    match &room.memory {
        _ if lane_memory == 0 => {}
        Ok(free) => {
            let most = u32::try_from(free / lane_memory).unwrap_or(u32::MAX);
            let most = NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN);
            if most < wanted {
                fit.lanes = most;
                fit.remarks.push(format!(
                    "{} MiB of memory are available and a lane is reckoned with {} MiB: {most} of {wanted} lanes",
                    free >> 20,
                    lane_memory >> 20
                ));
            }
        }
        Err(error) => {
            fit.lanes = wanted.min(processors);
            fit.remarks.push(format!(
                "how much memory is available cannot be measured ({error}): {} of {wanted} lanes, as many as processors at most",
                fit.lanes
            ));
        }
    }
    fit
}

/// What is free where `place` is, or will be.
fn free(place: &Utf8Path) -> io::Result<u64> {
    let mut there: Utf8PathBuf = place.to_owned();
    while !there.exists() && there.pop() {}
    let stat = rustix::fs::statvfs(there.as_std_path())?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// What the kernel says is available, from a file like `/proc/meminfo`.
fn available(file: &Utf8Path) -> io::Result<u64> {
    let text = fs_err::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib.saturating_mul(1024))
        .ok_or_else(|| io::Error::other(format!("{file} does not say MemAvailable")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn f11_with_little_memory_there_are_fewer_lanes_and_it_is_said() {
        let room = Room { disk: Ok(u64::MAX), memory: Ok(1000 * MIB) };
        let found = fit(number(8), &room, (MIB, 256 * MIB), number(2));
        assert_eq!(found.lanes, number(3));
        assert_eq!(
            found.remarks,
            ["1000 MiB of memory are available and a lane is reckoned with 256 MiB: 3 of 8 lanes"]
        );
        let none = Room { disk: Ok(u64::MAX), memory: Ok(0) };
        assert_eq!(fit(number(8), &none, (0, MIB), number(2)).lanes, number(1), "one always goes");
        let enough = fit(number(3), &room, (MIB, 256 * MIB), number(2));
        assert_eq!((enough.lanes, enough.remarks.len()), (number(3), 0));
    }

    #[test]
    fn f13_what_cannot_be_measured_is_said_and_the_careful_answer_counts() {
        let hidden = || Err(io::Error::other("hidden"));
        let room = Room { disk: hidden(), memory: hidden() };
        let found = fit(number(8), &room, (MIB, MIB), number(2));
        assert_eq!((found.lanes, found.short), (number(2), None));
        assert_eq!(found.remarks.len(), 2);
        assert!(found.remarks.iter().all(|remark| remark.contains("cannot be measured (hidden)")));
        // Nobody asked for it to be looked at.
        assert_eq!(fit(number(8), &room, (0, 0), number(2)).remarks.len(), 0);
        let dir = tempfile::tempdir().unwrap();
        let file = Utf8Path::from_path(dir.path()).unwrap().join("meminfo");
        available(&file).unwrap_err();
        fs_err::write(&file, "MemTotal: 7 kB\n").unwrap();
        available(&file).unwrap_err();
        fs_err::write(&file, "MemTotal: 7 kB\nMemAvailable:       5 kB\n").unwrap();
        assert_eq!(available(&file).unwrap(), 5 * 1024);
    }

    #[test]
    fn a_cap_on_memory_that_cannot_be_held_is_said() {
        let blind = || Err("no process table".to_owned());
        assert_eq!(uncapped(None, blind()), None);
        assert_eq!(uncapped(Some(64 * MIB), Ok(())), None);
        let said = uncapped(Some(64 * MIB), blind()).unwrap();
        assert!(said.contains("64 MiB") && said.contains("(no process table)"), "{said}");
    }

    #[test]
    fn a_disk_below_its_floor_is_short_also_where_the_place_is_not_there_yet() {
        assert_eq!(below(5, 6), Some(Short { free: 5, floor: 6 }));
        assert_eq!(below(6, 6), None);
        let dir = tempfile::tempdir().unwrap();
        let there = Utf8Path::from_path(dir.path()).unwrap();
        assert!(free(there).unwrap() > 0);
        assert!(free(&there.join("not/yet")).unwrap() > 0);
    }
}
