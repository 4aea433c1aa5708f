import assert from 'node:assert/strict';
import { test } from 'node:test';
import { periodOfJob, slicesOf, type Wanted } from '../src/lib/metric_reader';

const NOW = 1_800_000_000;
const none = () => undefined;
const wanted = (job: string, begin: number, end?: number): Wanted => ({ job, metric: 'loss', begin, end });

test('metrics of jobs that began in the same minute are read by one call', () => {
  const minute = Math.floor((NOW - 600) / 60) * 60;
  const slices = slicesOf([wanted('a', minute + 5), wanted('b', minute + 40), wanted('c', minute - 60)], none, NOW);
  assert.deepEqual(
    slices.map((slice) => slice.metrics.map((one) => one.job)),
    [['a', 'b'], ['c']],
  );
  assert.equal(slices[0]!.from, minute);
  assert.equal(slices[0]!.to, NOW + 61);
});

test('a call has 500 queries at most, and each metric is in one call', () => {
  const all = Array.from({ length: 601 }, (_, i) => wanted(`job-${i}`, NOW - 600));
  const slices = slicesOf(all, none, NOW, true);
  assert.deepEqual(
    slices.map((slice) => slice.metrics.length),
    [250, 250, 101],
  );
  assert.deepEqual(
    slicesOf(all, none, NOW).map((slice) => slice.metrics.length),
    [500, 101],
  );
  assert.deepEqual(
    slices.flatMap((slice) => slice.metrics),
    all,
  );
});

test('metrics with different periods are read by different calls', () => {
  const day = 86_400;
  const slices = slicesOf([wanted('long', NOW - 30 * day, NOW - day), wanted('short', NOW - day - 60, NOW - day)], none, NOW);
  assert.equal(slices.length, 2);
  assert.notEqual(slices[0]!.period, slices[1]!.period);
  assert.equal(slices[0]!.period, periodOfJob(NOW - 30 * day, NOW - day, NOW));
});

test('only the last points of a known metric are read again', () => {
  const begin = NOW - 1200;
  const [slice] = slicesOf([wanted('a', begin)], () => NOW - 10, NOW);
  assert.ok(slice!.from <= NOW - 40 && slice!.from > NOW - 60);
  const [first] = slicesOf([wanted('a', begin)], none, NOW);
  assert.ok(first!.from <= begin - 1);
});

test('an ended job is read until a minute after its end', () => {
  assert.equal(slicesOf([wanted('a', NOW - 1200, NOW - 600)], none, NOW)[0]!.to, NOW - 600 + 61);
});
