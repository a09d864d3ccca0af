import { resolve } from 'node:path';
import { z } from 'zod';
import { declare, whole } from '../declared.ts';

export const PEOPLE = declare({
  name: 'people',
  variables: {
    /** Null: `erasures.jsonl` in the data folder. */
    erasuresFile: {
      name: 'FAREBOX_ERASURES_FILE',
      describe:
        'File in which `npm run person` lists erased persons, as digests. Keep it where no restore of the database takes it back. Unless set: `erasures.jsonl` in `FAREBOX_DATA_DIR`',
      shape: z.string().transform((value) => resolve(value)),
      fallback: null,
    },
    /** Null: nobody has said. */
    backupsKeptDays: {
      name: 'BACKUPS_KEPT_DAYS',
      describe:
        'How many days you keep copies of the database: `npm run person` says until when an erased person still stands in one',
      shape: whole(1, 3_650),
      fallback: null,
    },
  },
});
