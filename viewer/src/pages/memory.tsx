// Who held the memory: what was alive over the time of a recording of the allocator, and the largest holders at each moment.
import { useMemo, useState } from 'preact/hooks';
import { useChunk } from '../data/chunks';
import { onTimeline, peakOf, recordingsOf, type Memory, type Recording } from '../data/memory';
import type { Model } from '../data/model';
import { bytes, count, duration, shorten, wholePlace } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { CompileLink, Empty, HeatBar, Place, Waiting } from '../ui/bits';
import { MemoryChart, MemoryLegend } from '../ui/memory_chart';
import { Grid, type Column } from '../ui/virtual';

function Head({ model, row }: { model: Model; row: number }) {
  const t = model.index.memory;
  const parts = [
    `${bytes(t.peak_bytes[row])} were alive at the peak, ${(t.peak_ordinal[row] ?? -1) < 0 ? 'before the first event' : `after event ${count(t.peak_ordinal[row]! + 1)} of ${count(t.event_count[row])}`}`,
    `${bytes(t.base_bytes[row])} before the recording began`,
    `${bytes(t.end_bytes[row])} at its end${t.span_us[row] === null ? '' : `, ${duration(t.span_us[row])} later`}`,
  ];
  return (
    <p>
      {parts.join('; ')}.{t.end_reserved_bytes[row] !== null && ` The allocator held ${bytes(t.end_reserved_bytes[row])} at the end.`}
      {t.oom_ordinal[row] !== null && ' An allocation failed.'} Sizes are those that were asked for.
    </p>
  );
}

function columnsOf(model: Model, memory: Memory, point: number): Column<number>[] {
  const { holder, site } = memory;
  const all = Math.max(1, memory.point.size_bytes[point] ?? 0);
  const of = (row: number) => holder.site[row]!;
  const graph = (row: number) => [site.label[of(row)], site.direction[of(row)]].filter(Boolean).join(' ');
  return [
    { key: 'bytes', title: 'Alive', width: '84px', align: 'right', cell: (row) => bytes(holder.size_bytes[row]) },
    { key: 'share', title: 'Share', width: '86px', cell: (row) => <HeatBar share={(holder.size_bytes[row] ?? 0) / all} /> },
    { key: 'blocks', title: 'Blocks', width: '56px', align: 'right', cell: (row) => count(holder.allocations[row]) },
    {
      key: 'category',
      title: 'Category',
      width: '92px',
      cell: (row) => (
        <>
          <i class={`swatch memory-${site.category[of(row)]}`} /> {site.category[of(row)]}
        </>
      ),
    },
    {
      key: 'line',
      title: 'Line',
      width: 'minmax(120px, 2fr)',
      about: (row) => wholePlace(site.file[of(row)], site.line[of(row)]),
      cell: (row) =>
        site.file[of(row)] === null ? (
          <span class="quiet">none known</span>
        ) : model.allCompiles.length > 0 ? (
          <Place file={site.file[of(row)]} line={site.line[of(row)]} />
        ) : (
          <code>{wholePlace(site.file[of(row)], site.line[of(row)])}</code>
        ),
    },
    {
      key: 'function',
      title: 'Function',
      width: 'minmax(80px, 1fr)',
      about: (row) => site.function[of(row)] ?? '',
      cell: (row) => <code>{shorten(site.function[of(row)] ?? '', 120)}</code>,
    },
    {
      key: 'graph',
      title: 'Graph',
      width: 'minmax(140px, 2fr)',
      about: (row) => [graph(row), site.nodes[of(row)], site.kernel[of(row)], site.reason[of(row)]].filter(Boolean).join('\n'),
      cell: (row) => {
        const compile = model.compileById.get(site.compile_id[of(row)] ?? -1);
        if (!graph(row)) return <span class="quiet">{site.reason[of(row)]}</span>;
        return (
          <>
            {compile ? <CompileLink compile={compile}>{graph(row)}</CompileLink> : graph(row)}{' '}
            <code>{shorten(site.nodes[of(row)] ?? site.kernel[of(row)] ?? '', 120)}</code>
          </>
        );
      },
    },
  ];
}

