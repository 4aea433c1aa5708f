// Computes the x axes of plots: time, steps, epochs. Points have a time only; a step is a value that the
// job reported, and epochs are the values of the metric with that name.
import type { Point } from './series';

export type Axis = 'time' | 'step' | 'epoch';

export function axisOf(text: string): Axis {
  return text === 'step' || text === 'epoch' ? text : 'time';
}

// Matches "epoch", "train:epoch" and "Epochs"; not "epoch_time".
export function isEpoch(metric: string): boolean {
  return /(^|[^a-z0-9])epochs?$/i.test(metric);
}

// Interpolates the epoch at a time, so that the points of one epoch have different positions. Behind the
// last value it extrapolates by less than an epoch.
export function epochAt(epochs: readonly Point[], at: number): number | undefined {
  const first = epochs[0];
  if (!first || at < first.at) return undefined;
  let low = 0;
  let high = epochs.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (epochs[middle]!.at <= at) low = middle;
    else high = middle - 1;
  }
  const here = epochs[low]!;
  const next = epochs[low + 1];
  if (next)
    return here.value + ((at - here.at) / (next.at - here.at)) * (next.value - here.value);
  const before = epochs[low - 1];
  if (!before) return here.value;
  const pace = Math.max(0, (here.value - before.value) / (here.at - before.at));
  return here.value + Math.min(0.999, (at - here.at) * pace);
}

export interface Placed {
  x: number;
  value: number;
  at: number; // seconds since 1970
}

// Returns the points in ascending order of x, without points that have no x. `begin`: the zero of the
// time axis.
export function placed(
  points: readonly Point[],
  axis: Axis,
  begin: number,
  epochs: readonly Point[] = [],
): Placed[] {
  let steps = 0;
  const out: Placed[] = [];
  for (const { at, value, count } of points) {
    steps += count;
    const x = axis === 'time' ? at - begin : axis === 'step' ? steps : epochAt(epochs, at);
    if (x === undefined) continue;
    const last = out[out.length - 1];
    // A job that continued from a checkpoint repeats epochs; the order is by time.
    if (last && x < last.x) continue;
    if (last && x === last.x) out[out.length - 1] = { x, value, at };
    else out.push({ x, value, at });
  }
  return out;
}
