// Line differences (Myers, greedy, with the common ends cut off first).

export interface Hunk {
  kind: 'same' | 'change';
  a: [number, number]; // [begin, end)
  b: [number, number];
}

// Differences beyond this are shown as one replaced block: the search costs the square of them.
const maxDistance = 4000;

export function diff<T>(a: readonly T[], b: readonly T[]): Hunk[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const pairs = middle(a, b, start, endA, start, endB);
  const hunks: Hunk[] = [];
  const add = (kind: Hunk['kind'], a0: number, a1: number, b0: number, b1: number) => {
    if (a0 === a1 && b0 === b1) return;
    const last = hunks[hunks.length - 1];
    if (last && last.kind === kind) {
      last.a[1] = a1;
      last.b[1] = b1;
    } else hunks.push({ kind, a: [a0, a1], b: [b0, b1] });
  };
  add('same', 0, start, 0, start);
  let atA = start;
  let atB = start;
  for (const [x, y] of pairs) {
    add('change', atA, x, atB, y);
    add('same', x, x + 1, y, y + 1);
    atA = x + 1;
    atB = y + 1;
  }
  add('change', atA, endA, atB, endB);
  add('same', endA, a.length, endB, b.length);
  return hunks;
}

// Matching pairs of a[a0, a1) and b[b0, b1), ascending.
function middle<T>(a: readonly T[], b: readonly T[], a0: number, a1: number, b0: number, b1: number): [number, number][] {
  const n = a1 - a0;
  const m = b1 - b0;
  if (n === 0 || m === 0) return [];
  const limit = Math.min(n + m, maxDistance);
  const furthest = new Int32Array(2 * limit + 3);
  const offset = limit + 1;
  const history: Int32Array[] = [];
  for (let d = 0; d <= limit; d++) {
    // Only the diagonals of this round are kept: the memory is the square of the distance, not of the length.
    history.push(furthest.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && furthest[offset + k - 1] < furthest[offset + k + 1]) ? furthest[offset + k + 1] : furthest[offset + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) {
        x++;
        y++;
      }
      furthest[offset + k] = x;
      if (x >= n && y >= m) return trace(history, n, m, a0, b0);
    }
  }
  return [];
}

function trace(history: Int32Array[], n: number, m: number, a0: number, b0: number): [number, number][] {
  const pairs: [number, number][] = [];
  let x = n;
  let y = m;
  for (let d = history.length - 1; d >= 0; d--) {
    const row = history[d];
    const at = (k: number) => row[k + d + 1];
    const k = x - y;
    const previousK = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const previousX = d === 0 ? 0 : at(previousK);
    const previousY = d === 0 ? 0 : previousX - previousK;
    while (x > previousX && y > previousY) {
      x--;
      y--;
      pairs.push([a0 + x, b0 + y]);
    }
    x = previousX;
    y = previousY;
  }
  return pairs.reverse();
}

// The part that differs within two lines: [begin, end) of each.
export function changedPart(a: string, b: string): { a: [number, number]; b: [number, number] } {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return { a: [start, a.length - end], b: [start, b.length - end] };
}

// Differences of addresses, temporary paths and process ids have no meaning.
export function normalize(line: string): string {
  return line
    .replace(/0x[0-9a-f]{6,}/g, '0x…')
    .replace(/\b1[34]\d{13,14}\b/g, '…')
    .replace(/\/tmp\/torchinductor_[^\s'"]*/g, '/tmp/torchinductor_…')
    .replace(/\bc[a-z2-7]{50}\b/g, 'c…');
}
