// Caches the result of `make` for a chunk as long as the chunk exists; the other arguments must not change meanwhile.
export function remember<Chunk extends object, Rest extends unknown[], Made>(make: (chunk: Chunk, ...rest: Rest) => Made): (chunk: Chunk, ...rest: Rest) => Made {
  const known = new WeakMap<Chunk, { made: Made }>();
  return (chunk, ...rest) => {
    let entry = known.get(chunk);
    if (!entry) known.set(chunk, (entry = { made: make(chunk, ...rest) }));
    return entry.made;
  };
}
