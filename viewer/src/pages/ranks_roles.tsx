// Which ranks are meant to do equal work, their children, and how all of them ended.
import { useChunk } from '../data/chunks';
import type { Model } from '../data/model';
import { plural, ranges, shorten } from '../lib/format';
import { Section, Waiting } from '../ui/bits';

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
                      {groups.end_kind[i] !== null && <span class="tag">{groups.end_kind[i]!.replaceAll('_', ' ')}</span>}{' '}
                      {shorten(groups.end_evidence[i] ?? '', 300)}
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
