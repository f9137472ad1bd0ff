// The processes of the overview: children stand below the rank that started them.
import { useMemo } from 'preact/hooks';
import { markOf } from '../data/changes';
import type { Model, Process } from '../data/model';
import { baseName, count, plural } from '../lib/format';
import { href } from '../route';
import { problemsOf } from '../ui/bits';
import { Grid, type Column } from '../ui/virtual';

export function Processes({ model }: { model: Model }) {
  const columns = useMemo<Column<Process>[]>(() => {
    const compilesOf = new Map<number, number>();
    for (const compile of model.compiles) compilesOf.set(compile.processId, (compilesOf.get(compile.processId) ?? 0) + 1);
    const logs = model.index.log_file;
    const problems = new Map(logs.path.flatMap((path, i) => (logs.problems[i] ? [[path ?? '', logs.problems[i]!]] : [])));
    // One version of all is in the head of the page.
    const hasVersions = new Set(model.processes.map((process) => process.torchVersion)).size > 1;
    const version: Column<Process> = {
      key: 'version',
      title: 'PyTorch',
      width: 'minmax(108px, 1fr)',
      cell: (process) => process.torchVersion ?? <span class="quiet">unknown</span>,
    };
    return [
      {
        key: 'process',
        title: 'Process',
        width: 'minmax(80px, 1.2fr)',
        about: (process) => process.name,
        cell: (process) => <a href={href(['process', process.id])}>{process.laneName}</a>,
      },
      ...(hasVersions ? [version] : []),
      { key: 'compiles', title: 'Compiles', width: '64px', align: 'right', cell: (process) => count(compilesOf.get(process.id) ?? 0) },
      {
        key: 'log',
        title: 'Log',
        width: 'minmax(70px, 2fr)',
        cell: (process) => (
          <span class="tail" title={process.file}>
            <bdi>{baseName(process.file)}</bdi>
          </span>
        ),
      },
      ...(problems.size > 0
        ? [
            {
              key: 'problems',
              title: '',
              width: '88px',
              cell: (process: Process) =>
                problems.has(process.file) && (
                  <a class="tag severity-warning" href={problemsOf(process.file)}>
                    {plural(problems.get(process.file)!, 'problem')}
                  </a>
                ),
            },
          ]
        : []),
    ];
  }, [model]);
  return (
    <Grid
      label="Processes"
      rows={model.processes}
      columns={columns}
      rowKey={(process) => process.id}
      rowHref={(process) => href(['process', process.id])}
      rowClass={(process) => markOf('index.process', process.id) ?? ''}
      height={`${Math.min(model.processes.length, 16) * 26 + 30}px`}
      empty="No log was read."
    />
  );
}
