"""Every order of everything: two jobs, one instance, the real handlers stopped before each write.

A process is a handler and the answers that its ports gave it so far. To move it, it is run again from its
beginning with those answers, makes one more call that changes something, and stops before the next. So the
code explored is the product's own, and a state is a value that can be compared.
"""
