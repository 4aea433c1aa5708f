// Provides the current time in seconds as a reactive value, for durations that grow while they are shown.
let seconds = $state(Date.now() / 1000);
window.setInterval(() => {
  if (!document.hidden) seconds = Date.now() / 1000;
}, 1000);

export const clock = {
  get now(): number {
    return seconds;
  },
};
