// Records of export and draft export, from the metadata of the records.
import { members, textOf } from '../lib/json';
import { metadataText } from './artifact';
import type { Chunks } from './chunks';

export interface ExportRecord {
  id: number;
  kind: string;
  processId: number;
  stackId: number | null; // of the user's code
  member: (name: string) => string | null; // as text; of a record that the log holds damaged: null
  json: (name: string) => string | null; // as JSON text
}

export interface ExportRecords {
  failures: ExportRecord[]; // what stood in the way of the export
  guards: ExportRecord[];
  symbols: ExportRecord[];
  expressions: ExportRecord[]; // how symbolic values were computed
}

const groups: Record<string, keyof ExportRecords> = {
  propagate_real_tensors: 'failures',
  propagate_real_tensors_provenance: 'failures',
  guard_on_data_dependent_error: 'failures',
  missing_fake_kernel: 'failures',
  mismatched_fake_kernel: 'failures',
  guard_added: 'guards',
  guard_added_fast: 'guards',
  create_symbol: 'symbols',
  create_unbacked_symbol: 'symbols',
  expression_created: 'expressions',
};

export function readExport(chunk: Chunks['export']): ExportRecords {
  const found: ExportRecords = { failures: [], guards: [], symbols: [], expressions: [] };
  const table = chunk.export_record;
  table.id.forEach((id, i) => {
    const kind = table.kind[i] ?? '';
    let parsed: Map<string, string> | undefined;
    const read = () => (parsed ??= members(metadataText(table, i) ?? ''));
    found[groups[kind]]?.push({
      id: id!,
      kind,
      processId: table.process_id[i]!,
      stackId: table.user_stack_id[i],
      member: (name) => textOf(read().get(name)),
      json: (name) => read().get(name) ?? null,
    });
  });
  return found;
}
