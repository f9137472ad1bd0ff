// The compiles of other processes that have a compile's id and try.
import { shorten } from '../lib/format';
import type { Compile, Model } from './model';

const isSameFunction = (a: Compile, b: Compile) => a.function === b.function && a.file === b.file;

// Those of the same function come first. A child counts its compiles as its rank does, which is no sign that they are the same.
export function twinsOf(model: Model, compile: Compile): Compile[] {
  const isChild = (one: Compile) => model.processById.get(one.processId)?.isChild === true;
  const twins = model.allCompiles.filter(
    (other) =>
      other.id !== compile.id &&
      other.label === compile.label &&
      other.generation === compile.generation &&
      (other.processId === compile.processId || (!isChild(compile) && !isChild(other))),
  );
  return twins.sort((a, b) => Number(isSameFunction(compile, b)) - Number(isSameFunction(compile, a)));
}

// "rank 2", and what sets it apart: "rank 2, launch 1", "pid 2781 (score)".
export function twinName(model: Model, compile: Compile, twin: Compile): string {
  const launch = twin.launch === compile.launch ? '' : `, launch ${twin.launch}`;
  const other = isSameFunction(compile, twin) ? '' : ` (${shorten(twin.function ?? 'unknown function', 40)})`;
  return `${model.processById.get(twin.processId)?.name ?? ''}${launch}${other}`;
}
