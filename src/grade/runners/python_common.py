# Shared by the runners. Runs before any code of the project is loaded, and keeps its own references
# to what it needs, so that replacing a function of a module later changes nothing here.
import _json
import fcntl
import importlib.machinery
import importlib.util
import json
import os
import sys


def read_request():
    data = sys.stdin.buffer.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return json.loads(data)


def open_channel(nonce):
    fd = fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(3)
    write, getpid, quote = os.write, os.getpid, _json.encode_basestring_ascii
    text, owner, number = str, os.getpid(), [0]

    def send(kind, id="", outcome="", klass="", module="", value=0):
        # A child that was forked off by the code under test is not the runner.
        if getpid() != owner:
            return
        line = '{"n":%s,"s":%d,"k":%s,"id":%s,"o":%s,"c":%s,"m":%s,"v":%d}\n' % (
            quote(nonce), number[0], quote(kind), quote(text(id)), quote(outcome),
            quote(klass), quote(text(module)), value,
        )
        number[0] += 1
        data = line.encode("ascii")
        while data:
            data = data[write(fd, data):]

    def close(status):
        send("count", value=number[0])
        send("end", value=status)

    return send, close


def classify(error):
    """(class, module that was not found)"""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, AssertionError):
            return "assertion", ""
        if isinstance(error, ModuleNotFoundError):
            return "missing-module", str(error.name or "")[:200]
        if isinstance(error, (ImportError, AttributeError, NameError)):
            return "missing-symbol", ""
        if isinstance(error, SyntaxError):
            return "compile", ""
        error, seen = error.__cause__, seen + 1
    return "error", ""


def package_root(folder):
    """The folder that a test file's imports start from: above the packages that it lies in."""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def bind_folders(root, names):
    """A folder of tests without `__init__.py` is a namespace, and any module or package of that
    name elsewhere would win over it. So it is bound to its own folder here."""
    for name in names:
        folder = os.path.join(root, name)
        known = name in sys.modules or name in getattr(sys, "stdlib_module_names", ())
        if known or not name.isidentifier() or not os.path.isdir(folder):
            continue
        if not os.path.exists(os.path.join(folder, "__init__.py")):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [folder]
            sys.modules[name] = importlib.util.module_from_spec(spec)


def extend_path(root, extra, files):
    """The project comes after the standard library and the installed packages: a `json.py` in its
    root shadows nothing that the runner needs. The folders of the tests come before the project: a
    module of the patch shadows no helper of the tests."""
    places = [package_root(os.path.dirname(os.path.join(root, file))) for file in files]
    places.append(root)
    src = os.path.join(root, "src")
    if os.path.isdir(src) and not os.path.exists(os.path.join(src, "__init__.py")):
        places.append(src)
    for place in extra:
        places.append(os.path.join(root, place))
    for place in places:
        if place not in sys.path:
            sys.path.append(place)


