import { useState } from 'preact/hooks';
import type { Attention } from '../data/attention';
import { shorten } from '../lib/format';

const most = 15; // that are shown at first: a list that fills screens is not read

export function AttentionItems({ items }: { items: Attention[] }) {
  const [all, setAll] = useState(false);
  return (
    <>
      <ul class="attention">
        {(all ? items : items.slice(0, most)).map((item) => (
          <li class={item.tone}>
            <a href={item.link}>
              <span class="attention-title">{shorten(item.title, 220)}</span>
              {item.detail && <span class="attention-detail">{shorten(item.detail, 400)}</span>}
            </a>
          </li>
        ))}
      </ul>
      {items.length > most && (
        <button class="link" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show all ${items.length}`}
        </button>
      )}
    </>
  );
}
