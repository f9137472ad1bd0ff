import { markOf } from '../data/changes';
import { useChunk } from '../data/chunks';
import { processArtifacts } from '../data/artifact';
import { groupOf, wordsOfEnd } from '../data/ends';
import { chunkOfProcess, type Model } from '../data/model';
import { bytes, plural, shorten } from '../lib/format';
import { href, type Route } from '../route';
import { Empty, Waiting } from '../ui/bits';
import { ArtifactView } from '../ui/artifact_view';
import { RecordList } from '../ui/record_list';
import { IssuedCollectives, Measured } from './compile_measured';

// Records of a process outside any compile: versions, execution order, artifacts of libraries without compiles.
export function ProcessPage({ model, route, id }: { model: Model; route: Route; id: number }) {
  const process = model.processById.get(id);
  const chunk = useChunk(process ? 'process' : null, chunkOfProcess(model.index, 'process', id));
  if (!process) return <Empty>There is no process {id} in this run.</Empty>;
  const recordId = Number(route.query.get('record'));
  const facts = [
    `pid ${process.pid}`,
    process.torchVersion && `PyTorch ${process.torchVersion}`,
    process.pythonVersion && `Python ${process.pythonVersion}`,
    process.file,
  ];
  const groups = model.index.process_group;
  const group = groupOf(groups, process);
  return (
    <div class="page wide">
      <header class="compile-head">
        <h1>{process.name}</h1>
        <p class="quiet">{facts.filter(Boolean).join(' · ')}</p>
        {group >= 0 && groups.end_kind[group] !== null && (
          <p>
            How it ended: <span class="tag">{wordsOfEnd(groups, group)}</span> {shorten(groups.end_evidence[group] ?? '', 300)}
          </p>
        )}
        <p>
          <a href={href(['compiles'], { q: process.rank === null ? null : `rank:${process.rank}` })}>Compiles</a> ·{' '}
          <a href={href(['timeline'], { process: id })}>Timeline</a>
        </p>
      </header>
      <Waiting pending={chunk}>
        {(value) => {
          const artifacts = processArtifacts(value);
          const measured = <Measured tables={value} compileId={null} />;
          if (artifacts.length === 0)
            return <Empty>Every record of this process belongs to a compile, except Chromium events (see Timeline) and interned strings.</Empty>;
          const current = artifacts.find((artifact) => artifact.recordId === recordId) ?? artifacts[0];
          return (
            <>
              {measured}
              <IssuedCollectives table={value.issued_collective} />
              <div class="split">
                <nav class="side" aria-label="Records outside compiles">
                  <h2>{plural(artifacts.length, 'record')} outside compiles</h2>
                  <RecordList
                    rows={artifacts.map((artifact) => ({
                      key: artifact.recordId,
                      title: artifact.title,
                      note: artifact.text ? bytes(artifact.text.sizeBytes) : '',
                      link: href(['process', id], { record: artifact.recordId }),
                      isCurrent: artifact === current,
                      mark: markOf('process.record', artifact.recordId),
                    }))}
                  />
                </nav>
                <ArtifactView key={current.recordId} artifact={current} frames={model.frames} lines={route.query.get('lines')} />
              </div>
            </>
          );
        }}
      </Waiting>
    </div>
  );
}
