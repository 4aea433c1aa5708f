// Reads with DescribeJobTime how the time of a job was used.

export interface JobTime {
  JobName: string;
  WallMilliseconds: number;
  HeldMilliseconds: number;
  Uses: { Use: string; Milliseconds: number }[];
  EffectiveTrainingTimeRatio: number;
  Goodput: number;
  LostWorkIsKnown: boolean;
  Intervals?: { Use: string; AttemptNumber?: number; StartTime: number; Milliseconds: number }[];
}

export const USES: Record<string, { text: string; tone: string }> = {
  Queued: { text: 'Queued', tone: 'wait' },
  Starting: { text: 'Starting', tone: 'start' },
  Downloading: { text: 'Downloading data', tone: 'data' },
  Training: { text: 'Training', tone: 'run' },
  Lost: { text: 'Lost work', tone: 'bad' },
  Uploading: { text: 'Uploading', tone: 'data' },
  Interrupted: { text: 'Interrupted', tone: 'warn' },
  Stopping: { text: 'Stopping', tone: 'warn' },
  QueuedAgain: { text: 'Queued again', tone: 'wait' },
};

export interface Piece {
  use: string;
  text: string;
  tone: string;
  seconds: number;
  percent: number; // of the whole
}

// Returns the uses of time in the order of a job's life, each with its part of the whole.
export function pieces(time: JobTime): Piece[] {
  const whole = Math.max(1, time.WallMilliseconds);
  return time.Uses.map(({ Use, Milliseconds }) => ({
    use: Use,
    text: USES[Use]?.text ?? Use,
    tone: USES[Use]?.tone ?? 'wait',
    seconds: Milliseconds / 1000,
    percent: (Milliseconds / whole) * 100,
  }));
}

// Formats "74.5 %", or "at most 74.5 %".
export function ratio(value: number, known: boolean): string {
  return `${known ? '' : 'at most '}${(value * 100).toFixed(1)} %`;
}
