import { declare, flag } from '../declared.ts';

export const WEBHOOKS = declare({
  name: 'webhooks',
  variables: {
    privateAddresses: {
      name: 'WEBHOOK_PRIVATE_ADDRESSES',
      describe:
        'Whether webhooks of key owners may lead to private addresses, and go without TLS. Set it only if every owner may reach whatever this server can reach',
      shape: flag,
      fallback: 'false',
    },
  },
});
