import assert from 'node:assert/strict';
import { test } from 'node:test';
import pingService from '../../../catalogue/src/services/discovery/ping.ts';
import { assertFitsHttp } from './http-door.ts';

test('a service that may outlast the longest wait over HTTP is not sold there', () => {
  assertFitsHttp([{ ...pingService, timeoutMs: 25_000 }]);
  assert.throws(() => assertFitsHttp([{ ...pingService, timeoutMs: 25_001 }]), /ping: timeoutMs/);
});
