/**
 * The texts of answers that our own code writes or checks: amounts, addresses, times, hashes, ids, words of the request given back,
 * and sentences of ours. Any other text must be declared as outsiders' (`outsiderText` in `fields.ts`), or as one of some words, a
 * pattern or a format. Before a name is added here: could somebody outside choose what it says?
 */

/** Names that have this meaning in every answer. */
export const OWN_NAMES: ReadonlySet<string> = new Set(
  `accuracyNote acqDate acqTime address admin agentId agentRegistry agentURI allowance allowanceFormatted amount amountIn
   amountInFormatted amountOut amountOutFormatted amountRaw amount_paid analysisDate apiKey api_key appliesFrom arguments asOf
   assets assumes attribution auditId availableProducts balance balanceRaw baseAddress baseCurrency baseReserve base_url beacon
   buyChain buyExchange cannotSee catalog chain change24h closeTime code codeHash collections completedMilestones complianceFlags
   compositeDate compositeEnd confirmedAt contract contractAddress coverageNote createdAt created_at credits_note curl currency
   currentAllowance currentAllowanceFormatted currentPhase cursor data dataDate dataSource date delegate delete deviceId
   disclaimer docs documentation dominantType downloadUrl dueDate endDate endedAt endpoint estimatedCompletion eventId
   eventTicker example exchange executionPath expiresAt expires_at export exportId factor facts fieldsRead fill firstAt fleetId
   formula from fromAddress fromToken gas geoId holdReason imageUrl implementation indexQuarter inputAmount jurisdiction
   jurisdictions keyId keyPrefix key_id key_prefix l1FeeWei lastAt lastUpdate layer leaseType list listPublishedAt listTitle
   marketCap marketId maxFeePerGas maxFeeWei maxPriorityFeePerGas measurementDate merchantId minOutputAmount minReceived
   missingTerms momentum mostRecentGranuleDate native nativeRaw nativeSymbol nextSteps notCovered notExamined obligations
   observedAt openQuestions operationType outputAmount overallTone overdueMilestones ownerAddress pageChangedOn pairAddress pattern payTo payer
   paymentType paymentUri per pool positiveFactors poweredBy price priorityFeeWei privateKey projectId propertyId publishedAt
   qualityLabel quoteAddress quoteCurrency quoteReserve quoteToken rail rateDate readAt readOn rebalancingSteps receivedAt
   recipient registry requestId requestedModel resolution retrievalQuality risk riskLevel riskReasons rules sanctionsNotes
   selectors sellChain sellExchange sensorType serviceVersion sessionId severity sha256 shows since soldOn spender spenderAddress
   spent startDate startedAt state stationId streamId subjects surveyYears swc thumbnailUrl ticker tileUrl time timeHorizon
   timeframe timestamp to toAddress toToken tokenAddress tokenId totalSupply totalSupplyFormatted transactionHash
   transferTransactionHash txHash typeAtPoint unsignedSerialized upcomingMilestones vehicleId venue verifiedStatement volume24h
   walletAddress walletId walletSecret wallet_address wallet_id window`.split(/\s+/),
);

