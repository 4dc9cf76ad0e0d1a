//! The rights that a sandboxed child does not have, whatever its user has.
//!
//! - **Capabilities.** Root could undo a sandbox with some of them, and reach what belongs to others with most. All are
//!   dropped; files of root itself stay readable and writable. One is kept where root works in a place of another user
//!   ([`needs_override`]): without `CAP_DAC_OVERRIDE` it could not enter its own checkout there.
//! - **Keyrings.** The kernel's keyrings hold tokens of the user's session, and every process of the user can reach the
//!   user's own keyring, also from a new session keyring. So the calls for keys fail as on a kernel without them.
//! - **Input of the terminal.** `TIOCSTI` puts words into the terminal as if the person had typed them.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::access::Access;

/// The capability that root keeps in places of another user, and its number.
pub(crate) const OVERRIDE: (&str, u32) = ("CAP_DAC_OVERRIDE", 1);

/// The capability that empties the bounding set, and its number.
pub(crate) const SET_CAPABILITIES: (&str, u32) = ("CAP_SETPCAP", 8);

/// Returns true if root needs [`OVERRIDE`] for the access that it has to one of these places.
pub(crate) fn needs_override<'a>(places: impl IntoIterator<Item = (&'a Path, Access)>) -> bool {
    let mut checked = BTreeSet::new();
    rustix::process::geteuid().is_root()
        && places.into_iter().any(|(place, access)| {
            let enter = u32::from(place.is_dir());
            let write = if access == Access::Writable { 0o2 } else { 0 };
            !has_bits(place, 0o4 | write | enter)
                || place
                    .ancestors()
                    .skip(1)
                    .any(|above| checked.insert(PathBuf::from(above)) && !has_bits(above, 0o1))
        })
}

/// Returns true if the mode gives root these bits, by its identity alone. A missing path has them.
fn has_bits(path: &Path, bits: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|found| {
        let shift = match (found.uid(), found.gid()) {
            (0, _) => 6,
            (_, 0) => 3,
            _ => 0,
        };
        found.mode() >> shift & bits == bits
    }) || !path.exists()
}

/// Drops all capabilities of this thread and of every program that it executes, except for [`OVERRIDE`] if `keep`.
#[cfg(target_os = "linux")]
pub(crate) fn drop_capabilities(keep: bool) {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities,
    };
    // The kernel has about forty and refuses other numbers.
    for number in (0..64).filter(|number| !keep || *number != OVERRIDE.1) {
        let right = CapabilitySet::from_bits_retain(1 << number);
        // Fails without root privileges; then there is nothing to remove.
        let _dropped = remove_capability_from_bounding_set(right);
    }
    let _cleared = clear_ambient_capability_set();
    let kept = if keep {
        CapabilitySet::from_bits_retain(1 << OVERRIDE.1)
    } else {
        CapabilitySet::empty()
    };
    if let Ok(now) = capabilities(None) {
        // Inheritable ones would come back with the program that is executed.
        let _set = set_capabilities(
            None,
            CapabilitySets {
                effective: now.effective & kept,
                permitted: now.permitted & kept,
                inheritable: CapabilitySet::empty(),
            },
        );
    }
}

