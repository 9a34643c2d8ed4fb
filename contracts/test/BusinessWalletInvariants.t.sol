// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {BusinessCrew, GOVERNANCE, MAJORITY, SIGNATURE, START} from "./BusinessCrew.sol";
import {assertEq, vm} from "./Vm.sol";

/// Random acts of a wallet: members sign, withdraw, change the charter, remove each other and repeat earlier calls. The
/// actor keeps its own record of the state that must result.
contract BusinessActor is BusinessCrew {
    uint256 public constant PEOPLE = 5;

    IBusinessWallet public immutable WALLET;
    uint256[] private _keys = _crew(PEOPLE);
    address[] public persons;
    /// Bit i of each: whether person i is a member, and whether it may vote.
    uint256 private _members = 7;
    uint256 private _voters = 7;
    uint8 private _rule = MAJORITY;
    uint48 private _time = START;
    uint64 public epoch;
    uint256 public nonce;
    /// The member under removal; the address zero if there is none.
    address public removing;
    uint48 public removingEndsAt;
    uint256 public removingNonce;
    mapping(address member => uint48) public protectedUntil;
    bytes32[] public recorded;
    /// Zero once it was withdrawn.
    mapping(bytes32 hash => uint48) public recordedAt;
    /// Every call with approvals that succeeded.
    bytes[] private _taken;
    /// Approvals of the previous epoch, kept to be tried again.
    bytes private _old;
    bytes32 private _oldHash;

    constructor() {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            persons.push(vm.addr(_keys[i]));
        }
        WALLET = IBusinessWallet(_factory.create(_present(), bytes32("actor")));
    }

    function record(uint256 seed) external {
        bytes32 hash = keccak256(abi.encode("hash", recorded.length));
        uint256 signers = _someOf(_voters, _needed(_rule, _voters), seed);
        bytes memory approvals = _approvalsOf(signers, _digest(WALLET, SIGNATURE, hash, epoch, _time));
        _take(abi.encodeCall(IBusinessWallet.record, (hash, _time, approvals)));
        _noteAnswer(signers);
        recorded.push(hash);
        recordedAt[hash] = _time;
    }

    function withdraw(uint256 seed) external {
        if (recorded.length == 0) return;
        bytes32 hash = recorded[seed % recorded.length];
        if (recordedAt[hash] == 0) return;
        uint256 signers = _someOf(_voters, _needed(_rule, _voters), seed);
        bytes memory approvals = _govern(signers, "withdraw(bytes32)", abi.encode(hash));
        _take(abi.encodeCall(IBusinessWallet.withdraw, (hash, _time, approvals)));
        _noteAnswer(signers);
        recordedAt[hash] = 0;
        ++nonce;
    }

    function change(uint256 seed) external {
        uint256 next = 1 + seed % (2 ** PEOPLE - 1);
        uint256 votes = next & (seed >> 8);
        if (votes == 0) votes = next;
        uint8 rule = uint8((seed >> 16) & 1);
        _oldHash = keccak256(abi.encode("old", seed));
        uint256 enough = _someOf(_voters, _needed(_rule, _voters), seed);
        _old = _approvalsOf(enough, _digest(WALLET, SIGNATURE, _oldHash, epoch, type(uint48).max));
        uint256 signers = _someOf(_voters, _needed(_rule | rule, _voters), seed);
        (_members, _voters, _rule) = (next, votes, rule);
        bytes memory charter = _present();
        bytes memory approvals = _govern(signers, "changeCharter(bytes)", abi.encode(charter));
        _take(abi.encodeCall(IBusinessWallet.changeCharter, (charter, _time, approvals)));
        _noteAnswer(signers);
        if (_members & _maskOf(removing) == 0) removing = address(0);
        ++nonce;
        ++epoch;
    }

    function lose(uint256 seed) external {
        uint256 person = seed % PEOPLE;
        address member = persons[person];
        bool isMember = (_members >> person) & 1 == 1;
        if (removing != address(0) || !isMember || _count(_voters) < 2 || protectedUntil[member] > _time) return;
        uint256 others = _voters & ~(1 << person);
        uint256 signers = _someOf(others, _needed(MAJORITY, others), seed);
        bytes memory approvals = _govern(signers, "startRemoval(address)", abi.encode(member));
        _take(abi.encodeCall(IBusinessWallet.startRemoval, (member, _time, approvals)));
        (removing, removingEndsAt, removingNonce) = (member, _time + 30 days, nonce);
        ++nonce;
    }

    function keep() external {
        if (removing == address(0)) return;
        uint256 member = _maskOf(removing);
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if (member == 1 << i) _take(abi.encodeCall(IBusinessWallet.keep, (_keep(WALLET, _keys[i]))));
        }
        _noteAnswer(member);
    }

    function finish() external {
        uint256 left = _members & ~_maskOf(removing);
        if (removing == address(0) || _time < removingEndsAt || _voters & left == 0) return;
        WALLET.finishRemoval();
        (_members, _voters, removing) = (left, _voters & left, address(0));
        ++nonce;
        ++epoch;
    }

    /// A call that succeeded does not succeed again, however much has changed since.
    function again(uint256 seed) external {
        if (_taken.length == 0) return;
        (bool isTaken,) = address(WALLET).call(_taken[seed % _taken.length]);
        assert(!isTaken);
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

    /// Approvals of an earlier epoch, which must be refused.
    function stale() external view returns (bytes32, bytes memory) {
        return (_oldHash, _old);
    }

    /// As many approvals of this epoch as needed, but invalid: `doubled` all by one voter, `silent` with one by
    /// somebody who may not vote. Empty if there can be none.
    function forged(bytes32 hash) external view returns (bytes memory doubled, bytes memory silent) {
        uint256 needed = _needed(_rule, _voters);
        bytes32 digest = _digest(WALLET, SIGNATURE, hash, WALLET.epoch(), type(uint48).max);
        uint256 first = _voters & (~_voters + 1);
        for (uint256 i = 0; needed > 1 && i < needed; ++i) {
            doubled = bytes.concat(doubled, _approvalsOf(first, digest));
        }
        uint256 others = (2 ** PEOPLE - 1) & ~_voters;
        if (others == 0) return (doubled, "");
        uint256 signers = (others & (~others + 1)) | _someOf(_voters, needed - 1, 0);
        silent = _approvalsOf(signers, digest);
    }

    function votersCount() external view returns (uint256) {
        return _count(_voters);
    }

    function _take(bytes memory data) private {
        (bool isTaken,) = address(WALLET).call(data);
        assert(isTaken);
        _taken.push(data);
    }

    function _govern(uint256 signers, string memory operation, bytes memory arguments)
        private
        view
        returns (bytes memory)
    {
        return
            _approvalsOf(signers, _digest(WALLET, GOVERNANCE, _governance(operation, arguments, nonce), epoch, _time));
    }

    /// An approval by the member under removal ends the removal.
    function _noteAnswer(uint256 signers) private {
        if (signers & _maskOf(removing) == 0) return;
        protectedUntil[removing] = _time + 90 days;
        removing = address(0);
    }

    function _maskOf(address person) private view returns (uint256) {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if (persons[i] == person) return 1 << i;
        }
        return 0;
    }

    function _needed(uint8 rule, uint256 voters) private pure returns (uint256) {
        return rule == MAJORITY ? _count(voters) / 2 + 1 : _count(voters);
    }

    function _count(uint256 people) private pure returns (uint256 count) {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            count += (people >> i) & 1;
        }
    }

    /// `count` of these people, chosen by the seed.
    function _someOf(uint256 people, uint256 count, uint256 seed) private pure returns (uint256 some) {
        for (uint256 i = 0; i < PEOPLE && count > 0; ++i) {
            uint256 person = 1 << ((seed % PEOPLE + i) % PEOPLE);
            if (people & person == 0) continue;
            some |= person;
            --count;
        }
    }

    /// Approvals of all these people, sorted by address.
    function _approvalsOf(uint256 people, bytes32 digest) private view returns (bytes memory all) {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if ((people >> i) & 1 == 1) all = bytes.concat(all, _sign(_keys[i], digest));
        }
    }

    function _present() private view returns (bytes memory charter) {
        charter = abi.encodePacked(_rule, _rule, _rule);
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if ((_members >> i) & 1 == 0) continue;
            charter = abi.encodePacked(charter, uint8((_voters >> i) & 1), persons[i]);
        }
    }
}

