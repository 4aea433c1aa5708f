// Reads alarms and values of metrics with CloudWatch's operations.
import { call, callPages } from './api';
import { duration, number } from './format';
import type { Tone } from './jobs';
import { periodOf } from './series';

export interface Dimension {
  Name: string;
  Value: string;
}

export interface MetricQuery {
  Id: string;
  Label?: string;
  Expression?: string;
  Period?: number;
  ReturnData?: boolean;
  MetricStat?: {
    Metric: { Namespace: string; MetricName: string; Dimensions?: Dimension[] };
    Period: number;
    Stat: string;
    Unit?: string;
  };
}

export interface Alarm {
  AlarmName: string;
  AlarmArn: string;
  AlarmDescription?: string;
  ActionsEnabled?: boolean;
  OKActions?: string[];
  AlarmActions?: string[];
  InsufficientDataActions?: string[];
  StateValue: string; // "OK", "ALARM", "INSUFFICIENT_DATA"
  StateReason?: string;
  StateUpdatedTimestamp?: number;
  // of a metric
  Namespace?: string;
  MetricName?: string;
  Dimensions?: Dimension[];
  Statistic?: string;
  ExtendedStatistic?: string;
  Unit?: string;
  Period?: number;
  EvaluationPeriods?: number;
  DatapointsToAlarm?: number;
  Threshold?: number;
  ComparisonOperator?: string;
  Metrics?: MetricQuery[];
  // of other alarms
  AlarmRule?: string;
}

export interface HistoryItem {
  Timestamp: number;
  HistoryItemType: string;
  HistorySummary?: string;
}

export interface MetricPoint {
  at: number; // seconds since 1970
  value: number;
}

export interface MetricCurve {
  label: string;
  points: MetricPoint[];
}

export const ALARMS_MAX = 1000;
const TYPES = ['MetricAlarm', 'CompositeAlarm'];
const HISTORY_MAX = 50;
const POINTS_MAX = 1400; // of one curve
const PAGES_MAX = 10;

async function readAlarms(region: string, input: object): Promise<Alarm[]> {
  return (await callPages<Alarm>(region, 'cloudwatch', 'DescribeAlarms', { AlarmTypes: TYPES, ...input }, ['MetricAlarms', 'CompositeAlarms'], ALARMS_MAX)).items;
}

// Orders alarms: those in the state ALARM first.
export async function listAlarms(region: string): Promise<Alarm[]> {
  const rank = (alarm: Alarm) => ['ALARM', 'INSUFFICIENT_DATA', 'OK'].indexOf(alarm.StateValue);
  return (await readAlarms(region, {})).sort((a, b) => rank(a) - rank(b) || a.AlarmName.localeCompare(b.AlarmName));
}

export function findAlarms(region: string, names: readonly string[]): Promise<Alarm[]> {
  return names.length ? readAlarms(region, { AlarmNames: names.slice(0, 100) }) : Promise.resolve([]);
}

export async function readHistory(region: string, alarm: string): Promise<HistoryItem[]> {
  const input = { AlarmName: alarm, AlarmTypes: TYPES, MaxRecords: HISTORY_MAX };
  return (await call<{ AlarmHistoryItems?: HistoryItem[] }>(region, 'cloudwatch', 'DescribeAlarmHistory', input)).AlarmHistoryItems ?? [];
}

export function alarmState(alarm: { StateValue: string }): { tone: Tone; text: string } {
  if (alarm.StateValue === 'OK') return { tone: 'good', text: 'OK' };
  if (alarm.StateValue === 'ALARM') return { tone: 'bad', text: 'In alarm' };
  return { tone: 'idle', text: 'Insufficient data' };
}

const SIGNS: Record<string, string> = {
  GreaterThanThreshold: '>',
  GreaterThanOrEqualToThreshold: '≥',
  LessThanThreshold: '<',
  LessThanOrEqualToThreshold: '≤',
};

