/** Devices for tests: registered at a server, and reporting to it as real ones do. */
import { createPrivateKey, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectAsync, type IClientOptions } from 'mqtt';
import { makeCertificate } from '../../../packages/sandbox/src/devices/certificate.ts';
import { jsonOf } from './server.fixture.ts';

/** A certificate for a broker, with the variables that name it. */
export function openCertificate() {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-mqtt-'));
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  return {
    ca: cert,
    environment: { DEVICE_MQTT_PORT: '0', DEVICE_MQTT_CERT_FILE: certFile, DEVICE_MQTT_KEY_FILE: keyFile },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface TestDevice {
  deviceId: string;
  secret: string;
  topic: string;
  mqttPort: number;
}

export async function register(
  server: { url: string },
  apiKey: string,
  about: { deviceId: string } & Record<string, unknown>,
): Promise<TestDevice> {
  const response = await fetch(`${server.url}/api/devices`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
    body: JSON.stringify({ public: true, sensors: { temperature: 'celsius' }, ...about }),
  });
  const told = await jsonOf(response);
  if (response.status !== 201) throw new Error(`${response.status}: ${JSON.stringify(told)}`);
  return {
    deviceId: about.deviceId,
    secret: told.secret,
    topic: told.mqtt?.topic,
    mqttPort: Number(told.mqtt === null ? 0 : new URL(told.mqtt.url).port),
  };
}

/** Signs a report as a device does. */
function signatureOf(deviceId: string, secret: string, timestamp: string, body: string): string {
  const seed = Buffer.from(secret, 'hex');
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return sign(null, Buffer.from(`${deviceId}\n${timestamp}\n${body}`), key).toString('hex');
}

/** A report by HTTPS. @param change what an attacker does to it */
export function post(
  server: { url: string },
  { deviceId, secret }: Pick<TestDevice, 'deviceId' | 'secret'>,
  report: unknown,
  change: { timestamp?: string; signature?: string; body?: string; to?: string } = {},
): Promise<Response> {
  const body = typeof report === 'string' ? report : JSON.stringify(report);
  const timestamp = change.timestamp ?? String(Math.floor(Date.now() / 1_000));
  return fetch(`${server.url}/api/devices/${change.to ?? deviceId}/readings`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-device-timestamp': timestamp,
      'x-device-signature': change.signature ?? signatureOf(deviceId, secret, timestamp, body),
    },
    body: change.body ?? body,
  });
}

/** A device's own client, as its makers would use it. */
export function connect(
  { deviceId, secret, mqttPort }: TestDevice,
  ca: string,
  options: IClientOptions = {},
) {
  return connectAsync(`mqtts://127.0.0.1:${mqttPort}`, {
    username: deviceId,
    password: secret,
    clientId: deviceId,
    ca,
    protocolVersion: 4,
    keepalive: 60,
    reconnectPeriod: 0,
    connectTimeout: 10_000,
    ...options,
  });
}
