import type { Attention } from '../data/attention';
import { shorten } from '../lib/format';

export function AttentionItems({ items }: { items: Attention[] }) {
  return (
    <ul class="attention">
      {items.map((item) => (
        <li class={item.tone}>
          <a href={item.link}>
            <span class="attention-title">{shorten(item.title, 220)}</span>
            {item.detail && <span class="attention-detail">{shorten(item.detail, 400)}</span>}
          </a>
        </li>
      ))}
    </ul>
  );
}