/** Texts of ours under names that could as well be outsiders' elsewhere, by service. */
export const OWN_TEXTS: Readonly<Record<string, readonly string[]>> = {
  'instant-api-key': ['/payment/token', '/message'],
  'first-call': ['/welcome', '/nextServices/*/id', '/nextServices/*/name'],
  ping: ['/service', '/version', '/echo'],
  'gas-price-oracle': ['/unavailable/*/reason'],
  'solana-yield-finder': ['/topYields/*/id', '/topYields/*/url'],
  'token-price': ['/source'],
  'token-sentiment': ['/signals/*/name', '/signals/*/says'],
  'portfolio-tracker': ['/chains/*/error'],
  'wallet-risk': ['/parts/*/because', '/evidence/*/uid', '/lists/*/title', '/recommendation'],
  'transaction-builder': ['/transaction/value'],
  'payment-processing': ['/transaction/value'],
  'transaction-preflight': [
    '/findings/*/detail',
    '/calls/*/selector',
    '/calls/*/function',
    '/counterparties/*/known',
    '/typedData/form',
    '/coverage/*/why',
  ],
  'contract-scan': ['/vulnerabilities/*/id', '/proxy/kind', '/owner'],
  'instant-agent-wallet': ['/warning'],
  'agent-create-wallet': ['/agentName', '/purpose'],
  'seamless-chain-bridge': ['/transaction/value', '/approval/value', '/template/function'],
  'compliance-consultation': [
    '/applicableRegimes/*/id',
    '/applicableRegimes/*/name',
    '/applicableRegimes/*/citation',
    '/applicableRegimes/*/url',
    '/applicableRegimes/*/trigger',
    '/licences/*/licence',
    '/licences/*/citation',
  ],
  'verified-agent-identity': ['/agentName', '/owner', '/registrationFile'],
  'smart-contract-audit': [
    '/findings/*/id',
    '/findings/*/rule',
    '/source/compiler',
    '/source/packages/*',
    '/classesNotExamined/*/class',
    '/classesNotExamined/*/what',
  ],
  'property-valuation': [
    '/data/comparableInsights',
    '/data/comparablesSource/name',
    '/data/comparablesSource/url',
    '/data/comparablesSource/terms',
  ],
  'lease-analysis': ['/data/steps/*/result', '/data/steps/*/figures', '/data/riskFactors/*/rule'],
  'fraud-detection': [
    '/data/features/*/because',
    '/data/suspiciousPatterns/*/evidence',
    '/data/anomalies/*/type',
    '/data/anomalies/*/description',
    '/data/listMatches/*/uid',
    '/data/recommendation',
  ],
  'credit-risk-score': ['/data/factors/*/because'],
  'compliance-check': [
    '/data/name',
    '/data/checks/*/regulation',
    '/data/checks/*/source',
    '/data/violations/*/uid',
    '/data/nameMatches/*/uid',
    '/data/lists/*/title',
  ],
  'forex-sentiment': ['/data/pair', '/data/parts/*/name', '/data/parts/*/says', '/data/correlations/*/pair'],
  'stock-sentiment': [
    '/data/symbol',
    '/data/parts/*/name',
    '/data/parts/*/says',
    '/data/institutionalActivity/note',
  ],
  'sentiment-analysis': ['/query', '/parts/*/name', '/parts/*/says'],
  'trade-signals': ['/votes/*/because', '/token', '/pair'],
  'trading-signal': ['/technicalIndicators/*/because', '/reasoning', '/pair'],
  'portfolio-optimization': ['/optimizedAllocation/*/asset', '/assumptions/goal'],
  'correlation-matrix': ['/correlationPairs/*/asset1', '/correlationPairs/*/asset2'],
  'risk-metrics': ['/weights/*/asset'],
  'arbitrage-scanner': [
    '/opportunities/*/asset',
    '/quotes/*/asset',
    '/quotes/*/instrument',
    '/unavailable/*/asset',
    '/unavailable/*/reason',
  ],
  'kalshi-markets': ['/markets/*/url'],
  'kalshi-odds': ['/market/url'],
  'kalshi-search': ['/query', '/results/*/url'],
  'polymarket-events': ['/events/*/id', '/events/*/url', '/events/*/markets/*/id'],
  'polymarket-search': ['/query', '/results/*/id', '/results/*/url'],
  'prediction-market-spread': ['/opportunities/*/polymarket/url', '/opportunities/*/kalshi/url'],
  'polymarket-odds': ['/event/id', '/event/url'],
  'prediction-market-odds': ['/topic', '/platforms/*/url'],
  'air-quality': ['/data/quality'],
  vegetation: ['/data/series/*/quality'],
  'vegetation-health': ['/data/series/*/quality'],
  'weather-imagery': ['/data/satellite'],
  'flood-detection': ['/data/quality'],
  'weather-station-data': [
    '/data/readings/temperature/quality',
    '/data/readings/dewpoint/quality',
    '/data/readings/humidity/quality',
    '/data/readings/pressure/quality',
    '/data/readings/windSpeed/quality',
    '/data/readings/windGust/quality',
    '/data/readings/windDirection/quality',
    '/data/readings/visibility/quality',
    '/data/readings/precipitation/quality',
  ],
};
