// Saves the timeline of a job (GetJobTimeline) as a file for Perfetto.

export interface JobTimeline {
  JobName: string;
  Trace: string; // JSON
  Notes?: string[]; // what it lacks
}

// Returns "nightly_7.trace.json" for "nightly:7".
export function traceFileName(job: string): string {
  return `${job.replace(/[^\w.-]/g, '_')}.trace.json`;
}

const KEPT_MILLISECONDS = 60_000; // until the browser has read the text

export function saveText(fileName: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MILLISECONDS);
}
