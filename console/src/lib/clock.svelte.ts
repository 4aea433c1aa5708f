// The present time in seconds, for durations that grow while one looks at them.
let seconds = $state(Date.now() / 1000);
window.setInterval(() => {
  if (!document.hidden) seconds = Date.now() / 1000;
}, 1000);

export const clock = {
  get now(): number {
    return seconds;
  },
};
