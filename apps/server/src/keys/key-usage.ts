/** How a key is used, for answers that hand one over. */
export function keyUsage(baseUrl: string, apiKey: string): Record<string, string> {
  return {
    header: 'X-API-KEY',
    example: `curl -X POST ${baseUrl}/x402/first-call -H 'X-API-KEY: ${apiKey}' -H 'Content-Type: application/json' -d '{}'`,
    alternativeHeader: `Authorization: Bearer ${apiKey}`,
  };
}
