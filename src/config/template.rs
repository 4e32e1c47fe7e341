//! The commented `hangar.toml` that `hangar init` writes.

use crate::model::digest::Digest;
use crate::model::plan::{Framework, PlanLimits};
use std::fmt::Write as _;

/// What `hangar init` found out about a repository.
#[derive(Debug, Clone)]
pub struct Template<'a> {
    /// The policy's digest.
    pub repo: Digest,
    /// The framework of its tests.
    pub framework: Framework,
    /// The implementer's own loop.
    pub verify: &'a str,
    /// How dependencies are installed; empty is not at all.
    pub prepare: &'a str,
    /// How it is built; empty is not at all.
    pub build: &'a str,
    /// Where hidden tests may go.
    pub tests: &'a [&'a str],
    /// Runner options.
    pub options: &'a [String],
    /// Plugins of the runner.
    pub plugins: &'a [String],
    /// Variables that the suite needs.
    pub env: &'a [(String, String)],
}

/// The text of a `hangar.toml` that says what each line is for.
pub fn template(found: &Template<'_>) -> String {
    let limits = PlanLimits::default();
    let tests: Vec<_> = found.tests.iter().map(|path| quote(path)).collect();
    let options: Vec<_> = found.options.iter().map(|option| quote(option)).collect();
    let plugins: Vec<_> = found.plugins.iter().map(|plugin| quote(plugin)).collect();
    let env = inline(found.env);
    let mut out = String::from(HEAD);
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = out.write_fmt(text);
        out.push('\n');
    };
    line(format_args!("[trust]"));
    line(format_args!(
        "# Version 1 of the signed policy: who decides here."
    ));
    line(format_args!("repo = \"{}\"\n", found.repo));
    line(format_args!("[task]"));
    line(format_args!(
        "# \"test-first\": hidden tests are written, sealed and approved before the code. Or \"plain\"."
    ));
    line(format_args!("flow = \"test-first\""));
    line(format_args!(
        "# What an implementer runs to check its own work."
    ));
    line(format_args!("verify = {}\n", quote(found.verify)));
    line(format_args!("[grader]"));
    line(format_args!(
        "# pytest, unittest, cargo, go, node, mocha, jest, vitest, ctest, tap, junit, exec or external."
    ));
    line(format_args!("framework = \"{}\"", found.framework));
    line(format_args!(
        "# Installs dependencies, once for each lockfile; only package registries can be reached."
    ));
    line(format_args!("prepare = {}", quote(found.prepare)));
    line(format_args!(
        "# Whether it runs again for a patch that asks for new packages (pytest and unittest)."
    ));
    line(format_args!("reprepare = false"));
    line(format_args!(
        "# Builds the patched code, without the tests and without network."
    ));
    line(format_args!("build = {}", quote(found.build)));
    line(format_args!(
        "# Where hidden tests may go. Put back to the base commit for grading."
    ));
    line(format_args!("tests = [{}]", tests.join(", ")));
    line(format_args!(
        "# Paths that no patch may change, beside the framework's own, and exceptions from them."
    ));
    line(format_args!("protected = []\nmay_touch = []"));
    line(format_args!(
        "# What the suite really needs of its runner. The runner's own configuration files are not read."
    ));
    line(format_args!(
        "options = [{}]\nplugins = [{}]\nenv = {env}",
        options.join(", "),
        plugins.join(", ")
    ));
    line(format_args!(
        "# How often each test runs on the base, to find flakes."
    ));
    line(format_args!("repeat = 1"));
    line(format_args!("# Bounds on one grade."));
    line(format_args!("timeout = \"{}m\"", limits.timeout / 60));
    line(format_args!(
        "limits = {{ memory = \"{}\", processes = {}, output = \"{}\", disk = \"{}\" }}\n",
        super::units::size_text(limits.memory),
        limits.processes,
        super::units::size_text(limits.output),
        super::units::size_text(limits.disk),
    ));
    line(format_args!("[deliver]"));
    line(format_args!("# A branch; pull requests are not made yet."));
    line(format_args!("as = \"branch\""));
    line(format_args!("branch = \"hangar/{{key}}\""));
    out
}

const HEAD: &str = "\
# How this code is built, tested and delivered. Commands here run only inside sandboxes; programs,
# keys, hosts and sandboxes of a machine belong in that user's configuration instead.
format = 1

";

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Variables as a table in one line.
fn inline(env: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| format!("{name} = {}", quote(value));
    match env.iter().map(pair).collect::<Vec<_>>().join(", ") {
        env if env.is_empty() => "{}".to_owned(),
        env => format!("{{ {env} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::repository::{Flow, Repository};
    use std::path::Path;

    #[test]
    fn what_init_writes_reads_back_without_a_warning() {
        let text = template(&Template {
            repo: Digest::of(b"policy"),
            framework: Framework::Pytest,
            verify: "python -m pytest -q \"a\\b\"",
            prepare: "pip install -r requirements.txt",
            build: "",
            tests: &["tests/", "src/**/test_*.py"],
            options: &["--override-ini=a=b".to_owned()],
            plugins: &["pytest_mock".to_owned()],
            env: &[("PYTHONPATH".to_owned(), "src".to_owned())],
        });
        let repository = Repository::parse(Path::new("hangar.toml"), &text).unwrap();
        assert!(repository.warnings.is_empty(), "{:?}", repository.warnings);
        assert_eq!(repository.flow, Flow::TestFirst);
        assert_eq!(
            repository.verify.as_deref(),
            Some("python -m pytest -q \"a\\b\"")
        );
        let plan = repository.to_plan(&[]).unwrap();
        assert_eq!(plan.tests, ["tests/", "src/**/test_*.py"]);
        assert_eq!(plan.options, ["--override-ini=a=b"]);
        assert_eq!(plan.plugins, ["pytest_mock"]);
        assert_eq!(plan.env["PYTHONPATH"], "src");
        assert_eq!(plan.limits, PlanLimits::default());
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    }
}
