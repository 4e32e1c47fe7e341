//! Small pieces of text that several commands print.
