import { z } from 'zod';
import { declare } from '../declared.ts';

export const OPERATIONS = declare({
  name: 'operations',
  variables: {
    metricsToken: {
      name: 'METRICS_TOKEN',
      describe:
        'Bearer token for `/metrics`. Without it they are closed where `PUBLIC_URL` is set or a proxy stands in front, and open to internal addresses elsewhere',
      shape: z.string().min(16, 'must have at least 16 characters'),
      fallback: null,
      secret: true,
    },
  },
});
