//! `sshd` on the loopback interface: each connection gets one of its own (`sshd -i`), with a throwaway
//! host key and one allowed key. Nothing of the machine's own ssh is read.

use crate::common::{TestEnv, write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Where Debian and most others keep it: not on every `PATH`.
const SSHD: &str = "/usr/sbin/sshd";

/// A server, and how a client reaches it.
pub(super) struct Server {
    port: u16,
    known_hosts: PathBuf,
    /// While set, a connection is killed after the server has begun to take a push.
    pub(super) cut: Arc<AtomicBool>,
}

impl Server {
    /// Lets in whoever has `~/.ssh/id_ed25519` of this user.
    pub(super) fn start(env: &TestEnv) -> Self {
        assert!(Path::new(SSHD).is_file(), "install openssh-server");
        let dir = env.root().join("sshd");
        std::fs::create_dir(&dir).unwrap();
        let host_key = dir.join("host_key");
        let keygen = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&host_key)
            .status();
        assert!(keygen.unwrap().success());
        let allowed = env.home().join(".ssh/id_ed25519.pub");
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             LogLevel QUIET\nPrintMotd no\nAcceptEnv GIT_PROTOCOL\n",
            host_key.display(),
            allowed.display()
        );
        write(&dir.join("config"), &config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let public = std::fs::read_to_string(host_key.with_extension("pub")).unwrap();
        let known_hosts = dir.join("known_hosts");
        write(&known_hosts, &format!("[127.0.0.1]:{port} {public}"));
        let cut = Arc::new(AtomicBool::new(false));
        let (config, flag) = (dir.join("config"), Arc::clone(&cut));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, cut) = (config.clone(), Arc::clone(&flag));
                thread::spawn(move || serve(&stream, &config, &cut));
            }
        });
        Self {
            port,
            known_hosts,
            cut,
        }
    }

    pub(super) fn address(&self, path: &Path) -> String {
        let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
        let user = user.unwrap_or_else(|_| {
            let out = Command::new("id").arg("-un").output().unwrap();
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        });
        format!("ssh://{user}@127.0.0.1:{}{}", self.port, path.display())
    }

    /// The ssh command of a client with this key.
    pub(super) fn command(&self, key: &Path) -> String {
        format!(
            "ssh -F none -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile={} -o \
             GlobalKnownHostsFile=none -i {}",
            self.known_hosts.display(),
            key.display()
        )
    }
}

fn serve(stream: &std::net::TcpStream, config: &Path, cut: &AtomicBool) {
    let end = |stream: &std::net::TcpStream| OwnedFd::from(stream.try_clone().unwrap());
    let child = Command::new(SSHD)
        .args(["-i", "-f"])
        .arg(config)
        .stdin(Stdio::from(end(stream)))
        .stdout(Stdio::from(end(stream)))
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    while child.try_wait().unwrap().is_none() {
        if cut.load(Ordering::SeqCst) {
            // The connection goes; what the server's git has begun ends by itself.
            let _ = stream.shutdown(std::net::Shutdown::Both);
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(std::time::Duration::from_millis(5));
    }
}
