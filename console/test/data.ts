import assert from 'node:assert/strict';
import { test } from 'node:test';
import { address, previewOf, rowsOf } from '../src/lib/data';

test('rows of a CSV file have quotes, separators and line ends in their cells', () => {
  assert.deepEqual(rowsOf('a,b\r\n1,"x, ""y""\nz"\n', ',', false), [
    ['a', 'b'],
    ['1', 'x, "y"\nz'],
  ]);
  assert.deepEqual(rowsOf('a\tb\n1', '\t', false), [['a', 'b'], ['1']]);
  assert.deepEqual(rowsOf('a,b\n1,', ',', true), [['a', 'b']], 'the last row may be a part');
  assert.deepEqual(rowsOf('', ',', false), []);
});

test('a preview is limited', () => {
  const wide = rowsOf(`${'x,'.repeat(10_000)}\n`, ',', false);
  assert.equal(wide[0]!.length, 50);
  const long = previewOf('a.csv', 'x\n'.repeat(10_000), 20_000);
  assert.ok(long.kind === 'table' && long.rows.length === 200 && long.more);
  const text = previewOf('a.txt', 'x\n'.repeat(10_000), 20_000);
  assert.ok(text.kind === 'text' && text.text.split('\n').length === 2000 && text.more);
  const line = previewOf('a.txt', 'x'.repeat(100_000), 100_000);
  assert.ok(line.kind === 'text' && line.text.length === 2000);
  assert.ok(previewOf('a.txt', 'whole', 5).kind === 'text');
  assert.equal(previewOf('a.bin', 'a\0b', 3).kind, 'none');
});

test('names of objects are parameters', () => {
  const url = new URL(address('text', { region: 'r', bucket: 'b', key: 'a&what=x/../#?é' }), 'http://h');
  assert.equal(url.pathname, '/console/objects');
  assert.equal(url.searchParams.get('key'), 'a&what=x/../#?é');
  assert.deepEqual(url.searchParams.getAll('what'), ['text']);
});
