"""Checks a repository that uses hangar without hangar: git and ssh-keygen do. Written from format.md alone; the
tables of that page (rights, states, weights, patterns, probes, frameworks) are read when this runs.

    python3 docs/verify REPOSITORY TASK [ID]     is this delivered task acceptable? TASK is its whole id
    python3 docs/verify REPOSITORY --all [ID]    is there any fault? ID is the repository id that you were told

Prints what each task came to, and every fault. Exit status 0: none; 1: some, or nothing was accepted; 2: there is
no answer. Not looked at: what is inside ciphertexts, limits, unknown fields, TOML outside the subset, what ssh-keygen
does not check, which heads this clone saw. While rival policies are undecided no task is read.
Comments that stand alone are headings of format.md, below "Checking a task"."""
import re, sys
sys.dont_write_bytecode = True
from approvals import approvals
from claims import changed_paths, grade_claims, manifest_claims, matches, minimums, rules, run_claims
from documents import (BROKEN, R, archived, blob, check, commit, digest, documents, file, git, lacks, may, need, table,
                       take_out, tree, words)
from events import ENDED, history, text_digest
from policy import pins, policy

# Versions
def versions(task, seals, reseals, runs, seal, aside):
    for one in [*seals.values(), *reseals]:
        sealed = digest(file(one.files, "sealed.age") or b"")
        rules(one.place, (sealed == one.doc["ciphertext"], "sealed.age is not the ciphertext that it names"),
              (one.id in seals or one.doc["manifest"] in seals, "it is of no version of this task"))
    for one in seals.values():
        doc, writer, before = one.doc, one.doc["writer"], seals.get(one.doc.get("previous"))
        later = before and before.doc["version"] + 1 == doc["version"]
        follows = later if doc["version"] > 1 else "previous" not in doc
        rules(one.place, (follows, "it does not follow the version before it"),
              ((doc["text"], doc["base"]) in task.texts, "the task never had the text and base that it names"))
        if writer["kind"] == "agent":
            run = runs[writer["run"]].doc if writer["run"] in runs else {}
            fits = run.get("role") == "writer" and run.get("harness", {}).get("name") == writer["harness"]
            check(fits, one.place, "the writer's run that it names is not here, or another's")
        manifest_claims(one)
    if seal:
        rivals = [one for one in seals.values() if one.doc["version"] >= seal.doc["version"] and one.id not in aside]
        rules(seal.place, (rivals in ([], [seal]), "another version stands beside or after it"),
              (seal.id not in task.aside_then, "it was set aside before the delivery"),
              ((seal.doc["text"], seal.doc["base"]) == (text_digest(task), task.base), "its text or base is another"))

# Run
def delivered_run(task, one, seal):
    doc, result = one.doc, one.doc.get("result", {})
    writer = seal.doc["writer"].get("harness") if seal else None
    rules(one.place, ((doc["role"], doc["outcome"]) == ("implementer", "completed"), "it completed no implementation"),
          (doc.get("manifest") == task.delivery.get("manifest"), "it was not made under the delivered manifest"),
          (result.get("base") == task.base, "it has no result on the task's base"),
          (not result.get("guarded") or result["patch"] in task.patches_then, "no approver had signed the patch id"),
          (one.id not in task.aside_then, "it was set aside before the delivery"),
          (doc["kind"] == "agent" or doc["secrecy"] in ("none", "policy"), "it claims more secrecy than a person can"),
          (not writer or doc.get("harness", {}).get("name") != writer, "the writer of the tests wrote the patch"))

