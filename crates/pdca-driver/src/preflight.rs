//! Free disk and memory, checked before lanes are claimed and before each start.
//!
//! A value that cannot be measured is reported, and the cautious answer is used: no more lanes than
//! processors, and no check of the disk.

use std::io;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};

use pdca_lanes::{PortRange, Target};
use pdca_process::memory_support;

use crate::config::WorkspaceConfig;

/// Free bytes, or the error of measuring them.
#[derive(Debug)]
pub struct FreeSpace {
    /// On the fullest of the disks that a run writes to.
    pub disk: io::Result<u64>,
    /// Available memory as estimated by the kernel.
    pub memory: io::Result<u64>,
}

/// The number of lanes that fit, with remarks for people.
#[derive(Debug, PartialEq, Eq)]
pub struct Fit {
    pub lanes: NonZeroU32,
    /// Reasons for fewer lanes, and values that could not be measured.
    pub remarks: Vec<String>,
    /// Set if the disk is already too full for anything to start.
    pub short: Option<Short>,
}

/// The resources that lanes need, and those that must stay free.
#[derive(Debug, Clone)]
pub struct LaneNeeds {
    /// Bytes that must stay free on the disk.
    pub min_free: u64,
    /// Bytes of memory per lane; 0 disables the check.
    pub lane_memory: u64,
    /// Bytes of disk per checkout; `None` if unknown.
    pub checkout: Option<u64>,
    pub ports: PortRange,
}

/// The number of lanes for `lanes = "auto"`, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reckoning {
    /// At least one.
    pub lanes: NonZeroU32,
    /// The limit that each resource sets, the scarcest first.
    pub because: String,
}

impl std::fmt::Display for Reckoning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lanes = if self.lanes == NonZeroU32::MIN { "lane" } else { "lanes" };
        write!(f, "auto: {} {lanes} ({})", self.lanes, self.because)
    }
}

impl LaneNeeds {
    /// Computes the number of lanes for a machine whose lanes and workspace are at `places`.
    pub fn reckon<'a>(&self, places: impl IntoIterator<Item = &'a Utf8Path>) -> Reckoning {
        reckon(self, &FreeSpace::at(places), processors())
    }
}

/// A disk with less free space than must stay free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// In bytes.
    pub free: u64,
    /// In bytes.
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

impl FreeSpace {
    /// Measures free disk at `places` and free memory.
    fn at<'a>(places: impl IntoIterator<Item = &'a Utf8Path>) -> Self {
        Self { disk: least_free(places), memory: available(Utf8Path::new("/proc/meminfo")) }
    }
}

/// Measures the disks that the workspace writes to, and free memory.
pub fn room(config: &WorkspaceConfig) -> FreeSpace {
    FreeSpace::at(written_to(config))
}

/// The directories whose disks a run fills.
fn written_to(config: &WorkspaceConfig) -> [&Utf8Path; 2] {
    [&config.dirs.root, &config.lanes.root]
}

fn free_disk(config: &WorkspaceConfig) -> io::Result<u64> {
    least_free(written_to(config))
}

/// Returns as many lanes as processors, memory, disk and ports allow. The disk is computed as if no lane existed
/// yet, each with a checkout of the largest target.
pub fn reckon_lanes(config: &WorkspaceConfig) -> Reckoning {
    let sizes = config.targets.iter().filter_map(|spec| {
        // An unreadable target stops the run later, with a better message.
        let target = Target::open(&spec.name, &spec.path).ok()?;
        let branch = spec.branch.as_deref().or(config.default_branch.as_deref());
        target.checkout_size(&target.resolve(branch).ok()?.commit).ok()
    });
    let needs = LaneNeeds {
        min_free: config.limits.min_free,
        lane_memory: config.limits.lane_memory,
        checkout: sizes.max(),
        ports: config.lanes.ports,
    };
    needs.reckon(written_to(config))
}

/// Returns whether the disk is too full to start anything; `None` also where it cannot be measured.
pub(crate) fn short(config: &WorkspaceConfig) -> Option<Short> {
    if config.limits.min_free == 0 {
        return None;
    }
    free_disk(config).ok().and_then(|free| below(free, config.limits.min_free))
}

/// Limits the requested lanes to those that have ports; for lanes in which nothing runs yet.
pub fn fit_ports(config: &WorkspaceConfig, lanes: NonZeroU32) -> Fit {
    let mut fit = Fit { lanes, remarks: Vec::new(), short: None };
    fit.keep_to_ports(config.lanes.ports);
    fit
}

/// Limits the requested lanes to those that memory, ports and processors allow.
pub fn fit_lanes(config: &WorkspaceConfig, lanes: NonZeroU32) -> Fit {
    let limits = (config.limits.min_free, config.limits.lane_memory);
    let mut fit = fit(lanes, &room(config), limits, processors());
    fit.keep_to_ports(config.lanes.ports);
    fit.remarks.extend(uncapped(config.limits.leaf_memory, memory_support()));
    fit
}

