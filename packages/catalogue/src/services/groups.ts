/** The groups in which buyers look for services, in the order of the catalog: by what is wanted, not by where it comes from. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Markets: [
    ...[
      'token-price',
      'token-metadata',
      'token-sentiment',
      'trending-tokens',
      'batch-quote',
      'dex-liquidity',
    ],
    ...['solana-yield-finder', 'forex-sentiment', 'stock-sentiment', 'sentiment-analysis', 'trade-signals'],
    ...[
      'trading-signal',
      'portfolio-optimization',
      'correlation-matrix',
      'risk-metrics',
      'arbitrage-scanner',
    ],
  ],
  'Chains & wallets': [
    ...['gas-price-oracle', 'approval-manager', 'whale-alerts', 'multi-chain-balance', 'portfolio-tracker'],
    ...[
      'wallet-risk',
      'transaction-preflight',
      'transaction-builder',
      'payment-processing',
      'contract-scan',
      'instant-agent-wallet',
    ],
    ...['agent-create-wallet', 'seamless-chain-bridge', 'verified-agent-identity', 'smart-contract-audit'],
  ],
  'Earth & weather': [
    ...['air-quality', 'fire-alerts', 'land-use', 'vegetation', 'vegetation-health', 'weather-imagery'],
    ...['earthdata-granules', 'earthdata-ocean-color', 'earthdata-precipitation', 'earthdata-soil-moisture'],
    ...['earthdata-sst', 'flood-detection', 'satellite-earthdata', 'weather-station-data'],
  ],
  Predictions: [
    ...['kalshi-markets', 'kalshi-odds', 'kalshi-search', 'polymarket-events', 'polymarket-search'],
    ...['prediction-market-spread', 'polymarket-odds', 'prediction-market-odds'],
  ],
  'Risk, law & property': [
    ...['compliance-check', 'compliance-consultation', 'credit-risk-score', 'fraud-detection'],
    ...['property-valuation', 'lease-analysis', 'construction-progress'],
  ],
  Devices: ['iot-sensor-reading', 'iot-device-stream', 'iot-bulk-data', 'fleet-telematics'],
  AI: ['ai-inference'],
  'Try a payment': ['first-call', 'ping', 'instant-api-key'],
};
