//! How each kind of text looks. The only place that names a colour.

use anstyle::{AnsiColor, Style};
use std::fmt;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The word `error:`.
    Error,
    /// The word `warning:`.
    Warning,
    /// The word `hint:` and `caused by:`.
    Hint,
    /// A heading.
    Heading,
    /// An id, digest or fingerprint.
    Id,
    /// A good answer.
    Good,
    /// A bad answer.
    Bad,
    /// An answer that needs attention.
    Attention,
    /// What matters less.
    Dim,
    /// A command to type.
    Command,
}

impl Label {
    const fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Error | Self::Bad => style.bold().fg_color(Some(color(AnsiColor::Red))),
            Self::Warning | Self::Attention => {
                style.bold().fg_color(Some(color(AnsiColor::Yellow)))
            }
            Self::Hint => style.bold().fg_color(Some(color(AnsiColor::Cyan))),
            Self::Heading => style.bold(),
            Self::Id => style.fg_color(Some(color(AnsiColor::Magenta))),
            Self::Good => style.fg_color(Some(color(AnsiColor::Green))),
            Self::Dim => style.dimmed(),
            Self::Command => style.fg_color(Some(color(AnsiColor::Cyan))),
        }
    }
}

const fn color(color: AnsiColor) -> anstyle::Color {
    anstyle::Color::Ansi(color)
}

/// `text` in the style of `label`. The printer strips the styling where none is wanted.
pub fn paint(label: Label, text: impl fmt::Display) -> String {
    let style = label.style();
    format!("{style}{text}{style:#}")
}

/// The styles of the help texts.
pub(crate) const fn help_styles() -> clap::builder::Styles {
    clap::builder::Styles::styled()
        .header(Label::Heading.style())
        .usage(Label::Heading.style())
        .literal(Label::Command.style())
        .placeholder(Label::Dim.style())
        .error(Label::Error.style())
        .valid(Label::Good.style())
        .invalid(Label::Bad.style())
}
