//! A block of ports for one lane.
//!
//! # Holding a block
//! The ports must be free for the processes in the lane, so the holder cannot keep them bound. A block is therefore ten
//! ports and an eleventh behind them, the *guard*:
//!
//! 1. The guard is bound on the loopback address, and stays bound for as long as the [`PortBlock`] lives. Two lanes
//!    therefore never have the same block at the same time, in whatever workspace and of whatever user: the kernel
//!    binds a port only once. Unlike a lock file it does so among exactly those that share ports (a network namespace
//!    or a `/tmp` may be private), and it frees the port when the holder dies.
//! 2. Each of the ten ports is bound once on loopback, IPv4 and IPv6, and released. So no program listened on any of
//!    them when the block was taken.
//!
//! A program that knows nothing of lanes may still take one of the ten later. The default range lies below the ports
//! that Linux assigns to outgoing connections, so this does not happen by chance.
//!
//! Each workspace starts at its own offset in the range, and its slots follow one another, so a lane usually has the
//! same ports every time. If its block is taken, it gets the next free one.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::names::WorkspaceId;

/// The number of ports of a lane, from its `PDCA_PORT_BASE` on.
pub const PORTS_PER_LANE: u16 = 10;
/// The size of a block with its guard.
const STRIDE: u16 = PORTS_PER_LANE + 1;
/// The lowest port that needs no privileges.
const LOWEST: u16 = 1024;
/// The number of blocks in the largest possible range.
pub const MOST_PORT_BLOCKS: u32 = 5_864;

/// The ports that lanes may use, written `"20000-29999"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// Failure to parse a range of ports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PortRangeError {
    /// The text has another form.
    #[error("{text:?} is not of the form \"20000-29999\"")]
    Form {
        /// The text as given.
        text: String,
    },
    /// Ports below 1024 belong to the system.
    #[error("ports below {LOWEST} belong to the system, and {first} is one")]
    System {
        /// The first port of the range.
        first: u16,
    },
    /// The range has no room for even one lane.
    #[error("a lane needs {STRIDE} ports, and {first}-{last} has fewer")]
    Narrow {
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
}

