// The run as objects for the pages, joined from the chunks index and compiles.
import { remember } from '../lib/remember';
import { whenQuiet } from '../lib/schedule';
import type { Profile } from './profiles';
import { load, loaded, useAsync, useChunk, type Chunks, type Pending, type Stem } from './chunks';

export interface Compile {
  id: number;
  processId: number;
  launch: number; // of its process
  rank: number | null;
  label: string;
  // Label, and which use of it where a process used it several times (torch._dynamo.reset()).
  title: string;
  generation: number;
  status: string;
  function: string | null;
  file: string | null;
  line: number | null;
  frameId: number | null;
  startUs: number | null;
  durationUs: number | null;
  backwardStartUs: number | null;
  backwardUs: number | null;
  // Exclusive times of the phases, microseconds.
  dynamoUs: number;
  aotUs: number;
  inductorUs: number;
  codeGenUs: number;
  attempts: number;
  graphs: number;
  graphBreaks: number;
  recompiles: number;
  ops: number | null;
  guards: number | null;
  cache: Record<CacheState, number>;
  stackId: number | null;
  isSynthetic: boolean;
  failType: string | null;
  failReason: string | null;
}

export const cacheStates = ['hit', 'miss', 'guard_miss', 'remote_error', 'bypass', 'disabled'] as const;
export type CacheState = (typeof cacheStates)[number];

export interface ProcessEnd {
  state: 'compiling' | 'failed';
  compileId: number | null;
  phase: string | null; // the innermost step that began and did not end
  sinceUs: number | null;
}

export interface Process {
  id: number;
  rank: number | null;
  pid: number;
  name: string; // "rank 3", "rank 3 loader worker (pid 4242)", or "pid 4242" where the rank is unknown
  laneName: string; // the same, shorter, where its parent stands above it
  shortName: string;
  isChild: boolean; // that a rank started: it is compared with nobody
  launch: number; // 1 is the first
  launchStartUs: number | null;
  lastRecordUs: number | null; // null: its clock is unknown
  // Set if the log ends inside a compile, or the last compile failed.
  end: ProcessEnd | null;
  file: string;
  torchVersion: string | null;
  pythonVersion: string | null;
  timeBasis: string | null;
}

export interface Frame {
  id: number;
  parentId: number | null;
  file: string | null;
  line: number | null;
  function: string | null;
  code: string | null;
}

export interface Model {
  index: Chunks['index'];
  runName: string;
  counts: Map<string, number>;
  originUs: number;
  processes: Process[]; // of the chosen launch and rank
  allProcesses: Process[];
  processById: Map<number, Process>;
  launches: number; // how many
  launch: number; // the chosen one: findings and comparisons are of it
  isOneLaunch: boolean; // false: everything else is of all launches
  rank: number | null; // the chosen one
  launched: Process[]; // of the launch, all ranks and their children
  peers: Process[]; // the same without children: ranks are compared within a launch
  peerCompiles: Compile[];
  // Of the chosen launch and rank, in the order of the index.
  compiles: Compile[];
  allCompiles: Compile[];
  compileById: Map<number, Compile>;
  frames: Map<number, Frame>;
  profiles?: Profile[]; // see profilesOf
}

