"""Is this delivered task of a repository that uses hangar acceptable? A stranger's answer in one
file, from format.md alone: its tables are read when this runs, git and ssh-keygen do the rest.

    python3 docs/verify/task.py REPOSITORY TASK ID

TASK is its whole id, ID the repository id that you were told. Exit status 0: accepted; 1: not, and
the rule that does not hold is shown; 2: not decided here, but by the long one, python3 docs/verify:
joined heads, concurrent events, rival policies, documents beside the evidence whose key lost rights
later, changes without effect, archives. Of what was not delivered, this one checks signatures, and
that it does not speak against the delivery. Neither looks into ciphertexts, or at limits, unknown
fields, TOML outside the subset, what ssh-keygen does not check, and which heads a clone saw."""
import base64, hashlib, json, re, subprocess, sys, tempfile, tomllib, traceback
from collections import Counter
from datetime import datetime
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "format.md").read_text("utf-8")
ROLES = ["act", "requester", "member", "approver", "admin", "worker", "grader", "agent"]
HELD = "claim (claim |renew |stage |consume )*"
BACK = f"({HELD})?cancel retry |{HELD}(release|(fail|reject) retry) "
LIFE = f"create (edit )*enqueue ({BACK})*{HELD}deliver (publish )*"
TEXT = {"title", "mandate", "criteria", "base"}
REFS, POLICY, LISTS = {}, [], {}  # refs without prefix; versions in order; documents that count

def refused(kind, error, trace):
    here = [one for one in traceback.extract_tb(trace) if one.filename == __file__][-1]
    print(f"not accepted: line {here.lineno} does not hold: {here.line} {error}")

def decided(ok, what):
    if not ok:
        print("not decided here:", what)
        sys.exit(2)

class Doc(dict):
    __getattr__ = dict.__getitem__

def parse(data):
    return json.loads(json.dumps(tomllib.loads(data.decode())), object_hook=Doc)

def words(text):
    return re.findall("`([^`]+)`", text)

def row(heading, first):  # the cells of one row of the page
    section = re.search(rf"(?ms)^#+ `?{heading}`?\n(.*?)^#", PAGE)[1]
    line = re.search(rf"(?m)^\|[^|]*{re.escape(first)}[^|]*\|.*", section)[0]
    return [cell.strip() for cell in line.strip("|").split("|")]

def git(command, *oids, after=()):
    assert all(re.fullmatch("[0-9a-f]{40,64}", oid) for oid in oids)
    run = ["git", "--no-replace-objects", "-C", sys.argv[1], *command.split(), *oids, *after]
    return subprocess.run(run, capture_output=True, check=True).stdout

def tree(oid):  # path -> mode, object; folders too
    out = git("ls-tree -z -r -t --full-tree", oid).decode(errors="surrogateescape")
    lines = (line.split("\t", 1) for line in out.split("\0")[:-1])
    return {path: meta.split()[::2] for meta, path in lines}

def blobs(oid):  # path -> mode, content
    files = {path: one for path, one in tree(oid).items() if one[0] not in ("040000", "160000")}
    return {path: (mode, git("cat-file blob", one)) for path, (mode, one) in files.items()}

def file(files, name):
    return git("cat-file blob", files[name][1]) if files.get(name, " ")[0] == "100644" else b""

def commits(ref):  # the files of each, oldest first
    command = "rev-list --topo-order --reverse --parents"
    lines = git(command, REFS[ref]).decode().splitlines() if ref in REFS else []
    decided(all(line.count(" ") < 2 for line in lines), f"{ref} joins heads")
    assert lines or ref not in REFS
    return [files for files in (tree(line.split()[0]) for line in lines) if files]

def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()

def sized(data):
    return len(data).to_bytes(8, "big") + data

def entry(mode, data):  # of a listing or a patch
    return mode.encode() + sized(data)[:8] + hashlib.sha256(data).digest()

def listing(oid):
    files = {path.encode(errors="surrogateescape"): one for path, one in blobs(oid).items()}
    lines = (sized(path) + entry(*one) for path, one in sorted(files.items()))
    return digest(b"hangar-listing-1\n" + b"".join(lines))

