//! The terminal: what is printed, how it looks, and what is asked.
//!
//! Owns stdout, stderr, colour, width, progress, pager, prompts and the editor. Must not know what
//! a task or a policy is: it gets texts and tables. Every text that somebody else wrote goes
//! through [`escape`] before it gets here.

mod editor;
pub mod escape;
mod pager;
mod printer;
mod progress;
mod prompt;
mod style;
mod table;
mod wrap;

pub use editor::{EditorError, edit, keep};
pub use printer::{Printer, Settings};
pub use progress::Progress;
pub use prompt::{PromptError, Prompts};
pub(crate) use style::help_styles;
pub use style::{Label, paint};
pub use table::Table;
