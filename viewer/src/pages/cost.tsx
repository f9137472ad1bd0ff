// Measured time of one profile by kernel, Python line, graph, op and module.
import { useMemo } from 'preact/hooks';
import { useChunk } from '../data/chunks';
import type { Model } from '../data/model';
import { caveatsOf, isMeasured, measuredProfiles, profilesOf, windowText, type Profile } from '../data/profiles';
import { count, duration, percent, plural, shorten } from '../lib/format';
import { href, setQuery, type Route } from '../route';
import { Empty, Tabs, Waiting } from '../ui/bits';
import { FilterBox } from '../ui/filter_box';
import { Grid, sortRows } from '../ui/virtual';
import { graphView, kernelView, lineView, moduleView, opView, type Context, type Cost, type View } from './cost_views';

const views: Record<string, { title: string; of: (context: Context) => View; table: keyof Cost }> = {
  kernels: { title: 'Kernels', of: kernelView, table: 'kernel' },
  lines: { title: 'Python lines', of: lineView, table: 'line' },
  graphs: { title: 'Graphs', of: graphView, table: 'graph' },
  ops: { title: 'Ops', of: opView, table: 'op' },
  modules: { title: 'Modules', of: moduleView, table: 'module' },
};

// ": 1.2 s in load, 40 ms in no op or annotation of its thread and others"
function outsideText({ window, outside }: Cost): string {
  if (outside.rows === 0) return '';
  const parts = outside.us.map((us, i) => `${duration(us)} in ${shorten(outside.name[i] ?? 'no op or annotation of its thread', 80)}`);
  const shown = outside.us.reduce<number>((sum, us) => sum + (us ?? 0), 0);
  return `: ${parts.join(', ')}${(window.outside_us[0] ?? 0) - shown > 0.5 ? ' and others' : ''}`;
}

function Head({ profile, cost }: { profile: Profile; cost: Cost }) {
  const w = cost.window;
  const windowUs = w.window_us[0] ?? 0;
  const share = (us: number | null) => (windowUs > 0 ? ` (${percent((us ?? 0) / windowUs)})` : '');
  const ofDevice = (i: number) => ((cost.device.window_us[i] ?? 0) > 0 ? ` (${percent((cost.device.busy_us[i] ?? 0) / cost.device.window_us[i]!)})` : '');
  const unjoined = (w.kernel_us[0] ?? 0) - (w.joined_kernel_us[0] ?? 0);
  return (
    <>
      {w.rows > 0 && (
        <p>
          Counted: <b>{windowText(cost)}</b>.{' '}
          {profile.graphCalls > 0
            ? `${duration(w.compiled_us[0])}${share(w.compiled_us[0])} in calls of compiled graphs on the CPU, ${duration(w.outside_us[0])}${share(w.outside_us[0])} outside${outsideText(cost)}.`
            : 'No call of a compiled graph is in this profile.'}{' '}
          {(w.compile_us[0] ?? 0) > 0 ? `Compiles were under way for ${duration(w.compile_us[0])}${share(w.compile_us[0])} of it. ` : ''}
          {w.kernel_us[0] === null ? 'No kernel was recorded' : `Kernels took ${duration(w.kernel_us[0])}`}
          {w.kernel_us[0] === null
            ? ''
            : unjoined < 0.5
              ? ', all of them kernels of the log'
              : (w.joined_kernel_us[0] ?? 0) === 0
                ? ', none of them a kernel of a log'
                : `, of which ${duration(w.joined_kernel_us[0])} belong to kernels of the log`}
          .
          {cost.device.device.map((device, i) => (
            <span>
              {' '}
              Device {device}: {plural(cost.device.kernels[i] ?? 0, 'kernel')}, busy {duration(cost.device.busy_us[i])}
              {ofDevice(i)}, idle {duration(cost.device.idle_us[i])}
              {cost.device.has_own_steps[i] === 1 ? `, in ${duration(cost.device.window_us[i])} of its own steps` : ''}.
            </span>
          ))}
        </p>
      )}
      {[...caveatsOf(profile), ...cost.note.text.filter((note): note is string => note !== null)].map((caveat) => (
        <p class="caveat">{shorten(caveat, 600)}</p>
      ))}
    </>
  );
}

