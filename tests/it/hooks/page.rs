//! `docs/how-to/hooks.md`, typed as it stands.

#[test]
fn the_page_runs_as_it_stands() {
    crate::tutorial::type_out("docs/how-to/hooks.md");
}
