// What DEFLATE (RFC 1951) has packed, for browsers that cannot do it themselves.

interface Code {
  counts: Uint16Array; // of codes by length
  symbols: Uint16Array; // in the order of their codes
}

function codeOf(lengths: number[] | Uint8Array): Code {
  const counts = new Uint16Array(16);
  for (const length of lengths) counts[length]++;
  const offsets = new Uint16Array(16);
  for (let i = 1; i < 15; i++) offsets[i + 1] = offsets[i] + counts[i];
  const symbols = new Uint16Array(lengths.length);
  for (let i = 0; i < lengths.length; i++) if (lengths[i] > 0) symbols[offsets[lengths[i]]++] = i;
  return { counts, symbols };
}

const lengthBases = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const lengthExtra = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const distanceBases = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const lengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const fixedLengths = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));

class Inflater {
  private at = 0;
  private held = 0; // bits that were read and not used
  private count = 0;
  private size = 0;
  private readonly out: Uint8Array;

  constructor(
    private readonly packed: Uint8Array,
    size: number,
  ) {
    this.out = new Uint8Array(size);
  }

  run(): Uint8Array {
    let isLast = false;
    while (!isLast) {
      isLast = this.bits(1) === 1;
      const kind = this.bits(2);
      if (kind === 0) this.copyStored();
      else if (kind === 1) this.copyCoded(codeOf(fixedLengths), codeOf(new Array<number>(30).fill(5)));
      else this.copyCoded(...this.readCodes());
    }
    return this.out;
  }

  private bits(wanted: number): number {
    for (; this.count < wanted; this.count += 8) this.held |= this.packed[this.at++] << this.count;
    const value = this.held & ((1 << wanted) - 1);
    this.held >>>= wanted;
    this.count -= wanted;
    return value;
  }

  private symbol({ counts, symbols }: Code): number {
    let [code, first, index] = [0, 0, 0];
    for (let length = 1; length < 16; length++) {
      code |= this.bits(1);
      if (code - counts[length] < first) return symbols[index + code - first];
      index += counts[length];
      first = (first + counts[length]) << 1;
      code <<= 1;
    }
    throw new Error('a packed file is damaged');
  }

  private copyStored(): void {
    this.held = this.count = 0;
    const length = this.packed[this.at] | (this.packed[this.at + 1] << 8);
    this.at += 4;
    this.out.set(this.packed.subarray(this.at, this.at + length), this.size);
    this.at += length;
    this.size += length;
  }

  private readCodes(): [Code, Code] {
    const [literals, distances, known] = [this.bits(5) + 257, this.bits(5) + 1, this.bits(4) + 4];
    const own = new Uint8Array(19);
    for (let i = 0; i < known; i++) own[lengthOrder[i]] = this.bits(3);
    const code = codeOf(own);
    const lengths = new Uint8Array(literals + distances);
    for (let i = 0; i < lengths.length;) {
      const symbol = this.symbol(code);
      if (symbol < 16) {
        lengths[i++] = symbol;
        continue;
      }
      const repeated = symbol === 16 ? lengths[i - 1] : 0;
      const times = symbol === 16 ? 3 + this.bits(2) : symbol === 17 ? 3 + this.bits(3) : 11 + this.bits(7);
      lengths.fill(repeated, i, i + times);
      i += times;
    }
    return [codeOf(lengths.subarray(0, literals)), codeOf(lengths.subarray(literals))];
  }

  private copyCoded(literals: Code, distances: Code): void {
    for (let symbol = this.symbol(literals); symbol !== 256; symbol = this.symbol(literals)) {
      if (symbol < 256) {
        this.out[this.size++] = symbol;
        continue;
      }
      const length = lengthBases[symbol - 257] + this.bits(lengthExtra[symbol - 257]);
      const far = this.symbol(distances);
      const from = this.size - distanceBases[far] - this.bits(far < 2 ? 0 : (far >> 1) - 1);
      for (let i = 0; i < length; i++) this.out[this.size++] = this.out[from + i];
    }
  }
}

// `size`: of what was packed.
export function inflate(packed: Uint8Array, size: number): Uint8Array {
  return new Inflater(packed, size).run();
}
