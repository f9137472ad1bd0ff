// What the compiler tuned in a compile, and its CUDA graphs.
import { useChunk, type Chunks } from '../data/chunks';
import { rowsWhere, type Compile, type Model } from '../data/model';
import { count, duration, plural, shorten } from '../lib/format';
import { Waiting } from '../ui/bits';

type Tuning = Chunks['tuning'];

const ms = (value: number | null) => (value === null ? '' : duration(value * 1000));

// Names of choices end in a number that a process counts up: ranks compare what the log describes them with.
const choiceKey = ({ tuned: t }: Tuning, row: number) => t.best_description[row] || (t.best[row] ?? '').replace(/_\d+$/, '');

// The same kernel in the same compile of other ranks, by what tells kernels of one name apart and its place among equal ones.
function onOtherRanks(model: Model, compile: Compile, tuning: Tuning, row: number): { name: string; row: number }[] {
  const t = tuning.tuned;
  const isSame = (other: number) =>
    (['is_at_run_time', 'kernel', 'shapes', 'strides', 'dtypes'] as const).every((column) => t[column][other] === t[column][row]);
  const place = rowsWhere(t.compile_id, compile.id).filter(isSame).indexOf(row);
  return model.peerCompiles.flatMap((other) => {
    if (other.id === compile.id || other.label !== compile.label || other.generation !== compile.generation || other.launch !== compile.launch) return [];
    const found = rowsWhere(t.compile_id, other.id).filter(isSame)[place];
    return found === undefined ? [] : [{ name: model.processById.get(other.processId)?.name ?? '', row: found }];
  });
}

function Choice({ tuning: { tuned: t }, row }: { tuning: Tuning; row: number }) {
  if (!t.best[row]) return <span class="quiet">not in the log</span>;
  return (
    <span title={t.best_description[row] ?? undefined}>
      <code>{shorten(t.best[row]!, 60)}</code> {ms(t.best_ms[row])}
    </span>
  );
}

function Triton({ tuning: { tuned: t }, row }: { tuning: Tuning; row: number }) {
  if (t.triton_place[row] === 1) return <span class="quiet">the fastest</span>;
  if (!t.best_triton[row]) return <span class="quiet">{t.triton_choices[row] === 0 ? 'none was timed' : ''}</span>;
  return (
    <span title={t.best_triton_description[row] ?? undefined}>
      <code>{shorten(t.best_triton[row]!, 60)}</code> {ms(t.best_triton_ms[row])}, place {t.triton_place[row]}
    </span>
  );
}

