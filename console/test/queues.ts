import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../src/lib/jobs';
import { fairShares, nameInArn, quotaShares, unitText, waitingOutside, weightOf } from '../src/lib/queues';

const usage = (quantity: number) => [{ capacityUnit: 'VCPU', quantity }];

test('a share has the weight of its longest pattern', () => {
  const weights = [
    { shareIdentifier: 'team*', weightFactor: 0.5 },
    { shareIdentifier: 'teamA*', weightFactor: 0.25 },
    { shareIdentifier: 'bob' },
  ];
  assert.equal(weightOf('teamB', weights), 0.5);
  assert.equal(weightOf('teamA1', weights), 0.25);
  assert.equal(weightOf('bob', weights), 1);
  assert.equal(weightOf('eve', weights), 1);
});

test('half the weight is twice the share', () => {
  const shares = fairShares(
    [
      { shareIdentifier: 'a', capacityUsage: usage(3) },
      { shareIdentifier: 'b', capacityUsage: usage(1) },
    ],
    [{ shareIdentifier: 'a', weightFactor: 0.5 }, { shareIdentifier: 'c' }, { shareIdentifier: 'd*' }],
  );
  assert.deepEqual(shares.map(({ name, used, due }) => [name, used, due?.toFixed(3)]), [
    ['a', 0.75, '0.667'],
    ['b', 0.25, '0.333'],
    ['c', 0, undefined],
  ]);
});

test('a quota share is shown with its limits', () => {
  const [red, blue] = quotaShares(
    [{ quotaShareName: 'red', capacityUsage: usage(2) }],
    [
      { quotaShareName: 'red', capacityLimits: [{ maxCapacity: 4, capacityUnit: 'VCPU' }] },
      { quotaShareName: 'blue' },
    ],
  );
  assert.deepEqual(red, { name: 'red', used: 1, limits: [{ unit: 'VCPU', used: 2, most: 4 }] });
  assert.deepEqual(blue, { name: 'blue', used: 0, limits: [] });
});

test('training jobs outside of queues wait in the order of their creation', () => {
  const job = (Name: string, CreationTime: number, more: Partial<Job> = {}) =>
    ({ Name, CreationTime, Arn: `arn:aws:sagemaker:r:1:training-job/${Name}`, Status: 'InProgress', WaitReason: 'waits', ...more }) as Job;
  const waiting = waitingOutside([
    job('late', 3),
    job('early', 1),
    job('runs', 0, { WaitReason: undefined }),
    job('queued', 0, { DisplayName: 'queued' }),
    job('batch', 0, { Arn: 'arn:aws:batch:r:1:job/batch' }),
  ]);
  assert.deepEqual(waiting.map(({ name }) => name), ['early', 'late']);
});

test('units are shown as people say them', () => {
  assert.equal(unitText('VCPU', 3), '3 vCPU');
  assert.equal(unitText('VCPU', 0.25), '0.25 vCPU');
  assert.equal(unitText('ml.m5.large', 2), '2 × ml.m5.large');
  assert.equal(nameInArn('arn:aws:batch:r:1:job-queue/nightly'), 'nightly');
  assert.equal(nameInArn('nightly'), 'nightly');
});
