// Says which declared dependencies can't be found by walking up from the root, and which version of the
// runner is found.
import fs from 'node:fs';
import path from 'node:path';

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
const found = (name) => {
  for (let folder = request.root; ; folder = path.dirname(folder)) {
    const place = path.join(folder, 'node_modules', name, 'package.json');
    if (fs.existsSync(place)) return place;
    if (folder === path.dirname(folder)) return null;
  }
};
const majorOf = (version) => Number.parseInt(version, 10) || 0;
const missing = request.declared.filter((name) => !found(name));
const place = request.runner && found(request.runner);
const runner = place ? majorOf(JSON.parse(fs.readFileSync(place, 'utf8')).version) : null;
fs.writeSync(3, JSON.stringify({
  nonce: request.nonce, major: majorOf(process.versions.node), runner, missing,
}));
