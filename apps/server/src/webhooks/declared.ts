import { declare, flag } from '../declared.ts';

export const WEBHOOKS = declare({
  name: 'webhooks',
  variables: {
    privateAddresses: {
      name: 'WEBHOOK_PRIVATE_ADDRESSES',
      describe:
        'Whether webhooks of key owners may lead to addresses that are not on the open internet, and go without TLS. Only where every owner may reach whatever this server reaches',
      shape: flag,
      fallback: 'false',
    },
  },
});
