//! The system calls that a sandboxed program does not get.
//!
//! Two filters. The first is ours by hand, because it decides by number ranges: foreign
//! architectures and the x32 numbers die or fail, `clone3` and every call newer than this file
//! answer "not implemented", so that programs fall back to what is known here. The second denies
//! calls that reach out of the sandbox or widen the kernel's surface.

use super::fault::{Doing as _, Fault};
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// The newest call that was looked at for this filter (`file_setattr`, Linux 6.17). The numbers
/// of new calls are the same on every architecture.
const NEWEST: u32 = 469;

const AUDIT_ARCH_X86_64: u32 = 0xC000_003E;
const AUDIT_ARCH_AARCH64: u32 = 0xC000_00B7;
const AUDIT_ARCH_RISCV64: u32 = 0xC000_00F3;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// Both filters, ready to be applied.
pub(super) struct Filters {
    numbers: BpfProgram,
    calls: BpfProgram,
}

fn here() -> Option<(u32, TargetArch)> {
    match std::env::consts::ARCH {
        "x86_64" => Some((AUDIT_ARCH_X86_64, TargetArch::x86_64)),
        "aarch64" => Some((AUDIT_ARCH_AARCH64, TargetArch::aarch64)),
        "riscv64" => Some((AUDIT_ARCH_RISCV64, TargetArch::riscv64)),
        _ => None,
    }
}

/// Compiles both filters.
pub(super) fn compile() -> Result<Filters, Fault> {
    let (audit, arch) = here()
        .ok_or(Errno::NOSYS)
        .doing("filter calls on this architecture")?;
    let filter = rules()
        .and_then(|rules| {
            SeccompFilter::new(
                rules,
                SeccompAction::Allow,
                SeccompAction::Errno(libc::EPERM.unsigned_abs()),
                arch,
            )
        })
        .and_then(BpfProgram::try_from)
        .map_err(|_| Errno::INVAL)
        .doing("compile the call filter")?;
    Ok(Filters {
        numbers: numbers(audit),
        calls: filter,
    })
}

impl Filters {
    /// Applies both to this thread, for good. `no_new_privs` must be set.
    pub(super) fn apply(&self) -> Result<(), Errno> {
        [&self.numbers, &self.calls]
            .into_iter()
            .try_for_each(|program| {
                seccompiler::apply_filter(program).map_err(|error| match error {
                    seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => {
                        Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
                    }
                    _ => Errno::INVAL,
                })
            })
    }
}

fn statement(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt: yes,
        jf: no,
        k,
    }
}

fn numbers(audit: u32) -> BpfProgram {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let greater = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or_default();
    vec![
        statement(load, ARCH),
        jump(equal, audit, 1, 0),
        statement(give, libc::SECCOMP_RET_KILL_PROCESS),
        statement(load, NUMBER),
        jump(equal, clone3, 1, 0),
        jump(greater, NEWEST, 0, 1),
        statement(give, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        statement(give, libc::SECCOMP_RET_ALLOW),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls denied whatever their arguments are.
const DENIED: &[i64] = &[
    // Work that the kernel does outside of these filters.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Keys are shared by user, not by namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Kernel surface.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // The file tree.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // open_tree_attr, which has no name here yet.
    467,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[libc::SYS_kexec_file_load];

/// Namespace flags of `clone`.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Address families of `socket`.
const FAMILIES: [i32; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];
/// Terminal requests that put input into somebody's terminal.
const REQUESTS: [u32; 3] = [0x5412, 0x541C, 0x5423];

fn rules() -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let mut rules: Rules = DENIED
        .iter()
        .chain(DENIED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let when = |argument: u8, op: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)
    };
    let unsigned = |value: i32| u64::from(value.unsigned_abs());
    let clone = NAMESPACES
        .iter()
        .map(|flag| {
            let flag = unsigned(*flag);
            SeccompRule::new(vec![when(0, MaskedEq(flag), flag)?])
        })
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, clone);
    let foreign = FAMILIES
        .iter()
        .map(|family| when(0, Ne, unsigned(*family)))
        .collect::<Result<_, _>>()?;
    // Of netlink only NETLINK_ROUTE (0), with which programs list their own interfaces.
    let netlink = vec![when(0, Eq, unsigned(libc::AF_NETLINK))?, when(2, Ne, 0)?];
    rules.insert(
        libc::SYS_socket,
        vec![SeccompRule::new(foreign)?, SeccompRule::new(netlink)?],
    );
    let pair = vec![when(0, Ne, unsigned(libc::AF_UNIX))?];
    rules.insert(libc::SYS_socketpair, vec![SeccompRule::new(pair)?]);
    let ioctl = REQUESTS
        .iter()
        .map(|request| SeccompRule::new(vec![when(1, Eq, u64::from(*request))?]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_compile() {
        let filters = compile().unwrap();
        assert_eq!(filters.numbers.len(), 8);
        assert!(filters.calls.len() > DENIED.len());
    }

    #[test]
    fn no_denied_call_is_newer_than_the_newest_known() {
        let newest = DENIED.iter().chain(DENIED_HERE).max();
        assert!(*newest.unwrap() <= i64::from(NEWEST));
    }
}
