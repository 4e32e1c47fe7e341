//! The payload inside the ciphertext: sealed files, criteria map, results.
//!
//! A zstd frame around a tar with `criteria.json`, `payload.toml` and the files below `files/`, in
//! the order of their paths. A person with the key can open it with `age`, `zstd` and `tar`.

use super::paths::{PathFault, check_paths};
use super::tarball::{self, Item};
use crate::base::redact::Secret;
use crate::model::listing::{Entry, Listing, Mode};
use zstd::zstd_safe;

/// Name of the criteria map, in the archive and in the listing.
pub const CRITERIA: &str = "criteria.json";
/// Name of the base results and aliases, in the archive.
const META: &str = "payload.toml";
const FILES: &str = "files/";

/// Largest single file, in bytes.
pub const MAX_FILE: usize = 10 << 20;
/// Largest archive before compression, in bytes.
pub const MAX_TOTAL: usize = 64 << 20;
/// Most sealed files.
pub const MAX_FILES: usize = 4096;

const LEVEL: i32 = 3;

/// Why there is no payload. Nothing here tells what is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A path that sealed files may not have.
    #[error("a sealed file has a path that is not accepted: {0}")]
    Path(#[from] PathFault),
    /// Over a limit.
    #[error("too much to seal: {what} (at most {limit})")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, in bytes or files.
        limit: usize,
    },
    /// The bytes are no payload.
    #[error("the sealed payload is malformed: {0}")]
    Malformed(&'static str),
    /// The compressor failed.
    #[error("the sealed payload could not be compressed")]
    Compress,
}

/// Kind of a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileMode {
    /// 100644
    Regular,
    /// 100755
    Executable,
}

impl From<FileMode> for Mode {
    fn from(mode: FileMode) -> Self {
        match mode {
            FileMode::Regular => Self::Regular,
            FileMode::Executable => Self::Executable,
        }
    }
}

/// One hidden file.
#[derive(Debug, Clone)]
pub struct SealedFile {
    /// Where it goes, relative to the repository root.
    pub path: String,
    /// Kind.
    pub mode: FileMode,
    /// Content, canary included.
    pub bytes: Secret,
}

/// What one sealed version holds.
///
/// Invariant: paths are accepted by [`check_paths`] and sorted by their bytes; sizes are within the
/// limits.
#[derive(Debug, Clone)]
pub struct Payload {
    files: Vec<SealedFile>,
    criteria: Secret,
    meta: Secret,
}

impl Payload {
    /// Puts a payload together. `criteria` is the `criteria.json` with its canary; `meta` holds
    /// base results and aliases and is not looked at.
    pub fn new(
        mut files: Vec<SealedFile>,
        criteria: Secret,
        meta: Secret,
    ) -> Result<Self, BundleError> {
        if files.len() > MAX_FILES {
            return Err(BundleError::TooLarge {
                what: "number of files",
                limit: MAX_FILES,
            });
        }
        check_paths(files.iter().map(|file| file.path.as_str()))?;
        let contents = files.iter().map(|file| &file.bytes);
        if contents
            .chain([&criteria, &meta])
            .any(|bytes| bytes.expose().len() > MAX_FILE)
        {
            return Err(BundleError::TooLarge {
                what: "bytes of one file",
                limit: MAX_FILE,
            });
        }
        files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        let payload = Self {
            files,
            criteria,
            meta,
        };
        let names = payload.names();
        if tarball::len(&payload.items(&names)) > MAX_TOTAL {
            return Err(BundleError::TooLarge {
                what: "bytes in all",
                limit: MAX_TOTAL,
            });
        }
        Ok(payload)
    }

