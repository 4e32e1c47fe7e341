use super::*;

const USER: &str = "# mine\n[sandbox]\nprovider = \"bwrap\" # for now\n[notify.chat]\nurl = \"https://example.org/hook/secret\"\n";
const REPO: &str = "[grader]\nframework = \"exec\"\nlimits = { memory = \"1G\" }\n";

fn layers(env: &[(&str, &str)]) -> Layers {
    let env = env.iter().map(|(k, v)| (k.into(), v.into())).collect();
    Layers::new(
        Some((Path::new("config.toml"), USER)),
        Some((Path::new("hangar.toml"), REPO)),
        &env,
        &[("remote.name".into(), "\"upstream\"".into())],
    )
    .unwrap()
}

#[test]
fn every_value_knows_where_it_comes_from() {
    let layers = layers(&[]);
    let shown = |key: &str| {
        let entry = layers.get(key).unwrap();
        format!("{} {}", entry.value, entry.origin)
    };
    assert_eq!(shown("sandbox.provider"), "\"bwrap\" user config.toml:3");
    assert_eq!(
        shown("grader.limits.memory"),
        "\"1G\" repository hangar.toml:3"
    );
    assert_eq!(shown("grader.timeout"), "\"10m\" default");
    assert_eq!(shown("remote.name"), "\"upstream\" command line");
    assert!(layers.list().is_sorted_by(|a, b| a.key < b.key));
}

#[test]
fn the_environment_wins_over_the_file() {
    let layers = layers(&[("HANGAR_SANDBOX_PROVIDER", "linux")]);
    let entry = layers.get("sandbox.provider").unwrap();
    assert_eq!(entry.value, "\"linux\"");
    assert_eq!(
        entry.origin.to_string(),
        "environment HANGAR_SANDBOX_PROVIDER"
    );
}

#[test]
fn addresses_that_are_credentials_are_hidden() {
    assert!(!format!("{:?}", layers(&[]).list()).contains("hook/secret"));
}

#[test]
fn defaults_agree_with_what_an_empty_file_means() {
    let text = "[grader]\nframework = \"exec\"\n";
    let plan = Repository::parse(Path::new("hangar.toml"), text)
        .unwrap()
        .to_plan(&[])
        .unwrap();
    let full: Vec<String> = DEFAULTS
        .iter()
        .filter(|(key, _)| key.starts_with("grader.") || key.starts_with("deliver."))
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let full = full.join("\n");
    let stated = Repository::parse(
        Path::new("hangar.toml"),
        &format!("grader.framework = \"exec\"\n{full}"),
    )
    .unwrap();
    assert_eq!(stated.to_plan(&[]).unwrap(), plan);
    assert_eq!(stated.deliver, repository::Deliver::default());
}

#[test]
fn setting_keeps_comments_and_makes_tables() {
    let file = Path::new("config.toml");
    let out = edit(file, USER, "sandbox.provider", "linux").unwrap();
    assert!(
        out.starts_with("# mine\n") && out.contains("provider = \"linux\" # for now"),
        "{out}"
    );
    let out = edit(file, &out, "lanes.writer", "claude:high, mine").unwrap();
    assert!(
        out.contains("[lanes]\nwriter = [\"claude:high\", \"mine\"]"),
        "{out}"
    );
    let out = edit(file, &out, "harness.mine.command", "[\"/bin/x\", \"-a\"]").unwrap();
    assert!(
        out.contains("[harness.mine]\ncommand = [\"/bin/x\", \"-a\"]"),
        "{out}"
    );
    let user = User::parse(file, &out, None).unwrap();
    assert_eq!(user.lanes.harnesses["mine"].command, ["/bin/x", "-a"]);
}

#[test]
fn what_is_not_the_users_or_not_valid_is_refused() {
    let file = Path::new("config.toml");
    let refusal = |key: &str, value: &str| edit(file, USER, key, value).unwrap_err().to_string();
    assert!(refusal("grader.timeout", "1m").contains("hangar.toml"));
    assert!(refusal("lanes.writter", "x").contains("`lanes.writer`"));
    assert!(refusal("sandbox.provider", "magic").contains("is one of"));
    assert!(refusal("sandbox.image", "python:3.13").contains("podman image inspect"));
    assert!(refusal("harness.m.command", "relative").contains("absolute"));
    assert!(refusal("colour", "x").contains("known are"));
}

#[test]
fn a_linked_file_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real.toml"), dir.path().join("config.toml"));
    files::write_atomic(&real, b"", 0o600).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    set_in_file(&link, "remote.name", "upstream").unwrap();
    assert!(link.is_symlink());
    assert_eq!(
        std::fs::read_to_string(&real).unwrap(),
        "[remote]\nname = \"upstream\"\n"
    );
}

#[test]
fn no_lane_is_set_by_itself() {
    let layers = Layers::new(None, None, &Env::new(), &[]).unwrap();
    for role in crate::model::lane::Role::ALL {
        assert!(layers.get(&format!("lanes.{role}")).is_none());
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_without_a_line_of_a_file_that_is_not_written() {
    let file = Path::new("config.toml");
    let text = "[remote]\nname = \"origin\"\n";
    let error = edit(file, text, "harness.mine.command", "foo").unwrap_err();
    assert!(matches!(error, Error::Unfit { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("harness.mine") && !said.contains("config.toml:"),
        "{said}"
    );
    // A fault that is in the file already is named with its line.
    let broken = "[lanes]\nwriter = \"x\"\n";
    let error = edit(file, broken, "remote.name", "up").unwrap_err();
    assert!(error.to_string().contains("config.toml:2"), "{error}");
}
