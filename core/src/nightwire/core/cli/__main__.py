"""``python -m nightwire.core.cli`` is the command `nightwire`, for processes that start each other."""

from nightwire.core.cli import main

if __name__ == "__main__":
    main()
