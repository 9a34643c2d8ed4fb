// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BusinessFactory} from "../src/BusinessFactory.sol";
import {BusinessWallet} from "../src/BusinessWallet.sol";
import {IBusinessFactory} from "../src/interfaces/IBusinessFactory.sol";
import {IBusinessWallet} from "../src/interfaces/IBusinessWallet.sol";
import {Charter} from "../src/libraries/Charter.sol";
import {BusinessCrew, MAJORITY, UNANIMOUS, UNTIL} from "./BusinessCrew.sol";
import {assertEq, vm} from "./Vm.sol";

contract BusinessFactoryTest is BusinessCrew {
    bytes32 private constant _SALT = bytes32("salt");

    /// forge-config: default.fuzz.runs = 64
    function testFuzz_aWalletIsWhereItsCharterSaysWithAnyCrew(uint8 size, uint256 voters, bytes32 salt) external {
        uint256[] memory keys = _crew(1 + size % 25);
        bytes memory charter = _charter([MAJORITY, UNANIMOUS, MAJORITY], keys, voters | 1);
        address expected = _factory.walletOf(charter, salt);
        vm.expectEmit(true, true, true, true, address(_factory));
        emit IBusinessFactory.BusinessCreated(expected, keccak256(charter));
        IBusinessWallet wallet = IBusinessWallet(_factory.create(charter, salt));
        assertEq(address(wallet), expected);
        assertEq(keccak256(wallet.charter()), keccak256(charter));
        assertEq(wallet.epoch(), 0);
        assertEq(wallet.nonce(), 0);
    }

    function test_nobodyCanSquatOnAnAddress() external {
        bytes memory charter = _charter([MAJORITY, MAJORITY, MAJORITY], _crew(3), 7);
        vm.prank(address(0xbad0bad0));
        address first = _factory.create(charter, _SALT);
        vm.recordLogs();
        assertEq(_factory.create(charter, _SALT), first);
        assertEq(vm.getRecordedLogs().length, 0);
    }

    function test_creatingAgainLeavesAWalletThatChangedAsItIs() external {
        uint256[] memory keys = _crew(2);
        bytes memory charter = _charter([MAJORITY, MAJORITY, MAJORITY], keys, 3);
        IBusinessWallet wallet = IBusinessWallet(_factory.create(charter, _SALT));
        bytes memory next = _charter([UNANIMOUS, MAJORITY, MAJORITY], keys, 3);
        wallet.changeCharter(next, UNTIL, _decide(wallet, keys, "changeCharter(bytes)", abi.encode(next)));
        assertEq(_factory.create(charter, _SALT), address(wallet));
        assertEq(keccak256(wallet.charter()), keccak256(next));
        assertEq(wallet.epoch(), 1);
    }

    function test_aWalletTakesNoAssetsAndNoUnknownCalls() external {
        address wallet = _factory.create(_charter([MAJORITY, MAJORITY, MAJORITY], _crew(1), 1), _SALT);
        (bool isPaid,) = wallet.call{value: 1}("");
        (bool isCalled,) = wallet.call(abi.encodeWithSignature("execute(address,uint256,bytes)", wallet, 0, ""));
        assert(!isPaid && !isCalled);
    }

    function test_addressesCommitToMembersRulesSaltAndEnvironment() external {
        uint256[] memory keys = _crew(3);
        address wallet = _factory.walletOf(_charter([MAJORITY, MAJORITY, MAJORITY], keys, 7), _SALT);
        assert(wallet != _factory.walletOf(_charter([MAJORITY, MAJORITY, MAJORITY], keys, 3), _SALT));
        assert(wallet != _factory.walletOf(_charter([MAJORITY, MAJORITY, UNANIMOUS], keys, 7), _SALT));
        assert(wallet != _factory.walletOf(_charter([MAJORITY, MAJORITY, MAJORITY], keys, 7), bytes32("other")));
        BusinessFactory other = new BusinessFactory(keccak256("other"));
        assert(wallet != other.walletOf(_charter([MAJORITY, MAJORITY, MAJORITY], keys, 7), _SALT));
        assertEq(other.environment(), keccak256("other"));
    }

    function test_thereIsNothingToInitialise() external {
        // The implementation that wallets share has no charter, so nobody can act through it.
        IBusinessWallet shared = IBusinessWallet(_factory.implementation());
        vm.expectRevert(abi.encodeWithSelector(Charter.CharterMalformed.selector));
        shared.record(bytes32("hash"), type(uint48).max, "");
    }

    function test_aCharterOfAnotherFormIsRefused() external {
        bytes memory good = _charter([MAJORITY, MAJORITY, MAJORITY], _crew(2), 3);
        _refuse("", abi.encodeWithSelector(Charter.CharterMalformed.selector));
        _refuse(hex"000000", abi.encodeWithSelector(Charter.CharterMalformed.selector));
        _refuse(bytes.concat(good, hex"00"), abi.encodeWithSelector(Charter.CharterMalformed.selector));
        _refuse(new bytes(3 + 21 * 101), abi.encodeWithSelector(Charter.CharterMalformed.selector));
        for (uint256 i = 0; i < 3; ++i) {
            bytes memory charter = bytes.concat(good);
            charter[i] = 0x02;
            _refuse(charter, abi.encodeWithSelector(Charter.CharterMalformed.selector));
        }
        for (uint8 flags = 2; flags < 4; ++flags) {
            bytes memory flagged = bytes.concat(good);
            flagged[3] = bytes1(flags);
            _refuse(flagged, abi.encodeWithSelector(Charter.CharterMalformed.selector));
        }
    }

    function test_membersStandInOrderAndOnce() external {
        uint256[] memory keys = _crew(2);
        (keys[0], keys[1]) = (keys[1], keys[0]);
        address second = vm.addr(keys[1]);
        _refuse(
            _charter([MAJORITY, MAJORITY, MAJORITY], keys, 3),
            abi.encodeWithSelector(Charter.MembersUnordered.selector, second)
        );
        keys[0] = keys[1];
        _refuse(
            _charter([MAJORITY, MAJORITY, MAJORITY], keys, 3),
            abi.encodeWithSelector(Charter.MembersUnordered.selector, second)
        );
    }

    function testFuzz_zeroAndPrecompilesAreNoMembers(uint16 number) external {
        address member = address(uint160(number));
        _refuse(
            abi.encodePacked(uint24(0), uint8(1), member),
            abi.encodeWithSelector(Charter.MemberWithoutKey.selector, member)
        );
    }

    function test_somebodyMustVote() external {
        _refuse(
            _charter([MAJORITY, MAJORITY, MAJORITY], _crew(3), 0),
            abi.encodeWithSelector(Charter.NoVotingMember.selector)
        );
    }

    function test_creatingCostsWhatTheSnapshotSays() external {
        _factory.create(_charter([MAJORITY, MAJORITY, MAJORITY], _crew(3), 7), _SALT);
        vm.snapshotGasLastCall("create with 3 members");
        _factory.create(_charter([MAJORITY, MAJORITY, MAJORITY], _crew(10), 1023), _SALT);
        vm.snapshotGasLastCall("create with 10 members");
    }

    function _refuse(bytes memory charter, bytes memory reason) private {
        vm.expectRevert(reason);
        _factory.create(charter, _SALT);
    }
}
