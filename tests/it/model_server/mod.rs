//! A model as a loopback server, scripted per test: it lets a program run shell commands and end its
//! turn, or fails in one of the ways in which the real ones do. It speaks Anthropic's messages and
//! OpenAI's responses, as server-sent events, and keeps every request.

mod anthropic;
mod openai;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the model does.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// Runs these shell commands, one for each request, then says that it is done.
    Work(Vec<String>),
    /// Runs these shell commands, one for each request, then answers with this status.
    WorkThen(Vec<String>, Refusal),
    /// Answers every request with this status.
    Refuse(Refusal),
    /// Lets the program run this command, then answers no more.
    Hang(String),
    /// Breaks off in the middle of an answer.
    Die,
}

/// An answer that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A usage limit that is lifted at this second.
    Limit(i64),
    /// Too many requests.
    Rate,
    /// Overloaded.
    Overloaded,
    /// The key is not taken.
    Auth,
}

/// One request of a program.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

/// A status with headers and a body, or events.
enum Answer {
    Plain(u16, Vec<(&'static str, String)>, Value),
    Events(Vec<Value>),
    /// Events without their end.
    Half(Vec<Value>),
    Nothing,
}

/// It runs until the test ends.
pub(crate) struct ModelServer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl ModelServer {
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
        };
        let requests = Arc::clone(&server.requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, requests) = (script.clone(), Arc::clone(&requests));
                thread::spawn(move || serve(&stream, &script, &requests));
            }
        });
        server
    }

    /// Every request to the model so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers requests of one connection until it ends.
fn serve(stream: &TcpStream, script: &Script, requests: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let answer = if request.path.contains("/messages") {
            requests.lock().unwrap().push(request.clone());
            anthropic::answer(script, &request)
        } else if request.path.contains("/responses") {
            requests.lock().unwrap().push(request.clone());
            openai::answer(script, &request.body)
        } else {
            Answer::Plain(404, Vec::new(), Value::Null)
        };
        let goes_on = matches!(answer, Answer::Plain(..));
        if matches!(answer, Answer::Nothing) {
            // Until the program goes away.
            let _ = reader.read_to_end(&mut Vec::new());
        }
        if !write(stream, answer) || !goes_on {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let headers = head.to_ascii_lowercase();
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request {
        path,
        headers,
        body,
    })
}

/// Whether all of it could be written.
fn write(mut stream: &TcpStream, answer: Answer) -> bool {
    let text = match answer {
        Answer::Plain(status, headers, body) => {
            let body = body.to_string();
            let lines = headers
                .iter()
                .map(|(name, value)| [*name, ": ", value, "\r\n"].concat());
            let headers: String = lines.collect();
            format!(
                "HTTP/1.1 {status} Scripted\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
        Answer::Events(events) => stream_of(&events),
        Answer::Half(events) => stream_of(&events) + "event: message\ndata: {\"half",
        Answer::Nothing => return true,
    };
    stream.write_all(text.as_bytes()).is_ok()
}

fn stream_of(events: &[Value]) -> String {
    let one = |event: &Value| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    let events: String = events.iter().map(one).collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}"
    )
}
