// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Bytes} from "@openzeppelin/contracts/utils/Bytes.sol";

/// @title Who decides for a business, and how: three rules, then its members.
/// @dev Packed as `rule of signature_requests (1) | of data_requests (1) | of governance (1) | members`, each member as
/// `flags (1) | address (20)`, the addresses strictly increasing. A rule is 0 for MAJORITY, 1 for UNANIMOUS; bit 0 of
/// the flags is the right to vote, no other bit is used. A charter has only one encoding, so its hash identifies it.
library Charter {
    uint256 internal constant RULES_LENGTH = 3;
    uint256 internal constant MEMBER_LENGTH = 21;
    uint256 internal constant MEMBERS_MAX = 100;
    uint8 internal constant MAJORITY = 0;
    uint8 internal constant UNANIMOUS = 1;

    /// @notice The charter is not of the documented form.
    error CharterMalformed();
    /// @notice The addresses of members must be strictly increasing.
    error MembersUnordered(address member);
    /// @notice Zero and the addresses of precompiles have no key.
    error MemberWithoutKey(address member);
    /// @notice Without a voting member nothing could ever be approved.
    error NoVotingMember();

    /// @dev Reverts unless `charter` is well formed with at least one voting member.
    function check(bytes memory charter) internal pure {
        uint256 count = countOf(charter);
        for (uint256 i = 0; i < RULES_LENGTH; ++i) {
            if (uint8(charter[i]) > UNANIMOUS) revert CharterMalformed();
        }
        address last = address(0xffff);
        for (uint256 i = 0; i < count; ++i) {
            (address member, uint8 flags) = memberAt(charter, i);
            if (flags > 1) revert CharterMalformed();
            if (uint160(member) <= 0xffff) revert MemberWithoutKey(member);
            if (member <= last) revert MembersUnordered(member);
            last = member;
        }
        if (votersOf(charter) == 0) revert NoVotingMember();
    }

    /// @dev The number of members, voting or not. Reverts unless the length is that of 1 to 100 members.
    function countOf(bytes memory charter) internal pure returns (uint256 count) {
        if (charter.length < RULES_LENGTH + MEMBER_LENGTH) revert CharterMalformed();
        count = (charter.length - RULES_LENGTH) / MEMBER_LENGTH;
        if (count > MEMBERS_MAX || charter.length != RULES_LENGTH + count * MEMBER_LENGTH) revert CharterMalformed();
    }

    function votersOf(bytes memory charter) internal pure returns (uint256 voters) {
        uint256 count = countOf(charter);
        for (uint256 i = 0; i < count; ++i) {
            if (charter[RULES_LENGTH + i * MEMBER_LENGTH] == 0x01) ++voters;
        }
    }

    function memberAt(bytes memory charter, uint256 index) internal pure returns (address member, uint8 flags) {
        uint256 start = RULES_LENGTH + index * MEMBER_LENGTH;
        // The word that ends with the member's last byte: flags and address are its lowest 21 bytes. It begins inside
        // the array or its length word, so nothing beyond the array is read.
        uint256 word;
        assembly ("memory-safe") {
            word := mload(add(charter, add(start, 21)))
        }
        member = address(uint160(word));
        flags = uint8(word >> 160);
    }

    /// @dev The index of a member, or the number of members if the address is not one of them.
    function indexOf(bytes memory charter, address member) internal pure returns (uint256 index) {
        uint256 count = countOf(charter);
        while (index < count) {
            (address each,) = memberAt(charter, index);
            if (each == member) return index;
            ++index;
        }
    }

    /// @dev Looks for a voting member from index `from` on. Returns the index after it, or 0 if there is none.
    function indexAfter(bytes memory charter, address voter, uint256 from) internal pure returns (uint256) {
        uint256 count = countOf(charter);
        for (uint256 i = from; i < count; ++i) {
            (address member, uint8 flags) = memberAt(charter, i);
            if (member == voter) return flags == 1 ? i + 1 : 0;
        }
        return 0;
    }

    /// @dev How many of `voters` members have to approve by a rule: more than half, or all.
    function thresholdOf(uint8 rule, uint256 voters) internal pure returns (uint256) {
        return rule == UNANIMOUS ? voters : voters / 2 + 1;
    }

    /// @dev The charter without the member at `index`.
    function without(bytes memory charter, uint256 index) internal pure returns (bytes memory) {
        uint256 cut = RULES_LENGTH + index * MEMBER_LENGTH;
        return bytes.concat(Bytes.slice(charter, 0, cut), Bytes.slice(charter, cut + MEMBER_LENGTH));
    }
}
