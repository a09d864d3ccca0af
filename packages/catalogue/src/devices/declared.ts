import { declare, whole } from '@farebox/core/declared';
import { z } from 'zod';
import { DEVICE_PEOPLE } from './personal-data.ts';

const HOUR_MS = 3_600_000;

export const DEVICES = declare({
  name: 'devices',
  people: DEVICE_PEOPLE,
  variables: {
    retentionDays: {
      name: 'DEVICE_RETENTION_DAYS',
      describe: 'For how many days readings of devices are kept',
      shape: whole(8, 3_660),
      fallback: '90',
    },
    backfillMs: {
      name: 'DEVICE_BACKFILL_HOURS',
      describe: 'How old a reading may be when it is reported, for devices that were out of reach',
      shape: whole(1, 168).transform((hours) => hours * HOUR_MS),
      fallback: '168',
    },
    perAccount: {
      name: 'DEVICES_PER_ACCOUNT',
      describe: 'Devices that one account may register, with the keys that were bought with its credit',
      shape: whole(1, 1_000_000),
      fallback: '1000',
    },
    reportsPerMinute: {
      name: 'DEVICE_REPORTS_PER_MINUTE',
      describe: 'Reports that one device may send in a minute, per process',
      shape: whole(1, 100_000),
      fallback: '120',
    },
    ownerSharePercent: {
      name: 'DEVICE_OWNER_SHARE_PERCENT',
      describe: 'What the owner of a device gets of the price when its readings are sold',
      shape: whole(0, 100),
      fallback: '50',
    },
    mqttPort: {
      name: 'DEVICE_MQTT_PORT',
      describe: 'Where devices connect by MQTT over TLS; without it they report by HTTPS alone',
      shape: whole(0, 65_535),
      fallback: null,
    },
    mqttCertFile: {
      name: 'DEVICE_MQTT_CERT_FILE',
      describe: 'Certificate of that port with its chain, a PEM file',
      shape: z.string().min(1),
      fallback: null,
    },
    mqttKeyFile: {
      name: 'DEVICE_MQTT_KEY_FILE',
      describe: 'Its private key, a PEM file',
      shape: z.string().min(1),
      fallback: null,
    },
    mqttConnections: {
      name: 'DEVICE_MQTT_CONNECTIONS',
      describe: 'Devices that may be connected by MQTT at once, per process',
      shape: whole(1, 1_000_000),
      fallback: '10000',
    },
  },
  problems: ({ mqttPort, mqttCertFile, mqttKeyFile }) =>
    mqttPort === null || mqttPort === undefined
      ? []
      : [
          ...(mqttCertFile === null ? ['DEVICE_MQTT_CERT_FILE is needed with DEVICE_MQTT_PORT'] : []),
          ...(mqttKeyFile === null ? ['DEVICE_MQTT_KEY_FILE is needed with DEVICE_MQTT_PORT'] : []),
        ],
});