function Holders({ model, memory, point }: { model: Model; memory: Memory; point: number }) {
  const { holder } = memory;
  const rows = useMemo(() => holder.point.flatMap((own, row) => (own === point ? [row] : [])), [memory, point]);
  const columns = useMemo(() => columnsOf(model, memory, point), [model, memory, point]);
  const rest = (memory.point.size_bytes[point] ?? 0) - rows.reduce((sum, row) => sum + (holder.size_bytes[row] ?? 0), 0);
  return (
    <>
      <Grid label="The largest holders" rows={rows} columns={columns} rowKey={(row) => row} empty="Nothing was alive." />
      {rest > 0 && <p class="quiet">Others held {bytes(rest)}. A command lists all of a moment: tlparse memory --at peak, --at +TIME, --by line.</p>}
    </>
  );
}

function Views({ model, recording, memory, route }: { model: Model; recording: Recording; memory: Memory; route: Route }) {
  const [over, setOver] = useState<number | null>(null);
  const peak = useMemo(() => peakOf(memory), [memory]);
  const wanted = route.query.get('at');
  const found = wanted === null ? -1 : memory.point.ordinal.indexOf(Number(wanted));
  const chosen = found < 0 ? peak : found;
  if (memory.point.rows === 0) return <Empty>The recording holds no event.</Empty>;
  const ordinal = memory.point.ordinal[chosen] ?? -1;
  const time = memory.point.time_us[chosen];
  const timeline = onTimeline(model, recording, memory, chosen);
  return (
    <>
      <Head model={model} row={recording.row} />
      <MemoryChart
        memory={memory}
        chosen={chosen}
        oomOrdinal={model.index.memory.oom_ordinal[recording.row]}
        onChoose={(point) => setQuery({ at: point === peak ? null : memory.point.ordinal[point] })}
        onShow={setOver}
      />
      <MemoryLegend memory={memory} point={over ?? chosen} />
      <h2 role="status">
        {chosen === peak ? 'At the peak, ' : ''}
        {ordinal < 0 ? 'before the first event' : `after event ${count(ordinal + 1)}`}
        {ordinal >= 0 && time !== null ? `, ${duration(time)} after the first` : ''}: {bytes(memory.point.size_bytes[chosen])} alive
        {timeline && (
          <a class="small" href={href(['timeline'], timeline)}>
            on the timeline
          </a>
        )}
      </h2>
      <Holders model={model} memory={memory} point={chosen} />
    </>
  );
}

export function MemoryPage({ model, route }: { model: Model; route: Route }) {
  const recordings = useMemo(() => recordingsOf(model), [model]);
  const wanted = Number(route.query.get('recording'));
  const recording = recordings.find((candidate) => candidate.id === wanted) ?? recordings[0];
  const memory = useChunk(recording ? 'memory' : null, recording?.id);
  if (!recording)
    return (
      <Empty>
        No recording of an allocator{model.rank === null ? '' : ' of this rank'}: torch.cuda.memory._dump_snapshot writes one, a profile with
        profile_memory=True holds one.
      </Empty>
    );
  return (
    <div class="page wide memory">
      <h1>
        Memory{' '}
        {recordings.length > 1 ? (
          <select aria-label="Recording" value={recording.id} onChange={(event) => setQuery({ recording: event.currentTarget.value, at: null })}>
            {recordings.map((candidate) => (
              <option value={candidate.id}>{shorten(candidate.name, 90)}</option>
            ))}
          </select>
        ) : (
          <span class="quiet">{recording.name}</span>
        )}
      </h1>
      <Waiting pending={memory}>{(value) => <Views model={model} recording={recording} memory={value} route={route} />}</Waiting>
    </div>
  );
}
