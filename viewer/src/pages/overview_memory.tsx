// The peak of a recording of the allocator, with the lines that held most: what there is to say of an input without a log.
import { useMemo } from 'preact/hooks';
import { useChunk } from '../data/chunks';
import { highestOf, peakOf, recordingsOf, type Memory } from '../data/memory';
import type { Model } from '../data/model';
import { bytes, wholePlace } from '../lib/format';
import { href } from '../route';
import { HeatBar, Section } from '../ui/bits';

const most = 5;

// What tells a holder without a line from others: its graph and kernel, else why it has none.
function withoutLine({ site }: Memory, row: number): string {
  const graph = [site.label[row], site.direction[row]].filter(Boolean).join(' ');
  return [graph, site.nodes[row] ?? site.kernel[row]].filter(Boolean).join(', ') || site.reason[row] || 'nothing tells where';
}

export function MemoryPeak({ model }: { model: Model }) {
  const recording = useMemo(() => highestOf(model), [model]);
  const memory = useChunk(recording ? 'memory' : null, recording?.id).value;
  if (!recording) return null;
  const t = model.index.memory;
  const peak = t.peak_bytes[recording.row] ?? 0;
  const others = recordingsOf(model).length - 1;
  const at = memory ? peakOf(memory) : -1;
  const holders = memory ? memory.holder.point.flatMap((point, row) => (point === at ? [row] : [])) : [];
  const link = href(['memory'], { recording: recording.id });
  return (
    <Section title={`At the peak ${bytes(peak)} were alive`} aside={<a href={link}>over time, and who held it</a>}>
      <p class="quiet small">
        {recording.name}
        {others > 0 && `, the highest of ${others + 1} recordings`}
        {t.oom_ordinal[recording.row] !== null && '. An allocation failed'}
      </p>
      <ul class="holders" aria-label="What held most at the peak">
        {holders.slice(0, most).map((row) => {
          const site = memory!.holder.site[row]!;
          const s = memory!.site;
          const size = memory!.holder.size_bytes[row] ?? 0;
          return (
            <li>
              <b class="right">{bytes(size)}</b> <HeatBar share={peak > 0 ? size / peak : 0} />
              <span>
                {s.file[site] === null ? (
                  <span class="quiet">
                    {s.category[site]}, no line known: {withoutLine(memory!, site)}
                  </span>
                ) : (
                  <code>{wholePlace(s.file[site], s.line[site])}</code>
                )}{' '}
                {s.function[site] && (
                  <>
                    <span class="quiet">in</span> <code>{s.function[site]}</code>
                  </>
                )}
              </span>
            </li>
          );
        })}
      </ul>
    </Section>
  );
}
