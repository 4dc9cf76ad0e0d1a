//! As much of HTTP/1.1 as the clients of providers need: one request a connection, whole answers and event streams.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
};

use serde_json::Value;

/// A request, read to its end.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// Reads a request; none where the client only opened a connection.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut length = 0;
    let mut chunked = false;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "expect" => {
                let mut out = stream;
                out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            _ => {}
        }
    }
    let body = if chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
    Ok(Some(HttpRequest { method, path, body }))
}

fn read_exactly(reader: &mut BufReader<&TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        body.extend(read_exactly(reader, size)?);
        line.clear();
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// An event of a stream. Providers differ in whether they name them.
#[derive(Debug)]
pub(crate) struct StreamEvent {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl StreamEvent {
    pub(crate) fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }

    pub(crate) fn unnamed(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// Answers with one JSON document.
pub(crate) fn answer(
    mut stream: &TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let extra: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{}",
        reason(status),
        body.len(),
        extra.concat()
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

/// How far a stream of events is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Closes the connection after the first event.
    Cut,
    /// Stays silent after the first event until the client goes away.
    Stalled,
}

/// Answers with a stream of events.
pub(crate) fn stream(
    mut stream: &TcpStream,
    events: &[StreamEvent],
    extent: Extent,
) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    let sent = match extent {
        Extent::Whole => events,
        Extent::Cut | Extent::Stalled => &events[..1],
    };
    for event in sent {
        let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let text = format!("{name}data: {}\n\n", event.data);
        stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    }
    match extent {
        Extent::Whole => {
            stream.write_all(b"0\r\n\r\n")?;
            stream.shutdown(Shutdown::Write)
        }
        Extent::Cut => stream.shutdown(Shutdown::Both),
        Extent::Stalled => wait_for_close(stream),
    }
}

/// Waits until the client closes the connection.
pub(crate) fn wait_for_close(mut stream: &TcpStream) -> io::Result<()> {
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored)? > 0 {}
    Ok(())
}
