// Starts jest, and is its reporter. The code under test is loaded in worker processes, never here.
'use strict';
const { randomUUID } = require('node:crypto');
const common = require('./common.cjs');
const { takesAName, turnsBabel } = require('./scope.cjs');
const { request, send, end, relative, classify, describe } = common;

// The name of a test that stands between those of the file that was loaded before and the file's own.
const BETWEEN = 'between ' + randomUUID();
let failed = false;

const ASSERTION = /^(?:\S*Error: )?(?:\S*expect\(|assert[.(]|AssertionError)|ERR_ASSERTION/;

function failure(message, details) {
  const plain = String(message ?? '').replace(/\u001b\[[0-9;]*m/g, '');
  const first = details?.error ?? details;
  const asserted = first?.matcherResult !== undefined || ASSERTION.test(plain);
  const [c, m] = classify(plain.slice(0, 1500) + ' ' + describe(first), asserted);
  return { o: 'failed', c, m };
}

class Reporter {
  onTestResult(test, result) {
    const file = relative(test.path);
    const all = result.testResults;
    if (result.testExecError || (all.length === 0 && result.failureMessage)) {
      failed = true;
      const error = result.testExecError;
      send('file', { id: file, ...failure(result.failureMessage ?? error?.message, error) });
      return;
    }
    const between = all.findIndex((one) => one.title === BETWEEN);
    all.forEach((one, at) => {
      if (at === between) return;
      const place = at < between ? relative(request.first) : file;
      const id = [place, ...one.ancestorTitles, one.title].join(' > ');
      if (one.status === 'passed') {
        send('test', { id, o: 'passed' });
      } else if (one.status === 'failed') {
        failed = true;
        send('test', { id, ...failure(one.failureMessages[0], one.failureDetails[0]) });
      } else {
        send('test', { id, o: 'skipped' });
      }
    });
  }

  onRunComplete(_, results) {
    if (results.runExecError) failed = true;
    end(failed);
  }
}

// Everything that jest would look for in the repository is said here.
function configuration() {
  const config = {
    rootDir: request.root,
    testMatch: ['**/*'],
    testPathIgnorePatterns: [],
    reporters: [__filename],
    cache: false,
    cacheDirectory: request.scratch + '/cache',
    watchman: false,
    haste: { forceNodeFilesystemAPI: true },
    // Always in a process of its own, even where there is one file only.
    workerIdleMemoryLimit: 2 ** 40,
    maxWorkers: request.first ? 1 : 2,
  };
  if (request.first) {
    config.setupFilesAfterEnv = [require.resolve('./first.mjs')];
    config.snapshotResolver = require.resolve('./places.cjs');
    process.env.FIRST = request.first;
    config.globals = { FIRST: request.first, BETWEEN };
  }
  return JSON.stringify(config);
}

function run() {
  common.keepDebuggerOut();
  const { run: start } = common.from('jest').require('jest');
  send('start');
  if (takesAName(request.scope) || turnsBabel(request.scope)) send('odd');
  start([
    '--config=' + configuration(), '--ci', '--colors=false', ...request.plugins.map((one) => '--setupFiles=' + one),
    ...request.options, '--runTestsByPath', ...request.files,
  ]);
}

module.exports = Reporter;
if (require.main === module) run();
