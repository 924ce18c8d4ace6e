#!/bin/bash
# perftest: perftest.sh send|write|read|atomic, and send_all|write_all|read_all, with all
# message sizes, in one place only
#
# Few iterations: this is about right answers, not about speed. With -a, perftest runs
# 23 sizes up to 8 MB and measures the processor's clock after each, a quarter of a second
# of busy waiting; hence not more of these than needed.
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
needs perftest:ib_send_lat

test_send() {
	local type group
	for type in RC UC UD; do
		perftest ib_send_lat -c $type -n 200
		perftest ib_send_bw -c $type -n 400 -s 4096
	done
	perftest ib_send_bw -b -e -q 8 --use-srq -n 100
	perftest ib_send_bw -s 1000003 -n 20
	full || return 0
	for type in RC UC UD; do
		perftest ib_send_lat -c $type -e -n 200
		perftest ib_send_bw -c $type -b -n 200 -s 4096
		perftest ib_send_bw -c $type -e -n 200 -s 4096
		perftest ib_send_bw -c $type -q 8 -n 100 -s 4096
	done
	perftest ib_send_lat --use-srq -n 200
	perftest ib_send_lat -I 64 -s 64 -n 200
	perftest ib_send_bw -I 64 -s 64 -n 1000
	perftest ib_send_bw --use-srq -q 8 -n 100
	perftest ib_send_bw -b -s 1000003 -n 20 -q 2
	perftest ib_send_bw -l 8 -n 400 -s 1024
	perftest ib_send_bw -Q 1 -t 4 -r 4 -n 400 -s 1024
	perftest ib_send_bw --mr_per_qp -q 4 -n 100
	perftest ib_send_bw --reversed -n 100
	perftest ib_send_bw -D 1 -s 1024
	# A multicast group of IP; at random, because all of this machine hear it.
	group=0:0:0:0:0:0:0:0:0:0:255:255:239:255:$((RANDOM % 256)):$((RANDOM % 256))
	perftest ib_send_lat -c UD -g -n 200
	perftest ib_send_bw -c UD -g -M $group -s 1024 -n 200
}

test_send_all() {
	perftest ib_send_lat -a -n 5
	perftest ib_send_bw -a -n 10
	perftest ib_send_bw -c UC -a -b -n 10
	perftest ib_send_bw -c UD -a -n 10
}

test_write() {
	local type
	for type in RC UC; do
		perftest ib_write_lat -c $type -n 50
		perftest ib_write_bw -c $type -n 200
	done
	perftest ib_write_bw -s 1000003 -n 20
	full || return 0
	for type in RC UC; do
		perftest ib_write_bw -c $type -b -n 200
		perftest ib_write_bw -c $type -q 8 -n 100
	done
	perftest ib_write_lat -I 64 -s 64 -n 50
	perftest ib_write_bw -I 64 -s 64 -n 1000
	perftest ib_write_bw -b -s 1000003 -n 20 -q 2
	perftest ib_write_bw -l 8 -n 400 -s 1024
	perftest ib_write_bw --mr_per_qp -q 4 -n 100
}

test_write_all() {
	perftest ib_write_lat -a -n 5
	perftest ib_write_bw -a -b -n 10
}

test_read() {
	perftest ib_read_lat -n 200
	perftest ib_read_bw -n 200
	perftest ib_read_bw -s 1000003 -n 20
	full || return 0
	perftest ib_read_lat -e -n 200
	perftest ib_read_bw -b -n 200
	perftest ib_read_bw -e -n 200
	perftest ib_read_bw -q 8 -n 100
	perftest ib_read_bw -o 1 -n 200
	perftest ib_read_bw -b -s 1000003 -n 20 -q 2
}

test_read_all() {
	perftest ib_read_lat -a -n 5
	perftest ib_read_bw -a -b -n 10
}

test_atomic() {
	local type
	for type in CMP_AND_SWAP FETCH_AND_ADD; do
		perftest ib_atomic_lat -A $type -n 200
		perftest ib_atomic_bw -A $type -n 500
	done
	full || return 0
	for type in CMP_AND_SWAP FETCH_AND_ADD; do
		perftest ib_atomic_lat -A $type -e -n 200
		perftest ib_atomic_bw -A $type -e -n 200
		perftest ib_atomic_bw -A $type -b -n 200
		perftest ib_atomic_bw -A $type -q 8 -n 100
		perftest ib_atomic_bw -A $type -o 1 -n 200
	done
}

cases() { "test_$1"; }
case ${1:-} in
*_all) STOCK_PLACES=loopback STOCK_ONLY=1 ;;
esac
stock_main "$@"
