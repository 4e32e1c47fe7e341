//! One thread per connection: reads what is asked for, decides, and carries it out.

use super::address::may_dial;
use super::body::Framing;
use super::head::{self, Kind, Request};
use super::record::{EgressRecord, Log, Reason, Verdict};
use super::relay::{Pair, Scanner};
use super::{Config, HANDSHAKE, MAX_HEAD, MAX_TUNNELS};
use crate::model::endpoint::Endpoint;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// What all threads of a proxy share.
#[derive(Debug)]
pub(super) struct Shared {
    config: Config,
    pub(super) log: Log,
    stopped: AtomicBool,
    live: Mutex<Live>,
}

/// Streams that are open, so that they can be ended.
#[derive(Debug, Default)]
struct Live {
    next: u64,
    clients: HashMap<u64, UnixStream>,
    servers: HashMap<u64, TcpStream>,
}

impl Shared {
    pub(super) fn new(config: Config, log: Log) -> Self {
        Self {
            config,
            log,
            stopped: AtomicBool::new(false),
            live: Mutex::default(),
        }
    }

    /// Ends every connection. New ones end themselves.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let live = self.live();
        for client in live.clients.values() {
            let _ = client.shutdown(Shutdown::Both);
        }
        for server in live.servers.values() {
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A place for a connection; `None` when there is none left or the proxy has ended.
    fn admit(self: &Arc<Self>, client: &UnixStream) -> Option<Slot> {
        let copy = client.try_clone().ok()?;
        let mut live = self.live();
        // Looked at under the lock: `stop` either sees this stream or is seen here.
        if self.is_stopped() || live.clients.len() >= MAX_TUNNELS {
            return None;
        }
        let id = live.next;
        live.next += 1;
        live.clients.insert(id, copy);
        Some(Slot {
            shared: Arc::clone(self),
            id,
        })
    }

    fn record(&self, asked: Option<&Endpoint>, counts: Counts, verdict: Verdict) {
        self.log.add(EgressRecord {
            at: self.config.clock.now(),
            lane: self.config.lane.clone(),
            host: asked
                .map(|endpoint| endpoint.host().to_owned())
                .unwrap_or_default(),
            port: asked.map_or(0, Endpoint::port),
            bytes_up: counts.up,
            bytes_down: counts.down,
            verdict,
        });
    }
}

/// The place of one connection; free again when dropped.
struct Slot {
    shared: Arc<Shared>,
    id: u64,
}

impl Slot {
    /// Makes the server's end known. An error when the proxy has ended.
    fn serve(&self, server: &TcpStream) -> Result<(), Reason> {
        let copy = server.try_clone().map_err(|_| Reason::Unreachable)?;
        let mut live = self.shared.live();
        if self.shared.is_stopped() {
            return Err(Reason::Unreachable);
        }
        live.servers.insert(self.id, copy);
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut live = self.shared.live();
        live.clients.remove(&self.id);
        live.servers.remove(&self.id);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    up: u64,
    down: u64,
}

/// Takes connections until the proxy ends, and then waits for those that are under way. With
/// `direct`, each leads there; else each is an HTTP proxy's.
pub(super) fn accept(shared: &Arc<Shared>, listener: &UnixListener, direct: Option<&Endpoint>) {
    let mut workers: Vec<thread::JoinHandle<()>> = Vec::new();
    for client in listener.incoming() {
        if shared.is_stopped() {
            break;
        }
        workers.retain(|worker| !worker.is_finished());
        let Ok(client) = client else {
            // Out of descriptors: some will be closed.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let Some(slot) = shared.admit(&client) else {
            shared.record(direct, Counts::default(), Reason::TooMany.verdict());
            if direct.is_none() {
                write_answer(&client, Reason::TooMany);
            }
            continue;
        };
        let direct = direct.cloned();
        let work = move || connection(&slot, &client, direct.as_ref());
        // Without a thread the connection is dropped, which closes it.
        workers.extend(thread::Builder::new().name("egress".into()).spawn(work));
    }
    for worker in workers {
        let _ = worker.join();
    }
}

fn connection(slot: &Slot, client: &UnixStream, direct: Option<&Endpoint>) {
    let mut run = Run {
        slot,
        client,
        scanner: Scanner::new(slot.shared.config.scan.as_ref()),
        asked: direct.cloned(),
        counts: Counts::default(),
        answered: direct.is_some(),
    };
    let result = match direct {
        Some(endpoint) => run.direct(endpoint),
        None => run.proxied(),
    };
    let verdict = match result {
        Ok(true) => Verdict::Allowed,
        Ok(false) => return,
        Err(reason) => {
            if !run.answered {
                answer(client, reason);
            }
            reason.verdict()
        }
    };
    slot.shared.record(run.asked.as_ref(), run.counts, verdict);
}

/// A request, its head's raw bytes, and the bytes that came after it.
struct Asked {
    request: Request,
    head: Vec<u8>,
    rest: Vec<u8>,
}

/// One connection under way.
struct Run<'a> {
    slot: &'a Slot,
    client: &'a UnixStream,
    scanner: Scanner<'a>,
    asked: Option<Endpoint>,
    counts: Counts,
    /// The client has got bytes already; a refusal can only cut.
    answered: bool,
}

impl Run<'_> {
    fn direct(&mut self, endpoint: &Endpoint) -> Result<bool, Reason> {
        let server = self.dial(endpoint)?;
        self.tunnel(&server, &[], &[])?;
        Ok(true)
    }

