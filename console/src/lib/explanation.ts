// Reads with ExplainJob why a job waits and what would make it start.
import { duration } from './format';

export interface StartChange {
  Kind: string;
  Description: string;
  Now: boolean;
  StartTime: number;
  JobName?: string;
  JobRegion?: string;
}

export interface StartExplanation {
  JobName: string;
  Waiting: boolean;
  WaitReason?: string;
  StartTime?: number; // seconds since 1970
  Changes?: StartChange[];
  Complete?: boolean;
}

export function startsIn(start: number, now: number): string {
  return start > now ? `in ${duration(start - now)}` : 'now';
}
