import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axisOf, epochAt, isEpoch, placed } from '../src/lib/axis';

const point = (at: number, value: number, count = 1) => ({ at, value, count });

test('steps count the values behind each point', () => {
  const points = [point(10, 1, 2), point(11, 2, 3)];
  assert.deepEqual(placed(points, 'step', 0).map(({ x }) => x), [2, 5]);
  assert.deepEqual(placed(points, 'time', 4).map(({ x }) => x), [6, 7]);
});

test('between two epochs a point lies between them', () => {
  const epochs = [point(10, 1), point(20, 2), point(40, 3)];
  assert.equal(epochAt(epochs, 9), undefined);
  assert.equal(epochAt(epochs, 10), 1);
  assert.equal(epochAt(epochs, 15), 1.5);
  assert.equal(epochAt(epochs, 30), 2.5);
  assert.equal(epochAt(epochs, 45), 3.25, 'as fast as before');
  assert.ok(epochAt(epochs, 1e9)! < 4, 'but not into the next one');
  assert.equal(epochAt([point(10, 1)], 50), 1);
  assert.deepEqual(placed([point(5, 0), point(15, 7)], 'epoch', 0, epochs), [
    { x: 1.5, value: 7, at: 15 },
  ]);
});

test('an axis never goes back', () => {
  const epochs = [point(10, 1), point(20, 2), point(30, 1), point(40, 2)];
  const xs = placed([10, 15, 20, 30, 35, 40].map((at) => point(at, at)), 'epoch', 0, epochs).map(({ x }) => x);
  assert.deepEqual(xs, [...xs].sort((a, b) => a - b));
  assert.equal(new Set(xs).size, xs.length);
});

test('metrics that count epochs are known by their name', () => {
  for (const name of ['epoch', 'train:epoch', 'Epochs', 'val/epoch']) assert.ok(isEpoch(name), name);
  for (const name of ['epoch_time', 'epochal', 'myepoch', 'loss']) assert.ok(!isEpoch(name), name);
  assert.equal(axisOf('epoch'), 'epoch');
  assert.equal(axisOf('<b>'), 'time');
});
