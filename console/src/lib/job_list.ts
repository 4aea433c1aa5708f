// Keeps a list of jobs current by reading only the jobs that changed.
import type { Job } from './jobs';

const NAMES_MAX = 100; // of ListJobs

// Collects the names of jobs that changed until they are read.
export class Changes {
  private names = new Set<string>();
  private all = true; // the list was not read yet

  add(names: readonly string[]): void {
    // A child of an array is not in the list, but the array is, with its numbers of children.
    for (const name of names) this.names.add(name.split(':')[0]!);
  }

  addAll(): void {
    this.all = true;
  }

  // Returns the names to read, or undefined if the whole list must be read.
  take(): string[] | undefined {
    const names = this.all || this.names.size > NAMES_MAX ? undefined : [...this.names];
    this.all = false;
    this.names.clear();
    return names;
  }
}

function isNewer(a: Job, b: Job): boolean {
  return a.CreationTime > b.CreationTime || (a.CreationTime === b.CreationTime && a.Name > b.Name);
}

// Returns the list, the newest job first, after the jobs with `names` were read again: `found` are those
// that still belong to it. If the server has older jobs than the list (`more`), found jobs that are
// older than the last row are left out, as there may be others between them.
export function merged(jobs: readonly Job[], names: readonly string[], found: readonly Job[], more: boolean): Job[] {
  const changed = new Set(names);
  const last = jobs[jobs.length - 1];
  return [
    ...jobs.filter((job) => !changed.has(job.Name)),
    ...found.filter((job) => !more || (last && (job.Name === last.Name || isNewer(job, last)))),
  ].sort((a, b) => (isNewer(a, b) ? -1 : 1));
}
