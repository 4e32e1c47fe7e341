//! `prepare` with go: what it leaves is used offline. The proxy is a folder, so no registry is needed.

use crate::common::git::commit_all;
use crate::evidence_prepare::{Base, missing, result};
use hangar::flow::prepare::prepare;
use hangar::grade::basecheck::BaseResult;
use hangar::model::outcome::FailureClass;
use hangar::model::plan::Framework;

const GO_TEST: &str = "\
package calc
import \"testing\"
func TestPrints(t *testing.T) { if Print(7) != \"<7>\" { t.Fatal(Print(7)) } }
func TestAdds(t *testing.T) { if Add(2, 2) != 4 { t.Fatal(Add(2, 2)) } }
";

/// A folder that go takes for a proxy, with one module in it.
const GO_PROXY: &str = "\
import sys, zipfile, pathlib
at = pathlib.Path(sys.argv[1]) / 'example.com/near/@v'
at.mkdir(parents=True)
module = 'module example.com/near\\n\\ngo 1.18\\n'
(at / 'list').write_text('v1.0.0\\n')
(at / 'v1.0.0.info').write_text('{\"Version\": \"v1.0.0\"}')
(at / 'v1.0.0.mod').write_text(module)
with zipfile.ZipFile(at / 'v1.0.0.zip', 'w') as file:
    file.writestr('example.com/near@v1.0.0/go.mod', module)
    file.writestr('example.com/near@v1.0.0/near.go', 'package near\\nfunc In(s string) string { return \"<\" + s + \">\" }\\n')
";

#[test]
#[ignore = "heavy: needs go and python3"]
fn go_leaves_modules_and_compiled_packages_that_are_used_offline() {
    let module = "module example.com/calc\n\ngo 1.18\n\nrequire example.com/near v1.0.0\n";
    let code = "package calc\n\nimport (\"strconv\"; \"example.com/near\")\n\n\
                func Print(n int) string { return near.In(strconv.Itoa(n)) }\n\
                func Add(a, b int) int { return a*b + 1 }\n";
    let step = "go mod download && go build ./...";
    let mut base = Base::new(
        Framework::Go,
        step,
        &[("go.mod", module), ("calc.go", code)],
    );
    base.plan.tests = vec!["**/*_test.go".into()];
    let ids = ["hidden_test.go::TestPrints", "hidden_test.go::TestAdds"];
    let proxy = tempfile::tempdir().unwrap();
    let run = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(args).current_dir(base.world.repo_dir());
        let home = proxy.path().join("home").display().to_string();
        let address = format!("file://{}", proxy.path().display());
        for (name, value) in [
            ("HOME", home.as_str()),
            ("GOPROXY", &address),
            ("GOSUMDB", "off"),
        ] {
            command.env(name, value);
        }
        let output = command.env("GOFLAGS", "-modcacherw").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run("python3", &["-c", GO_PROXY, proxy.path().to_str().unwrap()]);
    run("go", &["mod", "tidy"]);
    commit_all(&base.world.repo_dir(), "sums");
    base.on_host(|host, repo| {
        let address = format!("file://{}", proxy.path().display());
        host.env.insert("GOPROXY".into(), address.into());
        host.env.insert("GOSUMDB".into(), "off".into());
        let head = repo.head().unwrap().unwrap();
        let prepared = prepare(host, repo, head, &base.plan).unwrap().unwrap();
        assert!(
            prepared
                .folder()
                .join("go/example.com/near@v1.0.0")
                .is_dir()
        );
        assert!(prepared.folder().join("go-build").is_dir());
    });
    assert!(base.ran());
    let check = base.check("hidden_test.go", GO_TEST, &ids).unwrap();
    assert_eq!(result(&check, ids[0]), BaseResult::Guard);
    let failed = BaseResult::Fails(FailureClass::Assertion);
    assert_eq!(result(&check, ids[1]), failed);
    assert!(!base.ran(), "the cache was not used");

    // Without the step, the missing modules are the environment's fault.
    base.plan.prepare = String::new();
    let (what, remedy) = missing(base.check("hidden_test.go", GO_TEST, &ids));
    assert!(what.contains("not downloaded"), "{what}");
    assert!(remedy.contains("prepare = \"go mod download\""), "{remedy}");
}
