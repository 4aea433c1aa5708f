// Finds the lines of a log that look like errors, and the beginning of an error.

export interface ShownLine {
  number: number; // distinguishes the lines of a page
  host: string;
  at: number; // milliseconds
  text: string;
  bad: boolean;
}

// Words that mark errors in the logs of common frameworks.
const ERROR = /\b(error|exception|traceback|fatal|panic|segmentation fault|out of memory|killed|nan loss)\b|\b\w+(Error|Exception)\b/i;
const HARMLESS = /\b(0|no|without) errors?\b|\berror[ _-]?(rate|bound|feedback)\b/i;

export function looksBad(text: string): boolean {
  return ERROR.test(text) && !HARMLESS.test(text);
}

// Shortens a failure reason to its kind and its last line; between them is the end of the log.
export function headline(reason = ''): string {
  const lines = reason.split('\n').filter((line) => line.trim());
  if (lines.length < 2) return reason;
  const kind = /^\w+Error: /.exec(lines[0]!)?.[0] ?? '';
  return kind + lines[lines.length - 1]!.trim();
}

// Returns the index of the last error, or of the traceback that belongs to it; -1 if there is none.
export function errorLine(lines: readonly ShownLine[]): number {
  let at = -1;
  for (let i = lines.length - 1; i >= 0; i--) if (lines[i]!.bad) {
    at = i;
    break;
  }
  if (at < 0) return -1;
  const host = lines[at]!.host;
  for (let i = at; i >= Math.max(0, at - 200); i--)
    if (lines[i]!.host === host && /\btraceback\b/i.test(lines[i]!.text)) return i;
  return at;
}
