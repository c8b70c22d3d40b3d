"""Exit codes, the same for every command.

0 done · 1 refused, or not as promised · 2 wrong usage · 3 this machine lacks something · 4 the API refused or is silent
"""

DONE = 0
REFUSED = 1
USAGE = 2
MACHINE = 3
API = 4
INTERRUPTED = 130
