//! The near side: one host, its slots, and the verbs as calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pdca_driver::leg::LegName;
use pdca_process::Cancel;
use pdca_state::sha256_hex;

use crate::offer::{HostOffer, HostRefusal, OfferRequest, Requirements};
use crate::transport::{Transport, TransportError};
use crate::verb::{
    Assignment, CollectRequest, Collected, JobEngine, Needs, ReapRequest, StageRequest,
    StartRequest, VerbRefusal, VerbRequest, VerbResponse, WatchRequest, WatchResponse,
};
use crate::wire::{self, WireError};

/// The time for a request beside what the request itself waits. It is longer than the 30 seconds
/// after which a host gives up on ending a job.
const QUICK: Duration = Duration::from_secs(60);
/// The time to bring or fetch objects and files.
const TRANSFER: Duration = Duration::from_secs(1800);

/// The configuration of a host, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    pub name: String,
    pub slots: u32,
    /// The directory on the host.
    pub root: String,
    pub engine: JobEngine,
    /// The time without an answer or a sign of life after which the host is lost.
    pub lost_after: Duration,
    /// Files of the workspace that jobs need, as paths relative to it.
    pub send: Vec<camino::Utf8PathBuf>,
}

/// A host that jobs can be sent to. Used from several threads at once.
#[derive(Debug)]
pub struct Host {
    pub spec: HostSpec,
    transport: Box<dyn Transport>,
    /// The commits that the host is known to have, by repository.
    known: Mutex<BTreeMap<String, Vec<String>>>,
}

/// A call without the answer that it is for.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host was not reached, or its answer was lost.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The answer is not one of this version.
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Refused(#[from] VerbRefusal),
    #[error("the answer is one to another request")]
    Unexpected,
    #[error("the result is not whole: {what}")]
    Damaged { what: String },
    #[error("the objects cannot be packed")]
    Objects(#[from] pdca_process::GitCallError),
}

impl HostError {
    /// Returns whether asking again may help, because the request or its answer may have been lost on the way.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport(TransportError::Link { .. })
            | Self::Wire(_)
            | Self::Refused(VerbRefusal::Host { .. } | VerbRefusal::Busy { .. }) => true,
            Self::Transport(
                TransportError::NoProgram { .. }
                | TransportError::TooLong { .. }
                | TransportError::NotPrivate { .. }
                | TransportError::Cancelled,
            )
            | Self::Refused(
                VerbRefusal::Fenced { .. }
                | VerbRefusal::Unknown { .. }
                | VerbRefusal::Cancelled
                | VerbRefusal::NoResult
                | VerbRefusal::NotStarted { .. }
                | VerbRefusal::Alive
                | VerbRefusal::Unusable { .. },
            )
            | Self::Unexpected
            | Self::Damaged { .. }
            | Self::Objects(_) => false,
        }
    }
}

/// A result, its contents by digest, and the pack of new commits.
pub type Fetched = (Collected, BTreeMap<String, Vec<u8>>, Option<Vec<u8>>);

/// Makes the pack of an assignment from the commits that a host has.
pub type MakePack<'p> = &'p dyn Fn(&[String]) -> Result<Vec<u8>, pdca_process::GitCallError>;

