//! Attempts to get out, each beside what an honest program may do.

use super::support::{Who, contained, folder, out, sh, spec, text, tried};
use hangar::sandbox::spec::{Mount, Spec};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::os::unix::net::UnixListener;

#[test]
pub(super) fn host_files_are_not_there() {
    let secret = folder(&[("secret", "host secret")]);
    let path = secret.path().join("secret");
    for who in Who::all() {
        // A container has that folder, with nothing of the machine in it.
        let devices = if contained() { "" } else { "/sys" };
        let script = format!(
            "cat {0} /etc/shadow /root/.ssh/id_ed25519; ls /root /work /var/lib /boot {devices}; \
             cat /proc/1/root{0} /proc/self/root{0}",
            path.display()
        );
        assert_eq!(who.says(&script), "", "{script}");
        // Named, it is there.
        let outcome = who
            .run(&Spec {
                mounts: vec![Mount::ReadOnly {
                    host: path.clone(),
                    inside: path.clone(),
                }],
                steps: vec![sh(&format!("cat {}", path.display()))],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "host secret");
    }
}

#[test]
pub(super) fn host_sockets_are_out_of_reach_even_when_their_folder_is_bound() {
    let folder = folder(&[("file", "seen")]);
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    listener.set_nonblocking(true).unwrap();
    for who in Who::all() {
        // Only what the caller itself binds is visible; nothing of `/run` or `/tmp` is.
        let said = who.says(&format!(
            "ls {} /run /var/run /tmp 2>/dev/null; find / -xdev -type s 2>/dev/null",
            folder.path().display()
        ));
        assert_eq!(said, "/run:\n\n/tmp:\n");
    }
    assert!(listener.accept().is_err());
}

#[test]
pub(super) fn privileges_are_gone_and_cannot_be_had() {
    for who in Who::all() {
        let said = who.says(
            "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u; \
             unshare -U true && echo USERNS; unshare -n true && echo NETNS; \
             unshare -m true && echo MOUNTNS; mount -t tmpfs x /tmp && echo MOUNTED; \
             umount /proc && echo UNMOUNTED; chroot / true && echo CHROOT; \
             hostname evil && echo NAMED; mknod /tmp/mem c 1 1 && echo NODE; \
             echo 1 > /proc/sys/kernel/core_pattern && echo SYSCTL; echo done",
        );
        let zero = "\t0000000000000000\n";
        let expected = format!(
            "CapInh:{zero}CapPrm:{zero}CapEff:{zero}CapBnd:{zero}CapAmb:{zero}NoNewPrivs:\t1\nSeccomp:\t2\n"
        );
        assert!(said.starts_with(&expected), "{said}");
        let rest = said.strip_prefix(&expected).unwrap();
        assert!(
            rest == "65534\ndone\n" || rest.ends_with("000\ndone\n"),
            "{rest}"
        );
    }
}

#[test]
pub(super) fn a_set_user_id_program_gains_nothing() {
    for who in Who::all() {
        let said = who.says("for f in /bin/su /usr/bin/passwd; do [ -u $f ] && echo found; done; grep ' / \\| /usr ' /proc/mounts | grep -vc nosuid");
        assert!(said.ends_with("0\n"), "{said}");
    }
}

#[test]
pub(super) fn the_supervisor_is_out_of_reach() {
    for who in Who::all() {
        let said = who.says(
            "kill -USR1 1 2>/dev/null && echo SIGNALLED; kill -KILL 1 2>/dev/null; \
             (echo x > /proc/1/mem) 2>/dev/null && echo WRITTEN; \
             cat /proc/1/mem /proc/1/maps /proc/1/environ 2>/dev/null && echo READ; \
             ls /proc/1/fd 2>/dev/null && echo LISTED; \
             sleep 50 & kill $! && echo own; echo alive; \
             ls -d /proc/1 2>/dev/null",
        );
        // Seen and out of reach, where another program made the walls.
        let hidden = ["linux", "gvisor"].contains(&tried());
        let seen = if hidden { "" } else { "/proc/1\n" };
        assert_eq!(said, format!("own\nalive\n{seen}"));
    }
}

#[test]
pub(super) fn a_child_cannot_write_its_parents_memory() {
    for who in Who::all() {
        let said = who.says(
            "sh -c '(: > /proc/$PPID/mem) && echo WRITTEN; (: > /proc/$$/mem) && echo OWN; true' 2>/dev/null; \
             : > /proc/self/fd/1; : > /dev/stderr; echo honest",
        );
        assert_eq!(said, "honest\n");
    }
}

#[test]
pub(super) fn without_the_inner_domain_the_supervisor_is_still_out_of_reach() {
    for who in Who::all() {
        let outcome = who
            .run(&Spec {
                inner_domain: false,
                steps: vec![sh("kill -KILL 1; (: > /proc/1/mem) && echo WRITTEN; \
                     cat /proc/1/environ && echo READ; ls /proc/1/fd/ && echo LISTED; echo alive")],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "alive\n");
    }
}

#[test]
pub(super) fn inherited_descriptors_are_closed() {
    let secret = folder(&[("secret", "host secret")]);
    let file = File::open(secret.path().join("secret")).unwrap();
    // As a careless parent would leave it.
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    for who in Who::all() {
        let said = who.says("for fd in /proc/self/fd/*; do readlink $fd; done | grep -v '^pipe:\\|^/dev/null\\|^/proc'; echo done");
        assert_eq!(said, "done\n");
    }
}

#[test]
pub(super) fn the_channel_is_only_for_who_was_given_it() {
    let open = "(echo forged > /proc/$PPID/fd/3) 2>&1; (echo forged > /proc/self/fd/3) 2>&1; \
                (read -r x < /proc/$PPID/fd/3) 2>&1; cat /dev/fd/3 2>&1";
    for who in Who::all() {
        let step = |line: &str| {
            let mut step = sh(line);
            step.channel = true;
            step
        };
        let given = format!("echo ours >&3; {open}; sh -c 'echo given' >&3; echo end >&3");
        let kept = format!("echo ours >&3; sh -c '{open}' 3>&-; echo end >&3");
        let steps = vec![step(&given), step(&kept)];
        let outcome = who.run(&Spec { steps, ..spec() }).unwrap();
        let channel = |at: usize| text(outcome.steps[at].channel.as_ref().unwrap());
        assert_eq!(channel(0), "ours\ngiven\nend\n");
        assert_eq!(channel(1), "ours\nend\n");
    }
}

#[test]
pub(super) fn a_crash_dumps_no_memory() {
    for who in Who::all() {
        let said = who.says(
            "grep core /proc/self/limits; cat /proc/self/coredump_filter; \
             (echo 33 > /proc/self/coredump_filter) 2>/dev/null && echo CHANGED; \
             cd /tmp; sh -c 'kill -SEGV $$'; ls",
        );
        let words: Vec<&str> = said.split_whitespace().collect();
        // One byte: nothing is written, and nothing is piped to a program of the host either.
        assert_eq!(
            words,
            ["Max", "core", "file", "size", "1", "1", "bytes", "00000000"]
        );
    }
}

#[test]
pub(super) fn there_is_no_terminal() {
    for who in Who::all() {
        let said = who
            .says("(: < /dev/tty) 2>/dev/null && echo TTY; ls /dev; ps -o tty= -p $$ 2>/dev/null");
        assert!(!said.contains("TTY"), "{said}");
        let expected = if contained() {
            // Terminals that a program makes are its own.
            "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n"
        } else {
            "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n"
        };
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
pub(super) fn what_is_not_ours_cannot_be_written() {
    for who in Who::all() {
        let said = who.says(
            "for d in / /usr /usr/bin /etc /etc/ssl /dev /var /home /proc/sys/kernel; do \
               (: > $d/.new) 2>/dev/null && echo $d; done; \
             for d in /tmp /home/user /run /dev/shm; do : > $d/.new || echo no $d; done; \
             rm /etc/passwd 2>/dev/null && echo REMOVED; echo done",
        );
        assert_eq!(said, "done\n");
    }
}
