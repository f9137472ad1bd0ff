// Caches the result of `make` for a chunk as long as the chunk exists, and for its latest other arguments.
export function remember<Chunk extends object, Rest extends unknown[], Made>(
  make: (chunk: Chunk, ...rest: Rest) => Made,
): (chunk: Chunk, ...rest: Rest) => Made {
  const known = new WeakMap<Chunk, { made: Made; rest: Rest }>();
  return (chunk, ...rest) => {
    let entry = known.get(chunk);
    if (!entry || rest.some((argument, i) => argument !== entry!.rest[i])) known.set(chunk, (entry = { made: make(chunk, ...rest), rest }));
    return entry.made;
  };
}
