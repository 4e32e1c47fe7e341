"""Reading: the tables of format.md, Git's objects, signatures, and which documents are believed.

Comments that stand alone are headings of format.md. `R` holds what was opened, and the faults so far."""
import base64, functools, hashlib, os, re, subprocess, tempfile, tomllib
from pathlib import Path
from types import SimpleNamespace

PAGE = (Path(__file__).resolve().parents[1] / "format.md").read_text("utf-8")
BROKEN = (ValueError, LookupError, TypeError, AttributeError, RecursionError)  # where malformed bytes lead

class Record(SimpleNamespace):
    __eq__, __hash__ = object.__eq__, object.__hash__

R = Record(faults=[])

def check(ok, place, what):
    if not ok and f"{place}: {what}" not in R.faults:
        R.faults.append(f"{place}: {what}")

def need(ok, what):
    if not ok:
        raise ValueError(what)

@functools.cache
def table(heading):  # of the page: first cell -> the other cells by column
    text = re.split(r"(?m)^#+ ", re.split(rf"(?m)^#+ `?{heading}`?\n", PAGE)[1])[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    found, head = {}, []
    for above, row in zip(rows, rows[1:]):
        if row[0] == "---":
            head = above
        else:
            found |= {key: dict(zip(head[1:], row[1:])) for key in words(row[0]) or row[:1]}
    return found

def words(text):  # what stands in backticks
    return re.findall(r"`([^`]+)`", text)

# Refs, Commits
ENV = os.environ | {"GIT_GRAFT_FILE": os.devnull, "GIT_NO_REPLACE_OBJECTS": "1"}  # each commit as it is

def git(*args):
    out = subprocess.run(["git", "-C", R.path, *args], capture_output=True, env=ENV)
    need(not out.returncode, out.stderr.decode(errors="replace").strip() or f"git {args[0]} fails")
    return out.stdout

def named(oid):  # never an option of git
    need(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", oid), f"{oid!r} names no object")
    return oid

def lacks(oid):  # whether the repository has no such object
    try:
        return bool(git("cat-file", "-e", named(oid)))
    except ValueError:
        return bool(named(oid))

@functools.cache
def blob(oid):
    return git("cat-file", "blob", named(oid))

def commit(oid):  # its tree and parents, and its message
    head, message = git("cat-file", "commit", named(oid)).decode(errors="replace").split("\n\n", 1)
    return [line.split() for line in head.splitlines() if line.startswith(("tree ", "parent "))], message

@functools.cache
def tree(oid, *how):  # name -> mode, object
    rows = (row.split(b"\t", 1) for row in git("ls-tree", "-z", *how, named(oid)).split(b"\0") if row)
    return {name.decode(errors="surrogateescape"): tuple(meta.decode().split()[::2]) for meta, name in rows}

def commits(ref):  # with their files, parents first, without those that hold nothing
    tip = R.refs.get(R.prefix + ref)
    found = git("rev-list", "--topo-order", "--reverse", tip + "^{commit}").decode().split() if tip else []
    return [(one, tree(one)) for one in found if tree(one)]

# Archive
def take_out(task):  # the refs that are gone and that the archive names; whether the task's own is one
    tip = R.refs.get(f"{R.prefix}archive/{task[0]}")
    data = file(tree(tip, "-r"), f"{task[1:3]}/{task}") if tip else None
    if data is None:
        return False
    lines = [line.split(" ", 1) for line in data.decode().splitlines()]
    names = [name for _, name in lines]
    of_task = re.compile(rf"(tasks|sealed|runs|grades)/{task}|approvals/{task}-.*")
    need(data.decode() == "".join(f"{named(at)} {name}\n" for at, name in lines) and all(map(of_task.fullmatch, names))
         and names == sorted(set(names)) and f"tasks/{task}" in names, "its file in the archive is malformed")
    gone = [(at, R.prefix + name) for at, name in lines if R.prefix + name not in R.refs]
    R.refs |= {name: at for at, name in gone}
    return any(name == f"{R.prefix}tasks/{task}" for _, name in gone)

def archived(ref):  # path -> the task that lies there; None where none may
    tasks = {path: path.partition("/")[2] for path in tree(R.refs[ref], "-r")}
    fits = lambda path, task: re.fullmatch(r"[a-z2-7]{52}", task) and f"{ref[-1]}{path[:3]}" == f"{task[:3]}/"
    return {path: task if fits(path, task) else None for path, task in tasks.items()}

def file(files, name):  # the bytes of a plain file beside others
    return blob(files[name][1]) if files.get(name, " ")[0] == "100644" else None

def folder(files, name):  # the files in a folder beside others
    return [blob(oid) for _, oid in tree(files[name][1]).values()] if name in files else []

# Digests, Listing, Patch id
def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()

def sized(data):
    return len(data).to_bytes(8, "big") + data

@functools.cache
def listing(oid):  # path -> mode, length and SHA-256
    entry = lambda mode, data: mode.encode() + sized(data)[:8] + hashlib.sha256(data).digest()
    return {path.encode(errors="surrogateescape"): entry(mode, blob(one))
            for path, (mode, one) in tree(oid, "-r").items() if mode != "160000"}

def listing_digest(oid):
    files = listing(oid)
    return digest(b"hangar-listing-1\n" + b"".join(sized(path) + files[path] for path in sorted(files)))

def patch(old, new):  # its id, and the changed paths
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    sides = lambda path: b"".join(b"\1" + side[path] if path in side else b"\0" for side in (old, new))
    return digest(b"hangar-patch-1\n" + b"".join(sized(path) + sides(path) for path in paths)), paths

# Signatures, Rights
def fingerprint(key):
    return "SHA256:" + base64.b64encode(hashlib.sha256(base64.b64decode(key.split()[1])).digest()).decode().strip("=")

def signed(data, signature, name, who, key):  # by this key, for this kind of document
    need(re.fullmatch(r"[a-z0-9][a-z0-9._@-]{0,63}", who), f"{who!r} is no principal")
    with tempfile.TemporaryDirectory() as scratch:
        (signers := Path(scratch, "signers")).write_text(f"{who} {' '.join(key.split()[:2])}\n")
        (beside := Path(scratch, "signature")).write_bytes(signature)
        namespace = words(table("Signatures")[name + ".toml"]["namespace"])[0]
        args = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", who, "-n", namespace, "-s", beside]
        return not subprocess.run(args, input=data, capture_output=True).returncode

# Rights, Checking a document
def may(who, act, requester):
    row = table("Rights")[act]
    return bool(row[who["role"]] or ("owner" not in who and who["name"] == requester and row["requester"]))

def believe(data, signature, name, task, requester):
    doc = tomllib.loads(data.decode())
    signer = doc["signer"]
    version = R.versions.get((signer["policy"]["version"], signer["policy"]["digest"]))
    need(version, "it names a policy version that is not in the chain")
    who, key = version.keys.get(signer["key"], ({"name": None}, ""))
    need(who["name"] == signer["principal"], f"its policy version does not give {signer['principal']} this key")
    need(signed(data, signature, name, who["name"], key), "its signature is not good")
    need(doc["format"] == 1 and doc["repo"] == R.id, "it belongs to another repository")
    need(task == (doc.get("task") or base64.b32encode(hashlib.sha256(data).digest()).decode().lower().strip("=")),
         "it belongs to another task")
    acts = table("Signatures")[name + ".toml"]["its signer needs the [right](#rights) to"]
    act = acts.split("; where `kind` is `submitted`, ")[-1 if doc.get("kind") == "submitted" else 0]
    need(name == "event" or may(who, act, requester), f"{who['name']} has no right to {act}")
    entry, rivals = R.newest.reduced.get(signer["key"], {"since": 0}), R.newest.members.get("rival", [])
    if version in R.chain:
        counts = version.id[0] >= entry["since"] or digest(data) in R.lists[entry["accepted"]]
    else:  # the nearest entry lists what counts all the same
        lists = {one["digest"]: R.lists[one["accepted"]] for one in rivals}
        near = (lists[one.id[1]] for one in reversed(version.path) if one.id[1] in lists)
        counts = digest(data) in next(near, ())
    return Record(doc=doc, id=digest(data), place=f"{name} {digest(data)[7:19]}", at=signer["at"], act=act,
                  who=who, person=who.get("owner", who["name"]), policy=version, version=version.id[0],
                  counts=counts, listed=counts and version.id[0] < entry["since"])

# Commits
def right(one, name, entry):  # whether the document, or its own name, names this file beside it
    if entry[0] != "100644":
        return entry[1] == one.doc.get("result", {}).get("tree")
    named = {one.doc.get("ciphertext"), "sha256:" + name, *(row["sha256"] for row in one.doc.get("attachment", []))}
    return digest(blob(entry[1])) in named

def documents(ref, name, task, requester=None):  # the believed ones; a fault for each of the others
    found, other = [], {"manifest": "reseal.toml", "reseal": "manifest.toml"}.get(name)
    for oid, files in commits(ref):
        if name + ".toml" not in files:
            check(other in files, f"commit {oid[:12]}", f"it holds no {name}.toml")
            continue
        try:
            one = believe(file(files, name + ".toml"), file(files, name + ".sig") or b"", name, task, requester)
            if copies := [old for old in found if old.id == one.id]:
                new = {name: entry for name, entry in files.items() if right(one, name, entry)}
                copies[0].files = new | {name: entry for name, entry in copies[0].files.items()
                                         if name not in new or right(one, name, entry)}
                continue
            one.files = files
            found.append(one)
            keeps_place = one.counts or one.policy in R.chain or (name == "event" and "task" in one.doc)
            check(keeps_place, one.place, "it names a policy version that does not stand")
        except BROKEN as doubt:
            check(False, f"{name} in commit {oid[:12]}", doubt)
    return found
