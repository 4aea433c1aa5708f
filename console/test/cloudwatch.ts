// Tests what the page of alarms shows and which queries draw it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmState, conditionOf, fitted, queriesOfAlarm, secondsOf, type Alarm } from '../src/lib/cloudwatch';

const ALARM: Alarm = {
  AlarmName: 'loss',
  AlarmArn: 'arn:aws:cloudwatch:us-east-1:123456789012:alarm:loss',
  StateValue: 'OK',
  Namespace: 'team',
  MetricName: 'loss',
  Statistic: 'Average',
  Period: 10,
  EvaluationPeriods: 5,
  DatapointsToAlarm: 3,
  Threshold: 2.5,
  ComparisonOperator: 'GreaterThanThreshold',
};

test('a condition is one line of text', () => {
  assert.equal(conditionOf(ALARM), 'Average of loss > 2.5, in 3 of 5 periods of 10 s');
  assert.equal(conditionOf({ ...ALARM, DatapointsToAlarm: undefined, EvaluationPeriods: 2 }), 'Average of loss > 2.5, in 2 periods of 10 s');
  assert.equal(conditionOf({ ...ALARM, EvaluationPeriods: 1, DatapointsToAlarm: 1, Period: 60 }), 'Average of loss > 2.5, in a period of 1 min 00 s');
  const { MetricName: _name, Period: _period, ...math } = ALARM;
  const Metrics = [{ Id: 'e1', Expression: 'm1 / 2' }, { Id: 'm1', ReturnData: false, MetricStat: { Metric: { Namespace: 'team', MetricName: 'loss' }, Period: 30, Stat: 'Sum' } }];
  assert.equal(conditionOf({ ...math, Metrics, EvaluationPeriods: 1 }), 'm1 / 2 > 2.5, in a period of 30 s');
  assert.equal(conditionOf({ ...math, AlarmRule: 'ALARM(a) OR ALARM(b)' }), 'ALARM(a) OR ALARM(b)');
});

test('a state has a text, not a colour alone', () => {
  assert.deepEqual(alarmState(ALARM), { tone: 'good', text: 'OK' });
  assert.deepEqual(alarmState({ StateValue: 'ALARM' }), { tone: 'bad', text: 'In alarm' });
  assert.deepEqual(alarmState({ StateValue: 'INSUFFICIENT_DATA' }), { tone: 'idle', text: 'Insufficient data' });
});

test('the plot of an alarm has its own metric, statistic and dimensions', () => {
  const Dimensions = [{ Name: 'job', Value: 'a' }];
  assert.deepEqual(queriesOfAlarm({ ...ALARM, Dimensions }), [
    { Id: 'm1', Label: 'loss', MetricStat: { Metric: { Namespace: 'team', MetricName: 'loss', Dimensions }, Period: 10, Stat: 'Average' } },
  ]);
  assert.deepEqual(queriesOfAlarm({ ...ALARM, MetricName: undefined, AlarmRule: 'ALARM(a)' }), []);
});

test('a long time has longer periods, which CloudWatch accepts', () => {
  const periodAfter = (period: number, seconds: number) => fitted(queriesOfAlarm({ ...ALARM, Period: period }), 0, seconds)[0]!.MetricStat!.Period;
  assert.equal(periodAfter(10, 3600), 10);
  assert.equal(periodAfter(10, 7 * 86_400), 480);
  assert.equal(periodAfter(300, 7 * 86_400), 600);
  assert.equal(periodAfter(7, 86_400), 180, 'also of a period that is refused');
  assert.equal(secondsOf('1w'), 604_800);
  assert.equal(secondsOf('constructor'), 10_800);
});
