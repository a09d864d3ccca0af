/** The frame of every page here. */
import { type FramedPage, framedPage, type Page } from '../page-frame.ts';

export { escapeHtml, type Page } from '../page-frame.ts';

/** A whole page with the headers that go with it. */
export function page(parts: Omit<FramedPage, 'part' | 'notice'>): Page {
  return framedPage({
    ...parts,
    part: 'card provider',
    notice: 'No money moves. Use test cards only, never a real one.',
  });
}
