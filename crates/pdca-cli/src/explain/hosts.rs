//! Adds remedies to the errors of hosts.

use pdca_workspace::hosts::HostsError;

use crate::failure::Failure;

pub(crate) fn explain(error: &HostsError) -> Failure {
    match error {
        HostsError::Unknown { name, configured } => {
            let hint = match configured.as_slice() {
                [] => format!("`pdca hosts add {name}` adds it"),
                known => format!("hosts: {}; `pdca hosts add {name}` adds it", known.join(", ")),
            };
            Failure::usage(error.to_string()).hint(hint)
        }
        HostsError::Implausible { .. } => Failure::usage(error.to_string())
            .hint("a host is a name of ~/.ssh/config, a root begins with `~/` or `/`"),
        HostsError::Install { name, .. } => Failure::unexpected(error.to_string()).hint(format!(
            "`ssh {name} true` shows what keeps it; addresses and keys are those of ~/.ssh/config"
        )),
        HostsError::Panicked => Failure::unexpected(error.to_string()),
    }
}
