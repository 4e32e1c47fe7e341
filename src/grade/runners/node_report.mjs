// Reporter of `node --test`. It runs in the runner's own process; every test file runs in a process
// of its own, so the code under test is never loaded here.
import fs from 'node:fs';
import path from 'node:path';
import request from './request.cjs';
import { takesAName } from './scope.cjs';

// Node opens its debugger to whoever sends this signal, and a debugger runs here what it is told to. A
// listener takes its place.
process.on('SIGUSR1', () => {});
const root = request.root;
const bent = takesAName(request.scope);
let number = 0;

function send(k, fields = {}) {
  const record = { n: request.nonce, s: number++, k, ...fields };
  const data = Buffer.from(JSON.stringify(record) + '\n');
  let done = 0;
  while (done < data.length) {
    try {
      done += fs.writeSync(3, data, done);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

const short = (text) => String(text ?? '').slice(0, 1500);

function relative(file) {
  return file ? path.relative(root, file).split(path.sep).join('/') : '';
}

// Name of a package in "Cannot find package 'x'" or "Cannot find module 'x'"; '' for a file.
function packageIn(text) {
  const found = /Cannot find (?:package|module) '([^']{1,300})'/.exec(text);
  if (!found || /^[./]|^file:/.test(found[1])) return '';
  const parts = found[1].split('/');
  return parts[0].startsWith('@') ? parts.slice(0, 2).join('/') : parts[0];
}

// [class, package that was not found]
function classify(text, error) {
  if (error?.code === 'ERR_ASSERTION' || error?.name === 'AssertionError') return ['assertion', ''];
  if (/ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|Cannot find (package|module)/.test(text)) {
    return ['missing-module', packageIn(text)];
  }
  if (/does not provide an export named|is not a function|is not a constructor|ReferenceError|Cannot read properties of undefined/.test(text)) {
    return ['missing-symbol', ''];
  }
  if (/SyntaxError/.test(text)) return ['compile', ''];
  return ['error', ''];
}

function causeOf(error) {
  let cause = error;
  for (let depth = 0; depth < 10 && cause?.code === 'ERR_TEST_FAILURE' && cause.cause; depth++) {
    cause = cause.cause;
  }
  return cause;
}

function describeCause(cause) {
  if (cause === null || typeof cause !== 'object') return short(cause);
  return [cause.name, cause.code, cause.message].map(short).join(' ');
}

export default async function* report(source) {
  const stacks = new Map();
  const errors = new Map();
  let failed = false;
  send('start');
  if (bent) send('odd');
  for await (const { type, data } of source) {
    if (type === 'test:stderr' && data?.file) {
      const old = errors.get(data.file) ?? '';
      if (old.length < 20000) errors.set(data.file, old + data.message);
      continue;
    }
    if (!['test:start', 'test:pass', 'test:fail'].includes(type)) continue;
    const file = data.file ?? '';
    const place = relative(file);
    const isFile = data.nesting === 0 && (data.name === file || data.name === place);
    if (isFile) {
      // The file itself: it is reported only where it told of no test.
      if (type === 'test:fail') {
        failed = true;
        const [c, m] = classify(errors.get(file) ?? '', null);
        send('file', { id: place, o: 'failed', c, m });
      }
      continue;
    }
    const stack = stacks.get(file) ?? [];
    stacks.set(file, stack);
    stack.length = Math.min(stack.length, data.nesting);
    const id = [place, ...stack, data.name].join(' > ');
    if (type === 'test:start') {
      stack[data.nesting] = data.name;
      continue;
    }
    const off = data.skip !== undefined || data.todo !== undefined;
    if (type === 'test:fail' && !off) failed = true;
    if (data.details?.type === 'suite') continue;
    if (off) {
      send('test', { id, o: 'skipped' });
    } else if (type === 'test:pass') {
      send('test', { id, o: 'passed' });
    } else {
      const cause = causeOf(data.details?.error);
      const [c, m] = classify(describeCause(cause), cause);
      send('test', { id, o: 'failed', c, m });
    }
  }
  send('count', { v: number });
  send('end', { v: failed ? 1 : 0 });
  yield '';
}
