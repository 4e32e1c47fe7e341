//! The head of a request and of a response (RFC 9112): what is asked for, and the head that is
//! sent on in its place. A head is never forwarded as it came.

use super::body::Body;
use super::record::Reason;
use crate::model::endpoint::Endpoint;
use std::io::Write as _;

/// A request that keeps the rules.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Where it wants to go. Not yet looked up on the list.
    pub endpoint: Endpoint,
    /// How.
    pub kind: Kind,
}

/// What a request asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything after the head belongs to the tunnel.
    Connect,
    /// Plain HTTP.
    Plain {
        /// The head to send on.
        head: Vec<u8>,
        /// Where its body ends.
        body: Body,
        /// It asks for another protocol, such as WebSocket.
        upgrade: bool,
        /// The client waits for leave to send its body.
        expects: bool,
    },
}

/// A response head to send on.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// Its code.
    pub status: u16,
    /// Every byte, the empty line included.
    pub head: Vec<u8>,
}

const MAX_HEADERS: usize = 128;

/// Headers that belong to one connection, not to the message.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "upgrade",
];

/// Reads a request. `None`: more bytes are needed; else the request and the length of its head.
pub fn request(bytes: &[u8]) -> Result<Option<(Request, usize)>, Reason> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Reason::Malformed("the request is no HTTP/1.1")),
    };
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(Reason::Malformed("the request line is not whole"));
    };
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Reason::Malformed("the target has odd bytes"));
    }
    let headers = Headers(parsed.headers);
    let request = if method == "CONNECT" {
        connect(target, &headers)?
    } else {
        plain(method, target, version, &headers)?
    };
    Ok(Some((request, length)))
}

fn connect(target: &str, headers: &Headers<'_, '_>) -> Result<Request, Reason> {
    let endpoint = authority(target, None)?;
    let lengths = headers.all("content-length");
    if headers.first("transfer-encoding").is_some() || lengths.iter().any(|value| *value != b"0") {
        return Err(Reason::Malformed("CONNECT has no body"));
    }
    check_host(headers, &endpoint, 443)?;
    Ok(Request {
        endpoint,
        kind: Kind::Connect,
    })
}

fn plain(
    method: &str,
    target: &str,
    version: u8,
    headers: &Headers<'_, '_>,
) -> Result<Request, Reason> {
    let rest = strip_scheme(target).ok_or(Reason::Malformed("the target is no http:// URL"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(end);
    if path.contains('#') {
        return Err(Reason::Malformed("the target has a fragment"));
    }
    let endpoint = authority(place, Some(80))?;
    check_host(headers, &endpoint, 80)?;
    let body = body(version, headers)?;
    let upgrade = headers.lists("connection", "upgrade") && headers.first("upgrade").is_some();
    if upgrade && body != Body::None {
        return Err(Reason::Malformed("an upgrade has no body"));
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
    headers.copy_to(&mut head, &["host", "expect"])?;
    headers.end_to(&mut head, upgrade);
    Ok(Request {
        endpoint,
        kind: Kind::Plain {
            head,
            body,
            upgrade,
            expects: headers.first("expect").is_some(),
        },
    })
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(rest)
}

/// `host:port`, or `host` where there is a default.
fn authority(text: &str, default: Option<u16>) -> Result<Endpoint, Reason> {
    let malformed = Reason::Malformed("the target names no host and port");
    let bracket = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match (text[bracket..].rfind(':'), default) {
        (Some(colon), _) => {
            let (host, port) = text.split_at(bracket + colon);
            let port = &port[1..];
            let digits = (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
            let port = port.parse().ok().filter(|_| digits).ok_or(malformed)?;
            (host, port)
        }
        (None, Some(port)) => (text, port),
        (None, None) => return Err(malformed),
    };
    Endpoint::new(host, port).map_err(|_| malformed)
}

/// A `Host` header that names another place than the target is an attempt at something.
fn check_host(headers: &Headers<'_, '_>, endpoint: &Endpoint, default: u16) -> Result<(), Reason> {
    let values = headers.all("host");
    let [] = values.as_slice() else {
        let [value] = values.as_slice() else {
            return Err(Reason::Malformed("more than one Host"));
        };
        let text =
            std::str::from_utf8(value).map_err(|_| Reason::Malformed("Host has odd bytes"))?;
        let named = authority(text, Some(default))?;
        // Some clients leave the port out although it is not the default.
        let bare = authority(text, None).is_err();
        let same = named.host() == endpoint.host() && (bare || named.port() == endpoint.port());
        return if same {
            Ok(())
        } else {
            Err(Reason::Malformed("Host and target differ"))
        };
    };
    Ok(())
}

fn body(version: u8, headers: &Headers<'_, '_>) -> Result<Body, Reason> {
    let (lengths, codings) = (
        headers.all("content-length"),
        headers.all("transfer-encoding"),
    );
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Body::None),
        ([length], []) => {
            let text = std::str::from_utf8(length).unwrap_or_default();
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse()
                .ok()
                .filter(|_| digits)
                .map(Body::Length)
                .ok_or(Reason::Malformed("Content-Length is no number"))
        }
        ([], [coding]) if version == 1 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Body::Chunked)
        }
        ([_, ..], [_, ..]) => Err(Reason::Malformed(
            "both Content-Length and Transfer-Encoding",
        )),
        ([_, _, ..], []) => Err(Reason::Malformed("more than one Content-Length")),
        _ => Err(Reason::Malformed("Transfer-Encoding is not just chunked")),
    }
}

