//! What would make the embedded provider work on this machine, in words for a person.
//!
//! Advice only names settings that a person may want to change; it never tells to delete or to
//! switch off more than what stands in the way.

use std::fs;
use std::path::Path;

/// Facts about a machine that decide the advice.
struct Machine {
    /// `kernel.apparmor_restrict_unprivileged_userns` is on.
    apparmor: bool,
    /// `kernel.unprivileged_userns_clone` is off (Debian's switch).
    clone_off: bool,
    /// `user.max_user_namespaces` is 0.
    none_allowed: bool,
    /// We run inside a container.
    container: bool,
}

impl Machine {
    fn look() -> Self {
        let is = |name: &str, value: &str| {
            fs::read_to_string(Path::new("/proc/sys").join(name))
                .is_ok_and(|text| text.trim() == value)
        };
        Self {
            apparmor: is("kernel/apparmor_restrict_unprivileged_userns", "1"),
            clone_off: is("kernel/unprivileged_userns_clone", "0"),
            none_allowed: is("user/max_user_namespaces", "0"),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists()),
        }
    }
}

/// Steps of the set-up that the machine's settings can forbid.
const NAMESPACES: [&str; 4] = [
    "make a user namespace",
    "set up the user namespace",
    "make namespaces",
    "make mounts private",
];

/// The remedy for a failed step of the set-up, where the machine is to blame.
pub(super) fn remedy(what: &str, errno: i32) -> Option<String> {
    advice(&Machine::look(), what, errno)
}

fn advice(machine: &Machine, what: &str, errno: i32) -> Option<String> {
    let denied = matches!(
        errno,
        libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS
    );
    let text = if errno == libc::ENOSYS {
        "use Linux 5.12 or later (5.13 or later with Landlock for the inner domain)"
    } else if !denied {
        return None;
    } else if what.ends_with("/proc") {
        "this machine hides parts of /proc: in a container, start it with \
         `--security-opt systempaths=unconfined` (Docker) or `--security-opt unmask=ALL` (Podman)"
    } else if !NAMESPACES.contains(&what) && what != "bring loopback up" {
        return None;
    } else if machine.apparmor {
        "AppArmor restricts user namespaces: allow them with \
         `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (until the next boot), \
         or give the hangar program an AppArmor profile with the rule `userns,`"
    } else if machine.clone_off {
        "allow user namespaces: `sudo sysctl -w kernel.unprivileged_userns_clone=1` \
         (until the next boot)"
    } else if machine.none_allowed {
        "allow user namespaces: `sudo sysctl -w user.max_user_namespaces=15000` \
         (until the next boot)"
    } else if machine.container {
        "the container forbids namespaces: start it with a seccomp profile that allows \
         `unshare`, `clone` and `mount` in user namespaces, or use another provider"
    } else {
        "the kernel refuses namespaces to this user: check `user.max_user_namespaces` and the \
         security modules, or use another provider"
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Machine = Machine {
        apparmor: false,
        clone_off: false,
        none_allowed: false,
        container: false,
    };

    #[test]
    fn advice_names_the_setting_that_stands_in_the_way() {
        let ubuntu = Machine {
            apparmor: true,
            ..PLAIN
        };
        let text = advice(&ubuntu, "set up the user namespace", libc::EPERM).unwrap();
        assert!(text.contains("kernel.apparmor_restrict_unprivileged_userns=0"));
        let debian = Machine {
            clone_off: true,
            ..PLAIN
        };
        let text = advice(&debian, "make a user namespace", libc::EPERM).unwrap();
        assert!(text.contains("kernel.unprivileged_userns_clone=1"));
        let text = advice(&PLAIN, "mount /proc", libc::EPERM).unwrap();
        assert!(text.contains("unmask=ALL"));
    }

    #[test]
    fn a_fault_of_the_specification_gets_no_advice_about_the_machine() {
        assert_eq!(advice(&PLAIN, "bind", libc::ENOENT), None);
        assert_eq!(advice(&PLAIN, "bind", libc::EACCES), None);
    }
}
