// Formats values as text for pages.

export function duration(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${String(s % 60).padStart(2, '0')} s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h} h ${String(m % 60).padStart(2, '0')} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

// Formats a tick of a time axis, in whole units.
export function mark(seconds: number): string {
  if (seconds < 60 || seconds % 60) return seconds < 60 ? `${number(seconds)} s` : duration(seconds);
  if (seconds < 3600 || seconds % 3600) return seconds < 3600 ? `${seconds / 60} min` : duration(seconds);
  return seconds < 172800 ? `${seconds / 3600} h` : `${number(seconds / 86400, 3)} d`;
}

export function ago(then: number, now: number): string {
  const s = Math.max(0, now - then);
  if (s < 45) return 'just now';
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min ago`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86400)} d ago`;
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
export function dateTime(seconds: number): string {
  return moment.format(seconds * 1000);
}

export function clockTime(milliseconds: number): string {
  const at = new Date(milliseconds);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function amount(currency: string, decimal: string): string {
  const value = Number(decimal);
  const digits = value === 0 || value >= 0.995 ? 2 : value >= 0.01 ? 3 : 5;
  return `${value.toFixed(digits)} ${currency}`;
}

// Formats a number with at most `digits` significant digits, without an exponent where that is
// readable.
export function number(value: number, digits = 5): string {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7))
    return value.toExponential(Math.min(digits - 1, 3));
  return String(Number(value.toPrecision(digits)));
}

// Makes a job's text safe to show: control characters become visible (ESC as ^[).
export function plain(text: string): string {
  return text
    .replace(/\t/g, '    ')
    .replace(/[\u0000-\u001f]/g, (control) =>
      '^' + String.fromCharCode(0x40 + control.charCodeAt(0)),
    )
    .replace(/[\u007f-\u009f]/g, '\ufffd')
    .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}
