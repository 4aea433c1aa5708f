// Computes the points of a metric for plots.

export interface Point {
  at: number; // seconds since 1970
  value: number;
  count: number; // of the values whose average it is
}

// Returns the exponential moving average, with the bias correction of TensorBoard: the first value
// equals the first point. `weight`: the weight of earlier points, in [0, 1).
export function smooth(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let sum = 0;
  let share = 1;
  return values.map((value) => {
    sum = sum * weight + (1 - weight) * value;
    share *= weight;
    return sum / (1 - share);
  });
}

// Returns the shortest period with at most `pointsMax` points between `from` and `to`. CloudWatch
// accepts 1, 5, 10 and 30 seconds and multiples of a minute.
export function periodOf(from: number, to: number, pointsMax: number): number {
  const needed = Math.max(1, (to - from) / pointsMax);
  const short = [1, 5, 10, 30].find((period) => period >= needed);
  return short ?? Math.ceil(needed / 60) * 60;
}

// Appends `fresh` to `old`, and replaces the points of `old` that are not before the first new one.
export function joined(old: readonly Point[], fresh: readonly Point[]): Point[] {
  const first = fresh[0];
  if (!first) return [...old];
  return [...old.filter((point) => point.at < first.at), ...fresh];
}
