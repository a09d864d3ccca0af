import { type Described, refused } from '../http/operation.ts';
import { PICTURE_PATH } from './links.ts';

const part = (name: string, description: string, pattern: string) => ({
  name,
  in: 'query',
  required: true,
  description,
  schema: { type: 'string', pattern },
});

/** Pictures of answers. */
export const PICTURE_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: PICTURE_PATH,
      operation: {
        operationId: 'lookAtPicture',
        tags: ['Free'],
        summary: 'The picture of an answer about a place, by the address in its image.url',
        description:
          'Use the address as it stands: all of it is signed. The picture is fetched from its source with the first look.',
        security: [],
        parameters: [
          part('layer', 'Map', '^[A-Za-z0-9_-]+$'),
          part('time', 'Day, or moment in UTC', '^\\d{4}-\\d{2}-\\d{2}'),
          part('bbox', 'west,south,east,north in degrees', '^[-0-9.,]+$'),
          part('size', 'Pixels', '^\\d+x\\d+$'),
          part('marker', 'lat,lon of the ring, or none', '^([-0-9.,]+|none)$'),
          part('expires', 'When the address ends, in seconds since 1970', '^\\d+$'),
          part('version', 'Which secret signed it', '^[0-9a-f]{16}$'),
          part('signature', 'Of all of the above', '^[A-Za-z0-9_-]{43}$'),
        ],
        responses: {
          200: {
            description: 'The picture',
            headers: {
              ETag: { schema: { type: 'string' }, description: 'Of its bytes' },
              'X-Picture-Blank': {
                schema: { type: 'string', enum: ['true', 'false'] },
                description: 'Whether the map shows nothing here; the picture says so too',
              },
            },
            content: { 'image/png': {} },
          },
          304: { description: 'It is the one that If-None-Match names' },
          403: refused('The address was not signed here, or was changed.'),
          404: refused('The map has no such time, or not yet.'),
          410: refused('The address has ended; a new call of the service brings another one.'),
          429: refused('Too many looks from one network.'),
          502: refused('The source of the map failed, or sent no picture.'),
          503: refused('Too many pictures are being drawn, or the source may not be asked now.'),
          504: refused('The source of the map did not answer in time.'),
        },
      },
    },
  ],
} as const satisfies Described;
