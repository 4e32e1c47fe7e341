//! The driver's side: a program that behaves as the one that it starts over there.

use super::{kind, pump, receive, send};
use std::ffi::OsString;
use std::io;
use std::net::TcpStream;
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;
use std::thread;

/// Exit status when the other side is gone before the program has ended, or was never there.
const GONE: u8 = 125;

/// Exit status, as a shell says it, of a program whose reader has gone (128 + `SIGPIPE`).
const NO_READER: u8 = 141;

/// Starts a program or connects to a socket on the other side; streams and status are its own.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    match (args.next(), args.next()) {
        (Some(port), Some(word)) => {
            talk(&port, &word, args.collect()).map_or(ExitCode::from(GONE), ExitCode::from)
        }
        _ => ExitCode::from(GONE),
    }
}

/// The exit status; `None` when the other side is not there.
fn talk(port: &OsString, word: &OsString, args: Vec<OsString>) -> Option<u8> {
    let asked = match word.to_str()? {
        "run" => kind::RUN,
        "dial" => kind::DIAL,
        _ => return None,
    };
    let line = TcpStream::connect(("127.0.0.1", port.to_str()?.parse().ok()?)).ok()?;
    let _ = line.set_nodelay(true);
    let parts: Vec<Vec<u8>> = args.into_iter().map(OsString::into_vec).collect();
    send(&line, asked, &parts.join(&0)).ok()?;
    let to = line.try_clone().ok()?;
    thread::spawn(move || {
        pump(io::stdin().lock(), kind::IN, |kind, bytes| {
            send(&to, kind, bytes)
        });
        let _ = send(&to, kind::IN, &[]);
    });
    loop {
        let (kind, bytes) = receive(&line).ok()??;
        let read = match kind {
            kind::OUT => write(io::stdout().lock(), &bytes),
            kind::ERR => write(io::stderr().lock(), &bytes),
            kind::EXIT => {
                let status = i32::from_le_bytes(bytes.try_into().ok()?);
                return u8::try_from(status).ok();
            }
            _ => return None,
        };
        if !read {
            // The line closes, which ends the program over there.
            return Some(NO_READER);
        }
    }
}

/// Whether somebody still reads. Any other failure to write is no fault of the program.
fn write(mut to: impl io::Write, bytes: &[u8]) -> bool {
    let written = to.write_all(bytes).and_then(|()| to.flush());
    !written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
