import importlib
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


class Recorder:
    """Takes outcomes from the exceptions themselves, not from the reports made of them."""

    def __init__(self, request, send):
        self.order = {id: place for place, id in enumerate(request["ids"])}
        self.known = set(request["known"])
        self.collect_only = request["mode"] == "collect"
        self.send = send
        self.causes = {}
        self.state = {}
        self.skips = (pytest.skip.Exception, unittest.SkipTest)
        self.xfail = pytest.xfail.Exception
        self.fails = pytest.fail.Exception
        self.classify = classify

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
        self.note(item.nodeid, call, report)
        return report

    def note(self, nodeid, call, report):
        state = self.state.setdefault(nodeid, {"outcome": "", "class": "", "module": "", "called": False})
        error = None if call.excinfo is None else call.excinfo.value
        if call.when == "call":
            state["called"] = True
        expected = hasattr(report, "wasxfail") or isinstance(error, self.xfail)
        if error is None:
            if report.outcome == "failed":
                state.update(outcome="failed", **{"class": "assertion"})
            elif expected or report.outcome == "skipped":
                state["outcome"] = state["outcome"] or "skipped"
        elif isinstance(error, self.skips) or expected:
            state["outcome"] = state["outcome"] or "skipped"
        elif report.outcome != "failed":
            self.send("odd", nodeid)
        elif state["outcome"] != "failed":
            klass, module = self.classify(error)
            if isinstance(error, self.fails):
                klass = "assertion"
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
    status = int(pytest.main(arguments, plugins=[Recorder(request, send)]))
    close(status)
    for stream in flush:
        try:
            stream()
        except Exception:
            pass
    # Not sys.exit: what the code registered to run at exit has no say in the status.
    leave(status)


run()
