"""Making room for a deferred resize by shrinking neighbours (docs/room.md).

plan     which neighbours give how much; `turns`: one waiting pod after the other
giving   what one pod can give; `minimum`: how far it lets itself be shrunk; `gave`: what it had before
"""
