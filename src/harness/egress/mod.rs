//! The egress proxy: the only way out of a sandbox that may reach something.
//!
//! It runs in the host process and listens on Unix sockets in a private folder; bridges inside the
//! sandbox lead to them. HTTP CONNECT and plain HTTP go to the `host:port` of the allow-list only.
//! A name is resolved once, each address is checked, and a checked address is dialled, so a name
//! that changes its address gains nothing. Every request is a record. Bodies are not kept.
//!
//! Docs: `docs/threat-model.md`, "Egress".

mod address;
pub mod body;
pub mod head;
mod record;
mod relay;
mod serve;

use crate::base::clock::Clock;
use crate::base::temp::Folder;
use crate::model::endpoint::Endpoint;
use record::Log;
use serve::Shared;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use record::{EgressRecord, Reason, Verdict};

/// Most connections at one time.
pub const MAX_TUNNELS: usize = 256;
/// Largest head of a request or response, in bytes.
pub const MAX_HEAD: usize = 64 << 10;
/// For a request's head, and again for resolving and dialling.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Looks for something that must not leave; `true` cuts the connection. Gets overlapping pieces.
pub type Scan = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;
/// Turns a name and port into addresses.
pub type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;
/// Dials a checked address.
pub type Connect = Arc<dyn Fn(SocketAddr, Duration) -> io::Result<TcpStream> + Send + Sync>;

/// The proxy could not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the egress proxy")]
pub struct Error(#[from] io::Error);

/// What a proxy lets through, and what it uses for that.
#[derive(Clone)]
pub struct Config {
    /// Name of the lane, for the records.
    pub lane: String,
    /// Where connections may go.
    pub allowed: Vec<Endpoint>,
    /// Time of the records.
    pub clock: Clock,
    /// Looks at everything that leaves in clear.
    pub scan: Option<Scan>,
    /// The host's resolver.
    pub resolve: Resolve,
    /// TCP.
    pub connect: Connect,
}

impl Config {
    /// The host's resolver and network, no scan.
    pub fn new(lane: impl Into<String>, allowed: Vec<Endpoint>) -> Self {
        Self {
            lane: lane.into(),
            allowed,
            clock: Clock::from_env(),
            scan: None,
            resolve: Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect())),
            connect: Arc::new(|address, limit| TcpStream::connect_timeout(&address, limit)),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("lane", &self.lane)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// `127.0.0.1:port` inside must lead to this Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Port inside.
    pub port: u16,
    /// Unix socket of this process.
    pub socket: PathBuf,
}

/// A running proxy. It ends, with every connection through it, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    bridges: Vec<Bridge>,
    listeners: Vec<JoinHandle<()>>,
    folder: Folder,
}

/// First port tried for the proxy inside.
const FIRST_PORT: u16 = 38_128;

impl Proxy {
    /// Starts listening.
    pub fn start(config: Config) -> Result<Self, Error> {
        let folder = Folder::new("egress", 0o700)?;
        let direct = direct_endpoints(&config.allowed);
        let taken = |port: &u16| direct.iter().any(|(known, _)| known == port);
        let port = (FIRST_PORT..u16::MAX).find(|port| !taken(port));
        let port = port.ok_or_else(|| io::Error::other("no port is left for the proxy"))?;
        let mut proxy = Self {
            shared: Arc::new(Shared::new(config, Log::default())),
            bridges: Vec::new(),
            listeners: Vec::new(),
            folder,
        };
        let path = proxy.socket_path("proxy");
        proxy.listen(port, path, None)?;
        for (port, endpoint) in direct {
            let path = proxy.socket_path(&port.to_string());
            proxy.listen(port, path, Some(endpoint))?;
        }
        Ok(proxy)
    }

    /// The ports that must be served inside. The first is the proxy; each other is a loopback
    /// endpoint of the allow-list on its own port, so that one base URL works in and out.
    pub fn bridges(&self) -> &[Bridge] {
        &self.bridges
    }

    /// Variables that point programs inside to the proxy.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let port = self.bridges.first().map_or(0, |bridge| bridge.port);
        let url = format!("http://127.0.0.1:{port}");
        let mut out: Vec<_> = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]
            .into_iter()
            .map(|name| (name, url.clone()))
            .collect();
        for name in ["NO_PROXY", "no_proxy"] {
            out.push((name, "127.0.0.1,localhost,::1".into()));
        }
        // Node's own client looks at these variables only when asked to.
        out.push(("NODE_USE_ENV_PROXY", "1".into()));
        out
    }

    /// The records of all connections that have ended so far.
    pub fn records(&self) -> Vec<EgressRecord> {
        self.shared.log.records()
    }

    /// How many records there were no room for.
    pub fn records_lost(&self) -> u64 {
        self.shared.log.lost()
    }

    /// Ends every connection and returns all records.
    pub fn finish(mut self) -> Vec<EgressRecord> {
        self.stop();
        self.shared.log.records()
    }

    fn socket_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sock"))
    }

    fn listen(&mut self, port: u16, socket: PathBuf, to: Option<Endpoint>) -> Result<(), Error> {
        let listener = UnixListener::bind(&socket)?;
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name("egress".into())
            .spawn(move || serve::accept(&shared, &listener, to.as_ref()))?;
        self.listeners.push(thread);
        self.bridges.push(Bridge { port, socket });
        Ok(())
    }

    fn stop(&mut self) {
        self.shared.stop();
        for bridge in &self.bridges {
            // Wakes the thread that waits in `accept`.
            let _ = std::os::unix::net::UnixStream::connect(&bridge.socket);
        }
        for thread in self.listeners.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Loopback endpoints by port; the first of a port wins.
fn direct_endpoints(allowed: &[Endpoint]) -> Vec<(u16, Endpoint)> {
    let mut out: Vec<(u16, Endpoint)> = Vec::new();
    for endpoint in allowed {
        if let Some(port) = endpoint.loopback_port()
            && !out.iter().any(|(known, _)| *known == port)
        {
            out.push((port, endpoint.clone()));
        }
    }
    out
}
