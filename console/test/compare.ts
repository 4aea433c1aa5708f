import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMPARED_MAX, coordinates, dashOf, hyperparameterRows, metricRows, namesIn, toggled, type Compared } from '../src/lib/compare';
import type { Job } from '../src/lib/jobs';

function compared(name: string, hyper: Record<string, string>, metrics: Record<string, number> = {}): Compared {
  const Metrics = Object.entries(metrics).map(([Name, Value]) => ({ Name, Value, At: 0 }));
  return {
    name,
    job: { Name: name, Metrics } as Job,
    training: { TrainingJobName: name, HyperParameters: hyper },
  };
}

test('the address has each job once, and no more than a person tells apart', () => {
  assert.deepEqual(namesIn('a,b,,a'), ['a', 'b']);
  assert.deepEqual(namesIn(''), []);
  assert.equal(namesIn(Array.from({ length: 99 }, (_, i) => `j${i}`).join(',')).length, COMPARED_MAX);
  assert.deepEqual(toggled(['a', 'b'], 'a'), ['b']);
  assert.deepEqual(toggled(['a'], 'b'), ['a', 'b']);
  assert.notDeepEqual(dashOf(0), dashOf(8), 'two jobs of one colour');
});

test('rows say where jobs differ', () => {
  const rows = hyperparameterRows([
    compared('a', { lr: '0.1', epochs: '3', toString: 'x' }),
    compared('b', { lr: '0.2', epochs: '3' }),
  ]);
  assert.deepEqual(rows, [
    { name: 'epochs', values: ['3', '3'], differs: false },
    { name: 'lr', values: ['0.1', '0.2'], differs: true },
    { name: 'toString', values: ['x', undefined], differs: true },
  ]);
  assert.deepEqual(metricRows([compared('a', {}, { loss: 1 }), compared('b', {})]), [
    { name: 'loss', values: [1, undefined] },
  ]);
});

test('coordinates are numbers, by size or by ratio, or texts in order', () => {
  const axes = coordinates(
    [
      compared('a', { lr: '0.001', optimizer: 'sgd', width: '1' }, { loss: 3 }),
      compared('b', { lr: '0.1', optimizer: 'adam', width: '2' }, { loss: 1 }),
      compared('c', { lr: '0.01', optimizer: 'sgd' }, {}),
    ],
    String,
  );
  assert.deepEqual(axes.map(({ name, kind, logarithmic }) => [name, kind, logarithmic]), [
    ['lr', 'hyperparameter', true],
    ['optimizer', 'hyperparameter', false],
    ['width', 'hyperparameter', false],
    ['loss', 'metric', false],
  ]);
  assert.deepEqual(axes[0]!.places.map((place) => place!.toFixed(6)), ['0.000000', '1.000000', '0.500000']);
  assert.deepEqual(axes[1]!.places, [1, 0, 1]);
  assert.deepEqual(axes[2]!.places, [0, 1, undefined]);
  assert.deepEqual(axes[3]!.ticks, [{ text: '1', place: 0 }, { text: '3', place: 1 }]);
});

test('equal jobs have no coordinates but those of their metrics', () => {
  const axes = coordinates([compared('a', { lr: '1' }, { loss: 2 }), compared('b', { lr: '1' }, { loss: 2 })], String);
  assert.deepEqual(axes.map(({ name, places }) => [name, places]), [['loss', [0.5, 0.5]]]);
});
