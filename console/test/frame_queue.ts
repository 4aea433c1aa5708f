import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inFrame } from '../src/lib/frame_queue';

// Runs the body with frames that begin when it calls the function it is given.
function withFrames(body: (frame: () => void) => void): void {
  const requested: (() => void)[] = [];
  const scope = globalThis as { requestAnimationFrame?: (work: () => void) => number };
  scope.requestAnimationFrame = (work) => requested.push(work);
  try {
    body(() => requested.shift()?.());
    assert.equal(requested.length, 0, 'no frame is requested without work');
  } finally {
    delete scope.requestAnimationFrame;
  }
}

test('each frame runs one piece of work, in the order of the requests', () => {
  withFrames((frame) => {
    const done: string[] = [];
    inFrame({}, () => done.push('a'));
    inFrame({}, () => done.push('b'));
    assert.deepEqual(done, []);
    frame();
    assert.deepEqual(done, ['a']);
    frame();
    assert.deepEqual(done, ['a', 'b']);
  });
});

test('later work with the same key replaces the earlier one', () => {
  withFrames((frame) => {
    const done: string[] = [];
    const key = {};
    const cancel = inFrame(key, () => done.push('old'));
    inFrame(key, () => done.push('new'));
    cancel();
    frame();
    assert.deepEqual(done, ['new']);
  });
});

test('cancelled work does not run', () => {
  withFrames((frame) => {
    const done: string[] = [];
    inFrame({}, () => done.push('a'))();
    inFrame({}, () => done.push('b'));
    frame();
    assert.deepEqual(done, ['b']);
  });
});
