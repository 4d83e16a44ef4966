"""``python -m nightwire.core.cli`` is the command `nightwire`, for child processes."""

from nightwire.core.cli import main

if __name__ == "__main__":
    main()
