// What a patch can say in package.json that makes other code stand for what the tests import. Asked by the
// runners before any code of the project is loaded.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { isDeepStrictEqual } = require('node:util');

// undefined: none is there; null: it can't be read.
function packageIn(folder) {
  const place = path.join(folder, 'package.json');
  if (!fs.existsSync(place)) return undefined;
  try {
    return JSON.parse(fs.readFileSync(place, 'utf8'));
  } catch {
    return null;
  }
}

// To the files of a package its own name means the package itself, before what is installed under that name.
// Whether one above the sealed files bears the name of something installed, and no package of the base did.
function takesAName({ root, modules, folders, names }) {
  const isInstalled = (name) => modules.some((folder) => fs.existsSync(path.join(folder, name)));
  const seen = new Set();
  for (let folder of folders) {
    for (; !seen.has(folder); folder = path.dirname(folder)) {
      seen.add(folder);
      const own = packageIn(folder);
      if (own === null) return true;
      const name = own?.name;
      if (typeof name === 'string' && name && !names.includes(name) && isInstalled(name)) return true;
      if (folder === root) break;
    }
  }
  return false;
}

// Whether Babel is told something else than on the base.
function turnsBabel({ root, babel }) {
  return !isDeepStrictEqual(packageIn(root)?.babel ?? null, babel);
}

module.exports = { takesAName, turnsBabel };
