// Loads one test file before the one that jest runs, so that both share a process and a context.
await import(FIRST);
test(BETWEEN, () => {});
