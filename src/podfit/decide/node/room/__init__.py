"""Making room for a deferred resize by shrinking neighbours (docs/room.md).

plan     which neighbours give how much; `turns`: one waiting pod after the other
shrinkable  what one pod can give; `minimum`: how far it lets itself be shrunk; `annotation`: what it had before
"""
