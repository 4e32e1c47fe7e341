// Loads one test file before the one that node runs, so that both share a process. The runner's own
// process loads this too, and there the code under test has no place.
import { pathToFileURL } from 'node:url';

const file = process.env.FIRST;
delete process.env.FIRST;
if (process.env.NODE_TEST_CONTEXT && file) {
  try {
    await import(pathToFileURL(file));
  } catch {
    // Its tests are not reported then, and that is seen.
  }
}
