/**
 * Answers a prompt from the prompt's own text: it calculates, repeats, lists, selects the sentences that answer a
 * question, or summarises. There is no model and no randomness: the same prompt always gets the same answer.
 */
import { calculation } from './arithmetic.ts';

const MAX_SENTENCES = 200;
const SUMMARY_SENTENCES = 3;
const MAX_LIST = 20;
const DAMPING = 0.85;
const ROUNDS = 30;
const STOP_WORDS = new Set(
  'a an and are as at be but by can do does did for from had has have how i if in into is it its me my no not of on or our please so such that the their them then there these they this to was we were what when where which who why will with would you your'.split(
    ' ',
  ),
);

/** The answer to a prompt: text from it, the result of a calculation, or a sentence that says that it can give neither. */
export function answerTo(prompt: string): string {
  const said = prompt.trim();
  const echoed =
    /^(?:please\s+)?(?:echo|repeat|say)(?:\s+(?:exactly|after me|the following|this))*\s*[:,]?\s+["“]?([\s\S]+?)["”]?$/i.exec(
      said,
    )?.[1];
  if (echoed !== undefined) return echoed;
  const result = calculation(said);
  if (result !== null) return result;
  const { task, text } = split(said);
  const sentences = sentencesOf(text);
  if (sentences.length === 0) return unable(said);
  if (/\b(list|enumerate|bullet|extract)\b/i.test(task)) {
    return itemsOf(text)
      .slice(0, MAX_LIST)
      .map((item) => `- ${item}`)
      .join('\n');
  }
  if (task === '')
    return sentences.length <= SUMMARY_SENTENCES ? unable(said) : inOrder(sentences, ranks(sentences));
  const closeness = similarityTo(task, sentences);
  const summary = /\b(summar|tl;?dr|shorten|main points?|gist|key points?)/i.test(task);
  if (summary || closeness.every((value) => value === 0)) return inOrder(sentences, ranks(sentences));
  const best = closeness.indexOf(Math.max(...closeness));
  return sentences[best] ?? unable(said);
}

/**
 * Splits a prompt into task and text. The task is what stands before the first colon or line end; without these it is the first
 * sentence that is a question or begins with a verb such as "summarise". It is empty if there is none.
 */
function split(said: string): { task: string; text: string } {
  const line = /^([^\n]{3,300}?)(?::\s+|:?\n+)([\s\S]+)$/.exec(said);
  if (line !== null) return { task: line[1] ?? '', text: line[2] ?? '' };
  const sentences = sentencesOf(said);
  const asked = sentences.findIndex(
    (sentence) =>
      sentence.endsWith('?') || /^(?:please\s+)?(?:summar|list|enumerate|extract|shorten)/i.test(sentence),
  );
  if (asked < 0) return { task: '', text: said };
  return { task: sentences[asked] ?? '', text: sentences.filter((_, at) => at !== asked).join(' ') };
}

function unable(said: string): string {
  const words = said.split(/\s+/).length;
  return `This is the sandbox's extractive engine: it can only work with text in the prompt, and this one (${words} words) gives it nothing to work with.`;
}

function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?])\s+(?=[\p{Lu}\d"“(])|\n+/u)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence !== '')
    .slice(0, MAX_SENTENCES);
}

/**
 * The items of a text: its lines if there are several, else its sentences if there are several, else the parts between commas,
 * semicolons and "and".
 */
function itemsOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/^\s*(?:[-*•]|\d+[.)])\s*/, '').trim());
  const filled = lines.filter((line) => line !== '');
  if (filled.length > 1) return filled;
  const sentences = sentencesOf(text);
  if (sentences.length > 1) return sentences;
  const parts = text.split(/,\s*(?:and\s+)?|;\s*|\s+and\s+/).map((part) => part.replace(/[.]$/, '').trim());
  return parts.filter((part) => part !== '');
}

function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
    .filter((word) => !STOP_WORDS.has(word))
    .map((word) => (word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, '') : word));
}

/** The term weights of each sentence: a term's frequency times the logarithm of how rare it is among the sentences. */
function weigh(sentences: readonly string[]): Map<string, number>[] {
  const bags = sentences.map(wordsOf);
  const holders = new Map<string, number>();
  for (const bag of bags) for (const word of new Set(bag)) holders.set(word, (holders.get(word) ?? 0) + 1);
  return bags.map((bag) => {
    const weights = new Map<string, number>();
    for (const word of bag) {
      const rarity = Math.log(1 + sentences.length / (holders.get(word) ?? 1));
      weights.set(word, (weights.get(word) ?? 0) + rarity);
    }
    return weights;
  });
}

function cosine(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  let product = 0;
  for (const [word, weight] of one) product += weight * (other.get(word) ?? 0);
  const length = (of: ReadonlyMap<string, number>) => Math.hypot(...of.values());
  return product === 0 ? 0 : product / (length(one) * length(other));
}

function similarityTo(task: string, sentences: readonly string[]): number[] {
  const weights = weigh([...sentences, task]);
  const asked = weights.at(-1) ?? new Map<string, number>();
  return sentences.map((_, at) => cosine(asked, weights[at] ?? new Map<string, number>()));
}

/** TextRank (Mihalcea and Tarau, 2004): a sentence ranks high if sentences that rank high resemble it. */
function ranks(sentences: readonly string[]): number[] {
  const weights = weigh(sentences);
  const links = weights.map((one, row) =>
    weights.map((other, column) => (row === column ? 0 : cosine(one, other))),
  );
  const totals = links.map((row) => row.reduce((sum, link) => sum + link, 0));
  let scores = sentences.map(() => 1);
  for (let round = 0; round < ROUNDS; round++) {
    scores = scores.map(
      (_, at) =>
        1 -
        DAMPING +
        DAMPING *
          scores.reduce((sum, score, from) => {
            const total = totals[from] ?? 0;
            return total === 0 ? sum : sum + (score * (links[from]?.[at] ?? 0)) / total;
          }, 0),
    );
  }
  return scores;
}

/** The sentences with the highest scores, in the order in which they stand in the text. */
function inOrder(sentences: readonly string[], scores: readonly number[]): string {
  return sentences
    .map((sentence, at) => ({ sentence, at, score: scores[at] ?? 0 }))
    .toSorted((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, SUMMARY_SENTENCES)
    .toSorted((a, b) => a.at - b.at)
    .map(({ sentence }) => sentence)
    .join(' ');
}
