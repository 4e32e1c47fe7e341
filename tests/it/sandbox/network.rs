//! The network: none but one's own loopback, and bridges to sockets of the host.

use super::support::{Who, out, sh, spec};
use hangar::sandbox::spec::{Bridge, End, Network, Spec, Step};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

fn bash(script: &str) -> Step {
    let mut step = sh(script);
    step.argv[0] = "/bin/bash".into();
    step
}

#[test]
pub(super) fn nothing_but_loopback_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for who in Who::all() {
        let script = format!(
            "(exec 4<>/dev/tcp/127.0.0.1/{port}) 2>&1; (exec 4<>/dev/tcp/192.0.2.1/80) 2>&1; \
             tail -n +3 /proc/net/dev | cut -d: -f1"
        );
        let outcome = who
            .run(&Spec {
                steps: vec![bash(&script)],
                ..spec()
            })
            .unwrap();
        let said = out(&outcome);
        assert!(said.contains("Connection refused"), "{said}");
        assert!(said.contains("Network is unreachable"), "{said}");
        assert!(said.trim_end().ends_with("    lo"), "{said}");
        assert!(listener.accept().is_err());
    }
}

#[test]
pub(super) fn a_bridge_leads_to_a_socket_of_the_host_and_nowhere_else() {
    for who in Who::all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxy");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut word = [0; 5];
            stream.read_exact(&mut word).unwrap();
            stream.write_all(&word).unwrap();
            stream.write_all(&vec![b'x'; 1 << 20]).unwrap();
        });
        let script = format!(
            "exec 4<>/dev/tcp/127.0.0.1/3128; printf hello >&4; cat <&4 | wc -c; \
             ls {} 2>&1; (exec 5<>/dev/tcp/127.0.0.1/3129) 2>&1 | grep -o refused",
            folder.path().display()
        );
        let outcome = who
            .run(&Spec {
                network: Network::Bridged(vec![Bridge {
                    port: 3128,
                    socket: path,
                }]),
                steps: vec![bash(&script)],
                ..spec()
            })
            .unwrap();
        server.join().unwrap();
        let said = out(&outcome);
        assert!(said.starts_with(&format!("{}\n", (1 << 20) + 5)), "{said}");
        assert!(said.contains("No such file"), "{said}");
        assert!(said.ends_with("refused\n"), "{said}");
    }
}

#[test]
pub(super) fn a_bridge_to_nobody_just_ends() {
    let outcome = Who::Us
        .run(&Spec {
            network: Network::Bridged(vec![Bridge {
                port: 3128,
                socket: "/nonexistent/socket".into(),
            }]),
            steps: vec![bash("exec 4<>/dev/tcp/127.0.0.1/3128; cat <&4; exit 0")],
            ..spec()
        })
        .unwrap();
    assert_eq!(outcome.steps[0].end, End::Exited(0));
}
