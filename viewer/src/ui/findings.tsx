import type { Model } from '../data/model';
import { attention } from '../data/attention';
import { Section } from './bits';

// What sets ranks apart, and why.
export function Findings({ model }: { model: Model }) {
  const items = attention(model).filter((item) => item.link.startsWith('#/ranks'));
  if (items.length === 0) return null;
  return (
    <Section title="What sets ranks apart">
      <ul class="attention">
        {items.map((item) => (
          <li class={item.tone}>
            <a href={item.link}>
              <span class="attention-title">{item.title}</span>
              {item.detail && <span class="attention-detail">{item.detail}</span>}
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}
