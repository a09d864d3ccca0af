// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// What the sandbox's chain has of others' code: `npm run sandbox:build-chain` compiles it, and puts it where Base has it.
import {AaveOracle} from "aave-v3/misc/AaveOracle.sol";
import {AaveProtocolDataProvider} from "aave-v3/helpers/AaveProtocolDataProvider.sol";
import {ACLManager} from "aave-v3/protocol/configuration/ACLManager.sol";
import {ATokenInstance} from "aave-v3/instances/ATokenInstance.sol";
import {DefaultReserveInterestRateStrategyV2} from "aave-v3/misc/DefaultReserveInterestRateStrategyV2.sol";
import {PoolAddressesProvider} from "aave-v3/protocol/configuration/PoolAddressesProvider.sol";
import {PoolConfiguratorInstance} from "aave-v3/instances/PoolConfiguratorInstance.sol";
import {PoolInstance} from "aave-v3/instances/PoolInstance.sol";
import {VariableDebtTokenInstance} from "aave-v3/instances/VariableDebtTokenInstance.sol";
import {AdaptiveCurveIrm} from "morpho-irm/AdaptiveCurveIrm.sol";
import {MetaMorpho} from "metamorpho/MetaMorpho.sol";
import {Morpho} from "morpho-blue/Morpho.sol";
