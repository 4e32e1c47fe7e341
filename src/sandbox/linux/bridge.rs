//! Bridges: connections to a loopback port inside are accepted by hangar itself and led to a Unix
//! socket of the host.
//!
//! The listener was made in the sandbox's network namespace and handed out, so nothing of a bridge
//! runs where sandboxed code could reach it.

use rustix::fd::OwnedFd;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Connections served at one time by one bridge; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 256;

/// Bridges at work. Dropping ends them and their connections.
#[derive(Default)]
pub(super) struct Bridges {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    count: AtomicUsize,
    open: Mutex<Vec<(TcpStream, UnixStream)>>,
}

impl Bridges {
    /// Serves `listener` with connections to `socket`.
    pub(super) fn serve(&mut self, listener: OwnedFd, socket: PathBuf) -> io::Result<()> {
        let listener = TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let shared = Arc::clone(&self.shared);
        self.threads
            .push(thread::spawn(move || accept(&listener, &socket, &shared)));
        Ok(())
    }
}

impl Drop for Bridges {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let open = std::mem::take(&mut *lock(&self.shared.open));
        for (inside, outside) in open {
            let _ = inside.shutdown(Shutdown::Both);
            let _ = outside.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, socket: &Path, shared: &Arc<Shared>) {
    let pause = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    while !shared.ended.load(Ordering::SeqCst) {
        let mut fds = [rustix::event::PollFd::new(
            listener,
            rustix::event::PollFlags::IN,
        )];
        let ready = rustix::event::poll(&mut fds, Some(&pause)).is_ok_and(|count| count > 0);
        if !ready || shared.count.load(Ordering::SeqCst) >= MAX_CONNECTIONS {
            if ready {
                thread::sleep(std::time::Duration::from_millis(5));
            }
            continue;
        }
        let Ok((inside, _)) = listener.accept() else {
            continue;
        };
        shared.count.fetch_add(1, Ordering::SeqCst);
        let (socket, shared) = (socket.to_owned(), Arc::clone(shared));
        // Connecting may block, and one connection must not hold up the others or our end.
        thread::spawn(move || {
            // Nobody outside listens: the connection inside just ends.
            if let Ok(outside) = UnixStream::connect(socket) {
                let _ = connect(&inside, &outside, &shared);
            }
            shared.count.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Moves bytes both ways until both sides are done.
fn connect(inside: &TcpStream, outside: &UnixStream, shared: &Shared) -> io::Result<()> {
    inside.set_nonblocking(false)?;
    let _ = inside.set_nodelay(true);
    let peer = inside.peer_addr()?;
    let pair = (inside.try_clone()?, outside.try_clone()?);
    lock(&shared.open).push(pair);
    if shared.ended.load(Ordering::SeqCst) {
        let _ = inside.shutdown(Shutdown::Both);
        let _ = outside.shutdown(Shutdown::Both);
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*outside, &mut &*inside);
            let _ = inside.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut &*inside, &mut &*outside);
        let _ = outside.shutdown(Shutdown::Write);
    });
    lock(&shared.open).retain(|(open, _)| open.peer_addr().is_ok_and(|other| other != peer));
    Ok(())
}