// `chosenLaunch`: the page says once that it shows this one.
function readProcesses(index: Chunks['index'], chosenLaunch: number | null): Process[] {
  const paths = new Map(index.log_file.id.map((id, i) => [id, index.log_file.path[i] ?? '']));
  const table = index.process;
  const hasLaunches = table.launch.some((launch) => (launch ?? 1) > 1);
  const rankUses = new Map<string, number>();
  const useOf = (i: number) => `${table.launch[i]} ${table.rank[i]}`;
  table.rank.forEach((_, i) => table.child_kind[i] === null && rankUses.set(useOf(i), (rankUses.get(useOf(i)) ?? 0) + 1));
  const ends = new Map<number, ProcessEnd>();
  const status = index.rank_status;
  status.process_id.forEach((id, i) =>
    ends.set(id!, { state: status.state[i] as ProcessEnd['state'], compileId: status.compile_id[i], phase: status.phase[i], sinceUs: status.since_us[i] }),
  );
  return table.id.map((id, i) => {
    const rank = table.rank[i];
    const pid = table.pid[i]!;
    const kind = table.child_kind[i]?.replaceAll('_', ' ') ?? null;
    const isAlone = kind === null && rankUses.get(useOf(i)) === 1;
    const launch = table.launch[i] ?? 1;
    const suffix = [hasLaunches && launch !== chosenLaunch ? `launch ${launch}` : '', isAlone || rank === null ? '' : `pid ${pid}`].filter(Boolean).join(', ');
    const name = [rank === null ? `pid ${pid}` : `rank ${rank}`, kind, suffix && `(${suffix})`].filter(Boolean).join(' ');
    return {
      id: id!,
      rank,
      pid,
      name,
      laneName: kind === null ? name : `└ ${kind}`,
      launch,
      launchStartUs: table.launch_start_us[i],
      lastRecordUs: table.last_record_us[i],
      end: ends.get(id!) ?? null,
      shortName: rank === null ? String(pid) : String(rank),
      isChild: kind !== null,
      file: paths.get(table.log_file_id[i]) ?? '',
      torchVersion: table.torch_version[i],
      pythonVersion: table.python_version[i],
      timeBasis: table.time_basis[i],
    };
  });
}

function readCompiles(table: Chunks['compiles']['compile'], processById: Map<number, Process>): Compile[] {
  return table.id.map((id, i) => {
    const dynamo = table.dynamo_us[i] ?? 0;
    const aot = table.aot_autograd_us[i] ?? 0;
    const inductor = table.inductor_us[i] ?? 0;
    const generation = table.generation[i] ?? 0;
    const label = table.label[i] ?? '';
    return {
      id: id!,
      processId: table.process_id[i]!,
      launch: processById.get(table.process_id[i]!)?.launch ?? 1,
      rank: table.rank[i],
      label,
      title: generation > 0 ? `${label}#${generation + 1}` : label,
      generation,
      // Contexts of compiled autograd and stretches of records without an id are no compiles that could stop.
      status: table.status[i] === 'empty' && (table.frame_id[i] === null || table.is_synthetic[i] === 1) ? 'context' : (table.status[i] ?? ''),
      function: table.function[i],
      file: table.file[i],
      line: table.line[i],
      frameId: table.frame_id[i],
      startUs: table.start_us[i],
      durationUs: table.duration_us[i],
      backwardStartUs: table.backward_start_us[i],
      backwardUs: table.backward_duration_us[i],
      // PyTorch's counters are nested: dynamo holds AOTAutograd, which holds Inductor.
      dynamoUs: Math.max(0, dynamo - aot),
      aotUs: Math.max(0, aot - inductor),
      inductorUs: inductor,
      codeGenUs: table.code_gen_us[i] ?? 0,
      attempts: table.attempts[i] ?? 1,
      graphs: table.graphs[i] ?? 0,
      graphBreaks: table.graph_breaks[i] ?? 0,
      recompiles: table.recompiles[i] ?? 0,
      ops: table.ops[i],
      guards: table.guards[i],
      cache: {
        hit: table.hits[i] ?? 0,
        miss: table.misses[i] ?? 0,
        guard_miss: table.guard_misses[i] ?? 0,
        remote_error: table.remote_errors[i] ?? 0,
        bypass: table.bypasses[i] ?? 0,
        disabled: table.disabled[i] ?? 0,
      },
      stackId: table.stack_id[i],
      isSynthetic: table.is_synthetic[i] === 1,
      failType: table.fail_type[i],
      failReason: table.fail_reason[i],
    };
  });
}

export function readFrames(table: Chunks['compiles']['frame']): Map<number, Frame> {
  const frames = new Map<number, Frame>();
  table.id.forEach((id, i) =>
    frames.set(id!, {
      id: id!,
      parentId: table.parent_id[i],
      file: table.file[i],
      line: table.line[i],
      function: table.function[i],
      code: table.code[i],
    }),
  );
  return frames;
}