impl Fit {
    /// Limits the lanes to the number of port blocks, because each lane in use holds one.
    fn keep_to_ports(&mut self, ports: PortRange) {
        let most = at_least_one(u32::from(ports.blocks()));
        if most < self.lanes {
            let asked = std::mem::replace(&mut self.lanes, most);
            self.remarks.push(format!(
                "the ports {ports} are enough for {most} lanes: {most} of {asked}; `ports` in [lanes] is the range"
            ));
        }
    }
}

/// Computes the number of lanes from measured values, with the reason.
fn reckon(needs: &LaneNeeds, room: &FreeSpace, processors: NonZeroU32) -> Reckoning {
    let of = |free: u64, each: u64| u32::try_from(free / each.max(1)).unwrap_or(u32::MAX);
    let mut unknown = Vec::new();
    let memory = match &room.memory {
        _ if needs.lane_memory == 0 => None,
        Ok(free) => Some(of(*free, needs.lane_memory)),
        Err(error) => {
            unknown.push(format!("memory cannot be measured: {error}"));
            None
        }
    };
    let disk = match (&room.disk, needs.checkout) {
        (Ok(free), Some(checkout)) => Some(of(free.saturating_sub(needs.min_free), checkout)),
        (Err(error), _) => {
            unknown.push(format!("disk cannot be measured: {error}"));
            None
        }
        (Ok(_), None) => {
            unknown.push("the size of a checkout is not known".to_owned());
            None
        }
    };
    let mut allowed = vec![(processors.get(), None)];
    allowed.extend(memory.map(|most| (most, Some("memory"))));
    allowed.extend(disk.map(|most| (most, Some("disk"))));
    let ports = u32::from(needs.ports.blocks());
    // Named only if scarcer than everything else, which is rare.
    if allowed.iter().all(|(most, _)| ports < *most) {
        allowed.push((ports, Some("range of ports")));
    }
    // The sort is stable, so processors are named first where several are equally scarce.
    allowed.sort_by_key(|(most, _)| *most);
    let scarcest = allowed.first().map_or(1, |(most, _)| *most);
    let say = |(most, what): &(u32, Option<&str>)| match what {
        Some(what) => format!("{what} allows {most}"),
        None if *most == 1 => "1 core".to_owned(),
        None => format!("{most} cores"),
    };
    let said: Vec<String> = allowed.iter().map(say).chain(unknown).collect();
    let because = match said.split_first() {
        Some((first, others)) if !others.is_empty() => format!("{first}; {}", others.join(", ")),
        Some(_) | None => said.concat(),
    };
    Reckoning { lanes: at_least_one(scarcest), because }
}

/// Returns the number of processors this process may use.
fn processors() -> NonZeroU32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    at_least_one(u32::try_from(processors).unwrap_or(u32::MAX))
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

/// Returns a remark if a memory cap is configured and cannot be enforced here.
fn uncapped(cap: Option<u64>, support: Result<(), String>) -> Option<String> {
    let (cap, why) = (cap?, support.err()?);
    Some(format!(
        "the memory limit of {} MiB for leaves and gates cannot be enforced here ({why})",
        cap >> 20
    ))
}

fn below(free: u64, floor: u64) -> Option<Short> {
    (free < floor).then_some(Short { free, floor })
}

/// Computes how many of the `wanted` lanes fit. `limits` are the free disk space to keep and the memory per
/// lane, in bytes; 0 disables the check.
fn fit(wanted: NonZeroU32, room: &FreeSpace, limits: (u64, u64), processors: NonZeroU32) -> Fit {
    let (min_free, lane_memory) = limits;
    let mut fit = Fit { lanes: wanted, remarks: Vec::new(), short: None };
    match &room.disk {
        _ if min_free == 0 => {}
        Ok(free) => fit.short = below(*free, min_free),
        Err(error) => fit
            .remarks
            .push(format!("free disk space cannot be measured ({error}): it is not checked")),
    }
    match &room.memory {
        _ if lane_memory == 0 => {}
        Ok(free) => {
            let most = u32::try_from(free / lane_memory).unwrap_or(u32::MAX);
            let most = at_least_one(most);
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
                "available memory cannot be measured ({error}): {} of {wanted} lanes, at most one per processor",
                fit.lanes
            ));
        }
    }
    fit
}

/// Returns the free space on the fullest of the disks of these places.
fn least_free<'a>(places: impl IntoIterator<Item = &'a Utf8Path>) -> io::Result<u64> {
    places.into_iter().try_fold(u64::MAX, |least, place| Ok(least.min(free(place)?)))
}

