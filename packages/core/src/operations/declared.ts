import { z } from 'zod';
import { declare } from '../declared.ts';

export const OPERATIONS = declare({
  name: 'operations',
  variables: {
    metricsToken: {
      name: 'METRICS_TOKEN',
      describe:
        'Bearer token for `/metrics`. Without it `/metrics` is closed if `PUBLIC_URL` is set or a proxy stands in front, and otherwise open to internal addresses',
      shape: z.string().min(16, 'must have at least 16 characters'),
      fallback: null,
      secret: true,
      renewed: true,
    },
  },
});