def changes(patterns=("**",), how="top,glob"):  # path -> modes and objects, old and new
    decided("{" not in "".join(patterns), f"one of the patterns {patterns}")
    means = [f":({how}){one.rstrip('/')}/**" for one in patterns] or [":(exclude)**"]
    means += [f":({how}){one}" for one in patterns if one[-1] != "/"]
    command = "diff-tree -r -z --no-renames --no-abbrev --ignore-submodules=none"
    raw = git(command, result.base, result.tree, after=["--", *means]).split(b"\0")
    return {path: meta.decode()[1:].split() for meta, path in zip(raw[::2], raw[1::2])}

def signed(data, signature, name, key):
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "signers").write_text(f"signer {' '.join(key.split()[:2])}\n")
        Path(scratch, "signature").write_bytes(signature)
        namespace = row("Signatures", f"`{name}.toml`")[1].strip("`")
        run = f"ssh-keygen -Y verify -f signers -I signer -n {namespace} -s signature".split()
        return not subprocess.run(run, cwd=scratch, input=data, capture_output=True).returncode

def holder(name, key, role="", owner=None):
    sha = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    id = "SHA256:" + base64.b64encode(sha).decode().strip("=")
    return Doc(name=name, key=key, role=role, owner=owner, id=id, hex=sha.hex())

def may(who, act):  # `create` made the task
    cells = row("Rights", act)
    asked = cells[1] and not who.owner and who.name == create.requester
    return bool(asked or cells[ROLES.index(who.role)])

def believe(files, name):
    data, act = file(files, name + ".toml"), row("Signatures", f"`{name}.toml`")[2]
    doc, own = parse(data), base64.b32encode(hashlib.sha256(data).digest()).decode()
    signer, task = doc.signer, doc.get("task", own.lower().strip("="))
    act = act.split("; where `kind` is `submitted`, ")[-1 if doc.get("kind") == "submitted" else 0]
    under = {one.id: one for one in POLICY}[signer.policy.digest]
    number, who, now = under.members.version, under.held[signer.key], newest.held.get(signer.key)
    lost = newest.lost.get(who.id, Doc(since=0))
    listed = number < lost.since and digest(data) in LISTS[lost.accepted]
    stands = number >= lost.since or listed
    assert (doc.format, doc.repo, task) == (1, sys.argv[3], sys.argv[2])
    assert (number, who.name) == (signer.policy.version, signer.principal)
    assert signed(data, file(files, name + ".sig"), name, who.key)
    assert name == "event" or may(who, act)
    holds = now and now.name == who.name and (name == "event" or may(now, act))
    doc.update(id=digest(data), name=name, beside=files, number=number, who=who, under=under)
    doc.update(stands=stands, listed=listed, still=listed or stands and holds)
    return doc

def documents(ref, *names):
    here = [(files, [name for name in names if name + ".toml" in files]) for files in commits(ref)]
    assert all(found for _, found in here)
    return [believe(files, name) for files, found in here for name in found]

# Refs
sys.excepthook = refused
decided(len(sys.argv) == 4 and __debug__, __doc__)
decided(Path(sys.argv[1]).is_dir(), f"{sys.argv[1]} is no folder")
TASK = sys.argv[2]
for line in git("for-each-ref --format=%(refname)%09%(objectname)").decode().splitlines():
    REFS.update([line.removeprefix("refs/hangar/").split("\t")])
decided("refs/heads/hangar-state/policy" not in REFS, "its state lies on branches")
decided("policy" in REFS and f"tasks/{TASK}" in REFS, "there is no policy, or no such task")
archive = tree(REFS[f"archive/{TASK[0]}"]) if f"archive/{TASK[0]}" in REFS else ()
decided(f"{TASK[1:3]}/{TASK}" not in archive, "the archive holds it")

