// Which ranks are meant to do equal work, their children, and how all of them ended.
import { useChunk, type Chunks } from '../data/chunks';
import type { Model } from '../data/model';
import { plural, ranges, shorten } from '../lib/format';
import { Section, Waiting } from '../ui/bits';

// What is said of one process, of several: as `tlparse status` does.
const ofSeveral: [string, string][] = [
  ['its log ends', 'their logs end'],
  ['its log is damaged', 'their logs are damaged'],
  ['it ended with', 'they ended with'],
  [' ended it ', ' ended them '],
  ['it lived on', 'they lived on'],
];

// "killed, ended with rank 2"
function endOf(t: Chunks['index']['process_group'], row: number): string {
  const kind = (t.end_kind[row] ?? '').replaceAll('_', ' ');
  if (t.ended_by[row] !== null) return `${kind}, ended ${t.ended_long_after[row] === 1 ? 'after' : 'with'} ${t.ended_by[row]}`;
  return t.is_bystander[row] === 1 ? `${kind}, ended with another` : kind;
}

function evidenceOf(t: Chunks['index']['process_group'], row: number): string {
  const text = t.end_evidence[row] ?? '';
  return (t.processes[row] ?? 0) > 1 ? ofSeveral.reduce((said, [one, several]) => said.replace(one, several), text) : text;
}

export function Roles({ model }: { model: Model }) {
  const index = useChunk('index');
  return (
    <Waiting pending={index}>
      {({ process_group: groups }) => {
        const shown = groups.launch.flatMap((launch, i) => (launch === model.launch ? [i] : []));
        if (shown.length === 0) return null;
        return (
          <Section title="Roles and processes">
            <table class="plain roles">
              <thead>
                <tr>
                  <th scope="col">Role, and children of its ranks</th>
                  <th scope="col">Ranks</th>
                  <th scope="col">How they ended</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((i) => (
                  <tr>
                    <th scope="row" title={groups.role_evidence[i] ?? undefined}>
                      {groups.child_kind[i] === null ? (
                        (groups.role[i] ?? 'without a role')
                      ) : (
                        <span class="quiet">└ {groups.child_kind[i]!.replace('_', ' ')}</span>
                      )}
                    </th>
                    <td>
                      {ranges(
                        (groups.ranks[i] ?? '')
                          .split(',')
                          .filter(Boolean)
                          .map(Number)
                          .sort((a, b) => a - b),
                      )}{' '}
                      <span class="quiet">{plural(groups.processes[i] ?? 0, 'process', 'processes')}</span>
                    </td>
                    <td>
                      {groups.end_kind[i] !== null && <span class="tag">{endOf(groups, i)}</span>} {shorten(evidenceOf(groups, i), 300)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Section>
        );
      }}
    </Waiting>
  );
}
