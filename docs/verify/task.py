"""Is this delivered task of a repository that uses hangar acceptable? A stranger's answer in one
file, from format.md alone, whose first lines say what it decides; git and ssh-keygen do the rest.
    python3 docs/verify/task.py REPOSITORY TASK ID
TASK is its whole id, ID the repository id that you were told. Exit status 0: accepted; 1: not, and
the line that does not hold is named; 2: not decided here, but by the long one, docs/verify."""
import base64, functools, json, os, re, subprocess, sys, tempfile, tomllib
from datetime import datetime
from hashlib import sha256
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "format.md").read_text("utf-8")
ROLES = ["act", "requester", "member", "approver", "admin", "worker", "grader", "agent"]
LIFE = "create (edit )*enqueue claim ((release )?claim |renew |stage |consume )*deliver (publish )*"
FILES, ENV = ("100644", "100755", "120000"), os.environ | {"GIT_GRAFT_FILE": os.devnull}
class Doc(dict): __getattr__ = dict.__getitem__
def parse(data): return json.loads(json.dumps(tomllib.loads(data.decode())), object_hook=Doc)
def words(text): return re.findall("`([^`]+)`", text)
def sized(data): return len(data).to_bytes(8, "big") + data
def digest(data): return "sha256:" + sha256(data).hexdigest()
def decided(ok, what): ok or sys.exit(print("not decided here:", what) or 2)

def row(heading, first):  # the cells of one row of the page
    line = rf"(?s)\n#+ `?{heading}`?\n.*?\n\|([^|\n]*{re.escape(first)}[^|\n]*\|[^\n]*)\|\n"
    return [cell.strip() for cell in re.search(line, PAGE)[1].split("|")]

@functools.cache
def git(command, *oids):
    assert all(re.fullmatch("[0-9a-f]{40,64}", oid) for oid in oids)
    run = ["git", "--no-replace-objects", "-C", sys.argv[1], *command.split(), *oids]
    return subprocess.run(run, capture_output=True, check=True, env=ENV).stdout

def tree(oid, *modes):  # path, a letter for each byte -> the bytes of a file, or an object
    lines = git("ls-tree -z -r -t --full-tree", oid).decode("latin-1").split("\0")[:-1]
    rows = [re.split("[ \t]", line, maxsplit=3) for line in lines]
    return {path: git("cat-file blob", one) if kind == "blob" else one
            for mode, kind, one, path in rows if mode in modes}

def listing(oid):
    files = {path.encode("latin-1"): mode.encode() + sized(data)[:8] + sha256(data).digest()
             for mode in FILES for path, data in tree(oid, mode).items()}
    return digest(b"hangar-listing-1\n" + b"".join(sized(p) + files[p] for p in sorted(files)))

def commits(ref):  # what each holds, oldest first
    heads = git(f"rev-list --reverse refs/{ref}").decode().split()
    odd = [path for oid in heads for path in tree(oid, *FILES[1:]) if path[:7] != "result/"]
    decided(not odd and not git(f"rev-list --merges refs/{ref}"), f"joins or odd files on {ref}")
    return [files for oid in heads if (files := tree(oid, "100644", "040000"))]

def signed(data, signature, namespace, key):
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "signers").write_text(f"signer {' '.join(key.split()[:2])}\n")
        Path(scratch, "signature").write_bytes(signature)
        run = f"ssh-keygen -Y verify -f signers -I signer -n {namespace} -s signature".split()
        return not subprocess.run(run, cwd=scratch, input=data, capture_output=True).returncode

def may(who, act):  # `create` made the task
    cells, own = row("Rights", act), "owner" not in who and who.name == create.requester
    return bool(cells[ROLES.index(who.role)] or own and cells[1])

def documents(folder, name):  # by digest, oldest first
    found, (_, namespace, acts) = {}, row("Signatures", f"`{name}.toml`")
    for ref in [ref for ref in REFS if ref.startswith(f"hangar/{folder}/{TASK}")]:
        for files in commits(ref):
            data = files.get(f"{name}.toml", b"")
            decided("reseal.toml" not in files and digest(data) not in found, ref)
            doc = parse(data)
            own = base64.b32encode(sha256(data).digest()).decode().lower().strip("=")
            who = POLICY[doc.signer.policy.digest][doc.signer.key]
            assert (doc.format, doc.repo, doc.get("task", own)) == (1, ID, TASK)
            assert (who.version, who.name) == (doc.signer.policy.version, doc.signer.principal)
            assert signed(data, files[f"{name}.sig"], namespace.strip("`"), who.key)
            act = acts.split("; where `kind` is `submitted`, ")[doc.get("kind") == "submitted"]
            assert name == "event" or may(who, act)
            found[digest(data)] = Doc(doc, id=digest(data), ref=ref, beside=files, who=who)
    refs = {one.ref for one in found.values()}
    decided(name in ("event", "run", "grade") or len(refs) == len(found), f"more than one {name}")
    return found

