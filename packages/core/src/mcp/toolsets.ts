/** Which tools an address of `/mcp` lists: all, those of some tags, or the core by which all the others are bought. */
import { type FieldIssue, invalidRequest } from '../http/problem.ts';
import type { Service } from '../service/define.ts';
import { dashedTag } from '../service/tag-words.ts';

/** The free tools, and the one that buys any service by its name. */
const CORE = 'core';
const ALL = 'all';
const MAX_CHARACTERS = 400;

/** The tools that are listed beside the free ones. */
export interface Toolset {
  /** Says the same for every spelling. */
  key: string;
  /** Null: all. */
  tags: ReadonlySet<string> | null;
  /** Whether the tool that buys any service is listed. */
  hasCall: boolean;
}

export const EVERY_TOOL: Toolset = { key: ALL, tags: null, hasCall: false };

/** With more routes of other APIs than these, a list of all tools would be longer than what a model reads. */
const MOST_ROUTES_LISTED = 100;
const CORE_TOOLS: Toolset = { key: CORE, tags: new Set(), hasCall: true };

/** The tools that are listed where all were asked for: the core alone if there are very many. Those of single tags are listed all the same. */
export function listedOf(toolset: Toolset, services: readonly Pick<Service, 'route'>[]): Toolset {
  if (toolset.tags !== null) return toolset;
  return services.filter(({ route }) => route !== null).length > MOST_ROUTES_LISTED ? CORE_TOOLS : toolset;
}

/** The name of a tag in an address: its first word. No two tags begin alike. */
export function toolsetName(tag: string): string {
  return dashedTag(tag).split('-')[0] ?? tag;
}

/**
 * Reads `?toolset=`, such as `trading,satellite` or `core`.
 *
 * @param asked as the query has it: nothing, a text, or several
 * @param known the tags that there are, in the order of the catalog
 * @throws Problem 400 with the names that there are
 */
export function readToolset(asked: unknown, known: readonly string[]): Toolset {
  const text = Array.isArray(asked) ? asked.join(',') : asked;
  if (text === undefined || text === '') return EVERY_TOOL;
  if (typeof text !== 'string' || text.length > MAX_CHARACTERS) throw unknownToolset('it is too long', known);
  const names = text
    .toLowerCase()
    .split(',')
    .map((name) => name.trim().replaceAll(/[_ ]/g, '-'))
    .filter((name) => name !== '');
  const tags = new Set<string>();
  for (const name of names) {
    const tag = known.find((each) => name === toolsetName(each) || name === dashedTag(each));
    if (name === ALL) for (const each of known) tags.add(each);
    else if (tag !== undefined) tags.add(tag);
    else if (name !== CORE) throw unknownToolset(`there is no ${name.slice(0, 40)}`, known);
  }
  const hasCall = names.includes(CORE);
  if (!hasCall && (tags.size === 0 || tags.size === known.length)) return EVERY_TOOL;
  const key = [...(hasCall ? [CORE] : []), ...known.filter((tag) => tags.has(tag))].join(',');
  return { key, tags, hasCall };
}

function unknownToolset(why: string, tags: readonly string[]) {
  const known = [CORE, ...tags.map(toolsetName)].join(', ');
  const issue: FieldIssue = { field: 'toolset', message: `must be names of: ${known}` };
  return invalidRequest(`?toolset= names no tools of this server: ${why}. There are ${known}.`, [issue]);
}