function Tuned({ model, compile, tuning }: { model: Model; compile: Compile; tuning: Tuning }) {
  const t = tuning.tuned;
  const rows = rowsWhere(t.compile_id, compile.id);
  if (rows.length === 0) return null;
  const others = new Map(
    rows.map((row) => [row, onOtherRanks(model, compile, tuning, row).filter((other) => choiceKey(tuning, other.row) !== choiceKey(tuning, row))]),
  );
  const hasOthers = [...others.values()].some((own) => own.length > 0);
  const compiling = rows.filter((row) => t.is_at_run_time[row] === 0);
  const us = compiling.reduce((sum, row) => sum + (t.precompile_us[row] ?? 0) + (t.duration_us[row] ?? 0), 0);
  return (
    <section>
      <h2>Autotuning {compiling.length > 0 && <span class="quiet">{duration(us)} of this compile</span>}</h2>
      <div class="table-box">
        <table class="plain tuning">
          <thead>
            <tr>
              <th scope="col">Kernel</th>
              <th scope="col">Inputs</th>
              <th scope="col" class="right" title="That were timed, and those that could not be compiled">
                Choices
              </th>
              <th scope="col">Fastest</th>
              <th scope="col">Best of Triton</th>
              {hasOthers && <th scope="col">Fastest elsewhere</th>}
              <th scope="col" class="right">
                Tuning
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 300).map((row) => (
              <tr>
                <th scope="row">
                  <code>{shorten(t.kernel[row] ?? '', 80)}</code>
                </th>
                <td>{t.shapes[row]}</td>
                <td class="right">
                  {count(t.choices[row])}
                  {(t.failed[row] ?? 0) > 0 && ` + ${t.failed[row]} failed`}
                </td>
                <td>
                  {t.is_at_run_time[row] === 1 ? (
                    <span class="quiet">tuned when first called: the log does not say which won</span>
                  ) : (
                    <Choice tuning={tuning} row={row} />
                  )}
                </td>
                <td>
                  <Triton tuning={tuning} row={row} />
                </td>
                {hasOthers && (
                  <td>
                    {others
                      .get(row)!
                      .slice(0, 8)
                      .map((other) => (
                        <div>
                          {other.name}: <Choice tuning={tuning} row={other.row} />
                        </div>
                      ))}
                    {others.get(row)!.length > 8 && <span class="quiet">and {plural(others.get(row)!.length - 8, 'more rank')}</span>}
                  </td>
                )}
                <td class="right">{duration((t.precompile_us[row] ?? 0) + (t.duration_us[row] ?? 0))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > 300 && <p class="quiet">and {plural(rows.length - 300, 'more kernel')}: tlparse autotune</p>}
      <Failed compile={compile} tuning={tuning} />
    </section>
  );
}

function Failed({ compile, tuning: { failed_choice: t } }: { compile: Compile; tuning: Tuning }) {
  const rows = rowsWhere(t.compile_id, compile.id);
  if (rows.length === 0) return null;
  return (
    <details open={rows.length < 6}>
      <summary>{plural(rows.length, 'choice')} could not be compiled</summary>
      <ul class="compare-list">
        {rows.slice(0, 100).map((row) => (
          <li>
            <code>{t.kernel[row]}</code> {t.is_out_of_memory[row] === 1 && <span class="tag severity-warning">needs more than the device has</span>}{' '}
            {shorten(t.message[row] ?? t.exception[row] ?? '', 400)} <span class="quiet">{shorten(t.choice[row] ?? '', 300)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function CudaGraphs({ compile, tuning }: { compile: Compile; tuning: Tuning }) {
  const [recorded, skips] = [rowsWhere(tuning.cuda_graph.compile_id, compile.id), rowsWhere(tuning.cuda_graph_skip.compile_id, compile.id)];
  if (recorded.length + skips.length === 0) return null;
  const t = tuning.cuda_graph;
  return (
    <section>
      <h2>CUDA graphs</h2>
      <ul class="compare-list">
        {recorded.map((row) => (
          <li>
            {t.is_backward[row] === 1 ? 'backward' : 'forward'}: {plural(t.recordings[row] ?? 0, 'recording')}{' '}
            <span class="quiet">{duration(t.duration_us[row])}</span>
          </li>
        ))}
        {skips.map((row) => (
          <li>
            <span class="tag severity-warning">none</span> <span class="reason-text">{shorten(tuning.cuda_graph_skip.reason[row] ?? '', 1500)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function CompileTuning({ model, compile }: { model: Model; compile: Compile }) {
  return (
    <Waiting pending={useChunk('tuning')}>
      {(tuning) => (
        <>
          <Tuned model={model} compile={compile} tuning={tuning} />
          <CudaGraphs compile={compile} tuning={tuning} />
        </>
      )}
    </Waiting>
  );
}

export function TritonKernels({ chunk, compile }: { chunk: Chunks['compile']; compile: Compile }) {
  const kernels = rowsWhere(chunk.triton_kernel.compile_id, compile.id);
  const t = chunk.triton_kernel;
  if (kernels.length === 0) return null;
  return (
    <section>
      <h2>Triton kernels</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Kernel</th>
            <th scope="col">Autotune cache</th>
            <th scope="col" class="right">
              Configs
            </th>
            <th scope="col" class="right">
              Compile time
            </th>
          </tr>
        </thead>
        <tbody>
          {kernels.slice(0, 300).map((i) => (
            <tr>
              <th scope="row">
                <code>{t.name[i]}</code>
              </th>
              <td>{t.autotune_cache_state[i]}</td>
              <td class="right">{t.num_configs[i]}</td>
              <td class="right">{duration(t.compile_time_us[i])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