# Policy: every version is authorised by the one before it
for files in commits("policy"):
    texts = {name: file(files, name + ".toml") for name in ("root", "members")}
    root, members = map(parse, texts.values())
    people = members.person + members.get("machine", [])
    held = [holder(one.name, key, one.role, one.get("owner"))
            for one in people for key in one.get("keys", [one.get("public")])]
    roots = [holder(one.principal, one.public) for one in root.key]
    new = Doc(root=root, members=members, id=digest(texts["members"]), roots=roots,
              held={one.id: one for one in held},
              lost={one.key: one for one in members.get("reduced", [])})
    none = Doc(id=None, root=Doc(version=0), members=Doc(version=0, root=None), held={}, lost={})
    old, by = (POLICY[-1], POLICY[-1]) if POLICY else (none, new)
    before, known = members.get("previous"), {one.id for one in POLICY}
    decided(before == old.id or not {before, new.id} & known, "rival policies")
    decided(not members.get("rival"), "a policy that sets rivals aside")
    assert (members.version, before) == (old.members.version + 1, old.id)
    assert members.root == digest(texts["root"])
    assert len({one.name for one in people}) == len(people) and len(new.held) == len(held)
    owners = {(one.id, one.name, one.owner) for one in held + roots}
    assert len({id for id, *_ in owners}) == len(owners)
    admins = [one for one in by.held.values() if one.role == "admin"]
    asked = [("members", by.roots + admins, by.root.thresholds.members)]
    if members.root != old.members.root:
        assert (root.version, root.get("previous")) == (old.root.version + 1, old.members.root)
        asked += [("root", one.roots, one.root.thresholds.root) for one in (by, new)]
    for name, signers, threshold in asked:
        beside = [file(files, path) for path in files if path.startswith(f"{name}.sigs/")]
        good = lambda one: any(signed(texts[name], some, name, one.key) for some in beside)
        assert len({one.name for one in signers if good(one)}) >= max(1, threshold)
    for id, was in old.held.items():  # who loses rights has an entry
        now = new.held.get(id, none)
        rises = not was.owner and ROLES.index(now.get("role", "act")) >= ROLES.index(was.role)
        same = (was.name, was.owner) == (now.get("name"), now.get("owner"))
        kept = same and (rises or now.role == was.role)
        assert kept or new.lost[id].since == members.version
    for id, was in old.lost.items():
        assert new.lost[id].since >= was.since and new.lost[id].how in (was.how, "compromised")
    for some in (file(files, path) for path in files if path.startswith("accepted/")):
        if some == b"".join(line + b"\n" for line in sorted({*some.splitlines()})):
            LISTS[digest(some)] = some.decode().splitlines()
    assert len(new.lost) == len(members.get("reduced", []))
    for one in new.lost.values():
        assert POLICY and one.accepted in LISTS and one.since <= members.version
    POLICY.append(new)
newest = POLICY[-1]
assert POLICY[0].members.root == sys.argv[3]
common = git("rev-parse --path-format=absolute --git-common-dir").decode().strip()
if (pin := Path(common, "hangar/trust.toml")).exists():  # the newest that this clone has seen
    pin = parse(pin.read_bytes())
    seen = (pin.repo, pin.policy.version, pin.policy.digest)
    assert seen in [(sys.argv[3], one.members.version, one.id) for one in POLICY]

# Events
events = documents(f"tasks/{TASK}", "event")
ids, numbers = [one.id for one in events], [one.number for one in events]
assert all({*one.parents} <= {*ids} for one in events) and numbers == sorted(numbers)
decided([one.parents for one in events] == [[], *([id] for id in ids[:-1])], "events in no line")
decided(len(events[0].change) == 1, "changes beside the creation")
done = [(event, one, one.kind) for event in events for one in event.change]
create, text, life, holds = done[0][1], Doc(mandate="", criteria=[]), "", None
assert create.kind == "create" and "task" not in events[0] and create.flow == "test-first"
for event, one, kind in done:
    _, act, _, extra, _ = row("Effect of a change", f"`{kind}`")
    holds = (event.who.id, one.lease) if kind == "claim" else holds
    fits = holds and holds == (event.who.id, one.get("lease", holds[1]))
    decided(fits or "the holder signs" not in extra, f"{kind} by another than the holder")
    decided(may(event.who, act), f"{kind} without the right")
    if kind in ("create", "edit"):
        text.update(one)
    if kind in ("comment", "approve-patch", "adjudicate") or kind == "edit" and not TEXT & {*one}:
        continue  # the task stays as it is
    life += kind + " "
assert "deliver " in life
decided(re.fullmatch(LIFE, life) and text.criteria, f"a change without effect in: {life}")
before = done[: [kind for *_, kind in done].index("deliver")]
delivering, delivery, _ = done[len(before)]
uses = {one.manifest: (event, one.approvals) for event, one, kind in before if kind == "consume"}
patches = [one.patch for _, one, kind in before if kind == "approve-patch"]
lists = {"retry": "set_aside", "adjudicate": "falls"}
aside, aside_then = ({id for _, one, kind in some if kind in lists for id in one[lists[kind]]}
                     for some in (done, before))

