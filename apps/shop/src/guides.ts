/** The documents of the software, which a shop shows as its guides; none where they are not beside it. */
import { join } from 'node:path';
import { GROUPS } from '@farebox/catalogue/services/groups';
import { readGuides } from '@farebox/core/discovery/guides';
import { openPages, type Pages } from '@farebox/core/discovery/pages';
import type { House } from '@farebox/core/part';

export const GUIDES = readGuides(join(import.meta.dirname, '../../../docs'));

/** Opens the pages for people, with the guides among them, and the groups of the catalog. */
export function openGuidedPages(house: House): Pages {
  return openPages(house, GUIDES, GROUPS);
}
