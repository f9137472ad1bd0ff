// 1500 is "1.50 ms"; `isOffset`: a time that counts from another, with its sign: "+1.50 ms".
export function duration(us: number | null | undefined, isOffset = false): string {
  if (us === null || us === undefined) return '';
  const sign = us < 0 ? '−' : isOffset ? '+' : '';
  const value = Math.abs(us);
  if (value === 0) return '0 s';
  const digits = (number: number) => (number >= 99.95 ? number.toFixed(0) : number >= 9.995 ? number.toFixed(1) : number.toFixed(2));
  // A value that would be rounded up to 1000 is one of the next unit.
  if (value >= 59.95e6) {
    const seconds = Math.round(value / 1e6);
    return `${sign}${Math.floor(seconds / 60)} min${seconds % 60 > 0 ? ` ${seconds % 60} s` : ''}`;
  }
  if (value >= 999.5e3) return `${sign}${digits(value / 1e6)} s`;
  if (value >= 999.5) return `${sign}${digits(value / 1e3)} ms`;
  // Kernels take a few microseconds: digits behind the point count, if there are any.
  return `${sign}${Number.isInteger(value) || value >= 99.95 ? Math.round(value) : digits(value)} µs`;
}

// A time on an axis whose marks are `stepUs` apart, with enough digits to distinguish two marks.
export function mark(us: number, stepUs: number): string {
  const value = Math.abs(us);
  if (value < stepUs / 1000) return '0';
  const [unit, name] = value >= 1e6 ? [1e6, 's'] : value >= 1e3 ? [1e3, 'ms'] : [1, 'µs'];
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(stepUs / unit) - 1e-9)));
  return digits === 0 && value >= 60e6 ? duration(us) : `${us < 0 ? '−' : ''}${(value / unit).toFixed(digits)} ${name}`;
}

// As the commands write sizes: 3400000 is "3.4 MB".
export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined) return '';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = size;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const grouped = new Intl.NumberFormat('en');
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : grouped.format(value);
}

// 0.1234 is "12.3 %"; only zero is "0 %".
export function percent(share: number): string {
  const value = share * 100;
  return value > 0 && value < 0.05 ? '< 0.1 %' : `${value.toFixed(1)} %`;
}

export function plural(value: number, noun: string, many = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : many}`;
}

export function utc(us: number): string {
  const date = new Date(us / 1000);
  return Number.isNaN(date.getTime()) ? `${us} µs` : date.toISOString().replace('T', ' ').replace('Z', ' UTC');
}

// "train.py:12": enough to recognise a file in a table; the whole path belongs in a title.
export function place(file: string | null, line: number | null): string {
  if (!file) return '';
  return `${baseName(file)}${line === null ? '' : `:${line}`}`;
}

export function wholePlace(file: string | null, line: number | null): string {
  return file ? `${file}${line === null ? '' : `:${line}`}` : '';
}

export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1) || path;
}

// "0-3,7": as the program writes ranks (FormatRankRanges).
export function ranges(numbers: number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) end++;
    parts.push(end === i ? `${sorted[i]}` : `${sorted[i]}${end === i + 1 ? ',' : '-'}${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(',');
}

export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

// The start of a reason of several lines: its first line, and the next one if the first only introduces it.
export function headline(text: string | null): string {
  const [first, ...rest] = (text ?? '').split('\n');
  const next = first.endsWith(':') ? rest.find((line) => line.trim() !== '') : undefined;
  return next === undefined ? first : `${first} ${next.trim()}`;
}

// The cause of a graph break: its reason after the sentence with which Dynamo introduces every one.
export function causeOf(reason: string | null): string {
  const lines = (reason ?? '').split('\n').map((line) => line.trim());
  const announced = lines.findIndex((line) => /^Graph Break Reason:|^Encountered graph break when attempting to trace/i.test(line));
  if (announced < 0) return headline(reason);
  const own = lines[announced]
    .replace(/^Graph Break Reason:\s*/i, '')
    .replace(/^Encountered graph break when attempting to trace.*$/i, '')
    .trim();
  return own || lines.slice(announced + 1).find((line) => line !== '') || headline(reason);
}

// JSON with line breaks; any other text unchanged.
export function prettyJson(text: string): string {
  const start = text.trimStart()[0];
  if (start !== '{' && start !== '[') return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
