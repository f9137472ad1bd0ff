// Colours for Python, C++ and JSON. A line at a time, with the state at its start, so that a text of a megabyte costs only what is seen.

export type Language = 'python' | 'cpp' | 'json' | 'text';
export interface Token {
  text: string;
  kind: '' | 'keyword' | 'string' | 'comment' | 'number' | 'function' | 'type';
}

// What is open at the start of a line: nothing, a Python triple quote, a triple quote that holds the source of a kernel, a C++ comment.
type State = '' | '"""' | "'''" | 'cpp"""' | "cpp'''" | 'triton"""' | "triton'''" | '/*';

const pythonWords = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);
const cppWords = new Set(
  'alignas auto bool break case char class const constexpr continue default delete do double else enum extern false float for if inline int long namespace new nullptr operator private public return short signed sizeof static struct switch template this throw true typedef typename union unsigned using virtual void volatile while int64_t int32_t uint32_t uint8_t size_t'.split(
    ' ',
  ),
);
const jsonWords = new Set(['true', 'false', 'null']);
const tensorType = /^(?:[biuf](?:8|16|32|64)|bf16|c64|c128|b8|Sym)$/;

const pythonToken = /#.*|(?:\b[rRbBfFuU]{1,2})?(?:"""|'''|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|\b\d[\w.]*|[A-Za-z_]\w*|\s+|[^\sA-Za-z_\d"'#]+/g;
const cppToken = /\/\/.*|\/\*|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|^\s*#\s*\w+|\b\d[\w.]*|[A-Za-z_]\w*|\s+|[^\sA-Za-z_\d"'/]+|\//g;
const jsonToken = /"(?:[^"\\]|\\.)*"?|-?\b\d[\d.eE+-]*|[A-Za-z_]\w*|\s+|[^\sA-Za-z_\d"]+/g;

export function languageOf(name: string, text: string): Language {
  if (/\.(cpp|cc|h|hpp|cu)$/.test(name)) return 'cpp';
  if (/\.py$/.test(name)) return 'python';
  const start = text.slice(0, 400).trimStart();
  if (start[0] === '{' || start[0] === '[') return 'json';
  if (/^(#include|#pragma|\/\/|extern "C"|namespace )/.test(start)) return 'cpp';
  if (/^(class |def |import |from |# |@|"""|'''|\w+ = )/.test(start) || /\n(def|class|import) /.test(text.slice(0, 20000))) return 'python';
  return 'text';
}

export class Highlighter {
  private states: State[] = [''];

  constructor(
    private lines: readonly string[],
    readonly language: Language,
  ) {}

  line(number: number): Token[] {
    if (this.language === 'text') return [{ text: this.lines[number], kind: '' }];
    for (let i = this.states.length - 1; i < number; i++) this.states.push(this.scan(this.lines[i], this.states[i]).state);
    return this.scan(this.lines[number], this.states[number]).tokens;
  }

  private scan(line: string, state: State): { tokens: Token[]; state: State } {
    const tokens: Token[] = [];
    let rest = line;
    const embedded = /^(cpp|triton)(.*)$/.exec(state);
    if (embedded) {
      const end = rest.indexOf(embedded[2]);
      const inner = new Highlighter([end < 0 ? rest : rest.slice(0, end)], embedded[1] === 'cpp' ? 'cpp' : 'python');
      tokens.push(...inner.line(0));
      if (end < 0) return { tokens, state };
      tokens.push({ text: embedded[2], kind: 'string' });
      rest = rest.slice(end + 3);
    } else if (state) {
      const close = state === '/*' ? '*/' : state;
      const kind = state === '/*' ? 'comment' : 'string';
      const end = rest.indexOf(close);
      if (end < 0) return { tokens: [{ text: rest, kind }], state };
      tokens.push({ text: rest.slice(0, end + close.length), kind });
      rest = rest.slice(end + close.length);
    }
    const pattern = this.language === 'python' ? pythonToken : this.language === 'cpp' ? cppToken : jsonToken;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(rest); match; match = pattern.exec(rest)) {
      const text = match[0];
      const opened = this.opens(text);
      if (opened) {
        const close = opened === '/*' ? '*/' : opened;
        const kind = opened === '/*' ? 'comment' : 'string';
        const end = rest.indexOf(close, match.index + text.length);
        if (end < 0) {
          tokens.push({ text: rest.slice(match.index), kind });
          // The source of a kernel inside the generated Python.
          const kernel = opened === '/*' ? null : /async_compile\.(cpp|triton)/.exec(rest.slice(0, match.index));
          return { tokens, state: kernel ? (`${kernel[1]}${opened}` as State) : opened };
        }
        tokens.push({ text: rest.slice(match.index, end + close.length), kind });
        pattern.lastIndex = end + close.length;
        continue;
      }
      tokens.push({ text, kind: this.kindOf(text, rest, match.index + text.length) });
    }
    return { tokens, state: '' };
  }

  private opens(text: string): State {
    if (this.language === 'cpp') return text === '/*' ? '/*' : '';
    if (this.language !== 'python') return '';
    return text.endsWith('"""') && text.length <= 5 ? '"""' : text.endsWith("'''") && text.length <= 5 ? "'''" : '';
  }

  private kindOf(text: string, line: string, end: number): Token['kind'] {
    const first = text[0];
    if (this.language === 'python' && first === '#') return 'comment';
    if (this.language === 'cpp' && text.startsWith('//')) return 'comment';
    if (this.language === 'cpp' && text.trimStart()[0] === '#') return 'keyword';
    if (first === '"' || first === "'" || /^[rRbBfFuU]{1,2}["']/.test(text)) return this.language === 'json' && line[end] === ':' ? 'type' : 'string';
    if (first >= '0' && first <= '9') return 'number';
    if (!/[A-Za-z_]/.test(first)) return '';
    const words = this.language === 'python' ? pythonWords : this.language === 'cpp' ? cppWords : jsonWords;
    if (words.has(text)) return 'keyword';
    if (tensorType.test(text)) return 'type';
    return line[end] === '(' ? 'function' : '';
  }
}
