"""Whether single documents bear out what they say: the numbers of a manifest, trees of a run, rows of a grade.

Comments that stand alone are headings of format.md."""
import re
from documents import PAGE, check, digest, file, listing, listing_digest, patch, table, tree, words

def rules(place, *pairs):
    for ok, what in pairs:
        check(ok, place, what)

def scale(field):  # the words of an ordered scale, from low to high
    return words(table("Grade")[field]["meaning"])

# Path patterns
def glob(pattern):
    def one(part):
        if part[0] == "{":
            return "(?:" + "|".join(map(glob, part[1:-1].split(","))) + ")"
        known = {"**/": "(?:.*/)?", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}
        return part.replace("[!", "[^") if part[0] == "[" else known.get(part) or re.escape(part[-1])
    return re.sub(r"\*\*/|/\*\*$|\\.|\[[^]]+\]|\{[^{}]*\}|.", lambda match: one(match[0]), pattern)

def matches(patterns, path):
    below = lambda pattern: "/.+" if pattern.endswith("/") else "(?:/.+)?"
    return any(re.fullmatch(glob(one.rstrip("/")) + below(one), path, re.S) for one in patterns)

def is_guarded(path):
    patterns = [one.lower() for one in words(re.search(r"<!-- guarded.*?-->(.*?)<!--", PAGE, re.S)[1])]
    return matches(patterns + [one.rstrip("/") for one in patterns], path.lower())

# Checking a task: Versions
def failing(rows):
    return [row for row in rows if row["status"] in ("fails", "unconfirmed")]

def manifest_claims(one):
    doc, rows = one.doc, one.doc["base_check"]
    status = [row["status"] for row in rows]
    real = {"criteria": len(doc["coverage"]), "uncovered": sum(row["fails"] == 0 for row in doc["coverage"]),
            "tests": len(rows), "fails": len(failing(rows)), "flaky": sum(row.get("flaky", False) for row in rows),
            "guards": status.count("guard"), "skipped": status.count("skipped"),
            "unconfirmed": status.count("unconfirmed")}
    for name, count in real.items():
        check(doc["counts"][name] == count, one.place, f"its base check is forged or damaged: the count of {name}")
    rules(one.place, (len({row["alias"] for row in rows}) == len(rows), "its base check has a test twice"),
          (failing(rows), "no test of it fails on the base"),
          (listing_digest(doc["base"]) == doc["base_listing"], "the files of its base are not the ones that it names"))
    for row in doc["coverage"]:
        own = [test for test in rows if test["alias"].startswith(row["criterion"] + ".")]
        fits = len(own) <= row["tests"] and len(failing(own)) <= row["fails"] <= min(row["tests"], len(failing(rows)))
        check(fits, one.place, f"its base check is forged or damaged: the coverage of {row['criterion']}")

# Checking a task: Run
def changed_paths(result):  # and the patch id
    id, paths = patch(listing(result["base"]), listing(result["tree"]))
    return id, [path.decode(errors="replace") for path in paths]

def run_claims(one):
    for row in one.doc.get("attachment", []):
        data = file(one.files, row["name"])
        check(data is None or digest(data) == row["sha256"], one.place, f"its attachment {row['name']!r} is another")
    if result := one.doc.get("result"):
        id, paths = changed_paths(result)
        links = lambda oid: {path: oid for path, (mode, oid) in tree(oid, "-r").items() if mode == "160000"}
        rules(one.place, (one.files.get("result", " ")[1] == result["tree"], "the tree beside it is not its result"),
              (listing_digest(result["base"]) == result["base_listing"], "the files of its base are others"),
              (listing_digest(result["tree"]) == result["listing"], "the files of its result are others"),
              (id == result["patch"], "its patch id is not the one of its trees"),
              (len(paths) == result["changed"], "it counts the changed paths wrongly"),
              (list(filter(is_guarded, paths))[:100] == result.get("guarded", []), "it names guarded paths wrongly"),
              (links(result["base"]) == links(result["tree"]), "its result changes submodules"))

