// LogWindow is the part of a job's log that a page has: of each stream, consecutive lines between two
// positions. It grows at the end while the job prints, and in both directions while the user scrolls. Beyond
// LINES_MAX it drops lines at the other end, which can be read again.
//
// If the end of a stream was dropped, or the stream is read from its beginning, there is a gap before the
// lines that the job prints now: new lines are ignored until the stream was read up to them.
import { plain } from './format';
import { looksBad, type ShownLine } from './log';

export const LINES_MAX = 50_000;
const CHUNK_LINES = 1000; // dropped together

export interface LogLine {
  Host: string;
  Time: number; // milliseconds since 1970
  Text: string;
}

// The part of a stream in an event: tokens of GetLogEvents for the lines before and after it.
export interface LogRange {
  Host: string;
  Group: string;
  Stream: string;
  Backward: string;
  Forward: string;
}

interface Chunk {
  lines: ShownLine[];
  begin: string; // positions in the stream, as in tokens
  end: string;
}

export interface Part {
  readonly host: string;
  readonly group: string;
  readonly stream: string;
  chunks: Chunk[]; // at least one, consecutive
  fromStart: boolean; // nothing is before the first chunk
  printed: string; // the position behind the last line that the page was notified of
}

// Returns a position without the direction of its token.
function positionOf(token: string): string {
  return token.slice(2);
}
export function backwardToken(part: Part): string {
  return `b/${part.chunks[0]!.begin}`;
}
// '' = from the beginning.
export function forwardToken(part: Part): string {
  const { end } = part.chunks[part.chunks.length - 1]!;
  return end && `f/${end}`;
}

function oldest(part: Part): number {
  const first = part.chunks.find((chunk) => chunk.lines.length);
  return first ? first.lines[0]!.at : Infinity;
}
function newest(part: Part): number {
  const last = part.chunks.findLast((chunk) => chunk.lines.length);
  return last ? last.lines[last.lines.length - 1]!.at : -Infinity;
}

function isLive(part: Part): boolean {
  return part.chunks[part.chunks.length - 1]!.end === part.printed;
}

export class LogWindow {
  private parts = new Map<string, Part>(); // by host
  private ordered: ShownLine[] | undefined; // nothing: must be ordered again
  private count = 0;
  private next = 0; // number of the next line

  constructor(private readonly linesMax = LINES_MAX) {}

  reset(): void {
    this.parts = new Map();
    this.ordered = [];
    this.count = 0;
  }

  // Returns the lines in order of time; the lines of a stream keep their order.
  lines(): readonly ShownLine[] {
    this.ordered ??= [...this.parts.values()]
      .flatMap((part) => part.chunks.flatMap((chunk) => chunk.lines))
      .sort((a, b) => a.at - b.at);
    return this.ordered;
  }

  // Adds lines that the job prints.
  append(fresh: readonly LogLine[], ranges: readonly LogRange[]): void {
    const before = this.lines();
    const taken: ShownLine[] = [];
    for (const range of ranges) {
      const part = this.partOf(range);
      const live = isLive(part) && part.printed === positionOf(range.Backward);
      part.printed = positionOf(range.Forward);
      if (!live) continue;
      const lines = this.shown(fresh.filter((line) => line.Host === range.Host));
      this.add(part, lines, part.printed);
      for (const line of lines) taken.push(line);
    }
    taken.sort((a, b) => a.at - b.at);
    const last = before[before.length - 1];
    if (!last || !taken.length || taken[0]!.at >= last.at) this.ordered = before.concat(taken);
    this.dropOldest();
  }

  // Returns the stream to read next for earlier lines: the stream with the latest first line, since the
  // others reach further back. `host` '': among all.
  olderPart(host: string): Part | undefined {
    const candidates = this.of(host).filter((part) => !part.fromStart);
    return candidates.sort((a, b) => oldest(b) - oldest(a))[0];
  }

  // Returns the stream to read next for later lines, among those with a gap before new lines.
  newerPart(host: string): Part | undefined {
    const candidates = this.of(host).filter((part) => !isLive(part));
    return candidates.sort((a, b) => newest(a) - newest(b))[0];
  }

  // Adds a page of GetLogEvents that was read with backwardToken().
  prepend(part: Part, fresh: readonly LogLine[], backward: string): void {
    if (!this.has(part)) return; // the window was reset meanwhile
    const begin = positionOf(backward);
    if (!fresh.length) part.fromStart = true;
    else part.chunks.unshift({ lines: this.shown(fresh), begin, end: part.chunks[0]!.begin });
    this.count += fresh.length;
    this.ordered = undefined;
    this.dropNewest();
  }

  // Adds a page that was read with forwardToken().
  extend(part: Part, fresh: readonly LogLine[], tokens: { backward: string; forward: string }): void {
    if (!this.has(part)) return;
    const last = part.chunks[part.chunks.length - 1]!;
    if (!last.end) last.begin = positionOf(tokens.backward);
    this.add(part, this.shown(fresh), positionOf(tokens.forward));
    this.ordered = undefined;
    this.dropOldest();
  }

  // Moves the streams to their beginnings, without lines, and returns them.
  rewind(host: string): Part[] {
    const chosen = this.of(host);
    for (const part of chosen) {
      this.count -= part.chunks.reduce((sum, chunk) => sum + chunk.lines.length, 0);
      part.chunks = [{ lines: [], begin: '', end: '' }];
      part.fromStart = true;
    }
    this.ordered = undefined;
    return chosen;
  }

  private of(host: string): Part[] {
    return [...this.parts.values()].filter((part) => !host || part.host === host);
  }

  private has(part: Part): boolean {
    return this.parts.get(part.host) === part;
  }

  private partOf(range: LogRange): Part {
    const known = this.parts.get(range.Host);
    if (known) return known;
    const begin = positionOf(range.Backward);
    const part = {
      host: range.Host,
      group: range.Group,
      stream: range.Stream,
      chunks: [{ lines: [], begin, end: begin }],
      fromStart: false,
      printed: begin,
    };
    this.parts.set(range.Host, part);
    return part;
  }

  private shown(fresh: readonly LogLine[]): ShownLine[] {
    return fresh.map((line) => {
      const text = plain(line.Text);
      return { number: this.next++, host: line.Host, at: line.Time, text, bad: looksBad(text) };
    });
  }

  private add(part: Part, lines: ShownLine[], end: string): void {
    const last = part.chunks[part.chunks.length - 1]!;
    if (last.lines.length + lines.length <= CHUNK_LINES || !last.lines.length) {
      last.lines = last.lines.concat(lines);
      last.end = end;
    } else {
      part.chunks.push({ lines, begin: last.end, end });
    }
    this.count += lines.length;
  }

  private dropNewest(): void {
    while (this.count > this.linesMax) {
      const part = [...this.parts.values()].sort((a, b) => newest(b) - newest(a))[0]!;
      const chunk = part.chunks.pop()!;
      this.count -= chunk.lines.length;
      if (!part.chunks.length) part.chunks = [{ lines: [], begin: chunk.begin, end: chunk.begin }];
      this.ordered = undefined;
    }
  }

  private dropOldest(): void {
    while (this.count > this.linesMax) {
      const part = [...this.parts.values()].sort((a, b) => oldest(a) - oldest(b))[0]!;
      const chunk = part.chunks.shift()!;
      this.count -= chunk.lines.length;
      part.fromStart = false;
      if (!part.chunks.length) part.chunks = [{ lines: [], begin: chunk.end, end: chunk.end }];
      this.ordered = undefined;
    }
  }
}
