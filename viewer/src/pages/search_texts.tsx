// Where a text occurs: by compile, equal contents once, the match marked.
import type { SearchAnswer } from '../../generated/chunks';
import { byCompile, type FoundText } from '../data/search';
import type { Model } from '../data/model';
import { bytes, count, plural, ranges, shorten } from '../lib/format';
import { href } from '../route';
import { CompileLink, Place, Section } from '../ui/bits';

const mostGroups = 60;

// The line with the matches marked.
function Marked({ text, needle, isCaseSensitive }: { text: string; needle: string; isCaseSensitive: boolean }) {
  const [searched, wanted] = isCaseSensitive ? [text, needle] : [text.toLowerCase(), needle.toLowerCase()];
  const parts = [];
  let from = 0;
  // Lower case may change the length of a text: then nothing is marked.
  for (let at = searched.length === text.length ? searched.indexOf(wanted) : -1; at >= 0 && parts.length < 20; at = searched.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + needle.length)}</mark>);
    from = at + needle.length;
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  );
}

// The line with what a regular expression matches marked.
function Matches({ text, marks }: { text: string; marks: number[][] }) {
  const blank = text.length - text.trimStart().length;
  const ends = [blank, ...marks.map(([, end]) => end)];
  return (
    <>
      {marks.map(([begin, end], i) => (
        <>
          {text.slice(ends[i], begin)}
          <mark>{text.slice(Math.max(begin, ends[i]), end)}</mark>
        </>
      ))}
      {text.slice(ends.at(-1))}
    </>
  );
}

function Text({ model, found, needle, answer }: { model: Model; found: FoundText; needle: string; answer: SearchAnswer }) {
  const all = new Set(model.peers.flatMap((process) => process.rank ?? [])).size;
  const who =
    found.ranks.length > 1
      ? found.ranks.length === all
        ? 'the same in all ranks'
        : `the same in ranks ${ranges(found.ranks)}`
      : found.record_count > 1
        ? `${plural(found.record_count, 'equal record')}`
        : '';
  const target = (line: number) => (found.compile_id === null ? undefined : href(['compile', found.compile_id], { record: found.record_id, lines: line }));
  return (
    <li>
      <div>
        <a href={target(found.lines[0]?.line ?? 1)}>{found.title}</a> <span class="tag">{found.kind}</span>{' '}
        <span class="quiet">
          {[found.direction && `${found.direction} graph`, who, found.line_count > found.lines.length && `${count(found.line_count)} lines`]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </div>
      {found.lines.map((line) => (
        <a class="found-line" href={target(line.line)}>
          <span class="found-number">{line.line}</span>
          <code>
            {line.marks.length > 0 ? (
              <Matches text={line.text} marks={line.marks} />
            ) : (
              <Marked text={line.text.trimStart()} needle={needle} isCaseSensitive={answer.is_case_sensitive} />
            )}
          </code>
        </a>
      ))}
    </li>
  );
}

export function FoundTexts({ model, answer, needle }: { model: Model; answer: SearchAnswer; needle: string }) {
  const groups = byCompile(model, answer);
  const texts = groups.reduce((sum, group) => sum + group.texts.length, 0);
  const lines = groups.reduce((sum, group) => sum + group.texts.reduce((own, text) => own + text.line_count, 0), 0);
  const said = `${plural(lines, 'line')} in ${plural(texts, 'text')}, each counted once${answer.is_complete ? '' : `; there may be more: the search stopped after ${bytes(answer.read_bytes)}`}`;
  return (
    <Section
      title="Texts"
      aside={
        <span class="quiet" role="status">
          {said}
        </span>
      }
    >
      {groups.slice(0, mostGroups).map(({ compile, texts: own }) => (
        <section class="text-hits">
          <h3>
            {compile ? (
              <>
                <CompileLink compile={compile} /> <code>{shorten(compile.function ?? '', 80)}</code> <Place file={compile.file} line={compile.line} />{' '}
                {compile.rank !== null && <span class="quiet">rank {compile.rank}</span>}
              </>
            ) : (
              'Outside compiles'
            )}
          </h3>
          <ul>
            {own.map((found) => (
              <Text model={model} found={found} needle={needle} answer={answer} />
            ))}
          </ul>
        </section>
      ))}
      {groups.length > mostGroups && <p class="quiet">and {plural(groups.length - mostGroups, 'more compile')}</p>}
    </Section>
  );
}
