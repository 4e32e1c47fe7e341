//! Reads TOML tables key by key, so that every complaint has a line and every key that nobody
//! asked for is found.

use super::nearest::nearest;
use super::{Error, MAX_FILE, Warning, units};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's name and text, and the warnings about it.
pub(super) struct Source<'t> {
    file: PathBuf,
    text: &'t str,
    warnings: RefCell<Vec<Warning>>,
}

impl<'t> Source<'t> {
    pub(super) fn new(file: &Path, text: &'t str) -> Self {
        Self {
            file: file.to_owned(),
            text,
            warnings: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'t>>, Error> {
        if self.text.len() as u64 > MAX_FILE {
            return Err(self.syntax(0, "the file is larger than 1 MiB"));
        }
        DeTable::parse(self.text)
            .map_err(|error| self.syntax(error.span().map_or(0, |s| s.start), error.message()))
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    fn syntax(&self, offset: usize, message: &str) -> Error {
        Error::Syntax {
            file: self.file.clone(),
            line: self.line(offset),
            message: message.to_owned(),
        }
    }

    pub(super) fn value_error(
        &self,
        offset: usize,
        key: &str,
        message: impl Into<String>,
    ) -> Error {
        Error::Value {
            file: self.file.clone(),
            line: self.line(offset),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    pub(super) fn forbidden(&self, offset: usize, key: String, belongs: &'static str) -> Error {
        Error::Forbidden {
            file: self.file.clone(),
            line: self.line(offset),
            key,
            belongs,
        }
    }
}

/// One table of a file; an absent one reads as empty.
pub(super) struct Section<'s, 't> {
    source: &'s Source<'t>,
    prefix: String,
    table: Option<&'s DeTable<'t>>,
}

type Value<'s, 't> = &'s Spanned<DeValue<'t>>;

impl<'s, 't> Section<'s, 't> {
    pub(super) fn root(source: &'s Source<'t>, table: &'s DeTable<'t>) -> Self {
        Self {
            source,
            prefix: String::new(),
            table: Some(table),
        }
    }

    /// The dotted name of a key here.
    pub(super) fn name(&self, key: &str) -> String {
        if self.prefix.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.prefix)
        }
    }

    /// Every key with the place where it stands.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'s str, usize)> + use<'s, 't> {
        self.table
            .into_iter()
            .flat_map(|table| table.iter())
            .map(|(key, _)| (key.get_ref().as_ref(), key.span().start))
    }

    /// Warns about every key that is not in `known`.
    pub(super) fn warn_unknown(&self, known: &[&str]) {
        for (key, offset) in self.keys().filter(|(key, _)| !known.contains(key)) {
            let near = nearest(key, known.iter().copied());
            self.source.warnings.borrow_mut().push(Warning {
                file: self.source.file.clone(),
                line: self.source.line(offset),
                key: self.name(key),
                nearest: near.map(|near| self.name(near)),
            });
        }
    }

    pub(super) fn section(&self, key: &str) -> Result<Self, Error> {
        let table = match self.get(key) {
            None => None,
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => return Err(self.wrong(key, value, "is a table")),
            },
        };
        Ok(Self {
            source: self.source,
            prefix: self.name(key),
            table,
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<Value<'s, 't>> {
        self.table?
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<String>, Error> {
        self.checked(key, |text| Ok(text.to_owned()))
    }

    /// A text that `check` turns into what is wanted; its refusal is the error's message.
    pub(super) fn checked<T>(
        &self,
        key: &str,
        check: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let DeValue::String(text) = value.get_ref() else {
            return Err(self.wrong(key, value, "is a text"));
        };
        check(text)
            .map(Some)
            .map_err(|message| self.bad(key, value, message))
    }

    pub(super) fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        integer(value)
            .filter(|number| (least..=most).contains(number))
            .map(Some)
            .ok_or_else(|| self.bad(key, value, format!("is a number from {least} to {most}")))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            _ => Err(self.wrong(key, value, "is true or false")),
        }
    }

    /// A text such as `4G`, or a number of bytes. No more than a document can hold with room to add to it.
    pub(super) fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let bytes = match value.get_ref() {
            DeValue::String(text) => units::size(text),
            _ => integer(value).filter(|bytes| *bytes > 0),
        };
        let bytes =
            bytes.ok_or_else(|| self.wrong(key, value, "is a size such as \"64M\" or \"4G\""))?;
        if bytes > units::MAX_SIZE {
            let most = units::size_text(units::MAX_SIZE);
            return Err(self.bad(key, value, format!("is a size of at most {most}")));
        }
        Ok(Some(bytes))
    }

    /// A list of texts, each turned by `check`.
    pub(super) fn checked_list<T>(
        &self,
        key: &str,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key, value, "is a list of texts"));
        };
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let DeValue::String(text) = item.get_ref() else {
                return Err(self.wrong(key, item, "is a list of texts"));
            };
            out.push(check(text).map_err(|message| self.bad(key, item, message))?);
        }
        Ok(Some(out))
    }

    pub(super) fn bad(&self, key: &str, value: Value<'_, '_>, message: impl Into<String>) -> Error {
        self.source
            .value_error(value.span().start, &self.name(key), message)
    }

    fn wrong(&self, key: &str, value: Value<'_, '_>, expected: &str) -> Error {
        let found = match value.get_ref() {
            DeValue::String(_) => "another text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.bad(key, value, format!("{expected}, not {found}"))
    }
}

fn integer(value: Value<'_, '_>) -> Option<u64> {
    match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

/// Every leaf of a file: dotted key, its value as TOML text, its line.
pub(super) fn leaves(source: &Source<'_>, table: &DeTable<'_>) -> Vec<(String, String, usize)> {
    let mut out = Vec::new();
    walk(source, table, "", &mut out);
    out
}

fn walk(
    source: &Source<'_>,
    table: &DeTable<'_>,
    prefix: &str,
    out: &mut Vec<(String, String, usize)>,
) {
    for (key, value) in table {
        let name = if prefix.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{prefix}.{}", key.get_ref())
        };
        if let DeValue::Table(inner) = value.get_ref() {
            walk(source, inner, &name, out);
        } else {
            let text = source.text.get(value.span()).unwrap_or_default();
            out.push((name, text.to_owned(), source.line(key.span().start)));
        }
    }
}
