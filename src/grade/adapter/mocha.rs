//! `mocha`. All files and our reporter share one process, as with pytest; each file is a group of its
//! own there, so that the tests of a file stand together and hooks outside any group are those of that file.
//! Ids: `file > describe > test`.

use super::js;
use super::js::RunnerPackage;
use super::js_names::{Dialect, MOCHA};
use super::js_runner::{Js, JsRunner};
use super::js_scan;
use crate::grade::suite::Suite;
use crate::model::plan::Framework;

/// The adapter.
#[derive(Debug)]
pub(super) struct Mocha;

/// The one that is used.
pub(super) static ADAPTER: Js<Mocha> = Js(Mocha);

impl JsRunner for Mocha {
    const FRAMEWORK: Framework = Framework::Mocha;
    const PACKAGE: RunnerPackage = RunnerPackage {
        name: "mocha",
        majors: (10, 12),
    };
    const VERIFY: &'static str = "npx mocha";
    const TESTS: &'static [&'static str] = &["test/", "tests/"];
    // The script of ours reads neither `.mocharc` nor package.json. They are protected all the same:
    // `npx mocha` in the implementer's loop reads them.
    const PROTECTED: &'static [&'static str] = js::protected!("**/.mocharc.*");
    const DIALECT: &'static Dialect = &MOCHA;
    const NODE: &'static [&'static str] = &[];
    const SCRIPTS: &'static [(&'static str, &'static str)] =
        &[("run.cjs", include_str!("../runners/mocha_run.cjs"))];
    const ONE_PROCESS: bool = true;

    // By habit every file below `test/` holds tests, whatever it is called.
    fn is_test_file(&self, suite: &Suite, path: &str) -> bool {
        let holds = || {
            let text = suite.file(path).map(|file| file.text.expose());
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            text.is_some_and(|text| !js_scan::scan(text, &MOCHA).tests.is_empty())
        };
        js::is_test_name(path) || (js::is_script(path) && holds())
    }
}
