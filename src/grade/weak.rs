//! What somebody who reads hidden tests before they sign should look at twice.
//!
//! The files are looked at as text, word by word: a finding is a hint, and no finding is no praise.
//! Nothing here refuses or blocks.

use crate::base::words::count;
use crate::grade::external;
use crate::grade::suite::SealedFile;
use crate::model::criteria::Criteria;
use crate::model::manifest::BaseStatus;
use crate::model::outcome::{FailureClass, TestId};
use crate::model::plan::Framework;
use schemars::JsonSchema;
use serde::Serialize;

/// A sealed version, as far as its strength can be told from it.
pub struct Version<'a> {
    /// How the files are read.
    pub framework: Framework,
    /// All sealed files.
    pub files: &'a [SealedFile],
    /// Which test stands for what.
    pub criteria: &'a Criteria,
    /// How each test ended on the base.
    pub base: &'a dyn Fn(&TestId) -> Option<OnBase>,
}

/// How a test ended on the untouched base.
#[derive(Debug, Clone, Copy)]
pub struct OnBase {
    /// Whether it failed, passed, was skipped.
    pub status: BaseStatus,
    /// Class of a failure.
    pub class: Option<FailureClass>,
    /// Whether repeated runs differed.
    pub flaky: bool,
}

/// What kind of weakness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// On the base, all tests of a criterion fail only because a name, file or module is missing.
    OnlyMissing,
    /// No assertion was found in a test.
    NoAssertion,
    /// A criterion stands on one test with at most one check.
    OneCheck,
    /// A file reads the clock or waits.
    Clock,
    /// A file speaks of the network.
    Network,
    /// A file draws random values without a seed.
    Random,
    /// Repeated runs of a test differed.
    Flaky,
}

/// One hint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// Criterion, test or file. Only for eyes that may read the tests.
    pub about: String,
    /// In a sentence.
    pub says: String,
}

/// Everything worth a second look, most telling first.
pub fn findings(version: &Version<'_>) -> Vec<Finding> {
    let mut found = of_criteria(version);
    found.extend(of_tests(version));
    found.extend(of_files(version));
    found.sort();
    found
}

fn finding(kind: Kind, about: impl Into<String>, says: impl Into<String>) -> Finding {
    Finding {
        kind,
        about: about.into(),
        says: says.into(),
    }
}

fn of_criteria(version: &Version<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (criterion, ids) in version.criteria.criteria() {
        let fails: Vec<(&TestId, Option<FailureClass>)> = ids
            .iter()
            .filter_map(|id| Some((id, (version.base)(id)?)))
            .filter(|(_, base)| base.status == BaseStatus::Fails)
            .map(|(id, base)| (id, base.class))
            .collect();
        let missing = |class: Option<FailureClass>| {
            matches!(
                class,
                Some(FailureClass::MissingSymbol | FailureClass::Compile)
            )
        };
        if !fails.is_empty() && fails.iter().all(|(_, class)| missing(*class)) {
            found.push(finding(
                Kind::OnlyMissing,
                criterion.as_str(),
                format!(
                    "{} on the base only because something is not there yet: no check of them has been \
                     seen to fail",
                    count(fails.len(), "test fails", "tests fail")
                ),
            ));
        }
        if let [id] = ids
            && let Some(text) = body(version, id)
            && checks(version.framework, &text) <= 1
        {
            found.push(finding(
                Kind::OneCheck,
                criterion.as_str(),
                "one test with no more than one check stands for all of it",
            ));
        }
    }
    found
}

fn of_tests(version: &Version<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for id in version.criteria.expected() {
        if (version.base)(&id).is_some_and(|base| base.flaky) {
            let says = "ended differently when it ran again on the same base";
            found.push(finding(Kind::Flaky, id.as_str(), says));
        }
        let none = body(version, &id).is_some_and(|text| checks(version.framework, &text) == 0);
        if none {
            let says = "nothing in it looks like a check: it may pass whatever the code does";
            found.push(finding(Kind::NoAssertion, id.as_str(), says));
        }
    }
    found
}

