// Measured time of one graph, by the lines of its texts: kernels (lines of the generated code), post-grad nodes, Python lines.
import { load, type Chunks } from './chunks';
import { rowsWhere, type Compile, type Model } from './model';
import { isMeasured, profilesOf, type Profile } from './profiles';

// `totalUs` is the time of all kernels that the profile counts; shares are parts of it.
export interface Heat {
  profile: Profile;
  cost: Chunks['cost'];
  totalUs: number;
  graphUs: number; // of the kernels of this graph
  byEntity: Map<string, number>; // kernel:<id>, post:<node>, source:<file:line> as in Links
}

function add(map: Map<string, number>, key: string, us: number): void {
  map.set(key, (map.get(key) ?? 0) + us);
}

// Profiles of the process that the compile belongs to; those that overlap an earlier one are not counted.
export function profilesOfCompile(model: Model, compile: Compile): Profile[] {
  return profilesOf(model).filter((profile) => isMeasured(profile) && profile.process?.id === compile.processId && profile.overlapsId === null);
}

// The rules of schemas/sql/views/cost.sql: a kernel's time is divided by its nodes, and among its lines by the parts that the database has.
export async function loadHeat(profile: Profile, graphId: number, contentId: number, chunk: Chunks['provenance']): Promise<Heat> {
  const cost = await load('cost', profile.id);
  const heat: Heat = { profile, cost, totalUs: cost.window.kernel_us[0] ?? 0, graphUs: 0, byEntity: new Map() };
  const usOfKernel = new Map<number, number>();
  for (const row of rowsWhere(cost.kernel.graph_id, graphId)) {
    const kernel = cost.kernel.kernel_id[row];
    const us = cost.kernel.inclusive_us[row] ?? 0;
    heat.graphUs += us;
    if (kernel === null) continue;
    usOfKernel.set(kernel, (usOfKernel.get(kernel) ?? 0) + us);
    add(heat.byEntity, `kernel:${kernel}`, us);
  }
  const own = new Set(rowsWhere(chunk.kernel.content_id, contentId).map((row) => chunk.kernel.id[row]!));
  const nodes = new Map<number, string[]>();
  chunk.kernel_node.kernel_id.forEach((kernel, row) => {
    if (own.has(kernel!) && usOfKernel.has(kernel!)) nodes.set(kernel!, [...(nodes.get(kernel!) ?? []), `post:${chunk.kernel_node.post_grad_node[row]}`]);
  });
  for (const [kernel, keys] of nodes) for (const key of keys) add(heat.byEntity, key, usOfKernel.get(kernel)! / keys.length);
  const t = chunk.kernel_line;
  t.kernel_id.forEach((kernel, row) => {
    const us = own.has(kernel!) ? usOfKernel.get(kernel!) : undefined;
    if (us !== undefined && t.file[row] !== null) add(heat.byEntity, `source:${t.file[row]}:${t.line[row]}`, us * (t.part[row] ?? 0));
  });
  return heat;
}
