//! Plugins of pytest that `hangar init` writes into the plan: hangar loads none that the plan does not name,
//! and reads none of their settings.

use super::pytest_path;
use crate::grade::manifest::Tree;
use std::collections::BTreeSet;

/// Distribution, the module of its entry point, and settings of pytest's configuration without which the
/// suite means something else. Plugins that only measure, repeat or spread tests are not needed.
const PLUGINS: &[(&str, &str, &[&str])] = &[
    ("pytest-asyncio", "pytest_asyncio.plugin", ASYNCIO),
    ("pytest-aiohttp", "pytest_asyncio.plugin", ASYNCIO),
    ("pytest-aiohttp", "pytest_aiohttp.plugin", &[]),
    ("anyio", "anyio.pytest_plugin", &["anyio_mode"]),
    ("pytest-trio", "pytest_trio.plugin", &["trio_mode"]),
    (
        "pytest-django",
        "pytest_django.plugin",
        &["DJANGO_SETTINGS_MODULE"],
    ),
    ("pytest-flask", "pytest_flask.plugin", &[]),
    ("pytest-mock", "pytest_mock", &[]),
    ("pytest-httpx", "pytest_httpx", &[]),
    ("pytest-httpserver", "pytest_httpserver.pytest_plugin", &[]),
    ("respx", "respx.plugin", &[]),
    ("requests-mock", "requests_mock.contrib._pytest_plugin", &[]),
    ("pytest-subtests", "pytest_subtests.plugin", &[]),
    ("pytest-timeout", "pytest_timeout", &[]),
    ("hypothesis", "_hypothesis_pytestplugin", &[]),
    ("pytest-benchmark", "pytest_benchmark.plugin", &[]),
    ("pytest-datadir", "pytest_datadir.plugin", &[]),
    ("pytest-freezer", "pytest_freezer", &[]),
    ("pytest-lazy-fixtures", "pytest_lazy_fixtures.plugin", &[]),
    ("syrupy", "syrupy", &[]),
];
const ASYNCIO: &[&str] = &[
    "asyncio_mode",
    "asyncio_default_fixture_loop_scope",
    "asyncio_default_test_loop_scope",
];

/// `plugins` and `options` for the plugins among these distributions.
pub(super) fn of(tree: Tree<'_>, installed: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let (mut plugins, mut options) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<String>, text: String| {
        if !list.contains(&text) {
            list.push(text);
        }
    };
    let used = PLUGINS
        .iter()
        .filter(|(name, ..)| installed.contains(*name));
    for (_, module, settings) in used {
        add(&mut plugins, (*module).to_owned());
        for key in *settings {
            let value = pytest_path::setting(tree, key).join(" ");
            if !value.is_empty() && !value.contains(['"', '\'', '\\']) {
                add(&mut options, format!("--override-ini={key}={value}"));
            }
        }
    }
    (plugins, options)
}
