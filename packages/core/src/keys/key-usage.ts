/** The call that answers recommend to whoever has just got a key. */
export interface FirstCall {
  /** The service's. */
  path: string;
  body: Readonly<Record<string, unknown>>;
}

/** How a key is used, for answers that hand one over. */
export function keyUsage(
  { baseUrl, firstCall }: { baseUrl: string; firstCall: FirstCall },
  apiKey: string,
): Record<string, string> {
  const { path, body } = firstCall;
  return {
    header: 'X-API-KEY',
    example: `curl -X POST ${baseUrl}/x402/${path} -H 'X-API-KEY: ${apiKey}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`,
    alternativeHeader: `Authorization: Bearer ${apiKey}`,
  };
}
