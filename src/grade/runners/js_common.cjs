// Shared by the JavaScript runners. Loaded before any code of the project, and keeps its own references
// to what it needs, so that replacing a function later changes nothing here.
'use strict';
const { writeSync, existsSync } = require('node:fs');
const path = require('node:path');
const { createRequire } = require('node:module');

const quote = JSON.stringify;
const text = String;
const leave = process.reallyExit.bind(process);

const request = require('./request.cjs');
const { nonce, root } = request;
// What is handed on does not hold it.
delete request.nonce;
let number = 0;

// Strings are joined by hand: of an object, `JSON.stringify` would ask the object how.
function send(kind, { id = '', o = '', c = '', m = '', v = 0 } = {}) {
  let line = '{"n":' + quote(nonce) + ',"s":' + number + ',"k":' + quote(kind);
  line += ',"id":' + quote(text(id)) + ',"o":' + quote(o) + ',"c":' + quote(c);
  line += ',"m":' + quote(text(m)) + ',"v":' + v + '}\n';
  number += 1;
  for (;;) {
    try {
      // A line this short is taken whole or not at all.
      writeSync(3, line);
      return;
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

// Node opens its debugger to whoever sends this signal, and a debugger runs here what it is told to. A
// listener takes its place. For runners in a process of their own.
function keepDebuggerOut() {
  process.on('SIGUSR1', () => {});
}

function end(failed) {
  send('count', { v: number });
  send('end', { v: failed ? 1 : 0 });
}

const short = (value) => text(value ?? '').slice(0, 1500);

function relative(file) {
  return file ? path.relative(root, file).split(path.sep).join('/') : '';
}

// Name of a package in "Cannot find package 'x'" or "Cannot find module 'x'"; '' for a file.
function packageIn(message) {
  const found = /(?:Cannot find (?:package|module)|Failed to resolve import|Failed to load url) ['"]?([^'"\s]{1,300})/.exec(message);
  if (!found || /^[./]|^file:/.test(found[1])) return '';
  const parts = found[1].split('/');
  return parts[0].startsWith('@') ? parts.slice(0, 2).join('/') : parts[0];
}

const MISSING_MODULE = /MODULE_NOT_FOUND|Cannot find (?:package|module)|Failed to resolve import|Failed to load url/;
const MISSING_SYMBOL = /does not provide an export named|is not a function|is not a constructor|ReferenceError|is not defined|Cannot read properties of undefined/;

// [class, package that was not found]
function classify(message, isAssertion) {
  if (isAssertion) return ['assertion', ''];
  if (MISSING_MODULE.test(message)) return ['missing-module', packageIn(message)];
  if (MISSING_SYMBOL.test(message)) return ['missing-symbol', ''];
  if (/SyntaxError|Transform failed|Parse failure/.test(message)) return ['compile', ''];
  return ['error', ''];
}

function isAssertion(error) {
  return error?.code === 'ERR_ASSERTION' || error?.name === 'AssertionError';
}

function describe(error) {
  if (error === null || typeof error !== 'object') return short(error);
  return [error.name, error.code, error.message].map(short).join(' ');
}

// Loads a package of the runner from where `prepare` left it; never from a folder of the tree, but
// where the repository itself holds it.
function from(name) {
  for (const folder of request.modules) {
    if (existsSync(path.join(folder, name, 'package.json'))) {
      return { folder, require: createRequire(path.join(folder, 'x.cjs')) };
    }
  }
  throw new Error(name + ' is not installed');
}

module.exports = {
  request, keepDebuggerOut, send, end, leave, relative, classify, isAssertion, describe, from,
};
