// Parses the body of a dashboard. Any user with the permission to put dashboards may have written it, so
// values of unexpected types are left out, and everything has a limit.
import type { Dimension, MetricQuery } from './cloudwatch';
import { plain } from './format';

export interface Line {
  heading: boolean;
  text: string;
}

export interface Threshold {
  value: number;
  label: string;
}

interface GridPosition {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Widget = GridPosition & { title: string } & (
    | { type: 'text'; lines: Line[] }
    | { type: 'alarm'; alarms: string[] }
    | { type: 'metric'; region: string; queries: MetricQuery[]; thresholds: Threshold[]; alarms: string[]; single: boolean }
    | { type: 'other'; name: string }
  );

export interface Dashboard {
  widgets: Widget[];
  more: number; // that are not drawn
}

export const WIDGETS_MAX = 60; // drawn
const COLUMNS = 24;
const ROWS_MAX = 2000;
const HEIGHT_MAX = 60;
const CURVES_MAX = 40; // of a widget
const ALARMS_MAX = 100;
const LINES_MAX = 400;
const CHARACTERS_MAX = 1000; // of a line, a title, a label

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, CHARACTERS_MAX) : '');
const shownText = (value: unknown): string => plain(textOf(value));

function whole(value: unknown, otherwise: number, least: number, most: number): number {
  const number = typeof value === 'number' && Number.isFinite(value) ? Math.floor(value) : otherwise;
  return Math.min(most, Math.max(least, number));
}

// Parses the headings of Markdown; all else is plain text.
export function linesOf(markdown: string): Line[] {
  return markdown
    .split('\n')
    .slice(0, LINES_MAX)
    .map((line) => {
      const heading = /^#{1,6} +/.exec(line);
      return { heading: !!heading, text: plain(line.slice(heading?.[0].length ?? 0, CHARACTERS_MAX).replace(/\r$/, '')) };
    });
}

// Returns the alarm "loss" of "arn:aws:cloudwatch:us-east-1:123456789012:alarm:loss".
export function alarmName(arn: unknown): string {
  const text = textOf(arn);
  const at = text.indexOf(':alarm:');
  return at < 0 ? text : text.slice(at + 7);
}

function alarmsIn(value: unknown): string[] {
  return listOf(value).map(alarmName).filter((name) => name).slice(0, ALARMS_MAX);
}

const NAME = /^[a-z][A-Za-z0-9_]{0,254}$/;

interface Defaults {
  stat: string;
  period: number;
}

// Parses one row of `metrics`: [namespace, name, dimension, value, .., options] or [options]. `before`: the
// texts of the previous row, which "." and "..." repeat.
function queryOf(row: unknown[], before: string[], id: string, defaults: Defaults): { query?: MetricQuery; texts: string[] } {
  const last = row[row.length - 1];
  const options: Json = isObject(last) ? last : {};
  let texts = row.filter((one): one is string => typeof one === 'string').map((one) => one.slice(0, CHARACTERS_MAX));
  if (texts[0] === '...') {
    const rest = texts.slice(1);
    texts = [...before.slice(0, Math.max(0, before.length - rest.length)), ...rest];
  }
  texts = texts.map((one, i) => (one === '.' ? (before[i] ?? '') : one));
  const own = textOf(options.id);
  const label = shownText(options.label);
  const common = { Id: NAME.test(own) ? own : id, ...(label && { Label: label }), ReturnData: options.visible !== false };
  const period = whole(options.period, defaults.period, 1, 86_400);
  const expression = textOf(options.expression);
  if (!texts.length) return { ...(expression && { query: { ...common, Expression: expression, Period: period } }), texts: before };
  const [namespace, name, ...pairs] = texts;
  if (!namespace || !name || pairs.length % 2) return { texts };
  const dimensions: Dimension[] = [];
  for (let i = 0; i < pairs.length; i += 2) dimensions.push({ Name: pairs[i]!, Value: pairs[i + 1]! });
  const metric = { Namespace: namespace, MetricName: name, Dimensions: dimensions };
  return { query: { ...common, MetricStat: { Metric: metric, Period: period, Stat: textOf(options.stat) || defaults.stat } }, texts };
}

export function queriesOf(properties: Json): MetricQuery[] {
  const defaults = { stat: textOf(properties.stat) || 'Average', period: whole(properties.period, 300, 1, 86_400) };
  const found: MetricQuery[] = [];
  const ids = new Set<string>();
  let before: string[] = [];
  listOf(properties.metrics).slice(0, CURVES_MAX).forEach((row, i) => {
    const { query, texts } = queryOf(listOf(row), before, `q${i}`, defaults);
    before = texts;
    if (!query || ids.has(query.Id)) return;
    ids.add(query.Id);
    found.push(query);
  });
  return found;
}

function thresholdsOf(annotations: unknown): Threshold[] {
  const horizontal = isObject(annotations) ? listOf(annotations.horizontal) : [];
  return horizontal
    .flat()
    .filter(isObject)
    .filter((one) => typeof one.value === 'number' && Number.isFinite(one.value))
    .slice(0, 10)
    .map((one) => ({ value: one.value as number, label: shownText(one.label) || String(one.value) }));
}

function widgetOf(value: Json, place: GridPosition): Widget {
  const properties = isObject(value.properties) ? value.properties : {};
  const title = shownText(properties.title);
  const common = { ...place, title };
  const type = textOf(value.type);
  if (type === 'text')
    return { ...common, type, lines: linesOf(typeof properties.markdown === 'string' ? properties.markdown : '') };
  if (type === 'alarm') return { ...common, type, alarms: alarmsIn(properties.alarms) };
  if (type !== 'metric') return { ...common, type: 'other', name: plain(type) };
  const annotations = properties.annotations;
  return {
    ...common,
    type,
    region: /^[a-z0-9-]{1,64}$/.test(textOf(properties.region)) ? textOf(properties.region) : '',
    queries: queriesOf(properties),
    thresholds: thresholdsOf(annotations),
    alarms: isObject(annotations) ? alarmsIn(annotations.alarms) : [],
    single: properties.view === 'singleValue' || properties.view === 'gauge',
  };
}

// Returns the widgets, ordered by rows. Throws an Error if the text is not the JSON of a dashboard.
export function dashboardOf(body: string): Dashboard {
  const read: unknown = JSON.parse(body);
  const all = (isObject(read) ? listOf(read.widgets) : []).filter(isObject);
  const widgets = all.slice(0, WIDGETS_MAX).map((value) => {
    const width = whole(value.width, 6, 1, COLUMNS);
    return widgetOf(value, {
      x: whole(value.x, 0, 0, COLUMNS - width),
      y: whole(value.y, 0, 0, ROWS_MAX),
      width,
      height: whole(value.height, 6, 1, HEIGHT_MAX),
    });
  });
  widgets.sort((a, b) => a.y - b.y || a.x - b.x);
  return { widgets, more: all.length - widgets.length };
}
