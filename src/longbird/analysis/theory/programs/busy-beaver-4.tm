# The busy beaver of 4 states and two symbols: no machine of its size that halts runs longer.
# Halts after 107 steps with 13 ones on the tape.
start: A
halt: H
blank: 0

A 0 -> 1 R B
A 1 -> 1 L B
B 0 -> 1 L A
B 1 -> 0 L C
C 0 -> 1 R H
C 1 -> 1 L D
D 0 -> 1 R D
D 1 -> 0 R A
