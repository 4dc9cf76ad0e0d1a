//! The mask for new files and the resource limits of a child that must not depend on the shell that started the driver.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// The permissions that new files do not get.
const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// The soft limits; a lower hard limit of the driver cannot be raised and stays. `None` is no limit.
const LIMITS: [(Resource, &str, Option<u64>); 7] = [
    (Resource::Core, "core", Some(0)),
    (Resource::Nofile, "nofile", Some(4096)),
    (Resource::Stack, "stack", Some(8 << 20)),
    (Resource::Cpu, "cpu", None),
    (Resource::Fsize, "fsize", None),
    (Resource::Data, "data", None),
    (Resource::As, "as", None),
];

/// The limits that a child with [`Spec::fixed_limits`](crate::Spec::fixed_limits) gets.
#[derive(Debug, Clone, Copy)]
pub struct FixedLimits;

impl FixedLimits {
    /// Sets them for this process and everything that it starts.
    pub(crate) fn apply() {
        umask(MASK);
        for (resource, _, wanted) in LIMITS {
            let maximum = getrlimit(resource).maximum;
            // A soft limit up to the hard one can always be set.
            let _set = setrlimit(resource, Rlimit { current: granted(wanted, maximum), maximum });
        }
    }

    /// Returns the limits that this process cannot grant, one line each: those whose hard limit is lower. They decide what a
    /// child can do, so a verdict of a child counts only under the same ones.
    pub fn not_granted() -> Vec<String> {
        let lower = LIMITS.iter().filter_map(|(resource, name, wanted)| {
            let current = granted(*wanted, getrlimit(*resource).maximum);
            (current != *wanted).then(|| format!("{name} {current:?}"))
        });
        lower.collect()
    }
}

fn granted(wanted: Option<u64>, maximum: Option<u64>) -> Option<u64> {
    wanted.into_iter().chain(maximum).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_limit_below_the_fixed_one_counts() {
        assert_eq!(granted(Some(8), None), Some(8));
        assert_eq!(granted(Some(8), Some(4)), Some(4));
        assert_eq!(granted(None, Some(4)), Some(4));
        assert_eq!(granted(None, None), None);
    }
}