// Describes a condition: "Average of train:loss > 2, in 3 of 5 periods of 60 s".
export function conditionOf(alarm: Alarm): string {
  if (alarm.AlarmRule) return alarm.AlarmRule;
  const query = alarm.Metrics?.find((one) => one.ReturnData !== false) ?? alarm.Metrics?.[0];
  const what = alarm.MetricName
    ? `${alarm.Statistic ?? alarm.ExtendedStatistic ?? ''} of ${alarm.MetricName}`
    : (query?.Label ?? query?.Expression ?? query?.Id ?? 'a metric');
  const sign = SIGNS[alarm.ComparisonOperator ?? ''] ?? alarm.ComparisonOperator ?? '';
  const periods = alarm.EvaluationPeriods ?? 1;
  const needed = alarm.DatapointsToAlarm ?? periods;
  const period = periodOfAlarm(alarm);
  const long = `${periods === 1 ? 'a period' : `${needed === periods ? '' : `${needed} of `}${periods} periods`} of ${duration(period)}`;
  return `${what} ${sign} ${alarm.Threshold === undefined ? 'a threshold' : number(alarm.Threshold)}, in ${long}`;
}

function periodOfAlarm(alarm: Alarm): number {
  const periods = (alarm.Metrics ?? []).map((one) => one.MetricStat?.Period ?? one.Period ?? 0);
  return alarm.Period ?? (Math.max(0, ...periods) || 60);
}

// Returns the queries for the metrics of an alarm.
export function queriesOfAlarm(alarm: Alarm): MetricQuery[] {
  if (alarm.Metrics?.length) return alarm.Metrics;
  if (!alarm.MetricName || !alarm.Namespace) return [];
  const metric = { Namespace: alarm.Namespace, MetricName: alarm.MetricName, Dimensions: alarm.Dimensions ?? [] };
  const stat = alarm.Statistic ?? alarm.ExtendedStatistic ?? 'Average';
  return [
    {
      Id: 'm1',
      Label: alarm.MetricName,
      MetricStat: { Metric: metric, Period: alarm.Period ?? 60, Stat: stat, ...(alarm.Unit && { Unit: alarm.Unit }) },
    },
  ];
}

// Returns the queries with periods long enough for the points of a plot: multiples of the queries' periods
// and of a minute, which CloudWatch accepts.
export function fitted(queries: readonly MetricQuery[], from: number, to: number): MetricQuery[] {
  const least = periodOf(from, to, POINTS_MAX);
  const long = (period: number) => {
    if (period >= least) return period;
    const multiple = Math.ceil(least / period) * period;
    return Math.ceil(multiple / 60) * 60;
  };
  return queries.map((query) => ({
    ...query,
    ...(query.Period && { Period: long(query.Period) }),
    ...(query.MetricStat && { MetricStat: { ...query.MetricStat, Period: long(query.MetricStat.Period) } }),
  }));
}

interface MetricPage {
  MetricDataResults?: { Id: string; Label?: string; Timestamps?: number[]; Values?: number[] }[];
  NextToken?: string;
}

export async function readCurves(region: string, queries: readonly MetricQuery[], from: number, to: number): Promise<MetricCurve[]> {
  const found = new Map<string, MetricCurve>();
  let token: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer: MetricPage = await call(region, 'cloudwatch', 'GetMetricData', {
      MetricDataQueries: fitted(queries, from, to),
      StartTime: Math.floor(from),
      EndTime: Math.ceil(to),
      ScanBy: 'TimestampAscending',
      ...(token && { NextToken: token }),
    });
    for (const result of answer.MetricDataResults ?? []) {
      const key = JSON.stringify([result.Id, result.Label]); // a search has several of one id
      const curve = found.get(key) ?? { label: result.Label ?? result.Id, points: [] };
      found.set(key, curve);
      const values = result.Values ?? [];
      (result.Timestamps ?? []).forEach((at, i) => {
        const value = values[i];
        if (typeof value === 'number' && Number.isFinite(value)) curve.points.push({ at, value });
      });
    }
    token = answer.NextToken;
    if (!token) break;
  }
  return [...found.values()];
}

// The time ranges of plots, by their names in the URL.
export const RANGES: readonly (readonly [string, string, number])[] = [
  ['1h', '1 hour', 3600],
  ['', '3 hours', 3 * 3600],
  ['12h', '12 hours', 12 * 3600],
  ['1d', '1 day', 86_400],
  ['1w', '1 week', 7 * 86_400],
];

export function secondsOf(range: string): number {
  return RANGES.find(([name]) => name === range)?.[2] ?? 3 * 3600;
}
