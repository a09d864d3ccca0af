import { type Described, refused } from '@farebox/core/http/operation';
import { PICTURE_PATH } from './links.ts';

/** Pictures of answers. Nobody makes up an address of one, so what it is made of is not told. */
export const PICTURE_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: PICTURE_PATH,
      operation: {
        operationId: 'lookAtPicture',
        tags: ['Free'],
        summary: 'The picture of an answer about a place',
        description: 'At its image.url, as it stands: all of it is signed.',
        security: [],
        responses: {
          200: {
            description: 'The picture; X-Picture-Blank is true where the map shows nothing',
            content: { 'image/png': {} },
          },
          '4XX': refused('Not signed here; no such map yet; or ended: a new call brings another'),
          '5XX': refused('The source failed or is silent, or too many look'),
        },
      },
    },
  ],
} as const satisfies Described;