impl Host {
    pub fn new(spec: HostSpec, transport: Box<dyn Transport>) -> Self {
        Self { spec, transport, known: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    fn call(
        &self,
        request: &VerbRequest,
        parts: &[&[u8]],
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<(VerbResponse, Vec<Vec<u8>>), HostError> {
        let bytes = wire::encode(request, parts).map_err(WireError::from)?;
        let answer = self.transport.send(bytes, limit, cancel)?;
        let wire::WireMessage { head, parts } = wire::decode(&answer)?;
        if let VerbResponse::Refused(refusal) = head {
            return Err(refusal.into());
        }
        Ok((head, parts))
    }

    /// Asks for the facts of the host.
    pub fn offer(&self, request: OfferRequest) -> Result<HostOffer, HostError> {
        let limit = self.spec.lost_after.max(Duration::from_secs(90));
        let (answer, _) = self.call(&VerbRequest::Offer(request), &[], limit, None)?;
        let VerbResponse::Offer(offer) = answer else { return Err(HostError::Unexpected) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(offer.have.clone());
        Ok(*offer)
    }

    /// Asks for the facts of the host, and returns them or every reason not to use it.
    pub fn check(
        &self,
        required: &Requirements,
        repositories: Vec<String>,
    ) -> Result<HostOffer, Vec<HostRefusal>> {
        let mut programs = required.programs.clone();
        programs.extend(required.engine.programs().iter().map(|program| (*program).to_owned()));
        let gates = required.gates.clone();
        match self.offer(OfferRequest { programs, repositories, gates }) {
            Ok(offer) => {
                let refusals = offer.refusals(required);
                if refusals.is_empty() { Ok(offer) } else { Err(refusals) }
            }
            Err(HostError::Transport(TransportError::NoProgram { .. })) => {
                Err(vec![HostRefusal::NoProgram])
            }
            // A program of another version does not understand the request.
            Err(HostError::Wire(WireError::Head(_)) | HostError::Unexpected) => {
                let (theirs, ours) = ("unknown".to_owned(), required.program.clone());
                Err(vec![HostRefusal::OtherProgram { theirs, ours }])
            }
            Err(error) => {
                let said = pdca_state::chain(&error);
                let said = said.lines().last().unwrap_or_default().to_owned();
                Err(vec![HostRefusal::Unreachable { said }])
            }
        }
    }

    /// Puts a program on the host.
    pub fn install(&self, program: Vec<u8>) -> Result<(), HostError> {
        Ok(self.transport.install(program, TRANSFER)?)
    }

    /// Brings what a job needs. Sends what the host is believed to lack, and once more what it then says it lacks.
    pub fn stage(
        &self,
        assignment: &Assignment,
        contents: &BTreeMap<String, Vec<u8>>,
        make_pack: MakePack<'_>,
        cancel: &Cancel,
    ) -> Result<(), HostError> {
        // Two rounds at most: the answer to the first names all that is missing, so a host that
        // still lacks something does not keep what it gets.
        let believed = self.believed_needs(assignment, contents);
        if let Some(needs) = self.stage_once(assignment, contents, &believed, make_pack, cancel)?
            && self.stage_once(assignment, contents, &needs, make_pack, cancel)?.is_some()
        {
            return Err(HostError::Unexpected);
        }
        if let Some(objects) = &assignment.objects {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let of = known.entry(objects.repository.clone()).or_default();
            of.extend(
                objects
                    .commits
                    .iter()
                    .filter(|commit| !of.contains(commit))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
        }
        Ok(())
    }

    /// Small contents are sent unasked, which saves a round trip; large ones are asked for first.
    fn believed_needs(
        &self,
        assignment: &Assignment,
        contents: &BTreeMap<String, Vec<u8>>,
    ) -> Needs {
        const SMALL: usize = 16 << 10;
        const TOGETHER: usize = 128 << 10;
        let mut together = 0;
        let mut small = Vec::new();
        for (digest, bytes) in contents {
            if bytes.len() <= SMALL && together + bytes.len() <= TOGETHER {
                together += bytes.len();
                small.push(digest.clone());
            }
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let have = assignment.objects.as_ref().and_then(|objects| {
            let have = known.get(&objects.repository)?;
            let lacks = objects.commits.iter().any(|commit| !have.contains(commit));
            // Without a common commit the pack would have the whole history, which another driver
            // may have brought before. The host is asked first.
            (lacks && !have.is_empty()).then(|| have.clone())
        });
        Needs { have, contents: small }
    }

    fn stage_once(
        &self,
        assignment: &Assignment,
        contents: &BTreeMap<String, Vec<u8>>,
        needs: &Needs,
        make_pack: MakePack<'_>,
        cancel: &Cancel,
    ) -> Result<Option<Needs>, HostError> {
        let pack = needs.have.as_ref().map(|have| make_pack(have)).transpose()?;
        let mut parts: Vec<&[u8]> = pack.iter().map(Vec::as_slice).collect();
        for digest in &needs.contents {
            let missing = || HostError::Damaged { what: format!("no content {digest} here") };
            parts.push(contents.get(digest).ok_or_else(missing)?);
        }
        let request = StageRequest { assignment: assignment.clone(), has_pack: pack.is_some() };
        let request = VerbRequest::Stage(Box::new(request));
        let (answer, _) = self.call(&request, &parts, TRANSFER, Some(cancel))?;
        if let VerbResponse::Needs(needs) = answer {
            return Ok(Some(needs));
        }
        if answer == VerbResponse::Staged { Ok(None) } else { Err(HostError::Unexpected) }
    }

    /// Starts a staged job, or finds it running. Returns whether it was there before.
    pub fn start(&self, name: &LegName, cancel: &Cancel) -> Result<bool, HostError> {
        let request = StartRequest {
            name: name.clone(),
            slots: self.spec.slots,
            engine: self.spec.engine.clone(),
        };
        let (answer, _) = self.call(&VerbRequest::Start(request), &[], QUICK, Some(cancel))?;
        let VerbResponse::Started { already } = answer else { return Err(HostError::Unexpected) };
        Ok(already)
    }

    /// Returns the log from an offset, when there is something new or after `wait`.
    pub fn watch(
        &self,
        name: &LegName,
        offset: u64,
        wait: Duration,
        cancel: &Cancel,
    ) -> Result<(WatchResponse, Vec<u8>), HostError> {
        let wait_ms = wait.as_millis().try_into().unwrap_or(u64::MAX);
        let request = VerbRequest::Watch(WatchRequest { name: name.clone(), offset, wait_ms });
        let limit = wait + self.spec.lost_after;
        let (answer, mut parts) = self.call(&request, &[], limit, Some(cancel))?;
        let VerbResponse::Watched(watched) = answer else { return Err(HostError::Unexpected) };
        Ok((watched, parts.pop().unwrap_or_default()))
    }

    /// Ends a job for good. On return nothing of it is alive.
    pub fn cancel(&self, name: &LegName) -> Result<(), HostError> {
        let (answer, _) =
            // Not ended by the driver's own cancellation, which is the usual reason for this call.
            self.call(&VerbRequest::Cancel { name: name.clone() }, &[], QUICK, None)?;
        if answer == VerbResponse::Cancelled { Ok(()) } else { Err(HostError::Unexpected) }
    }

    /// Fetches the result of a job, and checks every digest.
    pub fn collect(
        &self,
        name: &LegName,
        known: Vec<String>,
        cancel: &Cancel,
    ) -> Result<Fetched, HostError> {
        let request = VerbRequest::Collect(CollectRequest { name: name.clone(), known });
        let (VerbResponse::Collected(collected), mut parts) =
            self.call(&request, &[], TRANSFER, Some(cancel))?
        else {
            return Err(HostError::Unexpected);
        };
        // The digest of the message says that it is whole, and not that it is about this attempt.
        if collected.published.name != *name {
            let what = format!("it is of {}", collected.published.name);
            return Err(HostError::Damaged { what });
        }
        let pack = if collected.has_pack { parts.pop() } else { None };
        let mut contents = BTreeMap::new();
        for (digest, bytes) in collected.contents.iter().zip(parts) {
            if sha256_hex(&bytes) != *digest {
                return Err(HostError::Damaged { what: format!("content {digest}") });
            }
            contents.insert(digest.clone(), bytes);
        }
        Ok((*collected, contents, pack))
    }

    /// Removes what is older than the fence, and results that were taken.
    pub fn reap(&self, request: ReapRequest) -> Result<Vec<LegName>, HostError> {
        let (answer, _) = self.call(&VerbRequest::Reap(request), &[], QUICK, None)?;
        let VerbResponse::Reaped { jobs } = answer else { return Err(HostError::Unexpected) };
        Ok(jobs)
    }
}
