"""A task from its events: their order, which changes have an effect, and what the history tells.

Comments that stand alone are headings of format.md."""
import copy, itertools, re
from contextlib import suppress
from documents import BROKEN, Record, check, digest, documents, may, need, sized, table, words

ENDED = ("done", "failed", "rejected", "deleted")

# Task text
def text_digest(task):
    parts = [task.title, task.mandate, *(part for criterion in shown(task.criteria) for part in criterion)]
    return digest(b"hangar-task-text-1\n" + b"".join(sized(part.encode()) for part in parts))

# Concurrent edits: a set is element -> the events that added it
def difference(kept, new):  # what a list means to whoever had this set: its order, what comes, what goes
    new = [(one["id"], one["text"]) if isinstance(one, dict) else one for one in new]
    return new, [one for one in new if one not in kept], {one: kept[one] for one in kept if one not in new}

def merged(kept, meaning, event):
    order, comes, goes = meaning
    left = {one: adds - goes.get(one, set()) for one, adds in kept.items()}
    left |= {one: left.get(one, set()) | {event.id} for one in comes}
    return {one: left[one] for one in [*order, *kept, *comes] if left.get(one)}

def shown(criteria):  # id, text: the later of two with one id gets the lowest that no other has
    ids, met = {id for id, _ in criteria}, set()
    for id, text in criteria:
        if id in met:
            id = next(one for one in map("c{}".format, itertools.count(1)) if one not in ids)
        ids, met = ids | {id}, met | {id}
        yield id, text

# Effect of a change: may this author, who has the task so? Gives what it means for sets
def judge(task, change, event):
    kind, row = change["kind"], table("Effect of a change")[change["kind"]]
    lease = (event.doc["signer"]["key"], change.get("lease"))
    need((kind == "create") == ("task" not in event.doc) == (not task.state), "the first event creates, and no other")
    need(may(event.who, row["right"], change["requester"] if kind == "create" else task.requester), "no right")
    need(event.counts or kind == "create", "its key lost rights")
    need(kind == "create" or task.state in words(row["while the task is"]), f"the task is {task.state}")
    if "the holder signs" in row["and only if"]:
        need(task.holder and lease in (task.holder, (task.holder[0], None)), "another holds the task")
    need(kind != "enqueue" or task.flow == "plain" or task.criteria, "no criterion")
    need(kind != "consume" or change["approvals"], "no approval")
    need(kind != "deliver" or task.flow == "plain" or {"grade", "manifest"} <= set(change), "no grade")
    if kind == "enqueue":
        return {"criteria": ([], list(task.criteria), {})}
    if kind == "adjudicate":  # pairs: what falls, and by what
        need(change["falls"] and change["stands"] not in change["falls"], "nothing falls, or what stands")
        new = [(one, change["stands"]) for one in change["falls"]]
        return {"fallen": ([], new, {(by, one): task.fallen.get((by, one), set()) for one, by in new})}
    if kind not in ("create", "edit"):
        return {}
    check_fields(task, change)
    return {field: difference(vars(task)[field], change[field]) for field in ("criteria", "tags") if field in change}

def check_fields(task, change):
    title, criteria = change.get("title", "x"), change.get("criteria", [])
    need(title.strip() and len(title.encode()) <= 200 and not re.search(r"[\x00-\x1f\x7f-\x9f]", title), "bad title")
    need(len({one["id"] for one in criteria}) == len(criteria) <= 100, "bad criteria")
    need(all(one["text"].strip() for one in criteria), "a criterion without text")
    need(1 <= change.get("priority", 1) <= 9, "bad priority")
    waits = task.flow == "test-first" and not task.holder and not task.consumed
    for field in change.keys() - {"kind"} if change["kind"] == "edit" else ():
        always, _, waiting = table("Effect of a change")[field]["while the task is"].partition("; and ")
        need(task.state in words(always + waiting * waits), f"{field} may not change now")

# Order of events
def applied(change):  # its weight, its power, and what it does where it is applied
    row = table("Order of events")[change["kind"]]
    weight, power = (float(one.replace("∞", "inf").replace("–", "0")) for one in row["weight, power"].split(", "))
    return weight, power, row["applied (6)"]

