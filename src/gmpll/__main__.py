"""``python -m gmpll``."""

from gmpll.cli import main

if __name__ == "__main__":
    main()
