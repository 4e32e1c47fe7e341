// Starts vitest, and is its reporter. The code under test is loaded in processes of their own, never
// here.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import common from './common.cjs';
import { takesAName } from './scope.cjs';

const { request, send, end, relative, classify, isAssertion, describe } = common;
// In the order in which they run.
const files = request.first ? [request.first, ...request.files] : request.files;
let failed = false;

function failure(error) {
  const [c, m] = classify(describe(error), isAssertion(error));
  return { o: 'failed', c, m };
}

function names(task) {
  const out = [];
  for (let at = task; at && at.type !== 'module'; at = at.parent) out.unshift(at.name);
  return out;
}

class Reporter {
  told = new Set();

  onTestModuleEnd(module) {
    if (this.told.has(module.id)) return;
    this.told.add(module.id);
    const file = relative(module.moduleId);
    const tests = [...module.children.allTests()];
    const errors = module.errors();
    // A group whose hook fails leaves its tests without an outcome of their own.
    const broken = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
    const told = new Set();
    const tell = (test, outcome) => {
      if (told.has(test)) return;
      told.add(test);
      if (outcome.o === 'failed') failed = true;
      send('test', { id: [file, ...names(test)].join(' > '), ...outcome });
    };
    if (errors.length > 0 && tests.length === 0) {
      failed = true;
      send('file', { id: file, ...failure(errors[0]) });
      return;
    }
    if (errors.length > 0) tests.forEach((test) => tell(test, failure(errors[0])));
    for (const suite of broken) {
      for (const test of suite.children.allTests()) tell(test, failure(suite.errors()[0]));
    }
    for (const test of tests) {
      const { state, errors: found } = test.result();
      if (state === 'passed') tell(test, { o: 'passed' });
      else if (state === 'skipped') tell(test, { o: 'skipped' });
      else if (state === 'failed') tell(test, failure(found?.[0]));
    }
  }

  // A file that could not be loaded is named here only.
  onTestRunEnd(modules, errors, reason) {
    for (const module of modules) this.onTestModuleEnd(module);
    if (reason === 'failed' || errors.length > 0) failed = true;
    end(failed);
  }
}

// Vitest looks for more files in the tree unless it is told here that there is nothing to look for.
function configuration(sequencer) {
  const together = request.first
    ? { isolate: false, fileParallelism: false, poolOptions: { forks: { singleFork: true } } }
    : {};
  const vite = {
    configFile: false,
    envDir: request.scratch,
    cacheDir: path.join(request.scratch, 'cache'),
    css: { postcss: {} },
  };
  const test = {
    include: files.map((file) => relative(file)),
    exclude: [],
    pool: 'forks',
    maxWorkers: 2,
    minWorkers: 1,
    sequence: { sequencer, shuffle: false },
    ...together,
  };
  return { vite, test };
}

async function run() {
  common.keepDebuggerOut();
  const { folder } = common.from('vitest');
  const node = await import(pathToFileURL(path.join(folder, 'vitest', 'dist', 'node.js')));
  class Sequencer extends node.BaseSequencer {
    async sort(found) {
      const place = (file) => files.indexOf(file.moduleId);
      return [...found].sort((a, b) => place(a) - place(b));
    }
  }
  const { vite, test } = configuration(Sequencer);
  const { options } = node.parseCLI(['vitest', 'run', ...request.options]);
  const setupFiles = [...(options.setupFiles ?? []), ...request.plugins];
  send('start');
  if (takesAName(request.scope)) send('odd');
  const all = { ...options, ...test, setupFiles };
  await node.startVitest('test', [], {
    ...all, config: false, root: request.root, run: true, watch: false, passWithNoTests: false,
    reporters: [new Reporter()],
  }, { ...vite, test: { projects: [{ ...vite, test: { ...all, root: request.root } }] } });
  process.exit(process.exitCode ?? 0);
}

run();