fn of_files(version: &Version<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in version.files {
        let Ok(text) = std::str::from_utf8(file.text.expose()) else {
            continue;
        };
        let text = code(text);
        let language = language(&file.path, &text);
        let kinds = [
            (Kind::Clock, language.clock, "reads the clock or waits"),
            (
                Kind::Network,
                language.network,
                "speaks of the network, which is not there",
            ),
            (
                Kind::Random,
                language.random,
                "draws random values without a seed",
            ),
        ];
        let seeded = language.seeds.iter().any(|word| text.contains(word));
        for (kind, words, says) in kinds {
            let word = words.iter().find(|word| text.contains(**word));
            if let Some(word) = word.filter(|_| kind != Kind::Random || !seeded) {
                let says = format!("{says} (`{}`)", word.trim());
                found.push(finding(kind, &file.path, says));
            }
        }
    }
    found
}

/// Words of a language.
struct Language {
    checks: &'static [&'static str],
    clock: &'static [&'static str],
    network: &'static [&'static str],
    random: &'static [&'static str],
    seeds: &'static [&'static str],
}

const PYTHON: Language = Language {
    checks: &["assert", "raises", "fail("],
    clock: &[
        "time.time(",
        "datetime.now(",
        "date.today(",
        "time.sleep(",
        "monotonic(",
        "perf_counter(",
    ],
    network: &[
        "requests.",
        "urllib.request",
        "http.client",
        "socket.create_connection",
        "aiohttp",
    ],
    random: &["random.", "secrets.", "uuid4(", "urandom("],
    seeds: &["random.seed(", "Random(", "default_rng("],
};

const SCRIPT: Language = Language {
    checks: &[
        "assert", "expect(", ".throws", ".rejects", "should", "equal(", "Equal(",
    ],
    clock: &[
        "Date.now(",
        "new Date()",
        "performance.now(",
        "setTimeout(",
        "hrtime",
    ],
    network: &[
        "fetch(",
        "http.get(",
        "https.get(",
        "http.request(",
        "net.connect(",
    ],
    random: &["Math.random(", "randomBytes(", "randomUUID("],
    seeds: &["seedrandom("],
};

const RUST: Language = Language {
    checks: &[
        "assert",
        "panic!",
        "unreachable!",
        "unwrap(",
        "expect(",
        "should_panic",
        "?;",
    ],
    clock: &[
        "SystemTime::now",
        "Instant::now",
        "thread::sleep",
        "Utc::now",
        "Local::now",
    ],
    network: &["TcpStream::connect", "reqwest", "ureq::"],
    random: &["thread_rng", "rand::random", "rand::rng", "getrandom"],
    seeds: &["seed_from_u64", "from_seed"],
};

const GO: Language = Language {
    checks: &[
        "t.Error", "t.Fatal", "t.Fail", "b.Error", "b.Fatal", "assert.", "require.", "Expect(",
        "panic(",
    ],
    clock: &[
        "time.Now(",
        "time.Since(",
        "time.Sleep(",
        "time.After(",
        "time.Tick(",
    ],
    network: &[
        "http.Get(",
        "http.Post(",
        "http.DefaultClient",
        "net.Dial",
        "tls.Dial",
    ],
    random: &["rand."],
    seeds: &["rand.NewSource(", "rand.Seed(", "rand.NewPCG("],
};

const SHELL: Language = Language {
    checks: &[],
    clock: &["sleep ", "$(date", "`date"],
    network: &["curl ", "wget ", "nc "],
    random: &["$RANDOM", "/dev/urandom", "shuf "],
    seeds: &[],
};

const NOTHING: Language = Language {
    checks: &[],
    clock: &[],
    network: &[],
    random: &[],
    seeds: &[],
};

