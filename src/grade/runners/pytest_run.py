import importlib
import importlib.metadata
import inspect
import pkgutil
import unittest
import unittest.mock

import pytest
import _pytest


def load_everything():
    for module in pkgutil.iter_modules(_pytest.__path__, "_pytest."):
        try:
            importlib.import_module(module.name)
        except Exception:
            pass


def unloaded(installed, config):
    """Modules of installed plugins that the plan does not name: none of them loads itself."""
    for found in importlib.metadata.distributions(path=installed):
        for entry in found.entry_points:
            module = entry.value.split(":")[0]
            if entry.group == "pytest11" and not config.pluginmanager.has_plugin(module):
                yield module


def holds_fixture(module, name):
    try:
        places = dict(vars(importlib.import_module(module)))
    except Exception:
        return False
    for key, value in places.items():
        # The marker of a fixture, from pytest 8.4 on and before.
        marker = getattr(value, "_fixture_function_marker", None)
        marker = marker or getattr(value, "_pytestfixturefunction", None)
        if marker is not None and (getattr(marker, "name", None) or key) == name:
            return True
    return False


ASYNC = {"anyio": "anyio.pytest_plugin", "trio": "pytest_trio.plugin"}


def why_not_run(item, error, installed):
    """(class, what was missing) where pytest itself ended a test before its body ran; else None."""
    if isinstance(error, _pytest.fixtures.FixtureLookupError):
        name = str(error.argname)
        for module in unloaded(installed, item.config):
            if holds_fixture(module, name):
                return "missing-plugin", module
        return "missing-fixture", name
    test = getattr(item, "obj", None)
    is_async = inspect.iscoroutinefunction(test) or inspect.isasyncgenfunction(test)
    if is_async and str(error).startswith("async def function"):
        marks = [module for mark, module in ASYNC.items() if item.get_closest_marker(mark)]
        wanted = marks[0] if marks else "pytest_asyncio.plugin"
        if wanted in unloaded(installed, item.config):
            return "missing-plugin", wanted
        return "unrun", "async"
    return None


class Recorder:
    """Takes outcomes from the exceptions themselves, not from the reports made of them."""

    def __init__(self, request, send, installed):
        self.order = {id: place for place, id in enumerate(request["ids"])}
        self.known = set(request["known"])
        self.collect_only = request["mode"] == "collect"
        self.send = send
        self.causes = {}
        self.state = {}
        self.skips = (pytest.skip.Exception, unittest.SkipTest)
        self.xfail = pytest.xfail.Exception
        self.fails = pytest.fail.Exception
        self.classify, self.why_not_run = classify, why_not_run
        self.installed = installed
        self.root = os.path.join(request["root"], "")

    def is_within(self, error):
        """Whether code of the tree was running; else pytest or a plugin failed the test by itself."""
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename.startswith(self.root):
                return True
            frame = frame.tb_next
        return False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.collect_only:
            return
        wanted = []
        for item in items:
            name = item.nodeid.split("[", 1)[0]
            if name in self.order:
                wanted.append(item)
            elif name not in self.known:
                self.send("extra", item.nodeid)
        wanted.sort(key=lambda item: self.order[item.nodeid.split("[", 1)[0]])
        items[:] = wanted

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node, call, report):
        self.causes[report.nodeid] = self.classify(call.excinfo.value)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report):
        if report.outcome == "passed":
            return
        if report.outcome == "skipped":
            self.send("file", report.nodeid, "skipped")
        else:
            klass, module = self.causes.get(report.nodeid, ("error", ""))
            self.send("file", report.nodeid, "failed", klass, module)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        self.note(item, call, report)
        return report

    def note(self, item, call, report):
        nodeid = item.nodeid
        state = self.state.setdefault(nodeid, {"outcome": "", "class": "", "module": "", "called": False})
        error = None if call.excinfo is None else call.excinfo.value
        if call.when == "call":
            state["called"] = True
        expected = hasattr(report, "wasxfail") or isinstance(error, self.xfail)
        unrun = None if error is None else self.why_not_run(item, error, self.installed)
        if unrun is not None:
            outcome = "skipped" if isinstance(error, self.skips) else "failed"
            state.update(outcome=outcome, module=unrun[1], **{"class": unrun[0]})
        elif error is None:
            if report.outcome == "failed":
                # pytest's own word (it was expected to fail): no assertion of the test did not hold.
                state.update(outcome="failed", **{"class": "error"})
            elif expected or report.outcome == "skipped":
                state["outcome"] = state["outcome"] or "skipped"
        elif isinstance(error, self.skips) or expected:
            state["outcome"] = state["outcome"] or "skipped"
        elif report.outcome != "failed":
            self.send("odd", nodeid)
        elif state["outcome"] != "failed":
            klass, module = self.classify(error)
            if isinstance(error, self.fails) and self.is_within(error):
                klass = "assertion"
            elif klass == "assertion" and call.when != "call":
                # A fixture's: the test's own body never ran, or had ended.
                klass = "error"
            state.update(outcome="failed", module=module, **{"class": klass})
        if call.when == "teardown":
            self.state.pop(nodeid)
            outcome = state["outcome"] or ("passed" if state["called"] else "skipped")
            self.send("test", nodeid, outcome, state["class"], state["module"])


def run():
    request = read_request()
    send, close = open_channel(request["nonce"])
    leave, flush = os._exit, (sys.stdout.flush, sys.stderr.flush)
    load_everything()
    installed = list(sys.path)
    finder = prepare_imports(request)
    # pytest's own hook comes before every finder, and reads caches of what it rewrote.
    elsewhere = importlib.machinery.PathFinder.find_spec
    hook = _pytest.assertion.rewrite.AssertionRewritingHook
    hook._find_spec = staticmethod(
        lambda name, path=None: finder.find_spec(name) or elsewhere(name, path))
    _pytest.assertion.rewrite._read_pyc = lambda *_, **__: None
    # The environment is no place to tell the code which test calls it (PYTEST_CURRENT_TEST).
    _pytest.runner._update_current_test_var = lambda item, when: None
    arguments = [
        "-c", request["config"], "--rootdir", request["root"], "--confcutdir", request["root"],
        "-p", "no:cacheprovider", "--import-mode=append", "--continue-on-collection-errors",
        "--color=no", "-q",
    ]
    for plugin in request["plugins"]:
        arguments += ["-p", plugin]
    arguments += request["options"]
    if request["mode"] == "collect":
        arguments.append("--collect-only")
    arguments += request["files"]
    send("start")
    status = int(pytest.main(arguments, plugins=[Recorder(request, send, installed)]))
    close(status)
    for stream in flush:
        try:
            stream()
        except Exception:
            pass
    # Not sys.exit: what the code registered to run at exit has no say in the status.
    leave(status)


run()