# Versions
sealed = documents(f"sealed/{TASK}", "manifest", "reseal")
runs, grades = documents(f"runs/{TASK}", "run"), documents(f"grades/{TASK}", "grade")
of_task = [ref for ref in REFS if ref.startswith(f"approvals/{TASK}-")]
decisions = [documents(ref, "approval") for ref in of_task]
known = {one.id: one for some in (sealed, runs, grades, *decisions) for one in some}
seal, run, grade = (known[delivery[kind]] for kind in ("manifest", "run", "grade"))
assert [one.name for one in (seal, run, grade)] == ["manifest", "run", "grade"]
result, plan = run.result, seal.plan
versions = {one.id: one for one in sealed if one.name == "manifest"}
for one in sealed:
    assert digest(file(one.beside, "sealed.age")) == one.ciphertext
    assert (one.manifest if one.name == "reseal" else one.id) in versions
for one in versions.values():
    assert one.version == 1 + (versions[one.previous].version if "previous" in one else 0)
    assert one is seal or one.id in aside or not one.stands or one.version < seal.version
parts = [part for one in text.criteria for part in (one.id, one.text)]
parts = [sized(part.encode()) for part in (text.title, text.mandate, *parts)]
assert seal.text == digest(b"hangar-task-text-1\n" + b"".join(parts))
base = {one.alias: one.status for one in seal.base_check}
fails = {alias for alias, status in base.items() if status in ("fails", "unconfirmed")}
count, uncovered = Counter(base.values()), [one for one in seal.coverage if not one.fails]
flaky = [one for one in seal.base_check if one.get("flaky")]
assert fails and len(base) == len(seal.base_check)
assert seal.counts.items() >= {
    "criteria": len(seal.coverage), "uncovered": len(uncovered), "tests": len(base),
    "fails": len(fails), "guards": count["guard"], "skipped": count["skipped"],
    "unconfirmed": count["unconfirmed"], "flaky": len(flaky)}.items()
for one in seal.coverage:
    mine = {alias for alias in base if alias.startswith(one.criterion + ".")}
    assert len(mine) <= one.tests and len(mine & fails) <= one.fails
    assert one.fails <= min(one.tests, len(fails))
if seal.writer.kind == "agent":
    writer = known[seal.writer.run]
    assert (writer.name, writer.role) == ("run", "writer")
    assert writer.harness.name == seal.writer.harness

# Approval
for ref, some in zip(of_task, decisions):
    assert {f"approvals/{TASK}-{one.manifest[7:]}-{one.who.hex}" for one in some} == {ref}
    for last in [one for one in some if one.stands][-1:]:
        assert last.version == versions[last.manifest].version
        assert last.action == "approve" or last.manifest != seal.id or last.id in aside
using, ids = uses[seal.id]
used, at = [known[id] for id in ids], datetime.fromisoformat(using.signer.at)
copies = [file(using.beside, path) for path in using.beside if len(path) == 64]
for one in used:
    data = file(using.beside, one.id[7:])
    assert digest(data) == one.id
    assert any(signed(data, some, "approval", one.who.key) for some in copies)
    assert (one.name, one.action, one.manifest) == ("approval", "approve", seal.id)
    assert one.number >= seal.number
    assert at <= datetime.fromisoformat(one.not_after)
assert grade.approvals
decided({*grade.approvals} <= {*ids}, "a grade that rests on other approvals")

# Run
clear = []
for one in runs:
    assert one.kind != "agent" or one.get("manifest") in {None, *uses}
    for part in one.get("attachment", []):
        assert part.name not in one.beside or digest(file(one.beside, part.name)) == part.sha256
        silent = part.get("sealed") or one.id in aside_then
        clear.append(b"" if silent else file(one.beside, part.name))
assert (run.role, run.outcome, run.manifest) == ("implementer", "completed", seal.id)
assert run.kind == "agent" or run.secrecy in ("none", "policy")
assert run.get("harness", {}).get("name") != seal.writer.get("harness", "")
paths = sorted(changes().items())
side = lambda mode, oid: b"\1" + entry(mode, git("cat-file blob", oid)) if int(mode) else b"\0"
lines = [sized(path) + side(old, was) + side(new, now) for path, (old, new, was, now, _) in paths]
guards = words(re.search(r"<!-- guarded.*?-->(.*?)<!--", PAGE, re.S)[1])
guarded = sorted(changes([one.rstrip("/") for one in guards], "top,glob,icase"))
guarded = [path.decode(errors="replace") for path in guarded][:100]
real = {"tree": run.beside["result"][1], "listing": listing(result.tree), "changed": len(paths),
        "base": text.base, "base_listing": listing(text.base), "guarded": guarded,
        "patch": digest(b"hangar-patch-1\n" + b"".join(lines))}
