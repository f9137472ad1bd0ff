// Lines of texts of TORCH_LOGS, with the compiles that they name.
import { useMemo } from 'preact/hooks';
import { useBlocks, type Rows } from './blocks';
import type { Compile, Model } from './model';

export interface LogLine {
  id: number;
  file: string;
  line: number;
  rank: number | null;
  level: string;
  artifact: string;
  label: string | null;
  compile: Compile | undefined;
  source: string;
  text: string;
  searched?: string; // once it was searched
}

export const searchedText = (line: LogLine): string => (line.searched ??= `${line.text} ${line.source}`.toLowerCase());

// Of the chosen rank; lines that name no rank are of every one.
export function useLogLines(model: Model): Rows<LogLine> {
  const { profile } = model.index;
  const read = useBlocks(model, 'torch_log', ({ torch_log: t }) =>
    t.id.map((id, i): LogLine => ({
      id: id!,
      file: profile.path[profile.id.indexOf(t.profile_id[i])] ?? '',
      line: t.line[i] ?? 0,
      rank: t.rank[i],
      level: t.level[i] ?? '',
      artifact: t.artifact[i] ?? '',
      label: t.label[i],
      compile: t.compile_id[i] === null ? undefined : model.compileById.get(t.compile_id[i]),
      source: `${t.source_file[i] ?? ''}:${t.source_line[i] ?? ''}`,
      text: t.text[i] ?? '',
    })),
  );
  const rows = useMemo(() => read.rows.filter((line) => model.rank === null || line.rank === null || line.rank === model.rank), [read.rows, model]);
  return { ...read, rows };
}
