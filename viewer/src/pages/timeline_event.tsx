import { load, useAsync } from '../data/chunks';
import type { Model } from '../data/model';
import { caveatsOf } from '../data/profiles';
import type { ProfileLanes } from '../data/slices';
import { bytes, count, duration, plural, prettyJson, shorten, utc } from '../lib/format';
import { memberText } from '../lib/json';
import { href } from '../route';
import { CompileLink } from '../ui/bits';
import type { Hit } from '../ui/timeline_canvas';

const wholeBytes = 8192; // of schemas/sql/viewer/args.sql

// A slice of a profile: what it is, when, and the graph that it belongs to.
export function SliceDetail({ model, hit }: { model: Model; hit: Hit }) {
  const { lane, index } = hit;
  const compile = lane.compileId[index] === null ? undefined : model.compileById.get(lane.compileId[index]!);
  return (
    <section class="detail event" aria-label="Event">
      <h2>{shorten(lane.names[index], 1000)}</h2>
      <p>
        <b>{duration(lane.length[index])} </b>
        <span class="quiet">
          at {duration(lane.start[index], true)}, {utc(model.originUs + lane.start[index])}, {lane.title}, {lane.about}
        </span>{' '}
        {compile && (
          <>
            in <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 60)}</code>
          </>
        )}{' '}
        {lane.profile && <a href={href(['cost'], { profile: lane.profile.id })}>cost by kernel</a>}
      </p>
    </section>
  );
}

// What an event of the timeline is, with its arguments.
export function EventDetail({ model, hit }: { model: Model; hit: Hit }) {
  const { lane, index } = hit;
  const recordId = lane.id[index];
  const args = useAsync(`args ${recordId}`, async () => {
    const { event_args: t } = await load('args', Math.floor(recordId / 1024));
    const i = t.record_id.indexOf(recordId);
    const text = t.args[i] ?? memberText(t.payload[i] ?? '', 'args') ?? '';
    return (t.length[i] ?? 0) <= wholeBytes ? prettyJson(text) : `${text}…\n\nThe event has ${bytes(t.length[i])}: all of it is in the file for Perfetto.`;
  });
  const compile = lane.compileId[index] === null ? undefined : model.compileById.get(lane.compileId[index]!);
  const phases: Record<string, string> = { i: 'instant', B: 'has no end in the log', X: '' };
  return (
    <section class="detail event" aria-label="Event">
      <h2>{lane.names[index]}</h2>
      <p>
        {lane.length[index] > 0 && <b>{duration(lane.length[index])} </b>}
        <span class="quiet">
          at {duration(lane.start[index], true)}, {utc(model.originUs + lane.start[index])}, {lane.title} {phases[lane.phase[index]] ?? ''}
        </span>{' '}
        {compile && (
          <>
            in <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 60)}</code>
          </>
        )}
      </p>
      {args.value && args.value !== 'null' && <pre>{args.value}</pre>}
      {args.error && <p class="quiet">{args.error.message}</p>}
    </section>
  );
}

// The drawn part of a profile, and caveats about its times.
export function ProfileNote({ own: { profile, prefix, span } }: { own: ProfileLanes }) {
  return (
    <p class="quiet small">
      {prefix}
      {profile.name}:{' '}
      {span.kept < span.slices
        ? `of ${count(span.slices)} slices the ${count(span.kept)} longest (from ${duration(span.shortestUs)}) are drawn one by one, the others as grey strips: how much of each ${duration(span.stretchUs)} they took.`
        : `all ${plural(span.slices, 'slice')}.`}
      {span.shownTracks < span.tracks && ` ${count(span.tracks - span.shownTracks)} threads and streams with the fewest slices are left out.`}{' '}
      {caveatsOf(profile).join(' ')}
    </p>
  );
}
