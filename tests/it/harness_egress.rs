//! The egress proxy against loopback servers: honest requests, and attacks beside an honest one.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hangar::base::clock::Clock;
use hangar::harness::egress::{Config, EgressRecord, Proxy, Reason, Verdict};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Any public address: the injected dialler leads it to a loopback server.
const PUBLIC: &str = "93.184.215.14";

/// A server that answers each connection with `reply` once it has read what `until` asks for, and
/// gives back what it read.
struct Server {
    address: SocketAddr,
    seen: std::sync::mpsc::Receiver<Vec<u8>>,
}

fn server(until: &'static [u8], reply: &'static [u8]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, seen) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sender) = (stream.unwrap(), sender.clone());
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let mut buffer = [0; 4096];
                while !bytes.windows(until.len()).any(|window| window == until) {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                    }
                }
                let _ = stream.write_all(reply);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut bytes);
                let _ = sender.send(bytes);
            });
        }
    });
    Server { address, seen }
}

/// A proxy for which `api.example.org` is a public address that leads to `server`.
fn config(server: SocketAddr, allowed: &[&str]) -> Config {
    let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
    let mut config = Config::new("test", allowed);
    config.clock = Clock::Fixed("2026-01-01T00:00:00Z".parse().unwrap());
    config.resolve = Arc::new(|_, port| Ok(vec![format!("{PUBLIC}:{port}").parse().unwrap()]));
    config.connect = Arc::new(move |address, limit| {
        assert_eq!(
            address.ip().to_string(),
            PUBLIC,
            "only the checked address is dialled"
        );
        TcpStream::connect_timeout(&server, limit)
    });
    config
}

fn ask(proxy: &Proxy, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(&proxy.bridges()[0].socket).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn verdicts(records: &[EgressRecord]) -> Vec<Verdict> {
    records.iter().map(|record| record.verdict).collect()
}

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn plain_http_reaches_a_listed_place_and_is_recorded() {
    let server = server(b"hello", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    let answer = ask(
        &proxy,
        b"POST http://api.example.org/v1 HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"),
        "{answer}"
    );
    let seen = String::from_utf8(server.seen.recv().unwrap()).unwrap();
    assert!(
        seen.starts_with("POST /v1 HTTP/1.1\r\nHost: api.example.org\r\n"),
        "{seen}"
    );
    let records = proxy.finish();
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!((record.host.as_str(), record.port), ("api.example.org", 80));
    assert_eq!(record.verdict, Verdict::Allowed);
    assert_eq!(record.bytes_up, seen.len() as u64);
    assert_eq!(record.bytes_down, REPLY.len() as u64);
}

#[test]
fn a_tunnel_carries_bytes_both_ways() {
    let server = server(b"ping", b"pong");
    let proxy = Proxy::start(config(server.address, &["api.example.org:443"])).unwrap();
    // The first bytes of the tunnel come with the request, as eager clients send them.
    let answer = ask(&proxy, b"CONNECT api.example.org:443 HTTP/1.1\r\n\r\nping");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\npong"),
        "{answer}"
    );
    let records = proxy.finish();
    assert_eq!((records[0].bytes_up, records[0].bytes_down), (4, 4));
}

