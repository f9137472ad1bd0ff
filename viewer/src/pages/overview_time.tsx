// Where the time went, as bars of which each part is a link: of the compiles, and of a profiled device.
import { useMemo } from 'preact/hooks';
import { useChunk, type Chunks } from '../data/chunks';
import { chunkOfProcess, type Compile, type Model } from '../data/model';
import { notAttributed, timedPhases } from '../data/phases';
import { fullestProfile, windowText, type Profile } from '../data/profiles';
import { phaseTimes, useTimes, type Times } from '../data/time';
import { duration, percent, plural, shorten } from '../lib/format';
import { href } from '../route';
import { Section } from '../ui/bits';

interface Part {
  name: string;
  us: number;
  class: string;
  link: string;
  hint: string;
}

// One bar of full width, and its parts by name below it.
function Bar({ parts, totalUs, label }: { parts: Part[]; totalUs: number; label: string }) {
  const shown = parts.filter((part) => part.us > 0);
  const says = (part: Part) => `${part.name}: ${duration(part.us)}, ${percent(part.us / totalUs)}. ${part.hint}`;
  return (
    <div class="went">
      {/* The list below says the same to who does not see it. */}
      <div class="went-bar" aria-hidden="true">
        {shown.map((part) => (
          <a class={part.class} style={{ flexGrow: part.us }} href={part.link} title={says(part)} tabIndex={-1} />
        ))}
      </div>
      <ul class="went-parts" aria-label={label}>
        {shown.map((part) => (
          <li>
            <a href={part.link} title={part.hint}>
              <i class={`swatch ${part.class}`} /> {shorten(part.name, 44)}
            </a>{' '}
            <b>{duration(part.us)}</b> <span class="quiet">{percent(part.us / totalUs)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

// The process that compiled longest.
function slowestOf(model: Model): { compiles: Compile[]; us: number; processes: number } {
  const byProcess = new Map<number, { compiles: Compile[]; us: number }>();
  for (const compile of model.compiles) {
    if (compile.launch !== model.launch) continue;
    let own = byProcess.get(compile.processId);
    if (!own) byProcess.set(compile.processId, (own = { compiles: [], us: 0 }));
    own.compiles.push(compile);
    own.us += (compile.durationUs ?? 0) + (compile.backwardUs ?? 0);
  }
  const slowest = [...byProcess.values()].reduce((most, own) => (own.us > most.us ? own : most), { compiles: [] as Compile[], us: 0 });
  return { ...slowest, processes: byProcess.size };
}

// By the metrics of the compiles, of a process without timed events.
function metricParts(compiles: Compile[], linkOf: (phase: string | null) => string): Part[] {
  const sum = (of: (compile: Compile) => number) => compiles.reduce((total, compile) => total + of(compile), 0);
  const code = sum((compile) => Math.min(compile.codeGenUs, compile.inductorUs));
  const times: Record<string, number> = {
    dynamo: sum((own) => own.dynamoUs),
    aot: sum((own) => own.aotUs),
    inductor: sum((own) => own.inductorUs) - code,
    code,
    backward: sum((own) => own.backwardUs ?? 0),
  };
  const parts: Part[] = timedPhases.filter(({ key }) => key in times).map((phase) => ({ ...phase, us: times[phase.key], link: linkOf(phase.key) }));
  const known = parts.reduce((total, part) => total + part.us, 0);
  const wholeUs = sum((own) => (own.durationUs ?? 0) + (own.backwardUs ?? 0));
  return [...parts, { ...notAttributed, us: Math.max(0, wholeUs - known), link: linkOf(null), hint: 'In no phase that PyTorch’s metrics name' }];
}

// As the page of time sums them up.
function eventParts(times: Times, linkOf: (phase: string | null) => string): Part[] {
  const parts = phaseTimes(times).map((own): Part => ({ ...timedPhases[own.phase], us: own.selfUs, link: linkOf(timedPhases[own.phase].key) }));
  const order = (part: Part) => (part.class === 'phase-other' ? 1 : 0); // events of no phase come last
  return [...parts.sort((a, b) => order(a) - order(b)), { ...notAttributed, us: times.notAttributedUs, link: linkOf(null) }];
}

// Events begin before PyTorch's clock of a compile and end after it: where that shows, both sums are named.
export function AroundCompiles({ eventsUs, compiles }: { eventsUs: number; compiles: Compile[] }) {
  const clockUs = compiles.reduce((sum, own) => sum + (own.durationUs ?? 0) + (own.backwardUs ?? 0), 0);
  const isWhole = compiles.every((own) => own.durationUs !== null || own.status === 'context');
  if (!isWhole || clockUs === 0 || clockUs > eventsUs || duration(clockUs) === duration(eventsUs)) return null;
  return (
    <p class="quiet small">
      {duration(clockUs)} of it by PyTorch’s clock of each compile, which Compiles and Ranks add up; {duration(eventsUs - clockUs)} in events around that.
    </p>
  );
}

export function CompileTime({ model }: { model: Model }) {
  const { compiles, us, processes } = useMemo(() => slowestOf(model), [model]);
  const process = compiles.length > 0 ? model.processById.get(compiles[0].processId) : undefined;
  const [only, rank] = model.processes.length > 1 || !model.isOneLaunch ? [process?.id, process?.rank ?? null] : [null, null];
  const hasEvents = process !== undefined && chunkOfProcess(model.index, 'events', process.id) !== 0;
  const times = useTimes(model, hasEvents ? { process: process.id, compile: null, function: null, phase: null } : null);
  if (us === 0) return null;
  const linkOf = (phase: string | null) =>
    hasEvents
      ? href(['time'], { process: only, phase, by: phase && 'event' })
      : href(['compiles'], { sort: `-${phase ?? 'duration'}`, q: rank === null ? null : `rank:${rank}` });
  const parts = !hasEvents || times.error ? metricParts(compiles, linkOf) : times.value ? eventParts(times.value, linkOf) : [];
  const totalUs = parts.reduce((total, part) => total + part.us, 0);
  return (
    <Section
      title={totalUs > 0 ? `Where ${duration(totalUs)} of compile time went` : 'Where the compile time went'}
      aside={
        <>
          {processes > 1 && (
            <span class="quiet">
              {process?.name}, the slowest of {plural(processes, 'process', 'processes')}{' '}
            </span>
          )}
          {hasEvents && <a href={href(['time'], { by: 'event', process: only })}>by event</a>}
        </>
      }
    >
      {parts.length > 0 ? <Bar parts={parts} totalUs={totalUs} label="Compile time by phase" /> : <p class="went quiet">Loading…</p>}
      {hasEvents && times.value && <AroundCompiles eventsUs={totalUs} compiles={compiles} />}
    </Section>
  );
}

const topKernels = 3;

// The parts of a device's time: its costliest kernels, the others, copies, idle. Only where the sum of the kernels fits: they may run side by side.
function deviceParts(cost: Chunks['cost'], profile: Profile): { parts: Part[]; totalUs: number; sentence: string; tops?: Part[] } | null {
  const windowUs = cost.window.window_us[0] ?? 0;
  const kernelUs = cost.window.kernel_us[0] ?? 0;
  const k = cost.kernel;
  const rows = k.name.map((_, i) => i).sort((a, b) => (k.inclusive_us[b] ?? 0) - (k.inclusive_us[a] ?? 0));
  const link = (q: string | null) => href(['cost'], { profile: profile.id, q });
  const tops: Part[] = rows
    .slice(0, topKernels)
    .map((i, n) => ({ name: k.name[i] ?? '', us: k.inclusive_us[i] ?? 0, class: `heat-${n}`, link: link(k.name[i]), hint: plural(k.calls[i] ?? 0, 'call') }));
  const rest = kernelUs - tops.reduce((sum, part) => sum + part.us, 0);
  const others = {
    name: 'other kernels',
    us: Math.max(0, rest),
    class: 'heat-rest',
    link: link(null),
    hint: plural(Math.max(0, rows.length - topKernels), 'kernel'),
  };
  const d = cost.device;
  if (d.rows === 1 && (d.window_us[0] ?? 0) > 0) {
    const [busy, idle, ofUs] = [d.busy_us[0] ?? 0, d.idle_us[0] ?? 0, d.window_us[0]!];
    const timeline = href(['timeline'], profile.process ? { process: profile.process.id } : { profile: profile.id });
    const isSerial = kernelUs <= busy * 1.001;
    const parts = isSerial
      ? [...tops, others, { name: 'copies', us: busy - kernelUs, class: 'heat-copies', link: timeline, hint: 'Copies and memsets while no kernel ran' }]
      : [{ name: 'busy', us: busy, class: 'heat-0', link: link(null), hint: `Kernels ran side by side: their times sum up to ${duration(kernelUs)}` }];
    return {
      parts: [...parts, { name: 'idle', us: idle, class: 'phase-none', link: timeline, hint: 'Neither a kernel nor a copy ran' }],
      totalUs: ofUs,
      tops: isSerial ? undefined : tops,
      sentence: `Device ${d.device[0]} was busy ${percent(busy / ofUs)} of ${duration(ofUs)} and idle ${duration(idle)}`,
    };
  }
  if (d.rows > 1)
    return {
      parts: [...tops, others],
      totalUs: kernelUs,
      sentence: d.device
        .map((device, i) => `device ${device} busy ${percent((d.busy_us[i] ?? 0) / Math.max(1, d.window_us[i] ?? 0))}`)
        .slice(0, 8)
        .join(', '),
    };
  if (kernelUs > 0) return { parts: [...tops, others], totalUs: kernelUs, sentence: `Kernels took ${duration(kernelUs)} of ${duration(windowUs)}, on the CPU` };
  return null;
}

export function DeviceTime({ model }: { model: Model }) {
  const profile = useMemo(() => fullestProfile(model), [model]);
  const cost = useChunk(profile ? 'cost' : null, profile?.id);
  if (!profile) return null;
  const aside = <a href={href(['cost'], { profile: profile.id })}>by kernel, line, graph, op</a>;
  const found = cost.value && deviceParts(cost.value, profile);
  if (cost.value && !found) return null;
  return (
    <Section title={found ? found.sentence : 'What the device did'} aside={aside}>
      {found ? (
        <Bar parts={found.parts} totalUs={found.totalUs} label="Time of the device" />
      ) : (
        <p class="quiet">{cost.error ? cost.error.message : 'Loading…'}</p>
      )}
      {found?.tops && (
        <p>
          Most time, side by side with others:{' '}
          {found.tops.map((part, i) => (
            <>
              {i > 0 && ', '}
              <a href={part.link}>{shorten(part.name, 60)}</a> <b>{duration(part.us)}</b>
            </>
          ))}
        </p>
      )}
      {cost.value && (
        <p class="quiet small">
          {profile.name}: {windowText(cost.value)}
        </p>
      )}
    </Section>
  );
}