contract BusinessWalletInvariants {
    BusinessActor private _actor = new BusinessActor();

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_actor);
    }

    /// Checked after every act. One function for all invariants: each of several would run the same calls from one
    /// seed.
    /// forge-config: default.invariant.fail-on-revert = true
    function invariant_nothingCountsButWhatWasDecided() external {
        _whatWasSignedStaysSignedUntilItIsTakenBack();
        _theWalletIsWhatWasDecided();
        _noApprovalSurvivesItsEpoch();
        _onlyDistinctVotersCount();
        _theThresholdIsFromOneToAllVoters();
    }

    function _whatWasSignedStaysSignedUntilItIsTakenBack() private view {
        IBusinessWallet wallet = _actor.WALLET();
        for (uint256 i = 0; i < _actor.recordedCount(); ++i) {
            bytes32 hash = _actor.recorded(i);
            uint48 signedAt = _actor.recordedAt(hash);
            assertEq(wallet.recordedAt(hash), signedAt);
            bool isSigned = wallet.isValidSignature(hash, abi.encodePacked(uint8(1), hash)) == 0x1626ba7e;
            assert(isSigned == (signedAt != 0));
        }
    }

    function _theWalletIsWhatWasDecided() private view {
        IBusinessWallet wallet = _actor.WALLET();
        assertEq(keccak256(wallet.charter()), keccak256(_actor.present()));
        assertEq(wallet.epoch(), _actor.epoch());
        assertEq(wallet.nonce(), _actor.nonce());
        (address member, uint48 endsAt, uint48 keepNonce) = wallet.removal();
        assertEq(member, _actor.removing());
        if (member != address(0)) {
            assertEq(endsAt, _actor.removingEndsAt());
            assertEq(keepNonce, _actor.removingNonce());
        }
        for (uint256 i = 0; i < _actor.PEOPLE(); ++i) {
            address person = _actor.persons(i);
            assertEq(wallet.protectedUntil(person), _actor.protectedUntil(person));
        }
    }

    function _noApprovalSurvivesItsEpoch() private {
        (bytes32 hash, bytes memory approvals) = _actor.stale();
        if (approvals.length == 0) return;
        try _actor.WALLET().record(hash, type(uint48).max, approvals) {
            assert(false);
        } catch {}
    }

    function _onlyDistinctVotersCount() private {
        bytes32 hash = keccak256("forged");
        (bytes memory doubled, bytes memory silent) = _actor.forged(hash);
        if (doubled.length > 0) _refuse(hash, doubled, IBusinessWallet.ApprovalRefused.selector);
        if (silent.length > 0) _refuse(hash, silent, IBusinessWallet.ApprovalRefused.selector);
    }

    function _theThresholdIsFromOneToAllVoters() private {
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
