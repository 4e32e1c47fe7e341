//! Where hangar keeps its files on this machine (XDG Base Directory Specification).

use super::{Error, env_vars};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables of the environment, given explicitly so that nothing depends on the process's own.
pub type Env = BTreeMap<OsString, OsString>;

/// The folders of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The user configuration file.
    pub config_file: PathBuf,
    /// `$XDG_DATA_HOME/hangar`
    pub data: PathBuf,
    /// `$XDG_CACHE_HOME/hangar`
    pub cache: PathBuf,
    /// `$XDG_STATE_HOME/hangar`
    pub state: PathBuf,
}

impl Paths {
    /// Reads the XDG variables, `HOME` and `HANGAR_CONFIG`. As the specification says, a relative
    /// path in an XDG variable is ignored; one in `HANGAR_CONFIG`, which nobody sets by accident, is
    /// refused.
    pub fn from_env(env: &Env) -> Result<Self, Error> {
        let named = env.get(OsStr::new(env_vars::HANGAR_CONFIG));
        let config_file = match named.filter(|file| !file.is_empty()) {
            Some(file) if Path::new(file).is_absolute() => PathBuf::from(file),
            Some(_) => {
                return Err(Error::Variable {
                    variable: env_vars::HANGAR_CONFIG,
                    message: "must be an absolute path",
                });
            }
            None => base(env, "XDG_CONFIG_HOME", ".config")?.join("hangar/config.toml"),
        };
        Ok(Self {
            config_file,
            data: base(env, "XDG_DATA_HOME", ".local/share")?.join("hangar"),
            cache: base(env, "XDG_CACHE_HOME", ".cache")?.join("hangar"),
            state: base(env, "XDG_STATE_HOME", ".local/state")?.join("hangar"),
        })
    }

    /// This repository's own folder below [`Paths::data`]. The id (`sha256:…`) becomes its digits;
    /// one that is no plain word is refused.
    pub fn repository_data(&self, repo_id: &str) -> Result<PathBuf, Error> {
        let name = repo_id.rsplit(':').next().unwrap_or_default();
        let plain = !name.is_empty()
            && name.len() <= 128
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if plain {
            Ok(self.data.join(name))
        } else {
            Err(Error::Missing {
                what: "a repository id that can name a folder".into(),
                remedy: "run `hangar init`".into(),
            })
        }
    }
}

fn base(env: &Env, variable: &str, below_home: &str) -> Result<PathBuf, Error> {
    absolute(env, variable)
        .or_else(|| absolute(env, "HOME").map(|home| home.join(below_home)))
        .ok_or_else(|| Error::Missing {
            what: "HOME".into(),
            remedy: format!("set HOME, or {variable}, to an absolute path"),
        })
}

fn absolute(env: &Env, variable: &str) -> Option<PathBuf> {
    env.get(OsStr::new(variable))
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn xdg_variables_win_over_home_and_relative_ones_are_ignored() {
        let paths = Paths::from_env(&env(&[
            ("HOME", "/h"),
            ("XDG_DATA_HOME", "/d"),
            ("XDG_CACHE_HOME", "relative"),
        ]))
        .unwrap();
        assert_eq!(
            paths.config_file,
            PathBuf::from("/h/.config/hangar/config.toml")
        );
        assert_eq!(paths.data, PathBuf::from("/d/hangar"));
        assert_eq!(paths.cache, PathBuf::from("/h/.cache/hangar"));
        assert_eq!(paths.state, PathBuf::from("/h/.local/state/hangar"));
        assert_eq!(
            paths.repository_data("sha256:ab12").unwrap(),
            PathBuf::from("/d/hangar/ab12")
        );
        assert!(paths.repository_data("sha256:../up").is_err());
    }

    #[test]
    fn a_configuration_that_is_named_by_half_is_refused() {
        for named in ["config.toml", "./config.toml"] {
            let env = env(&[("HOME", "/h"), ("HANGAR_CONFIG", named)]);
            let error = Paths::from_env(&env).unwrap_err().to_string();
            assert_eq!(error, "HANGAR_CONFIG must be an absolute path");
        }
        for (named, file) in [
            ("/c.toml", "/c.toml"),
            ("", "/h/.config/hangar/config.toml"),
        ] {
            let env = env(&[("HOME", "/h"), ("HANGAR_CONFIG", named)]);
            let paths = Paths::from_env(&env).unwrap();
            assert_eq!(paths.config_file, PathBuf::from(file));
        }
    }

    #[test]
    fn without_home_the_error_says_what_to_set() {
        let error = Paths::from_env(&env(&[])).unwrap_err().to_string();
        assert!(error.contains("set HOME, or XDG_CONFIG_HOME"), "{error}");
    }
}
