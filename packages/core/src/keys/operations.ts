import { answered, bodyOf, type Described, REFUSED, refused } from '../http/operation.ts';

/** Keys to try things with. */
export const KEY_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/api/m2m/credits/trial',
      operation: {
        operationId: 'getTrialKey',
        tags: ['Free'],
        summary: 'A free key with credits, shown once',
        security: [],
        responses: {
          200: answered('The key. It cannot be shown again.', {
            success: true,
            apiKey: 'fbx_live_…',
            credits: 5,
            expiresIn: '7 days',
          }),
          403: refused('The caller has an internal address.'),
          429: refused('This address, or its network, has claimed its keys already.'),
          503: refused(
            'All trials that there are for now are given out: `TRIALS_TEMPORARILY_DISABLED`, until `nextTrialAt`.',
          ),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/sdk/demo-key',
      operation: {
        operationId: 'createDemoKey',
        tags: ['Free'],
        summary: 'A trial key for an installed SDK, by the same terms',
        security: [],
        requestBody: bodyOf(
          { installId: { type: 'string', minLength: 8, maxLength: 64 }, sdkType: { type: 'string' } },
          ['installId', 'sdkType'],
          { installId: 'mcp-0123456789abcdef', sdkType: 'python-mcp' },
        ),
        responses: {
          200: answered('The key', {
            success: true,
            api_key: 'fbx_live_…',
            credits_remaining: 5,
            status: 'new',
          }),
          400: REFUSED,
          403: refused('The caller has an internal address.'),
          429: refused('Too many keys for this installation or address.'),
          503: refused('All trials of today are given out. A key that is replaced costs none.'),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/sdk/telemetry',
      operation: {
        operationId: 'sendTelemetry',
        tags: ['Free'],
        summary: 'What an SDK reports of its use; optional',
        security: [],
        requestBody: bodyOf({ installId: { type: 'string' }, event: { type: 'string' } }, [], {
          installId: 'mcp-0123456789abcdef',
          event: 'usage',
        }),
        responses: {
          202: answered('Received and forgotten: nothing is stored', { success: true }),
          400: REFUSED,
        },
      },
    },
  ],
} as const satisfies Described;
