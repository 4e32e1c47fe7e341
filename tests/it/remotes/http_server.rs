//! `git http-backend` behind a small server on the loopback interface: one thread for a connection, one
//! request for a connection, bodies of a given length or in chunks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Who may do what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everyone may do everything.
    Open,
    /// Only with the login `me:secret`.
    Login,
    /// Everyone reads; nobody writes.
    ReadOnly,
}

/// A server over the repositories in one folder.
pub(super) struct Server {
    pub(super) port: u16,
    /// While set, a push is cut off in the middle of its body.
    pub(super) cut: Arc<AtomicBool>,
}

impl Server {
    pub(super) fn start(root: &Path, access: Access) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let (root, flag) = (root.to_owned(), Arc::clone(&cut));
        // The thread ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, cut) = (root.clone(), Arc::clone(&flag));
                thread::spawn(move || {
                    // A client that goes away is its own business.
                    let _ = serve(stream, &root, access, &cut);
                });
            }
        });
        Self { port, cut }
    }

    pub(super) fn address(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        Some(Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
        })
    }

    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    fn is_push(&self) -> bool {
        self.path.ends_with("receive-pack") || self.query.contains("receive-pack")
    }
}

fn serve(
    mut stream: TcpStream,
    root: &Path,
    access: Access,
    cut: &AtomicBool,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = Request::read(&mut reader) else {
        return Ok(());
    };
    let refuse = |stream: &mut TcpStream, status: &str, header: &str| {
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
    };
    // me:secret
    if access == Access::Login && request.header("authorization") != "Basic bWU6c2VjcmV0" {
        let ask = "WWW-Authenticate: Basic realm=\"here\"\r\n";
        return refuse(&mut stream, "401 Unauthorized", ask);
    }
    if access == Access::ReadOnly && request.is_push() {
        return refuse(&mut stream, "403 Forbidden", "");
    }
    if request
        .header("expect")
        .eq_ignore_ascii_case("100-continue")
    {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = body(&mut reader, &request)?;
    if cut.load(Ordering::SeqCst) && request.method == "POST" && request.is_push() {
        return Ok(());
    }
    answer(&mut stream, root, &request, &body)
}

fn body(reader: &mut BufReader<TcpStream>, request: &Request) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if request.header("transfer-encoding") == "chunked" {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
            reader.take(size).read_to_end(&mut body)?;
            reader.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let size = request.header("content-length").parse().unwrap_or(0);
    reader.take(size).read_to_end(&mut body)?;
    Ok(body)
}

/// Runs git's own program, which answers as CGI does: headers, an empty line, the body.
fn answer(
    stream: &mut TcpStream,
    root: &Path,
    request: &Request,
    body: &[u8],
) -> std::io::Result<()> {
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "me")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", request.header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding"))
        .env("GIT_PROTOCOL", request.header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().unwrap();
    let body = body.to_vec();
    let writer = thread::spawn(move || stdin.write_all(&body));
    let out = child.wait_with_output()?;
    let _ = writer.join();
    let end = out.stdout.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = out
        .stdout
        .split_at(end.map_or(out.stdout.len(), |end| end + 4));
    let head = String::from_utf8_lossy(head);
    let lines = || head.lines().filter(|line| !line.is_empty());
    let status = lines().find_map(|line| line.strip_prefix("Status: "));
    write!(stream, "HTTP/1.1 {}\r\n", status.unwrap_or("200 OK"))?;
    for line in lines().filter(|line| !line.starts_with("Status: ")) {
        write!(stream, "{line}\r\n")?;
    }
    write!(
        stream,
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

/// A server that takes connections and never says a word. The address of a repository there.
pub(super) fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let open: Vec<_> = listener.incoming().collect();
        drop(open);
    });
    format!("http://127.0.0.1:{port}/hub.git")
}
