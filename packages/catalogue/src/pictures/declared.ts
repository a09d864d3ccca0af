import { declare, whole } from '@farebox/core/declared';

const HOUR_MS = 3_600_000;
const MEGABYTE = 1024 * 1024;

export const PICTURES = declare({
  name: 'pictures',
  variables: {
    linkMs: {
      name: 'PICTURE_LINK_HOURS',
      describe: 'For how long the picture of an answer can be looked at',
      shape: whole(1, 720).transform((hours) => hours * HOUR_MS),
      fallback: '168',
    },
    cacheBytes: {
      name: 'PICTURE_CACHE_MB',
      describe: 'Memory for finished pictures, per process; what does not fit is drawn anew',
      shape: whole(4, 4_096).transform((megabytes) => megabytes * MEGABYTE),
      fallback: '64',
    },
  },
});
