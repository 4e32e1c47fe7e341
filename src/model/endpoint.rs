//! `host:port` on an allow-list of the network.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A place on the network that a step may reach.
///
/// Invariant: `host` is lowercase ASCII; it is a DNS name that cannot be taken for a number, or an
/// IP address in its one canonical form. So equality of text is equality of place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    host: String,
    port: u16,
    local: bool,
}

/// The text names no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not `host:port`: {why}")]
pub struct EndpointError {
    text: String,
    why: &'static str,
}

impl Endpoint {
    /// An endpoint on the public network.
    pub fn new(host: &str, port: u16) -> Result<Self, EndpointError> {
        let host = canonical_host(host).map_err(|why| EndpointError {
            text: shorten(host),
            why,
        })?;
        let local = is_local_literal(&host);
        if port == 0 {
            return Err(EndpointError {
                text: host,
                why: "port 0 is none",
            });
        }
        Ok(Self { host, port, local })
    }

    /// The same endpoint, allowed to lead to an address of this machine or of a private network.
    #[must_use]
    pub fn as_local(mut self) -> Self {
        self.local = true;
        self
    }

    /// Host in its canonical form, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether a private or loopback address is meant: an address that was written down as such,
    /// `localhost`, or a name with the mark `local:`.
    pub const fn is_local(&self) -> bool {
        self.local
    }

    /// The port, when the endpoint is this machine's own loopback.
    pub fn loopback_port(&self) -> Option<u16> {
        let loopback = self.host == "localhost"
            || self
                .host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        loopback.then_some(self.port)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Reads `host:port`, `[v6]:port`, and both after `local:`.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let fail = |why| EndpointError {
            text: shorten(text),
            why,
        };
        let (rest, marked) = match text.strip_prefix("local:") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(|| fail("no port"))?;
        let digits =
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
        let port = port
            .parse::<u16>()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| fail("the port is no number from 1 to 65535"))?;
        let bracketed = host.starts_with('[');
        if !bracketed && host.contains(':') {
            return Err(fail("an IPv6 address stands in brackets"));
        }
        let endpoint = Self::new(host, port).map_err(|error| fail(error.why))?;
        Ok(if marked {
            endpoint.as_local()
        } else {
            endpoint
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Brings a host to its one form, or says why it has none. Brackets are taken off IPv6 addresses.
///
/// Refused: odd bytes, user information, percent signs, non-ASCII names, a trailing dot, and every
/// spelling of a number other than four plain decimal parts (`127.1`, `0x7f.1`, `2130706433`),
/// which resolvers read as addresses.
pub fn canonical_host(host: &str) -> Result<String, &'static str> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("the bracket is not closed")?;
        let address: std::net::Ipv6Addr = inner.parse().map_err(|_| "no IPv6 address")?;
        return Ok(address.to_string());
    }
    if host.is_empty() || host.len() > 253 {
        return Err("the host is empty or too long");
    }
    let host = host.to_ascii_lowercase();
    if !host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        return Err("the host has characters that no name has");
    }
    if host.split('.').any(|label| {
        label.is_empty() || label.len() > 63 || label.starts_with('-') || label.ends_with('-')
    }) {
        return Err("the host has an empty or malformed part");
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if numeric {
        let address: std::net::Ipv4Addr = host
            .parse()
            .map_err(|_| "an address is written as four decimal numbers")?;
        return Ok(address.to_string());
    }
    Ok(host)
}

fn is_local_literal(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok()
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Endpoint, EndpointError> {
        text.parse()
    }

    #[test]
    fn names_and_addresses_are_read() {
        let plain = read("API.example.com:443").unwrap();
        assert_eq!(
            (plain.host(), plain.port(), plain.is_local()),
            ("api.example.com", 443, false)
        );
        assert_eq!(read("127.0.0.1:8080").unwrap().loopback_port(), Some(8080));
        assert_eq!(read("localhost:1").unwrap().loopback_port(), Some(1));
        assert_eq!(read("[::1]:8080").unwrap().to_string(), "[::1]:8080");
        assert_eq!(read("10.0.0.7:80").unwrap().loopback_port(), None);
        assert!(read("local:models.example.org:80").unwrap().is_local());
        assert!(!read("models.example.org:80").unwrap().is_local());
    }

    #[test]
    fn tricks_are_refused() {
        for bad in [
            "",
            "host",
            ":80",
            "a:0",
            "a:+80",
            "a:99999",
            "a b:80",
            "a\0b:80",
            "u@a:80",
            "a.:80",
            "a..b:80",
            "127.1:80",
            "0x7f.1:80",
            "0x7f000001:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "::1:80",
            "[::1:80",
            "[::1%lo]:80",
            "b\u{fc}cher.example:80",
            "a%2e:80",
            "-a:80",
        ] {
            assert!(read(bad).is_err(), "{bad:?} was taken");
        }
    }
}
