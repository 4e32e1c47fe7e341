//! Raw system calls for the attempts of [`super::inside`].

#![expect(
    unsafe_code,
    reason = "the attempts are system calls that no safe wrapper offers, made to be refused"
)]

use rustix::fd::{FromRawFd as _, OwnedFd};
use rustix::io::Errno;
use std::ptr;

fn result(value: libc::c_long) -> Result<i64, Errno> {
    if value < 0 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    } else {
        Ok(value)
    }
}

/// Makes call `number` with numbers and null pointers only.
pub(super) fn raw(number: libc::c_long, args: [libc::c_long; 4]) -> Result<i64, Errno> {
    // SAFETY: the callers below pass numbers, descriptors and null pointers; a call that wants
    // memory fails with EFAULT on null.
    result(unsafe { libc::syscall(number, args[0], args[1], args[2], args[3]) })
}

/// Puts a character into the terminal behind descriptor 0.
pub(super) fn push_input() -> Result<i64, Errno> {
    let byte = b'\n';
    // SAFETY: the request reads one byte.
    result(unsafe { libc::ioctl(0, libc::TIOCSTI as _, &raw const byte) }.into())
}

/// Sets up an io_uring of one entry.
pub(super) fn io_uring() -> Result<i64, Errno> {
    // Larger than any `struct io_uring_params`.
    let mut params = [0u8; 512];
    // SAFETY: the kernel reads and writes within the array.
    result(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, params.as_mut_ptr()) })
}

/// Whether right 0 is ambient; fails where the kernel knows no ambient rights.
pub(super) fn ambient() -> Result<i64, Errno> {
    // SAFETY: only asks, and passes numbers.
    result(
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_IS_SET, 0, 0, 0) }.into(),
    )
}

/// A copy of the channel on descriptor 3.
pub(super) fn channel() -> Result<OwnedFd, Errno> {
    // SAFETY: copies a descriptor, or fails where there is none; the copy is ours alone.
    unsafe {
        let copy = result(libc::fcntl(3, libc::F_DUPFD_CLOEXEC, 4).into())?;
        Ok(OwnedFd::from_raw_fd(i32::try_from(copy).unwrap_or(-1)))
    }
}

/// Forks; `true` in the child. The caller has one thread.
pub(super) fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: the probe is single-threaded, so the child may do what the parent may.
    let pid = result(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then(|| i32::try_from(pid).unwrap_or(i32::MAX)))
}

/// Ends this process at once.
pub(super) fn leave(status: i32) -> ! {
    // SAFETY: `_exit` touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Ignores the signal that a too large file sends.
pub(super) fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is a valid action.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Maps and touches `bytes` of memory of our own.
pub(super) fn touch(bytes: usize) -> Result<(), Errno> {
    // SAFETY: an anonymous private mapping at an address that the kernel chooses; written only
    // within its length, never unmapped.
    unsafe {
        let at = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(Errno::NOMEM);
        }
        // One fault for 2 MiB instead of 512 where the kernel allows it: ten times as fast.
        let _ = libc::madvise(at, bytes, libc::MADV_HUGEPAGE);
        let at = at.cast::<u8>();
        let mut offset = 0;
        while offset < bytes {
            at.add(offset).write_volatile(1);
            offset += 4096;
        }
    }
    Ok(())
}