# Checking a task: Grade
def shown_trust(probes):
    shown = "none"
    for level, row in table("Probes").items():
        if any(probes.get(name) != "held" for name in words(row["attempts"])):
            break
        shown = level
    return shown

def grade_claims(one, seal, run):
    doc, manifest = one.doc, seal.doc
    base = {row["alias"]: row["status"] for row in manifest["base_check"]}
    rows = [row for row in doc["test"] if row["alias"] in base]
    sentinels = [row for row in doc["test"] if row["alias"] not in base]
    held = [row for row in sentinels if (row["outcome"], row.get("class")) == ("failed", "assertion")]
    count = {word: sum(row["outcome"] == word for row in rows) for word in ("passed", "failed", "skipped", "missing")}
    count |= {"expected": len(rows), "sentinels": len(sentinels), "sentinels_held": len(held)}
    if doc["test"] or doc["accepted"]:
        rules(one.place, (sorted(row["alias"] for row in rows) == sorted(base), "its rows are not exactly the tests"),
              (len(sentinels) == manifest["counts"]["sentinels"], "its rows are not exactly the sentinels"),
              (all(row["alias"][0] == "s" for row in sentinels), "its rows are not exactly the sentinels"),
              (count == doc["counts"], "its counts are not those of its rows"))
    trust, verdict = scale("trust").index, scale("verdict").index
    best = words(table("Test ids")[manifest["plan"]["framework"]]["best verdict"])[0]
    crosschecked = doc["verdict"] == "crosschecked"
    rules(one.place, (doc["counts"]["expected"] == manifest["counts"]["tests"], "it expects other tests"),
          (doc["trust"] == doc["sandbox"]["trust"], "its trust is not the one of its sandbox"),
          (trust(doc["trust"]) <= trust(shown_trust(doc["sandbox"]["probes"])), "its probes show less trust"),
          (verdict(doc["verdict"]) <= verdict(best), "it claims a verdict that its framework does not reach"),
          (not crosschecked or doc["counts"]["sentinels_held"], "a crosschecked verdict without a sentinel that held"),
          (all(doc["subject"][name] == manifest[name] for name in ("base", "base_listing")), "it has another base"),
          (manifest["plan"].get("reprepare") or not doc.get("reprepared"), "its plan allows no packages of the patch"),
          (doc["after_code"] == manifest["after_code"], "it disagrees with its manifest on after_code"),
          (one.version >= seal.version, "it names an older policy version than its manifest"))
    if doc["accepted"]:
        fine = lambda row: row["outcome"] == "passed" or row["outcome"] == "skipped" == base[row["alias"]]
        rules(one.place, (not doc["void"] and not doc["reasons"], "it is accepted, and void or with reasons"),
              (not doc["canary_found"] and not doc["protected_touched"], "it is accepted in spite of what it found"),
              (all(map(fine, rows)), "it is accepted although a hidden test did not pass"),
              (all(row["outcome"] != "passed" for row in sentinels), "it is accepted although a sentinel passed"))
    if "run" in doc:
        result = run.doc.get("result", {}) if run else {}
        rules(one.place, (run, "the run that it names is not here"),
              (all(result.get(name) == value for name, value in doc["subject"].items()), "its run has another result"),
              (run and run.doc.get("manifest") == doc["manifest"], "its run was made under another manifest"),
              (run and run.doc["secrecy"] == doc["secrecy"], "it claims another secrecy than its run"))

def minimums(acceptance, seal, grade):  # what a policy asks of it
    doc, plan = grade.doc, seal.doc["plan"]
    for field in ("trust", "verdict"):
        rank = scale(field).index
        yield rank(doc[field]) >= max(rank(plan[field]), rank(acceptance[field])), f"its {field} is not enough"
    yield not acceptance["adapters"] or plan["framework"] in acceptance["adapters"], "its framework is not allowed"
    yield acceptance["after_code"] or not doc["after_code"], "its tests were sealed after code was seen"
    yield acceptance["swap_exposed"] or not doc["sandbox"]["swap_exposed"], "it was made with swap on"
