// Says which declared dependencies can't be found by walking up from the root.
import fs from 'node:fs';
import path from 'node:path';

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
const found = (name) => {
  for (let folder = request.root; ; folder = path.dirname(folder)) {
    if (fs.existsSync(path.join(folder, 'node_modules', name, 'package.json'))) return true;
    if (folder === path.dirname(folder)) return false;
  }
};
const missing = request.declared.filter((name) => !found(name));
const [major] = process.versions.node.split('.');
fs.writeSync(3, JSON.stringify({ nonce: request.nonce, major: Number(major), missing }));