// Whether the recompile limit refused it; as IsRecompileLimit of tlparse/src/artifacts/common/text/recompile_limit.h.
export function isRefused({ failType, failReason }: Compile): boolean {
  return (
    /(RecompileLimitExceeded|FailOn(Recompile|Cache)LimitHit|CacheLimitExceeded)$/.test(failType ?? '') ||
    /^(Dynamo (recompile|cache) limit exceeded|(cache_size_limit|(accumulated_)?recompile_limit|accumulated_cache_size_limit) reached)/.test(failReason ?? '')
  );
}

export function isRecompile(compile: Compile): boolean {
  return compile.recompiles > 0 && !isRefused(compile);
}

// Whether it is of the launch and rank that are chosen at the top.
export function isShown(model: Model, one: { launch: number; rank: number | null } | undefined): boolean {
  return one !== undefined && (!model.isOneLaunch || one.launch === model.launch) && (model.rank === null || one.rank === model.rank);
}

// Outermost first.
export function stackOf(frames: Map<number, Frame>, id: number | null): Frame[] {
  const stack: Frame[] = [];
  for (let at = id === null ? undefined : frames.get(id); at; at = at.parentId === null ? undefined : frames.get(at.parentId)) {
    stack.push(at);
    if (stack.length > 10000) break; // a damaged database may hold a ring
  }
  return stack.reverse();
}

// What is chosen at the top of the page. launch: null is the latest.
export interface Choice {
  launch: number | 'all' | null;
  rank: number | null;
}

const modelOf = remember((index: Chunks['index'], chunk: Chunks['compiles'], asked: Choice['launch'], rank: number | null): Model => {
  const launches = index.process.launch.reduce<number>((most, launch) => Math.max(most, launch ?? 1), 1);
  const launch = typeof asked === 'number' && asked >= 1 && asked <= launches ? asked : launches;
  const isOneLaunch = asked !== 'all';
  const allProcesses = readProcesses(index, isOneLaunch ? launch : null);
  const processById = new Map(allProcesses.map((process) => [process.id, process]));
  const allCompiles = readCompiles(chunk.compile, processById);
  const isChosen = (one: { launch: number; rank: number | null }) => (!isOneLaunch || one.launch === launch) && (rank === null || one.rank === rank);
  const setting = new Map(index.setting.name.map((name, i) => [name ?? '', index.setting.value[i] ?? 0]));
  const current = index.run.is_current.indexOf(1);
  const launched = allProcesses.filter((process) => process.launch === launch);
  const ranks = launched.filter((process) => !process.isChild);
  const peers = ranks.length > 0 ? ranks : launched; // children alone are as good as ranks
  const peerIds = new Set(peers.map((process) => process.id));
  return {
    index,
    runName: index.run.name[current] ?? '',
    counts: new Map(index.count.name.map((name, i) => [name ?? '', index.count.value[i] ?? 0])),
    originUs: setting.get('origin_us') ?? 0,
    launches,
    launch,
    isOneLaunch,
    rank,
    launched,
    peers,
    peerCompiles: allCompiles.filter((compile) => peerIds.has(compile.processId)),
    processes: allProcesses.filter(isChosen),
    allProcesses,
    processById,
    compiles: allCompiles.filter(isChosen),
    allCompiles,
    compileById: new Map(allCompiles.map((compile) => [compile.id, compile])),
    frames: readFrames(chunk.frame),
  };
});

async function loadModel({ launch, rank }: Choice): Promise<Model> {
  const [index, compiles] = await Promise.all([load('index'), load('compiles')]);
  return modelOf(index, compiles, launch, rank);
}

// Loads the data of most pages while nobody does anything, unless the run is so large that this would delay requested data. Returns whether it did.
export async function loadAhead(model: Model): Promise<boolean> {
  if (model.compiles.length > 20_000) return false;
  for (const stem of ['findings', 'problems', 'cache', 'graphs', 'kernels', 'schedules'] as Stem[]) {
    await whenQuiet();
    await load(stem).catch(() => undefined);
  }
  return true;
}