sys.excepthook = lambda *raised: print("not accepted: line", raised[2].tb_lineno, raised[1])
decided(len(sys.argv) == 4 and __debug__ and Path(sys.argv[1]).is_dir(), __doc__)
_, _, TASK, ID = sys.argv
REFS = {*git("for-each-ref --format=%(refname:lstrip=1)").decode().split()}
decided({"hangar/policy", f"hangar/tasks/{TASK}"} <= REFS, "there is no policy, or no such task")
decided(not {"heads/hangar-state/policy", f"hangar/archive/{TASK[0]}"} & REFS, "state elsewhere")
POLICY, old = {}, None
for files in commits("hangar/policy"):  # each version is authorised by the one before it
    rules, new = parse(files["root.toml"]), parse(files["members.toml"])
    people = new.person + new.get("machine", [])
    keys = [Doc(one, key=key, version=new.version)
            for one in people for key in one.get("keys") or [one.public]]
    wires = [sha256(base64.b64decode(one.key.split()[1])).digest() for one in keys]
    names = ["SHA256:" + base64.b64encode(wire).decode().strip("=") for wire in wires]
    roots = [Doc(name=one.principal, key=one.public) for one in rules.key]
    new.update(people=people, signers=roots + [one for one in keys if one.role == "admin"])
    old = old or new
    straight = (new.get("previous"), new.root) == ([None, *POLICY][-1], old.root)
    grew = not {"reduced", "rival"} & {*new} and all(one in people for one in old.people)
    decided(straight and grew, "a policy that did more than grow")
    for name, by in [("members", old.signers)] + [("root", roots)] * (old is new):
        good = {who.name for who in by for path in files if path.startswith(f"{name}.sigs/")
                and signed(files[f"{name}.toml"], files[path], f"hangar-{name}", who.key)}
        assert len(good) >= max(1, rules.thresholds[name])
    assert new.version == len(POLICY) + 1 and ID == new.root == digest(files["root.toml"])
    assert len(keys) == len({*names}) and len(people) == len({one.name for one in people})
    old, POLICY[digest(files["members.toml"])] = new, dict(zip(names, keys))
pin = Path(sys.argv[1], git("rev-parse --git-common-dir").decode().strip(), "hangar/trust.toml")
decided(not pin.exists() or any(id in pin.read_text() for id in POLICY), "this clone saw another")
events = documents("tasks", "event")
changes = [(event, one) for event in events.values() for one in event.change]
create, text, life, held = changes[0][1], Doc(mandate="", criteria=[]), "", None
for event, one in changes:
    held = one.lease if one.kind == "claim" else held
    able = may(event.who, row("Effect of a change", f"`{one.kind}`")[1])
    decided(able and one.get("lease", held) == held, f"who may {one.kind}?")
    life += f"{one.kind} " * (one.kind not in ("comment", "approve-patch"))
    text.update(one if one.kind in ("create", "edit") else {})
workers = {one.signer.key for one in events.values() if one.who.role == "worker"}
line = [one.parents for one in events.values()] == [[], *([id] for id in events)][:-1]
straight = line and len(workers) == 1 and changes[1][0] is not changes[0][0]
decided(straight and re.fullmatch(LIFE, life), f"no straight way: {life}")
[delivery] = [one for _, one in changes if one.kind == "deliver"]
sealed, approvals = documents("sealed", "manifest"), documents("approvals", "approval")
runs, grades = documents("runs", "run"), documents("grades", "grade")
seal, run, grade = sealed[delivery.manifest], runs[delivery.run], grades[delivery.grade]
result, plan, asks = run.result, seal.plan, rules.acceptance
base = {one.alias: one.status for one in seal.base_check}
fails = [alias for alias, status in base.items() if status in ("fails", "unconfirmed")]
assert fails and len(base) == len(seal.base_check) and len(fails) == seal.counts.fails
assert seal.counts.uncovered == len([one for one in seal.coverage if not one.fails])
parts = [text.title, text.mandate, *(part for one in text.criteria for part in (one.id, one.text))]
real = {"version": 1, "base": text.base, "base_listing": listing(text.base),
        "text": digest(b"hangar-task-text-1\n" + b"".join(sized(one.encode()) for one in parts)),
        "ciphertext": digest(seal.beside["sealed.age"])}
assert real.items() <= seal.items() and "previous" not in seal and create.flow == "test-first"
for one in approvals.values():
    key = base64.b64decode(one.signer.key[7:] + "=").hex()
    assert one.ref == f"hangar/approvals/{TASK}-{seal.id[7:]}-{key}"
    assert (one.action, one.manifest, one.version) == ("approve", seal.id, seal.version)
using, ids = [(event, one.approvals) for event, one in changes
              if one.get("manifest") == seal.id and one.get("approvals")][-1]
