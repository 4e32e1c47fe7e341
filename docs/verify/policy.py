"""The policy: every version is authorised by the one before it, and it is the one that was pinned.

Comments that stand alone are headings of format.md."""
import tomllib
from pathlib import Path
from documents import R, Record, check, commits, digest, file, fingerprint, folder, git, need, signed, tree

# Policy, Chain and thresholds
def root_keys(root):
    return [(one["principal"], one["public"]) for one in root["key"]]

def may_sign_members(version):
    admins = [one for one in version.members["person"] if one["role"] == "admin"]
    return root_keys(version.root) + [(one["name"], key) for one in admins for key in one["keys"]]

def enough(place, name, data, signatures, keys, threshold):
    people = {who for who, key in keys if any(signed(data, one, name, who, key) for one in signatures)}
    need(len(people) >= max(1, threshold), f"{place}: {name}.toml lacks signatures")

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

def reductions(place, old, new, lists):  # Reduced
    need(old or not new.reduced, f"{place}: nobody had rights before")
    for key, (holder, _) in old.keys.items() if old else ():
        said = new.reduced.get(key, {}).get("since") == new.id[0]
        lost = lost_rights(holder, new.keys.get(key, [None])[0])
        need(said or not lost, f"{place}: {key} loses rights without an entry")
    for key, entry in old.reduced.items() if old else ():
        now = new.reduced.get(key, {"since": -1})
        kept = now["since"] >= entry["since"] and now["how"] in (entry["how"], "compromised")
        need(kept, f"{place}: the entry of {key} went")
    for key, entry in new.reduced.items():
        need(entry["since"] <= new.id[0] and entry["accepted"] in lists, f"{place}: the list of {key} is not there")

def policy():
    versions, lists, old = [], {}, None
    for _, files in commits("policy"):
        data = {name: file(files, name + ".toml") for name in ("root", "members")}
        root, members = (tomllib.loads(data[name].decode()) for name in ("root", "members"))
        place = f"policy version {members['version']}"
        new = Record(root=root, members=members, root_digest=digest(data["root"]), keys=holders(place, root, members),
                     id=(members["version"], digest(data["members"])),
                     reduced={one["key"]: one for one in members.get("reduced", [])})
        need(len(new.reduced) == len(members.get("reduced", [])), f"{place}: two entries of one key")
        need(members["root"] == new.root_digest, f"{place} names another root.toml")
        before = (old.id[0] + 1, old.id[1]) if old else (1, None)
        need((members["version"], members.get("previous")) == before, f"{place} does not follow the one before it")
        enough(place, "members", data["members"], folder(files, "members.sigs"), may_sign_members(old or new),
               (old or new).root["thresholds"]["members"])
        if not old or old.root_digest != new.root_digest:
            before = (old.root["version"] + 1, old.root_digest) if old else (1, None)
            need((root["version"], root.get("previous")) == before, f"{place}: root.toml does not follow")
            for by in [old.root, root] if old else [root]:
                enough(place, "root", data["root"], folder(files, "root.sigs"), root_keys(by), by["thresholds"]["root"])
        for data in folder(files, "accepted"):
            if data == b"".join(line + b"\n" for line in sorted(set(data.splitlines()))):
                lists[digest(data)] = set(data.decode().splitlines())
        reductions(place, old, new, lists)
        versions.append(old := new)
    need(versions, "there is no policy")
    R.versions, R.newest, R.lists, R.id = {one.id: one for one in versions}, old, lists, versions[0].root_digest

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
    named = tomllib.loads(config.decode()).get("trust", {}).get("repo") if config else None
    check(named in (None, R.id), "pin", "hangar.toml of the default branch names another policy")
    check(told in (None, R.id), "pin", f"the policy on the refs is {R.id}")
    if not named and not told:
        print(f"note: nothing here pins the policy; compare {R.id} with what an admin tells you")