/// Returns true if this thread has the capability.
#[cfg(target_os = "linux")]
pub(crate) fn has_capability((_, number): (&str, u32)) -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let wanted = CapabilitySet::from_bits_retain(1 << number);
    capabilities(None).is_ok_and(|now| now.effective.contains(wanted))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_capabilities(_: bool) {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_capability(_: (&str, u32)) -> bool {
    false
}

/// Makes the calls for keys, and `TIOCSTI`, fail in this thread and in every program that it executes. The error says why
/// the kernel refused.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_calls() -> Result<(), String> {
    let program: Vec<seccompiler::sock_filter> = filter::program()
        .into_iter()
        .map(|filter::Instruction { code, jt, jf, k }| seccompiler::sock_filter { code, jt, jf, k })
        .collect();
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_calls() -> Result<(), String> {
    Ok(())
}

/// The filter of system calls.
#[cfg(target_os = "linux")]
mod filter {
    /// One instruction of the kernel's filter machine.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Instruction {
        pub(super) code: u16,
        pub(super) jt: u8,
        pub(super) jf: u8,
        pub(super) k: u32,
    }

    /// An architecture as the kernel names it, its `add_key`, `request_key` and `keyctl`, and its `ioctl`.
    pub(super) struct Calls {
        pub(super) arch: u32,
        pub(super) keys: [u32; 3],
        pub(super) ioctl: u32,
    }

    /// The architectures whose numbers are known. A 64-bit kernel runs 32-bit programs too. All are little-endian and
    /// have the usual numbers of `ioctl` requests.
    pub(super) const KNOWN: [Calls; 5] = [
        // x86_64
        Calls { arch: 0xC000_003E, keys: [248, 249, 250], ioctl: 16 },
        // x86
        Calls { arch: 0x4000_0003, keys: [286, 287, 288], ioctl: 54 },
        // aarch64
        Calls { arch: 0xC000_00B7, keys: [217, 218, 219], ioctl: 29 },
        // arm
        Calls { arch: 0x4000_0028, keys: [309, 310, 311], ioctl: 54 },
        // riscv64
        Calls { arch: 0xC000_00F3, keys: [217, 218, 219], ioctl: 29 },
    ];
    /// The bit in the numbers of the x32 interface of `x86_64`.
    pub(super) const X32: u32 = 0x4000_0000;
    pub(super) const TIOCSTI: u32 = 0x5412;

    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Places in the data of a call: its number, the architecture, the lower half of the second argument.
    pub(super) const NUMBER: u32 = 0;
    pub(super) const ARCH: u32 = 4;
    pub(super) const SECOND: u32 = 24;

    pub(super) const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    pub(super) const NO_SYSCALL: u32 = ERRNO + 38;
    pub(super) const NOT_PERMITTED: u32 = ERRNO + 1;

    fn load(at: u32) -> Instruction {
        Instruction { code: LOAD, jt: 0, jf: 0, k: at }
    }

    /// Skips `over` instructions unless the loaded word is `k`.
    fn unless(k: u32, over: u8) -> Instruction {
        Instruction { code: IF_EQUAL, jt: 0, jf: over, k }
    }

    fn give(k: u32) -> Instruction {
        Instruction { code: RETURN, jt: 0, jf: 0, k }
    }

    pub(super) fn program() -> Vec<Instruction> {
        let mut program = vec![load(ARCH)];
        for Calls { arch, keys, ioctl } in KNOWN {
            let mut block = vec![load(NUMBER)];
            for number in keys.into_iter().flat_map(|number| [number, number | X32]) {
                block.extend([unless(number, 1), give(NO_SYSCALL)]);
            }
            for number in [ioctl, ioctl | X32] {
                block.push(unless(number, 4));
                block.extend([load(SECOND), unless(TIOCSTI, 1), give(NOT_PERMITTED), give(ALLOW)]);
            }
            block.push(give(ALLOW));
            let length = u8::try_from(block.len()).expect("because a block is short");
            program.push(unless(arch, length));
            program.append(&mut block);
        }
        program.push(give(ALLOW));
        program
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Runs the program as the kernel does.
        fn run(arch: u32, number: u32, second: u32) -> u32 {
            let program = program();
            let (mut at, mut loaded) = (0, 0);
            loop {
                let Instruction { code, jt, jf, k } = program[at];
                at += 1;
                match code {
                    LOAD => {
                        loaded = match k {
                            NUMBER => number,
                            ARCH => arch,
                            SECOND => second,
                            other => panic!("no test loads {other}"),
                        };
                    }
                    IF_EQUAL => at += usize::from(if loaded == k { jt } else { jf }),
                    RETURN => return k,
                    other => panic!("no test knows {other}"),
                }
            }
        }

        #[test]
        fn keys_and_typed_input_are_refused_on_each_architecture_and_nothing_else() {
            for Calls { arch, keys, ioctl } in KNOWN {
                for number in (0..600).flat_map(|number| [number, number | X32]) {
                    let bare = number & !X32;
                    let expected = if keys.contains(&bare) { NO_SYSCALL } else { ALLOW };
                    assert_eq!(run(arch, number, 0), expected, "{arch:x} {number}");
                    let typed = if bare == ioctl { NOT_PERMITTED } else { expected };
                    assert_eq!(run(arch, number, TIOCSTI), typed, "{arch:x} {number}");
                }
            }
            assert_eq!(run(1, 250, TIOCSTI), ALLOW, "an unknown architecture");
        }
    }
}
