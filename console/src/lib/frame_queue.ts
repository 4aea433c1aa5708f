// Runs drawing tasks, one in each frame of the browser, so that many plots that change at once do not delay
// a frame. Of several tasks with the same key only the last one runs.
const waiting = new Map<object, () => void>();
let scheduled = false;

function run(): void {
  const [next] = waiting;
  if (next) {
    waiting.delete(next[0]);
    next[1]();
  }
  scheduled = waiting.size > 0;
  if (scheduled) requestAnimationFrame(run);
}

// Returns a function that cancels the work, unless later work has replaced it.
export function inFrame(key: object, work: () => void): () => void {
  waiting.set(key, work);
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(run);
  }
  return () => {
    if (waiting.get(key) === work) waiting.delete(key);
  };
}
