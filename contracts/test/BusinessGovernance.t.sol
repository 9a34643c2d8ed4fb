// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {Charter} from "../src/libraries/Charter.sol";
import {BusinessCrew, GOVERNANCE, MAJORITY, START, UNANIMOUS, UNTIL} from "./BusinessCrew.sol";
import {assertEq, vm} from "./Vm.sol";

contract BusinessGovernanceTest is BusinessCrew {
    bytes32 private constant _HASH = keccak256("terms");
    string private constant _CHANGE = "changeCharter(bytes)";
    string private constant _REMOVE = "startRemoval(address)";

    function test_aChangeOfMembersVoidsOpenApprovals() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        uint256[] memory keys = _crew(4);
        keys = _crew(3);
        bytes memory open = _approve(wallet, keys, 2, _HASH);
        bytes memory next = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 3);
        bytes memory decision = _decide(wallet, _some(keys, 0, 2), _CHANGE, abi.encode(next));
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.CharterChanged(keccak256(next), 1);
        wallet.changeCharter(next, UNTIL, decision);
        assertEq(keccak256(wallet.charter()), keccak256(next));
        assertEq(wallet.epoch(), 1);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0));
        wallet.record(_HASH, UNTIL, open);
        // The decision cannot be executed twice.
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0));
        wallet.changeCharter(next, UNTIL, decision);
        wallet.record(_HASH, UNTIL, _approve(wallet, keys, 2, _HASH));
    }

    function test_theStricterOfTheOldAndTheNewRuleOfGovernanceDecides() external {
        uint256[] memory keys = _crew(3);
        IBusinessWallet strict = _found(3, UNANIMOUS);
        IBusinessWallet loose = _found(3, MAJORITY);
        bytes memory majority = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 7);
        bytes memory unanimous = _charter([MAJORITY, MAJORITY, UNANIMOUS], keys, 7);
        _refuseTwoOfThree(strict, majority);
        _refuseTwoOfThree(loose, unanimous);
        strict.changeCharter(majority, UNTIL, _decide(strict, keys, _CHANGE, abi.encode(majority)));
        loose.changeCharter(unanimous, UNTIL, _decide(loose, keys, _CHANGE, abi.encode(unanimous)));
        _refuseTwoOfThree(loose, majority);
    }

    function test_aCharterThatNobodyCouldUseIsRefused() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        bytes memory own = abi.encodePacked(uint24(0), uint8(1), address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Charter.MemberWithoutKey.selector, address(wallet)));
        wallet.changeCharter(own, UNTIL, "");
        bytes memory silent = abi.encodePacked(uint24(0), uint8(0), vm.addr(1));
        vm.expectRevert(abi.encodeWithSelector(Charter.NoVotingMember.selector));
        wallet.changeCharter(silent, UNTIL, "");
    }

    /// forge-config: default.fuzz.runs = 32
    function testFuzz_chartersOfAnySizeFollowEachOther(uint8 first, uint8 second) external {
        (uint256 a, uint256 b) = (1 + first % 25, 1 + second % 25);
        IBusinessWallet wallet = _found(a, UNANIMOUS);
        bytes memory next = _charter([UNANIMOUS, UNANIMOUS, UNANIMOUS], _crew(b), type(uint256).max);
        wallet.changeCharter(next, UNTIL, _decide(wallet, _crew(a), _CHANGE, abi.encode(next)));
        bytes memory back = _charter([UNANIMOUS, UNANIMOUS, UNANIMOUS], _crew(a), type(uint256).max);
        wallet.changeCharter(back, UNTIL, _decide(wallet, _crew(b), _CHANGE, abi.encode(back)));
        assertEq(keccak256(wallet.charter()), keccak256(back));
        assertEq(wallet.epoch(), 2);
    }

    function test_whatIsTakenBackStaysTakenBack() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        uint256[] memory keys = _crew(3);
        bytes memory approvals = _approve(wallet, keys, 2, _HASH);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.NotRecorded.selector, _HASH));
        wallet.withdraw(_HASH, UNTIL, "");
        wallet.record(_HASH, UNTIL, approvals);
        bytes memory decision = _decide(wallet, _some(keys, 0, 2), "withdraw(bytes32)", abi.encode(_HASH));
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.Withdrawn(_HASH);
        wallet.withdraw(_HASH, UNTIL, decision);
        assertEq(wallet.recordedAt(_HASH), 0);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), _HASH)) != 0x1626ba7e);
        // The approvals are still valid and of the present epoch, but do not record the hash again.
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.AlreadyRecorded.selector, _HASH));
        wallet.record(_HASH, UNTIL, approvals);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.NotRecorded.selector, _HASH));
        wallet.withdraw(_HASH, UNTIL, decision);
    }

    function test_onlyGovernanceTakesASignatureBack() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        uint256[] memory keys = _some(_crew(3), 0, 2);
        bytes memory document = _approve(wallet, keys, 2, _HASH);
        wallet.record(_HASH, UNTIL, document);
        string memory take = "withdraw(bytes32)";
        bytes memory alone = _decide(wallet, _some(keys, 0, 1), take, abi.encode(_HASH));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalsMiscounted.selector, 2));
        wallet.withdraw(_HASH, UNTIL, alone);
        // Not the approvals that signed the document, nor a decision about another one or of another kind.
        bytes memory refused = abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0);
        vm.expectRevert(refused);
        wallet.withdraw(_HASH, UNTIL, document);
        bytes memory other = _decide(wallet, keys, take, abi.encode(keccak256("other")));
        vm.expectRevert(refused);
        wallet.withdraw(_HASH, UNTIL, other);
        bytes memory move = _decide(wallet, keys, "moveTo(address)", abi.encode(_HASH));
        vm.expectRevert(refused);
        wallet.withdraw(_HASH, UNTIL, move);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), _HASH)) == 0x1626ba7e);
    }

    function test_eachActOfGovernanceCountsOnce() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        assertEq(wallet.nonce(), 1);
        wallet.record(_HASH, UNTIL, _approve(wallet, keys, 2, _HASH));
        assertEq(wallet.nonce(), 1);
        wallet.withdraw(_HASH, UNTIL, _decide(wallet, _some(keys, 0, 2), "withdraw(bytes32)", abi.encode(_HASH)));
        assertEq(wallet.nonce(), 2);
        vm.warp(START + 30 days);
        wallet.finishRemoval();
        assertEq(wallet.nonce(), 3);
        assertEq(wallet.epoch(), 1);
    }

    function test_aWalletThatMovedApprovesNothingMoreAndTakesBackStill() external {
        IBusinessWallet wallet = _found(1, MAJORITY);
        uint256[] memory keys = _crew(1);
        wallet.record(_HASH, UNTIL, _approve(wallet, keys, 1, _HASH));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.SuccessorRefused.selector, address(0)));
        wallet.moveTo(address(0), UNTIL, "");
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.SuccessorRefused.selector, address(wallet)));
        wallet.moveTo(address(wallet), UNTIL, "");
        bytes memory decision = _decide(wallet, keys, "moveTo(address)", abi.encode(address(0xbeef)));
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.Moved(address(0xbeef));
        wallet.moveTo(address(0xbeef), UNTIL, decision);
        bytes memory moved = abi.encodeWithSelector(IBusinessWallet.WalletMoved.selector, address(0xbeef));
        vm.expectRevert(moved);
        wallet.record(keccak256("other"), UNTIL, "");
        vm.expectRevert(moved);
        wallet.moveTo(address(0xbeef), UNTIL, decision);
        assert(wallet.isValidSignature(_HASH, abi.encodePacked(uint8(1), _HASH)) == 0x1626ba7e);
        wallet.withdraw(_HASH, UNTIL, _decide(wallet, keys, "withdraw(bytes32)", abi.encode(_HASH)));
    }

    function test_aMemberWhoStaysSilentForThirtyDaysIsRemoved() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(4, 3, 2);
        (address member, uint48 endsAt, uint48 nonce) = wallet.removal();
        assertEq(member, vm.addr(keys[3]));
        assertEq(endsAt, START + 30 days);
        assertEq(nonce, 0);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.RemovalTooEarly.selector, endsAt));
        wallet.finishRemoval();
        vm.warp(endsAt);
        wallet.finishRemoval();
        bytes memory left = _charter([MAJORITY, MAJORITY, MAJORITY], _some(keys, 0, 3), 7);
        assertEq(keccak256(wallet.charter()), keccak256(left));
        assertEq(wallet.epoch(), 1);
        (member, endsAt, nonce) = wallet.removal();
        assertEq(member, address(0));
        assertEq(uint256(endsAt) + nonce, 0);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.NoRemoval.selector));
        wallet.finishRemoval();
    }

    function test_aMemberWhoAnswersStaysAndIsSafeForNinetyDays() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(4, 3, 2);
        address member = vm.addr(keys[3]);
        bytes memory foreign = _keep(wallet, keys[0]);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.KeepRefused.selector));
        wallet.keep(foreign);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.KeepRefused.selector));
        wallet.keep("");
        bytes memory answer = _keep(wallet, keys[3]);
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.RemovalEnded(member, START + 90 days);
        wallet.keep(answer);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.NoRemoval.selector));
        wallet.keep(answer);
        bytes memory again = _decide(wallet, _some(keys, 0, 2), _REMOVE, abi.encode(member));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.MemberProtected.selector, member, START + 90 days));
        wallet.startRemoval(member, UNTIL, again);
        // An answer is for one removal only.
        vm.warp(START + 90 days);
        bytes32 hash = _governance(_REMOVE, abi.encode(member), wallet.nonce());
        bytes32 digest = _digest(wallet, GOVERNANCE, hash, 0, START + 91 days);
        wallet.startRemoval(member, START + 91 days, _signAll(keys, 0, 2, digest));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.KeepRefused.selector));
        wallet.keep(answer);
    }

    function test_anyApprovalByTheMemberEndsItsRemoval() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        wallet.record(keccak256("other"), UNTIL, _approve(wallet, _some(keys, 0, 2), 2, keccak256("other")));
        (address member,,) = wallet.removal();
        assertEq(member, vm.addr(keys[2]));
        wallet.record(_HASH, UNTIL, _approve(wallet, _some(keys, 1, 2), 2, _HASH));
        (member,,) = wallet.removal();
        assertEq(member, address(0));
        assertEq(wallet.protectedUntil(vm.addr(keys[2])), START + 90 days);
    }

    function test_recoveryIsNoTakeover() external {
        uint256[] memory keys = _crew(3);
        IBusinessWallet wallet = _found(3, MAJORITY);
        address member = vm.addr(keys[2]);
        // One of the two others is not a majority of them, and the member's own approval does not count.
        bytes memory alone = _decide(wallet, _some(keys, 0, 1), _REMOVE, abi.encode(member));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalsMiscounted.selector, 2));
        wallet.startRemoval(member, UNTIL, alone);
        bytes memory own = _decide(wallet, _some(keys, 1, 2), _REMOVE, abi.encode(member));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 1));
        wallet.startRemoval(member, UNTIL, own);
        // While a removal is under way, another cannot begin and so profit from its shorter remaining notice.
        wallet.startRemoval(member, UNTIL, _decide(wallet, _some(keys, 0, 2), _REMOVE, abi.encode(member)));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.RemovalUnderWay.selector, member));
        wallet.startRemoval(vm.addr(keys[1]), UNTIL, "");
    }

    function test_aStrangerIsNotRemovedNorTheOnlyVoter() external {
        IBusinessWallet wallet = _found(2, MAJORITY);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.RemovalRefused.selector, address(0xbeef)));
        wallet.startRemoval(address(0xbeef), UNTIL, "");
        uint256[] memory keys = _crew(2);
        bytes memory charter = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 1);
        IBusinessWallet sole = IBusinessWallet(_factory.create(charter, bytes32("sole")));
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.RemovalRefused.selector, vm.addr(keys[i])));
            sole.startRemoval(vm.addr(keys[i]), UNTIL, "");
        }
    }

    function test_aRemovalNeverTakesTheLastVote() external {
        // During the removal both others lose their votes, by a decision in which the member takes no part.
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        bytes memory next = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 4);
        wallet.changeCharter(next, UNTIL, _decide(wallet, _some(keys, 0, 2), _CHANGE, abi.encode(next)));
        vm.warp(START + 30 days);
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.RemovalRefused.selector, vm.addr(keys[2])));
        wallet.finishRemoval();
    }

    function test_aMemberWithoutAVoteIsRemovedByAllWhoVote() external {
        uint256[] memory keys = _crew(3);
        bytes memory charter = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 3);
        IBusinessWallet wallet = IBusinessWallet(_factory.create(charter, bytes32("mixed")));
        address member = vm.addr(keys[2]);
        wallet.startRemoval(member, UNTIL, _decide(wallet, _some(keys, 0, 2), _REMOVE, abi.encode(member)));
        vm.warp(START + 30 days);
        wallet.finishRemoval();
        assertEq(keccak256(wallet.charter()), keccak256(_charter([MAJORITY, MAJORITY, MAJORITY], _some(keys, 0, 2), 3)));
    }

    function test_aChangeThatDropsTheMemberEndsItsRemoval() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        bytes memory next = _charter([MAJORITY, MAJORITY, MAJORITY], _some(keys, 0, 2), 3);
        wallet.changeCharter(next, UNTIL, _decide(wallet, _some(keys, 0, 2), _CHANGE, abi.encode(next)));
        (address member,,) = wallet.removal();
        assertEq(member, address(0));
        assertEq(wallet.protectedUntil(vm.addr(keys[2])), 0);
    }

    function test_afterAMoveMembersAndRulesStayAsTheyAre() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        uint256[] memory two = _some(keys, 0, 2);
        bytes memory next = _charter([MAJORITY, MAJORITY, MAJORITY], two, 3);
        wallet.moveTo(address(0xbeef), UNTIL, _decide(wallet, two, "moveTo(address)", abi.encode(address(0xbeef))));
        bytes memory moved = abi.encodeWithSelector(IBusinessWallet.WalletMoved.selector, address(0xbeef));
        bytes memory change = _decide(wallet, two, _CHANGE, abi.encode(next));
        vm.expectRevert(moved);
        wallet.changeCharter(next, UNTIL, change);
        vm.warp(START + 30 days);
        vm.expectRevert(moved);
        wallet.finishRemoval();
        // The member can still end the removal, and no other can begin.
        wallet.keep(_keep(wallet, keys[2]));
        vm.warp(START);
        bytes memory remove = _decide(wallet, _some(keys, 1, 2), _REMOVE, abi.encode(vm.addr(keys[0])));
        vm.expectRevert(moved);
        wallet.startRemoval(vm.addr(keys[0]), UNTIL, remove);
        assertEq(wallet.epoch(), 0);
    }

    function test_aDecisionAboutAnAddressIsForOneActAlone() external {
        IBusinessWallet wallet = _found(3, MAJORITY);
        uint256[] memory two = _some(_crew(3), 0, 2);
        address member = vm.addr(_crew(3)[2]);
        bytes memory remove = _decide(wallet, two, _REMOVE, abi.encode(member));
        bytes memory move = _decide(wallet, two, "moveTo(address)", abi.encode(member));
        bytes memory refused = abi.encodeWithSelector(IBusinessWallet.ApprovalRefused.selector, 0);
        vm.expectRevert(refused);
        wallet.moveTo(member, UNTIL, remove);
        vm.expectRevert(refused);
        wallet.startRemoval(member, UNTIL, move);
        wallet.startRemoval(member, UNTIL, remove);
    }

    function test_anAnswerIsForOneWalletOnOneChainAndHasOneSpelling() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        IBusinessWallet other = IBusinessWallet(_factory.create(wallet.charter(), bytes32("other")));
        address member = vm.addr(keys[2]);
        other.startRemoval(member, UNTIL, _decide(other, _some(keys, 0, 2), _REMOVE, abi.encode(member)));
        bytes memory answer = _keep(wallet, keys[2]);
        bytes memory refused = abi.encodeWithSelector(IBusinessWallet.KeepRefused.selector);
        vm.expectRevert(refused);
        other.keep(answer);
        uint256 id = block.chainid;
        vm.chainId(id + 1);
        vm.expectRevert(refused);
        wallet.keep(answer);
        vm.chainId(id);
        uint256 order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
        (uint256 r, uint256 s, uint8 v) = abi.decode(_words(answer), (uint256, uint256, uint8));
        vm.expectRevert(refused);
        wallet.keep(abi.encodePacked(r, order - s, 55 - v));
        vm.expectRevert(refused);
        wallet.keep(bytes.concat(answer, hex"00"));
        wallet.keep(answer);
    }

    function test_aMemberWhoAnsweredStaysSafeAfterLeavingAndComingBack() external {
        (IBusinessWallet wallet, uint256[] memory keys) = _startRemoval(3, 2, 2);
        bytes memory all = wallet.charter();
        uint256[] memory two = _some(keys, 0, 2);
        address member = vm.addr(keys[2]);
        wallet.keep(_keep(wallet, keys[2]));
        bytes memory without = _charter([MAJORITY, MAJORITY, MAJORITY], two, 3);
        wallet.changeCharter(without, UNTIL, _decide(wallet, two, _CHANGE, abi.encode(without)));
        wallet.changeCharter(all, UNTIL, _decide(wallet, two, _CHANGE, abi.encode(all)));
        bytes memory again = _decide(wallet, two, _REMOVE, abi.encode(member));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.MemberProtected.selector, member, START + 90 days));
        wallet.startRemoval(member, UNTIL, again);
    }

    function test_aHundredMembersDecideTogether() external {
        IBusinessWallet wallet = _found(100, UNANIMOUS);
        uint256[] memory keys = _crew(100);
        bytes memory next = _charter([UNANIMOUS, UNANIMOUS, UNANIMOUS], keys, type(uint256).max - 1);
        wallet.changeCharter(next, UNTIL, _decide(wallet, keys, _CHANGE, abi.encode(next)));
        assertEq(keccak256(wallet.charter()), keccak256(next));
        wallet.record(_HASH, UNTIL, _approve(wallet, _some(keys, 1, 99), 99, _HASH));
        bytes memory more = bytes.concat(next, hex"01", bytes20(type(uint160).max));
        vm.expectRevert(abi.encodeWithSelector(Charter.CharterMalformed.selector));
        wallet.changeCharter(more, UNTIL, "");
    }

    /// The first `signers` of `count` members begin the removal of the member at `index`.
    function _startRemoval(uint256 count, uint256 index, uint256 signers)
        private
        returns (IBusinessWallet wallet, uint256[] memory keys)
    {
        keys = _crew(count);
        wallet = _found(count, MAJORITY);
        address member = vm.addr(keys[index]);
        bytes memory approvals = _decide(wallet, _some(keys, 0, signers), _REMOVE, abi.encode(member));
        vm.expectEmit(true, true, true, true, address(wallet));
        emit IBusinessWallet.RemovalStarted(member, START + 30 days, 0);
        wallet.startRemoval(member, UNTIL, approvals);
    }

    function _refuseTwoOfThree(IBusinessWallet wallet, bytes memory next) private {
        bytes memory two = _decide(wallet, _some(_crew(3), 0, 2), _CHANGE, abi.encode(next));
        vm.expectRevert(abi.encodeWithSelector(IBusinessWallet.ApprovalsMiscounted.selector, 3));
        wallet.changeCharter(next, UNTIL, two);
    }

    /// A signature as three words, instead of 65 bytes.
    function _words(bytes memory signature) private pure returns (bytes memory) {
        (bytes32 r, bytes32 s) = abi.decode(signature, (bytes32, bytes32));
        return abi.encode(r, s, uint8(signature[64]));
    }
}
