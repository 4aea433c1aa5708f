// JobLog is the log of one job in a page: a window that follows the job's output, and can move to earlier
// lines and back. It reads one page of a stream at a time.
import { call } from './api';
import type { ShownLine } from './log';
import { backwardToken, forwardToken, LogWindow, type LogLine, type LogRange, type Part } from './log_window';

interface GetLogEvents {
  events: { timestamp: number; message: string }[];
  nextForwardToken: string;
  nextBackwardToken: string;
}

const PAGE_LINES = 1000;
const WANTED_LINES = 500; // of one step of scrolling, from one stream or several
const PAGES_MAX = 8; // of one step
const READS_AT_ONCE = 4;
const FIRST_LINES = 4000; // of all hosts, at the beginning
const FIRST_LINES_MIN = 50; // of each host

export class JobLog {
  lines = $state.raw<readonly ShownLine[]>([]);
  loading = $state(false);
  problem = $state('');
  private changes = $state(0); // of the window
  private window = new LogWindow();

  constructor(private readonly region: string) {}

  // True if there are lines before or after the window, of one host or ('') of all.
  hasOlder(host: string): boolean {
    void this.changes;
    return !!this.window.olderPart(host);
  }
  hasNewer(host: string): boolean {
    void this.changes;
    return !!this.window.newerPart(host);
  }

  reset(): void {
    this.window.reset();
    this.show();
  }

  append(lines: readonly LogLine[], ranges: readonly LogRange[]): void {
    this.window.append(lines, ranges);
    this.show();
  }

  async older(host: string): Promise<void> {
    await this.step(async () => {
      const part = this.window.olderPart(host);
      if (!part) return undefined;
      const { lines, backward } = await this.page(part, backwardToken(part), PAGE_LINES);
      this.window.prepend(part, lines, backward);
      return lines.length;
    });
  }

  async newer(host: string): Promise<void> {
    await this.step(async () => {
      const part = this.window.newerPart(host);
      if (!part) return undefined;
      const { lines, ...tokens } = await this.page(part, forwardToken(part), PAGE_LINES);
      this.window.extend(part, lines, tokens);
      return lines.length;
    });
  }

  // Shows the beginning of the log.
  async rewind(host: string): Promise<void> {
    await this.alone(async () => {
      const parts = this.window.rewind(host);
      const most = Math.max(FIRST_LINES_MIN, Math.min(PAGE_LINES, Math.floor(FIRST_LINES / Math.max(1, parts.length))));
      const work = async () => {
        for (let part = parts.shift(); part; part = parts.shift()) {
          const { lines, ...tokens } = await this.page(part, '', most);
          this.window.extend(part, lines, tokens);
        }
      };
      await Promise.all(Array.from({ length: READS_AT_ONCE }, work));
    });
  }

  // `read` returns the number of lines that it found; undefined: there are no more.
  private async step(read: () => Promise<number | undefined>): Promise<void> {
    await this.alone(async () => {
      let found = 0;
      for (let pages = 0; pages < PAGES_MAX && found < WANTED_LINES; pages++) {
        const more = await read();
        if (more === undefined) break;
        found += more;
      }
    });
  }

  private async alone(work: () => Promise<void>): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      await work();
      this.problem = '';
    } catch (error) {
      this.problem = (error as Error).message;
    } finally {
      this.loading = false;
      this.show();
    }
  }

  private show(): void {
    this.lines = this.window.lines();
    this.changes++;
  }

  // `token` '': from the beginning.
  private async page(part: Part, token: string, most: number) {
    const answer = await call<GetLogEvents>(this.region, 'logs', 'GetLogEvents', {
      logGroupName: part.group,
      logStreamName: part.stream,
      limit: most,
      ...(token ? { nextToken: token } : { startFromHead: true }),
    });
    const lines = answer.events.map((event): LogLine => ({ Host: part.host, Time: event.timestamp, Text: event.message }));
    return { lines, backward: answer.nextBackwardToken, forward: answer.nextForwardToken };
  }
}
