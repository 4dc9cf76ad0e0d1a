//! The protocol between the driver and the supervisor.
//!
//! They share one stream socket, which is the supervisor's standard input when it starts. The driver's end closes when
//! the driver dies, in whatever way, so the socket is also the lifeline.
//!
//! ```text
//! driver → supervisor   one byte: D (detached) or T (keeps the terminal), with three descriptors
//!                       if the child inherits any of them
//!                       a frame: the order, as JSON
//!                       a frame: the bytes of the child's standard input
//!                       then at any time: c (cancel), k (kill), r (the stopped child may go on)
//! supervisor → driver   lines of JSON, one message each; the last one is the ending
//! ```
//!
//! A frame is its length in four bytes, little-endian, and then that many bytes.

use std::io;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::programs::{self, find_program};
use crate::spec::{SandboxMode, Spec};
use crate::verdict::ChildVerdict;

/// The version of the protocol; changed whenever the two sides would misunderstand each other.
pub(crate) const FORMAT: u32 = 4;
/// The longest frame that is written or accepted. The input of a child is held in memory on both
/// sides.
const MAX_FRAME: u32 = 1 << 30;
/// The number of bytes that are reserved before a frame is read: enough for the usual order. The
/// length that the other side claims is not reserved, because it may be wrong.
const FRAME_ROOM: usize = 4 << 10;

/// Messages of a single byte.
pub(crate) mod byte {
    pub(crate) const DETACHED: u8 = b'D';
    pub(crate) const TERMINAL: u8 = b'T';
    /// The opening of a process that confines itself and becomes the child.
    pub(crate) const CONFINED: u8 = b'C';
    /// The opening of a process that puts the driver in the foreground of a terminal.
    pub(crate) const TERMINAL_BACK: u8 = b'F';
    pub(crate) const CANCEL: u8 = b'c';
    pub(crate) const KILL: u8 = b'k';
    pub(crate) const RESUME: u8 = b'r';
}

/// The order of the driver to its supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) format: u32,
    /// The path of `bwrap`, as the driver found it: it knows which directories of `PATH` to avoid.
    #[serde(default)]
    pub(crate) bwrap: Option<String>,
    /// Any [`Stdin::Bytes`](crate::Stdin::Bytes) are empty here: they follow in a frame of their own.
    pub(crate) spec: Spec,
}

impl Order {
    pub(crate) fn new(spec: Spec) -> Self {
        let is_wanted = spec.sandbox.as_ref().is_some_and(|one| one.mode == SandboxMode::Bwrap);
        let bwrap = is_wanted.then(|| find_program("bwrap").ok()).flatten();
        Self {
            format: FORMAT,
            bwrap: bwrap.and_then(|path| path.into_os_string().into_string().ok()),
            spec,
        }
    }

    /// Returns the description of the child, and remembers the rest.
    pub(crate) fn accept(self) -> io::Result<Spec> {
        // The driver may be of another version: `Supervisor::at` names any program.
        if self.format != FORMAT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if let Some(bwrap) = self.bwrap {
            programs::know("bwrap", bwrap.into());
        }
        Ok(self.spec)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SupervisorMessage {
    Started {
        pid: i32,
    },
    Output {
        bytes: u64,
        last_line: String,
    },
    /// The child stopped, and waits until it may go on at the terminal.
    Stopped,
    Ended {
        verdict: Box<ChildVerdict>,
    },
    NoSandbox {
        why: String,
    },
}

/// Sends the first byte, together with descriptors for the child.
pub(crate) fn send_opening(
    socket: &UnixStream,
    opening: u8,
    inherited: &[BorrowedFd<'_>],
) -> io::Result<()> {
    // Three standard streams, and the pipe for answers of a process that confines itself.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !inherited.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(inherited)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = [opening];
    // Without `NOSIGNAL` a supervisor that is gone would end this process with `SIGPIPE`, in a
    // program that does not ignore it.
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the byte and descriptors of [`send_opening`]; `None` if the driver is gone.
pub(crate) fn receive_opening(socket: impl AsFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            // A descriptor that arrives is otherwise inherited by each child that is started later.
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let inherited = ancillary
        .drain()
        .filter_map(|message| {
            if let RecvAncillaryMessage::ScmRights(fds) = message { Some(fds) } else { None }
        })
        .flatten()
        .collect();
    Ok((received.bytes == 1).then_some((bytes[0], inherited)))
}

pub(crate) fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|length| *length <= MAX_FRAME)
        .ok_or(io::ErrorKind::FileTooLarge)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)
}

pub(crate) fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // With room for the usual order, which is otherwise read in small steps.
    let mut bytes = Vec::with_capacity(FRAME_ROOM);
    from.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == u64::from(length) {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_was_cut_is_an_error() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"order").unwrap();
        assert_eq!(read_frame(&mut &bytes[..]).unwrap(), b"order");
        for cut in 0..bytes.len() {
            read_frame(&mut &bytes[..cut]).unwrap_err();
        }
    }
}
