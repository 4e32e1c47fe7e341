//! Kind `script`: plays a directory of prepared turns. For demonstrations and tests.
//!
//! `<dir>/<role>/<turn>/` holds what one turn does: `out/` is copied into the exchange, `src/`
//! over the work tree, paths in `delete.txt` are removed, then it sleeps for `sleep` (such as
//! `2s`) and ends with the status in `exit`. All are optional. A turn that is not there does
//! nothing. Inside a sandbox it is played by hangar's own binary ([`play_main`]).

use super::Error;
use super::adapter::{Adapter, Bind, Environment, Health, Launch, Settings, Turn};
use super::finish::{Ended, Finish};
use super::variables::{self, environment};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Word of the kind.
pub const KIND: &str = "script";

/// The hidden subcommand of the binary that plays a turn.
pub const SUBCOMMAND: &str = "__play";

/// Where the turn's own folder is seen inside. The rest of the script is not.
const INSIDE: &str = "/hangar/turn";

#[derive(Debug)]
struct Script {
    name: String,
    dir: PathBuf,
    settings: crate::model::lane::HarnessSettings,
}

/// Makes the adapter.
pub fn build(settings: &Settings<'_>) -> Result<Box<dyn Adapter>, Error> {
    let dir = settings
        .harness
        .dir
        .clone()
        .ok_or_else(|| Error::Settings {
            harness: settings.name.to_owned(),
            message: format!("kind `{KIND}` needs `dir = \"/absolute/folder/of/turns\"`"),
        })?;
    Ok(Box::new(Script {
        name: settings.name.to_owned(),
        dir,
        settings: settings.harness.clone(),
    }))
}

impl Script {
    fn canonical(&self) -> Result<PathBuf, Error> {
        let fail = |source| Error::Program {
            harness: self.name.clone(),
            path: self.dir.clone(),
            source,
        };
        let dir = self.dir.canonicalize().map_err(fail)?;
        if dir.is_dir() {
            Ok(dir)
        } else {
            Err(fail(io::ErrorKind::NotADirectory.into()))
        }
    }
}

impl Adapter for Script {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn identity(&self) -> Result<String, Error> {
        let dir = self.canonical()?;
        Ok(format!("{KIND} {}", dir.display()))
    }

    fn check(&self, env: &Environment) -> Health {
        let set = || variables::are_set(&self.name, &self.settings.env, env);
        Health::of(self.canonical().and_then(|_| set()))
    }

    fn variables(&self) -> Vec<String> {
        self.settings.env.clone()
    }

    fn launch(&self, turn: &Turn<'_>) -> Result<Launch, Error> {
        let host = self
            .canonical()?
            .join(turn.role.as_str())
            .join(turn.number.to_string());
        let mut argv: Vec<OsString> = vec![turn.hangar.into(), SUBCOMMAND.into()];
        argv.extend([turn.exchange.into(), turn.work.into()]);
        let mut read_only = Vec::new();
        if host.is_dir() {
            argv.push(INSIDE.into());
            read_only.push(Bind {
                host,
                inside: INSIDE.into(),
            });
        }
        Ok(Launch {
            argv,
            env: environment(&self.name, &self.settings.env, turn)?,
            path: None,
            stdin: Vec::new(),
            read_only,
            files: Vec::new(),
            hosts: self.settings.hosts.clone(),
            total: turn.total,
            idle: None,
        })
    }

    fn read(&self, ended: &Ended<'_>) -> Finish {
        Finish::of_exit(ended.exit)
    }
}

/// Runs `hangar __play EXCHANGE WORK [TURN]`; `args` are those after the subcommand. Ends with the
/// turn's own status, or 125 when it could not be played.
pub fn play_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<PathBuf> = args.into_iter().map(PathBuf::from).collect();
    let (exchange, work, turn) = match args.as_slice() {
        [exchange, work] => (exchange, work, None),
        [exchange, work, turn] => (exchange, work, Some(turn)),
        _ => return ExitCode::from(125),
    };
    match turn.map_or(Ok(0), |turn| play(turn, exchange, work)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // Part of the transcript, like what any agent program says.
            let _ = writeln!(io::stderr(), "the turn cannot be played: {error}");
            ExitCode::from(125)
        }
    }
}