function Table({ context, tab }: { context: Context; tab: string }) {
  const { route, cost } = context;
  const view = useMemo(() => views[tab].of(context), [cost, context.graphs, tab]);
  const query = (route.query.get('q') ?? '').toLowerCase();
  const sort = route.query.get('sort') ?? '-time';
  const rows = useMemo(() => {
    const all = Array.from({ length: view.rows }, (_, row) => row).filter((row) => !query || view.text(row).toLowerCase().includes(query));
    return sortRows(all, view.columns, sort);
  }, [view, query, sort]);
  const at = cost.left_out.table.indexOf(views[tab].table);
  return (
    <>
      <div class="toolbar">
        <FilterBox
          label="Filter the table"
          placeholder="Filter by name, file:line, graph"
          value={route.query.get('q') ?? ''}
          onFilter={(q) => setQuery({ q })}
        />
        <span class="quiet" role="status">
          {plural(rows.length, view.unit)}
          {at < 0
            ? ''
            : `; ${count(cost.left_out.rows[at])} that cost less (${duration(cost.left_out.us[at])} in all) are not on this page: tlparse cost trace.db --by ${view.unit}`}
        </span>
      </div>
      <Grid
        label={`${views[tab].title} by cost`}
        rows={rows}
        columns={view.columns}
        rowKey={(row) => row}
        sort={sort}
        onSort={(next) => setQuery({ sort: next })}
        height={rows.length > 18 ? 'calc(100vh - 240px)' : undefined}
        empty={view.rows === 0 ? `No ${view.unit} ran in what this profile counts.` : `No ${view.unit} matches.`}
      />
    </>
  );
}

function TimelineLink({ profile, cost }: { profile: Profile; cost: Cost }) {
  const from = cost.window.start_us[0] ?? null;
  const span = from === null ? {} : { from: from - 1, to: from + (cost.window.window_us[0] ?? 0) + 1 };
  return (
    <a class="graph-links" href={href(['timeline'], { ...(profile.process ? { process: profile.process.id } : { profile: profile.id }), ...span })}>
      these steps on the timeline
    </a>
  );
}

function Views({ model, profile, cost, route }: { model: Model; profile: Profile; cost: Cost; route: Route }) {
  const graphs = useChunk('graphs');
  // A profile of eager code alone has ops alone.
  const first = Object.entries(views).find(([, view]) => cost[view.table].rows > 0)?.[0] ?? 'kernels';
  const tab = route.query.get('tab') ?? first;
  const tabs = Object.entries(views).filter(([key]) => key !== 'modules' || cost.module.rows > 0); // only profiles with Python frames name modules
  const shown = tabs.some(([key]) => key === tab) ? tab : first;
  return (
    <>
      <Head profile={profile} cost={cost} />
      <Tabs
        tabs={tabs.map(([key, view]) => ({ key, title: view.title, count: cost[view.table].rows }))}
        current={shown}
        link={(key) => href(['cost'], { profile: route.query.get('profile'), tab: key === first ? null : key })}
      />
      <Waiting pending={graphs}>{(own) => <Table key={shown} context={{ model, cost, graphs: own, route }} tab={shown} />}</Waiting>
    </>
  );
}

export function CostPage({ model, route }: { model: Model; route: Route }) {
  const own = useMemo(() => measuredProfiles(model), [model]);
  const wanted = Number(route.query.get('profile'));
  // A link may lead to a profile of another rank than the chosen one.
  const asked = profilesOf(model).find((candidate) => candidate.id === wanted && isMeasured(candidate));
  const profiles = asked && !own.includes(asked) ? [asked, ...own] : own;
  const profile = asked ?? profiles.find((candidate) => candidate.overlapsId === null) ?? profiles[0];
  const cost = useChunk(profile ? 'cost' : null, profile?.id);
  const graphs = useChunk(profile ? 'graphs' : null);
  if (!profile && profilesOf(model).some(isMeasured))
    return (
      <Empty>
        No profile of what is chosen at the top. <a href={href(['cost'], { rank: null, launch: null })}>Profiles of all ranks</a>
      </Empty>
    );
  if (!profile)
    return <Empty>This run has no profile. Ingest one beside its logs: torch.profiler’s export_chrome_trace or tensorboard_trace_handler writes them.</Empty>;
  const pending = graphs.error ? { error: graphs.error } : cost;
  return (
    <div class="page wide cost">
      <h1>
        Measured time{' '}
        {profiles.length > 1 ? (
          <select aria-label="Profile" value={profile.id} onChange={(event) => setQuery({ profile: event.currentTarget.value })}>
            {profiles.map((candidate) => (
              <option value={candidate.id}>{shorten(candidate.name, 90)}</option>
            ))}
          </select>
        ) : (
          <span class="quiet" title={profile.path}>
            {profile.name}
          </span>
        )}
        {cost.value && <TimelineLink profile={profile} cost={cost.value} />}
      </h1>
      <Waiting pending={pending}>{(value) => <Views model={model} profile={profile} cost={value} route={route} />}</Waiting>
    </div>
  );
}