/// Failure to take ports for a lane.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PortError {
    /// Every block has a port in use.
    #[error("none of the {blocks} blocks of ports in {range} is free")]
    NoneFree {
        /// The range that was searched.
        range: PortRange,
        /// The number of blocks in it.
        blocks: u16,
    },
    /// Binding a port failed for another reason than its being in use.
    #[error("cannot bind port {port} of the loopback address")]
    Bind {
        /// The port.
        port: u16,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// Ten ports that are reserved for as long as this value lives.
#[derive(Debug)]
pub struct PortBlock {
    base: u16,
    _guard: TcpListener,
}

impl PortBlock {
    /// Returns the first of the ten ports.
    pub fn base(&self) -> u16 {
        self.base
    }
}

impl Default for PortRange {
    /// `20000-29999`: below the ports that Linux assigns to outgoing connections, which start at 32768.
    fn default() -> Self {
        Self { first: 20_000, last: 29_999 }
    }
}

impl PortRange {
    /// Creates a range with room for at least one lane.
    pub fn new(first: u16, last: u16) -> Result<Self, PortRangeError> {
        if first < LOWEST {
            return Err(PortRangeError::System { first });
        }
        if last.checked_sub(first).is_none_or(|more| more < STRIDE - 1) {
            return Err(PortRangeError::Narrow { first, last });
        }
        Ok(Self { first, last })
    }

    /// Returns the first port of the block that a slot gets unless it is taken.
    pub fn preferred(self, workspace: &WorkspaceId, slot: u32) -> u16 {
        self.base_of(self.place(workspace, slot))
    }

    /// Takes a block for a slot: the preferred one, or else the next free one.
    pub fn take(self, workspace: &WorkspaceId, slot: u32) -> Result<PortBlock, PortError> {
        let preferred = self.place(workspace, slot);
        let blocks = self.blocks();
        for block in (preferred..blocks).chain(0..preferred) {
            if let Some(block) = take_block(self.base_of(block))? {
                return Ok(block);
            }
        }
        Err(PortError::NoneFree { range: self, blocks })
    }

    /// Returns the number of lanes that can have ports in this range at the same time.
    pub fn blocks(self) -> u16 {
        // No range begins at 0, so the sum fits.
        (self.last - self.first + 1) / STRIDE
    }

    fn base_of(self, block: u16) -> u16 {
        self.first + block * STRIDE
    }

    /// Returns the index of the block that a slot prefers.
    fn place(self, workspace: &WorkspaceId, slot: u32) -> u16 {
        let place = workspace.number().wrapping_add(u64::from(slot)) % u64::from(self.blocks());
        u16::try_from(place).expect("there are fewer blocks than ports")
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ends = text.split_once('-').and_then(|(first, last)| {
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        });
        let (first, last) = ends.ok_or_else(|| PortRangeError::Form { text: text.to_owned() })?;
        Self::new(first, last)
    }
}

impl TryFrom<String> for PortRange {
    type Error = PortRangeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> Self {
        range.to_string()
    }
}

/// Takes the block at `base`; `None` if the guard or any port of it is in use.
fn take_block(base: u16) -> Result<Option<PortBlock>, PortError> {
    // The guard comes first: two processes that probe the ten ports at the same time would both find them free.
    let Some(guard) = bind(Ipv4Addr::LOCALHOST.into(), base + PORTS_PER_LANE)? else {
        return Ok(None);
    };
    for port in base..base + PORTS_PER_LANE {
        // Held while IPv6 is tried, and released with the end of this round.
        let four = bind(Ipv4Addr::LOCALHOST.into(), port)?;
        if four.is_none() || !is_free_on_six(port)? {
            return Ok(None);
        }
    }
    Ok(Some(PortBlock { base, _guard: guard }))
}

/// Binds a port; `None` if it is in use.
fn bind(address: IpAddr, port: u16) -> Result<Option<TcpListener>, PortError> {
    match TcpListener::bind((address, port)) {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(source) => Err(PortError::Bind { port, source }),
    }
}

/// Returns true if a port is free on the loopback address of IPv6, or if the host has no IPv6.
fn is_free_on_six(port: u16) -> Result<bool, PortError> {
    match bind(Ipv6Addr::LOCALHOST.into(), port) {
        Ok(bound) => Ok(bound.is_some()),
        Err(PortError::Bind { source, .. }) if is_without_six(&source) => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_without_six(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn workspace(path: &str) -> WorkspaceId {
        WorkspaceId::of(path.into())
    }

    /// A range with room for some lanes that no other test uses, not even in another process.
    fn own_range(test: u16, blocks: u16) -> PortRange {
        let process = u16::try_from(std::process::id() % 100).unwrap();
        let first = 10_000 + process * 120 + test * 40;
        PortRange::new(first, first + blocks * STRIDE - 1).unwrap()
    }

    #[test]
    fn no_range_has_more_blocks_than_the_largest() {
        let largest = PortRange::new(LOWEST, u16::MAX).unwrap();
        assert_eq!(u32::from(largest.blocks()), MOST_PORT_BLOCKS);
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        let range: PortRange = "20000-29999".parse().unwrap();
        assert_eq!(range, PortRange::default());
        assert_eq!(range.to_string(), "20000-29999");
        assert_eq!(range.blocks(), 909);
        assert_eq!("65525-65535".parse::<PortRange>().unwrap().blocks(), 1);
    }

    #[test]
    fn a_range_that_no_lane_fits_in_is_refused() {
        for text in ["", "20000", "a-b", "1-2-3", "-5", "20000-70000"] {
            let refused = text.parse::<PortRange>();
            assert!(matches!(refused, Err(PortRangeError::Form { .. })), "{text:?}: {refused:?}");
        }
        let system = "1000-2000".parse::<PortRange>();
        assert_eq!(system, Err(PortRangeError::System { first: 1000 }));
        for text in ["20000-20009", "20001-20000"] {
            let refused = text.parse::<PortRange>();
            assert!(matches!(refused, Err(PortRangeError::Narrow { .. })), "{text:?}: {refused:?}");
        }
    }

    #[test]
    fn a_block_is_held_until_it_is_given_back_and_its_ports_are_free_to_bind() {
        let here = workspace("/one");
        let range = own_range(0, 2);
        let block = range.take(&here, 0).unwrap();
        let other = range.take(&here, 0).unwrap();
        assert_ne!(block.base(), other.base(), "the same slot of somebody else gets other ports");
        let mut bound = HashSet::new();
        for port in block.base()..block.base() + PORTS_PER_LANE {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            bound.insert(listener.local_addr().unwrap().port());
        }
        assert_eq!(bound.len(), 10);
        let base = block.base();
        assert!(take_block(base).unwrap().is_none());
        drop(block);
        assert_eq!(take_block(base).unwrap().unwrap().base(), base);
    }

    #[test]
    fn a_block_with_a_port_in_use_is_passed_over() {
        let here = workspace("/two");
        let range = own_range(1, 3);
        let preferred = range.preferred(&here, 0);
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, preferred + 7)).unwrap();
        let block = range.take(&here, 0).unwrap();
        assert_ne!(block.base(), preferred);
        drop(stranger);
    }

    #[test]
    fn a_range_that_is_used_up_says_so() {
        let here = workspace("/three");
        let range = own_range(2, 2);
        let held = [range.take(&here, 0).unwrap(), range.take(&here, 0).unwrap()];
        assert_ne!(held[0].base(), held[1].base());
        let refused = range.take(&here, 0).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("none of the 2 blocks of ports in {range} is free")
        );
    }

    proptest! {
        #[test]
        fn the_preferred_blocks_of_a_workspace_lie_in_the_range_and_apart(
            path in "/[a-z]{1,8}", first in 1024_u16..60_000, slots in 1_u32..50,
        ) {
            let here = workspace(&path);
            let range = PortRange::new(first, first + 50 * STRIDE).unwrap();
            let mut seen = HashSet::new();
            for slot in 0..slots {
                let base = range.preferred(&here, slot);
                prop_assert!(base >= first && base + STRIDE - 1 <= range.last);
                prop_assert_eq!((base - first) % STRIDE, 0);
                prop_assert!(seen.insert(base));
                prop_assert_eq!(base, range.preferred(&here, slot));
            }
        }
    }
}
