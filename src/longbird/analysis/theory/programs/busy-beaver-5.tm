# The busy beaver of 5 states and two symbols: no machine of its size that halts runs longer.
# Halts after 47,176,870 steps with 4,098 ones on the tape.
start: A
halt: H
blank: 0

A 0 -> 1 R B
A 1 -> 1 L C
B 0 -> 1 R C
B 1 -> 1 R B
C 0 -> 1 R D
C 1 -> 0 L E
D 0 -> 1 L A
D 1 -> 1 L D
E 0 -> 1 R H
E 1 -> 0 L A
