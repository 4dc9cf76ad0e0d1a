//! More machines: the seven verbs of a host, their wire format, and the transports that carry them.
//!
//! A driver sends a job to a [`Host`]: it *stages* git objects and files, *starts* a detached runner, *watches* its log
//! from an offset, *collects* the result and *reaps* what is left. The far side is the same program, started for each
//! request and ended with its answer ([`HostAgent`]); no daemon of ours waits there. What runs is the runner
//! ([`RunningJob`]), which has no driver to lose.
//!
//! ```
//! use pdca_remote::{WireMessage, VerbRequest, decode, encode};
//!
//! let name = "pdca-01JD-7-g2".parse()?;
//! let bytes = encode(&VerbRequest::Cancel { name }, &[])?;
//! let WireMessage { head, .. } = decode::<VerbRequest>(&bytes)?;
//! assert_eq!(head.verb(), "cancel");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - Every request may be sent again, because an answer may be lost after its effect: the second has the effect of the
//!   first.
//! - A job is found by its name, which has its generation. A host refuses to start, publish and hand out an attempt
//!   that is older than one it was told of; a result is whole or not there.
//! - Nothing is decided by a clock of another machine. A host is lost when it gives no sign of life for a while of the
//!   driver's own time.
//! - No credential travels: jobs name variables, and `ssh` forwards neither agent nor ports.
//! - What arrives is checked by digest, and a path or a name never leads out of the host's root.

mod agent;
mod engine;
mod fit_host;
mod follow;
mod host;
mod host_root;
mod objects;
mod offer;
mod run_job;
mod runner;
mod slurm;
mod stage;
mod sweep;
mod transport;
mod verb;
mod wire;

pub use agent::HostAgent;
pub use fit_host::FitHost;
pub use host::{Fetched, Host, HostError, HostSpec, MakePack};
pub use host_root::{HostRoot, JobDir, JobLock};
pub use offer::{HostOffer, HostRefusal, OfferContext, OfferRequest, Requirements, own_digest};
pub use run_job::{HostMachine, run_job};
pub use runner::{RunJobError, RunningJob};
pub use stage::repository_name;
pub use transport::{LocalProcess, Ssh, Transport, TransportError, is_plain_host, is_plain_root};
pub use verb::{
    Assignment, CollectRequest, Collected, JobEngine, JobState, Needs, Objects, PublishedResult,
    ReapRequest, SlurmOptions, StageRequest, StartRequest, VerbRefusal, VerbRequest, VerbResponse,
    WatchRequest, WatchResponse,
};
pub use wire::{WireError, WireMessage, decode, encode};
