// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {BusinessCrew, GOVERNANCE, MAJORITY, SIGNATURE, START} from "./BusinessCrew.sol";
import {assertEq, vm} from "./Vm.sol";

/// Members sign, change, lose and remove each other at random; a plain record says what must hold.
contract BusinessActor is BusinessCrew {
    uint256 public constant PEOPLE = 5;

    IBusinessWallet public immutable WALLET;
    uint256[] private _keys = _crew(PEOPLE);
    /// Bit i: person i is a member; and may vote.
    uint256 private _members = 7;
    uint256 private _voters = 7;
    uint8 private _rule = MAJORITY;
    uint48 private _time = START;
    bytes32[] public recorded;
    /// Approvals of the epoch before, kept to be tried again.
    bytes private _old;
    bytes32 private _oldHash;

    constructor() {
        WALLET = IBusinessWallet(_factory.create(_present(), bytes32("actor")));
    }

    function record(uint256 seed) external {
        bytes32 hash = keccak256(abi.encode("hash", seed));
        if (WALLET.recordedAt(hash) != 0) return;
        WALLET.record(
            hash, _time, _approvalsOf(_voters, _needed(), _digest(WALLET, SIGNATURE, hash, WALLET.epoch(), _time))
        );
        recorded.push(hash);
    }

    function change(uint256 seed) external {
        uint256 next = 1 + seed % (2 ** PEOPLE - 1);
        uint256 votes = next & (seed >> 8);
        if (votes == 0) votes = next;
        uint8 rule = uint8((seed >> 16) & 1);
        _oldHash = keccak256(abi.encode("old", seed));
        _old = _approvalsOf(_voters, _needed(), _digest(WALLET, SIGNATURE, _oldHash, WALLET.epoch(), type(uint48).max));
        uint256 needed = (_rule | rule) == MAJORITY ? _count(_voters) / 2 + 1 : _count(_voters);
        uint256 before = _voters;
        (_members, _voters, _rule) = (next, votes, rule);
        bytes memory charter = _present();
        bytes32 hash = _governance("changeCharter(bytes)", abi.encode(charter), WALLET.nonce());
        bytes32 digest = _digest(WALLET, GOVERNANCE, hash, WALLET.epoch(), _time);
        WALLET.changeCharter(charter, _time, _approvalsOf(before, needed, digest));
    }

    function lose(uint256 seed) external {
        uint256 person = seed % PEOPLE;
        (address open,,) = WALLET.removal();
        address member = vm.addr(_keys[person]);
        bool isMember = (_members >> person) & 1 == 1;
        if (open != address(0) || !isMember || _count(_voters) < 2 || WALLET.protectedUntil(member) > _time) return;
        uint256 others = _voters & ~(1 << person);
        bytes32 hash = _governance("startRemoval(address)", abi.encode(member), WALLET.nonce());
        bytes32 digest = _digest(WALLET, GOVERNANCE, hash, WALLET.epoch(), _time);
        WALLET.startRemoval(member, _time, _approvalsOf(others, _count(others) / 2 + 1, digest));
    }

    function finish() external {
        (address open, uint48 endsAt,) = WALLET.removal();
        if (open == address(0) || _time < endsAt) return;
        uint256 left = _members;
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if (vm.addr(_keys[i]) == open) left &= ~(1 << i);
        }
        if (_voters & left == 0) return;
        WALLET.finishRemoval();
        (_members, _voters) = (left, _voters & left);
    }

    function wait_(uint32 seconds_) external {
        _time += seconds_ % 40 days;
        vm.warp(_time);
    }

    function recordedCount() external view returns (uint256) {
        return recorded.length;
    }

    function present() external view returns (bytes memory) {
        return _present();
    }

    /// Approvals of an earlier epoch, which nothing may take.
    function stale() external view returns (bytes32, bytes memory) {
        return (_oldHash, _old);
    }

    /// What looks like enough approvals of this epoch and is not: one voter as often as needed, and one signer among
    /// them who may not vote. Empty where there can be none.
    function forged(bytes32 hash) external view returns (bytes memory doubled, bytes memory silent) {
        uint256 needed = _needed();
        bytes32 digest = _digest(WALLET, SIGNATURE, hash, WALLET.epoch(), type(uint48).max);
        uint256 first = _voters & (~_voters + 1);
        for (uint256 i = 0; needed > 1 && i < needed; ++i) {
            doubled = bytes.concat(doubled, _approvalsOf(first, 1, digest));
        }
        uint256 others = (2 ** PEOPLE - 1) & ~_voters;
        if (others == 0) return (doubled, "");
        uint256 signers = others & (~others + 1);
        uint256 left = needed - 1;
        for (uint256 i = 0; i < PEOPLE && left > 0; ++i) {
            if ((_voters >> i) & 1 == 0) continue;
            signers |= 1 << i;
            --left;
        }
        silent = _approvalsOf(signers, needed, digest);
    }

    function votersCount() external view returns (uint256) {
        return _count(_voters);
    }

    function _needed() private view returns (uint256) {
        return _rule == MAJORITY ? _count(_voters) / 2 + 1 : _count(_voters);
    }

    function _count(uint256 people) private pure returns (uint256 count) {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            count += (people >> i) & 1;
        }
    }

    function _approvalsOf(uint256 people, uint256 count, bytes32 digest) private view returns (bytes memory all) {
        for (uint256 i = 0; i < PEOPLE && count > 0; ++i) {
            if ((people >> i) & 1 == 0) continue;
            all = bytes.concat(all, _sign(_keys[i], digest));
            --count;
        }
    }

    function _present() private view returns (bytes memory charter) {
        charter = abi.encodePacked(_rule, _rule, _rule);
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if ((_members >> i) & 1 == 0) continue;
            charter = abi.encodePacked(charter, uint8((_voters >> i) & 1), vm.addr(_keys[i]));
        }
    }
}

