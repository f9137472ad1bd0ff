// The phases of a compile: their names, colours (classes of the style sheet) and order everywhere on the page, and which events are in which.

export interface Phase {
  key: string; // in addresses
  name: string;
  class: string;
  hint: string;
}

// By the numbers of the chunk `time`.
export const timedPhases: Phase[] = [
  { key: 'other', name: 'other events', class: 'phase-other', hint: 'Events outside of the phases' },
  { key: 'dynamo', name: 'Dynamo', class: 'phase-0', hint: 'Tracing of Python into graphs, without what it calls' },
  { key: 'aot', name: 'AOTAutograd', class: 'phase-1', hint: 'Joint graph and its partition, without Inductor' },
  { key: 'inductor', name: 'Inductor', class: 'phase-2', hint: 'Passes and lowering of the forward, without code generation' },
  { key: 'code', name: 'code generation', class: 'phase-2-code', hint: 'Inductor’s code generation of the forward, compilers of C++ and Triton included' },
  { key: 'backward', name: 'Backward', class: 'phase-3', hint: 'Compiles of the backward' },
];
export const notAttributed: Phase = {
  key: 'none',
  name: 'not attributed',
  class: 'phase-none',
  hint: 'A compile was under way, and none of its timed events was open',
};

// torch.export traces in no event of a frame: the events that are inside of one elsewhere begin it.
const tracing = new Set(['dynamo', 'entire_frame_compile', 'fullgraph_capture', 'bytecode_tracing']);

// The phase of an event by its name and the phase of the event around it; as PhaseInside of tlparse/src/facts/compiles/event_times.h.
export function phaseInside(name: string, outer: number): number {
  if (outer === 5 || name === 'entire_backward_compile') return 5;
  if (name === 'inductor_compile' && outer !== 4) return 3;
  if ((name === 'code_gen' || name === 'AotCodeCompiler.compile') && outer === 3) return 4;
  if ((name === 'backend_compile' && outer === 1) || (name === 'create_aot_dispatcher_function' && outer === 0)) return 2;
  if (outer === 0 && (tracing.has(name) || name.startsWith('compile_attempt_'))) return 1;
  return outer;
}
