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


class AsWritten(importlib.machinery.SourceFileLoader):
    """Compiles the file itself. A cache of bytecode need not say what the source says."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class TestsFirst:
    """Finds the modules of the tests by the files that they are, whatever a patch gives their name: a
    package, an extension or a folder elsewhere, or another way for a package above them. A name means
    what it means on the base: `code` says where the base has modules of its own."""

    def __init__(self, root, files, folders, code):
        self.root, self.named = root, {}
        self.installed = list(sys.path)
        self.folders = [os.path.join(root, folder) for folder in folders]
        self.files = [os.path.join(root, file) for file in files if file.endswith(".py")]
        self.known = set(self.files)
        self.code = {
            name: {os.path.join(root, place) if place else root for place in places}
            for name, places in code.items()
        }

    def look_from(self, place):
        """Names the modules of the tests as they are called from a folder on the path."""
        start, asked = os.path.join(place, ""), {}
        for path in self.files + self.folders:
            if not path.startswith(start):
                continue
            parts = path[len(start):].split("/")
            if path in self.known:
                last = parts.pop()
                if last != "__init__.py":
                    parts.append(last[:-len(".py")])
            if not parts or not all(map(str.isidentifier, parts)):
                continue
            top = parts[0]
            if top not in asked:
                asked[top] = self.is_theirs(place, top)
            if asked[top]:
                self.named.setdefault(".".join(parts), path)

    def is_theirs(self, place, top):
        """Whether the base, too, would look for `top` here."""
        path = os.path.join(place, top)
        if is_standard(top):
            return False
        if place == self.root and path in self.folders:
            return True
        try:
            found = importlib.machinery.PathFinder.find_spec(top, self.installed)
        except Exception:
            found = None
        if found is not None and found.loader is not None:
            return False
        # A folder without `__init__.py` gives way to whatever has its name.
        package = os.path.join(path, "__init__.py")
        return path + ".py" in self.known or package in self.known or not (
            self.code.get(top, set()) - {place})

    def find_spec(self, name, path=None, target=None):
        path = self.named.get(name)
        if path is None:
            return None
        if path not in self.known:
            # Without `__init__.py`, which would have been named first.
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [path]
            return spec
        inside = [os.path.dirname(path)] if path.endswith("/__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, path, loader=AsWritten(name, path), submodule_search_locations=inside)


def is_standard(name):
    return name in getattr(sys, "stdlib_module_names", ()) or name in sys.builtin_module_names


def extend_path(root, extra, files, finder):
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
        finder.look_from(place)
        if place not in sys.path:
            sys.path.append(place)


def prepare_imports(request):
    finder = TestsFirst(
        request["root"], request["modules"], request["folders"], request["code"])
    extend_path(request["root"], request["path"], request["files"], finder)
    sys.meta_path.insert(0, finder)
    return finder