/// Reads a response. `None`: more bytes are needed; else the head to send on and the length of the
/// one that came.
pub fn response(bytes: &[u8]) -> Result<Option<(Response, usize)>, Reason> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Reason::BadResponse),
    };
    let status = parsed.code.ok_or(Reason::BadResponse)?;
    let reason = parsed.reason.unwrap_or_default();
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    let headers = Headers(parsed.headers);
    headers
        .copy_to(&mut head, &[])
        .map_err(|_| Reason::BadResponse)?;
    if status == 101 {
        headers.end_to(&mut head, true);
    } else if status < 200 {
        head.extend_from_slice(b"\r\n");
    } else {
        headers.end_to(&mut head, false);
    }
    Ok(Some((Response { status, head }, length)))
}

struct Headers<'h, 'b>(&'h [httparse::Header<'b>]);

impl<'b> Headers<'_, 'b> {
    fn all(&self, name: &str) -> Vec<&'b [u8]> {
        let same = self
            .0
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name));
        same.map(|header| header.value).collect()
    }

    fn first(&self, name: &str) -> Option<&'b [u8]> {
        self.all(name).first().copied()
    }

    /// Whether a comma-separated header holds a word.
    fn lists(&self, name: &str, word: &str) -> bool {
        self.words(name).iter().any(|known| known == word)
    }

    fn words(&self, name: &str) -> Vec<String> {
        let values = self.all(name);
        let texts = values
            .iter()
            .map(|value| String::from_utf8_lossy(value).to_ascii_lowercase());
        texts
            .flat_map(|text| {
                text.split(',')
                    .map(|word| word.trim().to_owned())
                    .collect::<Vec<_>>()
            })
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// Writes every header that is not bound to this connection and not in `without`.
    fn copy_to(&self, out: &mut Vec<u8>, without: &[&str]) -> Result<(), Reason> {
        let bound = self.words("connection");
        let framing = ["host", "content-length", "transfer-encoding"];
        if bound.iter().any(|word| framing.contains(&word.as_str())) {
            return Err(Reason::Malformed(
                "Connection names a header of the message",
            ));
        }
        for header in self.0 {
            let name = header.name.to_ascii_lowercase();
            let dropped = HOP_BY_HOP.contains(&name.as_str())
                || without.contains(&name.as_str())
                || bound.contains(&name);
            if !dropped {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{}: ", header.name);
                out.extend_from_slice(header.value);
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }

    /// Writes our own `Connection` and the end of the head.
    fn end_to(&self, out: &mut Vec<u8>, upgrade: bool) {
        match self.first("upgrade").filter(|_| upgrade) {
            Some(protocol) => {
                out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: ");
                out.extend_from_slice(protocol);
                out.extend_from_slice(b"\r\n\r\n");
            }
            None => out.extend_from_slice(b"Connection: close\r\n\r\n"),
        }
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
