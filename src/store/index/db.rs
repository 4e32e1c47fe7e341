//! `index.db`: the file, its schema, and how it is opened, replaced, read and written.
//!
//! The only user of SQLite. A rollback journal and no WAL: the repository may lie on a network file
//! system, where WAL does not work. No sync to disk: what a power cut tears is made anew. Must not
//! know when a row is stale.

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Says that a file is ours: "hang" in ASCII.
const APPLICATION: i32 = 0x6861_6e67;
/// Version of the schema.
const VERSION: i32 = 2;
/// Longest wait for another process. It holds its lock for as long as it writes a few thousand rows.
const PATIENCE: Duration = Duration::from_millis(500);

const SCHEMA: [(&str, &str); 3] = [
    (
        "book",
        "CREATE TABLE book (name TEXT PRIMARY KEY NOT NULL, row BLOB NOT NULL) WITHOUT ROWID",
    ),
    (
        "line",
        "CREATE TABLE line (id TEXT PRIMARY KEY NOT NULL, key BLOB NOT NULL, row BLOB NOT NULL) WITHOUT ROWID",
    ),
    (
        "text",
        "CREATE TABLE text (id TEXT PRIMARY KEY NOT NULL, row BLOB NOT NULL) WITHOUT ROWID",
    ),
];

/// Why the index can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The bytes of the file are no index.
    #[error("the index is damaged: {0}")]
    Damage(String),
    /// Another process, the disk or the folder is in the way.
    #[error("the index can't be used: {0}")]
    Unusable(String),
}

impl Fault {
    pub(super) const fn is_damage(&self) -> bool {
        matches!(self, Self::Damage(_))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let damaged = match &error {
            rusqlite::Error::SqliteFailure(code, _) => matches!(
                code.code,
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::Unknown
                    | ErrorCode::TypeMismatch
                    | ErrorCode::TooBig
            ),
            // Nothing else comes from these statements but what the file makes of them.
            _ => true,
        };
        if damaged {
            Self::Damage(error.to_string())
        } else {
            Self::Unusable(error.to_string())
        }
    }
}

/// A row as it is in the file.
pub(super) struct Kept<'a> {
    pub(super) id: &'a str,
    pub(super) key: &'a [u8],
    pub(super) row: &'a [u8],
    /// Only where it was asked for, and is there.
    pub(super) text: Option<&'a [u8]>,
}

/// A row to be written.
pub(super) struct Part<'a> {
    pub(super) id: &'a str,
    pub(super) key: [u8; 32],
    pub(super) row: Vec<u8>,
    pub(super) text: Vec<u8>,
}

/// The open file.
pub(super) struct Db {
    dir: PathBuf,
    connection: Connection,
}

impl Db {
    /// Opens the index in `dir`, which exists. One that is missing, damaged or of another version is
    /// made anew.
    pub(super) fn open(dir: &Path) -> Result<Self, Fault> {
        match Self::open_as_is(dir) {
            Err(Fault::Damage(_)) => {
                remove(dir)?;
                Self::open_as_is(dir)
            }
            other => other,
        }
    }

    /// The same in place of this one, which is damaged.
    pub(super) fn renew(self) -> Result<Self, Fault> {
        let Self { dir, connection } = self;
        drop(connection);
        remove(&dir)?;
        Self::open_as_is(&dir)
    }

