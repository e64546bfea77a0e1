# The busy beaver of 2 states and two symbols: no machine of its size that halts runs longer.
# Halts after 6 steps with 4 ones on the tape.
start: A
halt: H
blank: 0

A 0 -> 1 R B
A 1 -> 1 L B
B 0 -> 1 L A
B 1 -> 1 R H
