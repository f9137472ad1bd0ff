// Filters of search fields: words that must all occur; key:value asks one column, -word excludes.

export interface Filter {
  matches: (texts: string, column: (key: string) => string | undefined) => boolean;
}

export function parseFilter(query: string): Filter {
  const terms = (query.toLowerCase().match(/-?\w+:"[^"]*"|-?"[^"]*"|\S+/g) ?? []).map((raw) => {
    const negative = raw.startsWith('-') && raw.length > 1;
    const body = negative ? raw.slice(1) : raw;
    const keyed = /^([a-z_]+):(.*)$/.exec(body);
    const unquote = (text: string) => text.replace(/^"|"$/g, '');
    return { negative, key: keyed?.[1], text: unquote(keyed ? keyed[2] : body) };
  });
  return {
    matches: (texts, columnOf) =>
      terms.every((term) => {
        const column = term.key === undefined ? undefined : columnOf(term.key);
        const hit =
          column === undefined
            ? texts.includes(term.key ? `${term.key}:${term.text}` : term.text)
            : column.split(' ').includes(term.text) || (term.text.length > 0 && column.includes(term.text) && !/^\d+$/.test(term.text));
        return hit !== term.negative;
      }),
  };
}