# Grade
def delivered_grade(task, then, one, seals, run, grades, aside):
    doc, subject, result = one.doc, one.doc["subject"], run.doc.get("result", {}) if run else {}
    plan = seals[doc["manifest"]].doc["plan"]
    of = lambda other, said: (other["manifest"], other["subject"]["listing"], other["subject"]["base"], said)
    says = lambda other: not other["void"] or "passed" in [t["outcome"] for t in other["test"] if t["alias"][0] == "s"]
    no = {g.id for g in grades.values() if says(g.doc) and of(g.doc, g.doc["accepted"]) == of(doc, not doc["accepted"])}
    rules(one.place, (doc["accepted"] and not doc["void"], "it does not accept"),
          (doc["manifest"] == task.delivery["manifest"], "it is about another manifest than the delivered one"),
          (all(result.get(name) == value for name, value in subject.items()), "it is about another result"),
          (doc.get("run", task.delivery["run"]) == task.delivery["run"], "it names another run than the delivered one"),
          (one.id not in task.aside_then, "it was set aside before the delivery"),
          (no <= {*aside}, "another grade says the opposite"),
          *minimums(then.root["acceptance"], seals[doc["manifest"]], one))
    protected = plan["protected"] + words(table("Test ids")[plan["framework"]]["protected in every plan"])
    for path in changed_paths(result)[1] if result else ():
        fine = not matches(protected, path) or matches(plan["tests"] + plan["may_touch"], path)
        check(fine, one.place, f"the delivered patch changes the protected path {path!r}")

# Delivery, Canary
def trailers(message):
    last = message.rstrip().split("\n\n")[-1].splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in reversed(last))}

def delivery(task, run, grade, canaries, runs):
    to, result = task.delivery, run.doc.get("result") if run else None
    if task.flow == "plain" and lacks(to["commit"]):
        return print(f"note: commit {to['commit'][:12]} is not here: its branch was never pushed")
    head, message = commit(to["commit"])
    wanted = {"Task": task.id, "Run": to["run"], "Grade": to.get("grade"), "Manifest": to.get("manifest")}
    if grade:
        wanted["Acceptance"] = "passed" + "".join(f"; {by}={grade.doc[by]}" for by in ("trust", "verdict", "secrecy"))
    place = f"commit {to['commit'][:12]}"
    whole = [["tree", result["tree"]], ["parent", result["base"]]] if result else head
    check(head == whole, place, "its tree is not the result of the delivered run, or its parent not the base")
    for name, value in wanted.items():
        fits = value is None or trailers(message).get(f"Hangar-{name}") == value
        check(fits, place, f"its trailer Hangar-{name} is not {value}")
    trees = {head[0][1], whole[0][1]}
    files = [(path, blob(oid)) for one in trees for path, (mode, oid) in tree(one, "-r").items() if mode != "160000"]
    clear = [(row["name"], file(one.files, row["name"]) or b"") for one in runs
             for row in one.doc.get("attachment", []) if not row.get("sealed")]
    for path, data in [(place, message.encode()), *files, *clear]:
        tokens = re.findall(rb"(?=(hgc1_[a-z2-7]{32}))", path.encode(errors="replace") + b"\n" + data)
        check(not canaries & set(map(digest, tokens)), "canary", f"{path!r} holds the mark of a hidden test")

# Now
def still(one, act, requester):
    who = R.newest.keys.get(one.doc["signer"]["key"], [{"name": None}])[0]
    return one.counts and (one.listed or who["name"] == one.doc["signer"]["principal"] and may(who, act, requester))

def newest(task, documents, used, seal, grade):
    task.delivered.act = table("Effect of a change")["deliver"]["right"]
    for one in documents:
        check(still(one, one.act, task.requester), f"{one.place}, newest policy", "its key or its right is gone")
    if seal and grade:
        rules(f"{grade.place}, newest policy", *minimums(R.newest.root["acceptance"], seal, grade))
    if task.flow == "test-first":
        people = {one.person for one in used if still(one, one.act, task.requester)}
        enough = len(people) >= max(1, R.newest.root["acceptance"]["approvers"])
        check(enough, "newest policy", f"{len(people)} people approved the tests, which are too few")

