// The x axes of plots: time, steps, epochs. Points come with their time only; a step is a value that
// the job reported, and epochs are the values of the metric with that name.
import type { Point } from './series';

export type Axis = 'time' | 'step' | 'epoch';

export function axisOf(text: string): Axis {
  return text === 'step' || text === 'epoch' ? text : 'time';
}

// "epoch", "train:epoch", "Epochs"; not "epoch_time".
export function isEpoch(metric: string): boolean {
  return /(^|[^a-z0-9])epochs?$/i.test(metric);
}

// Between two values of the epoch the position moves evenly with time, so that the points of one
// epoch do not lie on each other; behind the last one it moves on as before, by less than an epoch.
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

// `begin`: the zero of the axis of time. The result ascends in x; points without a place on the axis
// are left out.
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
    // A job that began again from a checkpoint repeats epochs: they follow each other in time.
    if (last && x < last.x) continue;
    if (last && x === last.x) out[out.length - 1] = { x, value, at };
    else out.push({ x, value, at });
  }
  return out;
}
