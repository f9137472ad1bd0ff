// JSON text without a full parse: numbers keep all their digits, and members that are not requested are skipped.

// The texts of the members of the object that `json` is, by name (of several of one name, the last); empty if it is no object. Of a
// text that is cut off, the members before the cut; the last of them is as long as the text is.
export function members(json: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = skipSpace(json, 0);
  if (json[at] !== '{') return found;
  at = skipSpace(json, at + 1);
  while (at < json.length && json[at] === '"') {
    const nameEnd = skipValue(json, at);
    const start = skipSpace(json, skipSpace(json, nameEnd) + 1); // behind the colon
    const end = skipValue(json, start);
    const name = textOf(json.slice(at, nameEnd));
    if (name !== null && start < end) found.set(name, json.slice(start, end).trimEnd());
    at = skipSpace(json, skipSpace(json, end) + 1); // behind the comma
  }
  return found;
}

export function memberText(json: string, name: string): string | null {
  return members(json).get(name) ?? null;
}

// A value as text: strings without their quotes, null and missing values as null, all others as in the text.
export function textOf(value: string | undefined): string | null {
  if (value === undefined || value === 'null') return null;
  if (value[0] !== '"') return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return null;
  }
}

function skipSpace(json: string, at: number): number {
  while (at < json.length && json.charCodeAt(at) <= 0x20) ++at;
  return at;
}

// The place after the value that begins at `at`: the comma or bracket that ends it, or the end of the text.
function skipValue(json: string, at: number): number {
  let depth = 0;
  for (; at < json.length; ++at) {
    const c = json[at];
    if (c === '"') {
      for (++at; at < json.length && json[at] !== '"'; ++at) if (json[at] === '\\') ++at;
      if (depth === 0) return at + 1;
    } else if (c === '{' || c === '[') {
      ++depth;
    } else if (c === '}' || c === ']') {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (c === ',' && depth === 0) {
      return at;
    }
  }
  return at;
}
