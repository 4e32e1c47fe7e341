"""Decisions of people: the last word of each, and whether those that were used may be used.

Comments that stand alone are headings of format.md, below "Checking a task"."""
import base64
from datetime import datetime
from documents import BROKEN, R, believe, check, commits, digest, documents, file, need

# Approval
def own_ref(task, one):  # the ref that a decision's content names
    key = base64.b64decode(one.doc["signer"]["key"].removeprefix("SHA256:") + "=").hex()
    return f"approvals/{task.id}-{one.doc['manifest'].removeprefix('sha256:')}-{key}"

def decisions(task):  # the last word of each key about each manifest
    last, prefix = [], f"{R.prefix}approvals/{task.id}-"
    for ref in (ref.removeprefix(R.prefix) for ref in R.refs if ref.startswith(prefix)):
        found = documents(ref, "approval", task.id, task.requester)
        fits = [one for one in found if own_ref(task, one) == ref]
        check(fits == found, ref, "a decision lies under another's name")
        counting = [one for one in fits if one.counts]
        back = {id for one in counting for id in one.doc.get("takes_back", [])}
        left = sorted((one for one in counting if one.id not in back),
                      key=lambda one: (one.doc["action"] == "approve", one.id))
        last += [one for one in fits if not one.counts] + left[:1]
    return last

def attached(task, event, id):  # the approval with this digest beside an event
    data = file(event.files, id.removeprefix("sha256:")) or b""
    need(digest(data) == id, "it was used, and is not attached")
    beside = [file(event.files, name) or b"" for name in event.files if len(name) == 64]
    for signature in (one for one in beside if one.startswith(b"-----BEGIN SSH SIGNATURE-----")):
        try:
            return believe(data, signature, "approval", task.id, task.requester)
        except BROKEN:
            continue
    raise ValueError("it was used, and the copy beside the event is not believed")

def approvals(task, then, seals, seal, grade):  # gives those that were used and count
    last, used = decisions(task), []
    for one in last:
        about = seals.get(one.doc["manifest"])
        check(about and about.doc["version"] == one.doc["version"], one.place, "it is about no believed version")
        rejects = seal is about and one.doc["action"] == "reject" and one.counts and one.id not in task.aside
        check(not seal or not rejects, one.place, "it rejects the delivered manifest")
    uses = [(event, use) for event, use in task.uses if seal and use["manifest"] == seal.id]
    uses = [(event, use) for event, use in uses if event.rank < task.delivered.rank]
    check(uses or not seal, "approval", "the history used no approval of the delivered manifest")
    if not uses:
        return []
    def counts(one, at):
        at, end = datetime.fromisoformat(at), datetime.fromisoformat(one.doc["not_after"])
        return (one.doc["action"] == "approve" and one.doc["manifest"] == seal.id and one.version >= seal.version
                and one.id not in task.aside_then and at <= end)
    event, use = uses[-1]
    for id in use["approvals"]:
        try:
            one = attached(task, event, id)
            place = {digest(file(files, "approval.toml") or b"") for _, files in commits(own_ref(task, one))}
            check(id in place, one.place, "it was used, and is no longer on its own ref")
            need(counts(one, event.at), "it was used, and does not count")
            used.append(one)
        except BROKEN as doubt:
            check(False, f"approval {id[7:19]}", doubt)
    people, needed = {one.person for one in used}, max(1, then.root["acceptance"]["approvers"])
    check(len(people) >= needed, "approval", f"{len(people)} of {needed} people approved the delivered manifest")
    named = set(grade.doc["approvals"]) if grade else set(use["approvals"])
    more = {one.id for one in last if grade and one.id in named - set(use["approvals"]) and counts(one, grade.at)}
    check(named and named <= set(use["approvals"]) | more, "grade", "it names no approval, or one that does not count")
    return used
