// A field that filters the list below it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { behindFrame } from '../lib/schedule';

interface FilterBoxProps {
  label: string;
  placeholder: string;
  value: string;
  onFilter: (text: string) => void;
}

// A letter is shown before its result: the page is notified after the next frame, and of several letters only once.
export function FilterBox({ label, placeholder, value, onFilter }: FilterBoxProps) {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  const tell = useRef(onFilter);
  tell.current = onFilter;
  const later = useRef(
    behindFrame((text: string) => {
      told.current = text;
      tell.current(text);
    }),
  ).current;
  // A text that was not typed here: from "back", or from a link.
  useEffect(() => {
    if (value === told.current) return;
    later.cancel();
    told.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => later.cancel, []);
  return (
    <input
      type="search"
      class="filter"
      aria-label={label}
      placeholder={placeholder}
      value={typed}
      onInput={(event) => {
        setTyped(event.currentTarget.value);
        later.run(event.currentTarget.value);
      }}
    />
  );
}
