//! `docs/reference/cli.md`, written from the help of every command.

use crate::docs::keep;
use std::fmt::Write as _;

const HEAD: &str = "\
# Command line

What `hangar COMMAND --help` prints, for every command. Kept current by `tests/it/docs_cli.rs`.
";

fn write(command: &mut clap::Command, title: &str, out: &mut String) {
    let text = command.render_long_help().to_string();
    // The options of every command stand once, under the first.
    let mut own = true;
    let lines = text.lines().filter(|line| {
        own = match *line {
            "Everywhere:" => title == "hangar",
            line => own || !(line.is_empty() || line.starts_with(' ')),
        };
        own
    });
    let lines: Vec<_> = lines.map(str::trim_end).collect();
    let _ = write!(
        out,
        "\n## {title}\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    );
    let names: Vec<_> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in names {
        let sub = command.find_subcommand_mut(&name).unwrap();
        write(sub, &format!("{title} {name}"), out);
    }
}

#[test]
fn the_reference_is_current() {
    let mut command = hangar::cli::command().term_width(100);
    command.build();
    let mut out = HEAD.to_owned();
    write(&mut command, "hangar", &mut out);
    keep("docs/reference/cli.md", &out);
}