contract BusinessWalletInvariants {
    BusinessActor private _actor = new BusinessActor();

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_actor);
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_whatWasSignedStaysSigned() external view {
        IBusinessWallet wallet = _actor.WALLET();
        for (uint256 i = 0; i < _actor.recordedCount(); ++i) {
            bytes32 hash = _actor.recorded(i);
            assert(wallet.isValidSignature(hash, abi.encodePacked(uint8(1), hash)) == 0x1626ba7e);
        }
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_theCharterIsWhatWasDecided() external view {
        assertEq(keccak256(_actor.WALLET().charter()), keccak256(_actor.present()));
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_noApprovalSurvivesItsEpoch() external {
        (bytes32 hash, bytes memory approvals) = _actor.stale();
        if (approvals.length == 0) return;
        try _actor.WALLET().record(hash, type(uint48).max, approvals) {
            assert(false);
        } catch {}
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_onlyDistinctVotersCount() external {
        bytes32 hash = keccak256("forged");
        (bytes memory doubled, bytes memory silent) = _actor.forged(hash);
        if (doubled.length > 0) _refuse(hash, doubled, IBusinessWallet.ApprovalRefused.selector);
        if (silent.length > 0) _refuse(hash, silent, IBusinessWallet.ApprovalRefused.selector);
    }

    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_theThresholdIsFromOneToAllVoters() external {
        bytes memory reason = _refuse(keccak256("none"), "", IBusinessWallet.ApprovalsMiscounted.selector);
        uint256 needed;
        assembly ("memory-safe") {
            needed := mload(add(reason, 0x24))
        }
        assert(needed > 0 && needed <= _actor.votersCount());
    }

    function _refuse(bytes32 hash, bytes memory approvals, bytes4 why) private returns (bytes memory) {
        try _actor.WALLET().record(hash, type(uint48).max, approvals) {
            assert(false);
        } catch (bytes memory reason) {
            assert(bytes4(reason) == why);
            return reason;
        }
        return "";
    }
}
