"""``python -m gmpll``, and the command ``gmpll``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C is answered in a sentence from the first moment on."""
    try:
        from gmpll.apps.cli import main as run

        run()
    except KeyboardInterrupt:  # while the command line was being loaded
        print("gmpll: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