assert {"guarded": [], **result} == {**result, **real}
assert (seal.base, seal.base_listing) == (result.base, result.base_listing)
assert not guarded or result.patch in patches

# Grade
assert (grade.manifest, grade.get("run", run.id)) == (seal.id, run.id)
assert grade.subject.items() <= result.items() and grade.after_code == seal.after_code
assert "run" not in grade or grade.secrecy == run.secrecy
assert grade.accepted and not (grade.void or grade.reasons)
assert not (grade.canary_found or grade.protected_touched)
rows = [one for one in grade.test if one.alias in base]
others = [one for one in grade.test if one.alias not in base]
assert sorted(one.alias for one in rows) == sorted(base)
assert all(one.alias[0] == "s" and one.outcome != "passed" for one in others)
skips = [one for one in rows if one.outcome == "skipped" == base[one.alias]]
assert {one.outcome for one in rows if one not in skips} <= {"passed"}
held = [one for one in others if (one.outcome, one.get("class")) == ("failed", "assertion")]
assert len(others) == seal.counts.sentinels and grade.counts == {
    "expected": len(base), "passed": len(base) - len(skips), "failed": 0, "skipped": len(skips),
    "missing": 0, "sentinels": len(others), "sentinels_held": len(held)}
scales = {name: words(row("Grade", f"`{name}`")[2]) for name in ("trust", "verdict")}
for level in scales["trust"][1 : scales["trust"].index(grade.trust) + 1]:
    probes = words(row("Probes", f"`{level}`")[1])
    assert {grade.sandbox.probes.get(probe) for probe in probes} == {"held"}
_, _, best, protected = row("Test ids", f"`{plan.framework}`")
assert grade.trust == grade.sandbox.trust
assert scales["verdict"].index(grade.verdict) <= scales["verdict"].index(best.strip("`"))
assert grade.verdict != "crosschecked" or held
for one in grades:
    same = [(some.manifest, some.subject.base, some.subject.listing) for some in (one, grade)]
    against = not (one.accepted or one.void) and same[0] == same[1]
    assert not against or one.id in aside or not one.stands
allowed = changes(plan.tests + plan.may_touch)
assert changes(plan.protected + words(protected)).keys() <= allowed.keys()

# Delivery, Canary
head, message = git("cat-file commit", delivery.commit).decode(errors="replace").split("\n\n", 1)
whole = [f"tree {result.tree}", f"parent {result.base}"]
assert re.findall("(?m)^(?:tree|parent) .*", head) == whole
levels = [f"; {name}={grade[name]}" for name in ("trust", "verdict", "secrecy")]
wanted = {"Task": TASK, "Acceptance": "passed" + "".join(levels), "Manifest": seal.id,
          "Run": run.id, "Grade": grade.id}
for name, value in wanted.items():
    found = re.search(f"(?m)^Hangar-{name}:(.*)$", message.rstrip().split("\n\n")[-1])
    assert found[1].strip() == value
files = blobs(result.tree)
clear += [message.encode(), *(path.encode(errors="surrogateescape") for path in files)]
clear += [data for _, data in files.values()]
marks = {digest(mark) for mark in re.findall(rb"hgc1_[a-z2-7]{32}", b"\n".join(clear))}
assert not marks & {one.canary for one in versions.values()}

# Then and now
evidence = [seal, run, grade]
assert all(one.number <= delivering.number for one in evidence) and seal.number <= grade.number
assert not {one.id for one in evidence + used} & aside_then
assert all(one.still for one in [delivering, *evidence])
deliver = row("Effect of a change", "`deliver`")[1]
assert delivering.listed or may(newest.held[delivering.who.id], deliver)
decided(all(one.stands for one in [*known.values(), *events] if one not in used),
        "something whose key lost rights later does not count")
for under, some in ((delivering.under, used), (newest, [one for one in used if one.still])):
    asks = under.root.acceptance
    assert len({one.who.owner or one.who.name for one in some}) >= max(1, asks.approvers)
    for name, scale in scales.items():
        least = max(scale.index(asks[name]), scale.index(plan[name]))
        assert scale.index(grade[name]) >= least
    assert not asks.adapters or plan.framework in asks.adapters
    assert asks.after_code or not grade.after_code
    assert asks.swap_exposed or not grade.sandbox.swap_exposed
print("accepted")
