import assert from 'node:assert/strict';
import { test } from 'node:test';
import { traceFileName } from '../src/lib/timeline';

test('the file of a timeline is named after the job', () => {
  assert.equal(traceFileName('mnist-1'), 'mnist-1.trace.json');
  assert.equal(traceFileName('4b7d0f12:7'), '4b7d0f12_7.trace.json');
  assert.equal(traceFileName('../a b'), '.._a_b.trace.json');
});
