"""Is this delivered task of a repository that uses hangar acceptable? A stranger's answer in one
file, from format.md alone: its tables are read when this runs, git and ssh-keygen do the rest.

    python3 docs/verify/task.py REPOSITORY TASK ID

TASK is its whole id, ID the repository id that you were told. Exit status 0: accepted; 1: not, and
the rule that does not hold is shown; 2: not decided here, but by the long one, python3 docs/verify:
joined heads, concurrent events, rival policies, policies in which a key lost rights, patches near
guarded or protected paths, changes without effect, a grade on other approvals or of no run, a
document twice, archives. Of what was not delivered, it checks signatures and that it does not speak
against the delivery. It leaves out what authorised signers say beside that: patch ids, most counts
of a manifest, its writer's run, copies of approvals in events, the order of the policy versions
that documents name, a decision's version, root keys of two people. Neither looks into ciphertexts,
or at limits, unknown fields, TOML outside the subset, what ssh-keygen does not check, and which
heads a clone saw."""
import base64, functools, hashlib, json, re, subprocess, sys, tempfile, tomllib, traceback
from datetime import datetime
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "format.md").read_text("utf-8")
ROLES = ["act", "requester", "member", "approver", "admin", "worker", "grader", "agent"]
HELD = "claim (claim |renew |stage |consume )*"
BACK = f"({HELD})?cancel retry |{HELD}(release|(fail|reject) retry) "
LIFE = f"create (edit )*enqueue ({BACK})*{HELD}deliver (publish )*"
TEXT, QUIET = {"title", "mandate", "criteria", "base"}, {"comment", "approve-patch", "adjudicate"}
FILES = ("100644", "100755", "120000")  # modes

class Doc(dict):
    __getattr__ = dict.__getitem__

def parse(data): return json.loads(json.dumps(tomllib.loads(data.decode())), object_hook=Doc)
def words(text): return re.findall("`([^`]+)`", text)
def sha(data): return hashlib.sha256(data).digest()
def digest(data): return "sha256:" + sha(data).hex()
def sized(data): return len(data).to_bytes(8, "big") + data
def wire(key): return sha(base64.b64decode(key.split()[1]))

def refused(kind, error, trace):  # shows the innermost line of this file
    here = [one for one in traceback.extract_tb(trace) if one.filename == __file__][-1]
    print(f"not accepted: line {here.lineno} does not hold: {here.line} {error}")

def decided(ok, what):
    if not ok:
        print("not decided here:", what)
        sys.exit(2)

def row(heading, first):  # the cells of one row of the page
    line = rf"(?s)\n#+ `?{heading}`?\n.*?\n\|([^|\n]*{re.escape(first)}[^|\n]*\|[^\n]*)\|\n"
    return [cell.strip() for cell in re.search(line, PAGE)[1].split("|")]

@functools.cache
def git(command, *oids):
    assert all(re.fullmatch("[0-9a-f]{40,64}", oid) for oid in oids)
    run = ["git", "--no-replace-objects", "-C", sys.argv[1], *command.split(), *oids]
    return subprocess.run(run, capture_output=True, check=True).stdout

def tree(oid, *modes):  # path, a letter for each byte -> the bytes of a file, or an object
    lines = git("ls-tree -z -r -t --full-tree", oid).decode("latin-1").split("\0")[:-1]
    rows = [re.split("[ \t]", line, maxsplit=3) for line in lines]
    return {path: git("cat-file blob", one) if kind == "blob" else one
            for mode, kind, one, path in rows if mode in modes}

def listing(oid):
    files = {path.encode("latin-1"): mode.encode() + sized(data)[:8] + sha(data)
             for mode in FILES for path, data in tree(oid, mode).items()}
    lines = [sized(path) + one for path, one in sorted(files.items())]
    return digest(b"hangar-listing-1\n" + b"".join(lines))

def commits(ref):  # what each holds, oldest first
    lines = git("rev-list --topo-order --reverse --parents", REFS[ref]).decode().splitlines()
    decided(all(line.count(" ") < 2 for line in lines), f"{ref} joins heads")
    heads = [line.split()[0] for line in lines]
    odd = [path for oid in heads for path in tree(oid, *FILES[1:], "160000") if "/" not in path]
    decided(not odd and all(tree(oid, *FILES) for oid in heads), f"a tree of {ref}")
    return [tree(oid, "100644", "040000") for oid in heads]

