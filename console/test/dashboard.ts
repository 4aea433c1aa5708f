// Tests how the body of a dashboard is read, which any user may have written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmName, dashboardOf, linesOf, queriesOf, WIDGETS_MAX } from '../src/lib/dashboard';

const first = (widget: unknown) => dashboardOf(JSON.stringify({ widgets: [widget] })).widgets[0]!;

test('rows of metrics repeat what the row above has', () => {
  const queries = queriesOf({
    stat: 'Maximum',
    period: 60,
    metrics: [
      ['team', 'loss', 'job', 'a', { stat: 'p90', label: 'of a', id: 'm1' }],
      ['.', 'accuracy', '.', 'b'],
      ['...', 'c', { period: 300, visible: false }],
      [{ expression: 'm1 * 2', label: 'double', id: 'e1' }],
    ],
  });
  const metric = (name: string, job: string) => ({ Namespace: 'team', MetricName: name, Dimensions: [{ Name: 'job', Value: job }] });
  assert.deepEqual(queries, [
    { Id: 'm1', Label: 'of a', ReturnData: true, MetricStat: { Metric: metric('loss', 'a'), Period: 60, Stat: 'p90' } },
    { Id: 'q1', ReturnData: true, MetricStat: { Metric: metric('accuracy', 'b'), Period: 60, Stat: 'Maximum' } },
    { Id: 'q2', ReturnData: false, MetricStat: { Metric: metric('accuracy', 'c'), Period: 300, Stat: 'Maximum' } },
    { Id: 'e1', Label: 'double', ReturnData: true, Expression: 'm1 * 2', Period: 60 },
  ]);
});

test('what is malformed is left out', () => {
  assert.deepEqual(queriesOf({ metrics: [7, null, [], ['only'], ['a', 'b', 'c'], ['...'], [{}], [{ expression: 7 }], 'text'] }), []);
  assert.deepEqual(queriesOf({ metrics: 'text' }), []);
  assert.equal(queriesOf({ metrics: [['a', 'b', { id: '<b>' }], ['a', 'b', { id: 'q0' }]] }).length, 1, 'an id is used once');
  assert.equal(queriesOf({ metrics: Array(1000).fill(['a', 'b']) }).length, 40);
});

test('widgets stay inside the grid', () => {
  const place = (widget: object) => {
    const { x, y, width, height } = first({ type: 'text', properties: {}, ...widget });
    return [x, y, width, height];
  };
  assert.deepEqual(place({}), [0, 0, 6, 6]);
  assert.deepEqual(place({ x: 23, width: 24 }), [0, 0, 24, 6]);
  assert.deepEqual(place({ x: -1, y: 1e300, width: 0, height: 1e9 }), [0, 2000, 1, 60]);
  assert.deepEqual(place({ x: 'a', y: null, width: [], height: {} }), [0, 0, 6, 6]);
});

test('texts are text, and control characters are visible', () => {
  assert.deepEqual(linesOf('# Team <b>\r\n[x](javascript:alert(1))\u001b\n#no heading'), [
    { heading: true, text: 'Team <b>' },
    { heading: false, text: '[x](javascript:alert(1))^[' },
    { heading: false, text: '#no heading' },
  ]);
  const text = first({ type: 'text', properties: { markdown: 7, title: '\u202ea' } });
  assert.equal(text.title, '\ufffda');
  assert.equal(first({ type: '<img>', properties: 7 }).type, 'other');
});

test('alarms are named by ARN or by name, thresholds are numbers', () => {
  assert.equal(alarmName('arn:aws:cloudwatch:us-east-1:123456789012:alarm:a:b'), 'a:b');
  assert.equal(alarmName('loss'), 'loss');
  assert.equal(alarmName(7), '');
  const widget = first({
    type: 'metric',
    properties: {
      region: 'us-east-1/../x',
      annotations: { horizontal: [{ value: 2, label: 'most' }, { value: '3' }, [{ value: 1 }, { value: 5 }], null], alarms: ['arn:x:alarm:a', 7] },
    },
  });
  assert.ok(widget.type === 'metric');
  assert.deepEqual(widget.thresholds, [{ value: 2, label: 'most' }, { value: 1, label: '1' }, { value: 5, label: '5' }]);
  assert.deepEqual([widget.alarms, widget.region, widget.single], [['a'], '', false]);
});

test('a dashboard has its widgets by rows, and a limit', () => {
  const body = { widgets: [{ type: 'text', y: 6, properties: {} }, { type: 'alarm', x: 6, properties: {} }, { type: 'metric', properties: {} }, 7] };
  assert.deepEqual(dashboardOf(JSON.stringify(body)).widgets.map((widget) => widget.type), ['metric', 'alarm', 'text']);
  const many = dashboardOf(JSON.stringify({ widgets: Array(500).fill({ type: 'text' }) }));
  assert.deepEqual([many.widgets.length, many.more], [WIDGETS_MAX, 500 - WIDGETS_MAX]);
  for (const other of ['[]', '7', 'null', '{"widgets":{}}']) assert.deepEqual(dashboardOf(other), { widgets: [], more: 0 });
  assert.throws(() => dashboardOf('no JSON'));
});