export function useModel(choice: Choice): Pending<Model> {
  return useAsync(
    `model ${choice.launch} ${choice.rank}`,
    () => loadModel(choice),
    () => {
      const [index, compiles] = [loaded('index'), loaded('compiles')];
      return index && compiles && modelOf(index, compiles, choice.launch, choice.rank);
    },
  );
}

// The findings of the chosen launch. `isWanted` false: they are not loaded.
export function useFindings({ launch, launches }: Model, isWanted = true): Pending<Chunks['findings']> {
  return useChunk(isWanted ? 'findings' : null, launch === launches ? undefined : launch);
}

// The chunk that holds item `id` of a kind whose chunks begin at the index's blocks.
export function blockOf(index: Chunks['index'], kind: string, id: number): number {
  let first: number | undefined;
  index.block.first_id.forEach((start, i) => {
    if (index.block.kind[i] === kind && start! <= id && (first === undefined || start! > first)) first = start!;
  });
  return first ?? id;
}

// The chunk of a process: 0, which is empty, if it has none of its own.
const chunksOfProcesses = new Map<string, Set<number>>();
export function chunkOfProcess(index: Chunks['index'], kind: 'process' | 'events', id: number): number {
  let own = chunksOfProcesses.get(kind);
  if (!own) {
    own = new Set(index.block.first_id.filter((_, i) => index.block.kind[i] === kind) as number[]);
    chunksOfProcesses.set(kind, own);
  }
  return own.size === 0 || own.has(id) ? id : 0;
}

export async function loadBlock<S extends 'compile' | 'guards' | 'provenance'>(kind: S, id: number): Promise<Chunks[S]> {
  return load(kind, blockOf(await load('index'), kind, id));
}

export function useBlock<S extends 'compile' | 'guards' | 'provenance'>(kind: S, id: number | null): Pending<Chunks[S]> {
  const index = loaded('index');
  return useAsync(
    id === null ? null : `${kind}/${id}`,
    () => loadBlock(kind, id!),
    () => (index && id !== null ? loaded(kind as Stem, blockOf(index, kind, id)) : undefined) as Chunks[S] | undefined,
  );
}

// The rows of a table whose `column` is `value`.
export function rowsWhere(column: (number | null)[], value: number): number[] {
  const rows: number[] = [];
  column.forEach((cell, i) => {
    if (cell === value) rows.push(i);
  });
  return rows;
}

// ---- texts

export interface TextRef {
  hash: string;
  sizeBytes: number;
}

export interface LoadedText {
  content: string;
  isBinary: boolean;
}

export function textPart(index: Chunks['index'], ref: TextRef): string {
  const setting = (name: string) => index.setting.value[index.setting.name.indexOf(name)] ?? 0;
  return ref.sizeBytes >= setting('text_alone_bytes') ? ref.hash : ref.hash.slice(0, setting('text_prefix_digits'));
}

function findText(chunk: Chunks['text'], hash: string): LoadedText {
  const row = chunk.text.hash.indexOf(hash);
  if (row < 0) throw new Error(`there is no text ${hash}`);
  return { content: chunk.text.content[row] ?? '', isBinary: chunk.text.is_binary[row] === 1 };
}

export async function loadText(ref: TextRef): Promise<LoadedText> {
  const index = await load('index');
  return findText(await load('text', textPart(index, ref)), ref.hash);
}

// Returns what is already loaded, without waiting.
export function loadedText(ref: TextRef): LoadedText | undefined {
  const index = loaded('index');
  const chunk = index && loaded('text', textPart(index, ref));
  return chunk && findText(chunk, ref.hash);
}

export function useText(ref: TextRef | null): Pending<LoadedText> {
  return useAsync(
    ref && ref.hash,
    () => loadText(ref!),
    () => (ref ? loadedText(ref) : undefined),
  );
}
