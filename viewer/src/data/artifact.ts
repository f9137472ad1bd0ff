// Records of a compile under the names of their artifacts.
import { memberText } from '../lib/json';
import type { Chunks } from './chunks';
import { loadBlock, type Compile, type TextRef } from './model';

export interface Artifact {
  recordId: number;
  compileId: number | null;
  kind: string;
  name: string | null;
  title: string; // artifact name, else record kind
  graphId: number | null;
  subgraph: string | null;
  attempt: number | null;
  line: number | null;
  byteOffset: number | null;
  timeUs: number | null;
  source: string;
  text: TextRef | null;
  payloadState: string;
  readonly metadata: string | null; // JSON text; cut out of the envelope when asked
  path: string | null; // file name of generated code
  stackId: number | null;
  userStackId: number | null;
}

type RecordTable = Chunks['compile']['record'] | Chunks['process']['record'];
type MetadataTable = Pick<RecordTable, 'kind' | 'envelope' | 'metadata'>;

// The value of the record key, as in the log; if that is not strict JSON, as repaired in the database.
export function metadataText(table: MetadataTable, i: number): string | null {
  const [repaired, envelope, kind] = [table.metadata[i], table.envelope[i], table.kind[i]];
  if (repaired !== null) return repaired;
  return envelope === null || kind === null ? null : memberText(envelope, kind);
}

export function metadataOfRecord(table: RecordTable, recordId: number | null): Record<string, unknown> {
  const i = table.id.indexOf(recordId);
  return i < 0 ? {} : parseObject(metadataText(table, i));
}

function artifactOf(table: RecordTable, i: number): Artifact {
  const kind = table.kind[i] ?? '(no record key)';
  const name = table.name[i];
  const hash = table.payload_hash[i];
  const wide = table as Chunks['compile']['record'];
  return {
    recordId: table.id[i]!,
    compileId: wide.compile_id?.[i] ?? null,
    kind,
    name,
    title: name ?? kind,
    graphId: null,
    subgraph: table.subgraph_name[i],
    attempt: wide.attempt?.[i] ?? null,
    line: table.line[i],
    byteOffset: table.byte_offset[i],
    timeUs: table.time_us[i],
    source: `${table.source_file[i] ?? ''}:${table.source_line[i] ?? ''}`,
    text: hash === null ? null : { hash, sizeBytes: table.size_bytes[i] ?? 0 },
    payloadState: table.payload_state[i] ?? '',
    get metadata() {
      return metadataText(table, i);
    },
    path: null,
    stackId: table.stack_id[i],
    userStackId: table.user_stack_id[i],
  };
}

export function processArtifacts(chunk: Chunks['process']): Artifact[] {
  return chunk.record.id.map((_, i) => artifactOf(chunk.record, i));
}

export function compileArtifacts(chunk: Chunks['compile'], compileId: number): Artifact[] {
  const graphOf = new Map<number, number | null>();
  for (const table of [chunk.graph_text, chunk.output_code]) {
    table.record_id.forEach((record, i) => graphOf.set(record!, table.graph_id[i]));
  }
  const pathOf = new Map(chunk.output_code.record_id.map((record, i) => [record!, chunk.output_code.path[i]]));
  const artifacts: Artifact[] = [];
  chunk.record.compile_id.forEach((id, i) => {
    if (id !== compileId) return;
    const artifact = artifactOf(chunk.record, i);
    artifact.graphId = graphOf.get(artifact.recordId) ?? null;
    artifact.path = pathOf.get(artifact.recordId) ?? null;
    if (artifact.kind === 'optimize_ddp_split_child' || artifact.kind === 'graph_dump' || artifact.kind === 'dump_file') {
      artifact.title = `${artifact.kind}: ${metadataOf(artifact).name ?? ''}`;
    }
    artifacts.push(artifact);
  });
  return artifacts;
}

export function metadataOf(artifact: Artifact): Record<string, unknown> {
  return parseObject(artifact.metadata);
}

function parseObject(json: string | null): Record<string, unknown> {
  try {
    const value: unknown = json === null ? {} : JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export async function loadArtifacts(compile: Compile): Promise<Artifact[]> {
  return compileArtifacts(await loadBlock('compile', compile.id), compile.id);
}
