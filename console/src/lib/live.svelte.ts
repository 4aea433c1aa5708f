// Receives the event stream of a page: jobs that changed, and new lines of one job's log. Reconnects
// automatically; after that, and after missed events, the page reads everything again.
import { readSession, signInAgain } from './api';
import type { LogLine, LogRange } from './log_window';

export interface Listener {
  jobs?: (names: string[]) => void;
  resync?: () => void; // also at the beginning
  begin?: () => void; // the log starts again from its last lines
  log?: (lines: LogLine[], ranges: LogRange[]) => void;
  denied?: (message: string) => void;
}

let connected = $state(false);
export const live = {
  get connected(): boolean {
    return connected;
  },
};

const RETRY_MILLISECONDS = 2000;

// Returns a function that ends the stream.
export function follow(region: string, job: string, listener: Listener): () => void {
  let source: EventSource | undefined;
  let timer = 0;
  let closed = false;
  const parse = (event: Event): unknown => JSON.parse((event as MessageEvent<string>).data);

  const open = () => {
    const query = new URLSearchParams({ region });
    if (job) query.set('job', job);
    source = new EventSource(`/console/events?${query}`);
    source.addEventListener('hello', () => {
      connected = true;
      listener.begin?.();
      listener.resync?.();
    });
    source.addEventListener('jobs', (event) => listener.jobs?.(parse(event) as string[]));
    source.addEventListener('resync', () => listener.resync?.());
    source.addEventListener('log', (event) => {
      const { Lines, Ranges } = parse(event) as { Lines: LogLine[]; Ranges: LogRange[] };
      listener.log?.(Lines, Ranges);
    });
    source.addEventListener('denied', (event) =>
      listener.denied?.((parse(event) as { Message: string }).Message),
    );
    source.addEventListener('end', () => signInAgain());
    source.onerror = () => {
      connected = false;
      source?.close();
      if (closed) return;
      // An error event has no reason: the session may have ended.
      void readSession().catch(() => undefined);
      timer = window.setTimeout(open, RETRY_MILLISECONDS);
    };
  };
  open();
  return () => {
    closed = true;
    connected = false;
    window.clearTimeout(timer);
    source?.close();
  };
}

// Returns a function that calls `work` at once or, if the last call was less than `interval`
// milliseconds ago, at the end of that interval. Calls never overlap.
export function throttled(interval: number, work: () => Promise<void>): () => void {
  let busy = false;
  let again = false;
  const run = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    const begun = Date.now();
    try {
      await work();
    } finally {
      window.setTimeout(
        () => {
          busy = false;
          if (again) void run();
        },
        Math.max(0, interval - (Date.now() - begun)),
      );
    }
  };
  return () => void run();
}
