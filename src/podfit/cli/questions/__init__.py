"""The verbs that ask a cluster and resize: `plan`, `resize`, `why`, `top`, `recommend`, `export`, `history`, ..."""
