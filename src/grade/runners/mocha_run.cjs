// Starts mocha in this process. The code under test is loaded here too.
'use strict';
const path = require('node:path');
const { existsSync } = require('node:fs');
const common = require('./common.cjs');
const { takesAName } = require('./scope.cjs');
// What writes records is not found by looking around in this process.
for (const file of Object.keys(require.cache)) {
  if (path.dirname(file) === __dirname) delete require.cache[file];
}
module.children.length = 0;
const { request, send, end, leave, relative, classify, isAssertion, describe } = common;

const flush = [process.stdout, process.stderr].map((stream) => stream.write.bind(stream));
const mocha = common.from('mocha');
// From mocha 12 on these are `.cjs`, and what the package's name means is a module of another kind.
const inside = (name) => {
  const file = path.join(mocha.folder, 'mocha', 'lib', name);
  return mocha.require(existsSync(file + '.cjs') ? file + '.cjs' : file + '.js');
};
const Mocha = inside('mocha');
const { loadOptions } = inside('cli/options');
const { handleRequires } = inside('cli/run-helpers');
let failed = false;

function failure(error) {
  const [c, m] = classify(describe(error), isAssertion(error));
  return { o: 'failed', c, m };
}

// A test's outcome is told when its group is over: a hook may still fail for it.
class Reporter {
  constructor(runner) {
    const outcomes = new Map();
    const told = new Set();
    const note = (test, outcome) => {
      // Failed once is failed.
      if (outcomes.get(test)?.o !== 'failed') outcomes.set(test, outcome);
    };
    const tell = (test) => {
      const outcome = outcomes.get(test);
      if (!outcome || told.has(test)) return;
      told.add(test);
      const id = [relative(test.file), ...test.titlePath()].join(' > ');
      send('test', { id, ...outcome });
    };
    const ofHook = (hook, error) => {
      const outcome = failure(error);
      if (hook.ctx?.currentTest) note(hook.ctx.currentTest, outcome);
      const after = hook.parent._afterAll.includes(hook);
      hook.parent.eachTest((test) => {
        const direct = test.parent === hook.parent;
        if (after ? direct : !outcomes.has(test)) note(test, outcome);
      });
    };
    runner.on('pass', (test) => note(test, { o: 'passed' }));
    runner.on('pending', (test) => {
      if (test.type === 'test') note(test, { o: 'skipped' });
    });
    runner.on('fail', (test, error) => {
      failed = true;
      if (test.type === 'hook') ofHook(test, error);
      else note(test, failure(error));
    });
    runner.on('suite end', (suite) => suite.tests.forEach(tell));
    runner.on('end', () => runner.suite.eachTest(tell));
  }
}

// What a file leaves in the root group.
const LISTS = [
  'suites', 'tests', '_beforeAll', '_beforeEach', '_afterAll', '_afterEach', '_onlyTests', '_onlySuites',
];

// Loads a file into a group of its own without a name. Else mocha would run what stands outside any
// group in all files first, and no sentinel there would come behind the tests of another file.
async function load(runner, file) {
  const root = runner.suite;
  const before = LISTS.map((list) => root[list].length);
  runner.files = [file];
  let error = null;
  try {
    await runner.loadFilesAsync();
  } catch (thrown) {
    error = thrown ?? 'thrown';
  }
  const added = LISTS.map((list, at) => root[list].splice(before[at]));
  if (error !== null) {
    failed = true;
    send('file', { id: relative(file), ...failure(error) });
    return;
  }
  const own = Mocha.Suite.create(root, '');
  own.titlePath = () => [];
  own.ctx = root.ctx;
  LISTS.forEach((list, at) => {
    for (const one of added[at]) {
      one.parent = own;
      own[list].push(one);
    }
  });
}

async function run() {
  const options = loadOptions(['--no-config', '--no-package', '--no-opts', ...request.options]);
  const plugins = await handleRequires([...request.plugins, ...(options.require ?? [])]);
  const chosen = { ...options, ...plugins, parallel: false, watch: false, reporter: Reporter };
  for (const name of ['require', 'spec', 'file', 'ignore', 'delay', 'config', 'package']) {
    delete chosen[name];
  }
  const runner = new Mocha(chosen);
  send('start');
  if (takesAName(request.scope)) send('odd');
  for (const file of request.files) await load(runner, file);
  runner.files = [];
  runner.run(() => {
    end(failed);
    // Not `process.exit`: what the code registered to run at exit has no say in the status.
    for (const write of flush) write('');
    leave(failed ? 1 : 0);
  });
}

run();
