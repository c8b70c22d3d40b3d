"""`python -m podfit.cli`."""

from podfit.cli.app import main

main()
