// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface Erc721Receiver {
    function onERC721Received(address operator, address from, uint256 tokenId, bytes calldata data) external returns (bytes4);
}

/// A non-fungible token after ERC-721, with a URI each. Errors are those of ERC-6093, so that clients know them.
/// It has no constructor: its code works wherever it is put.
abstract contract Erc721 {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    /// ERC-4906: what the URI leads to has changed.
    event MetadataUpdate(uint256 _tokenId);

    error ERC721InvalidOwner(address owner);
    error ERC721NonexistentToken(uint256 tokenId);
    error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner);
    error ERC721InvalidReceiver(address receiver);
    error ERC721InsufficientApproval(address operator, uint256 tokenId);
    error ERC721InvalidApprover(address approver);
    error ERC721InvalidOperator(address operator);

    mapping(uint256 tokenId => address) private owners;
    mapping(address owner => uint256) private balances;
    mapping(uint256 tokenId => address) private approvals;
    mapping(address owner => mapping(address operator => bool)) private operators;
    mapping(uint256 tokenId => string) private uris;

    function name() external pure virtual returns (string memory);

    function symbol() external pure virtual returns (string memory);

    function supportsInterface(bytes4 id) external pure returns (bool) {
        // ERC-165, ERC-721, its metadata, ERC-4906
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f || id == 0x49064906;
    }

    function balanceOf(address owner) external view returns (uint256) {
        if (owner == address(0)) revert ERC721InvalidOwner(owner);
        return balances[owner];
    }

    function ownerOf(uint256 tokenId) public view returns (address owner) {
        owner = owners[tokenId];
        if (owner == address(0)) revert ERC721NonexistentToken(tokenId);
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        ownerOf(tokenId);
        return uris[tokenId];
    }

    function getApproved(uint256 tokenId) public view returns (address) {
        ownerOf(tokenId);
        return approvals[tokenId];
    }

    function isApprovedForAll(address owner, address operator) public view returns (bool) {
        return operators[owner][operator];
    }

    function approve(address to, uint256 tokenId) external {
        address owner = ownerOf(tokenId);
        if (msg.sender != owner && !operators[owner][msg.sender]) revert ERC721InvalidApprover(msg.sender);
        approvals[tokenId] = to;
        emit Approval(owner, to, tokenId);
    }

    function setApprovalForAll(address operator, bool approved) external {
        if (operator == address(0)) revert ERC721InvalidOperator(operator);
        operators[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function transferFrom(address from, address to, uint256 tokenId) public {
        if (to == address(0)) revert ERC721InvalidReceiver(to);
        address owner = ownerOf(tokenId);
        if (!mayMove(msg.sender, owner, tokenId)) revert ERC721InsufficientApproval(msg.sender, tokenId);
        if (owner != from) revert ERC721IncorrectOwner(from, tokenId, owner);
        delete approvals[tokenId];
        balances[from] -= 1;
        balances[to] += 1;
        owners[tokenId] = to;
        emit Transfer(from, to, tokenId);
        moved(tokenId);
    }

    function safeTransferFrom(address from, address to, uint256 tokenId) external {
        safeTransferFrom(from, to, tokenId, "");
    }

    function safeTransferFrom(address from, address to, uint256 tokenId, bytes memory data) public {
        transferFrom(from, to, tokenId);
        askReceiver(from, to, tokenId, data);
    }

    function mayMove(address spender, address owner, uint256 tokenId) internal view returns (bool) {
        return spender == owner || operators[owner][spender] || spender == approvals[tokenId];
    }

    function safeMint(address to, uint256 tokenId) internal {
        balances[to] += 1;
        owners[tokenId] = to;
        emit Transfer(address(0), to, tokenId);
        askReceiver(address(0), to, tokenId, "");
    }

    function setUri(uint256 tokenId, string memory uri) internal {
        uris[tokenId] = uri;
        emit MetadataUpdate(tokenId);
    }

    /// Called after a token has got a new owner.
    function moved(uint256 tokenId) internal virtual;

    function askReceiver(address from, address to, uint256 tokenId, bytes memory data) private {
        if (to.code.length == 0) return;
        try Erc721Receiver(to).onERC721Received(msg.sender, from, tokenId, data) returns (bytes4 answer) {
            if (answer != Erc721Receiver.onERC721Received.selector) revert ERC721InvalidReceiver(to);
        } catch {
            revert ERC721InvalidReceiver(to);
        }
    }
}
