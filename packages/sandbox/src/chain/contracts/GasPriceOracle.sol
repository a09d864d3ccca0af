// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// What a transaction pays for its data on layer 1, by the rule of the OP stack's Ecotone upgrade. There is no layer 1
/// behind the sandbox: its prices and weights are fixed figures of the size that Base sees.
contract GasPriceOracle {
    uint256 public constant l1BaseFee = 1 gwei;
    uint256 public constant blobBaseFee = 1 wei;
    uint32 public constant baseFeeScalar = 2_269;
    uint32 public constant blobBaseFeeScalar = 1_055_762;
    uint256 public constant decimals = 6;
    bool public constant isEcotone = true;
    string public constant version = "1.2.0";

    function gasPrice() external view returns (uint256) {
        return block.basefee;
    }

    function baseFee() external view returns (uint256) {
        return block.basefee;
    }

    /// @param data an unsigned transaction, RLP-encoded
    /// @return wei
    function getL1Fee(bytes memory data) external pure returns (uint256) {
        uint256 weighted = 16 * uint256(baseFeeScalar) * l1BaseFee + uint256(blobBaseFeeScalar) * blobBaseFee;
        return getL1GasUsed(data) * weighted / (16 * 10 ** decimals);
    }

    /// Calldata gas, with 68 bytes for the signature that the transaction does not carry yet.
    function getL1GasUsed(bytes memory data) public pure returns (uint256 gas) {
        gas = 68 * 16;
        for (uint256 i = 0; i < data.length; i++) gas += data[i] == 0 ? 4 : 16;
    }
}