    /// `false` when the client closed without asking for anything.
    fn proxied(&mut self) -> Result<bool, Reason> {
        let Some(Asked {
            request,
            head,
            rest,
        }) = self.read_request()?
        else {
            return Ok(false);
        };
        self.asked = Some(request.endpoint.clone());
        self.scanner.check(&head)?;
        let endpoint = self.listed(&request.endpoint)?;
        let server = self.dial(&endpoint)?;
        match request.kind {
            Kind::Connect => {
                self.write(b"HTTP/1.1 200 Connection established\r\n\r\n");
                self.tunnel(&server, &rest, &[])?;
            }
            Kind::Plain {
                head,
                body,
                upgrade,
                expects,
            } => {
                let sent = (&mut &server).write_all(&head);
                sent.map_err(|_| Reason::Unreachable)?;
                self.counts.up += head.len() as u64;
                if expects {
                    self.write(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                if upgrade {
                    self.upgrade(&server, &rest)?;
                } else {
                    self.exchange(&server, &rest, Framing::new(&body))?;
                }
            }
        }
        Ok(true)
    }

    fn read_request(&mut self) -> Result<Option<Asked>, Reason> {
        let end = Instant::now() + HANDSHAKE;
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 8 << 10];
        loop {
            let found = head::request(&bytes)?;
            let length = found.as_ref().map_or(bytes.len(), |(_, length)| *length);
            if length > MAX_HEAD {
                return Err(Reason::Malformed("the head is too large"));
            }
            if let Some((request, length)) = found {
                let rest = bytes.split_off(length);
                let _ = self.client.set_read_timeout(None);
                return Ok(Some(Asked {
                    request,
                    head: bytes,
                    rest,
                }));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.client.set_read_timeout(Some(left)).is_err() {
                return Err(Reason::Malformed("the head did not come in time"));
            }
            match (&mut &*self.client).read(&mut buffer) {
                Ok(0) if bytes.is_empty() => return Ok(None),
                Ok(0) => return Err(Reason::Malformed("the head is not whole")),
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(_) => return Err(Reason::Malformed("the head did not come in time")),
            }
        }
    }

    /// The entry of the allow-list that names this place; of two, the one that is marked local.
    fn listed(&self, asked: &Endpoint) -> Result<Endpoint, Reason> {
        let same = |entry: &&Endpoint| entry.host() == asked.host() && entry.port() == asked.port();
        let found = self.slot.shared.config.allowed.iter().filter(same);
        let found = found.max_by_key(|entry| entry.is_local());
        found.cloned().ok_or(Reason::NotListed)
    }

    /// Resolves and connects in a thread of its own: neither can be interrupted, and the proxy may
    /// end meanwhile.
    fn dial(&self, endpoint: &Endpoint) -> Result<TcpStream, Reason> {
        let (sender, receiver) = mpsc::channel();
        let (config, endpoint) = (self.slot.shared.config.clone(), endpoint.clone());
        thread::Builder::new()
            .name("egress-dial".into())
            .spawn(move || {
                // Nobody waits any more: the stream is closed.
                let _ = sender.send(reach(&config, &endpoint));
            })
            .map_err(|_| Reason::Unreachable)?;
        let end = Instant::now() + HANDSHAKE;
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(result) => {
                    let server = result?;
                    self.slot.serve(&server)?;
                    let _ = server.set_nodelay(true);
                    return Ok(server);
                }
                Err(mpsc::RecvTimeoutError::Timeout)
                    if Instant::now() < end && !self.slot.shared.is_stopped() => {}
                Err(_) => return Err(Reason::Unreachable),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.answered = true;
        // A client that is gone is noticed by the next read.
        let _ = (&mut &*self.client).write_all(bytes);
    }

    /// Bytes both ways until the server ends.
    fn tunnel(&mut self, server: &TcpStream, first: &[u8], back: &[u8]) -> Result<(), Reason> {
        self.both_ways(server, first, None, |pair, down| {
            pair.down(back, down);
            Ok(())
        })
    }

    /// One request with its body, one response.
    fn exchange(
        &mut self,
        server: &TcpStream,
        first: &[u8],
        framing: Framing,
    ) -> Result<(), Reason> {
        let mut begun = false;
        let result = self.both_ways(server, first, Some(framing), |pair, down| {
            let (_, rest) = pair.response_head(false, down)?;
            begun = true;
            pair.down(&rest, down);
            Ok(())
        });
        self.answered |= begun;
        result
    }

    fn upgrade(&mut self, server: &TcpStream, first: &[u8]) -> Result<(), Reason> {
        let pair = Pair {
            client: self.client,
            server,
        };
        let (status, rest) = pair.response_head(true, &mut self.counts.down)?;
        self.answered = true;
        if status == 101 {
            return self.tunnel(server, first, &rest);
        }
        pair.down(&rest, &mut self.counts.down);
        pair.cut();
        Ok(())
    }

    /// Client to server in a second thread, `answer` in this one. When `answer` is done, so is the
    /// connection.
    fn both_ways(
        &mut self,
        server: &TcpStream,
        first: &[u8],
        framing: Option<Framing>,
        answer: impl FnOnce(&Pair<'_>, &mut u64) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let pair = Pair {
            client: self.client,
            server,
        };
        let (scanner, counts) = (&mut self.scanner, &mut self.counts);
        let (up, down) = (&mut counts.up, &mut counts.down);
        thread::scope(|scope| {
            let work = || {
                let result = pair.up(first, framing, scanner, up);
                if result.is_err() {
                    // What must not leave ends the connection at once.
                    pair.server.shutdown(Shutdown::Both).ok();
                }
                result
            };
            let worker = thread::Builder::new().name("egress-up".into());
            let worker = worker
                .spawn_scoped(scope, work)
                .map_err(|_| Reason::TooMany)?;
            let answered = answer(&pair, down);
            let _ = pair.server.shutdown(Shutdown::Both);
            if answered.is_ok() {
                pair.cut();
            } else {
                // The other thread stops reading; this end can still say why.
                let _ = pair.client.shutdown(Shutdown::Read);
            }
            // The reason of the sending side says more than the silence that follows from it.
            worker
                .join()
                .map_err(|_| Reason::BadResponse)?
                .and(answered)
        })
    }
}

/// Resolves once, checks every address, and dials the first that may be and answers.
fn reach(config: &Config, endpoint: &Endpoint) -> Result<TcpStream, Reason> {
    let (host, port) = (endpoint.host(), endpoint.port());
    let addresses = if let Ok(literal) = host.parse::<IpAddr>() {
        vec![SocketAddr::new(literal, port)]
    } else if host == "localhost" {
        vec![
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
        ]
    } else {
        (config.resolve)(host, port).map_err(|_| Reason::Unresolved)?
    };
    if addresses.is_empty() {
        return Err(Reason::Unresolved);
    }
    let checked: Vec<_> = addresses
        .into_iter()
        .filter(|address| may_dial(endpoint, address.ip()) && address.port() == port)
        .take(8)
        .collect();
    if checked.is_empty() {
        return Err(Reason::PrivateAddress);
    }
    let dial = |address| (config.connect)(address, HANDSHAKE / 2).ok();
    checked
        .into_iter()
        .find_map(dial)
        .ok_or(Reason::Unreachable)
}

/// Says why, and reads what the client still sends, so that it can read the answer.
fn answer(client: &UnixStream, reason: Reason) {
    write_answer(client, reason);
    let _ = client.set_read_timeout(Some(Duration::from_millis(200)));
    let mut buffer = vec![0; 8 << 10];
    for _ in 0..32 {
        match (&mut &*client).read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
}

fn write_answer(client: &UnixStream, reason: Reason) {
    let text = format!("refused by the egress proxy: {reason}\n");
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        reason.status(),
        text.len(),
    );
    let _ = client.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = (&mut &*client).write_all(head.as_bytes());
    let _ = client.shutdown(Shutdown::Write);
}
