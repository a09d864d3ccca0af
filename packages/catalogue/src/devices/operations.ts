import {
  answered,
  bodyOf,
  type Described,
  KEY_REFUSED,
  KEYED,
  REFUSED,
  refused,
} from '@farebox/core/http/operation';

const DEVICE = {
  name: 'deviceId',
  in: 'path',
  required: true,
  schema: { type: 'string', pattern: '^[a-z0-9][a-z0-9_-]{2,63}$' },
};
const NOT_YOURS = refused('Your account has no such device.');
const EXAMPLE = {
  success: true,
  deviceId: 'greenhouse-1',
  name: null,
  fleetId: null,
  public: true,
  sensors: { temperature: 'celsius' },
  place: { lat: 52.1, lon: 5.2 },
  status: 'active',
  readings: 0,
  refusals: 0,
  lastAt: null,
  lastRefusal: null,
};
const SHOWN = { $ref: '#/components/responses/Device' };
const place = {
  type: ['object', 'null'],
  description: 'Degrees, for a device that stands still',
  properties: { lat: { type: 'number' }, lon: { type: 'number' } },
};

/** Devices that report, and what their owners do with them. */
export const DEVICE_OPERATIONS = {
  operations: [
    {
      method: 'POST',
      path: '/api/devices',
      operation: {
        operationId: 'registerDevice',
        tags: ['Free'],
        summary: 'Registers a device, or one of yours that was revoked anew, and shows its secret once',
        security: KEYED,
        requestBody: bodyOf(
          {
            deviceId: { type: 'string', pattern: '^[a-z0-9][a-z0-9_-]{2,63}$' },
            name: { type: ['string', 'null'] },
            fleetId: { type: ['string', 'null'], description: 'Devices of one fleet have one owner' },
            public: {
              type: 'boolean',
              description: 'Sold to everybody; otherwise to you and those you offer it to',
            },
            simulated: { type: 'boolean', description: 'Its readings are made up; every answer says so' },
            sensors: { type: 'object', description: 'The unit of each sensor, by its name' },
            place,
          },
          ['deviceId'],
          { deviceId: 'greenhouse-1', public: true, sensors: { temperature: 'celsius' } },
        ),
        responses: {
          201: answered('Its secret, and how it reports', { ...EXAMPLE, secret: '9f86d081…' }),
          400: REFUSED,
          401: KEY_REFUSED,
          403: refused('Trials and keys that have ended register none.'),
          409: refused(
            'The name is taken, the account has as many devices as it may, or a device that begins again has a sensor in another unit.',
          ),
          422: refused('This server takes no readings that are made up.'),
        },
      },
    },
    {
      method: 'GET',
      path: '/api/devices',
      operation: {
        operationId: 'listDevices',
        tags: ['Free'],
        summary: 'Your devices, their last readings and what they have earned',
        security: KEYED,
        responses: {
          200: answered('All of them', {
            success: true,
            devices: [EXAMPLE],
            earnings: {
              sharePercent: 50,
              calls: 3,
              earnedUsd: '0.075000',
              paidUsd: '0.050000',
              dueUsd: '0.025000',
              heldUsd: '0.000000',
              heldFor: [],
            },
          }),
          401: KEY_REFUSED,
        },
      },
    },
    {
      method: 'GET',
      path: '/api/devices/{deviceId}',
      operation: {
        operationId: 'getDevice',
        tags: ['Free'],
        summary: 'One of your devices, and who may read it',
        security: KEYED,
        parameters: [DEVICE],
        responses: { 200: SHOWN, 401: KEY_REFUSED, 404: NOT_YOURS },
      },
    },
    {
      method: 'PATCH',
      path: '/api/devices/{deviceId}',
      operation: {
        operationId: 'changeDevice',
        tags: ['Free'],
        summary: 'Sets a device’s name, place, and whether it is sold to everybody, and adds sensors',
        security: KEYED,
        parameters: [DEVICE],
        requestBody: bodyOf(
          {
            name: { type: ['string', 'null'] },
            public: { type: 'boolean' },
            sensors: {
              type: 'object',
              description: 'The units of sensors that are added; what waited for one of them is taken',
            },
            place,
          },
          [],
          { public: true },
        ),
        responses: {
          200: SHOWN,
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
          409: refused('A sensor is reported in another unit already, or the device would have too many.'),
        },
      },
    },
    {
      method: 'DELETE',
      path: '/api/devices/{deviceId}',
      operation: {
        operationId: 'revokeDevice',
        tags: ['Free'],
        summary: 'Ends a device’s secret for good',
        security: KEYED,
        parameters: [DEVICE],
        responses: { 200: SHOWN, 401: KEY_REFUSED, 404: NOT_YOURS },
      },
    },
    {
      method: 'POST',
      path: '/api/devices/{deviceId}/rotate',
      operation: {
        operationId: 'rotateDevice',
        tags: ['Free'],
        summary: 'Gives a device a new secret; the old one ends at once',
        security: KEYED,
        parameters: [DEVICE],
        responses: {
          200: answered('The new secret', { success: true, deviceId: 'greenhouse-1', secret: '9f86d081…' }),
          401: KEY_REFUSED,
          404: NOT_YOURS,
          410: refused('The device was revoked.'),
        },
      },
    },
    {
      method: 'GET',
      path: '/api/devices/{deviceId}/readings',
      operation: {
        operationId: 'readOwnDevice',
        tags: ['Free'],
        summary: 'What your device reported in the last day',
        security: KEYED,
        parameters: [DEVICE],
        responses: {
          200: answered('Oldest first', {
            success: true,
            deviceId: 'greenhouse-1',
            sensors: { temperature: 'celsius' },
            readings: [{ at: '2026-11-22T10:00:00.000Z', values: { temperature: 21.4 }, position: null }],
          }),
          401: KEY_REFUSED,
          404: NOT_YOURS,
        },
      },
    },
    {
      method: 'GET',
      path: '/api/devices/{deviceId}/refusals',
      operation: {
        operationId: 'listRefusedReports',
        tags: ['Free'],
        summary: 'What your device reported by MQTT and could not be taken, with the reason',
        security: KEYED,
        parameters: [
          DEVICE,
          { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } },
          { name: 'cursor', in: 'query', description: 'That of the page before', schema: { type: 'string' } },
        ],
        responses: {
          200: answered('Newest first', {
            success: true,
            deviceId: 'greenhouse-1',
            refusals: [
              {
                code: 'SENSOR_UNKNOWN',
                reason: 'reading 0: the device has no sensor "humidity".',
                count: 1,
                firstAt: '2026-11-22T10:00:00.000Z',
                lastAt: '2026-11-22T10:00:00.000Z',
                report: '{"at":"2026-11-22T10:00:00Z","values":{"humidity":41}}',
                waitsForSensor: 'humidity',
                takenFrom: null,
              },
            ],
            cursor: null,
          }),
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
        },
      },
    },
    {
      method: 'POST',
      path: '/api/devices/{deviceId}/readings',
      operation: {
        operationId: 'reportReadings',
        tags: ['Free'],
        summary: 'Reports readings of a device, signed with its secret; the same again is stored once',
        security: [{ DeviceSignature: [] }],
        parameters: [
          DEVICE,
          {
            name: 'X-Device-Timestamp',
            in: 'header',
            required: true,
            description: 'Seconds since 1970, less than five minutes from ours',
            schema: { type: 'string' },
          },
        ],
        requestBody: bodyOf(
          {
            at: { type: 'string', format: 'date-time', description: 'When it was measured' },
            key: {
              type: 'string',
              description: 'Tells readings of one time apart; without it, what they hold does',
            },
            values: { type: 'object', description: 'Numbers, by sensor' },
            position: { type: 'object', description: 'lat and lon in degrees' },
          },
          ['at'],
          { at: '2026-11-22T10:00:00Z', values: { temperature: 21.4 } },
        ),
        responses: {
          200: answered('They are stored', { success: true, stored: 1, known: 0 }),
          400: refused('The report is not one, with the reading and the field; nothing of it was stored.'),
          401: refused('The signature is not the device’s, or is too old.'),
          403: refused('The device was revoked.'),
          413: refused('The report is too large.'),
          429: refused('The device reports more often than it may.'),
          503: refused('It may not be stored: send it again.'),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/devices/{deviceId}/offers',
      operation: {
        operationId: 'offerDevice',
        tags: ['Free'],
        summary: 'Lets a wallet, or whoever has the code, buy the readings of a private device',
        security: KEYED,
        parameters: [DEVICE],
        requestBody: bodyOf(
          {
            network: { type: 'string', description: 'CAIP-2, with address; leave both out for a code' },
            address: { type: 'string' },
          },
          [],
          {},
        ),
        responses: {
          200: answered('The wallet may', { success: true, deviceId: 'greenhouse-1', reader: 'wallet:…' }),
          201: answered('A code that works once', {
            success: true,
            deviceId: 'greenhouse-1',
            code: '8c6976e5…',
          }),
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
        },
      },
    },
    {
      method: 'DELETE',
      path: '/api/devices/{deviceId}/offers',
      operation: {
        operationId: 'endDeviceOffers',
        tags: ['Free'],
        summary: 'Ends all offers of a device, taken or not',
        security: KEYED,
        parameters: [DEVICE],
        responses: {
          200: answered('Nobody but you may read it', {
            success: true,
            deviceId: 'greenhouse-1',
            readers: [],
          }),
          401: KEY_REFUSED,
          404: NOT_YOURS,
        },
      },
    },
    {
      method: 'POST',
      path: '/api/device-offers',
      operation: {
        operationId: 'acceptDeviceOffer',
        tags: ['Free'],
        summary: 'Takes an offer: your account may buy the readings of that device',
        security: KEYED,
        requestBody: bodyOf({ code: { type: 'string', pattern: '^[0-9a-f]{48}$' } }, ['code'], {
          code: '8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8',
        }),
        responses: {
          200: answered('It is yours to buy', { success: true, deviceId: 'greenhouse-1' }),
          400: REFUSED,
          401: KEY_REFUSED,
          404: refused('There is no such offer, or it was taken or has expired.'),
        },
      },
    },
    {
      method: 'GET',
      path: '/api/device-exports/{exportId}',
      operation: {
        operationId: 'fetchDeviceExport',
        tags: ['Free'],
        summary: 'The file that iot-bulk-data sold, for a day',
        security: [],
        parameters: [
          {
            name: 'exportId',
            in: 'path',
            required: true,
            schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
          },
        ],
        responses: {
          200: { description: 'The file, as JSON, CSV or Parquet' },
          404: refused('There is no such file, or it has expired.'),
        },
      },
    },
  ],
  untold: [{ path: '/devices', because: 'It is a page.' }],
  responses: { Device: answered('The device as it is now', EXAMPLE) },
  securitySchemes: { DeviceSignature: { type: 'apiKey', in: 'header', name: 'X-Device-Signature' } },
} as const satisfies Described;
