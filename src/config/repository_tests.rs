use super::*;

fn read(text: &str) -> Result<Repository, Error> {
    Repository::parse(Path::new(FILE), text)
}

const FULL: &str = r#"
format = 1
[trust]
repo = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
[task]
flow = "test-first"
verify = "python -m pytest -q"
[grader]
framework = "pytest"
prepare = "pip install -r requirements.txt"
reprepare = true
build = ""
tests = ["tests/"]
protected = ["ci/**"]
may_touch = ["setup.cfg"]
options = ["-p", "asyncio"]
plugins = ["pytest_asyncio"]
env = { TZ = "UTC" }
repeat = 2
timeout = "10m"
limits = { memory = "4G", processes = 512, output = "64M", disk = "1G" }
[deliver]
as = "pr"
branch = "hangar/{key}"
"#;

#[test]
fn the_documented_file_is_read_whole() {
    let repository = read(FULL).unwrap();
    assert!(repository.warnings.is_empty(), "{:?}", repository.warnings);
    assert_eq!(repository.flow, Flow::TestFirst);
    assert_eq!(repository.deliver.form, DeliverAs::Pr);
    let plan = repository
        .to_plan(&["conftest.py".into(), "ci/**".into()])
        .unwrap();
    assert_eq!(plan.framework, Framework::Pytest);
    assert_eq!(plan.protected, ["conftest.py", "ci/**"]);
    assert_eq!(plan.env["TZ"], "UTC");
    assert!(plan.reprepare);
    assert_eq!(
        plan.limits,
        PlanLimits {
            memory: 4 << 30,
            processes: 512,
            output: 64 << 20,
            disk: 1 << 30,
            timeout: 600
        }
    );
}

#[test]
fn an_empty_file_is_plain_and_has_no_plan() {
    let repository = read("").unwrap();
    assert_eq!(repository.flow, Flow::Plain);
    let error = repository.to_plan(&[]).unwrap_err();
    assert!(error.to_string().contains("grader.framework"), "{error}");
}

#[test]
fn an_unknown_key_warns_with_the_nearest() {
    let repository = read("[grader]\nframework = \"exec\"\npreprae = \"x\"\n[delivery]\n").unwrap();
    let texts: Vec<_> = repository
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        texts.contains(
            &"hangar.toml:3: unknown key `grader.preprae` (did you mean `grader.prepare`?)".into()
        ),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"hangar.toml:4: unknown key `delivery` (did you mean `deliver`?)".into()),
        "{texts:?}"
    );
}

#[test]
fn a_wrong_type_is_an_error_with_its_line() {
    let error = read("[task]\n\nverify = 3\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "hangar.toml:3: `task.verify` is a text, not a number"
    );
    for (bad, line) in [
        ("format = 2", 1),
        ("[grader]\nframework = \"nose\"", 2),
        ("[grader]\ntimeout = \"10\"", 2),
        ("[grader]\ntests = []", 2),
        ("[grader]\ntests = [\n\"ok/\",\n\"../up\"]", 4),
        ("[grader]\nmay_touch = [\"/etc\"]", 2),
        ("[grader]\nprotected = [\".git/hooks\"]", 2),
        ("[grader]\nlimits = { memory = \"lots\" }", 2),
        ("[grader]\nlimits = { memory = \"9999999T\" }", 2),
        ("[grader]\nlimits = { output = \"1025T\" }", 2),
        ("[grader]\nlimits = { disk = 9223372036854775807 }", 2),
        ("[grader]\nlimits = { processes = 5000000 }", 2),
        ("[grader]\ntimeout = \"366d\"", 2),
        ("[grader]\nrepeat = 0", 2),
        ("[grader]\nreprepare = 1", 2),
        ("[grader]\nframework = \"pytest\"\nreprepare = true", 3),
        (
            "[grader]\nframework = \"jest\"\nprepare = \"npm ci\"\nreprepare = true",
            4,
        ),
        ("[grader]\nenv = { \"A-B\" = \"x\" }", 2),
        ("[deliver]\nbranch = \"main\"", 2),
        ("[deliver]\nbranch = \"-x/{key}\"", 2),
        ("grader = 1", 1),
        ("[grader]\nenv = { PYTEST_ADDOPTS = \"-p x\" }", 2),
        ("[grader.env]\nLD_PRELOAD = \"/src/x.so\"", 2),
    ] {
        match read(bad) {
            Err(Error::Value { line: found, .. }) => assert_eq!(found, line, "{bad}"),
            other => panic!("{bad}: {other:?}"),
        }
    }
}

#[test]
fn broken_toml_names_its_line() {
    assert!(matches!(
        read("[task]\nflow = \n"),
        Err(Error::Syntax { line: 2, .. })
    ));
}

#[test]
fn what_is_the_users_is_refused_and_told_where_it_belongs() {
    for (bad, place) in [
        ("[harness.mine]\ncommand = [\"/bin/sh\"]", "[lanes]"),
        ("[lanes]\nwriter = [\"x\"]", "[lanes]"),
        ("[grader]\nprovider = \"none\"", "[sandbox]"),
        ("[sandbox]\nprovider = \"none\"", "[sandbox]"),
        ("[grader]\nregistry = \"https://example.org\"", "[prepare]"),
        ("[deliver]\nremote = \"evil\"", "[remote]"),
        ("[notify]\nwebhook = \"https://example.org\"", "[notify]"),
        ("[trust]\nkey = \"ssh-ed25519 AAAA\"", "user.signingKey"),
        ("[grader]\npython = \"/usr/bin/python3\"", "[toolchain]"),
    ] {
        match read(bad) {
            Err(Error::Forbidden { belongs, .. }) => {
                assert!(belongs.contains(place), "{bad}: {belongs}");
            }
            other => panic!("{bad}: {other:?}"),
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]=\"'.{}, \n0-9#]{0,80}") {
        let _ = read(&text);
        let _ = read(&format!("{FULL}{text}"));
    }
}
