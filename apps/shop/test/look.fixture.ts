import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';

/**
 * What is wrong with the look of a page, in sentences. It runs in the page, so it is text: the page's types are not ours.
 *
 * Contrast is that of WCAG 2.2 §1.4.3: 4.5, and 3 for text of 24 px, or of 18.66 px in bold.
 */
const TROUBLES = `(() => {
  const troubles = [];
  const tooWide = document.documentElement.scrollWidth - innerWidth;
  if (tooWide > 0) troubles.push('the page is ' + tooWide + ' px too wide');

  const channels = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.a === 1) return color;
    }
    return { r: 255, g: 255, b: 255 };
  };
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0 && !element.closest('.hidden, .skip');

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (text === '' || !isSeen(element) || element.closest('button:disabled, script, noscript, option')) continue;
    const style = getComputedStyle(element);
    const color = channels(element.closest('svg') ? style.fill : style.color);
    const [one, two] = [light(color), light(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const enough = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 600) ? 3 : 4.5;
    if (ratio < enough) troubles.push('"' + text.slice(0, 40) + '" has a contrast of ' + ratio.toFixed(2));

    // A word of letters alone that stands in two lines is broken in the middle.
    if (element.closest('pre, code')) continue;
    for (const { 0: word, index } of node.data.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (lines.size > 1) troubles.push('the word "' + word + '" is broken in the middle');
    }
  }

  for (const block of document.querySelectorAll('.code')) {
    const button = block.querySelector('.copy');
    if (button === null || !isSeen(button)) continue;
    const [over, under] = [button.getBoundingClientRect(), block.querySelector('pre').getBoundingClientRect()];
    if (over.left < under.right && over.right > under.left && over.top < under.bottom && over.bottom > under.top)
      troubles.push('a copy button covers "' + block.textContent.slice(0, 30) + '"');
  }
  for (const block of document.querySelectorAll('.notice pre'))
    if (isSeen(block) && block.scrollWidth > block.clientWidth)
      troubles.push((block.scrollWidth - block.clientWidth) + ' px of "' + block.textContent.slice(0, 12) + '" are behind an edge');
  const ribbon = document.querySelector('.ribbon');
  if (ribbon !== null && ribbon.getBoundingClientRect().width < document.documentElement.clientWidth)
    troubles.push('the ribbon ends before the page does');
  if (ribbon !== null && ribbon.getBoundingClientRect().top + scrollY > 0)
    troubles.push('the ribbon does not begin where the page does');
  for (const table of document.querySelectorAll('.fields'))
    if (isSeen(table) && table.parentElement.scrollWidth > table.parentElement.clientWidth)
      troubles.push((table.parentElement.scrollWidth - table.parentElement.clientWidth) + ' px of the fields are behind an edge');
  for (const control of document.querySelectorAll('a, button, input, select, textarea, [tabindex="0"]')) {
    if (!isSeen(control)) continue;
    const name = control.ariaLabel ?? (control.labels?.length ? control.labels[0].textContent : control.textContent || control.title);
    if (!String(name).trim() && !control.getAttribute('aria-labelledby')) troubles.push('a ' + control.tagName + ' has no name');
  }
  return troubles;
})()`;

/** Fails when the page is too wide, has text that is too pale, covered or broken in a word, or a control without a name. */
export async function assertReadable(page: Page, what: string): Promise<void> {
  assert.deepEqual(await page.evaluate(TROUBLES), [], what);
}
