//! Placeholder header, replaced by the first code of this folder.
