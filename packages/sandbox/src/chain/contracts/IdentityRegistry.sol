// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Erc721} from "./Erc721.sol";

interface Erc1271Wallet {
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4);
}

/// The ERC-8004 identity registry of the sandbox chain: the functions, events, ids and revert texts of the registry
/// that lives at this address on real chains, version 2.0.0; without the part by which its owner replaces its code.
contract IdentityRegistry is Erc721 {
    struct MetadataEntry {
        string metadataKey;
        bytes metadataValue;
    }

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event MetadataSet(
        uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue
    );

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant WALLET_TYPE =
        keccak256("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)");
    string private constant WALLET_KEY = "agentWallet";
    uint256 private constant MAX_DEADLINE_DELAY = 5 minutes;
    /// Half the order of secp256k1: of two signatures that recover alike, only the one with the lower s is taken.
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    uint256 private nextId;
    mapping(uint256 agentId => mapping(string key => bytes)) private entries;

    function name() external pure override returns (string memory) {
        return "AgentIdentity";
    }

    function symbol() external pure override returns (string memory) {
        return "AGENT";
    }

    function getVersion() external pure returns (string memory) {
        return "2.0.0";
    }

    function register() external returns (uint256 agentId) {
        agentId = announce("");
        safeMint(msg.sender, agentId);
    }

    function register(string memory agentURI) external returns (uint256 agentId) {
        agentId = announce(agentURI);
        setUri(agentId, agentURI);
        safeMint(msg.sender, agentId);
    }

    function register(string memory agentURI, MetadataEntry[] memory metadata) external returns (uint256 agentId) {
        agentId = announce(agentURI);
        setUri(agentId, agentURI);
        for (uint256 i = 0; i < metadata.length; i++) {
            setFree(agentId, metadata[i].metadataKey, metadata[i].metadataValue);
        }
        safeMint(msg.sender, agentId);
    }

    function setAgentURI(uint256 agentId, string calldata newURI) external {
        onlyAuthorized(agentId);
        setUri(agentId, newURI);
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    function getMetadata(uint256 agentId, string memory metadataKey) external view returns (bytes memory) {
        return entries[agentId][metadataKey];
    }

    function setMetadata(uint256 agentId, string memory metadataKey, bytes memory metadataValue) external {
        onlyAuthorized(agentId);
        setFree(agentId, metadataKey, metadataValue);
    }

    function getAgentWallet(uint256 agentId) external view returns (address) {
        ownerOf(agentId);
        return address(bytes20(entries[agentId][WALLET_KEY]));
    }

    /// @param signature of the new wallet over AgentWalletSet (EIP-712); ERC-1271 when a contract is the wallet
    function setAgentWallet(uint256 agentId, address newWallet, uint256 deadline, bytes calldata signature) external {
        address owner = onlyAuthorized(agentId);
        require(newWallet != address(0), "bad wallet");
        require(block.timestamp <= deadline, "expired");
        require(deadline <= block.timestamp + MAX_DEADLINE_DELAY, "deadline too far");
        bytes32 message = keccak256(abi.encode(WALLET_TYPE, agentId, newWallet, owner, deadline));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", domainSeparator(), message));
        require(isSignedBy(newWallet, digest, signature), "invalid wallet sig");
        set(agentId, WALLET_KEY, abi.encodePacked(newWallet));
    }

    function unsetAgentWallet(uint256 agentId) external {
        onlyAuthorized(agentId);
        set(agentId, WALLET_KEY, "");
    }

    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool) {
        return mayMove(spender, ownerOf(agentId), agentId);
    }

    function eip712Domain()
        external
        view
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        return (
            hex"0f", "ERC8004IdentityRegistry", "1", block.chainid, address(this), bytes32(0), new uint256[](0)
        );
    }

    /// A new owner has not said which wallet is the agent's.
    function moved(uint256 agentId) internal override {
        set(agentId, WALLET_KEY, "");
    }

    function announce(string memory agentURI) private returns (uint256 agentId) {
        agentId = nextId++;
        emit Registered(agentId, agentURI, msg.sender);
        set(agentId, WALLET_KEY, abi.encodePacked(msg.sender));
    }

    function setFree(uint256 agentId, string memory key, bytes memory value) private {
        require(keccak256(bytes(key)) != keccak256(bytes(WALLET_KEY)), "reserved key");
        set(agentId, key, value);
    }

    function set(uint256 agentId, string memory key, bytes memory value) private {
        entries[agentId][key] = value;
        emit MetadataSet(agentId, key, key, value);
    }

    function onlyAuthorized(uint256 agentId) private view returns (address owner) {
        owner = ownerOf(agentId);
        require(mayMove(msg.sender, owner, agentId), "Not authorized");
    }

    function domainSeparator() private view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPE, keccak256("ERC8004IdentityRegistry"), keccak256("1"), block.chainid, address(this)
            )
        );
    }

    function isSignedBy(address wallet, bytes32 digest, bytes calldata signature) private view returns (bool) {
        if (signature.length == 65 && uint256(bytes32(signature[32:64])) <= MAX_S) {
            // An account with delegated code (EIP-7702) signs by its key as well.
            bytes32 r = bytes32(signature[0:32]);
            bytes32 s = bytes32(signature[32:64]);
            if (ecrecover(digest, uint8(signature[64]), r, s) == wallet) return true;
        }
        if (wallet.code.length == 0) return false;
        (bool answered, bytes memory answer) =
            wallet.staticcall(abi.encodeCall(Erc1271Wallet.isValidSignature, (digest, signature)));
        return answered && answer.length >= 32
            && bytes32(answer) == bytes32(Erc1271Wallet.isValidSignature.selector);
    }
}
