"""A task from its events: their order, which changes have an effect, and what the history tells.

Comments that stand alone are headings of format.md."""
import re
from documents import BROKEN, Record, check, digest, documents, may, need, sized, table, words

ENDED = ("done", "failed", "rejected", "deleted")

# Task text
def text_digest(task):
    parts = [task.title, task.mandate, *(part for one in task.criteria for part in (one["id"], one["text"]))]
    return digest(b"hangar-task-text-1\n" + b"".join(sized(part.encode()) for part in parts))

# Effect of a change
def set_fields(task, change):
    title, criteria = change.get("title", "x"), change.get("criteria", [])
    need(title.strip() and len(title.encode()) <= 200 and not re.search(r"[\x00-\x1f\x7f-\x9f]", title), "bad title")
    need(len({one["id"] for one in criteria}) == len(criteria) <= 100, "bad criteria")
    need(all(one["text"].strip() for one in criteria), "a criterion without text")
    need(1 <= change.get("priority", 1) <= 9, "bad priority")
    waits = (task.state, task.flow) == ("working", "test-first") and not task.holder and not task.consumed
    text = ("draft", "working") if waits else ("draft",)
    may_change = {"priority": ("draft", "queued", "assigned", "working"), "tags": ("draft", "queued")}
    may_change["base"] = ("draft",)
    new = {field: value for field, value in change.items() if field != "kind"}
    for field in new if change["kind"] == "edit" else ():
        need(task.state in may_change.get(field, text), f"{field} may not change now")
    vars(task).update(new)

def apply(task, change, event):
    kind, before = change["kind"], task.state
    row = table("Effect of a change")[kind]
    lease = (event.doc["signer"]["key"], change.get("lease"))
    need((kind == "create") == ("task" not in event.doc) == (not before), "the first event creates, and no other")
    need(kind == "create" or before in words(row["while the task is"]), f"the task is {before}")
    need(may(event.who, row["right"], change["requester"] if kind == "create" else task.requester), "no right")
    need(event.counts or kind == "create", "its key lost rights")
    if "the holder signs" in row["and only if"]:
        need(task.holder and lease in (task.holder, (task.holder[0], None)), "another holds the task")
    if kind in ("create", "edit"):
        set_fields(task, change)
    need(kind != "enqueue" or task.flow == "plain" or task.criteria, "no criterion")
    need(kind != "consume" or change["approvals"], "no approval")
    need(kind != "deliver" or task.flow == "plain" or {"grade", "manifest"} <= set(change), "no grade")
    if after := re.search(r"it is `(\w+)`", row["then"]):
        task.state = after[1]
    if kind == "claim":
        task.state, task.holder = ("assigned" if before == "queued" else before), lease
    elif "the claim ends" in row["then"]:
        task.holder = None
    task.aside |= set(change["set_aside"] if kind == "retry" else change["falls"] if kind == "adjudicate" else ())
    if kind == "consume":
        task.consumed = change["manifest"]
        task.uses.append((event, change))
    elif kind == "retry" and task.consumed in task.aside:
        task.consumed = None
    elif kind == "approve-patch":
        task.patches.add(change["patch"])
    elif kind == "deliver":
        task.delivery, task.delivered = change, event
        task.aside_then, task.patches_then = set(task.aside), set(task.patches)
    task.texts.append((text_digest(task), task.base))

# Order of events
def in_order(events):
    depth, ready = {}, True
    while ready:
        ready = {id: max((depth[parent] + 1 for parent in one.doc["parents"]), default=0) for id, one in events.items()
                 if id not in depth and all(parent in depth for parent in one.doc["parents"])}
        depth |= ready
    check(len(depth) == len(events), "history", "an event follows one that is not here: the ref was rewritten")
    return [events[id] for id in sorted(depth, key=lambda id: (depth[id], id))]

# Checking a task: History
def history(name):
    events = {one.id: one for one in documents(f"tasks/{name}", "event", name)}
    task = Record(id=name, state="", flow="", mandate="", criteria=[], holder=None, consumed=None, aside=set(),
                  patches=set(), uses=[], texts=[], delivery={}, delivered=None, aside_then=set(), patches_then=set())
    for one in in_order(events):
        effects = 0
        for change in one.doc["change"]:
            try:
                apply(task, change, one)
                effects += 1
            except BROKEN:
                pass  # without effect it stays in the history, and is no fault
        seen = max((events[parent].version for parent in one.doc["parents"]), default=0)
        check(not effects or seen <= one.version, one.place, "it names an older policy version than an event before it")
    need(task.state, "history: there is no creation event that is believed")
    return task
