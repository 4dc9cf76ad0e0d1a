//! A slow link, for `ProxyCommand` of `ssh`: `slow-link HOST PORT BYTES_PER_SECOND DELAY_MS`.
//!
//! Each direction carries so many bytes in a second, and each byte arrives so much later.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The most that travels at once, so that a short answer does not wait for the end of a long one.
const PIECE: usize = 1024;

#[derive(Clone, Copy)]
struct Link {
    bytes_per_second: u32,
    delay: Duration,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match carry(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "slow-link: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn carry(args: &[String]) -> io::Result<()> {
    let [host, port, rate, delay] = args else {
        return Err(io::Error::other("usage: slow-link HOST PORT BYTES_PER_SECOND DELAY_MS"));
    };
    let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
    let link = Link {
        bytes_per_second: number(rate)?.max(1),
        delay: Duration::from_millis(number(delay)?.into()),
    };
    let far = TcpStream::connect(format!("{host}:{port}"))?;
    far.set_nodelay(true)?;
    let (to, from) = (far.try_clone()?, far.try_clone()?);
    std::thread::spawn(move || {
        // The other direction tells of an end; this one only has nothing more to say.
        drop(travel(io::stdin(), &to, link));
        drop(to.shutdown(Shutdown::Write));
    });
    travel(from, io::stdout(), link)
}

/// Carries bytes until their end.
fn travel(mut from: impl Read + Send, mut to: impl Write, link: Link) -> io::Result<()> {
    let (put, came) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut piece = [0; PIECE];
            // The moment at which the wire is free again.
            let mut free = Instant::now();
            while let Ok(read @ 1..) = from.read(&mut piece) {
                let size = f64::from(u32::try_from(read).unwrap_or(u32::MAX));
                let needs = Duration::from_secs_f64(size / f64::from(link.bytes_per_second));
                free = free.max(Instant::now()) + needs;
                if put.send((free + link.delay, piece[..read].to_vec())).is_err() {
                    return;
                }
                // What does not fit on the wire stays with its sender.
                wait_until(free);
            }
        });
        for (due, bytes) in came {
            wait_until(due);
            to.write_all(&bytes)?;
            to.flush()?;
        }
        Ok(())
    })
}

fn wait_until(moment: Instant) {
    while let Some(left) =
        moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        std::thread::park_timeout(left);
    }
}
