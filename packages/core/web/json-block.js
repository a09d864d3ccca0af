import { codeBlock, el } from './dom.js';

/** Names, texts, numbers and words of JSON that is written with an indent. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;
/** Longer texts are shown as they are. */
const MOST_CHARACTERS = 200_000;

/** A block of JSON with a button that copies it; its names, texts and numbers are told apart. */
export function jsonBlock(text, label) {
  const block = codeBlock(text, label);
  if (text.length <= MOST_CHARACTERS && /^\s*[{[]/.test(text))
    block.querySelector('code').replaceChildren(...coloured(text));
  return block;
}

function coloured(text) {
  const parts = [];
  let at = 0;
  for (const { 0: token, 1: string, 2: colon, index } of text.matchAll(TOKEN)) {
    // The name of a field stays as the text around it.
    if (colon !== undefined) continue;
    parts.push(text.slice(at, index));
    parts.push(el('span', { class: string === undefined ? 'number' : 'string' }, token));
    at = index + token.length;
  }
  return [...parts, text.slice(at)];
}
