import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';

const MAX_FILES = 200;
const standardInput = z.object({
  language: z.string().optional(),
  sources: z.record(z.string().max(500), z.object({ content: z.string() })),
  settings: z
    .object({ remappings: z.array(z.string().max(500)).max(200).optional() })
    .loose()
    .optional(),
});

/**
 * The files in the source that was sent: the text of one file, a compiler's standard JSON input, or such JSON in a
 * second pair of braces, as block explorers write it.
 *
 * @throws noAnswer when it is JSON of another shape
 */
export function sourcesOf(sent: string): { sources: Record<string, string>; remappings: string[] } {
  const trimmed = sent.trim();
  if (!trimmed.startsWith('{')) return { sources: { 'Contract.sol': sent }, remappings: [] };
  const text = trimmed.startsWith('{{') && trimmed.endsWith('}}') ? trimmed.slice(1, -1) : trimmed;
  const parsed = standardInput.safeParse(jsonOf(text));
  if (!parsed.success || Object.keys(parsed.data.sources).length === 0) {
    throw noAnswer(
      'SOURCE_UNREADABLE',
      'sourceCode starts with a brace but is no standard JSON input of a compiler: send {"language":"Solidity","sources":{"A.sol":{"content":"…"}}}, or the Solidity text itself.',
      'sourceCode',
    );
  }
  const { language, sources, settings } = parsed.data;
  if (language !== undefined && language !== 'Solidity')
    throw noAnswer('NOT_SOLIDITY', 'Only Solidity is audited.', 'sourceCode');
  if (Object.keys(sources).length > MAX_FILES)
    throw noAnswer('SOURCE_TOO_LARGE', `At most ${MAX_FILES} files are audited.`, 'sourceCode');
  return {
    sources: Object.fromEntries(Object.entries(sources).map(([path, { content }]) => [path, content])),
    remappings: settings?.remappings ?? [],
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
