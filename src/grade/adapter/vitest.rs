//! `vitest`. Each file runs in a process of its own; our reporter runs in vitest's own process, where the
//! code under test is never loaded. A sentinel's file is run behind a file of the suite in one process
//! without isolation, for each pair. Ids: `file > describe > test`.

use super::js;
use super::js::RunnerPackage;
use super::js_names::{Dialect, VITEST};
use super::js_runner::{Js, JsRunner};
use crate::grade::suite::Suite;
use crate::model::plan::Framework;

/// The adapter.
#[derive(Debug)]
pub(super) struct Vitest;

/// The one that is used.
pub(super) static ADAPTER: Js<Vitest> = Js(Vitest);

impl JsRunner for Vitest {
    const FRAMEWORK: Framework = Framework::Vitest;
    const PACKAGE: RunnerPackage = RunnerPackage {
        name: "vitest",
        majors: (3, 5),
    };
    const VERIFY: &'static str = "npx vitest run";
    const TESTS: &'static [&'static str] = &["test/", "tests/", "**/__tests__/"];
    // None of these configurations is read; they are protected because `npx vitest` in the
    // implementer's loop reads them. Mocks in `__mocks__` stand in for packages.
    const PROTECTED: &'static [&'static str] = js::protected!(
        "**/vite.config.*",
        "**/vitest.{config,workspace,projects}.*",
        "**/__mocks__/"
    );
    const DIALECT: &'static Dialect = &VITEST;
    const NODE: &'static [&'static str] = &[];
    const SCRIPTS: &'static [(&'static str, &'static str)] =
        &[("run.mjs", include_str!("../runners/vitest_run.mjs"))];
    const ONE_PROCESS: bool = false;

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        js::is_test_name(path)
    }
}
