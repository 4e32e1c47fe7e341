use super::*;

fn read(text: &[u8]) -> Result<Request, Reason> {
    request(text).map(|found| found.expect("a whole head").0)
}

fn sent(text: &str) -> (String, Body) {
    match read(text.as_bytes()).unwrap().kind {
        Kind::Plain { head, body, .. } => (String::from_utf8(head).unwrap(), body),
        Kind::Connect => panic!("CONNECT"),
    }
}

#[test]
fn honest_requests_are_read() {
    let request =
        read(b"CONNECT API.example.org:443 HTTP/1.1\r\nHost: api.example.org\r\n\r\n").unwrap();
    assert_eq!(request.endpoint.to_string(), "api.example.org:443");
    assert_eq!(request.kind, Kind::Connect);
    let (head, body) = sent(
        "POST http://api.example.org:8080/v1?x=1 HTTP/1.1\r\nHost: api.example.org:8080\r\n\
         Proxy-Connection: keep-alive\r\nConnection: X-Once\r\nX-Once: 1\r\nX-Kept: 2\r\n\
         Proxy-Authorization: Basic abc\r\nContent-Length: 3\r\n\r\n",
    );
    assert_eq!(
        head,
        "POST /v1?x=1 HTTP/1.1\r\nHost: api.example.org:8080\r\nX-Kept: 2\r\n\
         Content-Length: 3\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(body, Body::Length(3));
    let (head, body) = sent("POST HTTP://a.example HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assert!(
        head.starts_with("POST / HTTP/1.1\r\nHost: a.example\r\n"),
        "{head}"
    );
    assert_eq!(body, Body::Chunked);
    assert!(request_is_partial(
        b"GET http://a.example/ HTTP/1.1\r\nHost:"
    ));
}

fn request_is_partial(bytes: &[u8]) -> bool {
    request(bytes).unwrap().is_none()
}

#[test]
fn an_upgrade_is_kept() {
    let (head, _) = sent(
        "GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    );
    assert!(
        head.contains("Sec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
        "{head}"
    );
}

#[test]
fn tricks_with_the_target_are_refused() {
    for bad in [
        "CONNECT a.example HTTP/1.1\r\n\r\n",
        "CONNECT a.example: HTTP/1.1\r\n\r\n",
        "CONNECT a.example:0 HTTP/1.1\r\n\r\n",
        "CONNECT a.example:+443 HTTP/1.1\r\n\r\n",
        "CONNECT a.example:443@evil.example:443 HTTP/1.1\r\n\r\n",
        "CONNECT u@a.example:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.example.:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.example%00.evil:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.example\0:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.ex\u{e4}mple:443 HTTP/1.1\r\n\r\n",
        "CONNECT local:127.0.0.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
        "CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
        "CONNECT http://a.example:443 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\n\r\n",
        "GET ftp://a.example/ HTTP/1.1\r\n\r\n",
        "GET http://u:p@a.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example#@evil.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example\\@evil.example/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\n\r\n",
        "GET http://a.example/\x01 HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/2.0\r\n\r\n",
    ] {
        assert!(
            matches!(request(bad.as_bytes()), Err(Reason::Malformed(_))),
            "{bad:?}"
        );
    }
}

#[test]
fn tricks_with_headers_are_refused() {
    let post = "POST http://a.example/ HTTP/1.1\r\n";
    let connect = "CONNECT a.example:443 HTTP/1.1\r\n";
    for (line, headers) in [
        (post, "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        (post, "Content-Length: 1\r\nContent-Length: 2\r\n"),
        (post, "Content-Length: 1\r\nContent-Length: 1\r\n"),
        (post, "Content-Length: +1\r\n"),
        (post, "Content-Length: 1, 1\r\n"),
        (post, "Content-Length: 99999999999999999999\r\n"),
        (post, "Transfer-Encoding: gzip, chunked\r\n"),
        (
            post,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        ),
        (post, "Transfer-Encoding : chunked\r\n"),
        (post, "X: a\r\n Content-Length: 1\r\n"),
        (post, "Host: evil.example\r\n"),
        (post, "Host: a.example:81\r\n"),
        (post, "Host: a.example\r\nHost: evil.example\r\n"),
        (post, "Connection: content-length\r\nContent-Length: 1\r\n"),
        (post, "Connection: host\r\n"),
        (
            post,
            "Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n",
        ),
        (post, "X: a\0b\r\n"),
        (connect, "Content-Length: 10\r\n"),
        (connect, "Transfer-Encoding: chunked\r\n"),
        (connect, "Host: evil.example:443\r\n"),
    ] {
        let text = format!("{line}{headers}\r\n");
        assert!(
            matches!(request(text.as_bytes()), Err(Reason::Malformed(_))),
            "{text:?}"
        );
    }
    let old = b"POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(request(old).is_err());
}

#[test]
fn responses_lose_what_is_bound_to_the_connection() {
    let bytes = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n\r\nok";
    let (response, length) = response(bytes).unwrap().unwrap();
    assert_eq!(&bytes[length..], b"ok");
    assert_eq!(
        String::from_utf8(response.head).unwrap(),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    );
    assert!(super::response(b"SSH-2.0-x\r\n\r\n").is_err());
}

/// Bytes that look like a request, with anything in between.
fn nearly_a_request() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let piece = prop_oneof![
        Just(b"GET http://a.example/ HTTP/1.1\r\n".to_vec()),
        Just(b"CONNECT a.example:443 HTTP/1.1\r\n".to_vec()),
        Just(b"Host: a.example\r\n".to_vec()),
        Just(b"Content-Length: 3\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Connection: upgrade\r\nUpgrade: x\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest::proptest! {
    #[test]
    fn whatever_comes_what_is_sent_on_is_one_head(bytes in nearly_a_request()) {
        if let Ok(Some((found, length))) = request(&bytes) {
            assert!(length <= bytes.len());
            if let Kind::Plain { head, .. } = found.kind {
                let text = String::from_utf8_lossy(&head).into_owned();
                assert!(text.ends_with("\r\n\r\n"));
                assert_eq!(text.matches("\r\n\r\n").count(), 1);
                let lines = text.replace("\r\n", "");
                assert!(!lines.contains(['\r', '\n', '\0']), "{text:?}");
                let hosts = text.to_ascii_lowercase().matches("\r\nhost:").count();
                assert_eq!(hosts, 1);
            }
        }
        let _ = response(&bytes);
    }
}
