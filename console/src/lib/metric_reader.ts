// MetricReader reads the metrics of one job, again and again while it runs: what lies before the
// last points changes no more and is read once.
import { call } from './api';
import { METRICS_NAMESPACE } from './jobs';
import { joined, periodOf, type Point } from './series';

const POINTS_MAX = 1400; // of one answer; the server's limit is 1,440
const OVERLAP_SECONDS = 30; // values that arrive late

interface Statistics {
  Datapoints?: { Timestamp: number; Average: number; SampleCount: number }[];
}

interface Known {
  period: number;
  points: Point[];
}

export class MetricReader {
  private readonly known = new Map<string, Known>();

  constructor(
    private readonly region: string,
    private readonly job: string,
  ) {}

  // `end`: of the job; nothing: it runs.
  async read(metric: string, begin: number, end?: number): Promise<Point[]> {
    const to = (end ?? Date.now() / 1000) + 61;
    const period = periodOf(begin, to, POINTS_MAX);
    const known = this.known.get(metric);
    const old = known?.period === period ? known.points : [];
    const recent = old[old.length - 1]?.at;
    const from = recent ? Math.max(begin, recent - OVERLAP_SECONDS) : begin - 1;
    const answer = await call<Statistics>(this.region, 'cloudwatch', 'GetMetricStatistics', {
      Namespace: METRICS_NAMESPACE,
      MetricName: metric,
      Dimensions: [{ Name: 'TrainingJobName', Value: this.job }],
      StartTime: Math.floor(from / period) * period,
      EndTime: to,
      Period: period,
      Statistics: ['Average', 'SampleCount'],
    });
    const fresh = (answer.Datapoints ?? [])
      .map((point) => ({ at: point.Timestamp, value: point.Average, count: point.SampleCount }))
      .sort((a, b) => a.at - b.at);
    const points = joined(old, fresh);
    this.known.set(metric, { period, points });
    return points;
  }
}