fn language(path: &str, text: &str) -> Language {
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if ends(&[".py"])
        || text.starts_with("#!") && text.lines().next().unwrap_or("").contains("python")
    {
        PYTHON
    } else if ends(&[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"]) {
        SCRIPT
    } else if ends(&[".rs"]) {
        RUST
    } else if ends(&[".go"]) {
        GO
    } else if ends(&[".sh", ".bash", ".t"]) || text.starts_with("#!") {
        SHELL
    } else {
        NOTHING
    }
}

/// `text` without lines that are comments.
fn code(text: &str) -> String {
    let comment = |line: &&str| {
        let line = line.trim_start();
        (line.starts_with('#') && !line.starts_with("#!") && !line.starts_with("#["))
            || line.starts_with("//")
    };
    text.lines()
        .filter(|line| !comment(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// The text of one test, from its name to the next test of its file. `None` where that can't be told.
fn body(version: &Version<'_>, id: &TestId) -> Option<String> {
    let (file, at) = place(version, id)?;
    let text = std::str::from_utf8(file.text.expose()).ok()?;
    if version.framework == Framework::External {
        return external::case_text(&file.path, text.as_bytes(), id);
    }
    let of_file = version.criteria.expected();
    let others = of_file.iter().chain(version.criteria.sentinels());
    let next = others
        .filter_map(|other| place(version, other))
        .filter(|(other, start)| other.path == file.path && *start > at)
        .map(|(_, start)| start)
        .min()
        .unwrap_or(text.len());
    text.get(at..next).map(code)
}

/// The file of a test, and where in it its name stands.
fn place<'a>(version: &Version<'a>, id: &TestId) -> Option<(&'a SealedFile, usize)> {
    let name = id.without_parameters();
    let (file, needles): (_, Vec<String>) = match version.framework {
        Framework::Pytest | Framework::Unittest => {
            let (path, _) = name.split_once("::")?;
            (
                named(version, path)?,
                vec![format!("def {}(", name.rsplit("::").next()?)],
            )
        }
        Framework::Cargo => {
            let (target, _) = name.split_once("::")?;
            let ends = [format!("/{target}.rs"), format!("/{target}/main.rs")];
            let file = version
                .files
                .iter()
                .find(|file| ends.iter().any(|end| file.path.ends_with(end.as_str())))?;
            (file, vec![format!("fn {}(", name.rsplit("::").next()?)])
        }
        Framework::Go => {
            let (path, name) = name.rsplit_once("::")?;
            (named(version, path)?, vec![format!("func {name}(")])
        }
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest => {
            // Names are taken whole: `[` has no meaning in them.
            let (path, rest) = id.as_str().split_once(" > ")?;
            let last = rest.rsplit(" > ").next()?;
            let quotes = ['"', '\'', '`'];
            (
                named(version, path)?,
                quotes.map(|quote| format!("{quote}{last}{quote}")).into(),
            )
        }
        Framework::External => {
            let (path, _) = id.as_str().split_once(" > ")?;
            return Some((named(version, path)?, 0));
        }
        // What a test of these checks stands in files of any language.
        Framework::Ctest | Framework::Tap | Framework::Exec | Framework::Junit => return None,
    };
    let text = std::str::from_utf8(file.text.expose()).ok()?;
    let at = needles
        .iter()
        .find_map(|needle| text.find(needle.as_str()))?;
    Some((file, at))
}

fn named<'a>(version: &Version<'a>, path: &str) -> Option<&'a SealedFile> {
    version.files.iter().find(|file| file.path == path)
}

/// How many checks a test seems to make.
fn checks(framework: Framework, text: &str) -> usize {
    let words = match framework {
        Framework::Pytest | Framework::Unittest => PYTHON.checks,
        Framework::Cargo => RUST.checks,
        Framework::Go => GO.checks,
        Framework::Node | Framework::Mocha | Framework::Jest | Framework::Vitest => SCRIPT.checks,
        // One line for each expectation.
        Framework::External => return text.lines().count(),
        Framework::Ctest | Framework::Tap | Framework::Exec | Framework::Junit => {
            return usize::MAX;
        }
    };
    let holds = |line: &&str| words.iter().any(|word| line.contains(word));
    text.lines().filter(holds).count()
}

#[cfg(test)]
#[path = "weak_tests.rs"]
mod tests;