def signed(data, signature, namespace, key):
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "signers").write_text(f"signer {' '.join(key.split()[:2])}\n")
        Path(scratch, "signature").write_bytes(signature)
        run = f"ssh-keygen -Y verify -f signers -I signer -n {namespace} -s signature".split()
        return not subprocess.run(run, cwd=scratch, input=data, capture_output=True).returncode

def may(who, act):  # `create` made the task
    cells = row("Rights", act)
    asked = cells[1] and "owner" not in who and who.name == create.requester
    return bool(asked or cells[ROLES.index(who.role)])

def believe(files, name):
    data, (_, namespace, acts) = files[name + ".toml"], row("Signatures", f"`{name}.toml`")
    doc, own = parse(data), base64.b32encode(sha(data)).decode().lower().strip("=")
    act = acts.split("; where `kind` is `submitted`, ")[doc.get("kind") == "submitted"]
    policy = POLICY[doc.signer.policy.digest]
    who = policy.held[doc.signer.key]
    assert (doc.format, doc.repo, doc.get("task", own)) == (1, ID, TASK)
    assert (policy.version, who.name) == (doc.signer.policy.version, doc.signer.principal)
    assert signed(data, files[name + ".sig"], namespace.strip("`"), who.key)
    assert name == "event" or may(who, act)
    return Doc(doc, id=digest(data), name=name, beside=files, who=who)

def documents(ref, *names):  # by digest, oldest first
    here = [[(files, name) for name in names if name + ".toml" in files] for files in commits(ref)]
    assert all(here)
    found = [believe(*one) for some in here for one in some]
    decided(len({one.id for one in found}) == len(found), f"{ref} holds a document twice")
    return {one.id: one for one in found}

sys.excepthook, REFS, POLICY = refused, {}, {}
decided(len(sys.argv) == 4 and __debug__ and Path(sys.argv[1]).is_dir(), __doc__)
_, _, TASK, ID = sys.argv
for line in git("for-each-ref --format=%(refname)%09%(objectname)").decode().splitlines():
    REFS.update([line.removeprefix("refs/hangar/").split("\t")])
decided({"policy", f"tasks/{TASK}"} <= {*REFS}, "there is no policy, or no such task")
decided("refs/heads/hangar-state/policy" not in REFS, "its state lies on branches")
archive = tree(REFS.get(f"archive/{TASK[0]}", REFS["policy"]), "100644")
decided(f"{TASK[1:3]}/{TASK}" not in archive, "the archive holds it")

granted, old = set(), Doc(id=None, version=0, root=None, rules=Doc(version=0))
for files in commits("policy"):  # every version is authorised by the one before it
    rules, new = parse(files["root.toml"]), parse(files["members.toml"])
    decided(new.get("previous") == old.id and "rival" not in new, "rival policies")
    people = new.person + new.get("machine", [])
    keys = [Doc(one, key=key) for one in people for key in one.get("keys") or [one.public]]
    held = {"SHA256:" + base64.b64encode(wire(one.key)).decode().strip("="): one for one in keys}
    rights = {(id, one.name, one.get("owner"), role) for id, one in held.items()
              for role in [one.role, *ROLES[2:ROLES.index(one.role)] * ("owner" not in one)]}
    roots = [Doc(name=one.principal, key=one.public) for one in rules.key]
    signers = Doc(root=roots, members=roots + [one for one in keys if one.role == "admin"])
    new.update(id=digest(files["members.toml"]), rules=rules, signers=signers, held=held)
    by, other = old if POLICY else new, new.root != old.root
    for name, one in [("members", by)] + other * [("root", by), ("root", new)]:
        beside = [files[path] for path in files if path.startswith(f"{name}.sigs/")]
        good = {who.name for who in one.signers[name] for some in beside
                if signed(files[name + ".toml"], some, f"hangar-{name}", who.key)}
        assert len(good) >= max(1, one.rules.thresholds[name])
    assert (new.version, new.root) == (old.version + 1, digest(files["root.toml"]))
    assert not other or (rules.version, rules.get("previous")) == (old.rules.version + 1, old.root)
    assert len({one.name for one in people}) == len(people) and len(held) == len(keys)
    decided(granted <= rights and "reduced" not in new, "keys that lost rights")
    granted, old, POLICY[new.id] = rights, new, new