    fn open_as_is(dir: &Path) -> Result<Self, Fault> {
        // SQLite refuses a link anywhere in the name; only one in place of the file itself is odd.
        let dir = dir
            .canonicalize()
            .map_err(|error| Fault::Unusable(error.to_string()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(dir.join("index.db"), flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        let mut db = Self { dir, connection };
        match db.state()? {
            State::Ours => {}
            State::Empty => db.create()?,
            State::Other => return Err(Fault::Damage("it is of another version".into())),
        }
        Ok(db)
    }

    fn state(&self) -> Result<State, Fault> {
        let number = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
        };
        let (application, version) = (number("application_id")?, number("user_version")?);
        let mut statement = self
            .connection
            .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?));
        }
        if (application, version) == (0, 0) && found.is_empty() {
            return Ok(State::Empty);
        }
        let ours = (application, version) == (APPLICATION, VERSION)
            && found.len() == SCHEMA.len()
            && found
                .iter()
                .zip(SCHEMA)
                .all(|((name, sql), (own, text))| name == own && sql.as_deref() == Some(text));
        Ok(if ours { State::Ours } else { State::Other })
    }

    fn create(&mut self) -> Result<(), Fault> {
        let transaction = self.begin()?;
        // Another process may have been faster.
        let count = "SELECT count(*) FROM sqlite_schema";
        if transaction.query_row(count, [], |row| row.get::<_, i64>(0))? == 0 {
            for (_, sql) in SCHEMA {
                transaction.execute(sql, [])?;
            }
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        Ok(transaction.commit()?)
    }

    fn begin(&mut self) -> Result<Transaction<'_>, Fault> {
        let behaviour = TransactionBehavior::Immediate;
        Ok(self.connection.transaction_with_behavior(behaviour)?)
    }

    /// Gives every row to `each`.
    pub(super) fn read(&self, text: bool, mut each: impl FnMut(Kept<'_>)) -> Result<(), Fault> {
        let sql = if text {
            "SELECT line.id, line.key, line.row, text.row FROM line LEFT JOIN text ON text.id = line.id"
        } else {
            "SELECT id, key, row, NULL FROM line"
        };
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let wrong = || Fault::Damage("a value is of another type".into());
            let (ValueRef::Text(id), ValueRef::Blob(key), ValueRef::Blob(bytes)) =
                (row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?)
            else {
                return Err(wrong());
            };
            let text = match row.get_ref(3)? {
                ValueRef::Blob(text) => Some(text),
                ValueRef::Null => None,
                _ => return Err(wrong()),
            };
            each(Kept {
                id: std::str::from_utf8(id).map_err(|_| wrong())?,
                key,
                row: bytes,
                text,
            });
        }
        Ok(())
    }

    /// The row of several tasks that is kept under this name.
    pub(super) fn book(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        let mut statement = self
            .connection
            .prepare("SELECT row FROM book WHERE name = ?1")?;
        let mut rows = statement.query([name])?;
        let row = rows.next()?.map(|row| row.get::<_, Vec<u8>>(0));
        Ok(row.transpose()?)
    }

    /// Keeps a row of several tasks.
    pub(super) fn keep_book(&self, name: &str, row: &[u8]) -> Result<(), Fault> {
        let sql = "INSERT OR REPLACE INTO book (name, row) VALUES (?1, ?2)";
        self.connection.execute(sql, (name, row))?;
        Ok(())
    }

    /// Writes rows in the place of those that are there, and removes those of `gone`.
    pub(super) fn write<'a>(
        &mut self,
        parts: impl Iterator<Item = Part<'a>>,
        gone: &[String],
    ) -> Result<(), Fault> {
        let transaction = self.begin()?;
        {
            let prepare = |sql| transaction.prepare(sql);
            let mut line =
                prepare("INSERT OR REPLACE INTO line (id, key, row) VALUES (?1, ?2, ?3)")?;
            let mut text = prepare("INSERT OR REPLACE INTO text (id, row) VALUES (?1, ?2)")?;
            for part in parts {
                line.execute((part.id, part.key, part.row))?;
                text.execute((part.id, part.text))?;
            }
            let mut no_line = prepare("DELETE FROM line WHERE id = ?1")?;
            let mut no_text = prepare("DELETE FROM text WHERE id = ?1")?;
            for id in gone {
                no_line.execute([id])?;
                no_text.execute([id])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// What a file is.
enum State {
    Ours,
    /// Nothing was written yet.
    Empty,
    /// Of another version, or of another program.
    Other,
}

/// Removes the file and what SQLite lays beside it.
fn remove(dir: &Path) -> Result<(), Fault> {
    for name in [
        "index.db",
        "index.db-journal",
        "index.db-wal",
        "index.db-shm",
    ] {
        match std::fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Fault::Unusable(error.to_string()));
            }
            _ => {}
        }
    }
    Ok(())
}
