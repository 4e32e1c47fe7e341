# Lists tests by reading the files: nothing is imported, so a test whose imports fail is listed too.
import ast

PREFIX = "test"


def body(node):
    """Statements of a body, with those inside if, try and with."""
    for statement in getattr(node, "body", []):
        if isinstance(statement, (ast.If, ast.With, ast.Try)):
            yield from body(statement)
            for name in ("orelse", "finalbody"):
                yield from body(ast.Module(body=getattr(statement, name, []), type_ignores=[]))
            for handler in getattr(statement, "handlers", []):
                yield from body(handler)
        else:
            yield statement


def last_name(node):
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_fixture(function):
    return any(last_name(decorator) == "fixture" for decorator in function.decorator_list)


def is_test_function(node):
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return is_function and node.name.startswith(PREFIX) and not is_fixture(node)


def has(klass, name):
    return any(isinstance(s, ast.FunctionDef) and s.name == name for s in body(klass))


def is_off(klass):
    for statement in body(klass):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            if "__test__" in names and not statement.value.value:
                return True
    return False


def lineage(klass, classes, depth=0):
    """The class and those of its bases that stand in the same file, nearest first."""
    found = [klass]
    if depth < 20:
        for base in klass.bases:
            parent = classes.get(last_name(base))
            if parent is not None and parent is not klass:
                found += lineage(parent, classes, depth + 1)
    return found


def is_case(line):
    return any("TestCase" in last_name(base) for klass in line for base in klass.bases)


def methods(line):
    names, seen = [], set()
    for klass in line:
        for statement in body(klass):
            if isinstance(statement, ast.Assign):
                seen.update(t.id for t in statement.targets if isinstance(t, ast.Name))
            if is_test_function(statement) and statement.name not in seen:
                seen.add(statement.name)
                names.append(statement.name)
    return names


def classes_of(node, prefix, style, outer):
    classes = dict(outer)
    classes.update((s.name, s) for s in body(node) if isinstance(s, ast.ClassDef))
    for statement in body(node):
        if not isinstance(statement, ast.ClassDef) or is_off(statement):
            continue
        line = lineage(statement, classes)
        case = is_case(line)
        name = prefix + statement.name
        if case:
            yield from (name + "::" + method for method in methods(line))
        elif style == "pytest" and statement.name.startswith("Test"):
            if not any(has(klass, "__init__") for klass in line):
                yield from (name + "::" + method for method in methods(line))
                yield from classes_of(statement, name + "::", style, classes)


def list_file(path, style):
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    names = []
    if style == "pytest":
        names += [s.name for s in body(tree) if is_test_function(s)]
    names += classes_of(tree, "", style, {})
    return list(dict.fromkeys(names))


def run():
    request = read_request()
    files = {}
    for path in request["files"]:
        try:
            names = list_file(os.path.join(request["root"], path), request["style"])
            files[path] = {"names": names}
        except (SyntaxError, ValueError) as error:
            files[path] = {"error": "line %s: %s" % (getattr(error, "lineno", "?"), type(error).__name__)}
        except (OSError, RecursionError, MemoryError) as error:
            files[path] = {"error": type(error).__name__}
    with os.fdopen(3, "w") as channel:
        json.dump({"nonce": request["nonce"], "files": files}, channel)


run()
