import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backwardToken, forwardToken, LogWindow, type LogLine } from '../src/lib/log_window';

// A stream on a server: lines at the times 0, 1, .., of which the last ones were printed.
class Stream {
  lines: LogLine[] = [];
  told = 0; // lines that the page was told of
  constructor(
    readonly host: string,
    readonly from = 0,
  ) {}
  print(count: number): void {
    for (let i = 0; i < count; i++)
      this.lines.push({ Host: this.host, Time: this.from + this.lines.length, Text: `${this.lines.length}` });
  }
  // As an event says it: at first the last lines only.
  tell(window: LogWindow, first = Infinity): void {
    const begin = this.told || Math.max(0, this.lines.length - first);
    const end = this.lines.length;
    window.append(this.lines.slice(begin, end), [
      { Host: this.host, Group: 'g', Stream: this.host, Backward: `b/${begin}`, Forward: `f/${end}` },
    ]);
    this.told = end;
  }
  before(token: string, most: number): [LogLine[], string] {
    const end = Number(token.slice(2));
    const begin = Math.max(0, end - most);
    return [this.lines.slice(begin, end), `b/${begin}`];
  }
  after(token: string, most: number): [LogLine[], { backward: string; forward: string }] {
    const begin = Number(token.slice(2));
    const end = Math.min(this.lines.length, begin + most);
    return [this.lines.slice(begin, end), { backward: `b/${begin}`, forward: `f/${end}` }];
  }
}
function older(window: LogWindow, streams: Stream[], most: number): boolean {
  const part = window.olderPart('');
  if (!part) return false;
  window.prepend(part, ...streams.find(({ host }) => host === part.host)!.before(backwardToken(part), most));
  return true;
}
function newer(window: LogWindow, streams: Stream[], most: number): boolean {
  const part = window.newerPart('');
  if (!part) return false;
  window.extend(part, ...streams.find(({ host }) => host === part.host)!.after(forwardToken(part), most));
  return true;
}
const texts = (window: LogWindow) => window.lines().map((line) => line.text);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `${from + i}`);

test('a log is read back to its beginning, line by line', () => {
  const [stream, window] = [new Stream('a'), new LogWindow()];
  stream.print(25);
  stream.tell(window, 5);
  assert.deepEqual(texts(window), range(20, 25));
  stream.print(2);
  while (older(window, [stream], 8));
  stream.tell(window);
  assert.deepEqual(texts(window), range(0, 27));
  assert.equal(window.newerPart(''), undefined, 'it follows what is printed');
});

test('several hosts are merged by time', () => {
  const streams = [new Stream('a'), new Stream('b', 10)];
  const window = new LogWindow();
  for (const stream of streams) stream.print(30);
  for (const stream of streams) stream.tell(window, 3);
  // The one whose lines begin last is read first.
  assert.equal(window.olderPart('')!.host, 'b');
  assert.equal(window.olderPart('a')!.host, 'a');
  while (older(window, streams, 7));
  const times = window.lines().map((line) => line.at);
  assert.equal(times.length, 60);
  assert.deepEqual(times, [...times].sort((x, y) => x - y));
  assert.equal(new Set(window.lines().map((line) => line.number)).size, 60);
});

test('lines beyond the limit are dropped at the other end, and read again', () => {
  const [stream, window] = [new Stream('a'), new LogWindow(30)];
  stream.print(100);
  stream.tell(window, 10);
  while (older(window, [stream], 10)) assert.ok(window.lines().length <= 30);
  assert.deepEqual(texts(window), range(0, 30));
  stream.print(5);
  stream.tell(window);
  assert.deepEqual(texts(window), range(0, 30), 'what is printed is apart from the window');
  while (newer(window, [stream], 10)) {
    const shown = texts(window);
    assert.deepEqual(shown, range(Number(shown[0]), Number(shown[0]) + shown.length), 'without a gap');
  }
  assert.equal(texts(window).at(-1), '104');
  stream.print(1);
  stream.tell(window);
  assert.equal(texts(window).at(-1), '105', 'it follows again');
});

test('a log begins at its beginning after rewind', () => {
  const streams = [new Stream('a'), new Stream('b')];
  const window = new LogWindow();
  for (const stream of streams) stream.print(50);
  for (const stream of streams) stream.tell(window, 5);
  for (const part of window.rewind('')) {
    assert.equal(forwardToken(part), '');
    window.extend(part, ...streams.find(({ host }) => host === part.host)!.after('f/0', 10));
  }
  assert.equal(window.lines().length, 20);
  assert.equal(window.olderPart(''), undefined);
  streams[0]!.print(1);
  streams[0]!.tell(window);
  assert.equal(window.lines().length, 20);
  while (newer(window, streams, 10));
  assert.equal(window.lines().length, 101);
});

test('a window that only follows holds a limited number of lines', () => {
  const [stream, window] = [new Stream('a'), new LogWindow(3000)];
  for (let round = 0; round < 20; round++) {
    stream.print(400);
    stream.tell(window);
    assert.ok(window.lines().length <= 3000);
  }
  assert.equal(texts(window).at(-1), '7999');
  assert.ok(window.lines().length >= 2000);
  assert.equal(window.olderPart('')!.host, 'a');
});

test('a page that comes after the window was restarted is not taken', () => {
  const [stream, window] = [new Stream('a'), new LogWindow()];
  stream.print(10);
  stream.tell(window, 5);
  const part = window.olderPart('')!;
  window.reset();
  window.prepend(part, ...stream.before('b/5', 5));
  assert.equal(window.lines().length, 0);
});
