import importlib
import importlib.util
import types
import unittest
import unittest.mock
import asyncio
import difflib
import pprint
import traceback


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def load(root, path):
    """The module of a sealed file: by its dotted name where that leads to this very file."""
    full = os.path.join(root, path)
    dotted = os.path.splitext(path)[0].replace("/", ".")
    folder = os.path.dirname(full)
    if folder not in sys.path:
        sys.path.append(folder)
    if "." in dotted and os.path.exists(os.path.join(folder, "__init__.py")):
        try:
            found = importlib.util.find_spec(dotted)
        except (ImportError, ValueError):
            found = None
        if found is not None and found.origin == full:
            return importlib.import_module(dotted)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, full, loader=AsWritten(name, full))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Recorder(unittest.TestResult):
    """Sends one record for each test, and one for a class or file that could not be set up."""

    def __init__(self, send, ids):
        super().__init__()
        self.send, self.ids, self.classify = send, ids, classify
        self.state, self.bad, self.ran = None, False, set()

    def startTest(self, test):
        super().startTest(test)
        self.state = ["passed", "", ""]

    def settle(self, outcome, klass="", module=""):
        if self.state is not None and self.state[0] != "failed":
            self.state = [outcome, klass, module]
        if outcome == "failed":
            self.bad = True

    def stopTest(self, test):
        super().stopTest(test)
        name = self.ids.get(id(test))
        if name is None:
            self.send("extra", test.id())
        else:
            self.ran.add(name)
            self.send("test", name, *self.state)
        self.state = None

    def failed(self, test, error):
        klass, module = self.classify(error)
        if self.state is None:
            # setUpClass or setUpModule: every test of it that did not run failed by it.
            self.bad = True
            self.pending_failure(test, "failed", klass, module)
        else:
            self.settle("failed", klass, module)

    def pending_failure(self, holder, outcome, klass, module):
        text = str(holder.id())
        inner = text[text.find("(") + 1:].rstrip(")") if "(" in text else text
        for key, name in self.ids.items():
            owner = self.owners[key]
            if name not in self.ran and (owner == inner or owner.startswith(inner + ".")):
                self.ran.add(name)
                self.send("test", name, outcome, klass, module)

    def addError(self, test, err):
        self.failed(test, err[1])

    def addFailure(self, test, err):
        self.failed(test, err[1])

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.failed(test, err[1])

    def addSkip(self, test, reason):
        if self.state is None:
            self.pending_failure(test, "skipped", "", "")
        else:
            self.settle("skipped")

    def addExpectedFailure(self, test, err):
        self.settle("skipped")

    def addUnexpectedSuccess(self, test):
        self.settle("skipped")


def collect(request, send):
    wanted = {name: place for place, name in enumerate(request["ids"])}
    known, found, loader = set(request["known"]), [], unittest.TestLoader()
    broken = False
    for path in request["files"]:
        try:
            module = load(request["root"], path)
        except unittest.SkipTest:
            send("file", path, "skipped")
            continue
        except BaseException as error:
            klass, missing = classify(error)
            send("file", path, "failed", klass, missing)
            broken = True
            continue
        for value in list(vars(module).values()):
            ours = isinstance(value, type) and issubclass(value, unittest.TestCase)
            if not ours or value.__module__ != module.__name__:
                continue
            for test in tests_of(loader.loadTestsFromTestCase(value)):
                method = getattr(test, "_testMethodName", "")
                name = "%s::%s::%s" % (path, value.__qualname__.replace(".", "::"), method)
                if name in wanted:
                    found.append((wanted[name], name, test))
                elif name not in known and request["mode"] == "run":
                    send("extra", name)
    found.sort(key=lambda entry: entry[0])
    return found, broken


def run():
    request = read_request()
    send, close = open_channel(request["nonce"])
    leave, flush = os._exit, (sys.stdout.flush, sys.stderr.flush)
    prepare_imports(request)
    send("start")
    found, broken = collect(request, send)
    recorder = Recorder(send, {id(test): name for _, name, test in found})
    recorder.owners = {id(test): "%s.%s" % (type(test).__module__, type(test).__qualname__) for _, _, test in found}
    unittest.TestSuite(test for _, _, test in found).run(recorder)
    status = 1 if broken or recorder.bad else 0
    close(status)
    for stream in flush:
        try:
            stream()
        except Exception:
            pass
    # Not sys.exit: what the code registered to run at exit has no say in the status.
    leave(status)


run()