#[test]
fn a_websocket_upgrade_passes_through() {
    let reply = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe";
    let server = server(b"\r\n\r\n", reply);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    let answer = ask(
        &proxy,
        b"GET http://api.example.org/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert!(
        answer.starts_with("HTTP/1.1 101 ") && answer.ends_with("frame"),
        "{answer}"
    );
    // Without having been asked for, the same answer is refused.
    let answer = ask(&proxy, b"GET http://api.example.org/ws HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[test]
fn a_client_that_waits_for_leave_gets_it() {
    let server = server(b"hello", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    let mut stream = UnixStream::connect(&proxy.bridges()[0].socket).unwrap();
    stream
        .write_all(b"PUT http://api.example.org/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        .unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.ends_with("ok"), "{answer}");
}

#[test]
fn what_is_not_listed_is_refused_and_shown() {
    let server = server(b"\r\n\r\n", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:443"])).unwrap();
    for place in [
        "evil.example:443",
        "api.example.org:80",
        "api.example.org.evil.example:443",
        "xapi.example.org:443",
        "127.0.0.1:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "93.184.215.14:443",
    ] {
        let answer = ask(
            &proxy,
            format!("CONNECT {place} HTTP/1.1\r\n\r\n").as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 403 "), "{place}: {answer}");
        assert!(answer.contains("not on the allow-list"), "{answer}");
    }
    // The honest control.
    let answer = ask(
        &proxy,
        b"CONNECT API.example.org:443 HTTP/1.1\r\n\r\n\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let records = proxy.finish();
    assert_eq!(records.len(), 9);
    // Each connection is recorded when it ends: in any order.
    let refused = |record: &&EgressRecord| record.verdict == Verdict::Refused(Reason::NotListed);
    let refused: Vec<&EgressRecord> = records.iter().filter(refused).collect();
    assert_eq!(refused.len(), 8);
    assert!(refused.iter().any(|record| record.host == "evil.example"));
}

#[test]
fn tricks_in_the_request_never_reach_a_server() {
    let server = server(b"\r\n\r\n", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    for bad in [
        "CONNECT api.example.org\0.evil.example:80 HTTP/1.1\r\n\r\n",
        "CONNECT api.example.org@evil.example:80 HTTP/1.1\r\n\r\n",
        "CONNECT 127.1:80 HTTP/1.1\r\n\r\n",
        "CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n",
        "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n",
        "CONNECT api.example.org.:80 HTTP/1.1\r\n\r\n",
        "CONNECT api.example.org:80 HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST http://api.example.org/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET http://api.example.org/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET http://u@api.example.org/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
    ] {
        let answer = ask(&proxy, bad.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{bad:?}: {answer}");
    }
    let large = format!(
        "GET http://api.example.org/{} HTTP/1.1\r\n\r\n",
        "x".repeat(70_000)
    );
    assert!(ask(&proxy, large.as_bytes()).starts_with("HTTP/1.1 400 "));
    assert!(server.seen.try_recv().is_err());
    let answer = ask(&proxy, b"GET http://api.example.org/ HTTP/1.1\r\n\r\n");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[test]
fn a_second_request_cannot_ride_behind_the_first() {
    let server = server(b"hello", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    for body in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let request = format!(
            "POST http://api.example.org/ HTTP/1.1\r\n{body}GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        );
        let answer = ask(&proxy, request.as_bytes());
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
        let seen = String::from_utf8(server.seen.recv().unwrap()).unwrap();
        assert!(
            seen.contains("hello") && !seen.contains("smuggled"),
            "{seen}"
        );
    }
}

#[test]
fn a_name_that_leads_inside_is_refused_and_asked_for_once() {
    let server = server(b"\r\n\r\n", REPLY);
    for (address, allowed) in [
        ("127.0.0.1", false),
        ("10.0.0.1", false),
        ("169.254.169.254", false),
        ("[::ffff:127.0.0.1]", false),
        ("[::1]", false),
        (PUBLIC, true),
    ] {
        let asked = Arc::new(AtomicUsize::new(0));
        let mut config = config(server.address, &["api.example.org:80"]);
        let count = Arc::clone(&asked);
        // The first answer is what counts; a rebinding name would answer otherwise later.
        config.resolve = Arc::new(move |_, port| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let address = if first { address } else { "127.0.0.1" };
            Ok(vec![format!("{address}:{port}").parse().unwrap()])
        });
        let proxy = Proxy::start(config).unwrap();
        let answer = ask(&proxy, b"GET http://api.example.org/ HTTP/1.1\r\n\r\n");
        let expected = if allowed {
            "HTTP/1.1 200 "
        } else {
            "HTTP/1.1 403 "
        };
        assert!(answer.starts_with(expected), "{address}: {answer}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_name_that_is_marked_local_may_lead_inside() {
    let server = server(b"\r\n\r\n", REPLY);
    let mut config = config(
        server.address,
        &["api.example.org:80", "local:api.example.org:80"],
    );
    config.resolve = Arc::new(|_, port| Ok(vec![format!("10.0.0.1:{port}").parse().unwrap()]));
    config.connect = Arc::new(move |_, limit| TcpStream::connect_timeout(&server.address, limit));
    let proxy = Proxy::start(config).unwrap();
    let answer = ask(&proxy, b"GET http://api.example.org/ HTTP/1.1\r\n\r\n");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[test]
fn a_listed_loopback_port_is_served_on_its_own_port() {
    let server = server(b"ping", b"pong");
    let listed = format!("127.0.0.1:{}", server.address.port());
    let config = Config::new("test", vec![listed.parse().unwrap()]);
    let proxy = Proxy::start(config).unwrap();
    let bridge = &proxy.bridges()[1];
    assert_eq!(bridge.port, server.address.port());
    assert_ne!(proxy.bridges()[0].port, bridge.port);
    let mut stream = UnixStream::connect(&bridge.socket).unwrap();
    stream.write_all(b"ping").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "pong");
    // The same place through the proxy, and its neighbour, which is not listed.
    let through = format!("CONNECT {listed} HTTP/1.1\r\n\r\nping");
    assert!(ask(&proxy, through.as_bytes()).ends_with("pong"));
    let other = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let answer = ask(
        &proxy,
        format!("CONNECT {other} HTTP/1.1\r\n\r\n").as_bytes(),
    );
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let records = proxy.finish();
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.host == "127.0.0.1"));
}

#[test]
fn sealed_text_in_clear_is_cut() {
    let server = server(b"stop", REPLY);
    let mut config = config(server.address, &["api.example.org:80"]);
    config.scan = Some(Arc::new(|bytes| {
        bytes.windows(8).any(|piece| piece == b"hgc1_abc")
    }));
    let proxy = Proxy::start(config).unwrap();
    for bad in [
        "GET http://api.example.org/?q=hgc1_abc HTTP/1.1\r\n\r\n",
        "GET http://api.example.org/ HTTP/1.1\r\nX: hgc1_abc\r\n\r\n",
        "POST http://api.example.org/ HTTP/1.1\r\nContent-Length: 13\r\n\r\nx hgc1_abc xx",
        "CONNECT api.example.org:80 HTTP/1.1\r\n\r\nhgc1_abc",
    ] {
        ask(&proxy, bad.as_bytes());
    }
    let honest = "POST http://api.example.org/ HTTP/1.1\r\nContent-Length: 13\r\n\r\nx hgc2_abstop";
    assert!(ask(&proxy, honest.as_bytes()).ends_with("ok"));
    let records = proxy.finish();
    let mut expected = vec![Verdict::Refused(Reason::Canary); 4];
    expected.push(Verdict::Allowed);
    assert_eq!(verdicts(&records), expected);
    while let Ok(seen) = server.seen.try_recv() {
        assert!(!String::from_utf8_lossy(&seen).contains("hgc1_abc"));
    }
}

#[test]
fn trouble_outside_is_no_refusal() {
    let server = server(b"\r\n\r\n", b"SSH-2.0-server\r\n\r\n");
    let mut broken = config(server.address, &["api.example.org:80"]);
    let proxy = Proxy::start(broken.clone()).unwrap();
    let request = b"GET http://api.example.org/ HTTP/1.1\r\n\r\n";
    assert!(ask(&proxy, request).starts_with("HTTP/1.1 502 "));
    assert_eq!(
        verdicts(&proxy.finish()),
        [Verdict::Failed(Reason::BadResponse)]
    );
    broken.resolve = Arc::new(|_, _| Err(std::io::Error::other("no such name")));
    let proxy = Proxy::start(broken.clone()).unwrap();
    assert!(ask(&proxy, request).starts_with("HTTP/1.1 502 "));
    assert_eq!(
        verdicts(&proxy.finish()),
        [Verdict::Failed(Reason::Unresolved)]
    );
    broken.resolve = Arc::new(|_, port| Ok(vec![format!("{PUBLIC}:{port}").parse().unwrap()]));
    broken.connect = Arc::new(|_, _| Err(std::io::ErrorKind::ConnectionRefused.into()));
    let proxy = Proxy::start(broken).unwrap();
    assert!(ask(&proxy, request).starts_with("HTTP/1.1 502 "));
    assert_eq!(
        verdicts(&proxy.finish()),
        [Verdict::Failed(Reason::Unreachable)]
    );
}

#[test]
fn ending_the_proxy_ends_its_connections_and_leaves_nothing() {
    let server = server(b"never", b"");
    let proxy = Proxy::start(config(server.address, &["api.example.org:443"])).unwrap();
    let socket = proxy.bridges()[0].socket.clone();
    let mut tunnel = UnixStream::connect(&socket).unwrap();
    tunnel
        .write_all(b"CONNECT api.example.org:443 HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut head = [0; 39];
    tunnel.read_exact(&mut head).unwrap();
    let silent = UnixStream::connect(&socket).unwrap();
    let records = proxy.finish();
    assert_eq!(verdicts(&records[..1]), [Verdict::Allowed]);
    assert_eq!(tunnel.read(&mut [0; 8]).unwrap(), 0);
    assert!(!socket.exists() && !socket.parent().unwrap().exists());
    drop(silent);
    server.seen.recv_timeout(Duration::from_secs(60)).unwrap();
}

#[test]
fn connections_are_bounded() {
    let server = server(b"\r\n\r\n", REPLY);
    let proxy = Proxy::start(config(server.address, &["api.example.org:80"])).unwrap();
    let socket = &proxy.bridges()[0].socket;
    let held: Vec<_> = (0..256)
        .map(|_| UnixStream::connect(socket).unwrap())
        .collect();
    let answer = ask(&proxy, b"GET http://api.example.org/ HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(held);
    // Places are free again as the threads notice.
    let served = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(10));
        ask(&proxy, b"GET http://api.example.org/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ")
    });
    assert!(served);
}

#[test]
fn variables_point_to_the_proxy_but_not_for_loopback() {
    let proxy = Proxy::start(Config::new("test", Vec::new())).unwrap();
    let env = proxy.environment();
    let port = proxy.bridges()[0].port;
    let get = |name: &str| {
        env.iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(get("HTTPS_PROXY"), format!("http://127.0.0.1:{port}"));
    assert!(get("NO_PROXY").contains("127.0.0.1"));
}