/// Returns the free space at `place`, or at its nearest parent that exists.
fn free(place: &Utf8Path) -> io::Result<u64> {
    let mut there: Utf8PathBuf = place.to_owned();
    // The lanes' directory may not exist before the first run.
    while !there.exists() && there.pop() {}
    let stat = rustix::fs::statvfs(there.as_std_path())?;
    // `f_bavail`, not `f_bfree`: blocks that are reserved for root are of no use here. Counted in
    // `f_frsize`; `f_bsize` is only the preferred size of a transfer.
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Reads the available memory from a file like `/proc/meminfo`.
fn available(file: &Utf8Path) -> io::Result<u64> {
    let text = fs_err::read_to_string(file)?;
    // Not `MemFree`, which leaves out caches that the kernel gives back on demand.
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
        let room = FreeSpace { disk: Ok(u64::MAX), memory: Ok(1000 * MIB) };
        let found = fit(number(8), &room, (MIB, 256 * MIB), number(2));
        assert_eq!(found.lanes, number(3));
        assert_eq!(
            found.remarks,
            ["1000 MiB of memory are available and a lane is reckoned with 256 MiB: 3 of 8 lanes"]
        );
        let none = FreeSpace { disk: Ok(u64::MAX), memory: Ok(0) };
        assert_eq!(fit(number(8), &none, (0, MIB), number(2)).lanes, number(1), "one always goes");
        let enough = fit(number(3), &room, (MIB, 256 * MIB), number(2));
        assert_eq!((enough.lanes, enough.remarks.len()), (number(3), 0));
    }

    #[test]
    fn f13_what_cannot_be_measured_is_said_and_the_careful_answer_counts() {
        let hidden = || Err(io::Error::other("hidden"));
        let room = FreeSpace { disk: hidden(), memory: hidden() };
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
    fn auto_takes_what_the_scarcest_thing_allows_and_names_it_first() {
        let room =
            |memory: u64, disk: u64| FreeSpace { disk: Ok(disk * MIB), memory: Ok(memory * MIB) };
        let hidden = || Err(io::Error::other("hidden"));
        let wide = PortRange::new(20_000, 29_999).unwrap();
        let needs = |checkout| LaneNeeds {
            min_free: 1000 * MIB,
            lane_memory: 256 * MIB,
            checkout,
            ports: wide,
        };
        let ten = needs(Some(10 * MIB));
        let careless = LaneNeeds { min_free: 0, lane_memory: 0, ..ten.clone() };
        let narrow = LaneNeeds { ports: PortRange::new(20_000, 20_021).unwrap(), ..ten.clone() };
        let table = [
            (
                &ten,
                room(23_040, 5000),
                2,
                "auto: 2 lanes (2 cores; memory allows 90, disk allows 400)",
            ),
            (&ten, room(700, 5000), 8, "auto: 2 lanes (memory allows 2; 8 cores, disk allows 400)"),
            (
                &ten,
                room(23_040, 1030),
                8,
                "auto: 3 lanes (disk allows 3; 8 cores, memory allows 90)",
            ),
            (
                &ten,
                room(23_040, 5000),
                1,
                "auto: 1 lane (1 core; memory allows 90, disk allows 400)",
            ),
            (&ten, room(0, 0), 8, "auto: 1 lane (memory allows 0; disk allows 0, 8 cores)"),
            (&careless, room(0, 30), 2, "auto: 2 lanes (2 cores; disk allows 3)"),
            (
                &narrow,
                room(23_040, 5000),
                8,
                "auto: 2 lanes (range of ports allows 2; 8 cores, memory allows 90, disk allows 400)",
            ),
            (
                &ten,
                FreeSpace { disk: hidden(), memory: hidden() },
                4,
                "auto: 4 lanes (4 cores; memory cannot be measured: hidden, disk cannot be measured: hidden)",
            ),
            (
                &needs(None),
                room(23_040, 5000),
                4,
                "auto: 4 lanes (4 cores; memory allows 90, the size of a checkout is not known)",
            ),
        ];
        for (needs, room, processors, said) in table {
            assert_eq!(reckon(needs, &room, number(processors)).to_string(), said);
        }
    }

    #[test]
    fn a_lane_without_ports_is_not_taken_and_it_is_said() {
        let fit = |lanes, ports: (u16, u16)| {
            let mut fit = Fit { lanes: number(lanes), remarks: Vec::new(), short: None };
            fit.keep_to_ports(PortRange::new(ports.0, ports.1).unwrap());
            fit
        };
        let few = fit(u32::MAX, (20_000, 29_999));
        assert_eq!(few.lanes, number(909));
        assert!(few.remarks[0].contains("909 of 4294967295"), "{:?}", few.remarks);
        let enough = fit(909, (20_000, 29_999));
        assert_eq!((enough.lanes, enough.remarks.len()), (number(909), 0));
        assert_eq!(fit(5, (20_000, 20_010)).lanes, number(1));
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
