import { declare } from '@farebox/core/declared';
import { z } from 'zod';

export const PROXY = declare({
  name: 'proxy',
  variables: {
    file: {
      name: 'FAREBOX_CONFIG',
      describe:
        'File that says which routes of other servers are sold: `farebox.config.yaml`, see selling your own API',
      shape: z.string().min(1).max(4_000),
      fallback: null,
    },
  },
});