def verify(name):  # whether a test-first task was delivered; the faults say how
    is_archived, task = take_out(name), history(name)
    print(f"task {name} is {task.state}: text {text_digest(task)}, base {task.base}, priority {task.priority},",
          f"tags {[*task.tags]}")
    check(task.state in ENDED or not is_archived, "history", "it lies in the archive, and it has not ended")
    read = lambda kind, folder: documents(f"{folder}/{name}", kind, name, task.requester)
    seals, runs, grades = ({one.id: one for one in read(kind, folder)} for kind, folder in
                           (("manifest", "sealed"), ("run", "runs"), ("grade", "grades")))
    to, event = task.delivery, task.delivered
    seal, run, grade = seals.get(to.get("manifest")), runs.get(to.get("run")), grades.get(to.get("grade"))
    then = event.policy if event else R.newest
    aside = task.aside | {one.id for some in (seals, runs, grades) for one in some.values() if not one.counts}
    late = [one for one in (run, seal, grade) if one and one.version > event.version]
    check(not late, "history", "the delivery names an older policy version than its evidence")
    uses = {None} | {use["manifest"] for _, use in task.uses}
    for one in runs.values():
        used = one.doc["kind"] != "agent" or one.doc.get("manifest") in uses
        check(used, one.place, "the approvals of its manifest were never used: the task's ref was put back")
        run_claims(one)
    versions(task, seals, read("reseal", "sealed"), runs, seal, aside)
    for one in grades.values() if task.flow == "test-first" else ():
        check(one.doc["manifest"] in seals, one.place, "it is about no believed version")
        if one.doc["manifest"] in seals:
            grade_claims(one, seals[one.doc["manifest"]], runs.get(one.doc.get("run")))
    used = approvals(task, then, seals, seal, grade) if task.flow == "test-first" else []
    if to:
        for kind, one in (("manifest", seal), ("run", run), ("grade", grade)):
            check(one or kind not in to, "delivery", f"the {kind} that it names is none that is believed")
        if run:
            delivered_run(task, run, seal)
        if grade and grade.doc["manifest"] in seals:
            delivered_grade(task, then, grade, seals, run, grades, aside)
        delivery(task, run, grade, {one.doc["canary"] for one in seals.values()},
                 [one for one in runs.values() if one.id not in task.aside_then])
        newest(task, [one for one in (event, run, seal, grade) if one], used, seal, grade)
    return bool(to) and task.flow == "test-first"

# Refs
def open_repository(told=None):
    refs = git("for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    R.refs = dict(line.split() for line in refs)
    found = [one for one in ("refs/hangar/", "refs/heads/hangar-state/") if one + "policy" in R.refs]
    need(found, "there is no policy")
    R.prefix = found[0]
    live = (re.fullmatch(R.prefix + "tasks/([a-z2-7]{52})", ref) for ref in R.refs)
    kept = (archived(ref).values() for ref in R.refs if ref.startswith(R.prefix + "archive/"))
    R.tasks = sorted({task[1] for task in live if task} | {task for some in kept for task in some if task})
    try:
        need(len(found) == 1, "there is one under both prefixes")
        policy()
        pins(told)
        return True
    except BROKEN as fault:
        check(False, "policy", fault)

def lost_refs():
    for ref in (ref.removeprefix(R.prefix) for ref in R.refs if ref.startswith(R.prefix)):
        kind, _, rest = ref.partition("/")
        known = kind not in ("sealed", "runs", "grades", "approvals") or rest.split("-")[0] in R.tasks
        check(known, ref, "it belongs to a task that is not here")
        fits = kind != "archive" or all(archived(R.prefix + ref).values())
        check(fits, ref, "the archive is malformed")

def main():
    try:
        R.path, wanted = sys.argv[1:3]
        believed = open_repository(*sys.argv[3:])
        need(wanted == "--all" or wanted in R.tasks, f"there is no task {wanted}")
    except ValueError as error:
        print(__doc__ if len(sys.argv) < 3 else error)
        sys.exit(2)
    accepted = believed
    for task in (R.tasks if wanted == "--all" else [wanted]) if believed else ():
        try:
            accepted = verify(task) or wanted == "--all"
        except BROKEN as fault:
            check(False, f"task {task[:8]}", fault)
    if believed and wanted == "--all":
        lost_refs()
    accepted = accepted and not R.faults
    print(*(f"fault: {fault}" for fault in R.faults), "accepted" if accepted else "not accepted", sep="\n")
    sys.exit(not accepted)

main()