    /// The files, in the order of their path bytes.
    pub fn files(&self) -> &[SealedFile] {
        &self.files
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&SealedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The criteria map, as JSON.
    pub const fn criteria(&self) -> &Secret {
        &self.criteria
    }

    /// Base results and aliases.
    pub const fn meta(&self) -> &Secret {
        &self.meta
    }

    /// The listing whose digest stands in the manifest: every file and `criteria.json`.
    pub fn listing(&self) -> Listing {
        let criteria = Entry::of(Mode::Regular, self.criteria.expose());
        let files = self.files.iter().map(|file| {
            let entry = Entry::of(file.mode.into(), file.bytes.expose());
            (file.path.clone().into_bytes(), entry)
        });
        files
            .chain([(CRITERIA.as_bytes().to_vec(), criteria)])
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |file: &SealedFile| format!("{FILES}{}", file.path);
        self.files.iter().map(name).collect()
    }

    fn items<'a>(&'a self, names: &'a [String]) -> Vec<Item<'a>> {
        let fixed = |name, secret: &'a Secret| Item {
            name,
            executable: false,
            bytes: secret.expose(),
        };
        let files = self.files.iter().zip(names).map(|(file, name)| Item {
            name,
            executable: file.mode == FileMode::Executable,
            bytes: file.bytes.expose(),
        });
        [fixed(CRITERIA, &self.criteria), fixed(META, &self.meta)]
            .into_iter()
            .chain(files)
            .collect()
    }

    /// The bytes that are encrypted, and whose SHA-256 stands in the manifest.
    pub fn to_bytes(&self) -> Result<Secret, BundleError> {
        let names = self.names();
        let archive = tarball::write(&self.items(&names));
        let bound = zstd_safe::compress_bound(archive.expose().len());
        let mut out = Vec::with_capacity(bound);
        zstd::bulk::Compressor::new(LEVEL)
            .and_then(|mut zstd| zstd.compress_to_buffer(archive.expose(), &mut out))
            .map_err(|_| BundleError::Compress)?;
        Ok(Secret::new(out))
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Everything else is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BundleError> {
        let archive = decompress(bytes)?;
        let archive = archive.expose();
        let found = tarball::read(archive, MAX_FILES + 2)
            .map_err(|_| BundleError::Malformed("not an archive of regular files"))?;
        let mut fixed = [None, None];
        let mut files = Vec::with_capacity(found.len());
        for (at, file) in found.into_iter().enumerate() {
            let bytes = Secret::new(archive[file.content].to_vec());
            match (at, file.name.as_str(), file.executable) {
                (0, CRITERIA, false) | (1, META, false) => fixed[at] = Some(bytes),
                (2.., name, executable) => files.push(SealedFile {
                    path: name
                        .strip_prefix(FILES)
                        .ok_or(BundleError::Malformed("an unknown entry"))?
                        .to_owned(),
                    mode: if executable {
                        FileMode::Executable
                    } else {
                        FileMode::Regular
                    },
                    bytes,
                }),
                _ => return Err(BundleError::Malformed("an unknown entry")),
            }
        }
        let [Some(criteria), Some(meta)] = fixed else {
            return Err(BundleError::Malformed("an entry is missing"));
        };
        if !files.is_sorted_by(|a, b| a.path.as_bytes() <= b.path.as_bytes()) {
            return Err(BundleError::Malformed("files out of order"));
        }
        Self::new(files, criteria, meta)
    }
}

/// Exactly one zstd frame that states its size. The size is checked before anything is allocated,
/// so a bomb costs nothing.
fn decompress(bytes: &[u8]) -> Result<Secret, BundleError> {
    const MALFORMED: BundleError = BundleError::Malformed("not one zstd frame with its size");
    let size = zstd_safe::get_frame_content_size(bytes)
        .ok()
        .flatten()
        .ok_or(MALFORMED)?;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= MAX_TOTAL)
        .ok_or(BundleError::TooLarge {
            what: "bytes in all",
            limit: MAX_TOTAL,
        })?;
    if zstd_safe::find_frame_compressed_size(bytes) != Ok(bytes.len()) {
        return Err(MALFORMED);
    }
    let mut out = Vec::with_capacity(size);
    let written = zstd::bulk::Decompressor::new()
        .and_then(|mut zstd| zstd.decompress_to_buffer(bytes, &mut out));
    let out = Secret::new(out);
    match written {
        Ok(count) if count == size => Ok(out),
        _ => Err(MALFORMED),
    }
}