assert [*POLICY.values()][0].root == ID
common = git("rev-parse --path-format=absolute --git-common-dir").decode().strip()
if Path(common, "hangar/trust.toml").exists():  # the newest version that this clone has seen
    pin = parse(Path(common, "hangar/trust.toml").read_bytes())
    assert pin.repo == ID and pin.policy.version == POLICY[pin.policy.digest].version

by_id = documents(f"tasks/{TASK}", "event")
events, changes = [*by_id.values()], [(one, part) for one in by_id.values() for part in one.change]
assert all({*one.parents} <= {*by_id} for one in events)
decided([one.parents for one in events] == [[], *([id] for id in by_id)][:-1], "events in no line")
create, holder, text, life = changes[0][1], None, Doc(mandate=""), ""
assert create.kind == "create" and "task" not in events[0] and create.flow == "test-first"
for event, one in changes:
    _, act, _, extra, _ = row("Effect of a change", f"`{one.kind}`")
    holder = event.who.key if one.kind == "claim" else holder
    fits = "the holder signs" not in extra or holder == event.who.key
    decided(fits and may(event.who, act), f"{one.kind} without the right")
    text.update(one if one.kind in ("create", "edit") else {})
    life += f"{one.kind} " * (one.kind not in QUIET and (one.kind != "edit" or bool(TEXT & {*one})))
at = [one.kind for _, one in changes].index("deliver")
fits = re.fullmatch(LIFE, life) and text.get("criteria") and len(events[0].change) == 1
decided(fits, f"a change without effect in: {life}")
delivering, delivery = changes[at]
uses = {one.manifest: (event, one.approvals) for event, one in changes if one.kind == "consume"}
aside, aside_then = ({id for _, one in some for id in one.get("set_aside", one.get("falls", []))}
                     for some in (changes, changes[:at]))

sealed, runs = documents(f"sealed/{TASK}", "manifest", "reseal"), documents(f"runs/{TASK}", "run")
versions = {id: one for id, one in sealed.items() if one.name == "manifest"}
grades = documents(f"grades/{TASK}", "grade")
seal, run, grade = versions[delivery.manifest], runs[delivery.run], grades[delivery.grade]
result, plan = run.result, seal.plan
for one in sealed.values():
    assert digest(one.beside["sealed.age"]) == one.ciphertext
    assert one.get("manifest", one.id) in versions
for one in versions.values():
    assert one.version == 1 + (versions[one.previous].version if "previous" in one else 0)
    assert one is seal or one.id in aside or one.version < seal.version
parts = [text.title, text.mandate, *(part for one in text.criteria for part in (one.id, one.text))]
assert seal.text == digest(b"hangar-task-text-1\n" + b"".join(sized(p.encode()) for p in parts))
base = {one.alias: one.status for one in seal.base_check}
fails = [alias for alias, status in base.items() if status in ("fails", "unconfirmed")]
assert fails and len(base) == len(seal.base_check) and len(fails) == seal.counts.fails
assert seal.counts.uncovered == len([one for one in seal.coverage if not one.fails])

(using, ids), approvals = uses[seal.id], {}
for ref in [ref for ref in REFS if ref.startswith(f"approvals/{TASK}-")]:
    approvals |= (decisions := documents(ref, "approval"))
    for one in decisions.values():
        assert ref == f"approvals/{TASK}-{one.manifest[7:]}-{wire(one.who.key).hex()}"
    assert one.action == "approve" or one.manifest != seal.id or one.id in aside  # the last one
used = [approvals[id] for id in ids]
for one in used:
    assert (one.action, one.manifest) == ("approve", seal.id)
    assert datetime.fromisoformat(using.signer.at) <= datetime.fromisoformat(one.not_after)
assert grade.approvals
decided({*grade.approvals} <= {*ids}, "a grade that rests on other approvals")

changed = git("diff-tree -r -z --name-only", result.base, result.tree).lower().split(b"\0")[:-1]
_, _, best, protected = row("Test ids", f"`{plan.framework}`")
closed = words(re.search("<!-- guarded.*?<!-- /", PAGE, re.S)[0] + protected) + plan.protected
begins = [re.match(r"[^*?{\[\\]*", one.strip("*/"))[0].encode().lower() for one in closed]
decided(not any(one in path for one in begins for path in changed), "a guarded or protected path")
real = {"base": text.base, "base_listing": listing(result.base), "tree": run.beside["result"],
        "listing": listing(result.tree), "changed": len(changed)}
