/** Cuts a library's error down to what may be said: it may hold the address of a node, and such an address often holds a key. */

const MAX_WORDS = 200;
/** Shorter parts of an address are words such as `v2`. */
const MIN_SECRET_CHARACTERS = 8;
const ADDRESS = /\b[a-z][a-z\d+.-]*:\/\/\S+/gi;

/**
 * @param secrets keys, and addresses of nodes, none of which may be told
 * @returns an error to be shown: the words of this one without them, and itself as the cause, which is shown to nobody
 */
export function inPlainWords(error: unknown, secrets: readonly string[]): Error {
  const { shortMessage, message, status } = (error ?? {}) as Record<string, unknown>;
  const said = [shortMessage, message].find((each) => typeof each === 'string') ?? 'it failed';
  // What follows the first line names the request, its address and the words of the node.
  const [line = ''] = String(said).split('\n');
  const hidden = secrets
    .flatMap(partsOf)
    .reduce((words, part) => words.replaceAll(part, '…'), line.replace(ADDRESS, '…'))
    .replace(/\.$/, '')
    .slice(0, MAX_WORDS);
  return new Error(typeof status === 'number' ? `${hidden} (HTTP ${status})` : hidden, { cause: error });
}

/** The secret itself, and each part of an address in which a key may stand. */
function partsOf(secret: string): string[] {
  if (!URL.canParse(secret)) return [secret];
  const url = new URL(secret);
  const { hostname, username, password, pathname, searchParams } = url;
  const parts = [hostname, username, password, ...pathname.split('/'), ...searchParams.values()];
  return parts.filter((part) => part.length >= MIN_SECRET_CHARACTERS);
}
