// MetricReader reads metrics of jobs, repeatedly while the jobs run. Points before the last ones no longer
// change and are read once. One call reads many metrics: hundreds of small calls would take a browser
// longer than the interval between points.
import { call } from './api';
import { METRICS_NAMESPACE } from './jobs';
import { joined, periodOf, type Point } from './series';

const POINTS_MAX = 1400; // of one metric
const OVERLAP_SECONDS = 30; // values that arrive late
const QUERIES_MAX = 500; // of one call, as the server
const BEGIN_SECONDS = 60; // metrics that begin in the same minute are first read together
const RECENT_SECONDS = 10; // so are those whose last points are as close, by later calls
const PAGES_MAX = 20; // of one call: two of 100,800 values have 72 metrics with all their points
const READS_AT_ONCE = 6; // as many connections as a browser opens

export interface Wanted {
  job: string;
  metric: string;
  begin: number; // of the job
  end?: number; // nothing: it runs
}

export interface Slice {
  period: number;
  from: number;
  to: number;
  metrics: Wanted[];
}

interface Known {
  period: number;
  counts: boolean;
  points: Point[];
}

interface Answer {
  MetricDataResults?: { Id: string; Timestamps?: number[]; Values?: number[] }[];
  NextToken?: string;
}

function keyOf({ job, metric }: Wanted): string {
  return `${job} ${metric}`; // names of jobs have no space
}

// Returns the period of the points of a job.
export function periodOfJob(begin: number, end: number | undefined, now: number): number {
  return periodOf(begin, (end ?? now) + 61, POINTS_MAX);
}

// Groups metrics that one call can read: those with the same period and almost the same first point.
// `recent`: the last known point of a metric, or undefined. `counts`: each metric has two queries.
export function slicesOf(all: readonly Wanted[], recent: (one: Wanted, period: number) => number | undefined, now: number, counts = false): Slice[] {
  const slices: Slice[] = [];
  const metricsMax = counts ? QUERIES_MAX / 2 : QUERIES_MAX;
  const open = new Map<string, Slice>();
  for (const one of all) {
    const period = periodOfJob(one.begin, one.end, now);
    const last = recent(one, period);
    const start = last ? Math.max(one.begin - 1, last - OVERLAP_SECONDS) : one.begin - 1;
    const unit = Math.max(last ? RECENT_SECONDS : BEGIN_SECONDS, period);
    const from = Math.floor(start / unit) * unit;
    const to = (one.end ?? now) + 61;
    const key = `${period} ${from}`;
    let slice = open.get(key);
    if (!slice || slice.metrics.length >= metricsMax) {
      slice = { period, from, to, metrics: [] };
      slices.push(slice);
      open.set(key, slice);
    }
    slice.to = Math.max(slice.to, to);
    slice.metrics.push(one);
  }
  return slices;
}

export class MetricReader {
  private readonly known = new Map<string, Known>();

  constructor(private readonly region: string) {}

  // Calls found() with all points of each metric. Unless `counts` is true, a point counts as one value,
  // which halves what is read.
  async read(all: readonly Wanted[], counts: boolean, found: (one: Wanted, points: Point[]) => void): Promise<void> {
    const recent = (one: Wanted, period: number) => {
      const points = this.knownOf(one, period, counts);
      return points[points.length - 1]?.at;
    };
    const slices = slicesOf(all, recent, Date.now() / 1000, counts);
    const work = async () => {
      for (let slice = slices.shift(); slice; slice = slices.shift()) {
        const fresh = await this.readSlice(slice, counts);
        slice.metrics.forEach((one, i) => found(one, this.add(one, slice!.period, counts, fresh[i]!)));
      }
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE }, work));
  }

  private knownOf(one: Wanted, period: number, counts: boolean): Point[] {
    const known = this.known.get(keyOf(one));
    return known?.period === period && (known.counts || !counts) ? known.points : [];
  }

  private add(one: Wanted, period: number, counts: boolean, fresh: readonly Point[]): Point[] {
    const own = fresh.filter((point) => point.at >= one.begin - 1 - period);
    const points = joined(this.knownOf(one, period, counts), own);
    this.known.set(keyOf(one), { period, counts, points });
    return points;
  }

  private async readSlice({ period, from, to, metrics }: Slice, counts: boolean): Promise<Point[][]> {
    const MetricDataQueries = metrics.flatMap(({ job, metric }, i) => {
      const Metric = { Namespace: METRICS_NAMESPACE, MetricName: metric, Dimensions: [{ Name: 'TrainingJobName', Value: job }] };
      return [
        { Id: `a${i}`, MetricStat: { Metric, Period: period, Stat: 'Average' } },
        ...(counts ? [{ Id: `n${i}`, MetricStat: { Metric, Period: period, Stat: 'SampleCount' } }] : []),
      ];
    });
    const values = new Map<string, Map<number, number>>();
    let token: string | undefined;
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer: Answer = await call(this.region, 'cloudwatch', 'GetMetricData', {
        MetricDataQueries,
        StartTime: from,
        EndTime: to,
        ScanBy: 'TimestampAscending',
        ...(token && { NextToken: token }),
      });
      for (const { Id, Timestamps = [], Values = [] } of answer.MetricDataResults ?? []) {
        const known = values.get(Id) ?? new Map<number, number>();
        values.set(Id, known);
        Timestamps.forEach((at, i) => known.set(at, Values[i]!));
      }
      token = answer.NextToken;
      if (!token) break;
    }
    return metrics.map((_, i) => {
      const behind = values.get(`n${i}`);
      return [...(values.get(`a${i}`) ?? [])].map(([at, value]) => ({ at, value, count: behind?.get(at) ?? 1 }));
    });
  }
}
