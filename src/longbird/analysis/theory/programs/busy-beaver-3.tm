# The busy beaver of 3 states and two symbols: no machine of its size that halts runs longer.
# Halts after 21 steps with 5 ones on the tape.
start: A
halt: H
blank: 0

A 0 -> 1 R B
A 1 -> 1 R H
B 0 -> 1 L B
B 1 -> 0 R C
C 0 -> 1 L C
C 1 -> 1 L A
