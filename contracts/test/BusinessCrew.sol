// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BusinessFactory} from "../src/BusinessFactory.sol";
import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {vm} from "./Vm.sol";

uint8 constant MAJORITY = 0;
uint8 constant UNANIMOUS = 1;
uint8 constant SIGNATURE = 1;
uint8 constant GOVERNANCE = 3;
uint48 constant START = 1_800_000_000;
uint48 constant UNTIL = START + 1 hours;

/// People with keys, sorted by address, and their signatures. Written from the documentation alone: nothing here is
/// taken from the contract.
contract BusinessCrew {
    BusinessFactory internal _factory = new BusinessFactory(keccak256("test"));

    constructor() {
        vm.warp(START);
    }

    /// Keys of `count` members, sorted by address.
    function _crew(uint256 count) internal pure returns (uint256[] memory keys) {
        keys = new uint256[](count);
        address[] memory members = new address[](count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 key = uint256(keccak256(abi.encode("member", i)));
            address member = vm.addr(key);
            uint256 place = i;
            while (place > 0 && members[place - 1] > member) {
                (keys[place], members[place]) = (keys[place - 1], members[place - 1]);
                --place;
            }
            (keys[place], members[place]) = (key, member);
        }
    }

    /// @param voters bit i is the right to vote of member i
    function _charter(uint8[3] memory rules, uint256[] memory keys, uint256 voters)
        internal
        pure
        returns (bytes memory charter)
    {
        charter = abi.encodePacked(rules[0], rules[1], rules[2]);
        for (uint256 i = 0; i < keys.length; ++i) {
            charter = abi.encodePacked(charter, uint8((voters >> i) & 1), vm.addr(keys[i]));
        }
    }

    /// A wallet of `count` voting members, every rule the same.
    function _found(uint256 count, uint8 rule) internal returns (IBusinessWallet) {
        return IBusinessWallet(
            _factory.create(_charter([rule, rule, rule], _crew(count), type(uint256).max), bytes32("salt"))
        );
    }

    function _digest(IBusinessWallet wallet, uint8 category, bytes32 hash, uint64 epoch, uint48 validUntil)
        internal
        view
        returns (bytes32)
    {
        bytes32 approval = keccak256(
            abi.encode(
                keccak256("BusinessApproval(uint8 category,bytes32 hash,uint64 epoch,uint48 validUntil)"),
                category,
                hash,
                epoch,
                validUntil
            )
        );
        return _inDomain(wallet, approval);
    }

    function _inDomain(IBusinessWallet wallet, bytes32 structHash) internal view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(uint256 chainId,address verifyingContract)"), block.chainid, address(wallet)
            )
        );
        return keccak256(abi.encodePacked(bytes2(0x1901), domain, structHash));
    }

    function _governance(string memory operation, bytes memory arguments, uint256 nonce)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(
                keccak256("Governance(bytes32 operation,bytes32 arguments,uint256 nonce)"),
                keccak256(bytes(operation)),
                keccak256(arguments),
                nonce
            )
        );
    }

    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// Signatures by `count` keys, beginning with that at index `from`.
    function _signAll(uint256[] memory keys, uint256 from, uint256 count, bytes32 digest)
        internal
        pure
        returns (bytes memory all)
    {
        for (uint256 i = from; i < from + count; ++i) {
            all = bytes.concat(all, _sign(keys[i], digest));
        }
    }

    /// Approvals of category 1 in the wallet's present epoch.
    function _approve(IBusinessWallet wallet, uint256[] memory keys, uint256 count, bytes32 hash)
        internal
        view
        returns (bytes memory)
    {
        return _signAll(keys, 0, count, _digest(wallet, SIGNATURE, hash, wallet.epoch(), UNTIL));
    }

    /// Approvals of category 3 in the wallet's present epoch and nonce.
    function _decide(IBusinessWallet wallet, uint256[] memory signers, string memory operation, bytes memory arguments)
        internal
        view
        returns (bytes memory)
    {
        bytes32 hash = _governance(operation, arguments, wallet.nonce());
        return _signAll(signers, 0, signers.length, _digest(wallet, GOVERNANCE, hash, wallet.epoch(), UNTIL));
    }

    function _some(uint256[] memory keys, uint256 from, uint256 count) internal pure returns (uint256[] memory some) {
        some = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            some[i] = keys[from + i];
        }
    }

    function _keep(IBusinessWallet wallet, uint256 key) internal view returns (bytes memory) {
        (,, uint48 nonce) = wallet.removal();
        return _sign(key, _inDomain(wallet, keccak256(abi.encode(keccak256("Keep(uint256 nonce)"), uint256(nonce)))));
    }
}
