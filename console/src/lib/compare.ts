// Compares a set of jobs: their names in the URL, the rows of the table, and the axes of parallel
// coordinates.
import { isOver, type Job, type TrainingJob } from './jobs';

export const COMPARED_MAX = 24; // more curves cannot be distinguished
export const CURVE_COLOURS = 8; // --curve-0 .. of the theme
const DASHES = [[], [7, 4], [2, 3]] as const;

export interface Compared {
  name: string;
  job: Job;
  training?: TrainingJob;
}

// Returns the names in the URL, each once.
export function namesIn(text: string): string[] {
  return [...new Set(text.split(',').filter((name) => name))].slice(0, COMPARED_MAX);
}

export function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
}

export function dashOf(at: number): readonly number[] {
  return DASHES[Math.floor(at / CURVE_COLOURS) % DASHES.length]!;
}

export interface Row {
  name: string;
  values: (string | undefined)[]; // of each job; nothing: it has none
  differs: boolean;
}

export function hyperparameterRows(jobs: readonly Compared[]): Row[] {
  const names = new Set<string>();
  for (const { training } of jobs)
    for (const name of Object.keys(training?.HyperParameters ?? {})) names.add(name);
  return [...names].sort().map((name) => {
    const values = jobs.map(({ training }) => {
      const own = training?.HyperParameters ?? {};
      return Object.hasOwn(own, name) ? own[name] : undefined;
    });
    return { name, values, differs: new Set(values).size > 1 };
  });
}

export interface MetricRow {
  name: string;
  values: (number | undefined)[];
}

// Returns the last value of each metric.
export function metricRows(jobs: readonly Compared[]): MetricRow[] {
  const names = new Set(jobs.flatMap(({ job }) => (job.Metrics ?? []).map((one) => one.Name)));
  return [...names].sort().map((name) => ({
    name,
    values: jobs.map(({ job }) => job.Metrics?.find((one) => one.Name === name)?.Value),
  }));
}

export interface Coordinate {
  name: string;
  kind: 'hyperparameter' | 'metric';
  logarithmic: boolean;
  ticks: { text: string; place: number }[]; // places from 0 (bottom) to 1
  places: (number | undefined)[]; // of each job
}

const LOGARITHMIC_RATIO = 50; // the axis is logarithmic if the largest value is this many times the smallest

function isNumber(text: string): boolean {
  return text.trim() !== '' && Number.isFinite(Number(text));
}

function ofNumbers(
  name: string,
  kind: Coordinate['kind'],
  values: readonly (number | undefined)[],
  show: (value: number) => string,
): Coordinate {
  const known = values.filter((value): value is number => Number.isFinite(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const logarithmic = low > 0 && high / low >= LOGARITHMIC_RATIO;
  const at = (value: number) => (logarithmic ? Math.log(value) : value);
  const span = at(high) - at(low);
  const place = (value: number) => (span > 0 ? (at(value) - at(low)) / span : 0.5);
  return {
    name,
    kind,
    logarithmic,
    ticks: [...new Set([low, high])].map((value) => ({ text: show(value), place: place(value) })),
    places: values.map((value) =>
      value !== undefined && Number.isFinite(value) ? place(value) : undefined,
    ),
  };
}

function ofTexts(name: string, values: readonly (string | undefined)[]): Coordinate {
  const texts = [...new Set(values.filter((value) => value !== undefined))].sort() as string[];
  const place = (text: string) =>
    texts.length > 1 ? texts.indexOf(text) / (texts.length - 1) : 0.5;
  return {
    name,
    kind: 'hyperparameter',
    logarithmic: false,
    ticks: texts.map((text) => ({ text, place: place(text) })),
    places: values.map((value) => (value === undefined ? undefined : place(value))),
  };
}

// Returns an axis for each hyperparameter that differs, then one for the last value of each metric.
export function coordinates(
  jobs: readonly Compared[],
  show: (value: number) => string,
): Coordinate[] {
  const hyper = hyperparameterRows(jobs)
    .filter((row) => row.differs)
    .map((row) => {
      const given = row.values.filter((value): value is string => value !== undefined);
      return given.every(isNumber)
        ? ofNumbers(row.name, 'hyperparameter', row.values.map((value) => (value === undefined ? undefined : Number(value))), show)
        : ofTexts(row.name, row.values);
    });
  const metrics = metricRows(jobs)
    .filter((row) => row.values.some((value) => Number.isFinite(value)))
    .map((row) => ofNumbers(row.name, 'metric', row.values, show));
  return [...hyper, ...metrics];
}

export function run(jobs: readonly Compared[]): boolean {
  return jobs.some(({ job }) => !isOver(job));
}
