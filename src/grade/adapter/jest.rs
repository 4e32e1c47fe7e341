//! `jest`. Each file runs in a worker process; our reporter runs in jest's own process, where the code
//! under test is never loaded. Each file has a context of its own, so a sentinel meets what a file of the
//! suite loads only where that file is loaded into the sentinel's context: that is done for each pair.
//! Ids: `file > describe > test`.

use super::js;
use super::js::RunnerPackage;
use super::js_names::{Dialect, JEST};
use super::js_runner::{Js, JsRunner};
use crate::grade::suite::Suite;
use crate::model::plan::Framework;

/// The adapter.
#[derive(Debug)]
pub(super) struct Jest;

/// The one that is used.
pub(super) static ADAPTER: Js<Jest> = Js(Jest);

impl JsRunner for Jest {
    const FRAMEWORK: Framework = Framework::Jest;
    const PACKAGE: RunnerPackage = RunnerPackage {
        name: "jest",
        majors: (28, 30),
    };
    const VERIFY: &'static str = "npx jest";
    const TESTS: &'static [&'static str] = &["test/", "tests/", "**/__tests__/"];
    // jest's configuration is not read. Babel's is, by the worker that translates the files, and mocks
    // in `__mocks__` stand in for packages. What package.json tells Babel is compared by our script.
    const PROTECTED: &'static [&'static str] = js::protected!("**/jest.config.*", "**/__mocks__/");
    const DIALECT: &'static Dialect = &JEST;
    // For files that are modules; nothing changes for the others.
    const NODE: &'static [&'static str] = &["--experimental-vm-modules", "--no-warnings"];
    const SCRIPTS: &'static [(&'static str, &'static str)] = &[
        ("run.cjs", include_str!("../runners/jest_run.cjs")),
        ("first.mjs", include_str!("../runners/jest_first.mjs")),
        ("places.cjs", include_str!("../runners/jest_places.cjs")),
    ];
    const ONE_PROCESS: bool = false;

    fn is_test_file(&self, _: &Suite, path: &str) -> bool {
        js::is_test_name(path) || (js::is_script(path) && is_below_tests(path))
    }
}

/// Whether a file lies in a folder `__tests__`.
fn is_below_tests(path: &str) -> bool {
    let mut folders = path.rsplit('/').skip(1);
    folders.any(|folder| folder == "__tests__")
}
