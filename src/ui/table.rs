//! Tables that fit a terminal, and that a pipe gets whole.

use super::escape;
use super::style::{Label, paint};
use unicode_width::UnicodeWidthStr as _;

/// Narrowest that a column is cut to.
const MIN_COLUMN: usize = 8;
/// Between two columns.
const GAP: &str = "  ";

#[derive(Debug, Clone)]
struct Cell {
    text: String,
    label: Option<Label>,
}

/// Rows of cells under a header.
#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    whole: Option<usize>,
}

impl Table {
    /// A table with these columns. The widest gives way first when it is too wide. On a terminal, a
    /// last column without any text is left out.
    pub fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            rows: Vec::new(),
            whole: None,
        }
    }

    /// A column that gives way only when no other can: ids that a person copies.
    #[must_use]
    pub const fn whole(mut self, column: usize) -> Self {
        self.whole = Some(column);
        self
    }

    /// Adds a row. Cells may hold any text: they are made safe here.
    pub fn row<const N: usize>(&mut self, cells: [(&str, Option<Label>); N]) {
        let cells = cells.into_iter().map(|(text, label)| Cell {
            text: escape::line(text).into_owned(),
            label,
        });
        self.rows.push(cells.collect());
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text: fitted into `width` columns, or tab-separated without header and whole values.
    pub fn render(&self, width: Option<usize>) -> String {
        match width {
            Some(width) => self.fitted(width),
            None => self.separated(),
        }
    }

    fn separated(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            for (index, cell) in row.iter().enumerate() {
                if index > 0 {
                    out.push('\t');
                }
                out.push_str(&cell.text);
            }
            out.push('\n');
        }
        out
    }

    fn fitted(&self, width: usize) -> String {
        let widths = self.widths(width);
        let mut out = String::new();
        let header = self.header.iter().map(|text| Cell {
            text: (*text).to_owned(),
            label: Some(Label::Dim),
        });
        for row in std::iter::once(header.collect()).chain(self.rows.iter().cloned()) {
            write_row(&mut out, &row[..widths.len()], &widths);
        }
        out
    }

    /// Natural widths; while their sum is too wide, the widest column gives way.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|text| text.width()).collect();
        for row in &self.rows {
            for (index, cell) in row.iter().enumerate() {
                widths[index] = widths[index].max(cell.text.width());
            }
        }
        let last_is_empty = |row: &Vec<Cell>| row.last().is_none_or(|cell| cell.text.is_empty());
        if widths.len() > 1 && !self.rows.is_empty() && self.rows.iter().all(last_is_empty) {
            widths.pop();
        }
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        while over > 0 {
            let wide = |index: &usize| widths[*index] > MIN_COLUMN;
            let others = (0..widths.len()).filter(|index| Some(*index) != self.whole);
            let widest = others.filter(wide).max_by_key(|index| widths[*index]);
            let Some(widest) = widest.or(self.whole.filter(wide)) else {
                break;
            };
            widths[widest] -= 1;
            over -= 1;
        }
        widths
    }
}

fn write_row(out: &mut String, row: &[Cell], widths: &[usize]) {
    let last = row.len().saturating_sub(1);
    for (index, cell) in row.iter().enumerate() {
        let text = cut(&cell.text, widths[index]);
        let pad = widths[index].saturating_sub(text.width());
        match cell.label {
            Some(label) => out.push_str(&paint(label, &text)),
            None => out.push_str(&text),
        }
        if index != last {
            out.extend(std::iter::repeat_n(' ', pad));
            out.push_str(GAP);
        }
    }
    out.push('\n');
}

/// `text` in at most `width` columns, with `…` where something was left out.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["ID", "TITLE", "STATE"]);
        table.row([
            ("abcd2345", None),
            ("A title that goes on and on", None),
            ("draft", None),
        ]);
        table.row([("efgh2345", None), ("世界", None), ("done", None)]);
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_pipe_gets_everything_tab_separated() {
        assert_eq!(
            sample().render(None),
            "abcd2345\tA title that goes on and on\tdraft\nefgh2345\t世界\tdone\n"
        );
    }

    #[test]
    fn a_terminal_gets_rows_that_fit() {
        let text = plain(&sample().render(Some(36)));
        assert_eq!(
            text,
            "ID        TITLE                STATE\n\
             abcd2345  A title that goes …  draft\n\
             efgh2345  世界                 done\n"
        );
        assert!(text.lines().all(|line| line.width() <= 36));
    }

    #[test]
    fn a_column_can_stay_whole_and_an_empty_last_one_is_left_out() {
        let mut table = Table::new(&["KEY", "SOURCE", "DETAIL"]).whole(0);
        table.row([
            ("SHA256:0123456789abcdef", None),
            ("/home/alice/.ssh/id_ed25519", None),
            ("", None),
        ]);
        assert_eq!(
            plain(&table.render(Some(40))),
            "KEY                      SOURCE\n\
             SHA256:0123456789abcdef  /home/alice/.s…\n"
        );
        assert!(table.render(None).ends_with("id_ed25519\t\n"));
    }

    #[test]
    fn cells_cannot_break_the_table_or_the_terminal() {
        let mut table = Table::new(&["A"]);
        table.row([("x\ty\n\u{1b}[31m", None)]);
        assert_eq!(table.render(None), "x\\ty\\n\\u{1b}[31m\n");
    }

    #[test]
    fn a_tiny_terminal_still_gets_something() {
        let text = plain(&sample().render(Some(5)));
        assert!(text.contains("A title…"), "{text}");
    }
}
