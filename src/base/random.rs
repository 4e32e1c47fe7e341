//! Randomness from the operating system.

/// `N` random bytes.
///
/// # Panics
/// When the kernel has no randomness to give; nothing that needs a secret may go on then.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    getrandom::fill(&mut out).expect("the kernel's random source answers");
    out
}

/// A random lowercase hex string of `2 * N` characters.
pub fn hex<const N: usize>() -> String {
    hex::encode(bytes::<N>())
}
