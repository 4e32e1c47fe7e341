//! Every variable of the environment that hangar reads as its own.

/// Path of the user configuration, instead of the one under `XDG_CONFIG_HOME`.
pub const HANGAR_CONFIG: &str = "HANGAR_CONFIG";
/// Sandbox provider, instead of `sandbox.provider`.
pub const HANGAR_SANDBOX_PROVIDER: &str = "HANGAR_SANDBOX_PROVIDER";
/// Name of the Git remote, instead of `remote.name`.
pub const HANGAR_REMOTE: &str = "HANGAR_REMOTE";
/// Fixes the clock (RFC 3339), for tests and reproducible demos.
pub const HANGAR_NOW: &str = crate::base::clock::NOW_VARIABLE;
/// Set for an agent program: its exchange directory. Commands that decide refuse to run with it.
pub const HANGAR_EXCHANGE: &str = "HANGAR_EXCHANGE";

/// Variables that stand for a key of the configuration, with that key.
pub const OVERRIDES: &[(&str, &str)] = &[
    (HANGAR_SANDBOX_PROVIDER, "sandbox.provider"),
    (HANGAR_REMOTE, "remote.name"),
];

/// Every variable with one line on what it does, for the reference.
pub const ALL: &[(&str, &str)] = &[
    (HANGAR_CONFIG, "path of the user configuration"),
    (
        HANGAR_SANDBOX_PROVIDER,
        "sandbox provider, instead of `sandbox.provider`",
    ),
    (
        HANGAR_REMOTE,
        "name of the Git remote, instead of `remote.name`",
    ),
    (
        HANGAR_NOW,
        "fixes the clock (RFC 3339), for tests and reproducible demos",
    ),
    (
        HANGAR_EXCHANGE,
        "set for an agent program: its exchange directory",
    ),
];
