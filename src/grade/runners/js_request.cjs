// What a runner is asked to do, from standard input, and the end of that: it is a file, which this process and
// those that it starts (/proc/PID/fd/0) could open at its begin.
'use strict';
const fs = require('node:fs');

// Loaders read files in threads of their own, and one of them may hold descriptor 0 for a moment.
const WAIT_MS = 1;
const TRIES = 5000;

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
fs.closeSync(0);
for (let tries = 0; ; tries += 1) {
  const empty = fs.openSync('/dev/null', 'r');
  if (empty === 0) break;
  fs.closeSync(empty);
  if (tries === TRIES) throw new Error('standard input is taken');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
}

module.exports = request;
