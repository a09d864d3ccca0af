import type { PersonalData } from '@farebox/core/words/personal-data';

const THEIR_DEVICES = 'select no from devices where owner = any(:accounts)';
const OF_DEVICE = `device in (${THEIR_DEVICES})`;

export const DEVICE_PEOPLE: PersonalData = {
  tables: [
    {
      table: 'device_offers',
      what: 'Codes by which somebody may read a device, as SHA-256',
      why: 'Its owner offered it',
      kept: 'until it is used, or its time is over',
      columns: ['digest'],
      whose: OF_DEVICE,
      erasure: { rows: 'deleted' },
      withheld: ['digest'],
    },
    {
      table: 'device_readers',
      what: 'Who may read a device',
      why: 'Its owner let them',
      kept: 'until its owner ends it',
      columns: ['reader'],
      whose: `${OF_DEVICE} or reader in (select 'account:' || a from unnest(:accounts) a)`,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'device_refusals',
      what: 'Reports of a device that were refused',
      why: 'Its owner sees why, and they are taken later if that is possible',
      kept: '30 days after they last came',
      columns: ['report', 'reason', 'digest'],
      whose: OF_DEVICE,
      erasure: { rows: 'deleted' },
      withheld: ['digest'],
    },
    {
      table: 'device_readings',
      what: 'What a device measured, and where it was',
      why: 'It is sold',
      kept: '`DEVICE_RETENTION_DAYS`',
      columns: ['key', 'measured'],
      whose: OF_DEVICE,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'devices',
      what: 'Name, fleet and place of a device, and its public key',
      why: 'It is found by them',
      kept: 'for good',
      columns: ['id', 'name', 'fleet', 'sensors', 'public_key', 'refusal'],
      whose: 'owner = any(:accounts)',
      erasure: {
        set: {
          id: `'erased-' || no`,
          name: 'null',
          fleet: 'null',
          sensors: `'{}'::jsonb`,
          lat: 'null',
          lon: 'null',
          refusal: 'null',
          refused_at: 'null',
          revoked_at: 'coalesce(revoked_at, :now)',
        },
        words: 'it is revoked, and all but its number goes',
      },
      withheld: ['public_key'],
    },
    {
      table: 'device_fleets',
      what: 'Names of fleets',
      why: 'Devices are found by them',
      kept: 'for good',
      columns: ['name'],
      whose: 'owner = any(:accounts)',
      erasure: { rows: 'deleted' },
    },
  ],
};