for one in [approvals[id] for id in ids]:
    assert datetime.fromisoformat(using.signer.at) <= datetime.fromisoformat(one.not_after)
    assert digest(using.beside[one.id[7:]]) == one.id
assert len({approvals[id].who.name for id in ids}) >= max(1, asks.approvers)
decided("skipped" not in base.values() and {*grade.approvals} <= {*ids}, "skips, odd approvals")
_, _, best, protected = row("Test ids", f"`{plan.framework}`")
closed = words(re.search("<!-- guarded.*?<!-- /", PAGE, re.S)[0] + protected) + plan.protected
begins = [re.match(r"[^*?{\[\\]*", one.strip("*/"))[0].encode().lower() for one in closed]
clear = []
for one in runs.values():
    for part in [part for part in one.get("attachment", []) if part.name in one.beside]:
        assert digest(one.beside[part.name]) == part.sha256
        clear += [one.beside[part.name]] * (not part.get("sealed"))
    for own in [one.result] if "result" in one else []:
        changed = git("diff-tree -r -z --name-only", own.base, own.tree).lower().split(b"\0")[:-1]
        touched = own.base != seal.base or any(part in path for part in begins for path in changed)
        decided(not touched, "another base, or a guarded or protected path")
        assert (own.base_listing, own.tree) == (seal.base_listing, one.beside["result"])
        assert (own.listing, own.changed) == (listing(own.tree), len(changed))
        assert tree(own.base, "160000") == tree(own.tree, "160000") and not own.get("guarded")
assert (run.role, run.outcome, run.manifest) == ("implementer", "completed", seal.id)
assert run.kind == "agent" or run.secrecy in ("none", "policy")
assert run.get("harness", {}).get("name") != seal.writer.get("harness", "")
trusts, verdicts = [words(row("Grade", f"`{name}`")[2]) for name in ("trust", "verdict")]
for one in grades.values():
    decided("run" in one and one.void <= one.accepted and not one.get("reprepared"), "odd grade")
    rows, by = {test.alias: test.outcome for test in one.test}, runs[one.run]
    others = [test for test in one.test if test.alias not in base]
    held = [test.get("class") for test in others if test.outcome == "failed"].count("assertion")
    ends = [rows.get(alias) for alias in base]
    counts = {word: ends.count(word) for word in ("passed", "failed", "missing", "skipped")}
    counts |= {"expected": len(base), "sentinels": len(others), "sentinels_held": held}
    assert (one.manifest, by.manifest, one.secrecy) == (seal.id, seal.id, by.secrecy)
    assert (one.after_code, one.trust) == (seal.after_code, one.sandbox.trust)
    assert one.counts.expected == len(base) and one.subject.items() <= by.result.items()
    assert one.accepted or one.subject.listing != result.listing
    if rows or one.accepted:
        assert one.counts == counts and len(others) == seal.counts.sentinels and None not in ends
        assert len(rows) == len(one.test) and all(test.alias[0] == "s" for test in others)
    fine = not (one.void or one.reasons or one.canary_found or one.protected_touched)
    assert not one.accepted or fine and {*base} == {row for row in rows if rows[row] == "passed"}
    for shown in [row("Probes", f"`{one}`")[1] for one in trusts[1 : trusts.index(one.trust) + 1]]:
        assert {one.sandbox.probes.get(name) for name in words(shown)} == {"held"}
    assert verdicts.index(one.verdict) <= verdicts.index(best.strip("`"))
    assert one.counts.sentinels_held or one.verdict != "crosschecked"
assert (grade.accepted, grade.manifest, grade.run) == (True, seal.id, run.id) and grade.approvals
for name, scale in [("trust", trusts), ("verdict", verdicts)]:
    assert scale.index(grade[name]) >= max(scale.index(asks[name]), scale.index(plan[name]))
assert plan.framework in (asks.adapters or [plan.framework])
assert asks.after_code >= grade.after_code and asks.swap_exposed >= grade.sandbox.swap_exposed
head, message = git("cat-file commit", delivery.commit).decode(errors="replace").split("\n\n", 1)
assert head.startswith(f"tree {result.tree}\nparent {result.base}\nauthor ")
tail = (f"\n\nHangar-Task: {TASK}\nHangar-Acceptance: passed; trust={grade.trust}; "
        f"verdict={grade.verdict}; secrecy={grade.secrecy}\nHangar-Manifest: {seal.id}\n"
        f"Hangar-Grade: {grade.id}\nHangar-Run: {run.id}\n")
decided(message.endswith(tail), "a commit with other trailers")
files = tree(result.tree, *FILES)
clear += [message.encode(), *(path.encode("latin-1") for path in files), *files.values()]
assert seal.canary not in map(digest, re.findall(rb"(?=(hgc1_[a-z2-7]{32}))", b"\n".join(clear)))
print("accepted")
