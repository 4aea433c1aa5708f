import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startsIn } from '../src/lib/explanation';
import { pieces, ratio, type JobTime } from '../src/lib/job_time';

const TIME: JobTime = {
  JobName: 'mnist',
  WallMilliseconds: 80_000,
  HeldMilliseconds: 70_000,
  Uses: [
    { Use: 'Queued', Milliseconds: 10_000 },
    { Use: 'Training', Milliseconds: 60_000 },
    { Use: 'NewUse', Milliseconds: 10_000 },
  ],
  EffectiveTrainingTimeRatio: 0.75,
  Goodput: 0.857,
  LostWorkIsKnown: true,
};

test('the uses of time have their part of the whole', () => {
  const shown = pieces(TIME);
  assert.deepEqual(
    shown.map((piece) => piece.text),
    ['Queued', 'Training', 'NewUse'],
  );
  assert.equal(shown[1]!.percent, 75);
  assert.equal(shown[1]!.seconds, 60);
  assert.equal(
    shown.reduce((sum, piece) => sum + piece.percent, 0),
    100,
  );
  assert.deepEqual(pieces({ ...TIME, WallMilliseconds: 0, Uses: [] }), []);
});

test('a ratio of unknown lost work is an upper bound', () => {
  assert.equal(ratio(0.745, true), '74.5 %');
  assert.equal(ratio(0.745, false), 'at most 74.5 %');
});

test('a start is now or in some time', () => {
  assert.equal(startsIn(100, 100), 'now');
  assert.equal(startsIn(160, 100), 'in 1 min 00 s');
});
