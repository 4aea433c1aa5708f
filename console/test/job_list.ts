import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Changes, merged } from '../src/lib/job_list';
import type { Job } from '../src/lib/jobs';

function job(name: string, created: number, status = 'InProgress'): Job {
  return { Name: name, CreationTime: created, Status: status } as Job;
}
const namesOf = (jobs: readonly Job[]) => jobs.map((one) => one.Name);

test('the whole list is read first, and then only jobs that changed', () => {
  const changes = new Changes();
  changes.add(['a']);
  assert.equal(changes.take(), undefined);
  changes.add(['a', 'b', 'a']);
  assert.deepEqual(changes.take(), ['a', 'b']);
  assert.deepEqual(changes.take(), []);
  changes.add(['a']);
  changes.addAll();
  assert.equal(changes.take(), undefined);
  assert.deepEqual(changes.take(), []);
});

test('the whole list is read if more jobs changed than one call returns', () => {
  const changes = new Changes();
  changes.take();
  changes.add(Array.from({ length: 100 }, (_, i) => `job-${i}`));
  assert.equal(changes.take()?.length, 100);
  changes.add(Array.from({ length: 101 }, (_, i) => `job-${i}`));
  assert.equal(changes.take(), undefined);
});

test('a child of an array changes the row of the array', () => {
  const changes = new Changes();
  changes.take();
  changes.add(['4b7d:0', '4b7d:17']);
  assert.deepEqual(changes.take(), ['4b7d']);
});

test('changed jobs are replaced, added and removed in the order of the server', () => {
  const list = [job('c', 3), job('b', 2), job('a', 2)];
  const found = [job('new', 4), job('b', 2, 'Stopping')];
  const now = merged(list, ['new', 'b', 'c'], found, false);
  assert.deepEqual(namesOf(now), ['new', 'b', 'a']);
  assert.equal(now[1]!.Status, 'Stopping');
  assert.deepEqual(namesOf(list), ['c', 'b', 'a']);
  assert.deepEqual(namesOf(merged([], ['x'], [job('x', 1)], false)), ['x']);
});

test('a job beyond the last row of a list that continues is left out', () => {
  const list = [job('c', 3), job('b', 2)];
  assert.deepEqual(namesOf(merged(list, ['a', 'b'], [job('a', 1), job('b', 2)], true)), ['c', 'b']);
  assert.deepEqual(namesOf(merged(list, ['a'], [job('a', 1)], false)), ['c', 'b', 'a']);
});
