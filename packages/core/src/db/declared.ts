import { resolve } from 'node:path';
import { z } from 'zod';
import { declare, whole } from '../declared.ts';

export const DATABASE = declare({
  name: 'database',
  variables: {
    dataDir: {
      name: 'FAREBOX_DATA_DIR',
      describe: 'Folder for all state that must survive a restart',
      shape: z.string().transform((value) => resolve(value)),
      fallback: '.farebox',
    },
    databaseUrl: {
      name: 'DATABASE_URL',
      describe:
        'PostgreSQL 15 or newer. Of several hosts, with commas between them, the one that takes writes is used. Without it the server starts its own below `FAREBOX_DATA_DIR`',
      shape: z.string().regex(/^postgres(ql)?:\/\//, 'must begin with postgres://'),
      fallback: null,
      secret: true,
      renewed: true,
    },
    databaseHotHosts: {
      name: 'DATABASE_HOT_HOSTS',
      describe:
        'Servers of a database that Citus spreads (docs/citus.md), such as `10.0.0.2:5432,10.0.0.3:5432`. Any of them is asked to begin and end calls that credits pay, with the user, password and settings of `DATABASE_URL`; everything else asks the coordinator, which is asked for these too unless this is set',
      shape: z
        .string()
        .regex(
          /^[^\s,/@]+(,[^\s,/@]+)*$/,
          'must be hosts with commas between them, each with its port if it is not 5432',
        ),
      fallback: null,
    },
    databaseMaxConnections: {
      name: 'DATABASE_MAX_CONNECTIONS',
      describe: 'Connections this process may open',
      shape: whole(2, 200),
      fallback: '10',
    },
    accountBuckets: {
      name: 'ACCOUNT_BUCKETS',
      describe:
        'Over how many buckets new accounts are spread, which is of use only where several servers hold the database (docs/scaling.md). Accounts that are there stay in theirs',
      shape: whole(1, 4_096),
      fallback: '1',
    },
  },
});