/// Plays one turn and returns the status it asks for.
fn play(turn: &Path, exchange: &Path, work: &Path) -> io::Result<u8> {
    copy_over(&turn.join("src"), work)?;
    copy_over(&turn.join("out"), &exchange.join("out"))?;
    for line in optional(&turn.join("delete.txt"))?.lines() {
        let path = Path::new(line.trim());
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(io::Error::other(
                "delete.txt names a path outside the work tree",
            ));
        }
        if path.as_os_str().is_empty() {
            continue;
        }
        remove(&work.join(path))?;
    }
    if let Some(pause) = read_pause(optional(&turn.join("sleep"))?.trim()) {
        std::thread::sleep(pause);
    }
    let exit = optional(&turn.join("exit"))?;
    match exit.trim() {
        "" => Ok(0),
        text => text.parse().map_err(io::Error::other),
    }
}

fn read_pause(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').unwrap_or(text), 1000),
    };
    let millis = number.trim().parse::<u64>().ok()?.checked_mul(unit)?;
    Some(Duration::from_millis(millis))
}

fn optional(path: &Path) -> io::Result<String> {
    // A pipe would be waited for without end.
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        other => other?,
    };
    if !meta.is_file() {
        return Err(special(path));
    }
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

fn special(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is no regular file", path.display()))
}

/// Copies files, links and folders below `from` over those below `to`. What stands in the way is
/// removed, never followed.
fn copy_over(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !to.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        remove(to)?;
        fs::create_dir_all(to)?;
    }
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_over(&source, &target)?;
            continue;
        }
        if !kind.is_file() && !kind.is_symlink() {
            return Err(special(&source));
        }
        remove(&target)?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let result = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::files::write_atomic;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_atomic(path, text.as_bytes(), 0o644).unwrap();
    }

    #[test]
    fn a_turn_writes_removes_and_ends_as_prepared() {
        let dir = tempfile::tempdir().unwrap();
        let (turn, exchange, work) = (
            dir.path().join("turn"),
            dir.path().join("exchange"),
            dir.path().join("work"),
        );
        put(&turn.join("out/sealed/tests/test_a.py"), "assert 1\n");
        put(&turn.join("src/pkg/new.py"), "x = 1\n");
        put(&turn.join("delete.txt"), "old.py\n\ngone/dir\n");
        put(&turn.join("exit"), "3\n");
        put(&work.join("old.py"), "old");
        put(&work.join("pkg/kept.py"), "kept");
        put(&work.join("gone/dir/file"), "x");
        assert_eq!(play(&turn, &exchange, &work).unwrap(), 3);
        assert!(exchange.join("out/sealed/tests/test_a.py").is_file());
        assert_eq!(
            fs::read_to_string(work.join("pkg/new.py")).unwrap(),
            "x = 1\n"
        );
        assert!(work.join("pkg/kept.py").exists());
        assert!(!work.join("old.py").exists() && !work.join("gone/dir").exists());
    }

    #[test]
    fn a_link_in_the_way_is_replaced_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (turn, work) = (dir.path().join("turn"), dir.path().join("work"));
        put(&turn.join("src/a"), "new");
        put(&dir.path().join("outside"), "old");
        fs::create_dir_all(&work).unwrap();
        symlink(dir.path().join("outside"), work.join("a")).unwrap();
        play(&turn, dir.path(), &work).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("outside")).unwrap(),
            "old"
        );
        assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "new");
    }

    #[test]
    fn a_pipe_in_a_turn_is_refused_and_not_waited_for() {
        for place in ["src/pipe", "out/pipe", "exit"] {
            let dir = tempfile::tempdir().unwrap();
            let (turn, work) = (dir.path().join("turn"), dir.path().join("work"));
            put(&turn.join("src/a"), "new");
            fs::create_dir_all(turn.join("out")).unwrap();
            let mkfifo = crate::base::process::command(Path::new("mkfifo"))
                .arg(turn.join(place))
                .status();
            assert!(mkfifo.unwrap().success());
            let error = play(&turn, dir.path(), &work).unwrap_err();
            assert!(error.to_string().contains("no regular file"), "{error}");
            fs::remove_file(turn.join(place)).unwrap();
            assert_eq!(play(&turn, dir.path(), &work).unwrap(), 0);
        }
    }

    #[test]
    fn delete_cannot_leave_the_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let (turn, work) = (dir.path().join("turn"), dir.path().join("work"));
        put(&turn.join("delete.txt"), "../kept\n");
        put(&dir.path().join("kept"), "x");
        fs::create_dir_all(&work).unwrap();
        assert!(play(&turn, dir.path(), &work).is_err());
        assert!(dir.path().join("kept").exists());
    }
}