def enact(task, change, event, meaning):
    kind, before, does = change["kind"], task.state, applied(change)[2]
    lease = (event.doc["signer"]["key"], change.get("lease"))
    new = {field: merged(vars(task)[field], one, event) for field, one in meaning.items()}
    need(kind != "edit" or len(new.get("criteria", ())) <= 100, "too many criteria")
    given = {field: change[field] for field in table(kind) if field in change} if kind in ("create", "edit") else {}
    vars(task).update(given | new)
    states = words(table("Effect of a change")[kind]["while the task is"])
    need("where the state allows it here" not in does or before in states, f"the task is {before}")
    need("where the claim is in force here" not in does or lease == task.holder, "another holds the task")
    if end := re.match(r"`(\w+)`, ", does):
        need(before not in (ENDED if "if not ended" in does else ("done",)), f"the task is {before}")
        task.state, task.holder = end[1], None
    for states, after in re.findall(r"((?:`\w+`(?: or )?)+) becomes `(\w+)`", does):
        task.state = after if before in words(states) else before
    if kind == "create":
        task.state = "draft"
    elif kind in ("claim", "release"):
        task.holder = lease if kind == "claim" else None
    elif kind == "consume":
        task.uses += ((event, change),)
        task.consumed = change["manifest"] if change["manifest"] not in task.aside else task.consumed
    elif kind == "approve-patch":
        task.patches |= {change["patch"]}
    elif kind in ("retry", "adjudicate"):
        task.retried |= set(change.get("set_aside", ()))
        task.aside = task.retried | {one for one, _ in task.fallen}
        task.consumed = None if kind == "retry" and task.consumed in task.aside else task.consumed
    elif kind == "deliver":
        task.delivery, task.delivered = change, event

def blank(name):  # what is changed is replaced, so that a copy is another task
    return Record(id=name, state="", flow="", mandate="", criteria={}, tags={}, holder=None, consumed=None, uses=(),
                  aside=frozenset(), retried=frozenset(), fallen={}, patches=frozenset(), texts=frozenset(),
                  delivery={}, delivered=None)

def note_text(task):
    task.texts |= {(text_digest(task), task.base)} if task.state else set()

def judged(task, event):  # the task as its author left it
    task, event.judged = copy.copy(task), []
    for change in event.doc["change"]:
        with suppress(*BROKEN):  # without effect it stays in the history, and is no fault
            meaning = judge(task, change, event)
            enact(task, change, event, meaning)
            event.judged.append((change, meaning))
    note_text(task)
    return task

def play(name, events):  # what is not outweighed, applied
    concurrent = lambda one, two: one is not two and not (one.seen >> two.rank | two.seen >> one.rank) & 1
    moves = [(applied(change)[1], one) for one in events for change, _ in one.judged]
    floor = dict.fromkeys((one.rank for one in events), 0)
    for power, one in sorted(moves, key=lambda move: -move[0]):
        for other in events if 0 < power >= floor[one.rank] else ():
            if concurrent(one, other):
                floor[other.rank] = max(floor[other.rank], power)
    task = blank(name)
    for one in events:
        one.effects = 0
        for change, meaning in one.judged:
            with suppress(*BROKEN):
                need(applied(change)[0] >= floor[one.rank], "it is outweighed")
                enact(task, change, one, meaning)
                one.effects += 1
        note_text(task)
    return task

def in_order(events):  # `seen` has a bit for the rank of each event that it reaches
    depth, ready = {}, True
    while ready:
        ready = {id: max((depth[parent] + 1 for parent in one.doc["parents"]), default=0) for id, one in events.items()
                 if id not in depth and all(parent in depth for parent in one.doc["parents"])}
        depth |= ready
    check(len(depth) == len(events), "history", "an event follows one that is not here: the ref was rewritten")
    order = [events[id] for id in sorted(depth, key=lambda id: (depth[id], id))]
    for rank, one in enumerate(order):
        one.rank, one.seen = rank, 0
        for parent in one.doc["parents"]:
            one.seen |= events[parent].seen | 1 << events[parent].rank
    return order

# Checking a task: History
def history(name):
    events = {one.id: one for one in documents(f"tasks/{name}", "event", name)}
    order, left = in_order(events), {}
    for one in order:
        parents, seen = one.doc["parents"], (other for other in order if one.seen >> other.rank & 1)
        left[one.id] = judged(left[parents[0]] if len(parents) == 1 else play(name, list(seen)), one)
    task = play(name, order)
    for one in order:
        seen = max((events[parent].version for parent in one.doc["parents"]), default=0)
        check(not one.effects or seen <= one.version, one.place, "it names an older policy version than one before it")
    need(task.state, "history: there is no creation event that is believed")
    task.texts = task.texts.union(*(one.texts for one in left.values()))
    then = left[task.delivered.id] if task.delivered else task
    task.aside_then, task.patches_then = then.aside, then.patches
    return task
