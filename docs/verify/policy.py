"""The policy: every version is authorised by the one before it, and it is the one that was pinned.

Comments that stand alone are headings of format.md."""
import tomllib
from pathlib import Path
from documents import R, Record, check, commits, digest, file, fingerprint, folder, git, need, signed, tree

# Policy
def root_keys(root):
    return [(one["principal"], one["public"]) for one in root["key"]]

def may_sign_members(version):
    admins = [one for one in version.members["person"] if one["role"] == "admin"]
    return root_keys(version.root) + [(one["name"], key) for one in admins for key in one["keys"]]

def lost_rights(old, new):  # the holder of a key before and now
    rank = ["member", "approver", "admin"].index
    if not new or "owner" in old or "owner" in new:
        return not new or any(old.get(field) != new.get(field) for field in ("name", "role", "owner"))
    return old["name"] != new["name"] or rank(new["role"]) < rank(old["role"])

def holders(place, root, members):  # key -> holder and key text: each key has one holder, each name too
    people = members["person"] + members.get("machine", [])
    pairs = [(one, key) for one in people for key in one.get("keys", [one.get("public")])]
    keys = {fingerprint(key): (one, key) for one, key in pairs}
    need(len({one["name"] for one in people}) == len(people), f"{place}: two of one name")
    need(len(keys) == len(pairs), f"{place}: a key of two")
    for who, key in root_keys(root):
        one = keys.get(fingerprint(key), [{"name": who}])[0]
        same = {other for other, text in root_keys(root) if fingerprint(text) == fingerprint(key)} | {one["name"]}
        need(same == {who} and "owner" not in one, f"{place}: a root key is somebody else's too")
    return keys

def reductions(new):  # Reduced
    old, lists = new.before, [*new.reduced.values(), *new.members.get("rival", [])]
    need(len(new.reduced) == len(new.members.get("reduced", [])), f"{new.place}: two entries of one key")
    need(old or not lists, f"{new.place}: nobody had rights before")
    for key, (holder, _) in old.keys.items() if old else ():
        said = new.reduced.get(key, {}).get("since") == new.id[0]
        lost = lost_rights(holder, new.keys.get(key, [None])[0])
        need(said or not lost, f"{new.place}: {key} loses rights without an entry")
    for key, entry in old.reduced.items() if old else ():
        now = new.reduced.get(key, {"since": -1})
        kept = now["since"] >= entry["since"] and now["how"] in (entry["how"], "compromised")
        need(kept, f"{new.place}: the entry of {key} went")
    for entry in lists:
        need(entry["accepted"] in R.lists, f"{new.place}: a list of documents that count is not there")
        need(entry.get("since", 0) <= new.id[0], f"{new.place}: an entry is of a later version")

# Rivals
def sets_aside(new):  # the versions that it is the first to set aside
    of = lambda version: [one["digest"] for one in version.members.get("rival", [])]
    names, known = set(of(new)), set(of(new.before)) if new.before else set()
    need(len(names) == len(of(new)) and known <= names, f"{new.place}: an entry of a rival went or stands twice")
    found = [one for one in R.versions.values() if one.id[1] in names - known and one not in new.path]
    need(len(found) == len(names - known), f"{new.place} sets aside what is no rival of it here")
    return found

def settles(own, other):  # one end another, each with what it rests on
    shared = sum(one is two for one, two in zip(own, other))
    own, other = own[shared:], other[shared:]
    said = max((at for at, by in enumerate(other) if set(by.aside) & set(own)), default=-1)
    named = max((at for at, one in enumerate(other) if any(one in by.aside for by in own)), default=-1)
    roots = lambda by: [one.root_digest for one in (by.before, *by.aside)]
    confirms = (by for by in own if by.aside and all(one.root_digest in roots(by) for one in other))
    return named >= max(said, 0) or said < 0 and any(confirms)

def chain():
    followed = {one.before for one in R.versions.values()}
    ends = [one.path for one in R.versions.values() if one not in followed]
    falls = lambda end: any(settles(other, end) and not settles(end, other) for other in ends if other is not end)
    left = [end for end in ends if not falls(end)] or ends
    need(len(left) == 1, f"{len(left)} rival versions, and nobody has said which stands")
    return left[0]

# Chain and thresholds
def read(data):
    root, members = (tomllib.loads(data[name].decode()) for name in ("root", "members"))
    place, before = f"policy version {members['version']}", members.get("previous")
    old = next((one for one in R.versions.values() if one.id[1] == before), None)
    new = Record(root=root, members=members, place=place, before=old, id=(members["version"], digest(data["members"])),
                 root_digest=digest(data["root"]), keys=holders(place, root, members),
                 reduced={one["key"]: one for one in members.get("reduced", [])})
    new.path = [*old.path, new] if old else [new]
    need(members["root"] == new.root_digest, f"{place} names another root.toml")
    here = (len(new.path), old.id[1]) if old else (1, None)
    need((members["version"], before) == here and (old or new.id == next(iter(R.versions), new.id)),
         f"{place} does not follow one that is here")
    return new

def authorise(new, data, files):
    old, root = new.before, new.root
    def enough(name, keys, threshold):
        signatures = folder(files, name + ".sigs")
        people = {who for who, key in keys if any(signed(data[name], one, name, who, key) for one in signatures)}
        need(len(people) >= max(1, threshold), f"{new.place}: {name}.toml lacks signatures")
    enough("members", may_sign_members(old or new), (old or new).root["thresholds"]["members"])
    for by in (one.root for one in (old, *new.aside) if new.aside):
        enough("members", root_keys(by), by["thresholds"]["root"])
    if not old or old.root_digest != new.root_digest:
        before = (old.root["version"] + 1, old.root_digest) if old else (1, None)
        need((root["version"], root.get("previous")) == before, f"{new.place}: root.toml does not follow")
        for by in [old.root, root] if old else [root]:
            enough("root", root_keys(by), by["thresholds"]["root"])

def policy():
    R.versions, R.lists = {}, {}
    for _, files in commits("policy"):
        data = {name: file(files, name + ".toml") for name in ("root", "members")}
        new = read(data)
        new.aside = sets_aside(new)
        authorise(new, data, files)
        for some in folder(files, "accepted"):
            if some == b"".join(line + b"\n" for line in sorted(set(some.splitlines()))):
                R.lists[digest(some)] = set(some.decode().splitlines())
        reductions(new)
        R.versions.setdefault(new.id, new)
    need(R.versions, "there is no policy")
    R.id = next(iter(R.versions.values())).root_digest
    R.chain = chain()
    R.newest = R.chain[-1]

# Digests: the repository id, and what pins it
def pins(told):
    seen = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir").decode().strip(), "hangar/trust.toml")
    if seen.exists():
        seen = tomllib.loads(seen.read_text())
        known = seen["repo"] == R.id and (seen["policy"]["version"], seen["policy"]["digest"]) in R.versions
        need(known, "this clone has seen another policy")
    places = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/heads/main",
              "refs/remotes/origin/master", "refs/heads/master")
    branch = next((R.refs[place] for place in places if place in R.refs), None)
    config = file(tree(branch), "hangar.toml") if branch else None
    try:
        named = tomllib.loads(config.decode()).get("trust", {}).get("repo") if config else None
    except ValueError:  # neither UTF-8 nor TOML: it names nothing
        named = None
    check(named in (None, R.id), "pin", "hangar.toml of the default branch names another policy")
    check(told in (None, R.id), "pin", f"the policy on the refs is {R.id}")
    if not named and not told:
        print(f"note: nothing here pins the policy; compare {R.id} with what an admin tells you")
