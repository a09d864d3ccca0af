/** A tag as addresses and folders name it: its words in lower case, with dashes between them. */
export function dashedTag(tag: string): string {
  return tag.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
