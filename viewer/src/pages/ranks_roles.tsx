// Which ranks are meant to do equal work, their children, and how all of them ended.
import { useChunk, type Chunks } from '../data/chunks';
import { wordsOfEnd } from '../data/ends';
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

function evidenceOf(t: Chunks['index']['process_group'], row: number): string {
  const text = t.end_evidence[row] ?? '';
  return (t.processes[row] ?? 0) > 1 ? ofSeveral.reduce((said, [one, several]) => said.replace(one, several), text) : text;
}

// Rows of one role, or of one kind of children of its ranks, which ended in different ways.
function byRole(t: Chunks['index']['process_group'], launch: number): number[][] {
  const roles = new Map<string, number[]>();
  t.launch.forEach((own, row) => {
    if (own !== launch) return;
    const key = `${t.role_ordinal[row]} ${t.child_kind[row]}`;
    roles.set(key, [...(roles.get(key) ?? []), row]);
  });
  return [...roles.values()];
}

const numbersIn = (list: string | null) => (list ?? '').split(',').filter(Boolean).map(Number);

function ranksOf(t: Chunks['index']['process_group'], rows: number[]): string {
  return ranges([...new Set(rows.flatMap((row) => numbersIn(t.ranks[row])))].sort((a, b) => a - b));
}

export function Roles({ model }: { model: Model }) {
  const index = useChunk('index');
  return (
    <Waiting pending={index}>
      {({ process_group: groups }) => {
        const roles = byRole(groups, model.launch);
        if (roles.length === 0) return null;
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
                {roles.map((rows) => (
                  <tr>
                    <th scope="row">
                      {groups.child_kind[rows[0]] === null ? (
                        <>
                          {groups.role[rows[0]] ?? 'without a role'}
                          <span class="quiet evidence">{groups.role_evidence[rows[0]]}</span>
                        </>
                      ) : (
                        <span class="quiet">└ {groups.child_kind[rows[0]]!.replaceAll('_', ' ')}</span>
                      )}
                    </th>
                    <td>
                      {ranksOf(groups, rows)}{' '}
                      <span class="quiet">
                        {plural(
                          rows.reduce((sum, row) => sum + (groups.processes[row] ?? 0), 0),
                          'process',
                          'processes',
                        )}
                      </span>
                    </td>
                    <td>
                      {rows.map((row) => (
                        <div>
                          {rows.length > 1 && `${ranksOf(groups, [row])}: `}
                          {groups.end_kind[row] !== null && <span class="tag">{wordsOfEnd(groups, row)}</span>} {shorten(evidenceOf(groups, row), 300)}
                        </div>
                      ))}
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