assert real.items() <= result.items() and not result.get("guarded")
assert tree(result.base, "160000") == tree(result.tree, "160000")
assert (seal.base, seal.base_listing) == (result.base, result.base_listing)
assert (run.role, run.outcome, run.manifest) == ("implementer", "completed", seal.id)
assert run.kind == "agent" or run.secrecy in ("none", "policy")
assert run.get("harness", {}).get("name") != seal.writer.get("harness", "")

rows = {one.alias: one.outcome for one in grade.test}
others = [one for one in grade.test if one.alias not in base]
held = [one for one in others if (one.outcome, one.get("class")) == ("failed", "assertion")]
skips = [alias for alias in base if rows[alias] == "skipped" == base[alias]]
real = {"manifest": seal.id, "run": run.id, "accepted": True, "void": False, "reasons": [],
        "after_code": seal.after_code, "secrecy": run.secrecy, "trust": grade.sandbox.trust,
        "canary_found": False, "protected_touched": [], "counts": {
            "expected": len(base), "passed": len(base) - len(skips), "failed": 0, "missing": 0,
            "skipped": len(skips), "sentinels": len(others), "sentinels_held": len(held)}}
decided("run" in grade, "a grade of no run")
assert plan.get("reprepare") or not grade.get("reprepared")
assert real.items() <= grade.items() and grade.subject.items() <= result.items()
assert len(rows) == len(grade.test) and len(others) == seal.counts.sentinels
assert all(rows[alias] == "passed" or alias in skips for alias in base)
assert all(one.alias[0] == "s" and one.outcome != "passed" for one in others)
scales = {name: words(row("Grade", f"`{name}`")[2]) for name in ("trust", "verdict")}
for level in scales["trust"][1 : scales["trust"].index(grade.trust) + 1]:
    probes = words(row("Probes", f"`{level}`")[1])
    assert {grade.sandbox.probes.get(probe) for probe in probes} == {"held"}
assert scales["verdict"].index(grade.verdict) <= scales["verdict"].index(best.strip("`"))
assert held or grade.verdict != "crosschecked"
for one in grades.values():
    same = [(some.manifest, some.subject.base, some.subject.listing) for some in (one, grade)]
    assert one.accepted or one.void or one.id in aside or same[0] != same[1]

head, message = git("cat-file commit", delivery.commit).decode(errors="replace").split("\n\n", 1)
whole = [f"tree {result.tree}", f"parent {result.base}"]
assert re.findall("(?m)^tree .*|^parent .*", head) == whole
trailers = re.findall(r"(?m)^Hangar-(\w+):(.*)", message.rstrip().split("\n\n")[-1])
levels = "".join(f"; {name}={grade[name]}" for name in ("trust", "verdict", "secrecy"))
wanted = {"Task": TASK, "Run": run.id, "Manifest": seal.id, "Grade": grade.id,
          "Acceptance": "passed" + levels}
assert wanted.items() <= {name: value.strip() for name, value in trailers[::-1]}.items()
files = tree(result.tree, *FILES)
clear = [message.encode(), *(path.encode("latin-1") for path in files), *files.values()]
for one in runs.values():
    for part in [part for part in one.get("attachment", []) if part.name in one.beside]:
        assert digest(one.beside[part.name]) == part.sha256
        clear += [one.beside[part.name]] * (not part.get("sealed") and one.id not in aside_then)
marks = {digest(mark) for mark in re.findall(rb"hgc1_[a-z2-7]{32}", b"\n".join(clear))}
assert not marks & {one.canary for one in versions.values()}

assert not {seal.id, run.id, grade.id, *ids} & aside_then
for policy in (delivering.signer.policy.digest, [*POLICY][-1]):  # then and now
    asks = POLICY[policy].rules.acceptance
    assert len({one.who.name for one in used}) >= max(1, asks.approvers)
    for name, scale in scales.items():
        assert scale.index(grade[name]) >= max(map(scale.index, (asks[name], plan[name])))
    assert plan.framework in (asks.adapters or [plan.framework])
    assert asks.after_code >= grade.after_code and asks.swap_exposed >= grade.sandbox.swap_exposed
print("accepted")
