# Does a word of a and b read the same backwards? Halts in yes or no.
# It takes a letter off the left end, walks to the right end, and compares.
start: take
halt: yes no
blank: _
input: abba

take a -> _ R walk-a
take b -> _ R walk-b
take _ -> _ S yes

walk-a a -> a R walk-a
walk-a b -> b R walk-a
walk-a _ -> _ L want-a
walk-b a -> a R walk-b
walk-b b -> b R walk-b
walk-b _ -> _ L want-b

want-a a -> _ L back
want-a b -> b S no
want-a _ -> _ S yes
want-b b -> _ L back
want-b a -> a S no
want-b _ -> _ S yes

back a -> a L back
back b -> b L back
back _ -> _ R take
